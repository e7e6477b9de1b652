//! The pieces an expression is put together from, and what may be put together.
//!
//! ```text
//! literals ─▶ Part (operand, place) ─equal, ordered, check_bounds, into_condition─▶ condition, or a mistake at a place
//! ```
//!
//! The checks are those of Apache RocketMQ's `ComparisonExpression`, in its order.

use super::ast::{Condition, Operand, Order};
use super::error::shown;
use super::number::{self, Number};
use super::{SqlError, SqlProblem, Truth};

/// A mistake and the byte where it begins. Boxed: what a level of recursion returns decides how much stack it takes.
pub(super) struct Mistake {
    at: usize,
    problem: Box<SqlProblem>,
}

impl Mistake {
    pub(super) fn new(at: usize, problem: SqlProblem) -> Self {
        Self {
            at,
            problem: Box::new(problem),
        }
    }

    /// The mistake with its place in the text.
    pub(super) fn located(self, text: &str) -> SqlError {
        let (line, column) = locate(text, self.at);
        SqlError {
            problem: *self.problem,
            line,
            column,
        }
    }
}

pub(super) type Parsed<T> = Result<T, Mistake>;

/// An operand and the byte where it begins.
pub(super) struct Part {
    pub(super) at: usize,
    pub(super) operand: Operand,
}

impl Part {
    pub(super) fn condition(at: usize, condition: Condition) -> Self {
        Self {
            at,
            operand: Operand::Condition(Box::new(condition)),
        }
    }

    pub(super) fn wrong(&self, problem: SqlProblem) -> Mistake {
        Mistake::new(self.at, problem)
    }

    /// The operand as a condition.
    pub(super) fn into_condition(self) -> Parsed<Condition> {
        match self.operand {
            Operand::Condition(condition) => Ok(*condition),
            Operand::Property(name) => Ok(Condition::Property(name)),
            Operand::Truth(value) => Ok(Condition::Constant(value.into())),
            Operand::Null => Ok(Condition::Constant(Truth::Unknown)),
            Operand::Text(_) | Operand::Number(_) | Operand::Negated(_) => {
                Err(self.wrong(SqlProblem::NotACondition {
                    operand: self.operand.to_string(),
                }))
            }
        }
    }

    /// Only numbers have an order, and what may turn out to be one.
    pub(super) fn check_ordered(&self) -> Parsed<()> {
        match self.operand {
            Operand::Number(_) | Operand::Property(_) | Operand::Negated(_) => Ok(()),
            Operand::Null | Operand::Truth(_) | Operand::Text(_) | Operand::Condition(_) => {
                Err(self.wrong(SqlProblem::Unordered {
                    operand: self.operand.to_string(),
                }))
            }
        }
    }
}

pub(super) fn not(condition: Condition) -> Condition {
    Condition::Not(Box::new(condition))
}

pub(super) fn negate(negated: bool, condition: Condition) -> Condition {
    if negated { not(condition) } else { condition }
}

pub(super) fn equal(left: Part, right: Part) -> Parsed<Condition> {
    for side in [&left, &right] {
        if side.operand == Operand::Null {
            return Err(side.wrong(SqlProblem::NullCompared));
        }
    }
    if let (Operand::Truth(_), Operand::Text(_) | Operand::Number(_)) =
        (&left.operand, &right.operand)
    {
        return Err(right.wrong(SqlProblem::TruthCompared {
            operand: right.operand.to_string(),
        }));
    }
    Ok(Condition::Equal(left.operand, right.operand))
}

pub(super) fn ordered(left: Part, order: Order, right: Part) -> Parsed<Condition> {
    left.check_ordered()?;
    right.check_ordered()?;
    Ok(Condition::Ordered(left.operand, order, right.operand))
}

/// Constant bounds have to be in order. Bounds that are neither numbers nor NULL are refused later.
pub(super) fn check_bounds(low: &Part, high: &Part) -> Parsed<()> {
    let constant = |part: &Part| {
        matches!(
            part.operand,
            Operand::Null | Operand::Truth(_) | Operand::Text(_) | Operand::Number(_)
        )
    };
    match (&low.operand, &high.operand) {
        (Operand::Null, _) if constant(high) => Err(low.wrong(SqlProblem::NullBound)),
        (_, Operand::Null) if constant(low) => Err(high.wrong(SqlProblem::NullBound)),
        (Operand::Number(from), Operand::Number(to)) if from.compare(*to).is_gt() => {
            Err(low.wrong(SqlProblem::BoundsReversed))
        }
        _ => Ok(()),
    }
}

pub(super) fn unquoted(text: &str) -> Box<str> {
    text.replace("''", "'").into()
}

pub(super) fn integer(text: &str) -> Result<Number, SqlProblem> {
    let digits = text.strip_suffix(['l', 'L']).unwrap_or(text);
    number::integer(digits)
        .map(Number::integer)
        .ok_or_else(|| SqlProblem::IntegerTooLarge { text: shown(text) })
}

pub(super) fn double(text: &str) -> Result<Number, SqlProblem> {
    number::double(text)
        // Java asks whether the number is below its smallest positive one, which zero is.
        .filter(|value| *value > 0.0 && value.is_finite())
        .map(Number::Double)
        .ok_or_else(|| SqlProblem::DoubleOutOfRange { text: shown(text) })
}

/// Line and column of a byte; a line ends with LF, CR or both.
fn locate(text: &str, at: usize) -> (usize, usize) {
    if text.is_empty() {
        return (0, 0);
    }
    let (mut line, mut column) = (1, 1);
    let mut characters = text.chars().peekable();
    let mut passed = 0;
    while let Some(character) = characters.next() {
        if passed >= at {
            break;
        }
        passed += character.len_utf8();
        if character == '\n' || (character == '\r' && characters.peek() != Some(&'\n')) {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    (line, column)
}
