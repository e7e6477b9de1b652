//! Why a request is not served, and the code and remark clients know for it.
//!
//! ```text
//! processor ─▶ Err(Refusal) ─▶ Refusal::reply ─▶ response code (one exhaustive match), remark (its text)
//! ```
//! Codes and remarks are those of Apache `RocketMQ` 5.3.3, so that clients and operators recognise them.
use std::net::SocketAddr;

use bindery_protocol::{
    bodies::BodyError,
    codes::{RequestCode, ResponseCode},
    frame::{HeaderError, Reply},
    message::record::RecordError,
    pop::ReceiptError,
};
use bindery_remoting::RemotingError;

use crate::{
    config::{ChangeError, LiveError},
    properties::PropertiesError,
    store::{AppendError, Store, StoreError},
    table::TableError,
    timer::TimingError,
};

/// Tail of several remarks.
const FAQ: &str = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details.";

/// What of the whole is closed, as the pull answer's `forbiddenType` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forbidden {
    /// The group may not consume.
    Group = 2,
    /// The topic may not be read.
    Topic = 3,
    /// Broadcasting is off for the group.
    Broadcast = 4,
    /// The group may not read the topic.
    Subscription = 5,
}

/// Why a request is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{0}")]
    Header(#[from] HeaderError),
    #[error("{0}")]
    Body(#[from] BodyError),
    #[error("the body's field `{field}` is missing or empty")]
    BodyField { field: &'static str },
    #[error(" request type {} not supported", code.0)]
    NotSupported { code: RequestCode },
    #[error(" request type {} not supported: {what}", code.0)]
    Absent {
        code: RequestCode,
        what: &'static str,
    },
    #[error("this request only for controllerMode ")]
    NoController,
    #[error("[OVERLOAD]system busy, start flow control for a while")]
    Overload,
    #[error("[REJECTREQUEST]system busy, start flow control for a while")]
    Busy,
    #[error("the broker is starting or stopping")]
    NotServing,
    #[error(
        "administration from {peer} is refused: it is served to this host only while access control is off"
    )]
    AdminFromAfar { peer: SocketAddr },
    #[error("broker unable to service, until {until}")]
    NotYet { until: i64 },
    #[error("the broker[{broker}] sending message is forbidden")]
    BrokerNotWritable { broker: String },
    #[error("the broker[{broker}] pulling message is forbidden")]
    BrokerNotReadable { broker: String },
    #[error("{0}")]
    TopicName(bindery_protocol::names::NameError),
    #[error("Sending message to topic[{topic}] is forbidden.")]
    TopicForbidden { topic: String },
    #[error("The topic[{topic}] is conflict with system topic.")]
    SystemTopic { topic: String },
    #[error("topic[{topic}] not exist, apply first please!{FAQ}")]
    TopicUnknown { topic: String },
    #[error("Topic {topic} not exist!")]
    OffsetTopicUnknown { topic: String },
    #[error("Group {group} not exist!")]
    OffsetGroupUnknown { group: String },
    #[error("request queueId[{queue_id}] is illegal, {topic_config} Producer: {producer}")]
    SendQueue {
        queue_id: i32,
        topic_config: String,
        producer: SocketAddr,
    },
    #[error(
        "queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{queues}] consumer:[/{consumer}]"
    )]
    PullQueue {
        queue_id: i32,
        topic: String,
        queues: i32,
        consumer: SocketAddr,
    },
    #[error("{queue_id}@{topic} is not exist!")]
    NoQueue { topic: String, queue_id: i32 },
    #[error("The stats <{name}> <{key}> not exist")]
    NoFigure { name: String, key: String },
    #[error("THe consumer group <{group}> not exist")]
    NothingToReset { group: String },
    #[error("the broker[{broker}] pop message is timeout too much")]
    PopTooLate { broker: String },
    #[error("the broker[{broker}] pop message is forbidden")]
    PopForbidden { broker: String },
    #[error("the broker[{broker}] pop message's num is greater than 32")]
    PopTooMany { broker: String },
    #[error("the broker[{broker}] pop message is forbidden because timerWheelEnable is false")]
    PopWithoutTimer { broker: String },
    #[error("invisibleTime is longer than the {longest} ms of timerMaxDelaySec")]
    HiddenTooLong { longest: u64 },
    #[error("the broker[{broker}] peeking message is forbidden")]
    PeekForbidden { broker: String },
    #[error("the topic[{topic}] peeking message is forbidden")]
    TopicNotPeekable { topic: String },
    #[error(
        "queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{queues}] consumer:[/{consumer}]"
    )]
    AckQueue {
        queue_id: i32,
        topic: String,
        queues: i32,
        consumer: SocketAddr,
    },
    #[error("offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{min}~{max}")]
    AckOutside {
        topic: String,
        queue_id: i32,
        offset: i64,
        min: i64,
        max: i64,
    },
    #[error("offset is illegal, key:{key}, old:{before}, commit:{offset}, next:-1, /{consumer}")]
    AckNotHandedOut {
        key: String,
        before: i64,
        offset: i64,
        consumer: SocketAddr,
    },
    #[error("{0}")]
    Receipt(#[from] ReceiptError),
    #[error(
        "there is no revive queue {revive_queue}, this broker has {queues}: the receipt is not one of its own"
    )]
    ReviveQueue { revive_queue: i32, queues: i32 },
    #[error("retry topic is not allowed to set mode")]
    RetryTopicMode,
    #[error("topic[{topic}] not exist")]
    ModeTopicUnknown { topic: String },
    #[error("subscription group does not exist")]
    ModeGroupUnknown,
    #[error("batch request does not support retry group {topic}")]
    BatchToRetry { topic: String },
    #[error("a batch holds ordinary messages only, this one has {what}")]
    BatchKind { what: &'static str },
    #[error("message topic length too long {length}")]
    BatchTopicTooLong { length: usize },
    #[error("the message has no body")]
    NoBody,
    #[error(
        "the message is illegal, maybe msg body or properties length not matched. msg body length limit {limit}B, msg properties length limit 32KB."
    )]
    MessageIllegal { limit: usize },
    #[error("{0}")]
    Batch(#[from] bindery_protocol::message::batch::BatchError),
    #[error("the broker[{broker}] sending transaction message is forbidden")]
    TransactionRefused { broker: String },
    #[error("Transaction message sent to a slave; only the master ends transactions")]
    TransactionOnSlave,
    #[error("Find prepared transaction message failed")]
    HalfMissing,
    #[error("The producer group wrong")]
    TransactionGroup,
    #[error("The transaction state table offset wrong")]
    TransactionTableOffset,
    #[error("The commit log offset wrong")]
    TransactionLogOffset,
    #[error("the transaction {key} outlived its CHECK_IMMUNITY_TIME_IN_SECONDS, its check decides")]
    TransactionTooLate { key: String },
    #[error(
        "the message at {offset} is none that was given up: give the id it has in TRANS_CHECK_MAX_TIME_TOPIC"
    )]
    NotGivenUp { offset: i64 },
    #[error("{0}")]
    Timing(#[from] TimingError),
    #[error("The checkpoint is null")]
    TimerCheckPoint,
    #[error("The timer metrics is null")]
    TimerMetrics,
    #[error("recall failed, operation is forbidden")]
    RecallForbidden,
    #[error("recall failed, broker service not available")]
    RecallClosed,
    #[error("recall failed, the topic[{topic}] not exist")]
    RecallTopicUnknown { topic: String },
    #[error("{0}")]
    RecallHandle(#[from] bindery_protocol::message::RecallHandleError),
    #[error("recall failed, topic not match")]
    RecallTopic,
    #[error("recall failed, broker service not available")]
    RecallBroker,
    #[error("recall failed, timestamp invalid")]
    RecallTime,
    #[error("recall failed, execute error: {reason}")]
    RecallFailed { reason: String },
    #[error(
        "service not available now. It may be caused by one of the following reasons: the broker's disk is full [CL: {log:5.2} CQ: {queues:5.2} INDEX: {queues:5.2}], messages are put to the slave, message store has been shut down, etc."
    )]
    StoreUnavailable {
        /// Used share of the volumes of commit log, and of queues and index.
        log: f64,
        queues: f64,
    },
    #[error(
        "{name:?} in INNER_MULTI_DISPATCH is not possible: light queues are named %LMQ% and letters, digits, %, |, _ or -"
    )]
    LightQueueName { name: String },
    #[error(
        "[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]broker config enableLmq and enableMultiDispatch, lmq consumeQueue num exceed maxLmqConsumeQueueNum config num, default limit 2w. ({most})"
    )]
    TooManyLightQueues { most: usize },
    #[error("the topic {topic} is of queue.type BatchCQ: it takes batches with a unique key only")]
    BatchesOnly { topic: String },
    #[error("attempt to update an unchangeable attribute. key: {key}")]
    FixedAttribute { key: String },
    #[error("subscription group not exist, {group} {FAQ}")]
    SendGroupUnknown { group: String },
    #[error("subscription group [{group}] does not exist, {FAQ}")]
    GroupUnknown { group: String },
    #[error("The group name is not valid: {0}")]
    GroupName(bindery_protocol::names::NameError),
    #[error(
        "The group name has {length} characters, at most {most} are possible: topics are named after it"
    )]
    GroupTooLong { length: usize, most: usize },
    #[error("{what} is {count}, it must be from {least} to {most}")]
    QueueCount {
        what: &'static str,
        count: i32,
        least: i32,
        most: i32,
    },
    #[error("subscription group no permission, {group}")]
    GroupForbidden { group: String },
    #[error("the topic[{topic}] pulling message is forbidden")]
    TopicNotReadable { topic: String },
    #[error("the topic[{topic}] sending message is forbidden")]
    TopicNotWritable { topic: String },
    #[error("the consumer group[{group}] can not consume by broadcast way")]
    BroadcastForbidden { group: String },
    #[error("the consumer group[{group}] is forbidden for topic[{topic}]")]
    ReadingForbidden { group: String, topic: String },
    #[error("lite pull is not enabled on this broker")]
    LitePullOff,
    #[error("parse the consumer's subscription failed")]
    SubscriptionUnreadable,
    #[error("{0}")]
    Filter(#[from] bindery_protocol::filter::FilterError),
    #[error("The broker's consumer filter data is not exist!Your expression may be wrong!")]
    FilterUnknown,
    #[error("the consumer's group info not exist{FAQ}")]
    GroupOffline,
    #[error("the consumer's subscription not exist{FAQ}")]
    NotSubscribed,
    #[error("the consumer's subscription not latest")]
    SubscriptionOld,
    #[error("The broker does not support consumer to filter message by {expression_type}")]
    FilterUnsupported { expression_type: String },
    #[error("no consumer for this group, {group}")]
    NoConsumer { group: String },
    #[error("the consumer group[{group}] not online")]
    ConsumerOffline { group: String },
    #[error("the producer group[{group}] not exist")]
    ProducerOffline { group: String },
    #[error("The Consumer <{group}> <{client_id}> not online")]
    ClientOffline { group: String, client_id: String },
    #[error("invoke consumer <{group}> <{client_id}> Exception: {source}")]
    ClientSilent {
        group: String,
        client_id: String,
        #[source]
        source: RemotingError,
    },
    #[error("reply message properties[REPLY_TO_CLIENT] is null")]
    ReplyToNobody,
    #[error("push reply message fail, channel of <{client_id}> not found.")]
    RequesterUnknown { client_id: String },
    // Without a blank in Apache's broker too.
    #[error("push reply message to {client_id}fail.")]
    ReplyNotTaken { client_id: String },
    #[error("look message by offset failed, {offset}")]
    SendBackNotFound { offset: i64 },
    #[error("can not find message by the offset, {offset}")]
    MessageNotFound { offset: i64 },
    #[error("can not find message, maybe time range not correct")]
    QueryEmpty,
    #[error("Not found, do not set to zero, maybe this group boot first")]
    OffsetNotFoundNoZero,
    #[error("Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")]
    OffsetNotFound,
    #[error(
        "the offset {offset} to reset to lies outside of the queue {queue_id} of topic {topic}"
    )]
    ResetOutside {
        topic: String,
        queue_id: i32,
        offset: i64,
    },
    #[error(
        "there is no offset {offset} of queue {queue_id} of topic {topic}, which has {queues} queues"
    )]
    CommitOutside {
        topic: String,
        queue_id: i32,
        queues: i32,
        offset: i64,
    },
    #[error("{what} `{text}` is not understood")]
    BadText { what: &'static str, text: String },
    #[error("the record is not readable: {0}")]
    Record(#[from] RecordError),
    #[error("the body is no properties text: {0}")]
    Properties(#[source] PropertiesError),
    #[error("the body is no UTF-8 text: {0}")]
    Encoding(#[source] std::str::Utf8Error),
    #[error("{0}")]
    Config(#[from] LiveError),
    #[error("the broker can't keep the change: {0}")]
    Table(#[from] TableError),
    #[error("the store failed: {0}")]
    Store(#[from] StoreError),
}

impl Refusal {
    /// The code clients act on.
    #[expect(clippy::too_many_lines, reason = "one exhaustive match")]
    pub(crate) fn code(&self) -> ResponseCode {
        match self {
            Self::Header(_)
            | Self::Body(_)
            | Self::BodyField { .. }
            | Self::NotYet { .. }
            | Self::NoController
            | Self::NotGivenUp { .. }
            | Self::NoQueue { .. }
            | Self::NoFigure { .. }
            | Self::NothingToReset { .. }
            | Self::Timing(TimingError::Off | TimingError::Crowded { .. })
            | Self::TimerCheckPoint
            | Self::TimerMetrics
            | Self::RecallFailed { .. }
            | Self::PopWithoutTimer { .. }
            | Self::Receipt(_)
            | Self::ReviveQueue { .. }
            | Self::HalfMissing
            | Self::TransactionGroup
            | Self::TransactionTableOffset
            | Self::TransactionLogOffset
            | Self::FilterUnsupported { .. }
            | Self::NoConsumer { .. }
            | Self::ProducerOffline { .. }
            | Self::ClientOffline { .. }
            | Self::ReplyToNobody
            | Self::RequesterUnknown { .. }
            | Self::ReplyNotTaken { .. }
            | Self::SendBackNotFound { .. }
            | Self::MessageNotFound { .. }
            | Self::ResetOutside { .. }
            | Self::Record(_)
            | Self::TooManyLightQueues { .. }
            | Self::FixedAttribute { .. }
            | Self::Table(_)
            | Self::Store(_) => ResponseCode::SYSTEM_ERROR,
            Self::Overload | Self::Busy => ResponseCode::SYSTEM_BUSY,
            Self::TransactionOnSlave => ResponseCode::SLAVE_NOT_AVAILABLE,
            Self::NotSupported { .. } | Self::Absent { .. } => {
                ResponseCode::REQUEST_CODE_NOT_SUPPORTED
            }
            Self::TransactionTooLate { .. }
            | Self::RecallHandle(_)
            | Self::RecallTopic
            | Self::RecallBroker
            | Self::RecallTime => ResponseCode::ILLEGAL_OPERATION,
            Self::NoBody
            | Self::BatchToRetry { .. }
            | Self::BatchKind { .. }
            | Self::BatchesOnly { .. }
            | Self::BatchTopicTooLong { .. }
            | Self::MessageIllegal { .. }
            | Self::Timing(TimingError::Illegal { .. })
            | Self::AckQueue { .. }
            | Self::AckNotHandedOut { .. }
            | Self::Batch(_) => ResponseCode::MESSAGE_ILLEGAL,
            Self::NotServing | Self::RecallClosed | Self::StoreUnavailable { .. } => {
                ResponseCode::SERVICE_NOT_AVAILABLE
            }
            Self::AdminFromAfar { .. }
            | Self::RecallForbidden
            | Self::BrokerNotWritable { .. }
            | Self::BrokerNotReadable { .. }
            | Self::TopicForbidden { .. }
            | Self::TransactionRefused { .. }
            | Self::GroupForbidden { .. }
            | Self::PopForbidden { .. }
            | Self::PeekForbidden { .. }
            | Self::TopicNotPeekable { .. }
            | Self::RetryTopicMode
            | Self::TopicNotReadable { .. }
            | Self::TopicNotWritable { .. }
            | Self::BroadcastForbidden { .. }
            | Self::ReadingForbidden { .. }
            | Self::LitePullOff => ResponseCode::NO_PERMISSION,
            Self::PopTooLate { .. } => ResponseCode::POLLING_TIMEOUT,
            Self::AckOutside { .. } => ResponseCode::NO_MESSAGE,
            Self::TopicUnknown { .. }
            | Self::OffsetTopicUnknown { .. }
            | Self::RecallTopicUnknown { .. }
            | Self::ModeTopicUnknown { .. } => ResponseCode::TOPIC_NOT_EXIST,
            Self::QueryEmpty | Self::OffsetNotFoundNoZero | Self::OffsetNotFound => {
                ResponseCode::QUERY_NOT_FOUND
            }
            Self::SubscriptionUnreadable | Self::Filter(_) => {
                ResponseCode::SUBSCRIPTION_PARSE_FAILED
            }
            Self::FilterUnknown => ResponseCode::FILTER_DATA_NOT_EXIST,
            Self::GroupOffline | Self::NotSubscribed => ResponseCode::SUBSCRIPTION_NOT_EXIST,
            Self::SubscriptionOld => ResponseCode::SUBSCRIPTION_NOT_LATEST,
            Self::SendGroupUnknown { .. }
            | Self::GroupUnknown { .. }
            | Self::OffsetGroupUnknown { .. }
            | Self::ModeGroupUnknown => ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            Self::TopicName(_)
            | Self::LightQueueName { .. }
            | Self::SystemTopic { .. }
            | Self::SendQueue { .. }
            | Self::PullQueue { .. }
            | Self::PopTooMany { .. }
            | Self::HiddenTooLong { .. }
            | Self::GroupName(_)
            | Self::GroupTooLong { .. }
            | Self::QueueCount { .. }
            | Self::CommitOutside { .. }
            | Self::BadText { .. }
            | Self::Properties(_)
            | Self::Encoding(_) => ResponseCode::INVALID_PARAMETER,
            Self::Config(error) => match error {
                LiveError::Refused(ChangeError::BlackListed | ChangeError::Bound { .. }) => {
                    ResponseCode::NO_PERMISSION
                }
                LiveError::Refused(ChangeError::Mistake(_)) => ResponseCode::INVALID_PARAMETER,
                LiveError::Unreadable(_) | LiveError::NotKept { .. } => ResponseCode::SYSTEM_ERROR,
            },
            Self::ConsumerOffline { .. } => ResponseCode::CONSUMER_NOT_ONLINE,
            Self::ClientSilent { .. } => ResponseCode::CONSUME_MSG_TIMEOUT,
        }
    }

    /// What of the whole is closed, for the pull answers that say so.
    pub(crate) fn forbidden(&self) -> Option<Forbidden> {
        match self {
            Self::GroupForbidden { .. } => Some(Forbidden::Group),
            Self::TopicNotReadable { .. } => Some(Forbidden::Topic),
            Self::BroadcastForbidden { .. } => Some(Forbidden::Broadcast),
            Self::ReadingForbidden { .. } => Some(Forbidden::Subscription),
            _ => None,
        }
    }

    /// The answer.
    pub(crate) fn reply(&self) -> Reply {
        let mut reply = Reply::error(self.code(), self.to_string());
        if let Some(forbidden) = self.forbidden() {
            reply.ext.put_integer("forbiddenType", forbidden as i32);
        }
        reply
    }

    /// What a failed append is to the sender.
    pub(crate) fn append(error: &AppendError, store: &Store) -> Self {
        match error {
            AppendError::BodyTooLong { .. }
            | AppendError::PropertiesTooLong { .. }
            | AppendError::RecordTooLong { .. }
            | AppendError::Topic { .. }
            | AppendError::Batch => Self::MessageIllegal {
                limit: store.config().max_message_size,
            },
            AppendError::LightQueue { name } => Self::LightQueueName { name: name.clone() },
            AppendError::TooManyLightQueues { most } => Self::TooManyLightQueues { most: *most },
            AppendError::Closed | AppendError::VolumeFull { .. } | AppendError::Store(_) => {
                let stats = store.stats();
                Self::StoreUnavailable {
                    log: stats.disk_ratio,
                    queues: stats.queue_disk_ratio,
                }
            }
        }
    }
}
