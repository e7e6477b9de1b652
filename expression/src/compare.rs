//! Equality and order of values, as Spring's operators have them, and Java's `equals`.

use std::cmp::Ordering;

use crate::ast::Comparison;
use crate::error::EvalProblem;
use crate::number::{Pair, widen};
use crate::value::Value;

/// The result of a comparison operator.
pub(crate) fn holds(
    comparison: Comparison,
    left: &Value,
    right: &Value,
) -> Result<bool, EvalProblem> {
    match comparison {
        Comparison::Equal => same(left, right),
        Comparison::NotEqual => Ok(!same(left, right)?),
        Comparison::Less => Ok(order(left, right)?.is_some_and(Ordering::is_lt)),
        Comparison::LessOrEqual => Ok(order(left, right)?.is_some_and(Ordering::is_le)),
        Comparison::Greater => Ok(order(left, right)?.is_some_and(Ordering::is_gt)),
        Comparison::GreaterOrEqual => Ok(order(left, right)?.is_some_and(Ordering::is_ge)),
    }
}

/// `==`: numbers by value whatever their types, everything else by `equals`; enums and characters also equal their text.
fn same(left: &Value, right: &Value) -> Result<bool, EvalProblem> {
    if let Some(pair) = widen(left, right) {
        return Ok(number_order(&pair)?.is_some_and(Ordering::is_eq));
    }
    Ok(match (left, right) {
        (Value::Enum(name), Value::Text(text)) | (Value::Text(text), Value::Enum(name)) => {
            name == text
        }
        (Value::Char(unit), Value::Text(text)) | (Value::Text(text), Value::Char(unit)) => {
            text.encode_utf16().eq([*unit])
        }
        _ => left == right,
    })
}

/// The order of two values; `None` when a number is none (NaN). Null is below everything.
fn order(left: &Value, right: &Value) -> Result<Option<Ordering>, EvalProblem> {
    if let Some(pair) = widen(left, right) {
        return number_order(&pair);
    }
    match (left, right) {
        (Value::Null, Value::Null) => Ok(Some(Ordering::Equal)),
        (Value::Null, _) => Ok(Some(Ordering::Less)),
        (_, Value::Null) => Ok(Some(Ordering::Greater)),
        (Value::Text(left), Value::Text(right)) => {
            Ok(Some(left.encode_utf16().cmp(right.encode_utf16())))
        }
        (Value::Bool(left), Value::Bool(right)) => Ok(Some(left.cmp(right))),
        (Value::Char(left), Value::Char(right)) => Ok(Some(left.cmp(right))),
        _ => Err(EvalProblem::NotComparable {
            left: left.type_name(),
            right: right.type_name(),
        }),
    }
}

fn number_order(pair: &Pair) -> Result<Option<Ordering>, EvalProblem> {
    Ok(match pair {
        Pair::Int(left, right) => Some(left.cmp(right)),
        Pair::Long(left, right) => Some(left.cmp(right)),
        Pair::BigInteger(left, right) => Some(left.cmp(right)),
        Pair::Float(left, right) => left.partial_cmp(right),
        Pair::Double(left, right) => left.partial_cmp(right),
        Pair::BigDecimal(left, right) => Some(left.compare(right)?),
    })
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Byte(a), Self::Byte(b)) => a == b,
            (Self::Short(a), Self::Short(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            // `Double.equals` compares bits: NaN equals itself, 0.0 is not -0.0.
            (Self::Float(a), Self::Float(b)) => {
                a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits()
            }
            (Self::Double(a), Self::Double(b)) => {
                a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits()
            }
            (Self::BigInteger(a), Self::BigInteger(b)) => a == b,
            (Self::BigDecimal(a), Self::BigDecimal(b)) => a == b,
            (Self::Char(a), Self::Char(b)) => a == b,
            (Self::Text(a), Self::Text(b)) | (Self::Enum(a), Self::Enum(b)) => a == b,
            (Self::Uuid(a), Self::Uuid(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Set(a), Self::Set(b)) => {
                a.len() == b.len() && a.iter().all(|element| b.contains(element))
            }
            (Self::Map(a), Self::Map(b)) => {
                a.len() == b.len() && a.iter().all(|entry| b.contains(entry))
            }
            (Self::Record(a), Self::Record(b)) => a == b,
            _ => false,
        }
    }
}
