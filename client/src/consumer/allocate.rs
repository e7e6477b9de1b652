//! Which queues of a topic belong to which member of a group. Every member computes it for itself, so the arithmetic is Java's, bit
//! for bit, and both lists are sorted.
use md5::{Digest, Md5};

use super::AllocateStrategy;
use crate::MessageQueue;

/// Places of one member on the hash ring.
const VIRTUAL_NODES: usize = 10;

impl AllocateStrategy {
    /// The part of `queues` that belongs to the member `me` of a group, in order; nothing if `me` is not among `members`. Both
    /// lists must be sorted, as they are when a consumer asks. Mirrors `AllocateMessageQueueStrategy` of Apache `RocketMQ` 5.3.3.
    #[must_use]
    pub fn allocate(
        self,
        queues: &[MessageQueue],
        members: &[String],
        me: &str,
    ) -> Vec<MessageQueue> {
        allocate(self, queues, members, me)
    }
}

/// See [`AllocateStrategy::allocate`].
pub(crate) fn allocate(
    strategy: AllocateStrategy,
    queues: &[MessageQueue],
    members: &[String],
    me: &str,
) -> Vec<MessageQueue> {
    let Some(index) = members.iter().position(|member| member == me) else {
        return Vec::new();
    };
    match strategy {
        AllocateStrategy::Averagely => averagely(queues, members.len(), index),
        AllocateStrategy::AveragelyByCircle => queues
            .iter()
            .skip(index)
            .step_by(members.len())
            .cloned()
            .collect(),
        AllocateStrategy::ConsistentHash => consistent_hash(queues, members, me),
    }
}

fn averagely(queues: &[MessageQueue], members: usize, index: usize) -> Vec<MessageQueue> {
    let rest = queues.len() % members;
    let size = if queues.len() <= members {
        1
    } else {
        queues.len() / members + usize::from(index < rest)
    };
    let start = if index < rest {
        index * size
    } else {
        index * size + rest
    };
    let end = (start + size).min(queues.len());
    queues.get(start..end).unwrap_or_default().to_vec()
}

fn consistent_hash(queues: &[MessageQueue], members: &[String], me: &str) -> Vec<MessageQueue> {
    let mut ring: Vec<(u32, &str)> = members
        .iter()
        .flat_map(|member| {
            (0..VIRTUAL_NODES)
                .map(move |place| (hash(&format!("{member}-{place}")), member.as_str()))
        })
        .collect();
    // Java's tree map: a later node with the same hash takes the place.
    ring.sort_by_key(|(hash, _)| *hash);
    let owner = |queue: &MessageQueue| {
        let key = format!(
            "MessageQueue [topic={}, brokerName={}, queueId={}]",
            queue.topic, queue.broker_name, queue.queue_id
        );
        let at = ring.partition_point(|(place, _)| *place < hash(&key));
        let node = ring.get(at).or(ring.first())?;
        ring.iter()
            .rfind(|(place, _)| *place == node.0)
            .map(|(_, member)| *member)
    };
    queues
        .iter()
        .filter(|queue| owner(queue) == Some(me))
        .cloned()
        .collect()
}

/// First four bytes of MD5, big endian.
fn hash(key: &str) -> u32 {
    let digest: [u8; 16] = Md5::digest(key.as_bytes()).into();
    let [a, b, c, d, ..] = digest;
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    const CORPUS: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/oracle/allocate.jsonl"
    );

    #[derive(Deserialize)]
    struct Case {
        id: u32,
        #[serde(rename = "in")]
        given: Given,
        out: Expected,
    }

    #[derive(Deserialize)]
    struct Given {
        strategy: String,
        topic: String,
        queues: Vec<String>,
        clients: Vec<String>,
        #[serde(rename = "virtualNodes", default)]
        virtual_nodes: Option<usize>,
    }

    #[derive(Deserialize)]
    struct Expected {
        allocated: BTreeMap<String, Vec<usize>>,
    }

    fn strategy(given: &Given) -> Option<AllocateStrategy> {
        match &*given.strategy {
            "averagely" => Some(AllocateStrategy::Averagely),
            "averagely-by-circle" => Some(AllocateStrategy::AveragelyByCircle),
            "consistent-hash" if given.virtual_nodes == Some(VIRTUAL_NODES) => {
                Some(AllocateStrategy::ConsistentHash)
            }
            _ => None,
        }
    }

    fn queue(topic: &str, text: &str) -> MessageQueue {
        let (broker, id) = text.rsplit_once(':').unwrap();
        MessageQueue::new(topic, broker, id.parse().unwrap())
    }

    #[test]
    fn queues_go_to_the_members_that_java_gives_them_to() {
        let corpus = std::fs::read_to_string(CORPUS).unwrap();
        let mut passed = 0;
        for line in corpus.lines().skip(1) {
            // Strategies by machine room and by configuration are not offered.
            let Ok(case) = serde_json::from_str::<Case>(line) else {
                continue;
            };
            let Some(strategy) = strategy(&case.given) else {
                continue;
            };
            let given = &case.given;
            let queues: Vec<_> = given
                .queues
                .iter()
                .map(|text| queue(&given.topic, text))
                .collect();
            for client in &given.clients {
                let got = allocate(strategy, &queues, &given.clients, client);
                let indexes = case.out.allocated.get(client).cloned().unwrap_or_default();
                let expected: Vec<_> = indexes.iter().map(|index| queues[*index].clone()).collect();
                assert_eq!(got, expected, "case {} of {client}", case.id);
            }
            passed += 1;
        }
        println!("allocate: {passed} passed");
        assert!(passed > 100, "{passed}");
    }

    #[test]
    fn who_is_not_a_member_gets_nothing() {
        let queues = [queue("t", "b:0")];
        let members = ["a".to_owned()];
        assert_eq!(
            allocate(AllocateStrategy::Averagely, &queues, &members, "b"),
            []
        );
    }
}
