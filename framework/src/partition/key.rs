//! The key of a message: what decides its partition.
//!
//! ```text
//! partition-key-expression ──────▶ Expression over payload and headers ─┐
//! partition-key-extractor-name ──▶ KeyExtractor(payload, headers) ──────┴─▶ PartitionKey, with Rust's types as Java's
//! ```

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bindery_expression::{Expression, ValueError, to_value};
use serde::Serialize;

use super::{PartitionKey, parsed};
use crate::binding::BindError;
use crate::config::BindingConfig;
use crate::convert::Payload;
use crate::error::BoxError;
use crate::headers::Headers;

/// Where an output's keys come from.
#[derive(Debug)]
pub(super) enum Key {
    Expression(Expression),
    Code(KeyExtractor),
}

impl Key {
    pub(super) fn of(
        output: &BindingConfig,
        extractor: Option<KeyExtractor>,
    ) -> Result<Option<Self>, BindError> {
        if let Some(extractor) = extractor {
            return Ok(Some(Self::Code(extractor)));
        }
        let expression = parsed(output, output.producer.partition_key_expression.as_ref())?;
        Ok(expression.map(Self::Expression))
    }

    /// The expression, or the extractor's name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Expression(expression) => expression.as_str(),
            Self::Code(extractor) => &extractor.name,
        }
    }

    pub(super) fn value(
        &self,
        payload: &dyn Payload,
        headers: &Headers,
    ) -> Result<PartitionKey, BoxError> {
        match self {
            Self::Expression(expression) => {
                payload.evaluate(expression, headers).map_err(Into::into)
            }
            Self::Code(extractor) => (extractor.extract)(payload, headers).map_err(Into::into),
        }
    }
}

/// A function that takes the partition key out of a message, with its name. Cheap to clone.
///
/// Usually `#[partition_key_extractor("name")]` makes it of a function; [`KeyExtractor::new`] does it without the attribute.
#[derive(Clone)]
pub struct KeyExtractor {
    name: Arc<str>,
    extract: Arc<Extract>,
}

type Extract = dyn Fn(&dyn Payload, &Headers) -> Result<PartitionKey, ExtractError> + Send + Sync;

/// Why an extractor gave no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The extractor takes another type of payload.
    #[error("the extractor takes `{wanted}`, and the message carries `{carried}`")]
    Payload {
        /// The extractor's type.
        wanted: &'static str,
        /// The message's type.
        carried: &'static str,
    },
    /// The key can't be read as a value.
    #[error("the key cannot be used")]
    Key(#[from] ValueError),
}

impl KeyExtractor {
    /// An extractor for messages whose payload is a `T`. The key may be anything serde can write; `None` is no key, which
    /// fails the send.
    ///
    /// ```
    /// use bindery::partition::KeyExtractor;
    ///
    /// struct Order { region: String }
    /// let by_region = KeyExtractor::new("byRegion", |order: &Order, _| order.region.clone());
    /// ```
    pub fn new<T: 'static, K: Serialize>(
        name: impl Into<Arc<str>>,
        key: impl Fn(&T, &Headers) -> K + Send + Sync + 'static,
    ) -> Self {
        Self::from_function(name, move |payload, headers| {
            extracted(&key(payload_of(payload)?, headers))
        })
    }

    pub(crate) fn from_function(
        name: impl Into<Arc<str>>,
        extract: impl Fn(&dyn Payload, &Headers) -> Result<PartitionKey, ExtractError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            extract: Arc::new(extract),
        }
    }

    /// The name that configuration uses.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The payload as the type an extractor takes.
///
/// # Errors
/// It is another one.
pub fn payload_of<T: Any>(payload: &dyn Payload) -> Result<&T, ExtractError> {
    payload
        .as_any()
        .downcast_ref()
        .ok_or_else(|| ExtractError::Payload {
            wanted: std::any::type_name::<T>(),
            carried: payload.type_name(),
        })
}

/// What an extractor returned, as a key.
///
/// # Errors
/// Its `Serialize` failed.
pub fn extracted<K: Serialize>(key: &K) -> Result<PartitionKey, ExtractError> {
    to_value(key).map_err(ExtractError::Key)
}

impl fmt::Debug for KeyExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyExtractor").field(&self.name).finish()
    }
}
