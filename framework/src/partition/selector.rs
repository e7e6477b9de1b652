//! From a key to the number whose remainder is the partition.
//!
//! ```text
//! nothing ────────────────────────▶ |hashCode|
//! partition-selector-expression ──▶ Expression over the key, as Java's Integer ─┐
//! partition-selector-name ────────▶ PartitionSelector(key, count) ──────────────┴─▶ |n % count|
//! ```

use std::fmt;
use std::sync::Arc;

use bindery_expression::{Expression, PartitionCount, default_selector};

use super::{PartitionKey, parsed};
use crate::binding::BindError;
use crate::config::BindingConfig;
use crate::error::BoxError;

/// How an output goes from key to partition.
#[derive(Debug)]
pub(super) enum Selector {
    Hash,
    Expression(Expression),
    Code(PartitionSelector),
}

impl Selector {
    pub(super) fn of(
        output: &BindingConfig,
        selector: Option<PartitionSelector>,
    ) -> Result<Self, BindError> {
        if let Some(selector) = selector {
            return Ok(Self::Code(selector));
        }
        let text = output.producer.partition_selector_expression.as_ref();
        Ok(parsed(output, text)?.map_or(Self::Hash, Self::Expression))
    }

    /// The expression or the function's name.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Hash => None,
            Self::Expression(expression) => Some(expression.as_str()),
            Self::Code(selector) => Some(&selector.name),
        }
    }

    pub(super) fn select(
        &self,
        key: &PartitionKey,
        count: PartitionCount,
    ) -> Result<i32, BoxError> {
        match self {
            Self::Hash => default_selector(key).map_err(Into::into),
            Self::Expression(expression) => match expression.selection(key)? {
                Some(selected) => Ok(selected),
                // Spring Cloud Stream fails with a null pointer here.
                None => Err("the selector expression gives null".into()),
            },
            Self::Code(selector) => Ok((selector.select)(key, count.get())),
        }
    }
}

/// A function that chooses the partition of a key, with its name. Cheap to clone.
///
/// Usually `#[partition_selector("name")]` makes it of a function; [`PartitionSelector::new`] does it without the attribute.
#[derive(Clone)]
pub struct PartitionSelector {
    name: Arc<str>,
    select: Arc<Select>,
}

type Select = dyn Fn(&PartitionKey, u32) -> i32 + Send + Sync;

impl PartitionSelector {
    /// A selector: from the key, which is never null, and the number of partitions. What it returns is taken by Java's
    /// remainder and without sign, so that any number will do.
    ///
    /// ```
    /// use bindery::partition::{PartitionKey, PartitionSelector};
    ///
    /// let first = PartitionSelector::new("vipFirst", |key: &PartitionKey, count| match key {
    ///     PartitionKey::Text(text) if text.starts_with("vip-") => 0,
    ///     other => other.java_hash().unwrap_or(0) % i32::try_from(count).unwrap_or(i32::MAX),
    /// });
    /// ```
    pub fn new(
        name: impl Into<Arc<str>>,
        select: impl Fn(&PartitionKey, u32) -> i32 + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            select: Arc::new(select),
        }
    }

    /// The name that configuration uses.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for PartitionSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PartitionSelector")
            .field(&self.name)
            .finish()
    }
}
