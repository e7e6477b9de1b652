//! What a name server knows: routes, clusters, topics, keys and values.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::dialect::{BodyError, NumericKeys, to_vec_with};

/// Route of a topic, the answer to 105 (`TopicRouteData`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteData {
    /// The brokers that appear in `queue_datas`.
    pub broker_datas: Vec<BrokerData>,
    /// Always empty today.
    pub filter_server_table: BTreeMap<String, Vec<String>>,
    /// `broker-a:4;broker-b:4`: if given and not empty, producers build their queues from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_topic_conf: Option<String>,
    /// Queues by broker name.
    pub queue_datas: Vec<QueueData>,
    /// Static topics only: by broker name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_queue_mapping_by_broker: Option<BTreeMap<String, QueueMappingInfo>>,
}

impl RouteData {
    /// The body, with broker ids bare for requesters before version 401.
    ///
    /// # Errors
    /// As [`super::to_vec`].
    pub fn to_vec(&self, keys: NumericKeys) -> Result<Vec<u8>, BodyError> {
        to_vec_with(self, keys)
    }
}

/// The queues of a topic on one broker name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueData {
    /// Name shared by a master and its slaves.
    pub broker_name: String,
    /// Bits: 4 read, 2 write, 1 inherit.
    pub perm: i32,
    /// Consumers use queues 0 up to this.
    pub read_queue_nums: i32,
    /// Bits: 1 unit, 2 unit subscribers.
    pub topic_sys_flag: i32,
    /// Producers use queues 0 up to this.
    pub write_queue_nums: i32,
}

/// The brokers of one broker name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BrokerData {
    /// `ip:port` by broker id, 0 the master.
    pub broker_addrs: BTreeMap<i64, String>,
    /// Name shared by them.
    pub broker_name: String,
    /// Cluster.
    pub cluster: String,
    /// Whether a slave may act as master.
    pub enable_acting_master: bool,
    /// Zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_name: Option<String>,
}

/// Where the queues of a static topic are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueMappingInfo {
    /// Name of the broker.
    pub bname: String,
    /// Its own queue by global queue.
    pub curr_id_map: BTreeMap<i32, i32>,
    /// Whether it is out of date.
    pub dirty: bool,
    /// Grows with each change.
    pub epoch: i64,
    /// Scope, `__global__`.
    pub scope: String,
    /// Topic.
    pub topic: String,
    /// Queues in all.
    pub total_queues: i32,
}

/// Clusters and brokers, the answer to 106.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInfo {
    /// By broker name.
    pub broker_addr_table: BTreeMap<String, BrokerData>,
    /// Broker names by cluster.
    pub cluster_addr_table: BTreeMap<String, BTreeSet<String>>,
}

/// Master and slaves of a broker name, the answer to 901.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberGroupBody {
    /// The group; absent when the broker name is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_member_group: Option<MemberGroup>,
}

/// Master and slaves of a broker name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberGroup {
    /// `ip:port` by broker id.
    pub broker_addrs: BTreeMap<i64, String>,
    /// Name shared by them.
    pub broker_name: String,
    /// Cluster.
    pub cluster: String,
}

/// Names of topics.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopicList {
    /// Address of a broker, in some answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker_addr: Option<String>,
    /// The topics.
    pub topic_list: BTreeSet<String>,
}

/// Text by key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KvTable {
    /// The entries.
    pub table: BTreeMap<String, String>,
}

/// Tells two states of a table apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataVersion {
    /// Changes since the start.
    pub counter: i64,
    /// Epoch of the master that made the change, in controller mode.
    pub state_version: i64,
    /// Of the last change, ms since 1970.
    pub timestamp: i64,
}

impl DataVersion {
    /// The version of a table that is new at `now`, ms since 1970.
    #[must_use]
    pub fn new(now: i64) -> Self {
        Self {
            counter: 0,
            state_version: 0,
            timestamp: now,
        }
    }

    /// Records a change at `now`, ms since 1970.
    pub fn advance(&mut self, now: i64) {
        self.counter = self.counter.wrapping_add(1);
        self.timestamp = now;
    }
}
