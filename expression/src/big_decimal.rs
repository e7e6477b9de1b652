//! `java.math.BigDecimal` as far as expressions compute with it: an unscaled integer and a scale.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use num_bigint::BigInt;
use num_traits::Signed;

/// The value `unscaled × 10^-scale`. As in Java, `1.0` and `1.00` are not equal and hash differently, while the `==` of
/// an expression compares their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigDecimal {
    /// The digits.
    pub unscaled: BigInt,
    /// How many of them stand behind the point; negative for trailing zeros.
    pub scale: i32,
}

/// A text that is no decimal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no decimal")]
pub struct BigDecimalError(String);

/// How far scales may lie apart (and how large they may be): aligning them writes that many digits.
const MAX_SCALE: i32 = 10_000;

/// A power of ten that would have too many digits to compute with.
#[derive(Debug)]
pub(crate) struct TooLarge;

impl BigDecimal {
    /// The value of an integer.
    #[must_use]
    pub fn from_integer(unscaled: BigInt) -> Self {
        Self { unscaled, scale: 0 }
    }

    fn at_scale(&self, scale: i32) -> Result<BigInt, TooLarge> {
        let shift = scale.checked_sub(self.scale).ok_or(TooLarge)?;
        Ok(&self.unscaled * power_of_ten(shift)?)
    }

    fn aligned(&self, other: &Self) -> Result<(BigInt, BigInt, i32), TooLarge> {
        let scale = self.scale.max(other.scale);
        Ok((self.at_scale(scale)?, other.at_scale(scale)?, scale))
    }

    /// Compares the values, whatever their scales.
    pub(crate) fn compare(&self, other: &Self) -> Result<Ordering, TooLarge> {
        let (left, right, _) = self.aligned(other)?;
        Ok(left.cmp(&right))
    }

    pub(crate) fn add(&self, other: &Self) -> Result<Self, TooLarge> {
        let (left, right, scale) = self.aligned(other)?;
        Ok(Self {
            unscaled: left + right,
            scale,
        })
    }

    pub(crate) fn subtract(&self, other: &Self) -> Result<Self, TooLarge> {
        let (left, right, scale) = self.aligned(other)?;
        Ok(Self {
            unscaled: left - right,
            scale,
        })
    }

    pub(crate) fn multiply(&self, other: &Self) -> Result<Self, TooLarge> {
        let scale = self.scale.checked_add(other.scale).ok_or(TooLarge)?;
        Ok(Self {
            unscaled: &self.unscaled * &other.unscaled,
            scale,
        })
    }

    /// Divides to the larger of both scales, rounding half to even, as Spring asks for. The divisor must not be zero.
    pub(crate) fn divide(&self, other: &Self) -> Result<Self, TooLarge> {
        let scale = self.scale.max(other.scale);
        // quotient × 10^scale = unscaled × 10^(scale - self.scale + other.scale) / other.unscaled
        let shift = scale
            .checked_sub(self.scale)
            .and_then(|s| s.checked_add(other.scale))
            .ok_or(TooLarge)?;
        let (numerator, denominator) = if shift >= 0 {
            (
                &self.unscaled * power_of_ten(shift)?,
                other.unscaled.clone(),
            )
        } else {
            (
                self.unscaled.clone(),
                &other.unscaled * power_of_ten(-shift)?,
            )
        };
        Ok(Self {
            unscaled: round_half_even(&numerator, &denominator),
            scale,
        })
    }

    /// What remains after the integral quotient; has the sign of the dividend. The divisor must not be zero.
    pub(crate) fn remainder(&self, other: &Self) -> Result<Self, TooLarge> {
        let (left, right, scale) = self.aligned(other)?;
        Ok(Self {
            unscaled: left % right,
            scale,
        })
    }

    /// The integral part, towards zero.
    pub(crate) fn truncated(&self) -> Result<BigInt, TooLarge> {
        if self.scale <= 0 {
            self.at_scale(0)
        } else {
            Ok(&self.unscaled / power_of_ten(self.scale)?)
        }
    }
}

fn power_of_ten(exponent: i32) -> Result<BigInt, TooLarge> {
    match u32::try_from(exponent) {
        Ok(exponent) if exponent <= MAX_SCALE.unsigned_abs() => Ok(BigInt::from(10).pow(exponent)),
        _ => Err(TooLarge),
    }
}

fn round_half_even(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let quotient = numerator / denominator;
    let remainder = numerator % denominator;
    let twice: BigInt = remainder.abs() * 2;
    let odd = quotient.bit(0);
    let away = match twice.cmp(&denominator.abs()) {
        Ordering::Greater => true,
        Ordering::Equal => odd,
        Ordering::Less => false,
    };
    if !away {
        return quotient;
    }
    if numerator.is_negative() == denominator.is_negative() {
        quotient + 1
    } else {
        quotient - 1
    }
}

impl FromStr for BigDecimal {
    type Err = BigDecimalError;

    fn from_str(text: &str) -> Result<Self, BigDecimalError> {
        read(text).ok_or_else(|| BigDecimalError(text.to_owned()))
    }
}

fn read(text: &str) -> Option<BigDecimal> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let digits = format!("{unsigned}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let magnitude: BigInt = digits.parse().ok()?;
    let unscaled = if whole.starts_with('-') {
        -magnitude
    } else {
        magnitude
    };
    (scale.unsigned_abs() <= MAX_SCALE.unsigned_abs()).then_some(BigDecimal { unscaled, scale })
}

impl fmt::Display for BigDecimal {
    /// Java's `toString`: plain while the scale is not negative and the exponent at least -6, else scientific.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled.is_negative() { "-" } else { "" };
        let digits = self.unscaled.magnitude().to_string();
        let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let exponent = length - 1 - i64::from(self.scale);
        match usize::try_from(self.scale) {
            Ok(0) => write!(f, "{sign}{digits}"),
            Ok(scale) if exponent >= -6 => {
                let padded = format!("{digits:0>width$}", width = scale + 1);
                let (whole, fraction) = padded.split_at(padded.len() - scale);
                write!(f, "{sign}{whole}.{fraction}")
            }
            _ => {
                let point = if digits.len() > 1 { "." } else { "" };
                write!(
                    f,
                    "{sign}{}{point}{}E{exponent:+}",
                    &digits[..1],
                    &digits[1..]
                )
            }
        }
    }
}
