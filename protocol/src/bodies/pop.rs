//! Who consumes what and how, as the broker decides it (400 to 402), batch acknowledgements (200151), and what a broker keeps
//! of ordered pops.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{MessageModel, MessageQueue};

text_enum! {
    /// How a group gets the messages of a topic.
    pub enum RequestMode {
        /// From queues that belong to one member each.
        #[default]
        Pull = "PULL",
        /// From queues that members share.
        Pop = "POP",
    }
}

/// The body of 400: a consumer asks for its queues.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryAssignmentBody {
    /// Who asks.
    pub client_id: String,
    /// For which group.
    pub consumer_group: String,
    /// Whether the group shares the messages.
    pub message_model: MessageModel,
    /// How queues are distributed, such as `AVG`.
    pub strategy_name: String,
    /// Of which topic.
    pub topic: String,
}

/// The answer to 400.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AssignmentBody {
    /// The caller's queues; none (not even an empty list) when the broker can't tell, and the caller keeps those it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_queue_assignments: Option<Vec<QueueAssignment>>,
}

/// One queue of a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueAssignment {
    /// The queue; with id −1 all of that broker.
    pub message_queue: MessageQueue,
    /// How it is to be read.
    pub mode: RequestMode,
}

/// The body of 401: how a group is to get the messages of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestModeBody {
    /// Group.
    pub consumer_group: String,
    /// How.
    pub mode: RequestMode,
    /// Popping: with how many others each member shares its queues; 0 and less with all.
    pub pop_share_queue_num: i32,
    /// Topic.
    pub topic: String,
}

/// All such settings, the answer to 402 and the file `messageRequestMode.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestModeTable {
    /// By topic, then group.
    pub message_request_mode_map: BTreeMap<String, BTreeMap<String, RequestModeBody>>,
}

/// The body of 200151.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BatchAckBody {
    /// One a hand-out.
    pub acks: Vec<BatchAck>,
    /// Broker that handed the messages out.
    pub broker_name: String,
}

/// Messages of one hand-out that are done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchAck {
    /// Which of them, counted from `start_offset`.
    #[serde(rename = "b", alias = "bitSet")]
    pub offsets: OffsetSet,
    /// Group.
    #[serde(rename = "c", alias = "consumerGroup")]
    pub consumer_group: String,
    /// How long they were to stay hidden, ms.
    #[serde(rename = "it", alias = "invisibleTime")]
    pub invisible_time: i64,
    /// When they were handed out, ms since 1970.
    #[serde(rename = "pt", alias = "popTime")]
    pub pop_time: i64,
    /// Queue.
    #[serde(rename = "q", alias = "queueId")]
    pub queue_id: i32,
    /// `0` the topic itself, `1` and `2` the group's retry topic of the first and second naming.
    #[serde(rename = "r", alias = "retry")]
    pub retry: String,
    /// Where the hand-out is noted.
    #[serde(rename = "rq", alias = "reviveQueueId")]
    pub revive_queue_id: i32,
    /// First offset of the hand-out.
    #[serde(rename = "so", alias = "startOffset")]
    pub start_offset: i64,
    /// Topic, not the retry topic.
    #[serde(rename = "t", alias = "topic")]
    pub topic: String,
}

/// A set of small numbers, on the wire Java's `BitSet.toByteArray` (the lowest number is the lowest bit of the first byte) in
/// base64.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OffsetSet(Vec<u8>);

impl OffsetSet {
    /// The numbers in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = i64> {
        self.0.iter().zip(0_i64..).flat_map(|(byte, at)| {
            (0..8_i64)
                .filter(move |bit| byte >> bit & 1 == 1)
                .map(move |bit| at * 8 + bit)
        })
    }
}

impl FromIterator<usize> for OffsetSet {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut bytes = Vec::new();
        for number in numbers {
            let at = number / 8;
            if bytes.len() <= at {
                bytes.resize(at + 1, 0);
            }
            bytes[at] |= 1 << (number % 8);
        }
        Self(bytes)
    }
}

impl Serialize for OffsetSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for OffsetSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(de::Error::custom)
    }
}

/// Ordered pops of all groups, the file `consumerOrderInfo.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderTable {
    /// By `topic@group`, then queue.
    pub table: BTreeMap<String, BTreeMap<i32, OrderInfo>>,
}

/// What was handed out last of a queue that is popped in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderInfo {
    /// The try it was handed out to.
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// Which of the messages are done, by their place in `offsets`.
    #[serde(rename = "cm")]
    pub done: u64,
    /// How long the messages stay hidden, ms; none or 0 takes that of the next pop.
    #[serde(rename = "i", skip_serializing_if = "Option::is_none")]
    pub invisible_time: Option<i64>,
    /// Last hand-out, ms since 1970.
    #[serde(rename = "l")]
    pub last_consume_time: i64,
    /// The first message's queue offset, then the distances of the others to it.
    #[serde(rename = "o")]
    pub offsets: Vec<i64>,
    /// How often messages were handed out before, by queue offset; only those that were.
    #[serde(rename = "oc", skip_serializing_if = "Option::is_none")]
    pub consumed_counts: Option<BTreeMap<i64, i32>>,
    /// When messages become visible again that were given a time of their own, by queue offset, ms since 1970.
    #[serde(rename = "ot", skip_serializing_if = "Option::is_none")]
    pub next_visible: Option<BTreeMap<i64, i64>>,
    /// When they were handed out, ms since 1970.
    #[serde(rename = "popTime")]
    pub pop_time: i64,
}
