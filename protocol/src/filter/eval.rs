//! A condition applied to one message. Values borrow from the expression and from the properties.
//!
//! ```text
//! Condition::truth ──▶ Operand::value ──PropertySource::property──▶ Value ──equal, ordered, search──▶ Truth
//! ```
//!
//! A failure fails the whole expression, unless a TRUE to its left of OR or a FALSE to its left of AND made it unneeded.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::ast::{Condition, Operand, Order, Place, Sought};
use super::error::shown;
use super::number::{self, Number};
use super::{EvalError, PropertySource, Truth};

/// What an operand comes to.
enum Value<'a> {
    Null,
    Truth(bool),
    Number(Number),
    Text(Cow<'a, str>),
}

impl Operand {
    fn value<'a, P: PropertySource>(&'a self, properties: &'a P) -> Result<Value<'a>, EvalError> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Truth(value) => Value::Truth(*value),
            Self::Text(text) => Value::Text(Cow::Borrowed(text)),
            Self::Number(number) => Value::Number(*number),
            Self::Property(name) => properties.property(name).map_or(Value::Null, Value::Text),
            Self::Negated(operand) => match operand.value(properties)? {
                Value::Number(number) => Value::Number(number.negated()),
                Value::Null | Value::Truth(_) | Value::Text(_) => Value::Null,
            },
            Self::Condition(condition) => match condition.truth(properties)? {
                Truth::True => Value::Truth(true),
                Truth::False => Value::Truth(false),
                Truth::Unknown => Value::Null,
            },
        })
    }
}

impl Condition {
    /// What the condition comes to for a message with these properties.
    pub(super) fn truth<P: PropertySource>(&self, properties: &P) -> Result<Truth, EvalError> {
        match self {
            Self::Constant(truth) => Ok(*truth),
            Self::Property(name) => Ok(match properties.property(name) {
                Some(_) => Truth::False,
                None => Truth::Unknown,
            }),
            Self::Not(condition) => Ok(!condition.truth(properties)?),
            Self::All(conditions) => until(conditions, Truth::False, properties),
            Self::Any(conditions) => until(conditions, Truth::True, properties),
            Self::Equal(left, right) => equal(left.value(properties)?, right.value(properties)?),
            Self::IsNull(operand) => Ok(matches!(operand.value(properties)?, Value::Null).into()),
            Self::Ordered(left, order, right) => {
                let left = left.value(properties)?;
                ordered(&left, *order, right, properties)
            }
            Self::Between { value, low, high } => {
                let value = value.value(properties)?;
                let above = ordered(&value, Order::GreaterOrEqual, low, properties)?;
                if above == Truth::False {
                    return Ok(above);
                }
                let below = ordered(&value, Order::LessOrEqual, high, properties)?;
                Ok(match (above, below) {
                    (_, Truth::False) => Truth::False,
                    (Truth::True, below) => below,
                    (above, _) => above,
                })
            }
            Self::In { property, texts } => Ok(properties
                .property(property)
                .map_or(Truth::Unknown, |text| texts.contains(&*text).into())),
            Self::Search {
                value,
                place,
                sought,
                result,
            } => Ok(search(&value.value(properties)?, *place, sought, *result).into()),
        }
    }
}

/// AND (`end` is FALSE) and OR (`end` is TRUE): the first condition that comes to `end` decides, what is behind it is not
/// looked at; without one the result is unknown if any condition is.
fn until<P: PropertySource>(
    conditions: &[Condition],
    end: Truth,
    properties: &P,
) -> Result<Truth, EvalError> {
    let mut result = !end;
    for condition in conditions {
        let truth = condition.truth(properties)?;
        if truth == end {
            return Ok(end);
        }
        if truth == Truth::Unknown {
            result = truth;
        }
    }
    Ok(result)
}

/// `left = right`. The sides are not alike: NULL is told apart on the left only, and so is a truth value from a text.
fn equal(left: Value<'_>, right: Value<'_>) -> Result<Truth, EvalError> {
    Ok(match (left, right) {
        (Value::Null, Value::Null) => Truth::True,
        (Value::Null, _) => Truth::Unknown,
        (_, Value::Null)
        | (Value::Truth(_), Value::Number(_))
        | (Value::Number(_), Value::Truth(_)) => Truth::False,
        (Value::Text(left), Value::Text(right)) => (left == right).into(),
        (Value::Truth(left), Value::Truth(right)) => (left == right).into(),
        (Value::Text(left), Value::Truth(right)) => {
            (left.eq_ignore_ascii_case("true") == right).into()
        }
        (Value::Truth(_), Value::Text(right)) => {
            return Err(EvalError::TruthAgainstText {
                text: shown(&right),
            });
        }
        (Value::Number(left), Value::Number(right)) => left.compare(right).is_eq().into(),
        (Value::Number(number), Value::Text(text)) | (Value::Text(text), Value::Number(number)) => {
            number.read_alike(&text)?.compare(number).is_eq().into()
        }
    })
}

/// `left <order> right`; the right side is not looked at when the left one is NULL.
fn ordered<P: PropertySource>(
    left: &Value<'_>,
    order: Order,
    right: &Operand,
    properties: &P,
) -> Result<Truth, EvalError> {
    if let Value::Null = left {
        return Ok(Truth::Unknown);
    }
    let ordering = match (left, &right.value(properties)?) {
        (Value::Number(left), Value::Number(right)) => left.compare(*right),
        (Value::Number(left), Value::Text(right)) => left.compare(left.read_alike(right)?),
        (Value::Text(left), Value::Number(right)) => right.read_alike(left)?.compare(*right),
        (Value::Text(left), Value::Text(right)) => {
            match (number::double(left), number::double(right)) {
                (Some(left), Some(right)) => number::compare_doubles(left, right),
                _ => {
                    return Err(EvalError::NoOrder {
                        left: shown(left),
                        right: shown(right),
                    });
                }
            }
        }
        // The parser lets no truth value come here.
        (Value::Null | Value::Truth(_), _) | (_, Value::Null | Value::Truth(_)) => {
            return Ok(Truth::Unknown);
        }
    };
    Ok(order.holds(ordering).into())
}

impl Order {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
        }
    }
}

fn search(value: &Value<'_>, place: Place, sought: &str, result: Sought) -> bool {
    let Value::Text(text) = value else {
        return false;
    };
    if sought.is_empty() {
        return false;
    }
    let found = match place {
        Place::Anywhere => text.contains(sought),
        Place::Start => text.starts_with(sought),
        Place::End => text.ends_with(sought),
    };
    found == (result == Sought::Present)
}
