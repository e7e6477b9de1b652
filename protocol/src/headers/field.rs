//! What a header field may be: text, 32- and 64-bit integers, booleans, each possibly absent.

use std::borrow::Cow;

use crate::frame::{ExtText, ExtWriter, HeaderError};

/// What the text of a field has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Anything.
    Text,
    /// A 32-bit integer.
    I32,
    /// A 64-bit integer.
    I64,
    /// A boolean: any text, most of them false.
    Bool,
}

/// One field of a header, as its table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldInfo {
    /// Name on the wire.
    pub name: &'static str,
    /// Whether a request without it is refused.
    pub mandatory: bool,
    /// What its text has to be.
    pub kind: FieldKind,
}

/// A value that travels as the text of an ext field.
pub trait FieldValue<'a>: Sized {
    /// The same type without borrows.
    type Owned: 'static;

    /// Whether a request without the field is refused, unless its header gives it a default.
    const MANDATORY: bool = true;
    /// What its text has to be.
    const KIND: FieldKind;

    /// Parses the text of the field; `None` when the text counts as absent.
    ///
    /// # Errors
    /// [`HeaderError::Invalid`] when it does not parse.
    fn parse(field: &'static str, text: ExtText<'a>) -> Result<Option<Self>, HeaderError>;

    /// The value of an absent field.
    ///
    /// # Errors
    /// [`HeaderError::Missing`] when the field is mandatory.
    fn absent(field: &'static str) -> Result<Self, HeaderError> {
        Err(HeaderError::Missing { field })
    }

    /// Appends the field, if it is present.
    fn put(&self, field: &'static str, ext: &mut ExtWriter);

    /// Copies what is borrowed.
    fn into_owned(self) -> Self::Owned;
}

impl<'a> FieldValue<'a> for Cow<'a, str> {
    type Owned = Cow<'static, str>;
    const KIND: FieldKind = FieldKind::Text;

    fn parse(_: &'static str, text: ExtText<'a>) -> Result<Option<Self>, HeaderError> {
        Ok(Some(text.text()))
    }

    fn put(&self, field: &'static str, ext: &mut ExtWriter) {
        ext.put(field, self);
    }

    fn into_owned(self) -> Cow<'static, str> {
        Cow::Owned(Cow::into_owned(self))
    }
}

macro_rules! integers {
    ($($int:ty, $kind:ident, $expected:literal;)*) => {$(
        impl<'a> FieldValue<'a> for $int {
            type Owned = Self;
            const KIND: FieldKind = FieldKind::$kind;

            fn parse(field: &'static str, text: ExtText<'a>) -> Result<Option<Self>, HeaderError> {
                if text.is_empty() {
                    return Ok(None);
                }
                match text.integer().and_then(|number| <$int>::try_from(number).ok()) {
                    Some(number) => Ok(Some(number)),
                    None => Err(HeaderError::Invalid { field, value: text.text().into_owned(), expected: $expected }),
                }
            }

            fn put(&self, field: &'static str, ext: &mut ExtWriter) {
                ext.put_integer(field, *self);
            }

            fn into_owned(self) -> Self {
                self
            }
        }
    )*};
}

integers! {
    i32, I32, "32-bit integer";
    i64, I64, "64-bit integer";
}

impl<'a> FieldValue<'a> for bool {
    type Owned = Self;
    const KIND: FieldKind = FieldKind::Bool;

    /// As Java: `true` in any case, else false. The C++ client writes `1`.
    fn parse(_: &'static str, text: ExtText<'a>) -> Result<Option<Self>, HeaderError> {
        Ok((!text.is_empty()).then(|| {
            text.plain()
                .is_some_and(|text| text.eq_ignore_ascii_case(b"true") || text == b"1")
        }))
    }

    fn put(&self, field: &'static str, ext: &mut ExtWriter) {
        ext.put(field, if *self { "true" } else { "false" });
    }

    fn into_owned(self) -> Self {
        self
    }
}

impl<'a, V: FieldValue<'a>> FieldValue<'a> for Option<V> {
    type Owned = Option<V::Owned>;
    const MANDATORY: bool = false;
    const KIND: FieldKind = V::KIND;

    fn parse(field: &'static str, text: ExtText<'a>) -> Result<Option<Self>, HeaderError> {
        Ok(Some(V::parse(field, text)?))
    }

    fn absent(_: &'static str) -> Result<Self, HeaderError> {
        Ok(None)
    }

    fn put(&self, field: &'static str, ext: &mut ExtWriter) {
        if let Some(value) = self {
            value.put(field, ext);
        }
    }

    fn into_owned(self) -> Self::Owned {
        self.map(V::into_owned)
    }
}

/// Length of `snake` in camel case.
pub(super) const fn camel_len(snake: &str) -> usize {
    let bytes = snake.as_bytes();
    let (mut at, mut len) = (0, 0);
    while at < bytes.len() {
        len += (bytes[at] != b'_') as usize;
        at += 1;
    }
    len
}

/// `snake` in camel case; `LEN` is its [`camel_len`].
pub(super) const fn camel_bytes<const LEN: usize>(snake: &str) -> [u8; LEN] {
    let bytes = snake.as_bytes();
    let mut camel = [0; LEN];
    let (mut at, mut len, mut upper) = (0, 0, false);
    while at < bytes.len() {
        if bytes[at] == b'_' {
            upper = true;
        } else {
            camel[len] = if upper {
                bytes[at].to_ascii_uppercase()
            } else {
                bytes[at]
            };
            len += 1;
            upper = false;
        }
        at += 1;
    }
    camel
}
