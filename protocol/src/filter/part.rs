//! The pieces an expression is put together from, and what may be put together.
//!
//! ```text
//! literals ─▶ Part (operand, place) ─equal, ordered, between, …, Joined─▶ Part around them, or a mistake at a place
//! ```
//!
//! The checks are those of Apache RocketMQ's `ComparisonExpression`, in its order.

use std::collections::BTreeSet;

use super::ast::{Condition, Operand, Order, Place, Sought};
use super::error::shown;
use super::lex::Keyword;
use super::number::{self, Number};
use super::parse::MAX_DEPTH;
use super::{SqlError, SqlProblem, Truth};

/// A mistake and the byte where it begins. Boxed, because every step of reading returns one or an operand.
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

/// An operand that has been read.
pub(super) struct Part {
    /// The byte where it begins.
    pub(super) at: usize,
    pub(super) operand: Operand,
    /// How many conditions and signs are inside one another; looking at the operand takes as many calls.
    pub(super) depth: usize,
}

/// What may stand before an operand.
#[derive(Clone, Copy)]
pub(super) enum Prefix {
    Plus,
    Minus,
    Not,
}

impl Part {
    /// A part around others, of which the deepest has this depth.
    fn around(at: usize, depth: usize, operand: Operand) -> Parsed<Self> {
        if depth >= MAX_DEPTH {
            return Err(Mistake::new(at, SqlProblem::TooDeep { max: MAX_DEPTH }));
        }
        Ok(Self {
            at,
            operand,
            depth: depth + 1,
        })
    }

    fn condition(at: usize, depth: usize, negated: bool, condition: Condition) -> Parsed<Self> {
        let plain = Self::around(at, depth, Operand::Condition(Box::new(condition)))?;
        if negated {
            plain.prefixed(at, Prefix::Not)
        } else {
            Ok(plain)
        }
    }

    /// The part with a sign or a NOT before it.
    pub(super) fn prefixed(self, at: usize, prefix: Prefix) -> Parsed<Self> {
        let depth = self.depth;
        match prefix {
            Prefix::Plus => Ok(Self { at, ..self }),
            Prefix::Minus => Self::around(at, depth, Operand::Negated(Box::new(self.operand))),
            Prefix::Not => {
                let condition = Condition::Not(Box::new(self.into_condition()?));
                Self::around(at, depth, Operand::Condition(Box::new(condition)))
            }
        }
    }

    fn wrong(&self, problem: SqlProblem) -> Mistake {
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
    fn check_ordered(&self) -> Parsed<()> {
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

/// Conditions joined by AND or OR.
pub(super) struct Joined {
    at: usize,
    /// Not yet known to be a condition: the second one is read before Java looks.
    first: Option<Part>,
    conditions: Vec<Condition>,
    depth: usize,
}

impl Joined {
    pub(super) fn new(first: Part) -> Self {
        Self {
            at: first.at,
            depth: first.depth,
            first: Some(first),
            conditions: Vec::new(),
        }
    }

    /// Takes in what stands behind `word`.
    pub(super) fn push(&mut self, word: Keyword, part: Part) -> Parsed<()> {
        if let Some(first) = self.first.take() {
            match (word, first.into_condition()?) {
                // `(a OR b) OR c` is one row of three; programs like to write long rows in this way.
                (Keyword::And, Condition::All(row)) | (Keyword::Or, Condition::Any(row)) => {
                    self.conditions = row;
                    self.depth -= 1;
                }
                (_, first) => self.conditions.push(first),
            }
        }
        self.depth = self.depth.max(part.depth);
        self.conditions.push(part.into_condition()?);
        Ok(())
    }

    pub(super) fn finish(self, word: Keyword) -> Parsed<Part> {
        let condition = match word {
            Keyword::And => Condition::All(self.conditions),
            _ => Condition::Any(self.conditions),
        };
        Part::condition(self.at, self.depth, false, condition)
    }
}

/// `left = right`, or `<>` if negated.
pub(super) fn equal(left: Part, right: Part, negated: bool) -> Parsed<Part> {
    for side in [&left, &right] {
        if let Operand::Null = side.operand {
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
    let condition = Condition::Equal(left.operand, right.operand);
    Part::condition(left.at, left.depth.max(right.depth), negated, condition)
}

/// `operand IS NULL`, or `IS NOT NULL` if negated.
pub(super) fn is_null(operand: Part, negated: bool) -> Parsed<Part> {
    let condition = Condition::IsNull(operand.operand);
    Part::condition(operand.at, operand.depth, negated, condition)
}

/// `left <order> right`.
pub(super) fn ordered(left: Part, order: Order, right: Part) -> Parsed<Part> {
    left.check_ordered()?;
    right.check_ordered()?;
    let condition = Condition::Ordered(left.operand, order, right.operand);
    Part::condition(left.at, left.depth.max(right.depth), false, condition)
}

/// `value BETWEEN low AND high`. The bounds themselves are compared for the plain form only.
pub(super) fn between(value: Part, low: Part, high: Part, negated: bool) -> Parsed<Part> {
    if !negated {
        check_bounds(&low, &high)?;
    }
    value.check_ordered()?;
    low.check_ordered()?;
    high.check_ordered()?;
    let depth = value.depth.max(low.depth).max(high.depth);
    let condition = Condition::Between {
        value: value.operand,
        low: low.operand,
        high: high.operand,
    };
    Part::condition(value.at, depth, negated, condition)
}

/// `property IN (texts)`.
pub(super) fn within(left: Part, texts: BTreeSet<Box<str>>, negated: bool) -> Parsed<Part> {
    match left.operand {
        Operand::Property(property) => {
            let condition = Condition::In { property, texts };
            Part::condition(left.at, left.depth, negated, condition)
        }
        _ => Err(left.wrong(SqlProblem::NotAProperty {
            operand: left.operand.to_string(),
        })),
    }
}

/// `value CONTAINS 'sought'` and its like.
pub(super) fn search(value: Part, place: Place, sought: Box<str>, result: Sought) -> Parsed<Part> {
    let condition = Condition::Search {
        value: value.operand,
        place,
        sought,
        result,
    };
    Part::condition(value.at, value.depth, false, condition)
}

/// Constant bounds have to be in order. Bounds that are neither numbers nor NULL are refused later.
fn check_bounds(low: &Part, high: &Part) -> Parsed<()> {
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
