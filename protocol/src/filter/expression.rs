//! The filter of a subscription, chosen by its expression type and applied in two steps.
//!
//! ```text
//! consume queue entry ──matches_code──▶ no: skipped, the record is not read
//!                            └─ yes ──▶ needs_properties? ──▶ record ──matches_message──▶ delivered or skipped
//! ```

use super::{PropertySource, SqlError, SqlFilter};
use crate::bodies;
use crate::message::property;
use crate::message::tag::{TagExpression, TagExpressionError};

/// What a subscription lets through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FilterExpression {
    /// Every message.
    #[default]
    All,
    /// Messages with one of these tags. [`FilterExpression::parse`] never puts [`TagExpression::All`] here.
    Tags(TagExpression),
    /// Messages whose properties fulfil a condition.
    Sql(SqlFilter),
}

/// A subscription that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// Neither `TAG` nor `SQL92`.
    #[error("the expression type {expression_type:?} is unknown, TAG and SQL92 are known")]
    UnknownType {
        /// As asked for.
        expression_type: String,
    },
    /// A tag expression without a tag.
    #[error(transparent)]
    Tags(#[from] TagExpressionError),
    /// A wrong SQL92 expression.
    #[error(transparent)]
    Sql(#[from] SqlError),
}

impl FilterExpression {
    /// Reads the expression of a subscription. No type, the empty one and `TAG` stand for tags
    /// (`ExpressionType.isTagType` of Apache RocketMQ 5.3.3); the types are case sensitive.
    ///
    /// # Errors
    /// [`FilterError`] for an unknown type and for a text that its type can't read.
    pub fn parse(expression_type: Option<&str>, text: &str) -> Result<Self, FilterError> {
        match expression_type.unwrap_or_default() {
            "" | bodies::TAG => Ok(match TagExpression::parse(text)? {
                TagExpression::All => Self::All,
                tags @ TagExpression::Tags { .. } => Self::Tags(tags),
            }),
            bodies::SQL92 => Ok(Self::Sql(SqlFilter::parse(text)?)),
            expression_type => Err(FilterError::UnknownType {
                expression_type: expression_type.to_owned(),
            }),
        }
    }

    /// Whether a consume-queue entry with this tags code may pass; the first step, without reading the message.
    #[must_use]
    pub fn matches_code(&self, tags_code: i64) -> bool {
        match self {
            Self::Tags(tags) => tags.matches_code(tags_code),
            Self::All | Self::Sql(_) => true,
        }
    }

    /// Whether the broker has to look into the messages themselves. Tags are compared by their hash alone there: the
    /// consumer compares the text again.
    #[must_use]
    pub fn needs_properties(&self) -> bool {
        matches!(self, Self::Sql(_))
    }

    /// Whether a message with these properties passes; the second step, and all that is needed where there is no consume
    /// queue. Tags are compared as text.
    #[must_use]
    pub fn matches_message(&self, properties: &impl PropertySource) -> bool {
        match self {
            Self::All => true,
            Self::Tags(tags) => tags.matches_tag(properties.property(property::TAGS).as_deref()),
            Self::Sql(filter) => filter.matches(properties),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::message::{Properties, tag};

    fn tagged(tag: &str) -> Properties {
        [(property::TAGS, tag), ("price", "10")]
            .into_iter()
            .collect()
    }

    #[test]
    fn the_type_decides_how_the_text_is_read() {
        for kind in [None, Some(""), Some("TAG")] {
            assert_eq!(
                FilterExpression::parse(kind, "*"),
                Ok(FilterExpression::All)
            );
            let filter = FilterExpression::parse(kind, "TagA || TagB").unwrap();
            assert!(filter.matches_code(tag::tag_code("TagB")) && !filter.needs_properties());
            assert!(!filter.matches_code(tag::tag_code("TagC")));
            assert!(filter.matches_message(&tagged("TagA")));
            assert!(!filter.matches_message(&Properties::new()));
        }
        let filter = FilterExpression::parse(Some("SQL92"), "price > 5").unwrap();
        assert!(filter.matches_code(0) && filter.needs_properties());
        assert!(filter.matches_message(&tagged("any")));
        assert!(!filter.matches_message(&Properties::new()));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let error = FilterExpression::parse(Some("sql92"), "price > 5").unwrap_err();
        assert!(matches!(error, FilterError::UnknownType { .. }));
        let error = FilterExpression::parse(None, "||").unwrap_err();
        assert!(matches!(error, FilterError::Tags(_)));
        let error = FilterExpression::parse(Some("SQL92"), "price = ").unwrap_err();
        assert_eq!(
            error.to_string(),
            "found the end, expected a value, at line 1, column 8"
        );
    }
}
