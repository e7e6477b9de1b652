//! The JSON header form, read by a scanner of its own: this is every client's hot path.
//!
//! ```text
//! {"code":310,"extFields":{ "a":"pg","e":"0" },"flag":0,…} ─▶ head + where the text between the ext braces lies
//!                            └──────────────▶ Scanner::field: (name, value) pairs
//! ```
//!
//! Lenient where Java is: any key order, unknown keys, blanks, numbers and booleans as ext values, numbers in quotes,
//! malformed UTF-8 and escapes (which become U+FFFD).

use std::ops::Range;

use super::{ExtText, Flag, FrameError, Head, Language};

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
            let key = scan.string()?;
            scan.expect(b':', "`:`")?;
            match key.plain() {
                Some(b"code") => code = scan.integer()?,
                Some(b"flag") => head.flag = Flag(scan.integer()?.unwrap_or(0)),
                Some(b"opaque") => head.opaque = scan.integer()?.unwrap_or(0),
                Some(b"version") => head.version = scan.integer()?.unwrap_or(0),
                Some(b"language") => {
                    let name = scan.value()?.map(ExtText::text);
                    head.language = name.map_or(Language::JAVA, |name| Language::from_name(&name));
                }
                Some(b"remark") => {
                    let remark = scan.value()?.filter(|text| !text.is_empty());
                    head.remark = remark.map(|text| text.text().into_owned());
                }
                Some(b"extFields") => ext = scan.ext_object()?,
                // Nobody escapes the letters of a key that we know.
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

/// Reads JSON from front to back.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next member of an object's content; its value is absent when it is null.
    #[inline]
    pub(super) fn field(&mut self) -> Result<(ExtText<'a>, Option<ExtText<'a>>), FrameError> {
        let name = self.string()?;
        self.expect(b':', "`:`")?;
        let value = self.value()?;
        self.eat(b',');
        Ok((name, value))
    }

    #[cold]
    fn error<T>(&self, expected: &'static str) -> Result<T, FrameError> {
        Err(FrameError::Header {
            offset: self.at.min(self.bytes.len()),
            expected,
        })
    }

    /// The next byte that is no blank, not consumed.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        match self.bytes.get(self.at) {
            Some(byte) if *byte > b' ' => Some(*byte),
            _ => self.peek_over_blanks(),
        }
    }

    #[cold]
    fn peek_over_blanks(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        // A branch, not a sum: see `quote_or_backslash`.
        if self.peek() == Some(byte) {
            self.at += 1;
            true
        } else {
            false
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8, name: &'static str) -> Result<(), FrameError> {
        if self.eat(byte) {
            Ok(())
        } else {
            self.error(name)
        }
    }

    fn end(&mut self) -> Result<(), FrameError> {
        if self.peek().is_none() {
            Ok(())
        } else {
            self.error("the end of the header")
        }
    }

    #[inline]
    fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    #[expect(
        clippy::inline_always,
        reason = "runs for every field of every frame; as a call it takes twice the time"
    )]
    #[inline(always)]
    fn string(&mut self) -> Result<ExtText<'a>, FrameError> {
        self.expect(b'"', "a string")?;
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match quote_or_backslash(rest).and_then(|len| rest.split_at_checked(len)) {
            Some((raw, [b'"', ..])) => {
                self.at += raw.len() + 1;
                Ok(ExtText::new(raw, false))
            }
            _ => self.escaped_string(),
        }
    }

    /// What follows an opening quote, with or without escapes.
    fn escaped_string(&mut self) -> Result<ExtText<'a>, FrameError> {
        let start = self.at;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(found) = quote_or_backslash(rest) else {
                return self.error("a closing quote");
            };
            self.at += found;
            if rest.get(found) == Some(&b'"') {
                let raw = self.since(start);
                self.at += 1;
                return Ok(ExtText::new(raw, true));
            }
            // A backslash and the character it protects.
            self.at += 2;
        }
    }

    /// Any value as text, nothing for null.
    #[expect(
        clippy::inline_always,
        reason = "runs for every field of every frame; as a call it takes twice the time"
    )]
    #[inline(always)]
    fn value(&mut self) -> Result<Option<ExtText<'a>>, FrameError> {
        if self.peek() == Some(b'"') {
            self.string().map(Some)
        } else {
            self.other_value()
        }
    }

    fn other_value(&mut self) -> Result<Option<ExtText<'a>>, FrameError> {
        let raw = match self.peek() {
            Some(b'{' | b'[') => self.nested()?,
            _ => self.word()?,
        };
        Ok((raw != b"null").then(|| ExtText::new(raw, false)))
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
            self.error("a value")
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
                None => return self.error("a closing bracket"),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(self.since(start));
            }
        }
    }

    fn integer(&mut self) -> Result<Option<i32>, FrameError> {
        let offset = self.at;
        let Some(text) = self.value()? else {
            return Ok(None);
        };
        match text.integer().and_then(|number| i32::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(FrameError::Header {
                offset,
                expected: "a 32-bit integer",
            }),
        }
    }

    /// An object, or null; the range of its content.
    fn ext_object(&mut self) -> Result<Range<usize>, FrameError> {
        if self.peek() == Some(b'n') {
            return if self.word()? == b"null" {
                Ok(0..0)
            } else {
                self.error("an object")
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

/// Where the first quote or backslash is.
///
/// Byte by byte at first and where one is near, eight bytes a step over what is free of both. The end is found by a
/// branch and never computed, so that the processor can go on with the next token meanwhile: on headers, whose strings
/// are short, that is twice as fast as a vectorised search.
#[inline]
fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        for _ in 0..12 {
            match bytes.get(at) {
                Some(b'"' | b'\\') => return Some(at),
                Some(_) => at += 1,
                None => return None,
            }
        }
        while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>())
            && !has_quote_or_backslash(*chunk)
        {
            at += 8;
        }
    }
}

#[inline]
fn has_quote_or_backslash(chunk: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    const QUOTES: u64 = 0x2222_2222_2222_2222;
    const BACKSLASHES: u64 = 0x5C5C_5C5C_5C5C_5C5C;
    let word = u64::from_le_bytes(chunk);
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS != 0;
    has_zero(word ^ QUOTES) || has_zero(word ^ BACKSLASHES)
}

/// The text that stands between two quotes.
pub(super) fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    // Quotes stand behind backslashes only, so what is found first is a backslash.
    while let Some((plain, escape)) =
        quote_or_backslash(rest.as_bytes()).and_then(|at| rest.split_at_checked(at))
    {
        text.push_str(plain);
        let mut chars = escape.chars();
        chars.next();
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
    let digits = text.as_bytes().first_chunk::<4>()?;
    let mut unit = 0;
    for digit in digits {
        unit = unit << 4 | char::from(*digit).to_digit(16)?;
    }
    Some((unit, text.get(4..)?))
}
