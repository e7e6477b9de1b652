//! Numbers as Java's filter knows them: the types of literals, how texts are read, how different types compare.

use std::cmp::Ordering;
use std::fmt;

use super::EvalError;
use super::error::shown;

/// The zeros of all decimal digits beyond ASCII that one UTF-16 unit can hold, in order (`Character.digit` of Java 17).
const ZEROS: [char; 36] = [
    '\u{660}', '\u{6f0}', '\u{7c0}', '\u{966}', '\u{9e6}', '\u{a66}', '\u{ae6}', '\u{b66}',
    '\u{be6}', '\u{c66}', '\u{ce6}', '\u{d66}', '\u{de6}', '\u{e50}', '\u{ed0}', '\u{f20}',
    '\u{1040}', '\u{1090}', '\u{17e0}', '\u{1810}', '\u{1946}', '\u{19d0}', '\u{1a80}', '\u{1a90}',
    '\u{1b50}', '\u{1bb0}', '\u{1c40}', '\u{1c50}', '\u{a620}', '\u{a8d0}', '\u{a900}', '\u{a9d0}',
    '\u{a9f0}', '\u{aa50}', '\u{abf0}', '\u{ff10}',
];

/// The type of a number: a text is read as the type of the number it meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberType {
    /// Java's `int`: every integer literal that fits, with or without `L`.
    Int32,
    /// Java's `long`: the other integer literals.
    Int64,
    /// Java's `double`.
    Double,
}

impl fmt::Display for NumberType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Int32 => "32-bit integer",
            Self::Int64 => "64-bit integer",
            Self::Double => "floating-point number",
        })
    }
}

/// A number of one of the three types.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Int32(i32),
    Int64(i64),
    Double(f64),
}

impl Number {
    /// An integer literal; the smaller type if it fits.
    pub(super) fn integer(value: i64) -> Self {
        i32::try_from(value).map_or(Self::Int64(value), Self::Int32)
    }

    /// The number with the other sign.
    pub(super) fn negated(self) -> Self {
        match self {
            // Literals have no sign, so the smallest numbers, whose opposite does not exist, never come here.
            Self::Int32(value) => Self::Int32(value.wrapping_neg()),
            Self::Int64(value) => Self::Int64(value.wrapping_neg()),
            Self::Double(value) => Self::Double(-value),
        }
    }

    /// Compares in the wider type of the two.
    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self.whole(), other.whole()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => compare_doubles(self.double(), other.double()),
        }
    }

    /// Reads a text as a number of the same type as this one.
    pub(super) fn read_alike(self, text: &str) -> Result<Self, Box<EvalError>> {
        let (read, wanted) = match self {
            Self::Int32(_) => (
                integer(text)
                    .and_then(|value| i32::try_from(value).ok())
                    .map(Self::Int32),
                NumberType::Int32,
            ),
            Self::Int64(_) => (integer(text).map(Self::Int64), NumberType::Int64),
            Self::Double(_) => (double(text).map(Self::Double), NumberType::Double),
        };
        read.ok_or_else(|| {
            Box::new(EvalError::NotANumber {
                text: shown(text),
                wanted,
            })
        })
    }

    fn whole(self) -> Option<i64> {
        match self {
            Self::Int32(value) => Some(i64::from(value)),
            Self::Int64(value) => Some(value),
            Self::Double(_) => None,
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "Java compares a long with a double as doubles"
    )]
    fn double(self) -> f64 {
        match self {
            Self::Int32(value) => f64::from(value),
            Self::Int64(value) => value as f64,
            Self::Double(value) => value,
        }
    }
}

/// Java's `Double.compare`: −0 is below 0, NaN equals itself and is above everything.
pub(super) fn compare_doubles(left: f64, right: f64) -> Ordering {
    // Java knows one NaN; a negative one would be the lowest number here.
    let one_nan = |value: f64| if value.is_nan() { f64::NAN } else { value };
    one_nan(left).total_cmp(&one_nan(right))
}

/// Java's `Long.parseLong`: an optional sign and digits of any script, no blanks.
pub(super) fn integer(text: &str) -> Option<i64> {
    let (digits, negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text.strip_prefix('+').unwrap_or(text), false),
    };
    if digits.is_empty() {
        return None;
    }
    // Gathered below zero, where there is room for one number more.
    let below = digits.chars().try_fold(0_i64, |sum, character| {
        sum.checked_mul(10)?.checked_sub(digit(character)?)
    })?;
    if negative {
        Some(below)
    } else {
        below.checked_neg()
    }
}

fn digit(character: char) -> Option<i64> {
    if character.is_ascii() {
        return character.to_digit(10).map(i64::from);
    }
    let after = ZEROS.partition_point(|zero| *zero <= character);
    let zero = *ZEROS.get(after.checked_sub(1)?)?;
    let value = i64::from(u32::from(character) - u32::from(zero));
    (value < 10).then_some(value)
}

/// Java's `Double.valueOf`, its hexadecimal form left out: blanks around it, a sign, `NaN`, `Infinity` or a decimal
/// number, which may end in `f` or `d`.
pub(super) fn double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|character: char| character <= ' ');
    let (unsigned, sign) = match text.strip_prefix('-') {
        Some(unsigned) => (unsigned, -1.0),
        None => (text.strip_prefix('+').unwrap_or(text), 1.0),
    };
    match unsigned {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(sign * f64::INFINITY),
        _ => {}
    }
    // The decimal forms are Rust's as well; its words (`inf`, `nan`, in any case) and a second sign are not Java's.
    if !unsigned.starts_with(|character: char| character.is_ascii_digit() || character == '.') {
        return None;
    }
    let decimal = unsigned
        .strip_suffix(['f', 'F', 'd', 'D'])
        .unwrap_or(unsigned);
    Some(sign * decimal.parse::<f64>().ok()?)
}
