//! Everything a broker serves of some topics, and whether a later look still has all of it.
use std::collections::BTreeMap;

use bindery_protocol::message::record;
use bytes::Bytes;

use crate::speaker::Speaker;

/// Records by topic and queue, from the first to the last.
pub(crate) struct Seen {
    topics: Vec<String>,
    queues: BTreeMap<(String, i32), Queue>,
}

#[derive(Default, Clone)]
struct Queue {
    records: Vec<Bytes>,
    min: i64,
    max: i64,
}

/// Queues looked at in a topic that may have many.
const QUEUES: i32 = 18;

impl Seen {
    /// All that is there now.
    pub(crate) async fn of(speaker: &Speaker, topics: &[&str]) -> Self {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let mut seen = Self {
            topics,
            queues: BTreeMap::new(),
        };
        seen.queues = seen.look(speaker).await;
        seen
    }

    async fn look(&self, speaker: &Speaker) -> BTreeMap<(String, i32), Queue> {
        let mut queues = BTreeMap::new();
        for topic in &self.topics {
            for id in 0..QUEUES {
                let mut queue = Queue::default();
                let mut offset = 0;
                while let Some(pulled) = speaker.pull(topic, id, offset).await {
                    (queue.min, queue.max) = (pulled.min, pulled.max);
                    queue.records.extend(pulled.records);
                    if pulled.next <= offset {
                        break;
                    }
                    offset = pulled.next;
                }
                if queue.max > 0 {
                    queues.insert((topic.clone(), id), queue);
                }
            }
        }
        queues
    }

    /// Looks again: what was seen before must be there unchanged, more may have come.
    pub(crate) async fn grown(&mut self, speaker: &Speaker) {
        let now = self.look(speaker).await;
        for (name, before) in &self.queues {
            let after = now.get(name).unwrap_or_else(|| panic!("{name:?} is gone"));
            assert_eq!(after.min, before.min, "first offset of {name:?}");
            assert!(
                after.max >= before.max,
                "end of {name:?}: {} < {}",
                after.max,
                before.max
            );
            for (n, record) in before.records.iter().enumerate() {
                assert_eq!(after.records.get(n), Some(record), "record {n} of {name:?}");
            }
        }
        self.queues = now;
    }

    /// The end of a queue.
    pub(crate) fn messages(&self, topic: &str, id: i32) -> i64 {
        let queue = self.queues.get(&(topic.to_owned(), id));
        queue.map_or(0, |queue| queue.max)
    }

    /// Every message with keys or a unique key of its own is found by them.
    pub(crate) async fn keys_and_ids(&self, speaker: &Speaker) {
        let mut asked = 0;
        for ((topic, _), queue) in &self.queues {
            for bytes in queue.records.iter().step_by(7) {
                let (message, _) = record::decode(bytes).unwrap();
                // Found under the topic it is stored with: a light queue holds messages of others.
                if message.topic != *topic {
                    continue;
                }
                let keys = message.keys().unwrap_or_default().split(' ').next();
                let key = keys.filter(|key| !key.is_empty() && *key != "all");
                let unique = message.uniq_key();
                for (key, is_unique) in [(key, false), (unique, true)] {
                    let Some(key) = key else { continue };
                    let found = speaker.by_key(topic, key, is_unique).await;
                    let places: Vec<_> = found.iter().map(|found| found.physical_offset).collect();
                    // At most 64 are given, and batches share their unique key.
                    assert!(
                        places.contains(&message.physical_offset) || places.len() >= 32,
                        "{key} of {topic} at {:?}: {places:?}",
                        message.physical_offset
                    );
                    asked += 1;
                }
            }
        }
        assert!(asked > 10, "only {asked} keys");
    }
}
