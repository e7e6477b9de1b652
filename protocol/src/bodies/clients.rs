//! Clients seen from the broker: connections, locks, offsets pushed to them, and what they say about themselves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ConsumeFromWhere, ConsumeType, MessageModel, MessageQueue, QueueMap, SubscriptionData,
};
use crate::frame::Language;

/// A client's connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientConnection {
    /// `ip:port`.
    pub client_addr: String,
    /// Client id.
    pub client_id: String,
    /// Language of the client.
    pub language: Language,
    /// Version ordinal of the client.
    pub version: i32,
}

impl Default for ClientConnection {
    fn default() -> Self {
        Self {
            client_addr: String::new(),
            client_id: String::new(),
            language: Language::JAVA,
            version: 0,
        }
    }
}

/// The connections of a consumer group, the answer to 203.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerConnection {
    /// One a client.
    pub connection_set: Vec<ClientConnection>,
    /// Where a new group starts.
    pub consume_from_where: ConsumeFromWhere,
    /// How it gets its messages.
    pub consume_type: ConsumeType,
    /// Whether the group shares the messages.
    pub message_model: MessageModel,
    /// By topic.
    pub subscription_table: BTreeMap<String, SubscriptionData>,
}

/// The connections of a producer group, the answer to 204.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProducerConnection {
    /// One a client.
    pub connection_set: Vec<ClientConnection>,
}

/// All producers, the answer to 328.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProducerTable {
    /// By group.
    pub data: BTreeMap<String, Vec<ProducerInfo>>,
}

/// One producer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProducerInfo {
    /// Client id.
    pub client_id: String,
    /// Language of the client.
    pub language: Language,
    /// Last heartbeat, ms since 1970.
    pub last_update_timestamp: i64,
    /// `/ip:port`, the slash included.
    #[serde(rename = "remoteIP")]
    pub remote_ip: String,
    /// Version ordinal of the client.
    pub version: i32,
}

impl Default for ProducerInfo {
    fn default() -> Self {
        let (client_id, remote_ip) = (String::new(), String::new());
        Self {
            client_id,
            language: Language::JAVA,
            last_update_timestamp: 0,
            remote_ip,
            version: 0,
        }
    }
}

/// Client ids of a group, the answer to 38.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerIds {
    /// The ids.
    pub consumer_id_list: Vec<String>,
}

/// The body of 41 and 42.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LockBatchBody {
    /// Who locks.
    pub client_id: String,
    /// For which group.
    pub consumer_group: String,
    /// Which queues.
    pub mq_set: Vec<MessageQueue>,
    /// Not on the other brokers of a replicated lock.
    pub only_this_broker: bool,
}

/// The answer to 41.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LockBatchReply {
    /// The queues that the caller holds now.
    #[serde(rename = "lockOKMQSet")]
    pub lock_ok_mq_set: Vec<MessageQueue>,
}

/// The body of 220, the answer to 222.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResetOffsetBody {
    /// Offset to go on at.
    pub offset_table: QueueMap<i64>,
}

/// [`ResetOffsetBody`] as the C++ client reads it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResetOffsetList {
    /// One a queue.
    pub offset_table: Vec<QueueOffset>,
}

/// A queue and an offset in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueOffset {
    /// Name of the broker.
    pub broker_name: String,
    /// Counts messages.
    pub offset: i64,
    /// Number of the queue.
    pub queue_id: i32,
    /// Topic.
    pub topic: String,
}

/// The answers to 221 and 223.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerStatusBody {
    /// Of each client, from a broker.
    pub consumer_table: BTreeMap<String, QueueMap<i64>>,
    /// Of itself, from a client.
    pub message_queue_table: QueueMap<i64>,
}

/// What a consumer says about itself, the answer to 307.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerRunningInfo {
    /// Stacks of its threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jstack: Option<String>,
    /// Queues that are popped.
    pub mq_pop_table: QueueMap<Value>,
    /// Queues that are pulled.
    pub mq_table: QueueMap<ProcessQueueInfo>,
    /// Its settings and more; see the `PROP_` constants.
    pub properties: BTreeMap<String, String>,
    /// By topic.
    pub status_table: BTreeMap<String, ConsumeStatus>,
    /// Its subscriptions.
    pub subscription_set: Vec<SubscriptionData>,
    /// Free.
    pub user_consumer_info: BTreeMap<String, String>,
}

impl ConsumerRunningInfo {
    /// Name servers.
    pub const PROP_NAMESERVER_ADDR: &'static str = "PROP_NAMESERVER_ADDR";
    /// `CONSUME_PASSIVELY` and the like.
    pub const PROP_CONSUME_TYPE: &'static str = "PROP_CONSUME_TYPE";
    /// `true` for consumers in order.
    pub const PROP_CONSUME_ORDERLY: &'static str = "PROP_CONSUMEORDERLY";
    /// Threads that handle messages.
    pub const PROP_THREADPOOL_CORE_SIZE: &'static str = "PROP_THREADPOOL_CORE_SIZE";
    /// Ms since 1970.
    pub const PROP_CONSUMER_START_TIMESTAMP: &'static str = "PROP_CONSUMER_START_TIMESTAMP";
    /// Such as `V5_3_3`.
    pub const PROP_CLIENT_VERSION: &'static str = "PROP_CLIENT_VERSION";
}

/// A queue in a consumer's memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProcessQueueInfo {
    /// Messages waiting.
    pub cached_msg_count: i32,
    /// Last of them.
    pub cached_msg_max_offset: i64,
    /// First of them.
    pub cached_msg_min_offset: i64,
    /// Their size, MiB.
    pub cached_msg_size_in_mi_b: i32,
    /// Committed offset.
    pub commit_offset: i64,
    /// Whether the queue was taken away; misspelled in Java, not in Go.
    #[serde(alias = "dropped")]
    pub droped: bool,
    /// Ms since 1970.
    pub last_consume_timestamp: i64,
    /// Ms since 1970.
    pub last_lock_timestamp: i64,
    /// Ms since 1970.
    pub last_pull_timestamp: i64,
    /// Whether the broker has locked the queue for this consumer.
    pub locked: bool,
    /// Messages being handled in order.
    pub transaction_msg_count: i32,
    /// Last of them.
    pub transaction_msg_max_offset: i64,
    /// First of them.
    pub transaction_msg_min_offset: i64,
    /// How often unlocking failed.
    pub try_unlock_times: i64,
}

/// A consumer's speed on a topic.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumeStatus {
    /// Failures in the last hour.
    #[serde(rename = "consumeFailedMsgs")]
    pub consume_failed_msgs: i64,
    /// Failures a second.
    #[serde(rename = "consumeFailedTPS")]
    pub consume_failed_tps: f64,
    /// Successes a second.
    #[serde(rename = "consumeOKTPS")]
    pub consume_ok_tps: f64,
    /// Ms a message.
    #[serde(rename = "consumeRT")]
    pub consume_rt: f64,
    /// Ms a pull.
    #[serde(rename = "pullRT")]
    pub pull_rt: f64,
    /// Messages pulled a second.
    #[serde(rename = "pullTPS")]
    pub pull_tps: f64,
}

text_enum! {
    /// What came of handling a message on demand.
    pub enum ConsumeResult {
        /// Done.
        #[default]
        Success = "CR_SUCCESS",
        /// Try again later.
        Later = "CR_LATER",
        /// Rolled back.
        Rollback = "CR_ROLLBACK",
        /// Committed.
        Commit = "CR_COMMIT",
        /// The handler failed.
        ThrowException = "CR_THROW_EXCEPTION",
        /// The handler said nothing.
        ReturnNull = "CR_RETURN_NULL",
    }
}

/// The answer to 309.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeDirectlyResult {
    /// Orderly consumers: whether offsets are committed by themselves.
    pub auto_commit: bool,
    /// Outcome.
    pub consume_result: ConsumeResult,
    /// Whether the consumer is an orderly one.
    pub order: bool,
    /// Error text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Time it took, ms.
    pub spent_time_mills: i64,
}
