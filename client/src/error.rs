//! What a client call can end with, named for what the caller can do about it.
//!
//! ```text
//! RemotingError ─┐
//! answer code ───┼─▶ ClientError ─▶ is_retryable (send loop) · response_code (Java's numbers 10001…10005)
//! own checks ────┘
//! ```
use std::time::Duration;

use bindery_protocol::{
    codes::ResponseCode, frame::HeaderError, message::RecallHandleError, names::NameError,
};
use bindery_remoting::RemotingError;

/// Java's client-side codes, which never travel on the wire (`ClientErrorCode`).
pub mod client_code {
    /// The last cause was a failed connect.
    pub const CONNECT_BROKER: i32 = 10001;
    /// The last cause was a missing answer.
    pub const ACCESS_BROKER_TIMEOUT: i32 = 10002;
    /// The last cause was a broker without address.
    pub const BROKER_NOT_EXIST: i32 = 10003;
    /// No name server address is configured.
    pub const NO_NAME_SERVER: i32 = 10004;
    /// No route of the topic.
    pub const NOT_FOUND_TOPIC: i32 = 10005;
    /// A request was sent and no reply came in time.
    pub const REQUEST_TIMEOUT: i32 = 10006;
    /// A reply can't be made: the message is no request.
    pub const CREATE_REPLY_MESSAGE: i32 = 10007;
}

/// Why a call of this crate failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The list of name servers is empty.
    #[error("no name server address is configured")]
    NoNameServer,
    /// None of the name servers could be reached within the time allowed.
    #[error("none of the name servers {addrs:?} answered")]
    NameServersUnreachable {
        /// Those that were tried.
        addrs: Vec<String>,
        /// What the last one failed with.
        #[source]
        source: Box<ClientError>,
    },
    /// The name servers know no route of the topic.
    #[error("no route info of the topic {topic}")]
    TopicNotFound {
        /// Topic asked for.
        topic: String,
    },
    /// The route has no queue that allows what was asked.
    #[error("the topic {topic} has no queue to {purpose}")]
    NoQueue {
        /// Topic asked for.
        topic: String,
        /// `write to` or `read from`.
        purpose: &'static str,
    },
    /// The broker has no (suitable) address in any known route.
    #[error("the broker {broker} does not exist")]
    BrokerUnknown {
        /// Name of the broker.
        broker: String,
    },
    /// A server answered with an error code.
    #[error("{addr} answered code {}: {remark}", code.0)]
    Broker {
        /// Server that answered.
        addr: String,
        /// Its answer.
        code: ResponseCode,
        /// Its explanation, may be empty.
        remark: String,
    },
    /// The server can't be reached.
    #[error("cannot connect to {addr}")]
    Connect {
        /// Address tried.
        addr: String,
        /// Cause.
        #[source]
        source: RemotingError,
    },
    /// The time allowed for the call is over. The request may have been executed.
    #[error("{addr} gave no answer within {after:?}")]
    Timeout {
        /// Server asked, empty when the time was used up before one was chosen.
        addr: String,
        /// Time waited.
        after: Duration,
    },
    /// The request was sent, and no reply came in time. It may have been handled.
    #[error("send request message to <{topic}> OK, but wait reply message timeout, {} ms.", after.as_millis())]
    NoReply {
        /// Topic of the request.
        topic: String,
        /// Time allowed for the whole.
        after: Duration,
    },
    /// The connection broke or could not take the request. The request may have been executed.
    #[error("the request to {addr} was lost")]
    Lost {
        /// Server asked.
        addr: String,
        /// Cause.
        #[source]
        source: RemotingError,
    },
    /// All attempts to send a message failed.
    #[error("send [{attempts}] times, still failed, cost [{}]ms, topic: {topic}, brokers sent: {brokers:?}", elapsed.as_millis())]
    SendFailed {
        /// Topic of the message.
        topic: String,
        /// Attempts made.
        attempts: usize,
        /// Time from the call to the failure.
        elapsed: Duration,
        /// Broker names in the order of the attempts.
        brokers: Vec<String>,
        /// What the last attempt failed with.
        #[source]
        source: Box<ClientError>,
    },
    /// The message may not be sent.
    #[error(transparent)]
    MessageIllegal(#[from] MessageIllegal),
    /// A setting of the producer, consumer or client is not acceptable.
    #[error("{setting}: {problem}")]
    Config {
        /// Setting at fault.
        setting: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The group's name is blank, too long, has a character outside `%|a-zA-Z0-9_-`, or is one of the names that must be replaced.
    #[error("the {kind} group [{group}] is not acceptable")]
    GroupIllegal {
        /// `producer` or `consumer`.
        kind: &'static str,
        /// Group name.
        group: String,
        /// What is wrong with the name; nothing when it is `DEFAULT_PRODUCER` or `DEFAULT_CONSUMER`.
        #[source]
        source: Option<NameError>,
    },
    /// A group of this kind is registered at the same client already.
    #[error("the {kind} group [{group}] has been created before, specify another name please")]
    DuplicateGroup {
        /// `producer` or `consumer`.
        kind: &'static str,
        /// Group name.
        group: String,
    },
    /// The queue is not among those this consumer has now; a rebalance may have moved it.
    #[error("the queue {queue} is not assigned to this consumer")]
    NotAssigned {
        /// Queue named.
        queue: crate::MessageQueue,
    },
    /// The offset lies outside the queue.
    #[error("the offset {offset} is not between {min} and {max}")]
    OffsetOutside {
        /// Offset given.
        offset: i64,
        /// First message.
        min: i64,
        /// Behind the last message.
        max: i64,
    },
    /// The client, producer or consumer was shut down.
    #[error("{what} has been shut down")]
    ShutDown {
        /// What was called.
        what: &'static str,
    },
    /// Too many asynchronous sends are in flight.
    #[error("{limit} asynchronous sends are in flight already")]
    TooManyInFlight {
        /// Limit in force.
        limit: usize,
    },
    /// An answer's header can't be read.
    #[error("the answer of {addr} is not readable")]
    Header {
        /// Server that answered.
        addr: String,
        /// Cause.
        #[source]
        source: HeaderError,
    },
    /// An answer's or file's contents can't be read.
    #[error("cannot read {what}")]
    Decode {
        /// What was being read, with its origin.
        what: String,
        /// Cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A request's contents can't be written.
    #[error("cannot write {what}")]
    Encode {
        /// What was being written.
        what: &'static str,
        /// Cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A local file can't be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// File concerned.
        path: std::path::PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A task of the client ended without a result (it panicked, or the runtime is stopping).
    #[error("the task of {what} ended without a result")]
    TaskEnded {
        /// What was being done.
        what: &'static str,
    },
}

impl ClientError {
    /// Whether the same call may succeed when it is tried again, perhaps elsewhere.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Broker { code, .. } => crate::producer::DEFAULT_RETRY_CODES.contains(&code.0),
            Self::NameServersUnreachable { .. }
            | Self::BrokerUnknown { .. }
            | Self::Connect { .. }
            | Self::Timeout { .. }
            | Self::Lost { .. }
            | Self::TooManyInFlight { .. } => true,
            Self::SendFailed { source, .. } => source.is_retryable(),
            _ => false,
        }
    }

    /// Whether the server did not answer at all, as while it is away.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::NameServersUnreachable { .. }
                | Self::BrokerUnknown { .. }
                | Self::Connect { .. }
                | Self::Timeout { .. }
                | Self::Lost { .. }
        )
    }

    /// The number a Java program would see: the server's code, one of [`client_code`], 13 for an illegal message, or -1.
    #[must_use]
    pub fn response_code(&self) -> i32 {
        match self {
            Self::Broker { code, .. } => code.0,
            Self::SendFailed { source, .. } => source.response_code(),
            Self::MessageIllegal(illegal) => illegal.response_code(),
            Self::Connect { .. } | Self::Lost { .. } | Self::NameServersUnreachable { .. } => {
                client_code::CONNECT_BROKER
            }
            Self::Timeout { .. } => client_code::ACCESS_BROKER_TIMEOUT,
            Self::NoReply { .. } => client_code::REQUEST_TIMEOUT,
            Self::BrokerUnknown { .. } => client_code::BROKER_NOT_EXIST,
            Self::NoNameServer => client_code::NO_NAME_SERVER,
            Self::TopicNotFound { .. } => client_code::NOT_FOUND_TOPIC,
            _ => -1,
        }
    }

    /// Whether a server answered with this code.
    #[must_use]
    pub fn is_code(&self, code: ResponseCode) -> bool {
        matches!(self, Self::Broker { code: answered, .. } if *answered == code)
    }
}

impl From<RemotingError> for ClientError {
    fn from(source: RemotingError) -> Self {
        match source {
            RemotingError::Connect { ref addr, .. } => Self::Connect {
                addr: addr.clone(),
                source,
            },
            RemotingError::Timeout { addr, after } => Self::Timeout { addr, after },
            RemotingError::Closed { ref addr }
            | RemotingError::Busy { ref addr }
            | RemotingError::Frame { ref addr, .. } => Self::Lost {
                addr: addr.clone(),
                source,
            },
            other => Self::Lost {
                addr: String::new(),
                source: other,
            },
        }
    }
}

/// Why a message may not be sent, found before anything is sent. The order of the variants is the order of the checks, which is Java's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageIllegal {
    /// The topic's name is blank, too long, or has a character outside `%|a-zA-Z0-9_-`.
    #[error(transparent)]
    Topic(#[from] NameError),
    /// Clients may not write to this system topic.
    #[error("sending message to topic[{topic}] is forbidden")]
    TopicForbidden {
        /// Topic given.
        topic: String,
    },
    /// The body is empty.
    #[error("the message body length is zero")]
    BodyEmpty,
    /// The body is larger than the producer's limit.
    #[error("the message body size {size} is over max value, MAX: {max}")]
    BodyTooLarge {
        /// Bytes of the body before compression.
        size: usize,
        /// Limit in bytes.
        max: usize,
    },
    /// The property's name belongs to the system.
    #[error("the property<{name}> is used by system, input another please")]
    ReservedProperty {
        /// Name given.
        name: String,
    },
    /// The property's name or value is blank.
    #[error("the name or value of property [{name}] can not be null or blank string")]
    BlankProperty {
        /// Name given.
        name: String,
    },
    /// The property's name or value has a character (0x01 or 0x02) that separates properties on the wire.
    #[error("the property [{name}] contains a separator character")]
    PropertySeparator {
        /// Name given.
        name: String,
    },
    /// All properties together are longer than the 32,767 bytes that the format has room for.
    #[error("the message properties have {size} bytes, over max value {max}")]
    PropertiesTooLarge {
        /// Encoded length.
        size: usize,
        /// Limit in bytes.
        max: usize,
    },
    /// A batch has no messages.
    #[error("the batch is empty")]
    BatchEmpty,
    /// The messages of a batch differ in topic or in whether to wait for the store.
    #[error("the messages of a batch must have the same {what}")]
    BatchMixed {
        /// What differs.
        what: &'static str,
    },
    /// A message of a batch is of a kind that can't be sent in batches.
    #[error("{what} is not supported for batching")]
    BatchKind {
        /// What is in the way.
        what: &'static str,
    },
    /// The message is of a kind that can't be sent in a transaction.
    #[error("{what} is not supported for transactions")]
    TransactionKind {
        /// What is in the way.
        what: &'static str,
    },
    /// The text is not a handle that a send returned.
    #[error(transparent)]
    RecallHandle(#[from] RecallHandleError),
    /// Messages of retry and dead-letter topics can't be taken back.
    #[error("topic is not supported")]
    RecallTopic {
        /// Topic in the handle.
        topic: String,
    },
    /// The message's topic is not that of the queue it is to be sent to.
    #[error("message's topic [{topic}] not equal mq's topic [{queue_topic}]")]
    QueueTopic {
        /// Topic of the message.
        topic: String,
        /// Topic of the queue.
        queue_topic: String,
    },
    /// The message lacks a property without which it can't be replied to: it is no request.
    #[error("create reply message fail, requestMessage error, property[{property}] is null.")]
    NotARequest {
        /// Property that is missing.
        property: &'static str,
    },
    /// The queue selector chose an index that does not exist.
    #[error("select message queue return {index} of {count} queues")]
    QueueIndex {
        /// Index returned.
        index: usize,
        /// Queues there are.
        count: usize,
    },
}

impl MessageIllegal {
    /// Java's number: 13 for what concerns body and properties, -1 else.
    #[must_use]
    pub fn response_code(&self) -> i32 {
        match self {
            Self::BodyEmpty | Self::BodyTooLarge { .. } | Self::PropertiesTooLarge { .. } => 13,
            Self::NotARequest { .. } => client_code::CREATE_REPLY_MESSAGE,
            _ => -1,
        }
    }
}
