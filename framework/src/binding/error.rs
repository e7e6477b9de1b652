//! Why a message was not sent and why a binding was not made.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::receipt::SendReceipt;
use crate::binder::BinderError;
use crate::config::ProducerType;
use crate::convert::EncodeError;
use crate::error::BoxError;

/// Why a message is not known to be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// No output has this name.
    #[error("no output binding `{name}`{}", suggest(did_you_mean.as_deref()))]
    UnknownBinding {
        /// The name asked for.
        name: String,
        /// The nearest output that exists.
        did_you_mean: Option<String>,
    },
    /// The output is switched off by `rocketmq.bindings.<name>.producer.enabled: false`.
    #[error("output `{binding}` is disabled by its `producer.enabled`")]
    Disabled {
        /// The output.
        binding: String,
    },
    /// The topic is unknown to the name servers (client code 10005).
    #[error("no route to topic `{topic}`")]
    NoRoute {
        /// Topic.
        topic: String,
        /// Cause.
        #[source]
        source: BoxError,
    },
    /// No name server is configured or answers (client code 10004).
    #[error("no name server answers")]
    NoNameServer(#[source] BoxError),
    /// The broker can't be reached (client code 10001).
    #[error("the broker cannot be reached")]
    Connect(#[source] BoxError),
    /// No answer in time (client code 10002); the message may be stored all the same.
    #[error("no answer in time for a message to `{destination}`")]
    Timeout {
        /// Destination.
        destination: String,
        /// Cause.
        #[source]
        source: BoxError,
    },
    /// The broker refused the message.
    #[error("the broker refused the message with code {code}: {remark}")]
    Broker {
        /// RocketMQ response code.
        code: i32,
        /// The broker's words.
        remark: String,
        /// Whether the same message may be accepted later.
        retryable: bool,
    },
    /// The broker has the message, but not as safely as it was asked to.
    #[error("the message {} is not safely stored: {status}", receipt.msg_id)]
    NotStored {
        /// `FLUSH_DISK_TIMEOUT`, `FLUSH_SLAVE_TIMEOUT` or `SLAVE_NOT_AVAILABLE`.
        status: &'static str,
        /// What is known about it.
        receipt: Box<SendReceipt>,
    },
    /// The client refused the message before sending it.
    #[error("the message is not sendable")]
    Client(#[source] BoxError),
    /// RocketMQ stores no message without a body.
    #[error("a message to `{binding}` has an empty payload, which RocketMQ refuses")]
    EmptyPayload {
        /// The output.
        binding: String,
    },
    /// The payload or the headers cannot be put on the wire.
    #[error("a message to `{binding}` cannot be encoded")]
    Encode {
        /// The output.
        binding: String,
        /// Cause.
        #[source]
        source: EncodeError,
    },
    /// A header is reserved, malformed, or out of range.
    #[error("a message to `{binding}` has a header that cannot be sent")]
    Header {
        /// The output.
        binding: String,
        /// Cause.
        #[source]
        source: BoxError,
    },
    /// The partition key is null, so nobody can say where the message belongs.
    #[error("the partition key `{expression}` of output `{binding}` is null for this message")]
    PartitionKeyNull {
        /// The output.
        binding: String,
        /// The expression.
        expression: String,
    },
    /// The partition key can't be computed from this message.
    #[error("the partition key `{expression}` of output `{binding}` cannot be computed")]
    Expression {
        /// The output.
        binding: String,
        /// The expression.
        expression: String,
        /// Cause.
        #[source]
        source: BoxError,
    },
    /// The topic has fewer queues than when its partitions were counted; the key is not moved to another queue.
    #[error("partition {partition} of `{destination}` has no queue now (there are {queues})")]
    PartitionMissing {
        /// Destination.
        destination: String,
        /// Partition asked for.
        partition: u32,
        /// Queues now.
        queues: usize,
    },
    /// A transactional send on an output that is not transactional.
    #[error(
        "output `{binding}` is not transactional: its `rocketmq.bindings.{binding}.producer.producer-type` is not Trans"
    )]
    WrongProducerType {
        /// The output.
        binding: String,
    },
    /// The broker has not been there since the application started, so that nobody knows the output's partitions.
    #[error("output `{binding}` is not bound yet: the broker is away")]
    NotBound {
        /// The output.
        binding: String,
    },
    /// More sends are under way without anybody waiting than an output holds.
    #[error("{limit} sends of output `{binding}` are under way already")]
    TooManyInFlight {
        /// The output.
        binding: String,
        /// How many there may be.
        limit: usize,
    },
    /// An error that an error handler has kept as well.
    #[error(transparent)]
    Shared(std::sync::Arc<Self>),
    /// The application is stopping.
    #[error("output `{binding}` is closed")]
    Closed {
        /// The output.
        binding: String,
    },
}

impl SendError {
    /// Whether the same message may be accepted when it is sent again later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NoRoute { .. }
            | Self::NoNameServer(_)
            | Self::Connect(_)
            | Self::Timeout { .. }
            | Self::NotStored { .. }
            | Self::PartitionMissing { .. }
            | Self::NotBound { .. }
            | Self::TooManyInFlight { .. } => true,
            Self::Broker { retryable, .. } => *retryable,
            Self::Shared(error) => error.is_retryable(),
            _ => false,
        }
    }

    fn http_status(&self) -> StatusCode {
        match self {
            Self::Shared(error) => error.http_status(),
            Self::Closed { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ if self.is_retryable() => StatusCode::SERVICE_UNAVAILABLE,
            Self::UnknownBinding { .. } => StatusCode::NOT_FOUND,
            Self::EmptyPayload { .. }
            | Self::Encode { .. }
            | Self::Header { .. }
            | Self::PartitionKeyNull { .. }
            | Self::Expression { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// The body of an HTTP answer that reports a failure.
#[derive(Debug, Serialize)]
struct Problem {
    error: String,
    causes: Vec<String>,
    retryable: bool,
}

impl IntoResponse for SendError {
    /// 503 when sending again may help, 422 when the message is at fault, else 500; the body is
    /// `{"error", "causes", "retryable"}`.
    fn into_response(self) -> Response {
        let causes =
            std::iter::successors(std::error::Error::source(&self), |cause| cause.source());
        let problem = Problem {
            error: self.to_string(),
            causes: causes.map(ToString::to_string).collect(),
            retryable: self.is_retryable(),
        };
        (self.http_status(), Json(problem)).into_response()
    }
}

/// Why a binding could not be made or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A `#[bindings]` struct or an extractor names a binding that the application does not have.
    #[error("no {direction} binding `{name}`{}", suggest(did_you_mean.as_deref()))]
    Unknown {
        /// `input` or `output`.
        direction: &'static str,
        /// The name asked for.
        name: String,
        /// The nearest that exists.
        did_you_mean: Option<String>,
    },
    /// A binding names a binder that this program does not have.
    #[error("binding `{binding}` asks for the binder `{binder}`; this program has {}", known.join(", "))]
    UnknownBinder {
        /// Binding.
        binding: String,
        /// The binder asked for.
        binder: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The partition key expression cannot be used.
    #[error("the partition key `{expression}` of output `{binding}` cannot be read")]
    Expression {
        /// The output.
        binding: String,
        /// The expression.
        expression: String,
        /// Cause.
        #[source]
        source: BoxError,
    },
    /// The binding's settings contradict the topic.
    #[error(
        "output `{binding}`: partition-count {count} is above the {queues} queues of `{destination}`"
    )]
    PartitionCount {
        /// The output.
        binding: String,
        /// Destination.
        destination: String,
        /// Configured count.
        count: u32,
        /// Writable queues.
        queues: u32,
    },
    /// A key under `bindery.embedded.broker` has a value that the broker in the process cannot use.
    #[error("`bindery.embedded.broker.{key}`: `{value}` is not accepted, expected {expected}")]
    BrokerKey {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What is accepted.
        expected: String,
    },
    /// The code relies on another kind of producer than the configuration makes.
    #[error(
        "output `{binding}` is declared as `Output<_, {wanted:?}>`, and its `rocketmq.bindings.{binding}.producer.producer-type` is {found:?}"
    )]
    ProducerType {
        /// The output.
        binding: String,
        /// What the code says.
        wanted: ProducerType,
        /// What the configuration says.
        found: ProducerType,
    },
    /// A partitioned output's topic has no writable queue.
    #[error("output `{binding}`: `{destination}` has no writable queue")]
    NoQueues {
        /// The output.
        binding: String,
        /// Destination.
        destination: String,
    },
    /// A handler cannot be built.
    #[error("the handler `{handler}` needs {what}, which the application does not have")]
    Missing {
        /// Handler.
        handler: String,
        /// What is missing.
        what: String,
    },
    /// The broker did not play along.
    #[error("binding `{binding}`")]
    Binder {
        /// Binding.
        binding: String,
        /// Cause.
        #[source]
        source: BinderError,
    },
    /// The output could not be asked for its partitions.
    #[error("binding `{binding}`")]
    Send {
        /// Binding.
        binding: String,
        /// Cause.
        #[source]
        source: Box<SendError>,
    },
}

fn suggest(name: Option<&str>) -> String {
    name.map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}
