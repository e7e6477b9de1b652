//! One remoting frame (spec/protocol.md §1).
use std::borrow::Cow;

use bytes::{Bytes, BytesMut};

use crate::{
    codes::{RequestCode, ResponseCode},
    headers::WireHeader,
};

/// Frames longer than this, length word included, are refused: 16 MiB.
pub const MAX_FRAME: usize = 16 * 1024 * 1024;
/// The version we speak as: V5_3_3.
pub const VERSION: i32 = 479;

/// Language of the sender (`JAVA` = 0 … `RUST` = 12); unknown ones decode to `OTHER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Language(pub u8);

/// Frame flag: bit 0 response, bit 1 oneway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flag(pub i32);

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
    /// Error text or status.
    pub remark: Option<String>,
}

/// A frame as received: head parsed, ext fields still in wire form, body untouched. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Parsed head.
    pub head: Head,
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
        /// Announced length.
        len: usize,
        /// Limit in force.
        limit: usize,
    },
}

/// Why a typed header can't be read from a frame.
#[derive(Debug, thiserror::Error)]
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
    /// Takes one frame off the front of `buf`; `Ok(None)` when more bytes are needed.
    pub fn decode(buf: &mut BytesMut, limit: usize) -> Result<Option<Frame>, FrameError> {
        todo!()
    }
    /// The ext fields as a typed header, parsed in one pass and borrowing from the frame.
    pub fn header<'a, H: WireHeader<'a>>(&'a self) -> Result<H, HeaderError> {
        todo!()
    }
    /// One ext field, for what has no typed header.
    pub fn ext(&self, name: &str) -> Option<Cow<'_, str>> {
        todo!()
    }
    /// All ext fields in wire order.
    pub fn ext_fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        std::iter::empty()
    }
    /// Bit 0 of the flag.
    pub fn is_response(&self) -> bool {
        self.head.flag.0 & 1 != 0
    }
    /// Bit 1 of the flag: never answer such a frame.
    pub fn is_oneway(&self) -> bool {
        self.head.flag.0 & 2 != 0
    }
    /// The request code (only meaningful for requests).
    pub fn request_code(&self) -> RequestCode {
        RequestCode(self.head.code)
    }
    /// The response code (only meaningful for responses).
    pub fn response_code(&self) -> ResponseCode {
        ResponseCode(self.head.code)
    }
}

/// Ext fields being written, already in JSON wire form (`"k":"v",…`).
#[derive(Debug, Clone, Default)]
pub struct ExtWriter {
    json: Vec<u8>,
}

impl ExtWriter {
    /// Appends one field; the value is escaped as needed.
    pub fn put(&mut self, name: &str, value: &str) {
        todo!()
    }
    /// Appends a number or boolean by its `Display` text, without allocation.
    pub fn put_display(&mut self, name: &str, value: impl std::fmt::Display) {
        todo!()
    }
}

/// A request about to be sent. The connection adds the opaque.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is asked.
    pub code: RequestCode,
    /// Ext fields.
    pub ext: ExtWriter,
    /// Body, written as it is, without copying.
    pub body: Bytes,
}

impl Request {
    /// A request without ext fields and body.
    pub fn new(code: RequestCode) -> Self {
        Self { code, ext: ExtWriter::default(), body: Bytes::new() }
    }
    /// Adds the fields of a typed header.
    pub fn with<'a>(mut self, header: &impl WireHeader<'a>) -> Self {
        header.write(&mut self.ext);
        self
    }
    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }
}

/// An answer about to be sent. The responder adds the opaque.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Outcome.
    pub code: ResponseCode,
    /// Error text or status.
    pub remark: Option<Cow<'static, str>>,
    /// Ext fields.
    pub ext: ExtWriter,
    /// Body parts, written by vectored I/O in order, without copying.
    pub body: Vec<Bytes>,
}

impl Reply {
    /// Code 0, nothing else.
    pub fn ok() -> Self {
        Self::code(ResponseCode(0))
    }
    /// Any code, nothing else.
    pub fn code(code: ResponseCode) -> Self {
        Self { code, remark: None, ext: ExtWriter::default(), body: Vec::new() }
    }
    /// A code with its explanation.
    pub fn error(code: ResponseCode, remark: impl Into<Cow<'static, str>>) -> Self {
        Self { remark: Some(remark.into()), ..Self::code(code) }
    }
    /// Adds the fields of a typed header.
    pub fn with<'a>(mut self, header: &impl WireHeader<'a>) -> Self {
        header.write(&mut self.ext);
        self
    }
    /// Appends a body part.
    pub fn body(mut self, part: impl Into<Bytes>) -> Self {
        self.body.push(part.into());
        self
    }
}

/// Writes length, header (JSON form, always) and, for requests and replies alike, leaves the body to the caller:
/// the body's parts follow on the wire.
pub fn encode_request_head(buf: &mut BytesMut, request: &Request, opaque: i32, oneway: bool) {
    todo!()
}
/// See [`encode_request_head`].
pub fn encode_reply_head(buf: &mut BytesMut, reply: &Reply, opaque: i32) {
    todo!()
}
