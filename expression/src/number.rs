//! Java's arithmetic: operands are widened to the larger of both types, integers wrap, division truncates.

use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};

use crate::ast::Operator;
use crate::big_decimal::{BigDecimal, TooLarge};
use crate::error::EvalProblem;
use crate::text;
use crate::value::Value;

/// Two numbers widened to one type.
#[derive(Debug)]
pub(crate) enum Pair {
    Int(i32, i32),
    Long(i64, i64),
    BigInteger(BigInt, BigInt),
    Float(f32, f32),
    Double(f64, f64),
    BigDecimal(BigDecimal, BigDecimal),
}

/// Whether a value is a number, and how wide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Int,
    Long,
    BigInteger,
    Float,
    Double,
    BigDecimal,
}

fn width(value: &Value) -> Option<Width> {
    Some(match value {
        Value::Byte(_) | Value::Short(_) | Value::Int(_) => Width::Int,
        Value::Long(_) => Width::Long,
        Value::BigInteger(_) => Width::BigInteger,
        Value::Float(_) => Width::Float,
        Value::Double(_) => Width::Double,
        Value::BigDecimal(_) => Width::BigDecimal,
        _ => return None,
    })
}

/// Both as the wider of their types; `None` unless both are numbers.
pub(crate) fn widen(left: &Value, right: &Value) -> Option<Pair> {
    Some(match width(left)?.max(width(right)?) {
        Width::Int => Pair::Int(int(left)?, int(right)?),
        Width::Long => Pair::Long(long(left)?, long(right)?),
        Width::BigInteger => Pair::BigInteger(big_integer(left)?, big_integer(right)?),
        Width::Float => Pair::Float(float(left)?, float(right)?),
        Width::Double => Pair::Double(double(left)?, double(right)?),
        Width::BigDecimal => Pair::BigDecimal(big_decimal(left)?, big_decimal(right)?),
    })
}

fn int(value: &Value) -> Option<i32> {
    match value {
        Value::Byte(value) => Some((*value).into()),
        Value::Short(value) => Some((*value).into()),
        Value::Int(value) => Some(*value),
        _ => None,
    }
}

fn long(value: &Value) -> Option<i64> {
    match value {
        Value::Long(value) => Some(*value),
        _ => int(value).map(i64::from),
    }
}

pub(crate) fn big_integer(value: &Value) -> Option<BigInt> {
    match value {
        Value::BigInteger(value) => Some((**value).clone()),
        _ => long(value).map(BigInt::from),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Java widens long to double with the same rounding"
)]
pub(crate) fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::Float(value) => Some((*value).into()),
        Value::BigInteger(value) => value.to_f64(),
        Value::BigDecimal(value) => value.to_string().parse().ok(),
        _ => long(value).map(|value| value as f64),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Java widens long to float with the same rounding"
)]
fn float(value: &Value) -> Option<f32> {
    match value {
        Value::Float(value) => Some(*value),
        Value::BigInteger(value) => value.to_f32(),
        _ => long(value).map(|value| value as f32),
    }
}

/// By way of the text form, as Spring converts; infinite and undefined numbers have no decimal.
fn big_decimal(value: &Value) -> Option<BigDecimal> {
    match value {
        Value::BigDecimal(value) => Some((**value).clone()),
        Value::Double(value) => text::java_double(*value).parse().ok(),
        Value::Float(value) => text::java_float(*value).parse().ok(),
        _ => big_integer(value).map(BigDecimal::from_integer),
    }
}

/// `0 - x`, as Spring negates: `-(0.0)` is `0.0`, a byte becomes an int.
pub(crate) fn negate(value: &Value) -> Option<Value> {
    Some(match value {
        Value::BigInteger(value) => (-&**value).into(),
        Value::BigDecimal(value) => BigDecimal {
            unscaled: -&value.unscaled,
            scale: value.scale,
        }
        .into(),
        Value::Double(value) => Value::Double(0.0 - value),
        Value::Float(value) => Value::Float(0.0 - value),
        Value::Long(value) => Value::Long(value.wrapping_neg()),
        _ => Value::Int(int(value)?.wrapping_neg()),
    })
}

/// `Math.abs`, for the types it has a method for.
pub(crate) fn absolute(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Int(value) => Value::Int(value.wrapping_abs()),
        Value::Long(value) => Value::Long(value.wrapping_abs()),
        Value::Float(value) => Value::Float(value.abs()),
        Value::Double(value) => Value::Double(value.abs()),
        _ => return None,
    })
}

/// Applies an operator to two widened numbers.
pub(crate) fn calculate(operator: Operator, pair: Pair) -> Result<Value, EvalProblem> {
    match pair {
        Pair::Int(left, right) => integer(operator, left, right).map(Value::Int),
        Pair::Long(left, right) => wide_integer(operator, left, right).map(Value::Long),
        Pair::BigInteger(left, right) => big(operator, &left, &right),
        Pair::Float(left, right) => Ok(Value::Float(match operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide => left / right,
            Operator::Remainder => left % right,
        })),
        Pair::Double(left, right) => Ok(Value::Double(match operator {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide => left / right,
            Operator::Remainder => left % right,
        })),
        Pair::BigDecimal(left, right) => decimal(operator, &left, &right),
    }
}

macro_rules! wrapping {
    ($name:ident $type:ty) => {
        fn $name(operator: Operator, left: $type, right: $type) -> Result<$type, EvalProblem> {
            Ok(match operator {
                Operator::Add => left.wrapping_add(right),
                Operator::Subtract => left.wrapping_sub(right),
                Operator::Multiply => left.wrapping_mul(right),
                Operator::Divide | Operator::Remainder if right == 0 => {
                    return Err(EvalProblem::DivisionByZero)
                }
                Operator::Divide => left.wrapping_div(right),
                Operator::Remainder => left.wrapping_rem(right),
            })
        }
    };
}
wrapping!(integer i32);
wrapping!(wide_integer i64);

fn big(operator: Operator, left: &BigInt, right: &BigInt) -> Result<Value, EvalProblem> {
    Ok(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide | Operator::Remainder if right.is_zero() => {
            return Err(EvalProblem::DivisionByZero);
        }
        Operator::Divide => left / right,
        Operator::Remainder => left % right,
    }
    .into())
}

fn decimal(
    operator: Operator,
    left: &BigDecimal,
    right: &BigDecimal,
) -> Result<Value, EvalProblem> {
    let result = match operator {
        Operator::Add => left.add(right),
        Operator::Subtract => left.subtract(right),
        Operator::Multiply => left.multiply(right),
        Operator::Divide | Operator::Remainder if right.unscaled.is_zero() => {
            return Err(EvalProblem::DivisionByZero);
        }
        Operator::Divide => left.divide(right),
        Operator::Remainder => left.remainder(right),
    };
    Ok(result?.into())
}

impl From<TooLarge> for EvalProblem {
    fn from(TooLarge: TooLarge) -> Self {
        Self::NumberTooLarge
    }
}
