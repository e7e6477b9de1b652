//! The binary header form ("ROCKETMQ" serialization): what some Java and Go clients are configured to send.
//!
//! ```text
//! code i16 │ language u8 │ version i16 │ opaque i32 │ flag i32 │ remark i32 + bytes │ ext i32 + entries
//! entry:  key i16 + bytes │ value i32 + bytes            (an empty value reads as null)
//! ```
//!
//! Mirrors `RocketMQSerializable` of Apache RocketMQ 5.3.3; integers are big endian.

use std::ops::Range;

use super::{ExtText, Flag, FrameError, Head, Language};

/// Parses a whole header; the range covers the ext entries.
pub(super) fn head(header: &[u8]) -> Result<(Head, Range<usize>), FrameError> {
    let mut read = Reader {
        bytes: header,
        at: 0,
    };
    let code = i32::from(i16::from_be_bytes(read.array("a code")?));
    let [language] = read.array("a language")?;
    let version = i32::from(i16::from_be_bytes(read.array("a version")?));
    let opaque = i32::from_be_bytes(read.array("an opaque")?);
    let flag = Flag(i32::from_be_bytes(read.array("a flag")?));
    let remark = read.long_text("a remark")?;
    let remark = (!remark.is_empty()).then(|| String::from_utf8_lossy(remark).into_owned());
    let ext_len = read.long_text("ext fields")?.len();
    let ext = read.at - ext_len..read.at;
    let mut entries = Reader {
        bytes: header.get(..ext.end).unwrap_or_default(),
        at: ext.start,
    };
    while entries.at < ext.end {
        entries.entry()?;
    }
    let language = Language::from_code(language);
    Ok((
        Head {
            code,
            language,
            version,
            opaque,
            flag,
            remark,
        },
        ext,
    ))
}

/// Reads a header from front to back.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next entry; its value is absent when it is empty.
    pub(super) fn field(&mut self) -> Result<(ExtText<'a>, Option<ExtText<'a>>), FrameError> {
        let (key, value) = self.entry()?;
        let value = (!value.is_empty()).then(|| ExtText::new(value, false));
        Ok((ExtText::new(key, false), value))
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], FrameError> {
        let Some(array) = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.first_chunk::<N>())
        else {
            return Err(FrameError::Header {
                offset: self.at,
                expected,
            });
        };
        self.at += N;
        Ok(*array)
    }

    fn text(
        &mut self,
        len: impl TryInto<usize>,
        expected: &'static str,
    ) -> Result<&'a [u8], FrameError> {
        let error = FrameError::Header {
            offset: self.at,
            expected,
        };
        let Ok(len) = len.try_into() else {
            return Err(error);
        };
        let Some(text) = self.bytes.get(self.at..).and_then(|rest| rest.get(..len)) else {
            return Err(error);
        };
        self.at += len;
        Ok(text)
    }

    fn long_text(&mut self, expected: &'static str) -> Result<&'a [u8], FrameError> {
        let len = i32::from_be_bytes(self.array(expected)?);
        self.text(len, expected)
    }

    fn entry(&mut self) -> Result<(&'a [u8], &'a [u8]), FrameError> {
        let len = i16::from_be_bytes(self.array("a key")?);
        Ok((self.text(len, "a key")?, self.long_text("a value")?))
    }
}
