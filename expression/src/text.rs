//! Java's text form of floating-point numbers, and texts counted in UTF-16 units.

use std::fmt::LowerExp;

/// `Double.toString`, with the shortest digits that read back as the same number (Java up to 18 sometimes has one more).
pub(crate) fn java_double(value: f64) -> String {
    special(value).map_or_else(
        || decimal(value, value == 0.0, value.is_sign_negative()),
        str::to_owned,
    )
}

/// `Float.toString`, with the shortest digits.
pub(crate) fn java_float(value: f32) -> String {
    special(value.into()).map_or_else(
        || decimal(value, value == 0.0, value.is_sign_negative()),
        str::to_owned,
    )
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// Plain from 10^-3 to below 10^7, else with an exponent; at least one digit on either side of the point.
fn decimal(value: impl LowerExp, zero: bool, negative: bool) -> String {
    let sign = if negative { "-" } else { "" };
    if zero {
        return format!("{sign}0.0");
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let fraction = |digits: &str| {
        if digits.is_empty() {
            "0".to_owned()
        } else {
            digits.to_owned()
        }
    };
    match exponent {
        -3..=-1 => {
            let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
            format!("{sign}0.{zeros}{digits}")
        }
        0..=6 => {
            let whole = usize::try_from(exponent + 1).unwrap_or(1);
            let padded = format!("{digits:0<whole$}");
            format!("{sign}{}.{}", &padded[..whole], fraction(&padded[whole..]))
        }
        _ => format!(
            "{sign}{}.{}E{exponent}",
            &digits[..1],
            fraction(&digits[1..])
        ),
    }
}

/// Length in UTF-16 units, as Java counts.
pub(crate) fn utf16_length(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.encode_utf16().count()
    }
}

/// The units from `start` to `end` (which must be in order and inside); `None` when that cuts a character in halves.
pub(crate) fn utf16_slice(text: &str, start: usize, end: usize) -> Option<String> {
    if text.is_ascii() {
        return text.get(start..end).map(str::to_owned);
    }
    let units: Vec<u16> = text.encode_utf16().skip(start).take(end - start).collect();
    String::from_utf16(&units).ok()
}

/// Where `needle` first occurs, in UTF-16 units.
pub(crate) fn utf16_index_of(text: &str, needle: &str) -> Option<usize> {
    text.find(needle).map(|byte| utf16_length(&text[..byte]))
}
