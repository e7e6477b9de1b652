//! Java's `hashCode`, bit for bit, by which partitions are chosen: a Rust and a Java producer must agree on the queue.

use num_bigint::{BigInt, Sign};

use crate::big_decimal::BigDecimal;
use crate::value::Value;

/// A value whose hash in Java depends on the object's identity, so that no two processes agree on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{type_name} has no hash that is the same in every process; take a field of it, or a text")]
pub struct UnstableHash {
    type_name: String,
}

impl Value {
    /// Java's `hashCode()`; 0 for null, as an element of a list counts.
    ///
    /// An enum, whose hash in Java is its identity, hashes as its name; a record hashes as the map of its fields.
    ///
    /// # Errors
    /// [`UnstableHash`] for bytes and arrays, and for what contains them.
    pub fn java_hash(&self) -> Result<i32, UnstableHash> {
        Ok(match self {
            Self::Null => 0,
            Self::Bool(true) => 1231,
            Self::Bool(false) => 1237,
            Self::Byte(value) => i32::from(*value),
            Self::Short(value) => i32::from(*value),
            Self::Int(value) => *value,
            Self::Long(value) => fold(value.cast_unsigned()),
            Self::Float(value) if value.is_nan() => 0x7fc0_0000,
            Self::Float(value) => value.to_bits().cast_signed(),
            Self::Double(value) if value.is_nan() => fold(0x7ff8_0000_0000_0000),
            Self::Double(value) => fold(value.to_bits()),
            Self::BigInteger(value) => big_integer(value),
            Self::BigDecimal(value) => big_decimal(value),
            Self::Char(unit) => i32::from(*unit),
            Self::Text(text) | Self::Enum(text) => java_string_hash(text),
            Self::Uuid(value) => uuid(*value),
            Self::List(elements) => sequence(elements)?,
            Self::Set(elements) => sum(elements.iter().map(Self::java_hash))?,
            Self::Map(entries) => sum(entries
                .iter()
                .map(|(key, value)| Ok(key.java_hash()? ^ value.java_hash()?)))?,
            Self::Record(record) => sum(record
                .fields
                .iter()
                .map(|(name, value)| Ok(java_string_hash(name) ^ value.java_hash()?)))?,
            Self::Bytes(_) | Self::Array(_) => {
                return Err(UnstableHash {
                    type_name: self.type_name(),
                });
            }
        })
    }
}

/// `String.hashCode`: over UTF-16 units, `h = 31 * h + unit`, wrapping at 32 bits.
pub(crate) fn java_string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

/// `Long.hashCode`: both halves xored.
fn fold(bits: u64) -> i32 {
    let bytes = (bits ^ (bits >> 32)).to_be_bytes();
    i32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]])
}

fn uuid(value: u128) -> i32 {
    let bytes = value.to_be_bytes();
    let (high, low) = bytes.split_at(8);
    let half = |half: &[u8]| {
        half.iter()
            .fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte))
    };
    fold(half(high) ^ half(low))
}

fn big_integer(value: &BigInt) -> i32 {
    let words = value.magnitude().to_u32_digits();
    let magnitude = words.iter().rev().fold(0, |hash: i32, word| {
        hash.wrapping_mul(31).wrapping_add(word.cast_signed())
    });
    if value.sign() == Sign::Minus {
        magnitude.wrapping_neg()
    } else {
        magnitude
    }
}

/// `31 * unscaledValue().hashCode() + scale()`; an unscaled value that fits a `long` is hashed by its halves, which is
/// the same as by the words of its magnitude.
fn big_decimal(value: &BigDecimal) -> i32 {
    big_integer(&value.unscaled)
        .wrapping_mul(31)
        .wrapping_add(value.scale)
}

fn sequence(elements: &[Value]) -> Result<i32, UnstableHash> {
    elements.iter().try_fold(1, |hash: i32, element| {
        Ok(hash.wrapping_mul(31).wrapping_add(element.java_hash()?))
    })
}

fn sum(hashes: impl Iterator<Item = Result<i32, UnstableHash>>) -> Result<i32, UnstableHash> {
    hashes
        .into_iter()
        .try_fold(0, |sum: i32, hash| Ok(sum.wrapping_add(hash?)))
}
