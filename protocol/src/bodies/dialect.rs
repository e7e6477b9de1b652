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

use super::standardise::standardise;

/// Why a body can't be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It is not the JSON that was expected.
    #[error("body is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A field of it is not what was expected.
    #[error("the body's field `{path}` is not as expected: {source}")]
    Field {
        /// Way to the field, as in `producerDataSet[0].groupName`.
        path: String,
        /// What is wrong; it counts bytes of the standardised text.
        #[source]
        source: serde_json::Error,
    },
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
/// [`BodyError::Field`] and [`BodyError::Json`] when it is not the JSON of a `T`.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BodyError> {
    let text = standardise(bytes);
    serde_json::from_slice(&text).map_err(|error| named::<T>(&text, error))
}

/// The error with the field it is about. Read a second time for that, so that good bodies pay nothing.
fn named<T: DeserializeOwned>(text: &[u8], error: serde_json::Error) -> BodyError {
    let mut reader = serde_json::Deserializer::from_slice(text);
    match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(found) if found.path().iter().next().is_some() => BodyError::Field {
            path: found.path().to_string(),
            source: found.into_inner(),
        },
        _ => BodyError::Json(error),
    }
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
