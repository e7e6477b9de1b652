//! What a group wants of a topic, read once when it is announced.
use std::sync::Arc;

use bindery_protocol::{
    bodies::SubscriptionData,
    message::tag::{TagExpression, TagExpressionError},
};

use crate::store::EntryFilter;

/// A subscription with its filter ready to be applied.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// As announced.
    pub(crate) data: SubscriptionData,
    /// Which queue entries pass.
    pub(crate) filter: TagFilter,
}

impl Subscription {
    /// Takes over what a heartbeat announced. The codes of the expression are computed here and not believed.
    pub(crate) fn announced(data: SubscriptionData) -> Self {
        // An expression without a tag lets nothing through in Java; its clients refuse to make one.
        let filter = if is_tag(&data.expression_type) {
            TagFilter(
                TagExpression::parse(&data.sub_string)
                    .map_or(Arc::new(TagExpression::All), Arc::new),
            )
        } else {
            TagFilter::all()
        };
        Self { data, filter }
    }

    /// Whether it selects by tags; the broker evaluates nothing else yet.
    pub(crate) fn is_tag(&self) -> bool {
        is_tag(&self.data.expression_type)
    }
}

/// Whether an expression type is the one for tags; an absent one is.
pub(crate) fn is_tag(expression_type: &str) -> bool {
    expression_type.is_empty() || expression_type == "TAG"
}

/// Selects queue entries by the hash of their tag; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct TagFilter(Arc<TagExpression>);

impl TagFilter {
    /// Everything passes.
    pub(crate) fn all() -> Self {
        Self(Arc::new(TagExpression::All))
    }

    /// Reads a tag expression.
    pub(crate) fn parse(expression: &str) -> Result<Self, TagExpressionError> {
        Ok(Self(Arc::new(TagExpression::parse(expression)?)))
    }
}

impl EntryFilter for TagFilter {
    fn matches_tags(&self, tags_code: i64) -> bool {
        self.0.matches_code(tags_code)
    }
}
