//! The parsed expression.

use std::fmt;

use crate::pattern::Pattern;
use crate::value::Value;

/// A parsed expression; evaluate it with [`eval`](Self::eval), [`condition`](Self::condition) or
/// [`selection`](Self::selection).
#[derive(Clone, Debug)]
pub struct Expression {
    pub(crate) text: String,
    pub(crate) root: Node,
}

impl Expression {
    /// The text it was parsed from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Where it starts, in characters.
    pub(crate) position: usize,
    pub(crate) kind: NodeKind,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Literal(Value),
    List(Vec<Node>),
    /// `#root`, `#this`.
    Root,
    /// A bare name: a field of the root.
    Name(String),
    /// A bare call: a method of the root.
    Call(String, Vec<Node>),
    /// `T(Math).abs(x)`, the one static method there is; with the position of `abs`.
    Abs(usize, Box<Node>),
    /// A start and the steps from it.
    Chain(Box<Node>, Vec<Step>),
    Negate(Box<Node>),
    Not(Box<Node>),
    And(Box<Node>, Vec<Node>),
    Or(Box<Node>, Vec<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    Matches(Box<Node>, Pattern),
    /// Left-associative operators of one precedence; flat, so that a long sum is not a deep tree.
    Arithmetic(Box<Node>, Vec<(Operator, Node)>),
    Elvis(Box<Node>, Box<Node>),
    Ternary(Box<Node>, Box<Node>, Box<Node>),
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) position: usize,
    pub(crate) kind: StepKind,
}

#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    Field {
        name: String,
        safe: bool,
    },
    Call {
        name: String,
        arguments: Vec<Node>,
        safe: bool,
    },
    Index(Box<Node>),
}

impl Step {
    /// The name that this step reads, when that is known without evaluating anything.
    pub(crate) fn constant(&self) -> Option<&str> {
        match &self.kind {
            StepKind::Field { name, safe: false } => Some(name),
            StepKind::Index(index) => match &index.kind {
                NodeKind::Literal(Value::Text(key)) => Some(key),
                _ => None,
            },
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}
