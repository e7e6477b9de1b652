//! Configuration of topics and groups, and tables of offsets: bodies and the broker's own files alike.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DataVersion, QueueMappingInfo};

/// Permission bit: consumers may read.
pub const PERM_READ: i32 = 4;
/// Permission bit: producers may write.
pub const PERM_WRITE: i32 = 2;
/// Permission bit: topics created by a send take their settings from this one.
pub const PERM_INHERIT: i32 = 1;

text_enum! {
    /// How many tags a message of a topic has.
    pub enum TopicFilterType {
        /// One at most.
        #[default]
        SingleTag = "SINGLE_TAG",
        /// Several.
        MultiTag = "MULTI_TAG",
    }
}

/// Settings of a topic, the answer to 351.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicConfig {
    /// Such as `message.type` → `FIFO`.
    pub attributes: BTreeMap<String, String>,
    /// Whether the topic is ordered.
    pub order: bool,
    /// [`PERM_READ`], [`PERM_WRITE`], [`PERM_INHERIT`].
    pub perm: i32,
    /// Queues that consumers see.
    pub read_queue_nums: i32,
    /// Tags a message.
    pub topic_filter_type: TopicFilterType,
    /// Name.
    pub topic_name: String,
    /// Bits: 1 unit, 2 unit subscribers.
    pub topic_sys_flag: i32,
    /// Queues that producers see.
    pub write_queue_nums: i32,
}

impl Default for TopicConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            order: false,
            perm: PERM_READ | PERM_WRITE,
            read_queue_nums: 16,
            topic_filter_type: TopicFilterType::SingleTag,
            topic_name: String::new(),
            topic_sys_flag: 0,
            write_queue_nums: 16,
        }
    }
}

impl TopicConfig {
    /// A topic of `queues` queues to read and to write, with those permissions.
    #[must_use]
    pub fn new(topic_name: impl Into<String>, queues: i32, perm: i32) -> Self {
        let topic_name = topic_name.into();
        Self {
            topic_name,
            read_queue_nums: queues,
            write_queue_nums: queues,
            perm,
            ..Self::default()
        }
    }
}

/// All topics of a broker, the answer to 21 and part of a registration (`TopicConfigSerializeWrapper` and its successor).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicConfigTable {
    /// Of the topics.
    pub data_version: DataVersion,
    /// Of the static topics; absent from brokers before version 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping_data_version: Option<DataVersion>,
    /// By topic.
    pub topic_config_table: BTreeMap<String, TopicConfig>,
    /// Static topics: every detail, by topic.
    pub topic_queue_mapping_detail_map: BTreeMap<String, Value>,
    /// Static topics: where their queues are, by topic.
    pub topic_queue_mapping_info_map: BTreeMap<String, QueueMappingInfo>,
}

/// The body of 18.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicConfigList {
    /// The topics to create or change.
    pub topic_config_list: Vec<TopicConfig>,
}

/// Settings of a consumer group, the body of 200 and the answer to 352.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "the wire's own switches")]
pub struct SubscriptionGroupConfig {
    /// Free settings.
    pub attributes: BTreeMap<String, String>,
    /// Broker to pull from, 0 the master.
    pub broker_id: i64,
    /// Whether the group may broadcast.
    pub consume_broadcast_enable: bool,
    /// Whether the group may consume at all.
    pub consume_enable: bool,
    /// Historic.
    pub consume_from_min_enable: bool,
    /// Whether popping keeps the order.
    pub consume_message_orderly: bool,
    /// Minutes after which clients give up on a message.
    pub consume_timeout_minute: i32,
    /// Name.
    pub group_name: String,
    /// When a failed message is tried again.
    pub group_retry_policy: GroupRetryPolicy,
    /// Bits: 1 unit.
    pub group_sys_flag: i32,
    /// Whether consumers hear of changes in the group.
    pub notify_consumer_ids_changed_enable: bool,
    /// How often a failed message is tried again before it is dead.
    pub retry_max_times: i32,
    /// Queues of the retry topic; 0: failed messages are dropped.
    pub retry_queue_nums: i32,
    /// Subscriptions fixed by the administrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_data_set: Option<BTreeSet<FixedSubscription>>,
    /// Broker to suggest to consumers that are far behind.
    pub which_broker_when_consume_slowly: i64,
}

impl Default for SubscriptionGroupConfig {
    fn default() -> Self {
        Self {
            attributes: BTreeMap::new(),
            broker_id: 0,
            consume_broadcast_enable: true,
            consume_enable: true,
            consume_from_min_enable: true,
            consume_message_orderly: false,
            consume_timeout_minute: 15,
            group_name: String::new(),
            group_retry_policy: GroupRetryPolicy::default(),
            group_sys_flag: 0,
            notify_consumer_ids_changed_enable: true,
            retry_max_times: 16,
            retry_queue_nums: 1,
            subscription_data_set: None,
            which_broker_when_consume_slowly: 1,
        }
    }
}

impl SubscriptionGroupConfig {
    /// The defaults under that name.
    #[must_use]
    pub fn new(group_name: impl Into<String>) -> Self {
        Self {
            group_name: group_name.into(),
            ..Self::default()
        }
    }
}

text_enum! {
    /// Kind of a retry policy.
    pub enum RetryPolicyType {
        /// Steps from a list.
        #[default]
        Customized = "CUSTOMIZED",
        /// Growing steps.
        Exponential = "EXPONENTIAL",
    }
}

/// When a failed message is tried again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupRetryPolicy {
    /// Steps from a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customized_retry_policy: Option<CustomizedRetryPolicy>,
    /// Growing steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponential_retry_policy: Option<ExponentialRetryPolicy>,
    /// Which of them holds.
    #[serde(rename = "type")]
    pub kind: RetryPolicyType,
}

/// Steps from a list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomizedRetryPolicy {
    /// Ms to wait, by number of failures; the last one repeats.
    pub next: Vec<i64>,
}

/// Growing steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExponentialRetryPolicy {
    /// First wait, ms.
    pub initial: i64,
    /// Longest wait, ms.
    pub max: i64,
    /// Factor from wait to wait.
    pub multiplier: i64,
}

impl Default for ExponentialRetryPolicy {
    fn default() -> Self {
        Self {
            initial: 5_000,
            max: 7_200_000,
            multiplier: 2,
        }
    }
}

/// A subscription fixed by the administrator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FixedSubscription {
    /// Filter.
    pub expression: String,
    /// `TAG` or `SQL92`.
    pub expression_type: String,
    /// Topic.
    pub topic: String,
    /// Grows with each change.
    pub version: i64,
}

/// The body of 225.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupConfigList {
    /// The groups to create or change.
    pub group_config_list: Vec<SubscriptionGroupConfig>,
}

/// All groups of a broker, the answer to 201 and the file `subscriptionGroup.json`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionGroupTable {
    /// Of the table.
    pub data_version: DataVersion,
    /// By group, then topic: bits of what is forbidden.
    pub forbidden_table: BTreeMap<String, BTreeMap<String, i32>>,
    /// By group.
    pub subscription_group_table: BTreeMap<String, SubscriptionGroupConfig>,
}

/// All committed offsets, the answer to 43 and the file `consumerOffset.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerOffsetTable {
    /// Of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_version: Option<DataVersion>,
    /// Topics by group, from newer brokers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_topic_map: Option<BTreeMap<String, BTreeSet<String>>>,
    /// By `topic@group`, then queue.
    pub offset_table: BTreeMap<String, BTreeMap<i32, i64>>,
}

/// Progress of the delay levels, the answer to 45 and the file `delayOffset.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DelayOffsetTable {
    /// Of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_version: Option<DataVersion>,
    /// Offset in the level's queue, by level.
    pub offset_table: BTreeMap<i32, i64>,
}

/// The answer to 353.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupForbidden {
    /// Consumer group.
    pub group: String,
    /// Whether it may read the topic.
    pub readable: bool,
    /// Topic.
    pub topic: String,
}
