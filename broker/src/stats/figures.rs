//! Counters by topic, and by topic and group, under the names that mqadmin and the dashboard ask for.
//!
//! ```text
//! (TOPIC_PUT_NUMS, "T") ─▶ by topic     (GROUP_GET_SIZE, "T@g") ─▶ by topic and group     (BROKER_PUT_NUMS, cluster) ─▶ all
//! ```
//! Names of `BrokerStatsManager` of Apache `RocketMQ` 5.3.3. A counter is made by its first event and forgotten with its
//! topic or group.
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use bindery_protocol::{bodies::BrokerStatsData, names};

use super::counter::Counter;

/// All counters by name.
#[derive(Default)]
pub(super) struct Figures {
    topics: RwLock<HashMap<String, Arc<OfTopic>>>,
    groups: RwLock<HashMap<String, HashMap<String, Arc<OfGroup>>>>,
    all: OfBroker,
}

/// What is counted of a topic.
#[derive(Default)]
struct OfTopic {
    put: Counter,
    put_bytes: Counter,
}

/// What is counted of a topic and a group.
#[derive(Default)]
struct OfGroup {
    got: Counter,
    got_bytes: Counter,
    sent_back: Counter,
}

/// What is counted of everything, and of what users send and receive.
#[derive(Default)]
struct OfBroker {
    put: Counter,
    put_by_users: Counter,
    got: Counter,
    got_by_users: Counter,
}

impl Figures {
    pub(super) fn put(&self, topic: &str, count: u64, bytes: u64, now: i64) {
        let figures = self.topic(topic);
        figures.put.add(count, now);
        figures.put_bytes.add(bytes, now);
        self.all.put.add(count, now);
        if !names::is_system_topic(topic) {
            self.all.put_by_users.add(count, now);
        }
    }

    pub(super) fn got(&self, topic: &str, group: &str, count: u64, bytes: u64, now: i64) {
        let figures = self.group(topic, group);
        figures.got.add(count, now);
        figures.got_bytes.add(bytes, now);
        self.all.got.add(count, now);
        if !names::is_system_topic(topic) && !names::is_system_group(group) {
            self.all.got_by_users.add(count, now);
        }
    }

    pub(super) fn sent_back(&self, topic: &str, group: &str, now: i64) {
        self.group(topic, group).sent_back.add(1, now);
    }

    pub(super) fn put_rate(&self, topic: &str, now: i64) -> f64 {
        let known = read(&self.topics).get(topic).cloned();
        known.map_or(0.0, |figures| figures.put.rate(now))
    }

    pub(super) fn get_rate(&self, topic: &str, group: &str, now: i64) -> f64 {
        self.known_group(topic, group)
            .map_or(0.0, |figures| figures.got.rate(now))
    }

    /// The figure of that name and key; none when nobody counts it or nothing was counted yet.
    pub(super) fn named(
        &self,
        name: &str,
        key: &str,
        cluster: &str,
        now: i64,
    ) -> Option<BrokerStatsData> {
        let of_topic = || read(&self.topics).get(key).cloned();
        let of_group = || {
            let (topic, group) = key.split_once('@')?;
            self.known_group(topic, group)
        };
        let all = (key == cluster).then_some(&self.all);
        Some(match name {
            "TOPIC_PUT_NUMS" => of_topic()?.put.data(now),
            "TOPIC_PUT_SIZE" => of_topic()?.put_bytes.data(now),
            "GROUP_GET_NUMS" => of_group()?.got.data(now),
            "GROUP_GET_SIZE" => of_group()?.got_bytes.data(now),
            "SNDBCK_PUT_NUMS" => of_group()?.sent_back.data(now),
            "BROKER_PUT_NUMS" => all?.put.data(now),
            "BROKER_GET_NUMS" => all?.got.data(now),
            "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC" => all?.put_by_users.data(now),
            "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC" => all?.got_by_users.data(now),
            _ => return None,
        })
    }

    pub(super) fn forget_topic(&self, topic: &str) {
        write(&self.topics).remove(topic);
        write(&self.groups).remove(topic);
    }

    pub(super) fn forget_group(&self, group: &str) {
        write(&self.groups).retain(|_, groups| {
            groups.remove(group);
            !groups.is_empty()
        });
    }

    fn topic(&self, topic: &str) -> Arc<OfTopic> {
        if let Some(known) = read(&self.topics).get(topic) {
            return known.clone();
        }
        write(&self.topics)
            .entry(topic.to_owned())
            .or_default()
            .clone()
    }

    fn group(&self, topic: &str, group: &str) -> Arc<OfGroup> {
        if let Some(known) = self.known_group(topic, group) {
            return known;
        }
        write(&self.groups)
            .entry(topic.to_owned())
            .or_default()
            .entry(group.to_owned())
            .or_default()
            .clone()
    }

    fn known_group(&self, topic: &str, group: &str) -> Option<Arc<OfGroup>> {
        read(&self.groups).get(topic)?.get(group).cloned()
    }
}

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_under_apaches_names() {
        let figures = Figures::default();
        figures.put("T", 3, 300, 1000);
        figures.put(names::SCHEDULE_TOPIC, 1, 100, 1000);
        figures.got("T", "g", 2, 200, 1000);
        figures.sent_back("T", "g", 1000);
        let sum = |name: &str, key: &str| {
            figures
                .named(name, key, "c", 2000)
                .map(|data| data.stats_minute.sum)
        };
        for (name, key, expected) in [
            ("TOPIC_PUT_NUMS", "T", Some(3)),
            ("TOPIC_PUT_SIZE", "T", Some(300)),
            ("GROUP_GET_NUMS", "T@g", Some(2)),
            ("GROUP_GET_SIZE", "T@g", Some(200)),
            ("SNDBCK_PUT_NUMS", "T@g", Some(1)),
            ("BROKER_PUT_NUMS", "c", Some(4)),
            ("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", "c", Some(3)),
            ("BROKER_GET_NUMS", "c", Some(2)),
            ("BROKER_GET_NUMS", "other", None),
            ("TOPIC_PUT_NUMS", "U", None),
            ("NO_SUCH_FIGURE", "T", None),
        ] {
            assert_eq!(sum(name, key), expected, "{name} {key}");
        }
        figures.forget_group("g");
        assert_eq!(sum("GROUP_GET_NUMS", "T@g"), None);
        figures.forget_topic("T");
        assert_eq!(sum("TOPIC_PUT_NUMS", "T"), None);
    }
}
