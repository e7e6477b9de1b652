//! The values of expressions, by Java type.

use std::fmt;
use std::sync::Arc;

use num_bigint::BigInt;

use crate::big_decimal::BigDecimal;
use crate::text;

/// A value with the Java type that decides about its arithmetic, its equality and its hash. Cheap to clone.
///
/// `==` is Java's `equals`: an `Int` is never equal to a `Long`, and a double equals itself even if it is no number.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `Boolean`.
    Bool(bool),
    /// `Byte`.
    Byte(i8),
    /// `Short`.
    Short(i16),
    /// `Integer`.
    Int(i32),
    /// `Long`.
    Long(i64),
    /// `Float`.
    Float(f32),
    /// `Double`.
    Double(f64),
    /// `BigInteger`.
    BigInteger(Arc<BigInt>),
    /// `BigDecimal`.
    BigDecimal(Arc<BigDecimal>),
    /// `Character`: one UTF-16 unit.
    Char(u16),
    /// `String`.
    Text(Arc<str>),
    /// A constant of an enumeration, by name. Java's never equals a text; Bindery's does.
    Enum(Arc<str>),
    /// `UUID`.
    Uuid(u128),
    /// `byte[]`.
    Bytes(Arc<[u8]>),
    /// A list.
    List(Arc<[Value]>),
    /// An array of objects: like a list, but with an identity hash in Java.
    Array(Arc<[Value]>),
    /// A set, in any order.
    Set(Arc<[Value]>),
    /// A map, in insertion order.
    Map(Arc<[(Value, Value)]>),
    /// An object with named fields.
    Record(Arc<Record>),
}

/// An object with named fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The type's name, for messages.
    pub name: Arc<str>,
    /// Its fields in declaration order.
    pub fields: Vec<(Arc<str>, Value)>,
}

impl Record {
    /// The field of this name, or of the name with its first letter in lower case (as Java's `getName` has it).
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        let find = |name: &str| {
            self.fields
                .iter()
                .find(|(field, _)| &**field == name)
                .map(|(_, value)| value)
        };
        find(name).or_else(|| find(&uncapitalized(name)))
    }
}

/// A name with its first letter in lower case.
pub(crate) fn uncapitalized(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A list.
    pub fn list(elements: impl IntoIterator<Item = Value>) -> Self {
        Self::List(elements.into_iter().collect())
    }

    /// A map.
    pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Self {
        Self::Map(entries.into_iter().collect())
    }

    /// A record.
    pub fn record(
        name: impl Into<Arc<str>>,
        fields: impl IntoIterator<Item = (Arc<str>, Value)>,
    ) -> Self {
        Self::Record(Arc::new(Record {
            name: name.into(),
            fields: fields.into_iter().collect(),
        }))
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The type, for messages.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Byte(_) => "a Byte",
            Self::Short(_) => "a Short",
            Self::Int(_) => "an Integer",
            Self::Long(_) => "a Long",
            Self::Float(_) => "a Float",
            Self::Double(_) => "a Double",
            Self::BigInteger(_) => "a BigInteger",
            Self::BigDecimal(_) => "a BigDecimal",
            Self::Char(_) => "a character",
            Self::Text(_) => "a text",
            Self::Enum(_) => "an enum",
            Self::Uuid(_) => "a UUID",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Array(_) => "an array",
            Self::Set(_) => "a set",
            Self::Map(_) => "a map",
            Self::Record(record) => return format!("`{}`", record.name),
        }
        .to_owned()
    }

    /// The elements of a list, array or set.
    #[must_use]
    pub fn elements(&self) -> Option<&[Value]> {
        match self {
            Self::List(elements) | Self::Array(elements) | Self::Set(elements) => Some(elements),
            _ => None,
        }
    }

    /// The value of a map's text key or a record's field; `None` when there is none, or when this has neither.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Record(record) => record.field(name),
            Self::Map(entries) => entries
                .iter()
                .find(|(key, _)| matches!(key, Self::Text(key) if &**key == name))
                .map(|e| &e.1),
            _ => None,
        }
    }

    /// Follows names as far as there are fields of these names; gives the last value and how many names it took.
    #[must_use]
    pub fn follow(&self, path: &[&str]) -> (&Value, usize) {
        let mut value = self;
        for (steps, name) in path.iter().enumerate() {
            match value.field(name) {
                Some(next) => value = next,
                None => return (value, steps),
            }
        }
        (value, path.len())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Long(value)
    }
}

impl From<u64> for Value {
    /// A `Long`, or a `BigInteger` beyond its range, as Jackson reads it.
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or_else(|_| BigInt::from(value).into(), Self::Long)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl From<BigInt> for Value {
    fn from(value: BigInt) -> Self {
        Self::BigInteger(Arc::new(value))
    }
}

impl From<BigDecimal> for Value {
    fn from(value: BigDecimal) -> Self {
        Self::BigDecimal(Arc::new(value))
    }
}

impl fmt::Display for Value {
    /// Java's `toString()`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Byte(value) => value.fmt(f),
            Self::Short(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Long(value) => value.fmt(f),
            Self::Float(value) => f.write_str(&text::java_float(*value)),
            Self::Double(value) => f.write_str(&text::java_double(*value)),
            Self::BigInteger(value) => value.fmt(f),
            Self::BigDecimal(value) => value.fmt(f),
            Self::Char(unit) => f.write_str(&String::from_utf16_lossy(&[*unit])),
            Self::Text(text) | Self::Enum(text) => f.write_str(text),
            Self::Uuid(value) => write_uuid(*value, f),
            Self::Bytes(bytes) => write_all(f, ["[", ", ", "]"], bytes.iter(), |byte, f| {
                byte.cast_signed().fmt(f)
            }),
            Self::List(elements) | Self::Array(elements) | Self::Set(elements) => {
                write_all(f, ["[", ", ", "]"], elements.iter(), fmt::Display::fmt)
            }
            Self::Map(entries) => {
                write_all(f, ["{", ", ", "}"], entries.iter(), |(key, value), f| {
                    write!(f, "{key}={value}")
                })
            }
            Self::Record(record) => {
                f.write_str(&record.name)?;
                write_all(
                    f,
                    ["(", ", ", ")"],
                    record.fields.iter(),
                    |(name, value), f| write!(f, "{name}={value}"),
                )
            }
        }
    }
}

fn write_all<T>(
    f: &mut fmt::Formatter<'_>,
    [open, between, close]: [&str; 3],
    items: impl Iterator<Item = T>,
    write: impl Fn(T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.enumerate() {
        if index > 0 {
            f.write_str(between)?;
        }
        write(item, f)?;
    }
    f.write_str(close)
}

fn write_uuid(value: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let hex = format!("{value:032x}");
    write!(
        f,
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}
