//! What a group wants of a topic, read once when it is announced.
//!
//! ```text
//! heartbeat ─▶ Subscription::announced ─▶ Filter ─┬─ queue entry: tags code ─▶ most of what is not wanted
//! pull with its own expression ─▶ Filter::parse ──┴─ record: properties, for SQL92 only
//! ```
use std::sync::Arc;

use bindery_protocol::{
    bodies::{self, SubscriptionData},
    filter::{FilterError, FilterExpression, PropertySource, StoredProperties},
    message::RecordView,
};

use crate::store::EntryFilter;

/// A subscription with its filter ready to be applied.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// As announced.
    pub(crate) data: SubscriptionData,
    /// What passes; nothing when the expression can't be read.
    pub(crate) filter: Option<Filter>,
}

impl Subscription {
    /// Takes over what a heartbeat announced. The codes of the expression are computed here and not believed.
    pub(crate) fn announced(data: SubscriptionData) -> Self {
        let filter = match Filter::parse(&data.expression_type, &data.sub_string) {
            Ok(filter) => Some(filter),
            // An expression without a tag lets nothing through in Java; its clients refuse to make one.
            Err(FilterError::Tags(_)) => Some(Filter::all()),
            Err(error) => {
                tracing::warn!(topic = data.topic, %error, "subscription can't be read, pulls of it are refused");
                None
            }
        };
        Self { data, filter }
    }

    /// Whether it selects by tags.
    pub(crate) fn is_tag(&self) -> bool {
        is_tag(&self.data.expression_type)
    }
}

/// Whether an expression type is the one for tags; an absent one is.
pub(crate) fn is_tag(expression_type: &str) -> bool {
    expression_type.is_empty() || expression_type == bodies::TAG
}

/// Selects messages; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Filter(Arc<FilterExpression>);

impl Filter {
    /// Everything passes.
    pub(crate) fn all() -> Self {
        Self(Arc::new(FilterExpression::All))
    }

    /// Reads an expression.
    pub(crate) fn parse(expression_type: &str, expression: &str) -> Result<Self, FilterError> {
        let expression = FilterExpression::parse(Some(expression_type), expression)?;
        Ok(Self(Arc::new(expression)))
    }

    /// Whether a message passes that was just stored, by its tags code and its property text.
    pub(crate) fn matches_arrival(&self, tags_code: i64, properties: &[u8]) -> bool {
        self.0.matches_code(tags_code) && self.matches_properties(&StoredProperties(properties))
    }

    fn matches_properties(&self, properties: &impl PropertySource) -> bool {
        !self.0.needs_properties() || self.0.matches_message(properties)
    }
}

impl EntryFilter for Filter {
    fn matches_tags(&self, tags_code: i64) -> bool {
        self.0.matches_code(tags_code)
    }

    fn matches_record(&self, record: &[u8]) -> bool {
        if !self.0.needs_properties() {
            return true;
        }
        match RecordView::parse(record) {
            Ok(record) => self.matches_properties(&record),
            Err(error) => {
                tracing::error!(%error, "record not readable, not delivered");
                false
            }
        }
    }
}
