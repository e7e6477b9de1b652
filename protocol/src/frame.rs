//! One remoting frame: length word, header word, header, body.
//!
//! ```text
//! read buffer ─▶ Frame::decode ─┬─ head  parsed (code, flag, opaque, …)
//!                               ├─ ext   kept as received (JSON or binary) ─▶ Frame::header::<H>(), one pass, borrowed
//!                               └─ body  a slice of the read buffer
//!
//! Request / Reply ─▶ encode_*_head ─▶ length + header word + JSON header; the body parts follow on the wire
//! ```
//!
//! Layout, all integers big endian: `totalLength: i32` (what follows it), `headerWord: i32` (bits 31–24 the form, 0 JSON or
//! 1 binary; bits 23–0 the header's length), header, body. Mirrors `RemotingCommand` of Apache RocketMQ 5.3.3. Both header
//! forms are read; we always write JSON, as the C++ and Node clients know no other.

use std::{borrow::Cow, ops::Range};

use bytes::{Bytes, BytesMut};

use crate::{
    codes::{RequestCode, ResponseCode},
    headers::WireHeader,
};

mod binary;
mod encode;
mod ext;
mod json;

pub use encode::{ExtWriter, Reply, Request, encode_reply_head, encode_request_head};
pub use ext::{ExtFields, ExtText};

/// Frames longer than this, length word included, are refused: 16 MiB.
pub const MAX_FRAME: usize = 16 * 1024 * 1024;
/// The version we speak as: `V5_3_3`.
pub const VERSION: i32 = 479;

/// Language of the sender (`JAVA` = 0 … `NODE_JS` = 13); unknown ones decode to `OTHER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Language(pub u8);

impl Language {
    /// The Java client; also what an absent language means.
    pub const JAVA: Self = Self(0);
    /// The C++ client and those built on it.
    pub const CPP: Self = Self(1);
    /// Anything without a name of its own.
    pub const OTHER: Self = Self(7);
    /// The Go client.
    pub const GO: Self = Self(9);
    /// Ourselves.
    pub const RUST: Self = Self(12);

    const NAMES: [&'static str; 14] = [
        "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO",
        "PHP", "OMS", "RUST", "NODE_JS",
    ];

    /// Its name in JSON headers and bodies.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES
            .get(usize::from(self.0))
            .copied()
            .unwrap_or("OTHER")
    }

    /// The language of that name, `OTHER` for unknown ones.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let known = Self::NAMES.iter().position(|known| *known == name);
        known
            .and_then(|code| u8::try_from(code).ok())
            .map_or(Self::OTHER, Self)
    }

    /// The language of that number in a binary header, `OTHER` for unknown ones.
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        if usize::from(code) < Self::NAMES.len() {
            Self(code)
        } else {
            Self::OTHER
        }
    }
}

impl serde::Serialize for Language {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for Language {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Self::from_name(&name))
    }
}

/// Frame flag: bit 0 response, bit 1 oneway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flag(pub i32);

impl Flag {
    /// A request that waits for its answer.
    pub const REQUEST: Self = Self(0);
    /// An answer.
    pub const RESPONSE: Self = Self(1);
    /// A request that gets no answer.
    pub const ONEWAY: Self = Self(2);
}

/// The fields every frame has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Request or response code.
    pub code: i32,
    /// Language of the sender.
    pub language: Language,
    /// Version ordinal of the sender.
    pub version: i32,
    /// Correlation id.
    pub opaque: i32,
    /// Response and oneway bits.
    pub flag: Flag,
    /// Error text or status; null, empty and absent are the same.
    pub remark: Option<String>,
}

/// How the ext fields are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExtForm {
    /// The text between the braces of the `extFields` object.
    Json,
    /// Entries of key length (i16), key, value length (i32), value.
    Binary,
}

/// A frame as received: head parsed, ext fields still in wire form, body untouched. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Parsed head.
    pub head: Head,
    form: ExtForm,
    ext: Bytes,
    /// Body, empty when absent.
    pub body: Bytes,
}

/// Why bytes can't be a frame: the connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// Longer than the limit.
    #[error("frame of {len} bytes exceeds the limit of {limit}")]
    TooLong {
        /// Announced length, length word included.
        len: usize,
        /// Limit in force.
        limit: usize,
    },
    /// The length word is negative or leaves no room for the header word.
    #[error("frame announces an impossible length of {announced}")]
    Length {
        /// Value of the length word.
        announced: i32,
    },
    /// The header is said to be longer than the frame.
    #[error("header of {header} bytes does not fit into a frame of {frame}")]
    HeaderLength {
        /// Announced length of the header.
        header: usize,
        /// Bytes that follow the length word.
        frame: usize,
    },
    /// The header is neither JSON (0) nor binary (1).
    #[error("header has the unknown form {form}")]
    Form {
        /// Value of the form byte.
        form: u8,
    },
    /// The header's bytes break its form.
    #[error("malformed header at byte {offset}: expected {expected}")]
    Header {
        /// Position within the header.
        offset: usize,
        /// What should be there.
        expected: &'static str,
    },
}

/// Why a typed header can't be read from a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// A mandatory field is absent.
    #[error("header field `{field}` is missing")]
    Missing {
        /// Wire name.
        field: &'static str,
    },
    /// A field does not parse.
    #[error("header field `{field}` has the value `{value}`, which is no {expected}")]
    Invalid {
        /// Wire name.
        field: &'static str,
        /// Text received.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl Frame {
    /// Takes one frame off the front of `buf`; `Ok(None)` when more bytes are needed. `limit` counts the length word too.
    ///
    /// # Errors
    /// [`FrameError`] when the bytes can't be the start of a frame; `buf` is then of no further use.
    pub fn decode(buf: &mut BytesMut, limit: usize) -> Result<Option<Frame>, FrameError> {
        let Some(word) = buf.first_chunk::<4>() else {
            return Ok(None);
        };
        let announced = i32::from_be_bytes(*word);
        let Ok(rest) = usize::try_from(announced) else {
            return Err(FrameError::Length { announced });
        };
        if rest < 4 {
            return Err(FrameError::Length { announced });
        }
        let len = rest.saturating_add(4);
        if len > limit {
            return Err(FrameError::TooLong { len, limit });
        }
        if buf.len() < len {
            return Ok(None);
        }
        Self::parse(&buf.split_to(len).freeze()).map(Some)
    }

    /// A whole frame, its length word checked by the caller and at least 8 bytes long.
    fn parse(frame: &Bytes) -> Result<Frame, FrameError> {
        let after_length = frame.get(4..).unwrap_or_default();
        let [form, a, b, c] = after_length.first_chunk::<4>().copied().unwrap_or_default();
        let header_len = u32::from_be_bytes([0, a, b, c]) as usize;
        let Some(header) = after_length.get(4..4 + header_len) else {
            return Err(FrameError::HeaderLength {
                header: header_len,
                frame: after_length.len(),
            });
        };
        let (form, (head, ext)) = match form {
            0 => (ExtForm::Json, json::head(header)?),
            1 => (ExtForm::Binary, binary::head(header)?),
            form => return Err(FrameError::Form { form }),
        };
        Ok(Frame {
            head,
            form,
            ext: slice(frame, 8, &ext),
            body: frame.slice(8 + header_len..),
        })
    }

    /// The frame that the other end decodes from `request`, for tests of what answers requests.
    #[must_use]
    pub fn of_request(request: &Request, opaque: i32, oneway: bool) -> Frame {
        let flag = if oneway { Flag::ONEWAY } else { Flag::REQUEST };
        let head = Head {
            code: request.code.0,
            language: Language::RUST,
            version: VERSION,
            opaque,
            flag,
            remark: None,
        };
        Frame {
            head,
            form: ExtForm::Json,
            ext: request.ext.to_bytes(),
            body: request.body.clone(),
        }
    }

    /// The frame that the other end decodes from `reply`, for tests of what sends requests.
    #[must_use]
    pub fn of_reply(reply: &Reply, opaque: i32) -> Frame {
        let remark = reply
            .remark
            .as_deref()
            .filter(|text| !text.is_empty())
            .map(str::to_owned);
        let head = Head {
            code: reply.code.0,
            language: Language::RUST,
            version: VERSION,
            opaque,
            flag: Flag::RESPONSE,
            remark,
        };
        Frame {
            head,
            form: ExtForm::Json,
            ext: reply.ext.to_bytes(),
            body: reply.body.concat().into(),
        }
    }

    /// The ext fields as a typed header, parsed in one pass and borrowing from the frame.
    ///
    /// # Errors
    /// [`HeaderError`] when a mandatory field is absent or a value does not parse.
    pub fn header<'a, H: WireHeader<'a>>(&'a self) -> Result<H, HeaderError> {
        H::read(ExtFields::new(self.form, &self.ext))
    }

    /// One ext field, for what has no typed header.
    #[must_use]
    pub fn ext(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut fields = ExtFields::new(self.form, &self.ext);
        fields
            .find(|(key, _)| key.is(name))
            .map(|(_, value)| value.text())
    }

    /// All ext fields in wire order; null ones are left out.
    pub fn ext_fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        ExtFields::new(self.form, &self.ext).map(|(name, value)| (name.text(), value.text()))
    }

    /// Bit 0 of the flag.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.head.flag.0 & 1 != 0
    }

    /// Bit 1 of the flag: never answer such a frame.
    #[must_use]
    pub fn is_oneway(&self) -> bool {
        self.head.flag.0 & 2 != 0
    }

    /// The request code (only meaningful for requests).
    #[must_use]
    pub fn request_code(&self) -> RequestCode {
        RequestCode(self.head.code)
    }

    /// The response code (only meaningful for responses).
    #[must_use]
    pub fn response_code(&self) -> ResponseCode {
        ResponseCode(self.head.code)
    }
}

/// `range` of the header as a slice of the whole frame, which starts `base` bytes earlier.
fn slice(frame: &Bytes, base: usize, range: &Range<usize>) -> Bytes {
    if range.is_empty() {
        Bytes::new()
    } else {
        frame.slice(base + range.start..base + range.end)
    }
}

#[cfg(test)]
pub(crate) mod tests;
