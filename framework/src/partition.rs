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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    struct Order {
        id: i64,
        region: Option<&'static str>,
    }

    const ORDER: Order = Order {
        id: 6,
        region: None,
    };

    fn output(expression: Option<&str>, count: Option<u32>) -> BindingConfig {
        let mut output = BindingConfig::new("output", "orders");
        output.producer.partition_key_expression = expression.map(str::to_owned);
        output.producer.partition_count = count;
        output
    }

    fn partition_of(
        expression: Option<&str>,
        count: Option<u32>,
        headers: &Headers,
    ) -> Result<u32, SendError> {
        Partitioning::new(&output(expression, count), 4)
            .unwrap()
            .partition(&ORDER, headers)
    }

    #[test]
    fn a_key_is_taken_from_the_payload_or_from_a_header() {
        assert_eq!(
            partition_of(Some("payload['id']"), None, &Headers::new()).unwrap(),
            2
        );
        assert_eq!(
            partition_of(Some("payload.id"), Some(3), &Headers::new()).unwrap(),
            0
        );
        let headers: Headers = [("partitionKey", "order-1")].into_iter().collect();
        assert_eq!(
            partition_of(Some("headers['partitionKey']"), None, &headers).unwrap(),
            2
        );
    }

    #[test]
    fn without_a_key_everything_goes_to_the_first_partition() {
        assert_eq!(partition_of(None, Some(1), &Headers::new()).unwrap(), 0);
    }

    #[test]
    fn an_override_wins_over_the_key() {
        let headers: Headers = [(names::PARTITION_OVERRIDE, 3)].into_iter().collect();
        assert_eq!(partition_of(Some("payload.id"), None, &headers).unwrap(), 3);
    }

    #[test]
    fn a_null_key_and_a_missing_field_are_errors_and_never_a_queue() {
        let null = partition_of(Some("payload.region"), None, &Headers::new());
        assert!(
            matches!(null, Err(SendError::PartitionKeyNull { .. })),
            "{null:?}"
        );
        let missing = partition_of(Some("payload.nothing"), None, &Headers::new());
        assert!(
            matches!(missing, Err(SendError::Expression { .. })),
            "{missing:?}"
        );
    }

    #[test]
    fn more_partitions_than_queues_are_refused() {
        let refused = Partitioning::new(&output(Some("payload.id"), Some(5)), 4);
        assert!(
            matches!(
                refused,
                Err(BindError::PartitionCount {
                    count: 5,
                    queues: 4,
                    ..
                })
            ),
            "{refused:?}"
        );
    }
}
