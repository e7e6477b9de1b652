//! Which partition a message belongs to, exactly as Spring Cloud Stream computes it for Java producers.
//!
//! ```text
//! payload (typed, before encoding) + headers ─▶ key expression ─▶ Java's hashCode ─▶ |hash| % count ─▶ partition
//!                          scst_partitionOverride ─────────────────────────────────────────────────┘
//! ```
//!
//! The count is taken once, from the topic's writable queues or from `partition-count`, and kept for the life of the
//! process: a count that changes moves keys to other queues and breaks their order.

use bindery_expression::{Expression, PartitionCount, PartitionError, default_selector, partition};

use crate::binding::{BindError, SendError};
use crate::config::BindingConfig;
use crate::convert::Payload;
use crate::headers::{Headers, names};

/// How one output chooses partitions.
#[derive(Debug)]
pub struct Partitioning {
    binding: String,
    key: Option<Key>,
    count: PartitionCount,
}

#[derive(Debug)]
struct Key {
    text: String,
    expression: Expression,
}

impl Key {
    fn of(output: &BindingConfig) -> Result<Option<Self>, BindError> {
        let Some(text) = &output.producer.partition_key_expression else {
            return Ok(None);
        };
        match bindery_expression::parse(text) {
            Ok(expression) => Ok(Some(Self {
                text: text.clone(),
                expression,
            })),
            Err(source) => Err(BindError::Expression {
                binding: output.name.clone(),
                expression: text.clone(),
                source: Box::new(source),
            }),
        }
    }
}

impl Partitioning {
    /// The rule of an output whose topic has `queues` writable queues. Without a key everything goes to partition 0.
    ///
    /// # Errors
    /// The expression does not parse, or `partition-count` is above the number of queues.
    pub fn new(output: &BindingConfig, queues: u32) -> Result<Self, BindError> {
        let key = Key::of(output)?;
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
            count,
        })
    }

    /// The partition of one message.
    ///
    /// # Errors
    /// The key is null, or cannot be computed from this message.
    pub fn partition(&self, payload: &dyn Payload, headers: &Headers) -> Result<u32, SendError> {
        if let Some(text) = headers.get(names::PARTITION_OVERRIDE) {
            return self.overridden(text);
        }
        let Some(key) = &self.key else { return Ok(0) };
        let value = payload
            .evaluate(&key.expression, headers)
            .map_err(|source| self.failed(&key.text, source))?;
        match default_selector(&value) {
            Ok(selected) => Ok(partition(selected, self.count)),
            Err(PartitionError::NullKey) => Err(SendError::PartitionKeyNull {
                binding: self.binding.clone(),
                expression: key.text.clone(),
            }),
            Err(source) => Err(self.failed(&key.text, source)),
        }
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

    fn failed(&self, expression: &str, source: impl Into<crate::error::BoxError>) -> SendError {
        SendError::Expression {
            binding: self.binding.clone(),
            expression: expression.to_owned(),
            source: source.into(),
        }
    }
}
