//! What is wrong with an expression, where, and under which code Spring reports the same.

use std::fmt;

use crate::hash::UnstableHash;
use crate::root::RootError;

/// An expression that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, at character {} of `{expression}`", position + 1)]
pub struct ParseError {
    pub(crate) expression: String,
    pub(crate) position: usize,
    pub(crate) problem: ParseProblem,
}

/// What keeps an expression from parsing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseProblem {
    /// The text ends, or something else stands, where an expression must.
    #[error("an expression is missing")]
    Missing,
    /// Something stands after a complete expression.
    #[error("`{found}` does not belong after a complete expression")]
    MoreInput {
        /// The text found.
        found: String,
    },
    /// Another character than the one found must stand here.
    #[error("expected {expected}")]
    Expected {
        /// What must stand here.
        expected: &'static str,
        /// Whether the text ended instead.
        at_end: bool,
    },
    /// An operator has no left operand.
    #[error("the operator `{operator}` has nothing on its left")]
    LeftOperand {
        /// The operator.
        operator: String,
    },
    /// An operator has no right operand.
    #[error("the operator `{operator}` has nothing on its right")]
    RightOperand {
        /// The operator.
        operator: String,
    },
    /// An integer does not fit 32 bits; `L` behind it makes it 64 bits wide.
    #[error("`{literal}` does not fit 32 bits; write `{literal}L` for a 64-bit integer")]
    NotAnInteger {
        /// The literal.
        literal: String,
    },
    /// An integer does not fit 64 bits.
    #[error("`{literal}` does not fit 64 bits")]
    NotALong {
        /// The literal.
        literal: String,
    },
    /// A decimal with the suffix of an integer.
    #[error("a decimal cannot end in L")]
    RealCannotBeLong,
    /// The exponent has no digits.
    #[error("the exponent has no digits")]
    Exponent,
    /// A text in quotes has no end.
    #[error("the text has no closing {quote}")]
    Unterminated {
        /// The quote that must close it.
        quote: char,
    },
    /// No field or method stands after a dot.
    #[error("a name must stand after the dot")]
    AfterDot,
    /// The brackets of an index are empty.
    #[error("an index must stand in the brackets")]
    MissingIndex,
    /// The arguments of a call don't end.
    #[error("the arguments have no closing parenthesis")]
    Arguments,
    /// A single `|`.
    #[error("`|` must be doubled")]
    SingleBar,
    /// A backslash; there are no escapes.
    #[error("there are no escapes with a backslash")]
    Backslash,
    /// A character that means nothing here.
    #[error("the character `{character}` has no meaning")]
    Character {
        /// The character.
        character: char,
    },
    /// Spring has this construct, Bindery does not.
    #[error("{construct} is not supported")]
    Unsupported {
        /// The construct.
        construct: String,
    },
    /// The pattern of `matches` is no regular expression.
    #[error("the pattern is no regular expression: {reason}")]
    Pattern {
        /// Why not.
        reason: String,
    },
    /// More than 4096 characters.
    #[error("the expression is longer than {max} characters")]
    TooLong {
        /// The limit.
        max: usize,
    },
    /// Nested more than 64 levels deep.
    #[error("the expression is nested deeper than {max} levels")]
    TooDeep {
        /// The limit.
        max: usize,
    },
}

impl ParseError {
    /// The expression as it was given.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Where, in characters from 0; the length of the text when something is missing at its end.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &ParseProblem {
        &self.problem
    }

    /// Spring's code for the same mistake; `None` where Spring has none or accepts the text.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        self.problem.code()
    }

    /// The expression with a caret below the mistake, in two lines.
    #[must_use]
    pub fn caret(&self) -> String {
        let line: String = self
            .expression
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        format!("{line}\n{}^", " ".repeat(self.position))
    }
}

impl ParseProblem {
    fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Missing | Self::Expected { at_end: true, .. } => "EL1044E",
            Self::Expected { at_end: false, .. } => "EL1043E",
            Self::MoreInput { .. } => "EL1041E",
            Self::LeftOperand { .. } => "EL1070E",
            Self::RightOperand { .. } => "EL1042E",
            Self::NotAnInteger { .. } => "EL1035E",
            Self::NotALong { .. } => "EL1036E",
            Self::RealCannotBeLong => "EL1048E",
            Self::Unterminated { quote: '"' } => "EL1045E",
            Self::Unterminated { .. } => "EL1046E",
            Self::AfterDot => "EL1049E",
            Self::MissingIndex => "EL1071E",
            Self::Arguments => "EL1051E",
            Self::SingleBar => "EL1069E",
            Self::Backslash => "EL1065E",
            Self::Character { .. } => "EL1082E",
            Self::Pattern { .. } => "EL1018E",
            Self::TooLong { .. } => "EL1079E",
            Self::Unsupported { .. } | Self::TooDeep { .. } | Self::Exponent => return None,
        })
    }
}

/// An expression that has no value for the message at hand.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{problem}, at character {} of `{expression}`", position + 1)]
pub struct EvalError {
    pub(crate) expression: String,
    pub(crate) position: usize,
    pub(crate) problem: EvalProblem,
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalProblem {
    /// A record, text or number has no such field.
    #[error("{}", no_field(name, on, fields))]
    NoField {
        /// The field.
        name: String,
        /// What was asked for it.
        on: String,
        /// What it has instead.
        fields: Vec<String>,
    },
    /// A field of null.
    #[error("`{name}` cannot be read from null; `?.{name}` would give null")]
    FieldOfNull {
        /// The field.
        name: String,
    },
    /// A method of null.
    #[error("`{name}()` cannot be called on null; `?.{name}()` would give null")]
    MethodOfNull {
        /// The method.
        name: String,
    },
    /// An index into null.
    #[error("null has no elements")]
    IndexOfNull,
    /// Null as an index.
    #[error("null is no index")]
    NullIndex,
    /// A value that has no such element or field.
    #[error("{on} has no element `{index}`")]
    NoElement {
        /// The value's type.
        on: String,
        /// The index.
        index: String,
    },
    /// An index outside a list.
    #[error("the index {index} is outside a list of {size}")]
    OutsideList {
        /// The index.
        index: i64,
        /// How many elements there are.
        size: usize,
        /// Whether Java sees an array.
        array: bool,
    },
    /// An index outside a text.
    #[error("the index {index} is outside a text of length {length}")]
    OutsideText {
        /// The index.
        index: i64,
        /// The length in UTF-16 units.
        length: usize,
    },
    /// Half of a surrogate pair, which a Rust text can't hold.
    #[error("the text is cut within one character")]
    HalfCharacter,
    /// No method of this name takes these arguments.
    #[error("{on} has no method `{name}({arguments})`")]
    NoMethod {
        /// The method.
        name: String,
        /// The arguments' types.
        arguments: String,
        /// The value's type.
        on: String,
    },
    /// The arguments fit several methods of Java.
    #[error("the method `{name}` is ambiguous for {arguments}")]
    AmbiguousMethod {
        /// The method.
        name: String,
        /// The arguments' types.
        arguments: String,
    },
    /// Values that have no order between them.
    #[error("{left} and {right} cannot be compared")]
    NotComparable {
        /// The left value's type.
        left: String,
        /// The right value's type.
        right: String,
    },
    /// Values that an operator does not take.
    #[error("the operator `{operator}` does not take {left} and {right}")]
    Operator {
        /// The operator.
        operator: &'static str,
        /// The left value's type.
        left: String,
        /// The right value's type.
        right: String,
    },
    /// A value that cannot be converted as needed.
    #[error("{value} is no {wanted}")]
    Conversion {
        /// The value and its type.
        value: String,
        /// What was needed.
        wanted: &'static str,
    },
    /// An integer divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A number with more digits or a larger exponent than is computed with.
    #[error("the number has too many digits")]
    NumberTooLarge,
    /// `matches` on null.
    #[error("null cannot be matched with a pattern")]
    MatchesNull,
    /// The value has no hash that is the same in every process.
    #[error(transparent)]
    Hash(#[from] UnstableHash),
    /// The payload or the headers could not be read.
    #[error(transparent)]
    Root(#[from] RootError),
}

fn no_field(name: &str, on: &str, fields: &[String]) -> String {
    if fields.is_empty() {
        format!(
            "{on} has no field `{name}`; Java properties are not supported, methods are called with `()`"
        )
    } else {
        format!("{on} has no field `{name}` (fields: {})", fields.join(", "))
    }
}

impl EvalError {
    /// The expression as it was given.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Where, in characters from 0: the step or operator that failed.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &EvalProblem {
        &self.problem
    }

    /// Spring's code for the same failure; `None` where Java throws an exception without one.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        Some(match &self.problem {
            EvalProblem::NoField { .. } => "EL1008E",
            EvalProblem::FieldOfNull { .. } => "EL1007E",
            EvalProblem::MethodOfNull { .. } => "EL1011E",
            EvalProblem::IndexOfNull => "EL1012E",
            EvalProblem::NoElement { .. } => "EL1027E",
            EvalProblem::OutsideList { array: true, .. } => "EL1024E",
            EvalProblem::OutsideList { .. } => "EL1025E",
            EvalProblem::OutsideText { .. } => "EL1026E",
            EvalProblem::NoMethod { .. } => "EL1004E",
            EvalProblem::AmbiguousMethod { .. } => "EL1031E",
            EvalProblem::NotComparable { .. } => "EL1013E",
            EvalProblem::Operator { .. } => "EL1030E",
            EvalProblem::Conversion { .. } => "EL1001E",
            EvalProblem::MatchesNull => "EL1037E",
            EvalProblem::NullIndex
            | EvalProblem::HalfCharacter
            | EvalProblem::DivisionByZero
            | EvalProblem::NumberTooLarge
            | EvalProblem::Hash(_)
            | EvalProblem::Root(_) => return None,
        })
    }
}

/// A problem at a place, before the expression's text is put beside it.
#[derive(Debug)]
pub(crate) struct At<P> {
    pub(crate) position: usize,
    pub(crate) problem: P,
}

impl<P: fmt::Display> At<P> {
    pub(crate) fn new(position: usize, problem: P) -> Self {
        Self { position, problem }
    }
}
