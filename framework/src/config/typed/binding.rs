//! `spring.cloud.stream.bindings.<name>`: what every binder understands about one binding.

use std::time::Duration;

use super::Positions;

/// One entry of `spring.cloud.stream.bindings`.
#[derive(Debug, Clone, PartialEq)]
pub struct BindingConfig {
    /// The binding's name as the file spells it.
    pub name: String,
    /// `destination`: the topic; an input may list several, separated by commas (see [`BindingConfig::destinations`]).
    pub destination: String,
    /// `group`: the consumer group; for inputs only.
    pub group: Option<String>,
    /// `content-type`: used when a message carries none; default `application/json`.
    pub content_type: String,
    /// `binder`: which binder serves this binding; `None`: the default binder.
    pub binder: Option<String>,
    /// `error-handler-definition`: the name of the error handler that takes this binding's failures.
    pub error_handler: Option<String>,
    /// `consumer.*`.
    pub consumer: ConsumerConfig,
    /// `producer.*`.
    pub producer: ProducerConfig,
    /// Where the keys of this binding stand. Keys of sections are dotted: `consumer.concurrency`.
    pub positions: Positions,
}

impl BindingConfig {
    /// A binding with default settings, for tests and for bindings that code creates.
    #[must_use]
    pub fn new(name: impl Into<String>, destination: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            destination: destination.into(),
            group: None,
            content_type: "application/json".to_owned(),
            binder: None,
            error_handler: None,
            consumer: ConsumerConfig::default(),
            producer: ProducerConfig::default(),
            positions: Positions::default(),
        }
    }

    /// The topics of [`BindingConfig::destination`]: split at commas, without surrounding blanks.
    pub fn destinations(&self) -> impl Iterator<Item = &str> {
        self.destination
            .split(',')
            .map(str::trim)
            .filter(|topic| !topic.is_empty())
    }
}

/// `bindings.<name>.consumer.*`.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumerConfig {
    /// `auto-startup`: start with the application (default true); false leaves the binding stopped.
    pub auto_startup: bool,
    /// `concurrency`: handler invocations at the same time (default 1, at least 1); for orderly inputs at most one a queue.
    pub concurrency: usize,
    /// `partitioned` (default false): asserts that the input has a group; `RocketMQ` shares queues by itself.
    pub partitioned: bool,
    /// `max-attempts`: tries inside the process, the first included (default 3); 1 means no retry.
    pub max_attempts: u32,
    /// `back-off-*`: the pauses between those tries.
    pub back_off: BackOff,
    /// `default-retryable`: whether errors without a class of their own are tried again (default true).
    pub default_retryable: bool,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            auto_startup: true,
            concurrency: 1,
            partitioned: false,
            max_attempts: 3,
            back_off: BackOff::default(),
            default_retryable: true,
        }
    }
}

/// The pauses between attempts inside the process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackOff {
    /// `back-off-initial-interval`: the first pause (default 1 s).
    pub initial: Duration,
    /// `back-off-multiplier`: growth from pause to pause (default 2.0, at least 1).
    pub multiplier: f64,
    /// `back-off-max-interval`: the longest pause (default 10 s).
    pub max: Duration,
}

impl BackOff {
    /// The pause before the attempt after `failed` failed ones: `initial * multiplier^(failed - 1)`, at most `max`.
    #[must_use]
    pub fn pause(&self, failed: u32) -> Duration {
        let exponent = i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.multiplier.powi(exponent);
        if seconds.is_finite() && seconds < self.max.as_secs_f64() {
            Duration::from_secs_f64(seconds)
        } else {
            self.max
        }
    }
}

impl Default for BackOff {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            multiplier: 2.0,
            max: Duration::from_secs(10),
        }
    }
}

/// `bindings.<name>.producer.*`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProducerConfig {
    /// `partition-key-expression`: evaluated on the payload before it is encoded, or on the headers.
    pub partition_key_expression: Option<String>,
    /// `partition-key-extractor-name`: the name of the function that takes the key, in place of the expression.
    pub partition_key_extractor: Option<String>,
    /// `partition-selector-expression`: evaluated on the key; `None`: Java's hash of the key.
    pub partition_selector_expression: Option<String>,
    /// `partition-selector-name`: the name of the function that chooses, in place of that expression.
    pub partition_selector: Option<String>,
    /// `error-channel-enabled` (default false): failed synchronous sends go to the error handler too.
    pub error_channel_enabled: bool,
    /// `partition-count`: `None` means the topic's number of writable queues; `Some(1)` without a key sends everything to queue 0.
    pub partition_count: Option<u32>,
}

impl ProducerConfig {
    /// Whether messages of this output choose their queue by a partition.
    #[must_use]
    pub fn is_partitioned(&self) -> bool {
        self.has_partition_key() || self.partition_count.is_some()
    }

    /// Whether messages of this output have a key, by an expression or by code.
    #[must_use]
    pub fn has_partition_key(&self) -> bool {
        self.partition_key_expression.is_some() || self.partition_key_extractor.is_some()
    }
}
