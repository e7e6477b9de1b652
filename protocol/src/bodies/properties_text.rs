//! Settings as `key=value` lines: the bodies of 25, 26, 318 and 319, and files such as `broker.conf`.
//!
//! ```text
//! "a = b\nc\\:d=e" ─▶ parse_properties ─▶ [("a","b"), ("c:d","e")]
//! ```
//!
//! The syntax is that of `java.util.Properties`: `#` and `!` start comments, a backslash continues a line or escapes a
//! character, key and value are parted by `=`, `:` or blanks.

/// The entries in order; of duplicates all, so that the caller can let the last one win or complain.
#[must_use]
pub fn parse_properties(text: &str) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start_matches(is_blank);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while continues(&logical) {
            logical.pop();
            let Some(next) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(is_blank));
        }
        entries.push(entry(&logical));
    }
    entries
}

/// One `key=value` line an entry, in the order given, as mqadmin and the clients of 26 and 319 read them.
#[must_use]
pub fn write_properties<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (key, value) in entries {
        escape(&mut text, key, true);
        text.push('=');
        escape(&mut text, value, false);
        text.push('\n');
    }
    text
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

/// Whether the line ends with an odd number of backslashes.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Parts a logical line at the first separator that is not escaped.
fn entry(line: &str) -> (String, String) {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let separator = !escaped && (is_blank(c) || c == '=' || c == ':');
        escaped = c == '\\' && !escaped;
        separator
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let value = rest
        .strip_prefix(['=', ':'])
        .unwrap_or(rest)
        .trim_start_matches(is_blank);
    (unescape(key), unescape(value))
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let digits: String = chars.clone().take(4).collect();
                let unit = u32::from_str_radix(&digits, 16).ok();
                plain.push(
                    unit.and_then(char::from_u32)
                        .unwrap_or(char::REPLACEMENT_CHARACTER),
                );
                chars = chars
                    .as_str()
                    .get(digits.len()..)
                    .unwrap_or_default()
                    .chars();
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

fn escape(text: &mut String, part: &str, is_key: bool) {
    for c in part.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\\' => text.push_str("\\\\"),
            '=' | ':' | ' ' | '#' | '!' if is_key => {
                text.push('\\');
                text.push(c);
            }
            _ => text.push(c),
        }
    }
}
