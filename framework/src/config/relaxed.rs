//! Spring's relaxed names: which spellings are one key, and which known name a wrong one probably meant.

/// What two spellings of a fixed key have in common: letters and digits, in lower case. `name-server`, `nameServer`,
/// `name_server` and `NAMESERVER` are all `nameserver`.
pub(crate) fn squash(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// One step of a written key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The name without brackets.
    pub(crate) text: String,
    /// `[n]` behind it.
    pub(crate) index: Option<usize>,
    /// In brackets: taken literally.
    pub(crate) literal: bool,
    /// Where it begins in the key, in characters.
    pub(crate) offset: usize,
}

/// Splits a key at its dots: `a.b[0].[c.d]` is `a`, `b` with index 0, and the literal name `c.d`.
pub(crate) fn split(key: &str) -> Vec<Segment> {
    let chars: Vec<char> = key.chars().collect();
    let mut segments: Vec<Segment> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if chars[at] == '['
            && let Some(length) = chars[at..].iter().position(|c| *c == ']')
        {
            bracketed(
                &mut segments,
                chars[at + 1..at + length].iter().collect(),
                at,
            );
            at += length + 1;
        } else if chars[at] == '.' {
            at += 1;
        } else {
            let end = chars[at..]
                .iter()
                .position(|c| matches!(c, '.' | '['))
                .map_or(chars.len(), |n| at + n);
            // A lone `[` that never closes is part of the name.
            let end = if end == at { chars.len() } else { end };
            let text = chars[at..end].iter().collect();
            segments.push(Segment {
                text,
                index: None,
                literal: false,
                offset: at,
            });
            at = end;
        }
    }
    if segments.is_empty() {
        segments.push(Segment {
            text: key.to_owned(),
            index: None,
            literal: false,
            offset: 0,
        });
    }
    segments
}

/// `[3]` is an index of the segment before it, any other bracket a literal name.
fn bracketed(segments: &mut Vec<Segment>, text: String, offset: usize) {
    match (text.parse::<usize>(), segments.last_mut()) {
        (Ok(index), Some(last)) if last.index.is_none() && !last.literal => {
            last.index = Some(index);
        }
        _ => segments.push(Segment {
            text,
            index: None,
            literal: true,
            offset,
        }),
    }
}

/// How many letters must be inserted, dropped, changed or swapped with their neighbour to get from `a` to `b`.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// The known name nearest to `name`: the same letters, or at most two mistakes and not more than a third of the name.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = squash(name);
    let limit = (wanted.chars().count() / 3).clamp(1, 2);
    known
        .into_iter()
        .map(|candidate| (distance(&wanted, &squash(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(b.1)))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_key_squash_to_one_text() {
        for spelling in [
            "name-server",
            "nameServer",
            "name_server",
            "NAMESERVER",
            "na-me-ser-ver",
            "name--server",
        ] {
            assert_eq!(squash(spelling), "nameserver");
        }
    }

    #[test]
    fn keys_split_at_dots_and_brackets() {
        let shown: Vec<String> = split("a.b[0].[c.d].e")
            .iter()
            .map(|s| {
                format!(
                    "{}{}{}@{}",
                    s.text,
                    s.index.map_or(String::new(), |i| format!("#{i}")),
                    if s.literal { "!" } else { "" },
                    s.offset
                )
            })
            .collect();
        assert_eq!(shown, ["a@0", "b#0@2", "c.d!@7", "e@13"]);
        assert_eq!(split("[weird/name]")[0].text, "weird/name");
        assert_eq!(split("a[")[0].text, "a");
        assert_eq!(split("").len(), 1);
    }

    #[test]
    fn swapped_and_missing_letters_are_near_and_other_words_are_not() {
        assert_eq!(nearest("inptu", ["input", "output"]), Some("input"));
        assert_eq!(
            nearest(
                "partition-key-expresion",
                ["partition-count", "partition-key-expression"]
            ),
            Some("partition-key-expression")
        );
        assert_eq!(nearest("sprng", ["spring", "server"]), Some("spring"));
        assert_eq!(nearest("app", ["bindery", "spring", "server"]), None);
        assert_eq!(nearest("bus", ["mvc", "stream"]), None);
    }
}
