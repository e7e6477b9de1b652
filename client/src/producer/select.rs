//! Which queue the next message goes to: round robin, but not to the broker that just failed, nor to one that is to be left alone.
//!
//! ```text
//! publish queues ─▶ next in turn ─┬─ broker ok ─▶ it
//!                                 └─ last failed, or avoided ─▶ the one after … once around ─▶ any
//! ```
use std::{
    collections::HashMap,
    sync::{Mutex, atomic::Ordering},
    time::Duration,
};

use crate::{
    MessageQueue,
    instance::{TopicEntry, TopicRoute},
    sync::lock,
};

/// From which latency on a broker is left alone for how long, in ms (`MQFaultStrategy` of Java 5.3.3).
const AVOIDANCE: [(u64, i64); 7] = [
    (50, 0),
    (100, 0),
    (550, 2_000),
    (1_800, 5_000),
    (3_000, 6_000),
    (5_000, 10_000),
    (15_000, 30_000),
];
/// What a failure counts as.
const FAILURE: Duration = Duration::from_secs(10);

/// Brokers that were slow or failed, and until when they are left alone.
#[derive(Debug, Default)]
pub(super) struct Faults {
    until: Mutex<HashMap<String, i64>>,
}

impl Faults {
    /// A broker answered after this time. `now` in ms since 1970.
    pub(super) fn answered(&self, broker: &str, latency: Duration, now: i64) {
        let pause = avoidance(latency);
        if pause == 0 {
            return;
        }
        let mut until = lock(&self.until);
        let entry = until.entry(broker.to_owned()).or_insert(0);
        *entry = (*entry).max(now + pause);
    }

    /// A broker failed.
    pub(super) fn failed(&self, broker: &str, now: i64) {
        self.answered(broker, FAILURE, now);
    }

    fn is_avoided(&self, broker: &str, now: i64) -> bool {
        lock(&self.until)
            .get(broker)
            .is_some_and(|until| now < *until)
    }
}

fn avoidance(latency: Duration) -> i64 {
    let reached = AVOIDANCE
        .iter()
        .rev()
        .find(|(from, _)| latency >= Duration::from_millis(*from));
    reached.map_or(0, |(_, pause)| *pause)
}

/// The next queue to try. `last` is the broker of the attempt before; `faults` are looked at when given, at the time `now`.
pub(super) fn select<'a>(
    entry: &TopicEntry,
    route: &'a TopicRoute,
    last: Option<&str>,
    faults: Option<(&Faults, i64)>,
) -> Option<&'a MessageQueue> {
    let queues = &route.publish;
    let in_turn = || queues.get(entry.next.fetch_add(1, Ordering::Relaxed) % queues.len().max(1));
    if last.is_none() && faults.is_none() {
        return in_turn();
    }
    let other = |queue: &MessageQueue| last != Some(&*queue.broker_name);
    let sound = |queue: &MessageQueue| {
        faults.is_none_or(|(faults, now)| !faults.is_avoided(&queue.broker_name, now))
    };
    let find = |good: &dyn Fn(&MessageQueue) -> bool| {
        (0..queues.len()).find_map(|_| in_turn().filter(|queue| good(queue)))
    };
    find(&|queue| other(queue) && sound(queue))
        .or_else(|| find(&other))
        .or_else(in_turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(brokers: &[(&str, i32)]) -> TopicRoute {
        let queues = brokers
            .iter()
            .flat_map(|(name, count)| (0..*count).map(|id| MessageQueue::new("t", *name, id)));
        TopicRoute {
            publish: queues.collect(),
            subscribe: Vec::new(),
            brokers: Vec::new(),
            clusters: Vec::new(),
            provisional: false,
        }
    }

    #[test]
    fn forty_messages_on_four_queues_give_ten_each() {
        let (entry, route) = (TopicEntry::default(), route(&[("a", 4)]));
        let mut counts = [0; 4];
        for _ in 0..40 {
            let queue = select(&entry, &route, None, None).expect("there are queues");
            counts[usize::try_from(queue.queue_id).expect("small")] += 1;
        }
        assert_eq!(counts, [10; 4]);
    }

    #[test]
    fn a_retry_goes_to_another_broker_if_there_is_one() {
        let (entry, two) = (TopicEntry::default(), route(&[("a", 3), ("b", 1)]));
        for _ in 0..10 {
            assert_eq!(
                select(&entry, &two, Some("a"), None)
                    .expect("a queue")
                    .broker_name,
                "b"
            );
        }
        let one = route(&[("a", 3)]);
        assert_eq!(
            select(&entry, &one, Some("a"), None)
                .expect("a queue")
                .broker_name,
            "a"
        );
        assert_eq!(select(&entry, &route(&[]), Some("a"), None), None);
    }

    #[test]
    fn a_failed_broker_is_left_alone_for_ten_seconds() {
        let (entry, route, faults) = (
            TopicEntry::default(),
            route(&[("a", 4), ("b", 4)]),
            Faults::default(),
        );
        faults.failed("a", 1_000);
        for now in [1_000, 10_999] {
            for _ in 0..16 {
                let queue = select(&entry, &route, None, Some((&faults, now))).expect("a queue");
                assert_eq!(queue.broker_name, "b");
            }
        }
        let after: Vec<_> = (0..8)
            .filter_map(|_| select(&entry, &route, None, Some((&faults, 11_000))))
            .collect();
        assert!(after.iter().any(|queue| queue.broker_name == "a"));
    }

    #[test]
    fn a_quick_answer_does_not_shorten_the_pause() {
        let faults = Faults::default();
        faults.answered("a", Duration::from_millis(600), 0);
        faults.answered("a", Duration::from_millis(1), 100);
        assert!(faults.is_avoided("a", 1_999));
        assert!(!faults.is_avoided("a", 2_000));
    }
}
