//! One document of one source, as it was written: keys and values in order, each with its position.
//!
//! ```text
//! YAML, .properties, JSON ──parse──▶ Node ──flatten──▶ Layer
//! ```

use super::span::Span;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: NodeValue,
}

impl Node {
    /// A text from a place without lines.
    pub(crate) fn text(text: &str, span: &Span) -> Self {
        Self {
            span: span.clone(),
            value: NodeValue::Scalar(Scalar::text(text)),
        }
    }
}

/// The three shapes of a value.
#[derive(Debug, Clone)]
pub(crate) enum NodeValue {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    Mapping(Vec<(Key, Node)>),
}

/// The text of a scalar. No type yet: that comes from the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// The text; of a plain YAML scalar it is the source text itself.
    pub(crate) text: String,
    /// Written without quotes in YAML, so that a YAML 1.1 reader might have read a number or a boolean.
    pub(crate) plain: bool,
    /// Nothing was written (`key:`), or `~`, or `null`.
    pub(crate) null: bool,
}

impl Scalar {
    /// Text that is exactly what it looks like.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            plain: false,
            null: false,
        }
    }
}

/// A key as it was written.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
    /// Came in by a merge key (`<<`): an equal key of the mapping itself wins without a word.
    pub(crate) merged: bool,
}
