//! Ext fields as they are read: names and values still in wire form, turned into text or numbers only where wanted.
//!
//! ```text
//! Frame::header ─▶ ExtFields ─▶ (ExtText name, ExtText value) ─┬─ is("topic")   no conversion
//!                  JSON or binary                              ├─ integer()     no conversion
//!                                                              └─ text()        borrowed unless escaped
//! ```

use std::borrow::Cow;

use super::{ExtForm, binary, json};

/// A name or value as received.
#[derive(Debug, Clone, Copy)]
pub struct ExtText<'a> {
    raw: &'a [u8],
    /// Whether `raw` holds JSON escapes.
    escaped: bool,
}

impl<'a> ExtText<'a> {
    pub(super) fn new(raw: &'a [u8], escaped: bool) -> Self {
        Self { raw, escaped }
    }

    /// Its text; malformed UTF-8 and escapes become U+FFFD.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        // Checked by hand first: the lossy conversion costs several times as much on short texts.
        let text = match std::str::from_utf8(self.raw) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(self.raw),
        };
        if self.escaped {
            Cow::Owned(json::unescape(&text))
        } else {
            text
        }
    }

    /// Its bytes when they are those of its text, nothing when it has escapes.
    #[must_use]
    pub fn plain(self) -> Option<&'a [u8]> {
        if self.escaped { None } else { Some(self.raw) }
    }

    /// Whether its text is `name`.
    #[inline]
    #[must_use]
    pub fn is(self, name: &str) -> bool {
        if self.escaped {
            self.text() == name
        } else {
            self.raw == name.as_bytes()
        }
    }

    /// Whether there is no text.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Its number, nothing when it is none or too large: an optional sign and decimal digits, as Java parses them.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        let negative = self.raw.first() == Some(&b'-');
        let signed = negative || self.raw.first() == Some(&b'+');
        let digits = self.raw.get(usize::from(signed)..).unwrap_or_default();
        if digits.is_empty() {
            return None;
        }
        // Summed up below zero, where there is room for one more.
        let mut sum = 0_i64;
        for digit in digits {
            let value = digit.wrapping_sub(b'0');
            if value > 9 {
                return None;
            }
            sum = sum.checked_mul(10)?.checked_sub(i64::from(value))?;
        }
        if negative {
            Some(sum)
        } else {
            sum.checked_neg()
        }
    }
}

/// All ext fields of a frame in wire order; null ones are left out.
#[derive(Debug)]
pub struct ExtFields<'a>(Form<'a>);

#[derive(Debug)]
enum Form<'a> {
    Json(json::Scanner<'a>),
    Binary(binary::Reader<'a>),
}

impl<'a> ExtFields<'a> {
    pub(super) fn new(form: ExtForm, ext: &'a [u8]) -> Self {
        Self(match form {
            ExtForm::Json => Form::Json(json::Scanner::new(ext)),
            ExtForm::Binary => Form::Binary(binary::Reader::new(ext)),
        })
    }
}

impl<'a> Iterator for ExtFields<'a> {
    type Item = (ExtText<'a>, ExtText<'a>);

    // All fields were walked when the frame was decoded, so the only error left is their end.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (name, value) = match &mut self.0 {
                Form::Json(scan) => scan.field().ok()?,
                Form::Binary(read) => read.field().ok()?,
            };
            if let Some(value) = value {
                return Some((name, value));
            }
        }
    }
}
