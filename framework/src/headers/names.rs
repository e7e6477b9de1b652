//! The header names that have a meaning of their own, and which spelling stands for which.
//!
//! ```text
//! "rocketmq_TAGS" ─┐
//! "ROCKET_TAGS"   ─┼─▶ canonical ─▶ "TAGS"        "rocketmq_TOPIC" / "ROCKET_MQ_TOPIC" ─▶ "TOPIC"
//! "TAGS"          ─┘                              anything else stays as it is
//! ```
//!
//! The two prefixes are those of Spring Cloud Alibaba's RocketMQ binder before (`rocketmq_`) and after
//! (`ROCKET_`) its rewrite; services written against either look headers up by their own spelling.

/// The content type of the payload, for instance `application/json`.
pub const CONTENT_TYPE: &str = "contentType";
/// What Spring Cloud Stream up to 2.x called the content type; read, never written.
pub const ORIGINAL_CONTENT_TYPE: &str = "originalContentType";
/// The in-process attempt, counted from 1.
pub const DELIVERY_ATTEMPT: &str = "deliveryAttempt";
/// The partition chosen for a message that is being sent.
pub const PARTITION: &str = "scst_partition";
/// A partition the sender insists on.
pub const PARTITION_OVERRIDE: &str = "scst_partitionOverride";
/// The destination a message is sent to at run time, instead of the binding's own.
pub const SEND_TO_DESTINATION: &str = "spring.cloud.stream.sendto.destination";
/// The types of non-text headers as the older binder writes them; understood on receipt, never sent.
pub const HEADER_TYPES: &str = "spring_json_header_types";

/// The tag of a message.
pub const TAGS: &str = "TAGS";
/// The keys of a message, separated by blanks.
pub const KEYS: &str = "KEYS";
/// The delay level of a message to be sent, 0 (none) to 18.
pub const DELAY: &str = "DELAY";
/// Seconds after which a message to be sent is delivered.
pub const TIMER_DELAY_SEC: &str = "TIMER_DELAY_SEC";
/// Milliseconds after which a message to be sent is delivered.
pub const TIMER_DELAY_MS: &str = "TIMER_DELAY_MS";
/// When a message to be sent is delivered, milliseconds since 1970.
pub const TIMER_DELIVER_MS: &str = "TIMER_DELIVER_MS";
/// The same, under the name that Alibaba Cloud's clients use.
pub const START_DELIVER_TIME: &str = "__STARTDELIVERTIME";
/// The application's own integer in the message.
pub const FLAG: &str = "FLAG";
/// Whether a send waits until the message is stored as safely as the broker is configured to.
pub const WAIT: &str = "WAIT";
/// The argument of a local transaction; passed in memory, never sent.
pub const TRANSACTIONAL_ARGS: &str = "TRANSACTIONAL_ARGS";

/// Facts about a received message; they can be read but not sent.
pub(crate) mod fact {
    pub(crate) const TOPIC: &str = "TOPIC";
    pub(crate) const MESSAGE_ID: &str = "MESSAGE_ID";
    pub(crate) const BORN_TIMESTAMP: &str = "BORN_TIMESTAMP";
    pub(crate) const BORN_HOST: &str = "BORN_HOST";
    pub(crate) const STORE_TIMESTAMP: &str = "STORE_TIMESTAMP";
    pub(crate) const QUEUE_ID: &str = "QUEUE_ID";
    pub(crate) const QUEUE_OFFSET: &str = "QUEUE_OFFSET";
    pub(crate) const SYS_FLAG: &str = "SYS_FLAG";
    pub(crate) const TRANSACTION_ID: &str = "TRANSACTION_ID";
    pub(crate) const RECONSUME_TIMES: &str = "RECONSUME_TIMES";
}

/// Names under a prefix that we resolve: the part after the prefix, and what it stands for.
const PREFIXED: &[(&str, &str)] = &[
    ("TAGS", TAGS),
    ("KEYS", KEYS),
    ("DELAY", DELAY),
    ("FLAG", FLAG),
    ("MQ_FLAG", FLAG),
    ("WAIT", WAIT),
    ("WAIT_STORE_MSG_OK", WAIT),
    ("TRANSACTIONAL_ARGS", TRANSACTIONAL_ARGS),
    ("TRANSACTIONAL_ARG", TRANSACTIONAL_ARGS),
    ("TOPIC", fact::TOPIC),
    ("MQ_TOPIC", fact::TOPIC),
    ("MESSAGE_ID", fact::MESSAGE_ID),
    ("MQ_MESSAGE_ID", fact::MESSAGE_ID),
    ("BORN_TIMESTAMP", fact::BORN_TIMESTAMP),
    ("MQ_BORN_TIMESTAMP", fact::BORN_TIMESTAMP),
    ("BORN_HOST", fact::BORN_HOST),
    ("MQ_BORN_HOST", fact::BORN_HOST),
    ("STORE_TIMESTAMP", fact::STORE_TIMESTAMP),
    ("MQ_STORE_TIMESTAMP", fact::STORE_TIMESTAMP),
    ("QUEUE_ID", fact::QUEUE_ID),
    ("MQ_QUEUE_ID", fact::QUEUE_ID),
    ("QUEUE_OFFSET", fact::QUEUE_OFFSET),
    ("MQ_QUEUE_OFFSET", fact::QUEUE_OFFSET),
    ("SYS_FLAG", fact::SYS_FLAG),
    ("MQ_SYS_FLAG", fact::SYS_FLAG),
    ("TRANSACTION_ID", fact::TRANSACTION_ID),
    ("MQ_TRANSACTION_ID", fact::TRANSACTION_ID),
    ("RECONSUME_TIMES", fact::RECONSUME_TIMES),
    ("MQ_RECONSUME_TIMES", fact::RECONSUME_TIMES),
];

/// Bare names that are another name's second spelling.
const BARE: &[(&str, &str)] = &[
    ("MQ_FLAG", FLAG),
    ("WAIT_STORE_MSG_OK", WAIT),
    ("TRANSACTIONAL_ARG", TRANSACTIONAL_ARGS),
    ("USER_TRANSACTIONAL_ARGS", TRANSACTIONAL_ARGS),
];

/// A name resolved: the header it stands for, and whether that is a fact about a received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolved<'a> {
    /// A header that was set, by this side or by the sender.
    Set(&'a str),
    /// A fact of the delivery.
    Fact(&'static str),
}

/// Resolves both prefixes and second spellings; a name that means nothing to us stays as it is.
pub(crate) fn resolve(name: &str) -> Resolved<'_> {
    let stripped = name
        .strip_prefix("ROCKET_")
        .or_else(|| name.strip_prefix("rocketmq_"));
    if let Some(rest) = stripped {
        return match PREFIXED.iter().find(|(spelling, _)| *spelling == rest) {
            Some((_, canonical)) if is_fact(canonical) => Resolved::Fact(canonical),
            Some((_, canonical)) => Resolved::Set(canonical),
            None => Resolved::Set(name),
        };
    }
    let canonical = BARE.iter().find(|(spelling, _)| *spelling == name);
    Resolved::Set(canonical.map_or(name, |(_, canonical)| canonical))
}

fn is_fact(canonical: &str) -> bool {
    use fact::{
        BORN_HOST, BORN_TIMESTAMP, MESSAGE_ID, QUEUE_ID, QUEUE_OFFSET, RECONSUME_TIMES,
        STORE_TIMESTAMP, SYS_FLAG, TOPIC, TRANSACTION_ID,
    };
    matches!(
        canonical,
        TOPIC
            | MESSAGE_ID
            | BORN_TIMESTAMP
            | BORN_HOST
            | STORE_TIMESTAMP
            | QUEUE_ID
            | QUEUE_OFFSET
            | SYS_FLAG
            | TRANSACTION_ID
            | RECONSUME_TIMES
    )
}

/// Headers that Java puts on each message object anew (`id`, `timestamp`) or that serve one hop only: kept when
/// received, silently left out when sent.
pub(crate) fn is_one_hop(name: &str) -> bool {
    matches!(
        name,
        "id" | "timestamp"
            | "target-protocol"
            | HEADER_TYPES
            | ORIGINAL_CONTENT_TYPE
            | DELIVERY_ATTEMPT
            | PARTITION_OVERRIDE
            | SEND_TO_DESTINATION
            | TRANSACTIONAL_ARGS
            | "sourceData"
            | "replyChannel"
            | "errorChannel"
            | "scst_nativeHeadersPresent"
            | "scst_version"
            | "scst_targetDestination"
            | "scst_batchHeaders"
    )
}

/// The property names RocketMQ keeps for itself (`MessageConst.PROPERTY_*` of its client 5.3.3), each with what to use
/// instead. A property of such a name set by a user would change how the broker treats the message.
const RESERVED: &[(&str, &str)] = &[
    ("RETRY_TOPIC", ""),
    ("REAL_TOPIC", ""),
    ("REAL_QID", ""),
    ("TRAN_MSG", "an output with `producerType: Trans`"),
    ("PGROUP", "the producer's `group` in application.yaml"),
    ("MIN_OFFSET", ""),
    ("MAX_OFFSET", ""),
    ("BUYER_ID", ""),
    ("ORIGIN_MESSAGE_ID", ""),
    ("TRANSFER_FLAG", ""),
    ("CORRECTION_FLAG", ""),
    ("MQ2_FLAG", ""),
    ("RECONSUME_TIME", ""),
    ("MSG_REGION", ""),
    ("TRACE_ON", ""),
    ("UNIQ_KEY", "`Message::key` for a key of your own"),
    ("EXTEND_UNIQ_INFO", ""),
    (
        "MAX_RECONSUME_TIMES",
        "the consumer's `maxReconsumeTimes` in application.yaml",
    ),
    ("CONSUME_START_TIME", ""),
    ("TRAN_PREPARED_QUEUE_OFFSET", ""),
    ("TRANSACTION_CHECK_TIMES", ""),
    ("CHECK_IMMUNITY_TIME_IN_SECONDS", ""),
    ("INSTANCE_ID", ""),
    ("CORRELATION_ID", "the header `correlationId`"),
    ("REPLY_TO_CLIENT", ""),
    ("TTL", ""),
    ("ARRIVE_TIME", ""),
    ("PUSH_REPLY_TIME", ""),
    ("CLUSTER", ""),
    ("MSG_TYPE", ""),
    ("POP_CK", ""),
    ("POP_CK_OFFSET", ""),
    ("1ST_POP_TIME", ""),
    (
        "__SHARDINGKEY",
        "`partition-key-expression` in application.yaml",
    ),
    ("REQUEST_TIME", ""),
    ("INNER_MULTI_DISPATCH", ""),
    ("INNER_MULTI_QUEUE_OFFSET", ""),
    ("INNER_NUM", ""),
    ("TRACE_CONTEXT", ""),
    ("TIMER_DELAY_SEC", ""),
    ("TIMER_DELAY_MS", ""),
    ("TIMER_DELIVER_MS", ""),
    ("TIMER_ENQUEUE_MS", ""),
    ("TIMER_DEQUEUE_MS", ""),
    ("TIMER_ROLL_TIMES", ""),
    ("TIMER_OUT_MS", ""),
    ("TIMER_DEL_UNIQKEY", ""),
    (
        "TIMER_DELAY_LEVEL",
        "`Message::delay_level`, `Message::deliver_after` or `Message::deliver_at`",
    ),
    ("TIMER_LOG_VERSION", ""),
    ("__STARTDELIVERTIME", ""),
    ("__BORNHOST", ""),
    ("__CRC32#", ""),
    ("DLQ_ORIGIN_TOPIC", ""),
    ("DLQ_ORIGIN_MESSAGE_ID", ""),
    ("DLQ_ORIGIN_QUEUE_ID", ""),
    ("DLQ_ORIGIN_BROKER", ""),
    ("DLQ_ORIGIN_REGION", ""),
];

/// What to use instead of the reserved name, possibly nothing (`""`); `None` when the name is free.
pub(crate) fn reserved(name: &str) -> Option<&'static str> {
    RESERVED
        .iter()
        .find(|(reserved, _)| *reserved == name)
        .map(|(_, instead)| *instead)
}
