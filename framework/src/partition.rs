//! Which partition a message belongs to, exactly as Spring Cloud Stream computes it for Java producers.
//!
//! ```text
//! payload (typed, before encoding) + headers ─▶ key expression ─▶ Java's hashCode ─▶ |hash| % count ─▶ partition
//!                          scst_partitionOverride ─────────────────────────────────────────────────┘
//! ```
//!
//! The count is taken once, from the topic's writable queues or from `partition-count`, and kept for the life of the
//! process: a count that changes moves keys to other queues and breaks their order.

use bindery_expression::{Expression, Value, partition_for};

use crate::binding::{BindError, SendError};
use crate::config::BindingConfig;
use crate::convert::Payload;
use crate::headers::{Headers, names};

/// How one output chooses partitions.
#[derive(Debug)]
pub struct Partitioning {
    binding: String,
    key: Option<Key>,
    count: u32,
}

#[derive(Debug)]
struct Key {
    text: String,
    expression: Expression,
}

impl Partitioning {
    /// The rule of an output whose topic has `queues` writable queues. Without a key everything goes to partition 0.
    ///
    /// # Errors
    /// The expression does not parse, or `partition-count` is above the number of queues.
    pub fn new(output: &BindingConfig, queues: u32) -> Result<Self, BindError> {
        let key = match &output.producer.partition_key_expression {
            None => None,
            Some(text) => match bindery_expression::parse(text) {
                Ok(expression) => Some(Key {
                    text: text.clone(),
                    expression,
                }),
                Err(source) => {
                    let (binding, expression) = (output.name.clone(), text.clone());
                    return Err(BindError::Expression {
                        binding,
                        expression,
                        source: Box::new(source),
                    });
                }
            },
        };
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
        Ok(Self {
            binding: output.name.clone(),
            key,
            count: count.max(1),
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
        match payload.evaluate(&key.expression, headers) {
            Ok(Value::Null) => Err(SendError::PartitionKeyNull {
                binding: self.binding.clone(),
                expression: key.text.clone(),
            }),
            Ok(value) => {
                partition_for(&value, self.count).map_err(|source| self.failed(&key.text, source))
            }
            Err(source) => Err(self.failed(&key.text, source)),
        }
    }

    fn overridden(&self, text: &str) -> Result<u32, SendError> {
        match text.trim().parse::<i32>() {
            Ok(number) => Ok(number.unsigned_abs() % self.count),
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
