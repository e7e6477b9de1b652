//! A read expression: conditions, which are true, false or unknown, over operands, which have values.
//!
//! Nothing but evaluation and the drop walks down a tree, and its depth is limited: no derived traits.

use std::collections::BTreeSet;
use std::fmt;

use super::Truth;
use super::error::shown;
use super::number::Number;

/// Something with a value.
pub(super) enum Operand {
    Null,
    Truth(bool),
    Text(Box<str>),
    Number(Number),
    /// The value of a property, a text or NULL.
    Property(Box<str>),
    /// The opposite of a number; NULL for all else.
    Negated(Box<Operand>),
    Condition(Box<Condition>),
}

/// Something that may be fulfilled.
pub(super) enum Condition {
    Constant(Truth),
    /// A property alone: a text is no truth value, so this is FALSE, or unknown if there is none.
    Property(Box<str>),
    Not(Box<Condition>),
    /// Joined by AND.
    All(Vec<Condition>),
    /// Joined by OR.
    Any(Vec<Condition>),
    Equal(Operand, Operand),
    IsNull(Operand),
    Ordered(Operand, Order, Operand),
    Between {
        value: Operand,
        low: Operand,
        high: Operand,
    },
    In {
        property: Box<str>,
        texts: BTreeSet<Box<str>>,
    },
    /// The NOT form is not the opposite of the other: both are FALSE for what is no text, and for an empty sought text.
    Search {
        value: Operand,
        place: Place,
        sought: Box<str>,
        result: Sought,
    },
}

/// An order between two numbers.
#[derive(Clone, Copy)]
pub(super) enum Order {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// Where a text is sought in another.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Anywhere,
    Start,
    End,
}

/// Whether the sought text has to be there.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sought {
    Present,
    Absent,
}

/// Names an operand in error messages.
impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Truth(true) => f.write_str("TRUE"),
            Self::Truth(false) => f.write_str("FALSE"),
            Self::Text(text) => write!(f, "the text '{}'", shown(text)),
            Self::Number(Number::Int32(value)) => value.fmt(f),
            Self::Number(Number::Int64(value)) => value.fmt(f),
            Self::Number(Number::Double(value)) => write!(f, "{value:?}"),
            Self::Property(name) => write!(f, "the property {}", shown(name)),
            Self::Negated(_) => f.write_str("a negated value"),
            Self::Condition(_) => f.write_str("a condition"),
        }
    }
}
