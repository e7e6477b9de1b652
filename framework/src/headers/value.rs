//! One header value: the text that travels, and the type it had when it was set.

use std::fmt;
use std::sync::Arc;

/// The text of a header, with the type it was set with.
///
/// Headers travel as text. Within a process the type is kept, so that an expression compares `headers['n'] > 3` as
/// numbers and a partition key hashes as the Java type it has; a received header is text.
#[derive(Clone, PartialEq)]
pub struct HeaderValue {
    text: Arc<str>,
    kind: HeaderKind,
}

/// The type of a header's value, named after the Java type it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum HeaderKind {
    /// Text.
    Text,
    /// A 32-bit integer (`Integer`).
    Int(i32),
    /// A 64-bit integer (`Long`).
    Long(i64),
    /// A 64-bit float (`Double`).
    Double(f64),
    /// A boolean (`Boolean`).
    Bool(bool),
}

impl HeaderValue {
    /// A value of type text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            kind: HeaderKind::Text,
        }
    }

    /// The text as it travels.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The type with its value; [`HeaderKind::Text`] has its value in [`as_str`](Self::as_str).
    #[must_use]
    pub fn kind(&self) -> HeaderKind {
        self.kind
    }

    /// Reads the text as the boxed Java type named by `spring_json_header_types`, as the older Spring Cloud Alibaba
    /// binder writes it. Text that is no such value stays text.
    pub(crate) fn typed(text: &str, java_type: &str) -> Self {
        let text = text
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .unwrap_or(text);
        let parsed = match java_type {
            "java.lang.Integer" | "java.lang.Short" | "java.lang.Byte" => {
                text.parse().ok().map(HeaderKind::Int)
            }
            "java.lang.Long" => text.parse().ok().map(HeaderKind::Long),
            "java.lang.Double" | "java.lang.Float" => text.parse().ok().map(HeaderKind::Double),
            "java.lang.Boolean" => text.parse().ok().map(HeaderKind::Bool),
            _ => None,
        };
        Self {
            text: text.into(),
            kind: parsed.unwrap_or(HeaderKind::Text),
        }
    }
}

impl fmt::Debug for HeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            HeaderKind::Text => fmt::Debug::fmt(&*self.text, f),
            _ => f.write_str(&self.text),
        }
    }
}

impl fmt::Display for HeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for HeaderValue {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for HeaderValue {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&String> for HeaderValue {
    fn from(text: &String) -> Self {
        Self::text(text.as_str())
    }
}

impl From<Arc<str>> for HeaderValue {
    fn from(text: Arc<str>) -> Self {
        Self::text(text)
    }
}

macro_rules! numbers {
    ($($source:ty => $kind:ident),*) => {$(
        impl From<$source> for HeaderValue {
            fn from(value: $source) -> Self {
                Self { text: value.to_string().into(), kind: HeaderKind::$kind(value.into()) }
            }
        }
    )*};
}
// The types follow Java's: what fits an Integer without loss is one, as Jackson reads it.
numbers!(i8 => Int, i16 => Int, i32 => Int, u8 => Int, u16 => Int, i64 => Long, u32 => Long, f32 => Double, f64 => Double, bool => Bool);

impl From<u64> for HeaderValue {
    fn from(value: u64) -> Self {
        let kind = i64::try_from(value).map_or(HeaderKind::Text, HeaderKind::Long);
        Self {
            text: value.to_string().into(),
            kind,
        }
    }
}

impl From<usize> for HeaderValue {
    fn from(value: usize) -> Self {
        let kind = i64::try_from(value).map_or(HeaderKind::Text, HeaderKind::Long);
        Self {
            text: value.to_string().into(),
            kind,
        }
    }
}
