//! What a consumer wants of a topic: everything, some tags, or what an SQL92 condition lets through.
//!
//! ```text
//! FilterExpression ─▶ SubscriptionData ─▶ heartbeat (the broker filters) ─▶ exact tags compared again by the client
//! ```
use bindery_protocol::{filter::SqlFilter, message::TagExpression};

use crate::ClientError;

/// Which messages of a topic a consumer wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterExpression {
    pub(crate) kind: FilterKind,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterKind {
    Tag,
    Sql92,
}

impl FilterExpression {
    /// Every message.
    #[must_use]
    pub fn all() -> Self {
        Self::tags("*")
    }

    /// Messages with one of these tags, joined by `||`; `*` and the empty text mean every message. A single `|` is part of a tag.
    #[must_use]
    pub fn tags(expression: impl Into<String>) -> Self {
        let text = expression.into();
        let text = if text.is_empty() {
            "*".to_owned()
        } else {
            text
        };
        Self {
            kind: FilterKind::Tag,
            text,
        }
    }

    /// Messages whose properties fulfil an SQL92 condition, such as `region = 'eu' AND weight > 5`. The broker must have
    /// `enablePropertyFilter` on.
    #[must_use]
    pub fn sql(condition: impl Into<String>) -> Self {
        Self {
            kind: FilterKind::Sql92,
            text: condition.into(),
        }
    }

    /// The expression as text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is a condition over properties.
    #[must_use]
    pub fn is_sql(&self) -> bool {
        self.kind == FilterKind::Sql92
    }

    /// Looks for mistakes in a condition without asking a broker.
    pub(crate) fn parse_here(&self) -> Result<(), ClientError> {
        if !self.is_sql() {
            return Ok(());
        }
        SqlFilter::parse(&self.text)
            .map(drop)
            .map_err(|error| ClientError::Config {
                setting: "filter expression",
                problem: error.to_string(),
            })
    }

    /// The wire name of its kind.
    pub(crate) fn wire_kind(&self) -> &'static str {
        match self.kind {
            FilterKind::Tag => "TAG",
            FilterKind::Sql92 => "SQL92",
        }
    }

    /// The tags that pass; everything for an SQL condition, which the broker alone evaluates.
    pub(crate) fn tag_set(&self) -> Result<TagExpression, ClientError> {
        match self.kind {
            FilterKind::Sql92 => Ok(TagExpression::All),
            FilterKind::Tag => {
                TagExpression::parse(&self.text).map_err(|error| ClientError::Config {
                    setting: "filter expression",
                    problem: error.to_string(),
                })
            }
        }
    }
}
