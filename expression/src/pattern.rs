//! The patterns of `matches`: Java's regular expressions, as far as they can be matched in linear time.

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// How large a compiled pattern may become, in bytes; repetitions of repetitions grow without bound otherwise.
const SIZE_LIMIT: usize = 1 << 20;

/// A compiled pattern, matched against whole texts.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
}

impl Pattern {
    /// Compiles a Java pattern; the error says what is not supported or wrong.
    pub(crate) fn compile(java: &str) -> Result<Self, String> {
        let translated = translate(java)?;
        let built = RegexBuilder::new(&format!(r"\A(?:{translated})\z"))
            .size_limit(SIZE_LIMIT)
            .build();
        match built {
            Ok(regex) => Ok(Self { regex }),
            // The error's first lines repeat the translated pattern, which is not what the user wrote.
            Err(error) => Err(error
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .trim()
                .to_owned()),
        }
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// What differs in meaning: Java's classes are ASCII, its dot stops at more line ends, `\Q..\E` quotes.
fn translate(java: &str) -> Result<String, String> {
    let mut out = String::with_capacity(java.len() + 8);
    let mut chars = java.chars().peekable();
    let mut class_depth = 0_usize;
    let mut after_repeat = false;
    let dot_is_all = java.contains("(?s") || java.contains("(?is");
    while let Some(c) = chars.next() {
        let repeats = matches!(c, '*' | '+' | '?' | '}') && class_depth == 0;
        match c {
            '\\' => escape(&mut chars, &mut out)?,
            '[' => {
                class_depth += 1;
                out.push(c);
            }
            ']' => {
                class_depth = class_depth.saturating_sub(1);
                out.push(c);
            }
            '+' if after_repeat => {
                return Err("possessive repeats (`a++`) are not supported: they match in more than linear time".into());
            }
            '(' if class_depth == 0 => group(&mut chars, &mut out)?,
            '.' if class_depth == 0 && !dot_is_all => {
                out.push_str(r"[^\n\r\x{85}\x{2028}\x{2029}]");
            }
            _ => out.push(c),
        }
        after_repeat = repeats && !after_repeat;
    }
    Ok(out)
}

fn group(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), String> {
    out.push('(');
    let ahead: String = chars.clone().take(3).collect();
    let refused = [
        ("?=", "look-ahead"),
        ("?!", "look-ahead"),
        ("?<=", "look-behind"),
        ("?<!", "look-behind"),
        ("?>", "atomic groups"),
    ];
    match refused.iter().find(|(start, _)| ahead.starts_with(start)) {
        Some((start, construct)) => Err(format!(
            "{construct} (`({start}..)`) is not supported: it has no linear time"
        )),
        None => Ok(()),
    }
}

fn escape(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), String> {
    match chars.next() {
        Some('Q') => quoted(chars, out),
        Some('d') => out.push_str("[0-9]"),
        Some('D') => out.push_str("[^0-9]"),
        Some('w') => out.push_str("[0-9A-Za-z_]"),
        Some('W') => out.push_str("[^0-9A-Za-z_]"),
        Some('s') => out.push_str(r"[ \t\n\x0B\f\r]"),
        Some('S') => out.push_str(r"[^ \t\n\x0B\f\r]"),
        Some('h') => {
            out.push_str(r"[ \t\x{A0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}]");
        }
        Some(c @ ('1'..='9' | 'k')) => {
            return Err(format!(
                "back-references (`\\{c}`) are not supported: they have no linear time"
            ));
        }
        Some('b') => out.push_str(r"(?-u:\b)"),
        Some('Z') => out.push_str(r"\n?\z"),
        Some('u') => {
            let digits: String = chars.by_ref().take(4).collect();
            out.extend([r"\x{", &digits, "}"]);
        }
        Some(c) => {
            out.push('\\');
            out.push(c);
        }
        None => return Err("the pattern ends in a backslash".into()),
    }
    Ok(())
}

fn quoted(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    let rest: String = chars.clone().collect();
    let (text, length) = match rest.split_once(r"\E") {
        Some((text, _)) => (text, text.chars().count() + 2),
        None => (rest.as_str(), rest.chars().count()),
    };
    out.push_str(&regex::escape(text));
    for _ in 0..length {
        chars.next();
    }
}
