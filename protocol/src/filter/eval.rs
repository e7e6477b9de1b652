//! A condition applied to one message. Values borrow from the expression and from the properties.
//!
//! ```text
//! Condition::truth ──▶ Operand::value ──PropertySource::property──▶ Value ──equal, ordered, search──▶ Truth
//! ```
//!
//! A failure fails the whole expression, unless a TRUE to its left of OR or a FALSE to its left of AND made it unneeded.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Not;

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

/// Boxed, and the recursive functions below kept short, because a deep condition takes as many calls.
type Evaluated<T> = Result<T, Box<EvalError>>;

impl Operand {
    fn value<'a, P: PropertySource>(&'a self, properties: &'a P) -> Evaluated<Value<'a>> {
        match self {
            Self::Null => Ok(Value::Null),
            Self::Truth(value) => Ok(Value::Truth(*value)),
            Self::Text(text) => Ok(Value::Text(Cow::Borrowed(text))),
            Self::Number(number) => Ok(Value::Number(*number)),
            Self::Property(name) => Ok(property(name, properties)),
            Self::Negated(operand) => operand.value(properties).map(Value::negated),
            Self::Condition(condition) => condition.truth(properties).map(Value::from),
        }
    }
}

fn property<'a, P: PropertySource>(name: &str, properties: &'a P) -> Value<'a> {
    properties.property(name).map_or(Value::Null, Value::Text)
}

impl Value<'_> {
    /// A number with the other sign; NULL for all else.
    fn negated(self) -> Self {
        match self {
            Value::Number(number) => Value::Number(number.negated()),
            Value::Null | Value::Truth(_) | Value::Text(_) => Value::Null,
        }
    }
}

impl From<Truth> for Value<'_> {
    fn from(truth: Truth) -> Self {
        match truth {
            Truth::True => Value::Truth(true),
            Truth::False => Value::Truth(false),
            Truth::Unknown => Value::Null,
        }
    }
}

impl Condition {
    /// What the condition comes to for a message with these properties.
    pub(super) fn truth<P: PropertySource>(&self, properties: &P) -> Evaluated<Truth> {
        match self {
            Self::Constant(truth) => Ok(*truth),
            Self::Property(name) => Ok(match property(name, properties) {
                Value::Null => Truth::Unknown,
                Value::Truth(_) | Value::Number(_) | Value::Text(_) => Truth::False,
            }),
            Self::Not(condition) => condition.truth(properties).map(Truth::not),
            Self::All(conditions) => until(conditions, Truth::False, properties),
            Self::Any(conditions) => until(conditions, Truth::True, properties),
            Self::Equal(left, right) => {
                let left = left.value(properties)?;
                equal(left, right.value(properties)?)
            }
            Self::IsNull(operand) => operand
                .value(properties)
                .map(|value| matches!(value, Value::Null).into()),
            Self::Ordered(left, order, right) => {
                let left = left.value(properties)?;
                ordered(&left, *order, right, properties)
            }
            Self::Between { value, low, high } => {
                let value = value.value(properties)?;
                between(&value, low, high, properties)
            }
            Self::In { property, texts } => Ok(properties
                .property(property)
                .map_or(Truth::Unknown, |text| texts.contains(&*text).into())),
            Self::Search {
                value,
                place,
                sought,
                result,
            } => value
                .value(properties)
                .map(|value| search(&value, *place, sought, *result).into()),
        }
    }
}

/// `value >= low AND value <= high`, the value looked at once.
fn between<P: PropertySource>(
    value: &Value<'_>,
    low: &Operand,
    high: &Operand,
    properties: &P,
) -> Evaluated<Truth> {
    let above = ordered(value, Order::GreaterOrEqual, low, properties)?;
    if above == Truth::False {
        return Ok(Truth::False);
    }
    let below = ordered(value, Order::LessOrEqual, high, properties)?;
    Ok(if below == Truth::False || above == Truth::True {
        below
    } else {
        above
    })
}

/// AND (`end` is FALSE) and OR (`end` is TRUE): the first condition that comes to `end` decides, what is behind it is not
/// looked at; without one the result is unknown if any condition is.
fn until<P: PropertySource>(
    conditions: &[Condition],
    end: Truth,
    properties: &P,
) -> Evaluated<Truth> {
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
fn equal(left: Value<'_>, right: Value<'_>) -> Evaluated<Truth> {
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
            return Err(Box::new(EvalError::TruthAgainstText {
                text: shown(&right),
            }));
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
) -> Evaluated<Truth> {
    if let Value::Null = left {
        return Ok(Truth::Unknown);
    }
    let right = right.value(properties)?;
    Ok(compare(left, &right)?.map_or(Truth::Unknown, |ordering| order.holds(ordering).into()))
}

/// How two values are ordered: nothing if one of them has no value.
fn compare(left: &Value<'_>, right: &Value<'_>) -> Evaluated<Option<Ordering>> {
    Ok(Some(match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.compare(*right),
        (Value::Number(left), Value::Text(right)) => left.compare(left.read_alike(right)?),
        (Value::Text(left), Value::Number(right)) => right.read_alike(left)?.compare(*right),
        (Value::Text(left), Value::Text(right)) => {
            match (number::double(left), number::double(right)) {
                (Some(left), Some(right)) => number::compare_doubles(left, right),
                _ => {
                    return Err(Box::new(EvalError::NoOrder {
                        left: shown(left),
                        right: shown(right),
                    }));
                }
            }
        }
        // The parser lets no truth value come here.
        (Value::Null | Value::Truth(_), _) | (_, Value::Null | Value::Truth(_)) => return Ok(None),
    }))
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
