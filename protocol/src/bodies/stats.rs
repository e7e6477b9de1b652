//! Numbers: ends of queues, progress of groups, counters, replication.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{MessageQueue, QueueMap, SubscriptionData};

/// Ends of a topic's queues, the answer to 202.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicStatsTable {
    /// By queue.
    pub offset_table: QueueMap<TopicOffset>,
    /// Messages put a second.
    pub topic_put_tps: f64,
}

/// Ends of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicOffset {
    /// Store time of the last message, ms since 1970; 0 when empty.
    pub last_update_timestamp: i64,
    /// End.
    pub max_offset: i64,
    /// Start.
    pub min_offset: i64,
}

/// Progress of a group, the answer to 208.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeStats {
    /// Messages a second.
    pub consume_tps: f64,
    /// By queue.
    pub offset_table: QueueMap<OffsetProgress>,
}

/// Progress in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OffsetProgress {
    /// End of the queue.
    pub broker_offset: i64,
    /// Committed.
    pub consumer_offset: i64,
    /// Store time of the message before the committed offset, ms since 1970.
    pub last_timestamp: i64,
    /// Pulled.
    pub pull_offset: i64,
}

/// Progress of all groups, the answer to 317.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeStatsList {
    /// `ip:port`.
    pub broker_addr: String,
    /// By group: one entry a topic.
    pub consume_stats_list: Vec<BTreeMap<String, Vec<ConsumeStats>>>,
    /// Messages not consumed.
    pub total_diff: i64,
    /// Messages pulled and not consumed.
    pub total_inflight_diff: i64,
}

/// Names of groups, the answer to 300.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupList {
    /// The groups.
    pub group_list: BTreeSet<String>,
}

/// A group's subscription, the answer to 345.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionBody {
    /// Consumer group.
    pub group: String,
    /// Absent when it is not online.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_data: Option<SubscriptionData>,
    /// Topic.
    pub topic: String,
}

/// The answer to 303.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeTimeSpanBody {
    /// One a queue.
    pub consume_time_span_set: Vec<QueueTimeSpan>,
}

/// Store times between which a group works on a queue, ms since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueTimeSpan {
    /// Of the last message consumed.
    pub consume_time_stamp: i64,
    /// How far behind the consumer is, ms.
    pub delay_time: i64,
    /// Of the last message.
    pub max_time_stamp: i64,
    /// The queue.
    pub message_queue: MessageQueue,
    /// Of the first message.
    pub min_time_stamp: i64,
}

/// The answer to 308.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CorrectionOffsets {
    /// By queue id.
    pub correction_offsets: BTreeMap<i32, i64>,
}

/// One counter, the answer to 315.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BrokerStatsData {
    /// Over the last day.
    pub stats_day: BrokerStatsItem,
    /// Over the last hour.
    pub stats_hour: BrokerStatsItem,
    /// Over the last minute.
    pub stats_minute: BrokerStatsItem,
}

/// A counter over some time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BrokerStatsItem {
    /// Average an event.
    pub avgpt: f64,
    /// Sum.
    pub sum: i64,
    /// A second.
    pub tps: f64,
}

/// Entries of a consume queue, the answer to 321.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeQueueBody {
    /// The group's filter as JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_data: Option<String>,
    /// End of the queue.
    pub max_queue_index: i64,
    /// Start of the queue.
    pub min_queue_index: i64,
    /// The entries.
    pub queue_data: Vec<ConsumeQueueEntry>,
    /// The group's subscription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_data: Option<SubscriptionData>,
}

/// An entry of a consume queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeQueueEntry {
    /// Bits for the filter, when there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_map: Option<String>,
    /// Whether the filter lets it through.
    pub eval: bool,
    /// What the filter did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg: Option<String>,
    /// Bytes from the start of the commit log.
    pub physic_offset: i64,
    /// Size of the record.
    pub physic_size: i32,
    /// Code of the tag.
    pub tags_code: i64,
}

/// Replication, the answer to 907.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HaRuntimeInfo {
    /// As a slave.
    pub ha_client_runtime_info: HaClientInfo,
    /// As a master, one a slave.
    pub ha_connection_info: Vec<HaConnectionInfo>,
    /// Slaves in step.
    pub in_sync_slave_nums: i32,
    /// Whether the broker is a master.
    pub master: bool,
    /// End of the commit log.
    pub master_commit_log_max_offset: i64,
}

/// A slave's replication.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HaClientInfo {
    /// Ms since 1970.
    pub last_read_timestamp: i64,
    /// Ms since 1970.
    pub last_write_timestamp: i64,
    /// How far the master is flushed.
    pub master_flush_offset: i64,
    /// End of the slave's log.
    pub max_offset: i64,
    /// Bytes a second.
    pub transferred_byte_in_second: i64,
}

/// One of a master's slaves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HaConnectionInfo {
    /// `ip:port`.
    pub addr: String,
    /// Bytes it is behind.
    pub diff: i64,
    /// Whether it is in step.
    pub in_sync: bool,
    /// What it has.
    pub slave_ack_offset: i64,
    /// Where it started.
    pub transfer_from_where: i64,
    /// Bytes a second.
    pub transferred_byte_in_second: i64,
}
