//! Conversions that operators and callers ask for, as Spring's conversion service makes them.

use num_traits::ToPrimitive;

use crate::error::EvalProblem;
use crate::number;
use crate::value::Value;

fn refused(value: &Value, wanted: &'static str) -> EvalProblem {
    let shown = match value {
        Value::Text(text) => format!("the text `{text}`"),
        Value::Null => "null".to_owned(),
        _ => format!("{} (`{value}`)", value.type_name()),
    };
    EvalProblem::Conversion {
        value: shown,
        wanted,
    }
}

/// A boolean operand: null is an error.
pub(crate) fn to_bool(value: &Value) -> Result<bool, EvalProblem> {
    to_optional_bool(value)?.ok_or_else(|| refused(value, "boolean"))
}

/// A boolean result: null and the empty text are none.
pub(crate) fn to_optional_bool(value: &Value) -> Result<Option<bool>, EvalProblem> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(value) => Ok(Some(*value)),
        Value::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Ok(Some(true)),
            "false" | "off" | "no" | "0" => Ok(Some(false)),
            "" => Ok(None),
            _ => Err(refused(value, "boolean")),
        },
        _ => match value.elements() {
            // A list is converted as its first element.
            Some([]) => Ok(None),
            Some([first, ..]) => to_optional_bool(first),
            None => Err(refused(value, "boolean")),
        },
    }
}

/// An `Integer`: numbers if their integral part fits, texts that are one, a character's code unit; null is none.
pub(crate) fn to_int(value: &Value) -> Result<Option<i32>, EvalProblem> {
    let fits = |wide: Option<i64>| match wide.and_then(|wide| i32::try_from(wide).ok()) {
        Some(int) => Ok(Some(int)),
        None => Err(refused(value, "32-bit integer")),
    };
    match value {
        Value::Null => Ok(None),
        Value::Char(unit) => Ok(Some(i32::from(*unit))),
        Value::Text(text) => {
            let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            if text.is_empty() {
                Ok(None)
            } else {
                fits(decode(&text))
            }
        }
        _ => match value.elements() {
            Some([]) => Ok(None),
            Some([first, ..]) => to_int(first),
            None => fits(integral(value)),
        },
    }
}

/// Java's `Integer.decode`: decimal, or hexadecimal behind `0x` or `#`.
fn decode(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
        .or_else(|| digits.strip_prefix('#'));
    let value = match hexadecimal {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok()?,
        None => digits.parse().ok()?,
    };
    value.checked_mul(sign)
}

/// The integral part of a number, when it fits 64 bits.
fn integral(value: &Value) -> Option<i64> {
    match value {
        Value::BigDecimal(value) => value.truncated().ok()?.to_i64(),
        Value::Float(_) | Value::Double(_) => Some(saturating_long(number::double(value)?)),
        _ => number::big_integer(value)?.to_i64(),
    }
}

/// Java's narrowing of a double: towards zero, to the nearest that fits; NaN is 0.
#[expect(
    clippy::cast_possible_truncation,
    reason = "Rust's `as` saturates exactly as Java's narrowing does"
)]
fn saturating_long(value: f64) -> i64 {
    value as i64
}

/// `Number.longValue()`; `None` unless it is a number.
pub(crate) fn long_value(value: &Value) -> Option<i64> {
    match value {
        Value::Float(_) | Value::Double(_) => Some(saturating_long(number::double(value)?)),
        Value::BigDecimal(value) => value.truncated().ok().map(|whole| low_64_bits(&whole)),
        _ => number::big_integer(value).map(|whole| low_64_bits(&whole)),
    }
}

/// `Number.intValue()`; `None` unless it is a number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "Java's narrowing: low bits of integers, saturating for floats"
)]
pub(crate) fn int_value(value: &Value) -> Option<i32> {
    match value {
        Value::Float(_) | Value::Double(_) => Some(number::double(value)? as i32),
        _ => long_value(value).map(|long| long as i32),
    }
}

fn low_64_bits(value: &num_bigint::BigInt) -> i64 {
    let digits = value.magnitude().to_u64_digits();
    let low = digits.first().copied().unwrap_or(0).cast_signed();
    if value.sign() == num_bigint::Sign::Minus {
        low.wrapping_neg()
    } else {
        low
    }
}

/// The text that `+` appends: a list is its elements separated by commas.
pub(crate) fn to_appended_text(value: &Value) -> String {
    match value.elements() {
        Some(elements) => elements
            .iter()
            .map(to_appended_text)
            .collect::<Vec<_>>()
            .join(","),
        None => value.to_string(),
    }
}
