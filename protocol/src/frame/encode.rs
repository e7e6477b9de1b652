//! Requests and replies on their way out: the header as compact JSON, the body left in its parts.
//!
//! ```text
//! typed header ─▶ ExtWriter ("k":"v",…) ─▶ Request / Reply ─▶ encode_*_head ─▶ out buffer, then the body parts
//! ```
//!
//! Ext values are always strings: the Go client reads them into a map of strings and fails on anything else.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

use bytes::{BufMut, Bytes, BytesMut};

use super::{Flag, VERSION};
use crate::{
    codes::{RequestCode, ResponseCode},
    headers::WireHeader,
};

/// Ext fields being written, already in JSON wire form (`"k":"v",…`).
#[derive(Debug, Clone, Default)]
pub struct ExtWriter {
    json: Vec<u8>,
}

impl ExtWriter {
    /// Appends one field; the value is escaped as needed.
    pub fn put(&mut self, name: &str, value: &str) {
        self.open(name);
        escape(&mut self.json, value);
        self.json.push(b'"');
    }

    /// Appends a number or boolean by its `Display` text, without allocation.
    pub fn put_display(&mut self, name: &str, value: impl fmt::Display) {
        self.open(name);
        // Writing into memory can't fail; a `Display` that reports an error has written what it could.
        _ = write!(Escaping(&mut self.json), "{value}");
        self.json.push(b'"');
    }

    /// Appends an integer; faster than [`Self::put_display`].
    pub fn put_integer(&mut self, name: &str, value: impl Into<i64>) {
        self.open(name);
        self.json
            .extend_from_slice(itoa::Buffer::new().format(value.into()).as_bytes());
        self.json.push(b'"');
    }

    /// Whether no field was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    pub(super) fn to_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.json)
    }

    /// `"name":"`, with a comma before all but the first.
    fn open(&mut self, name: &str) {
        if self.json.is_empty() {
            // One allocation for the fields of nearly every request and answer.
            self.json.reserve(320);
        } else {
            self.json.push(b',');
        }
        self.json.push(b'"');
        escape(&mut self.json, name);
        self.json.extend_from_slice(b"\":\"");
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
    #[must_use]
    pub fn new(code: RequestCode) -> Self {
        Self {
            code,
            ext: ExtWriter::default(),
            body: Bytes::new(),
        }
    }

    /// Adds the fields of a typed header.
    #[must_use]
    pub fn with<'a>(mut self, header: &impl WireHeader<'a>) -> Self {
        header.write(&mut self.ext);
        self
    }

    /// Sets the body.
    #[must_use]
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
    #[must_use]
    pub fn ok() -> Self {
        Self::code(ResponseCode(0))
    }

    /// Any code, nothing else.
    #[must_use]
    pub fn code(code: ResponseCode) -> Self {
        Self {
            code,
            remark: None,
            ext: ExtWriter::default(),
            body: Vec::new(),
        }
    }

    /// A code with its explanation.
    #[must_use]
    pub fn error(code: ResponseCode, remark: impl Into<Cow<'static, str>>) -> Self {
        Self {
            remark: Some(remark.into()),
            ..Self::code(code)
        }
    }

    /// Adds the fields of a typed header.
    #[must_use]
    pub fn with<'a>(mut self, header: &impl WireHeader<'a>) -> Self {
        header.write(&mut self.ext);
        self
    }

    /// Appends a body part.
    #[must_use]
    pub fn body(mut self, part: impl Into<Bytes>) -> Self {
        self.body.push(part.into());
        self
    }
}

/// Writes length, header (JSON form, always) and, for requests and replies alike, leaves the body to the caller:
/// the body's parts follow on the wire. The length counts the body.
///
/// A frame too long for the length word announces `i32::MAX`, which every peer refuses; keep frames within
/// [`super::MAX_FRAME`].
pub fn encode_request_head(buf: &mut BytesMut, request: &Request, opaque: i32, oneway: bool) {
    let flag = if oneway { Flag::ONEWAY } else { Flag::REQUEST };
    encode_head(
        buf,
        request.code.0,
        flag,
        opaque,
        None,
        &request.ext,
        request.body.len(),
    );
}

/// See [`encode_request_head`].
pub fn encode_reply_head(buf: &mut BytesMut, reply: &Reply, opaque: i32) {
    let body_len = reply.body.iter().map(Bytes::len).sum();
    encode_head(
        buf,
        reply.code.0,
        Flag::RESPONSE,
        opaque,
        reply.remark.as_deref(),
        &reply.ext,
        body_len,
    );
}

fn encode_head(
    buf: &mut BytesMut,
    code: i32,
    flag: Flag,
    opaque: i32,
    remark: Option<&str>,
    ext: &ExtWriter,
    body_len: usize,
) {
    let start = buf.len();
    buf.reserve(8 + 160 + ext.json.len() + remark.map_or(0, str::len));
    buf.put_bytes(0, 8);
    let mut number = itoa::Buffer::new();
    buf.put_slice(b"{\"code\":");
    buf.put_slice(number.format(code).as_bytes());
    if !ext.is_empty() {
        buf.put_slice(b",\"extFields\":{");
        buf.put_slice(&ext.json);
        buf.put_u8(b'}');
    }
    buf.put_slice(b",\"flag\":");
    buf.put_slice(number.format(flag.0).as_bytes());
    buf.put_slice(b",\"language\":\"RUST\",\"opaque\":");
    buf.put_slice(number.format(opaque).as_bytes());
    if let Some(remark) = remark {
        buf.put_slice(b",\"remark\":\"");
        escape(buf, remark);
        buf.put_u8(b'"');
    }
    buf.put_slice(b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":");
    buf.put_slice(number.format(VERSION).as_bytes());
    buf.put_u8(b'}');

    let header_len = buf.len() - start - 8;
    let total = i32::try_from(4 + header_len + body_len).unwrap_or(i32::MAX);
    // Form 0 (JSON) in the top byte; a longer header makes the frame too long as well, so nobody reads this.
    let header_word = i32::try_from(header_len).unwrap_or(i32::MAX) & 0x00FF_FFFF;
    let words = buf.iter_mut().skip(start).zip(
        total
            .to_be_bytes()
            .into_iter()
            .chain(header_word.to_be_bytes()),
    );
    words.for_each(|(place, byte)| *place = byte);
}

/// Writes JSON string content: what the syntax demands is escaped, the rest stays UTF-8.
fn escape(out: &mut impl BufMut, text: &str) {
    let bytes = text.as_bytes();
    let mut plain = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.put_slice(bytes.get(plain..at).unwrap_or_default());
        plain = at + 1;
        match byte {
            b'"' => out.put_slice(b"\\\""),
            b'\\' => out.put_slice(b"\\\\"),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            b'\t' => out.put_slice(b"\\t"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.put_slice(b"\\u00");
                out.put_u8(HEX[usize::from(control >> 4)]);
                out.put_u8(HEX[usize::from(control & 0xF)]);
            }
        }
    }
    out.put_slice(bytes.get(plain..).unwrap_or_default());
}

/// Escapes what a `Display` writes.
struct Escaping<'a>(&'a mut Vec<u8>);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(self.0, text);
        Ok(())
    }
}
