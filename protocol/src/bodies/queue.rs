//! A message queue, and maps from queues to what is known of them.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, btree_map},
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
    ser::Error as _,
};

use super::dialect::RAW_KEY;

/// One queue of a topic on one broker. Ordered by topic, broker, id, as in Java: allocation strategies rely on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MessageQueue {
    /// Name of the broker, shared by a master and its slaves.
    pub broker_name: String,
    /// Number of the queue within topic and broker.
    pub queue_id: i32,
    /// Topic.
    pub topic: String,
}

impl MessageQueue {
    /// The queue of that place.
    #[must_use]
    pub fn new(topic: impl Into<String>, broker_name: impl Into<String>, queue_id: i32) -> Self {
        Self {
            broker_name: broker_name.into(),
            queue_id,
            topic: topic.into(),
        }
    }
}

impl Ord for MessageQueue {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_name = self
            .topic
            .cmp(&other.topic)
            .then_with(|| self.broker_name.cmp(&other.broker_name));
        by_name.then_with(|| self.queue_id.cmp(&other.queue_id))
    }
}

impl PartialOrd for MessageQueue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.topic, self.broker_name, self.queue_id)
    }
}

/// A map by queue. On the wire its keys are objects, `{{"brokerName":"b","queueId":0,"topic":"t"}:5}`; read from that, from
/// the same as strings, and from a list of pairs. Write it with [`super::to_vec`] only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueMap<V>(pub BTreeMap<MessageQueue, V>);

impl<V> Default for QueueMap<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V> Deref for QueueMap<V> {
    type Target = BTreeMap<MessageQueue, V>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<V> DerefMut for QueueMap<V> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<V> FromIterator<(MessageQueue, V)> for QueueMap<V> {
    fn from_iter<I: IntoIterator<Item = (MessageQueue, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl<V> IntoIterator for QueueMap<V> {
    type Item = (MessageQueue, V);
    type IntoIter = btree_map::IntoIter<MessageQueue, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, V> IntoIterator for &'a QueueMap<V> {
    type Item = (&'a MessageQueue, &'a V);
    type IntoIter = btree_map::Iter<'a, MessageQueue, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<V: Serialize> Serialize for QueueMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pairs = Vec::with_capacity(self.0.len());
        for (queue, value) in &self.0 {
            let key = serde_json::to_string(queue).map_err(S::Error::custom)?;
            pairs.push((format!("{RAW_KEY}{key}"), value));
        }
        serializer.collect_map(pairs)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for QueueMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QueueMapVisitor(PhantomData))
    }
}

struct QueueMapVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for QueueMapVisitor<V> {
    type Value = QueueMap<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map by message queue")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = members.next_key::<String>()? {
            let queue = super::from_slice(key.as_bytes()).map_err(A::Error::custom)?;
            map.insert(queue, members.next_value()?);
        }
        Ok(QueueMap(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((queue, value)) = pairs.next_element()? {
            map.insert(queue, value);
        }
        Ok(QueueMap(map))
    }
}
