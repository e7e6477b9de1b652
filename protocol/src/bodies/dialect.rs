//! Java's JSON dialect, read and written.
//!
//! ```text
//! {0:"a",{"topic":"t",…}:1,"x":null} ─▶ standardise ─▶ {"0":"a","{\"topic\":\"t\",…}":1} ─▶ serde_json ─▶ T
//! T ─▶ serde_json with the formatter below ─▶ {"0":"a",{"brokerName":"b",…}:1}
//! ```
//!
//! Beyond standard JSON, fastjson writes integer keys without quotes and object keys as objects. Null members mean the
//! same as absent ones. We write numeric keys quoted unless asked otherwise, object keys raw (older fastjson reads
//! nothing else, and the Go client cuts them by hand), and always compact.

use std::io::{self, Write};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};

/// Why a body can't be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It is not the JSON that was expected.
    #[error("body is not the expected JSON")]
    Json(#[from] serde_json::Error),
    /// It does not inflate.
    #[error("compressed body does not inflate")]
    Inflate(#[source] io::Error),
    /// It inflates to more than is allowed.
    #[error("compressed body inflates to more than {limit} bytes")]
    Inflated {
        /// Limit in force.
        limit: u64,
    },
    /// A part of a compressed registration is cut off or out of form.
    #[error("compressed registration: expected {expected} at byte {offset}")]
    Registration {
        /// Position in the inflated body.
        offset: usize,
        /// What should be there.
        expected: &'static str,
    },
}

/// How numeric map keys are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumericKeys {
    /// `"0":`, standard JSON.
    #[default]
    Quoted,
    /// `0:`, what clients before `V4_9_4` (401) were made for.
    Bare,
}

/// Reads a body, or a configuration file in the same dialect.
///
/// # Errors
/// [`BodyError::Json`] when it is not the JSON of a `T`; positions in it count the bytes of the standardised text.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BodyError> {
    Ok(serde_json::from_slice(&standardise(bytes))?)
}

/// Writes a body: compact, numeric keys quoted, object keys raw.
///
/// # Errors
/// [`BodyError::Json`] when `value` has map keys that JSON can't express; none of the types here has.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, BodyError> {
    to_vec_with(value, NumericKeys::Quoted)
}

/// As [`to_vec`], numeric keys as asked.
///
/// # Errors
/// As [`to_vec`].
pub fn to_vec_with<T: Serialize + ?Sized>(
    value: &T,
    keys: NumericKeys,
) -> Result<Vec<u8>, BodyError> {
    let mut bytes = Vec::with_capacity(256);
    let formatter = Dialect {
        keys,
        place: Place::Outside,
    };
    value.serialize(&mut serde_json::Serializer::with_formatter(
        &mut bytes, formatter,
    ))?;
    Ok(bytes)
}

/// Starts a map key that is JSON text to be written as it is. A code point that is no character, so no text has it.
pub(super) const RAW_KEY: char = '\u{FDD0}';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not in a key.
    Outside,
    /// A key begins, its first byte is not written.
    Start,
    /// In a quoted key.
    Quoted,
    /// In a key without quotes, its escapes undone.
    Raw,
}

struct Dialect {
    keys: NumericKeys,
    place: Place,
}

impl Dialect {
    /// Opens a pending key with a quote.
    fn quote<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.place == Place::Start {
            self.place = Place::Quoted;
            writer.write_all(b"\"")?;
        }
        Ok(())
    }

    fn number<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        number: impl itoa::Integer,
    ) -> io::Result<()> {
        if self.place == Place::Start && self.keys == NumericKeys::Bare {
            self.place = Place::Raw;
        }
        self.quote(writer)?;
        writer.write_all(itoa::Buffer::new().format(number).as_bytes())
    }
}

impl Formatter for Dialect {
    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.place = Place::Start;
        if first {
            Ok(())
        } else {
            writer.write_all(b",")
        }
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.place = Place::Outside;
        Ok(())
    }

    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.place == Place::Start {
            Ok(())
        } else {
            writer.write_all(b"\"")
        }
    }

    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.quote(writer)?;
        if self.place == Place::Raw {
            Ok(())
        } else {
            writer.write_all(b"\"")
        }
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if self.place == Place::Start
            && let Some(raw) = fragment.strip_prefix(RAW_KEY)
        {
            self.place = Place::Raw;
            return writer.write_all(raw.as_bytes());
        }
        self.quote(writer)?;
        writer.write_all(fragment.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        if self.place == Place::Raw {
            match escape {
                CharEscape::Quote => return writer.write_all(b"\""),
                CharEscape::ReverseSolidus => return writer.write_all(b"\\"),
                // Control characters are escaped within the raw text already.
                _ => {}
            }
        }
        self.quote(writer)?;
        CompactFormatter.write_char_escape(writer, escape)
    }

    fn write_i8<W: ?Sized + Write>(&mut self, writer: &mut W, value: i8) -> io::Result<()> {
        self.number(writer, value)
    }
    fn write_i16<W: ?Sized + Write>(&mut self, writer: &mut W, value: i16) -> io::Result<()> {
        self.number(writer, value)
    }
    fn write_i32<W: ?Sized + Write>(&mut self, writer: &mut W, value: i32) -> io::Result<()> {
        self.number(writer, value)
    }
    fn write_i64<W: ?Sized + Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        self.number(writer, value)
    }
    fn write_u8<W: ?Sized + Write>(&mut self, writer: &mut W, value: u8) -> io::Result<()> {
        self.number(writer, value)
    }
    fn write_u16<W: ?Sized + Write>(&mut self, writer: &mut W, value: u16) -> io::Result<()> {
        self.number(writer, value)
    }
    fn write_u32<W: ?Sized + Write>(&mut self, writer: &mut W, value: u32) -> io::Result<()> {
        self.number(writer, value)
    }
    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        self.number(writer, value)
    }
}

/// Quotes bare and object keys and leaves null members out. Whatever it does not understand it copies, for the JSON parser
/// behind it to refuse.
fn standardise(bytes: &[u8]) -> Vec<u8> {
    let mut standard = Standardiser {
        bytes,
        at: 0,
        out: Vec::with_capacity(bytes.len() + 64),
        open: Vec::new(),
    };
    while standard.step() {}
    let rest = bytes.get(standard.at..).unwrap_or_default();
    standard.out.extend_from_slice(rest);
    standard.out
}

/// An object or array that is not closed yet.
struct Open {
    object: bool,
    /// Whether something was written into it, so that a comma comes next.
    filled: bool,
}

struct Standardiser<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<u8>,
    open: Vec<Open>,
}

impl Standardiser<'_> {
    /// One value or member, or the end of an object or array; false when there is nothing more that makes sense.
    fn step(&mut self) -> bool {
        let mark = self.out.len();
        let start = self.at;
        match self.peek() {
            None => return false,
            Some(b'}' | b']') => {
                self.copy(1);
                return self.open.pop().is_some();
            }
            Some(b',') => {
                self.at += 1;
                return !self.open.is_empty();
            }
            Some(_) => {}
        }
        let in_object = match self.open.last() {
            Some(open) => {
                if open.filled {
                    self.out.push(b',');
                }
                open.object
            }
            None => false,
        };
        if in_object && !self.key() {
            self.out.truncate(mark);
            self.at = start;
            return false;
        }
        if in_object && self.rest().starts_with(b"null") {
            self.at += 4;
            self.out.truncate(mark);
            return true;
        }
        if let Some(open) = self.open.last_mut() {
            open.filled = true;
        }
        self.value()
    }

    /// A key and its colon.
    fn key(&mut self) -> bool {
        match self.peek() {
            Some(b'"') => {
                self.copy(string_len(self.rest()));
            }
            Some(b'{') => {
                let len = object_len(self.rest());
                let text = String::from_utf8_lossy(self.rest().get(..len).unwrap_or_default())
                    .into_owned();
                self.out
                    .extend_from_slice(serde_json::Value::String(text).to_string().as_bytes());
                self.at += len;
            }
            _ => {
                let len = word_len(self.rest());
                self.out.push(b'"');
                self.copy(len);
                self.out.push(b'"');
            }
        }
        let colon = self.peek() == Some(b':');
        if colon {
            self.copy(1);
            self.peek();
        }
        colon
    }

    fn value(&mut self) -> bool {
        match self.peek() {
            Some(byte @ (b'{' | b'[')) => {
                self.open.push(Open {
                    object: byte == b'{',
                    filled: false,
                });
                self.copy(1);
            }
            Some(b'"') => self.copy(string_len(self.rest())),
            _ => {
                let len = word_len(self.rest());
                self.copy(len);
                return len > 0;
            }
        }
        true
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is no blank, not consumed.
    fn peek(&mut self) -> Option<u8> {
        self.at += self
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        self.rest().first().copied()
    }

    fn copy(&mut self, len: usize) {
        let end = self.at.saturating_add(len).min(self.bytes.len());
        self.out
            .extend_from_slice(self.bytes.get(self.at..end).unwrap_or_default());
        self.at = end;
    }
}

/// Length of a string that starts with its quote; to the end when it is not closed.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(found) = memchr::memchr2(b'"', b'\\', rest) else {
            return text.len();
        };
        if rest.get(found) == Some(&b'"') {
            return at + found + 1;
        }
        at += found + 2;
    }
}

/// Length of an object that starts with its brace; to the end when it is not closed.
fn object_len(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at += string_len(text.get(at..).unwrap_or_default());
                continue;
            }
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

/// Length of a number or word.
fn word_len(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_')
        })
        .count()
}
