//! Heartbeats: what a client says of its producers and consumers.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

text_enum! {
    /// How a consumer gets its messages.
    pub enum ConsumeType {
        /// It pulls when it likes.
        Actively = "CONSUME_ACTIVELY" @ 0,
        /// A listener is fed.
        #[default]
        Passively = "CONSUME_PASSIVELY" @ 1,
        /// It pops.
        Pop = "CONSUME_POP" @ 2,
    }
}

text_enum! {
    /// Whether consumers of a group share the messages.
    pub enum MessageModel {
        /// Each message goes to one of them.
        #[default]
        Clustering = "CLUSTERING" @ 1,
        /// Each message goes to all of them.
        Broadcasting = "BROADCASTING" @ 0,
    }
}

text_enum! {
    /// Where a group starts that has committed nothing yet. The names that Java deprecates mean the first.
    pub enum ConsumeFromWhere {
        /// With messages that come from now on.
        #[default]
        LastOffset = "CONSUME_FROM_LAST_OFFSET" | "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
            | "CONSUME_FROM_MIN_OFFSET" | "CONSUME_FROM_MAX_OFFSET" @ 0 1 2 3,
        /// With the oldest.
        FirstOffset = "CONSUME_FROM_FIRST_OFFSET" @ 4,
        /// With those stored after a time.
        Timestamp = "CONSUME_FROM_TIMESTAMP" @ 5,
    }
}

/// The body of 34.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeartbeatData {
    /// Client id, `ip@instance`.
    #[serde(rename = "clientID")]
    pub client_id: String,
    /// Its consumers.
    pub consumer_data_set: Vec<ConsumerData>,
    /// Not 0: second version of heartbeats.
    pub heartbeat_fingerprint: i32,
    /// Its producers.
    pub producer_data_set: Vec<ProducerData>,
    /// Second version: the subscriptions are left out, those stored hold.
    pub without_sub: bool,
}

/// A producer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProducerData {
    /// Producer group.
    pub group_name: String,
}

/// A consumer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumerData {
    /// Where a new group starts.
    pub consume_from_where: ConsumeFromWhere,
    /// How it gets its messages.
    pub consume_type: ConsumeType,
    /// Consumer group.
    pub group_name: String,
    /// Whether the group shares the messages.
    pub message_model: MessageModel,
    /// What it subscribes to.
    pub subscription_data_set: Vec<SubscriptionData>,
    /// Whether it is in unit mode.
    pub unit_mode: bool,
}

/// Expression type of a filter by tags.
pub const TAG: &str = "TAG";
/// Expression type of a filter by properties.
pub const SQL92: &str = "SQL92";
/// The subscription to everything.
pub const SUB_ALL: &str = "*";

/// A subscription to a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubscriptionData {
    /// Historic.
    pub class_filter_mode: bool,
    /// Hash codes of the tags; empty: all. Go writes them as text.
    #[serde(deserialize_with = "super::lenient::integers")]
    pub code_set: BTreeSet<i32>,
    /// [`TAG`] or [`SQL92`].
    pub expression_type: String,
    /// The expression.
    pub sub_string: String,
    /// Grows with each change; Java ms, Go ns since 1970. C++ writes it as text.
    #[serde(deserialize_with = "super::lenient::integer")]
    pub sub_version: i64,
    /// The tags; empty: all.
    pub tags_set: BTreeSet<String>,
    /// Topic.
    pub topic: String,
}

impl Default for SubscriptionData {
    fn default() -> Self {
        Self {
            class_filter_mode: false,
            code_set: BTreeSet::new(),
            expression_type: TAG.to_owned(),
            sub_string: String::new(),
            sub_version: 0,
            tags_set: BTreeSet::new(),
            topic: String::new(),
        }
    }
}

/// The body of 46.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CheckClientBody {
    /// Client id.
    pub client_id: String,
    /// Consumer group.
    pub group: String,
    /// Namespace of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What is to be checked.
    pub subscription_data: SubscriptionData,
}
