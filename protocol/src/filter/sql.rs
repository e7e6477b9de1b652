//! A SQL92 condition over message properties, read once and applied to many messages.
//!
//! ```text
//! price > 5 AND region IN ('eu', 'us') ──parse──▶ SqlFilter ──matches(properties)──▶ deliver?
//! ```

use std::fmt;
use std::ops::Not;
use std::sync::Arc;

use super::ast::Condition;
use super::{EvalError, PropertySource, SqlError, parse};

/// What a condition comes to: SQL's third value stands for "can't be said", mostly because a property is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truth {
    /// Fulfilled.
    True,
    /// Not fulfilled.
    False,
    /// SQL's NULL.
    Unknown,
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

impl Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// A condition over the properties of a message, in the SQL92 subset of Apache RocketMQ 5.3.3.
///
/// ```text
/// expr      := and { OR and }
/// and       := equality { AND equality }
/// equality  := compare { ("=" | "<>") compare | IS [NOT] NULL }
/// compare   := unary { (">" | ">=" | "<" | "<=") unary
///                    | [NOT] (CONTAINS | STARTSWITH | ENDSWITH) text
///                    | [NOT] BETWEEN unary AND unary
///                    | [NOT] IN "(" text { "," text } ")" }
/// unary     := ("+" | "-" | NOT) unary | primary
/// primary   := text | number | TRUE | FALSE | NULL | name | "(" expr ")"
/// ```
///
/// A handle: a clone shares what has been read. Two filters are equal if their texts are.
///
/// Properties are texts; against a number they are read as that kind of number. Surprises that come from Java: an integer
/// literal that fits 32 bits compares as such (`ts > 0` fails for `1700000000000`, `ts > 0.5` does not), `NOT a = 1` is
/// `(NOT a) = 1`, and a bare property is never TRUE (write `a = TRUE`).
///
/// ```
/// use bindery_protocol::{filter::SqlFilter, message::Properties};
///
/// let filter = SqlFilter::parse("price > 5 AND region IN ('eu', 'us')")?;
/// let message: Properties = [("price", "7"), ("region", "eu")].into_iter().collect();
/// assert!(filter.matches(&message));
/// assert!(!filter.matches(&Properties::new()));
/// # Ok::<(), bindery_protocol::filter::SqlError>(())
/// ```
#[derive(Clone)]
pub struct SqlFilter {
    text: Arc<str>,
    condition: Arc<Condition>,
}

impl SqlFilter {
    /// Reads an expression of at most [`super::MAX_LENGTH`] bytes and [`super::MAX_DEPTH`] levels.
    ///
    /// # Errors
    /// [`SqlError`] with the place of the first mistake.
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        Ok(Self {
            text: text.into(),
            condition: Arc::new(parse::parse(text)?),
        })
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What the condition comes to for one message.
    ///
    /// # Errors
    /// [`EvalError`] when a property can't be compared as asked; the message is not delivered then.
    pub fn evaluate(&self, properties: &impl PropertySource) -> Result<Truth, EvalError> {
        self.condition.truth(properties).map_err(|error| *error)
    }

    /// Whether a message is delivered: only when the condition is TRUE, neither when it is unknown nor when it failed.
    #[must_use]
    pub fn matches(&self, properties: &impl PropertySource) -> bool {
        matches!(self.condition.truth(properties), Ok(Truth::True))
    }
}

impl PartialEq for SqlFilter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for SqlFilter {}

impl fmt::Debug for SqlFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqlFilter").field(&self.text).finish()
    }
}

impl fmt::Display for SqlFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
