//! Java properties files, as brokers and name servers are configured with: parsing with positions, typed look-up, and
//! what to say about keys nobody knows.
//!
//! ```text
//! file ─▶ Properties::read ─▶ entries (key, value, line) ─▶ value::<T>("listenPort", …) ─▶ configuration
//!                                                       └─▶ unknown(known keys) ─▶ mistakes with the nearest right name
//! ```
//! The syntax is that of `java.util.Properties.load`: `key=value`, `key:value` or `key value`; `#` and `!` begin comment
//! lines; a line that ends in an odd number of backslashes goes on in the next one; `\t \n \r \f \uXXXX` are escapes.
//! Bytes are read as UTF-8, and as Latin-1, Java's reading, when they are not that.
use std::{
    fmt, io, iter,
    path::{Path, PathBuf},
    str::FromStr,
};

/// Names less alike than this are not suggested (Jaro-Winkler, 1 is equal).
const NEAR_ENOUGH: f64 = 0.85;

/// A properties file, entry by entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    entries: Vec<Entry>,
}

/// One key with its value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key, unescaped.
    pub key: String,
    /// The value, unescaped; blanks in front of it are not part of it, those behind it are.
    pub value: String,
    /// Line of the key's first character, from 1.
    pub line: usize,
    /// Column of the key's first character, in characters from 1.
    pub column: usize,
}

/// Why there are no properties.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PropertiesError {
    /// The file can't be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// A `\u` that four hexadecimal digits don't follow.
    #[error("line {line}: `\\u` needs four hexadecimal digits behind it")]
    Escape {
        /// Line on which the entry begins, from 1.
        line: usize,
    },
}

/// Something wrong with one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line of the entry, from 1.
    pub line: usize,
    /// Column of its key, in characters from 1.
    pub column: usize,
    /// The key as written.
    pub key: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// Nobody knows the key.
    Unknown {
        /// The most similar known key, if one is similar.
        suggestion: Option<String>,
    },
    /// The value is of the wrong kind.
    Invalid {
        /// The value as written.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl Properties {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file can't be read or holds a broken escape.
    pub fn read(path: &Path) -> Result<Self, PropertiesError> {
        Self::parse(&read_text(path)?)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// When it holds a broken escape.
    pub fn parse(text: &str) -> Result<Self, PropertiesError> {
        let mut lines = Lines::of(text);
        let mut entries = Vec::new();
        while let Some(logical) = lines.logical() {
            let (key, value) = split(&logical.text);
            let unescaped =
                |part| unescape(part).ok_or(PropertiesError::Escape { line: logical.line });
            entries.push(Entry {
                key: unescaped(key)?,
                value: unescaped(value)?,
                line: logical.line,
                column: logical.column,
            });
        }
        Ok(Self { entries })
    }

    /// All entries in the file's order, repeated keys included.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry that counts for a key: the last one, as in Java.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.key == key)
    }

    /// The value that counts for a key.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entry(key).map(|entry| entry.value.as_str())
    }

    /// The value of a key, blanks around it removed, as a `T`.
    ///
    /// # Errors
    /// A [`Mistake`] that says what was `expected` when the value is no `T`.
    pub fn value<T: FromStr>(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<T>, Mistake> {
        let Some(entry) = self.entry(key) else {
            return Ok(None);
        };
        match entry.value.trim().parse() {
            Ok(value) => Ok(Some(value)),
            Err(_says_less_than_expected) => Err(entry.invalid(expected)),
        }
    }

    /// The entries whose keys are not in `known`, each with the most similar known one.
    #[must_use]
    pub fn unknown(&self, known: &[&str]) -> Vec<Mistake> {
        let strangers = self
            .entries
            .iter()
            .filter(|entry| !known.contains(&entry.key.as_str()));
        strangers
            .map(|entry| entry.unknown(known.iter().copied()))
            .collect()
    }
}

impl Entry {
    /// A mistake that says that the value is not what was expected.
    #[must_use]
    pub fn invalid(&self, expected: &'static str) -> Mistake {
        self.mistake(Problem::Invalid {
            value: self.value.clone(),
            expected,
        })
    }

    /// A mistake that says that the key is not one of `known`.
    pub fn unknown<'a>(&self, known: impl IntoIterator<Item = &'a str>) -> Mistake {
        let suggestion = nearest(&self.key, known).map(str::to_owned);
        self.mistake(Problem::Unknown { suggestion })
    }

    fn mistake(&self, problem: Problem) -> Mistake {
        Mistake {
            line: self.line,
            column: self.column,
            key: self.key.clone(),
            problem,
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        match &self.problem {
            Problem::Unknown { suggestion: None } => write!(f, "unknown key `{}`", self.key),
            Problem::Unknown {
                suggestion: Some(near),
            } => {
                write!(f, "unknown key `{}`, did you mean `{near}`?", self.key)
            }
            Problem::Invalid { value, expected } => {
                write!(f, "`{}` is `{value}`, expected {expected}", self.key)
            }
        }
    }
}

/// The most similar of the `known` names, upper and lower case alike; nothing if none is similar.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let likeness = |candidate: &str| strsim::jaro_winkler(&name, &candidate.to_lowercase());
    let rated = known
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate));
    let best = rated.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= NEAR_ENOUGH).then_some(best.1)
}

/// Reads the text of a properties file: UTF-8, or else Latin-1.
pub(crate) fn read_text(path: &Path) -> Result<String, PropertiesError> {
    let bytes = std::fs::read(path).map_err(|source| PropertiesError::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|not_utf8| {
        let bytes = not_utf8.as_bytes().iter();
        bytes.copied().map(char::from).collect()
    }))
}

/// The text with the values of some keys replaced where they stand; those it lacks are added at its end. Everything
/// else stays, comments too.
pub(crate) fn amend<'a>(
    text: &str,
    values: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<String, PropertiesError> {
    let values: Vec<(&str, &str)> = values.into_iter().collect();
    let mut missing: Vec<bool> = vec![true; values.len()];
    let (mut amended, mut copied) = (String::with_capacity(text.len()), 0);
    let mut lines = Lines::of(text);
    while let Some(logical) = lines.logical() {
        let (key, _) = split(&logical.text);
        let key = unescape(key).ok_or(PropertiesError::Escape { line: logical.line })?;
        let Some(index) = values.iter().position(|(changed, _)| *changed == key) else {
            continue;
        };
        missing[index] = false;
        amended.push_str(&text[copied..logical.start]);
        amended.push_str(&render([values[index]]));
        copied = lines.position();
    }
    amended.push_str(&text[copied..]);
    let end = amended
        .strip_suffix("\r\n")
        .or_else(|| amended.strip_suffix(['\n', '\r']));
    // A last line that wants to go on would take in what is added: an empty one ends it.
    let (ended, open) = (end.is_some(), goes_on(end.unwrap_or(&amended)));
    if !ended && !amended.is_empty() {
        amended.push('\n');
    }
    if open {
        // Not behind a lone carriage return, of which it would make one end of a line.
        amended.push(if amended.ends_with('\r') { '\r' } else { '\n' });
    }
    let added = values.iter().zip(missing).filter(|(_, missing)| *missing);
    amended.push_str(&render(added.map(|(value, _)| *value)));
    Ok(amended)
}

/// Writes entries in the form that [`Properties::parse`] and Java read back to the same, one a line.
#[must_use]
pub fn render<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (key, value) in entries {
        escape_into(&mut text, key, Position::Key);
        text.push('=');
        escape_into(&mut text, value, Position::Value);
        text.push('\n');
    }
    text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Key,
    Value,
}

fn escape_into(text: &mut String, part: &str, position: Position) {
    for (index, c) in part.chars().enumerate() {
        let must_escape = match c {
            '\\' => true,
            '#' | '!' => index == 0 && position == Position::Key,
            '=' | ':' => position == Position::Key,
            ' ' => position == Position::Key || index == 0,
            _ => false,
        };
        match c {
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\x0c' => text.push_str("\\f"),
            _ if must_escape => text.extend(['\\', c]),
            _ => text.push(c),
        }
    }
}

/// Natural lines, joined to logical ones.
struct Lines<'a> {
    text: &'a str,
    /// Length of the whole text.
    len: usize,
    /// Number of the line last taken, from 1.
    number: usize,
}

struct Logical {
    text: String,
    /// Byte at which its first natural line begins.
    start: usize,
    line: usize,
    column: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text,
            len: text.len(),
            number: 0,
        }
    }

    /// Bytes taken so far.
    fn position(&self) -> usize {
        self.len - self.text.len()
    }

    /// The next line with its leading blanks.
    fn natural(&mut self) -> Option<&'a str> {
        if self.text.is_empty() {
            return None;
        }
        self.number += 1;
        let end = self.text.find(['\n', '\r']).unwrap_or(self.text.len());
        let (line, rest) = self.text.split_at(end);
        self.text = rest
            .strip_prefix("\r\n")
            .or_else(|| rest.get(1..))
            .unwrap_or_default();
        Some(line)
    }

    /// The next logical line that holds an entry, without leading blanks.
    fn logical(&mut self) -> Option<Logical> {
        loop {
            let begin = self.position();
            let natural = self.natural()?;
            let start = natural.trim_start_matches(is_blank);
            if start.is_empty() || start.starts_with(['#', '!']) {
                continue;
            }
            let column = natural.chars().take_while(|c| is_blank(*c)).count() + 1;
            let mut logical = Logical {
                text: start.to_owned(),
                start: begin,
                line: self.number,
                column,
            };
            while goes_on(&logical.text) {
                logical.text.pop();
                let Some(next) = self.natural() else { break };
                logical.text.push_str(next.trim_start_matches(is_blank));
            }
            return Some(logical);
        }
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

/// An odd number of backslashes at the end: an even number are escaped ones.
fn goes_on(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// Key and value of a logical line, still escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c| {
        let found = !escaped && (is_blank(c) || matches!(c, '=' | ':'));
        escaped = !escaped && c == '\\';
        found
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim_start_matches(is_blank))
}

/// `None` for a broken `\u`.
fn unescape(text: &str) -> Option<String> {
    if !text.contains('\\') {
        return Some(text.to_owned());
    }
    // UTF-16, because a character beyond the basic plane is written as two escapes.
    let mut units = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let escaped = if c == '\\' { chars.next() } else { None };
        match escaped {
            Some('t') => units.push(u16::from(b'\t')),
            Some('n') => units.push(u16::from(b'\n')),
            Some('r') => units.push(u16::from(b'\r')),
            Some('f') => units.push(0x0c),
            Some('u') => units.push(hex(&mut chars)?),
            other => units.extend_from_slice(other.unwrap_or(c).encode_utf16(&mut [0; 2])),
        }
    }
    Some(String::from_utf16_lossy(&units))
}

fn hex(chars: &mut std::str::Chars<'_>) -> Option<u16> {
    let digits = iter::from_fn(|| chars.next()).take(4);
    let (count, value) = digits
        .map(|c| c.to_digit(16))
        .try_fold((0, 0_u32), |(count, value), digit| {
            Some((count + 1, value * 16 + digit?))
        })?;
    if count == 4 {
        u16::try_from(value).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let parsed = Properties::parse(text).unwrap();
        parsed
            .entries()
            .iter()
            .map(|entry| (entry.key.clone(), entry.value.clone()))
            .collect()
    }

    fn pair(text: &str) -> (String, String) {
        pairs(text).remove(0)
    }

    proptest! {
        #[test]
        fn amending_changes_what_it_should_and_nothing_else(
            text in "[a-c=: #!\\\\\\n\\t\\r]{0,60}",
            key in "[a-cx]{1,2}",
            value in "[a-z =\\\\#é]{0,8}",
        ) {
            let amended = amend(&text, [(key.as_str(), value.as_str())]).unwrap();
            let mut expected = pairs(&text);
            let mut found = false;
            for (known, old) in &mut expected {
                if *known == key {
                    found = true;
                    old.clone_from(&value);
                }
            }
            if !found {
                expected.push((key, value));
            }
            prop_assert_eq!(pairs(&amended), expected);
        }
    }

    #[test]
    fn keys_and_values_are_separated_in_each_of_javas_ways() {
        for text in [
            "k=v",
            "k:v",
            "k v",
            "k\t=  v",
            "  k  :v",
            "k = v\r\n",
            "\x0ck\x0cv\r",
            "\n\n# c\n ! c\nk=v",
        ] {
            assert_eq!(pair(text), ("k".into(), "v".into()), "{text:?}");
        }
        assert_eq!(pair("k"), ("k".into(), String::new()));
        assert_eq!(pair("=v"), (String::new(), "v".into()));
        assert_eq!(pair("k==v"), ("k".into(), "=v".into()));
        assert_eq!(pair("k = v "), ("k".into(), "v ".into()));
        assert_eq!(pair("namesrvAddr=a:1;b:2").1, "a:1;b:2");
    }

    #[test]
    fn escapes_and_continuations_are_read_as_java_does() {
        assert_eq!(
            pair(r"a\=b\ c=d\te\u0041\q"),
            ("a=b c".into(), "d\teAq".into())
        );
        assert_eq!(pair("k=a\\\n   b\\\r\n\tc"), ("k".into(), "abc".into()));
        assert_eq!(pair(r"k=\uD83D\uDE00").1, "😀");
        assert_eq!(pairs("k=a\\\\\nl=b").len(), 2);
        assert_eq!(pairs("# comment \\\nk=v"), [("k".into(), "v".into())]);
        assert_eq!(pair("k=a\\").1, "a");
        assert!(matches!(
            Properties::parse("a=1\nk=\\u00g0"),
            Err(PropertiesError::Escape { line: 2 })
        ));
        assert!(matches!(
            Properties::parse("k=\\u12"),
            Err(PropertiesError::Escape { line: 1 })
        ));
    }

    #[test]
    fn entries_know_their_place_and_the_last_of_equal_keys_counts() {
        let properties = Properties::parse("# names\n\n  a=1\\\n  2\nb=3\na=4\n").unwrap();
        let places: Vec<_> = properties
            .entries()
            .iter()
            .map(|entry| (entry.line, entry.column))
            .collect();
        assert_eq!(places, [(3, 3), (5, 1), (6, 1)]);
        assert_eq!(properties.text("a"), Some("4"));
        assert_eq!(properties.value::<u16>("a", "a port"), Ok(Some(4)));
        assert_eq!(properties.value::<u16>("missing", "a port"), Ok(None));
    }

    #[test]
    fn a_misspelt_key_is_reported_with_its_line_and_the_right_name() {
        let properties =
            Properties::parse("listenPort=1\nscanNotActivBrokerInterval=5\nxyz=1\n").unwrap();
        let mistakes = properties.unknown(&["listenPort", "scanNotActiveBrokerInterval"]);
        let texts: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
        assert_eq!(
            texts,
            [
                "line 2, column 1: unknown key `scanNotActivBrokerInterval`, \
                 did you mean `scanNotActiveBrokerInterval`?",
                "line 3, column 1: unknown key `xyz`",
            ]
        );
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_reported_with_what_was_expected() {
        let properties = Properties::parse("listenPort = 98 76").unwrap();
        let mistake = properties.value::<u16>("listenPort", "a port").unwrap_err();
        assert_eq!(
            mistake.to_string(),
            "line 1, column 1: `listenPort` is `98 76`, expected a port"
        );
    }

    #[test]
    fn a_file_in_latin_1_is_read_as_java_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("broker.conf");
        std::fs::write(&path, b"regionId=Z\xfcrich\n").unwrap();
        assert_eq!(
            Properties::read(&path).unwrap().text("regionId"),
            Some("Zürich")
        );
        let missing = dir.path().join("none.conf");
        assert!(matches!(
            Properties::read(&missing),
            Err(PropertiesError::Read { .. })
        ));
    }

    proptest! {
        #[test]
        fn what_is_rendered_reads_back(entries in prop::collection::vec((any::<String>(), any::<String>()), 0..8)) {
            let text = render(entries.iter().map(|(key, value)| (key.as_str(), value.as_str())));
            // A pair of empty texts is a line with a lone `=`, which is an entry too.
            prop_assert_eq!(pairs(&text), entries);
        }

        #[test]
        fn no_text_makes_the_parser_fail_badly(text in any::<String>()) {
            drop(Properties::parse(&text));
        }
    }
}
