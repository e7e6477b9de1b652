//! Which partition a message belongs to, exactly as Spring Cloud Stream computes it for Java producers.
//!
//! ```text
//! payload (typed, before encoding) + headers ─▶ key: expression · extractor
//!      ─▶ selector: Java's hashCode · expression over the key · function ─▶ |selected % count| ─▶ partition
//!                          scst_partitionOverride ─────┘
//! ```
//!
//! The count is taken once, from the topic's writable queues or from `partition-count`, and kept for the life of the
//! process: a count that changes moves keys to other queues and breaks their order.

mod key;
mod selector;

#[cfg(test)]
mod tests;

use bindery_expression::{PartitionCount, partition};

use crate::binding::{BindError, SendError};
use crate::config::BindingConfig;
use crate::convert::Payload;
use crate::headers::{Headers, names};

pub use bindery_expression::Value as PartitionKey;
pub use key::{ExtractError, KeyExtractor, extracted, payload_of};
pub use selector::PartitionSelector;

use key::Key;
use selector::Selector;

/// The program's code that an output's partitions are chosen by, as its configuration names it.
#[derive(Debug, Clone, Default)]
pub struct PartitionCode {
    /// In place of `partition-key-expression`.
    pub extractor: Option<KeyExtractor>,
    /// In place of `partition-selector-expression`.
    pub selector: Option<PartitionSelector>,
}

/// How one output chooses partitions.
#[derive(Debug)]
pub struct Partitioning {
    binding: String,
    key: Option<Key>,
    selector: Selector,
    count: PartitionCount,
}

impl Partitioning {
    /// The rule of an output whose topic has `queues` writable queues. Without a key everything goes to partition 0.
    ///
    /// # Errors
    /// An expression does not parse, or `partition-count` is above the number of queues.
    pub fn new(
        output: &BindingConfig,
        code: PartitionCode,
        queues: u32,
    ) -> Result<Self, BindError> {
        let key = Key::of(output, code.extractor)?;
        let selector = Selector::of(output, code.selector)?;
        let count = output.producer.partition_count.unwrap_or(queues);
        if count > queues {
            let (binding, destination) = (output.name.clone(), output.destination.clone());
            return Err(BindError::PartitionCount {
                binding,
                destination,
                count,
                queues,
            });
        }
        if count != queues && key.is_some() {
            tracing::warn!(binding = %output.name, partition_count = count, queues,
                "partition-count differs from the topic's queues: a Java producer with the same file would use the queues");
        }
        let Some(count) = PartitionCount::new(count) else {
            let (binding, destination) = (output.name.clone(), output.destination.clone());
            return Err(BindError::NoQueues {
                binding,
                destination,
            });
        };
        Ok(Self {
            binding: output.name.clone(),
            key,
            selector,
            count,
        })
    }

    /// The partition of one message.
    ///
    /// # Errors
    /// The key is null, or key or partition cannot be computed from this message.
    pub fn partition(&self, payload: &dyn Payload, headers: &Headers) -> Result<u32, SendError> {
        if let Some(text) = headers.get(names::PARTITION_OVERRIDE) {
            return self.overridden(text);
        }
        let Some(key) = &self.key else { return Ok(0) };
        let value = key
            .value(payload, headers)
            .map_err(|source| self.failed(key.name(), source))?;
        if value.is_null() {
            return Err(SendError::PartitionKeyNull {
                binding: self.binding.clone(),
                expression: key.name().to_owned(),
            });
        }
        let selected = self
            .selector
            .select(&value, self.count)
            .map_err(|source| self.failed(self.selector.name().unwrap_or(key.name()), source))?;
        Ok(partition(selected, self.count))
    }

    fn overridden(&self, text: &str) -> Result<u32, SendError> {
        match text.trim().parse::<i32>() {
            Ok(selected) => Ok(partition(selected, self.count)),
            Err(source) => Err(SendError::Header {
                binding: self.binding.clone(),
                source: Box::new(source),
            }),
        }
    }

    fn failed(&self, expression: &str, source: crate::error::BoxError) -> SendError {
        SendError::Expression {
            binding: self.binding.clone(),
            expression: expression.to_owned(),
            source,
        }
    }
}

/// An expression of an output's configuration, with the text it was parsed from.
fn parsed(
    output: &BindingConfig,
    text: Option<&String>,
) -> Result<Option<bindery_expression::Expression>, BindError> {
    let parse = |text: &String| {
        bindery_expression::parse(text).map_err(|source| BindError::Expression {
            binding: output.name.clone(),
            expression: text.clone(),
            source: Box::new(source),
        })
    };
    text.map(parse).transpose()
}
