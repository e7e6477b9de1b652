//! The JSON header form, read by a scanner of its own: this is every client's hot path.
//!
//! ```text
//! {"code":310,"extFields":{ "a":"pg","e":"0" },"flag":0,…} ─▶ head + where the text between the ext braces lies
//!                            └──────────────▶ ExtFields: (name, value) pairs, borrowed unless escaped
//! ```
//!
//! Lenient where Java is: any key order, unknown keys, blanks, numbers and booleans as ext values, numbers in quotes,
//! malformed UTF-8 and escapes (which become U+FFFD).

use std::{borrow::Cow, ops::Range};

use super::{Flag, FrameError, Head, Language};

/// Parses a whole header; the range covers the content of the `extFields` object.
pub(super) fn head(header: &[u8]) -> Result<(Head, Range<usize>), FrameError> {
    let mut head = Head {
        code: 0,
        language: Language::JAVA,
        version: 0,
        opaque: 0,
        flag: Flag(0),
        remark: None,
    };
    let mut code = None;
    let mut ext = 0..0;
    let mut scan = Scanner::new(header);
    scan.expect(b'{', "`{`")?;
    if !scan.eat(b'}') {
        loop {
            let key = scan.string()?.text();
            scan.expect(b':', "`:`")?;
            match &*key {
                "code" => code = scan.integer()?,
                "flag" => head.flag = Flag(scan.integer()?.unwrap_or(0)),
                "opaque" => head.opaque = scan.integer()?.unwrap_or(0),
                "version" => head.version = scan.integer()?.unwrap_or(0),
                "language" => {
                    let name = scan.text()?;
                    head.language = name.map_or(Language::JAVA, |name| Language::from_name(&name));
                }
                "remark" => {
                    let remark = scan.text()?.filter(|text| !text.is_empty());
                    head.remark = remark.map(Cow::into_owned);
                }
                "extFields" => ext = scan.ext_object()?,
                _ => {
                    scan.value()?;
                }
            }
            if !scan.eat(b',') {
                break;
            }
        }
        scan.expect(b'}', "`,` or `}`")?;
    }
    scan.end()?;
    head.code = code.ok_or(FrameError::Header {
        offset: scan.at,
        expected: "a `code`",
    })?;
    Ok((head, ext))
}

/// The (name, value) pairs of an ext object's content.
#[derive(Debug)]
pub(super) struct ExtFields<'a> {
    scan: Scanner<'a>,
}

impl<'a> ExtFields<'a> {
    pub(super) fn new(content: &'a [u8]) -> Self {
        Self {
            scan: Scanner::new(content),
        }
    }

    /// The next pair; its value is absent when it is null.
    fn pair(&mut self) -> Result<(Cow<'a, str>, Option<Cow<'a, str>>), FrameError> {
        let key = self.scan.string()?.text();
        self.scan.expect(b':', "`:`")?;
        let value = self.scan.text()?;
        self.scan.eat(b',');
        Ok((key, value))
    }
}

impl<'a> Iterator for ExtFields<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        // The content was scanned when the frame was decoded, so the only error left is its end.
        loop {
            if let (key, Some(value)) = self.pair().ok()? {
                return Some((key, value));
            }
        }
    }
}

/// A value as it stands in the text.
#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    String(Text<'a>),
    /// A number, a word, or a nested object or array, as written.
    Raw(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Its text, nothing for null.
    fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::String(text) => Some(text.text()),
            Self::Raw(b"null") => None,
            Self::Raw(raw) => Some(String::from_utf8_lossy(raw)),
        }
    }
}

/// What stands between two quotes.
#[derive(Debug, Clone, Copy)]
struct Text<'a> {
    raw: &'a [u8],
    escaped: bool,
}

impl<'a> Text<'a> {
    fn text(self) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(self.raw);
        if self.escaped {
            Cow::Owned(unescape(&text))
        } else {
            text
        }
    }
}

#[derive(Debug)]
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn error(&self, expected: &'static str) -> FrameError {
        FrameError::Header {
            offset: self.at.min(self.bytes.len()),
            expected,
        }
    }

    /// The next byte that is no blank, not consumed.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                byte => return byte.copied(),
            }
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, name: &'static str) -> Result<(), FrameError> {
        if self.eat(byte) {
            Ok(())
        } else {
            Err(self.error(name))
        }
    }

    fn end(&mut self) -> Result<(), FrameError> {
        if self.peek().is_none() {
            Ok(())
        } else {
            Err(self.error("the end of the header"))
        }
    }

    fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    fn string(&mut self) -> Result<Text<'a>, FrameError> {
        self.expect(b'"', "a string")?;
        let start = self.at;
        let mut escaped = false;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
                return Err(self.error("a closing quote"));
            };
            self.at += found;
            if rest.get(found) == Some(&b'"') {
                let raw = self.since(start);
                self.at += 1;
                return Ok(Text { raw, escaped });
            }
            // A backslash and the character it protects.
            escaped = true;
            self.at += 2;
        }
    }

    fn value(&mut self) -> Result<Value<'a>, FrameError> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::String),
            Some(b'{' | b'[') => self.nested().map(Value::Raw),
            _ => self.word().map(Value::Raw),
        }
    }

    /// The text of a value, nothing for null.
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, FrameError> {
        Ok(self.value()?.text())
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<&'a [u8], FrameError> {
        let start = self.at;
        while matches!(
            self.bytes.get(self.at),
            Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.')
        ) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.error("a value"))
        } else {
            Ok(self.since(start))
        }
    }

    /// An object or array that nobody asked for: only its end matters. A loop, as recursion would let a peer choose the
    /// depth of our stack.
    fn nested(&mut self) -> Result<&'a [u8], FrameError> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') => depth -= 1,
                Some(_) => {}
                None => return Err(self.error("a closing bracket")),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(self.since(start));
            }
        }
    }

    fn integer(&mut self) -> Result<Option<i32>, FrameError> {
        let start = self.at;
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(FrameError::Header {
                offset: start,
                expected: "a 32-bit integer",
            }),
        }
    }

    /// An object of scalar values, or null; the range of its content.
    fn ext_object(&mut self) -> Result<Range<usize>, FrameError> {
        if self.peek() == Some(b'n') {
            return if self.word()? == b"null" {
                Ok(0..0)
            } else {
                Err(self.error("an object"))
            };
        }
        self.expect(b'{', "an object")?;
        let start = self.at;
        if self.eat(b'}') {
            return Ok(0..0);
        }
        loop {
            self.string()?;
            self.expect(b':', "`:`")?;
            self.value()?;
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}', "`,` or `}`")?;
        Ok(start..self.at - 1)
    }
}

fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let mut chars = escape.chars();
        match chars.next() {
            Some('u') => {
                let (decoded, after) = unicode_escape(chars.as_str());
                text.push(decoded);
                rest = after;
                continue;
            }
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some(other) => text.push(other),
            None => {}
        }
        rest = chars.as_str();
    }
    text.push_str(rest);
    text
}

/// The character of a `\u` escape whose digits start `text`, and what follows; takes the second half of a surrogate pair too.
fn unicode_escape(text: &str) -> (char, &str) {
    const BAD: char = char::REPLACEMENT_CHARACTER;
    let Some((unit, rest)) = hex4(text) else {
        return (BAD, text);
    };
    if let Some(single) = char::from_u32(unit) {
        return (single, rest);
    }
    let Some((low, after)) = rest.strip_prefix("\\u").and_then(hex4) else {
        return (BAD, rest);
    };
    if !(0xD800..0xDC00).contains(&unit) || !(0xDC00..0xE000).contains(&low) {
        return (BAD, rest);
    }
    let joined = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    (char::from_u32(joined).unwrap_or(BAD), after)
}

fn hex4(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}
