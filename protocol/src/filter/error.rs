//! What can be wrong with an expression, and with a message it is applied to.

use super::number::NumberType;

/// The longest piece of an expression or a property that a message of ours repeats, in characters.
const SHOWN: usize = 40;

/// An expression that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, at line {line}, column {column}")]
pub struct SqlError {
    /// What is wrong.
    pub problem: SqlProblem,
    /// Line, from 1; 0 for an empty text.
    pub line: usize,
    /// Column in characters, from 1; 0 for an empty text. Where the text ends too early this is its last character, or
    /// one more inside an open literal or comment, as Apache RocketMQ's parser says.
    pub column: usize,
}

impl SqlError {
    /// Which part of the language was broken.
    #[must_use]
    pub fn kind(&self) -> SqlErrorKind {
        match self.problem {
            SqlProblem::Unreadable { .. }
            | SqlProblem::OpenText
            | SqlProblem::OpenComment
            | SqlProblem::Unexpected { .. }
            | SqlProblem::Trailing { .. }
            | SqlProblem::NotACondition { .. }
            | SqlProblem::TooDeep { .. }
            | SqlProblem::TooLong { .. } => SqlErrorKind::Syntax,
            SqlProblem::IntegerTooLarge { .. }
            | SqlProblem::DoubleOutOfRange { .. }
            | SqlProblem::Unordered { .. }
            | SqlProblem::NullCompared
            | SqlProblem::TruthCompared { .. }
            | SqlProblem::NullBound
            | SqlProblem::BoundsReversed
            | SqlProblem::NotAProperty { .. } => SqlErrorKind::Semantic,
        }
    }
}

/// The two ways in which an expression can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SqlErrorKind {
    /// It does not follow the grammar.
    Syntax,
    /// It follows the grammar and asks for what can't be done.
    Semantic,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SqlProblem {
    /// A character that begins or continues no token.
    #[error("{character:?} has no meaning here")]
    Unreadable {
        /// The character.
        character: char,
    },
    /// A text literal without its second quote.
    #[error("a text is not closed, ' is missing")]
    OpenText,
    /// A comment without its end.
    #[error("a comment is not closed, */ is missing")]
    OpenComment,
    /// One thing where another belongs.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// What is there.
        found: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// Text behind a complete expression.
    #[error("found {found} behind a complete expression (there is no LIKE and no arithmetic)")]
    Trailing {
        /// What is there.
        found: String,
    },
    /// A value where a condition is needed.
    #[error("{operand} is not a condition")]
    NotACondition {
        /// The value.
        operand: String,
    },
    /// Too many open parentheses, or conditions inside one another.
    #[error("nested deeper than {max} levels")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// A text that is not looked at, because of its length.
    #[error("the expression has {length} bytes, {max} are allowed")]
    TooLong {
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// An integer beyond 64 bits.
    #[error("the integer {text} does not fit 64 bits")]
    IntegerTooLarge {
        /// The literal.
        text: String,
    },
    /// A floating-point literal beyond the largest, or below the smallest positive number: `0.0` too is refused.
    #[error("the number {text} is not between 4.9E-324 and 1.7976931348623157E308")]
    DoubleOutOfRange {
        /// The literal.
        text: String,
    },
    /// `<`, `<=`, `>`, `>=` or `BETWEEN` with something that is neither a number nor a property.
    #[error("{operand} has no order, only numbers and properties have one")]
    Unordered {
        /// The operand.
        operand: String,
    },
    /// `= NULL` or `<> NULL`.
    #[error("NULL can't be compared, write IS NULL or IS NOT NULL")]
    NullCompared,
    /// TRUE or FALSE compared with a text or a number.
    #[error("a truth value can't be compared with {operand}")]
    TruthCompared {
        /// The text or number.
        operand: String,
    },
    /// `BETWEEN NULL AND …`.
    #[error("a bound of BETWEEN can't be NULL")]
    NullBound,
    /// `BETWEEN 3 AND 0`.
    #[error("the lower bound of BETWEEN is above the upper one")]
    BoundsReversed,
    /// `IN` behind something else than a property.
    #[error("IN needs a property, {operand} is none")]
    NotAProperty {
        /// What stands there.
        operand: String,
    },
}

/// A message whose properties can't be compared as the expression asks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// A text compared with a number.
    #[error("the text {text:?} is not a {wanted}")]
    NotANumber {
        /// The text, shortened.
        text: String,
        /// What the other side is.
        wanted: NumberType,
    },
    /// Two texts compared by order of which at least one is not a number.
    #[error("the texts {left:?} and {right:?} have no order")]
    NoOrder {
        /// The left one, shortened.
        left: String,
        /// The right one, shortened.
        right: String,
    },
    /// A truth value on the left compared with a text on the right (the other way round is possible).
    #[error("a truth value can't be compared with the text {text:?}")]
    TruthAgainstText {
        /// The text, shortened.
        text: String,
    },
}

/// A piece of foreign text, short enough to be repeated in a message.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
