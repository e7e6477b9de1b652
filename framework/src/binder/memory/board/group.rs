//! Consumer groups: who is in them, which queues each member has, and how far every queue is handled.
//!
//! ```text
//! join, leave, new topic ─▶ share ─▶ each member's queues
//! Position: committed ─ in hand or given back ─ next ─▶ not yet given to anybody
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bindery_client::{Allocation, MessageQueue};
use bindery_protocol::filter::FilterExpression;
use bindery_protocol::names;

use super::BROKER;
use super::topic::{Queue, Stored, Topic};
use crate::binder::{Audience, ConsumerSpec, Order, StartAt};

pub(super) type Topics = BTreeMap<String, Topic>;

/// A queue of a topic.
pub(super) type QueueKey = (String, u32);

/// A group; of a broadcasting group each member is one of its own.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) members: BTreeMap<u64, Member>,
    pub(super) positions: BTreeMap<QueueKey, Position>,
}

/// One consumer of a group.
#[derive(Debug)]
pub(super) struct Member {
    /// Members are sorted by it, as client ids are.
    id: String,
    subscriptions: Vec<(String, FilterExpression)>,
    pub(super) order: Order,
    start: StartAt,
    strategy: Allocation,
    workers: usize,
    pub(super) in_hand: usize,
    pub(super) paused: bool,
    pub(super) assigned: Vec<QueueKey>,
    /// Where in `assigned` the next look begins, so that no queue starves another.
    pub(super) turn: usize,
}

/// How far one queue is handled.
#[derive(Debug, Default)]
pub(super) struct Position {
    next: u64,
    in_hand: BTreeSet<u64>,
    back: BTreeSet<u64>,
    /// Ordered inputs: a worker has this queue.
    held: bool,
    /// Ordered inputs: not before this time, with the redeliveries of the message at the front.
    not_before: i64,
    reconsume_times: u32,
    /// Grows with every reset: what was taken before counts no more.
    pub(super) epoch: u32,
}

/// A message as it lies at the front of a queue.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) key: QueueKey,
    pub(super) stored: Arc<Stored>,
    pub(super) epoch: u32,
    pub(super) reconsume_times: u32,
    /// Where the member's next look begins.
    pub(super) turn: usize,
}

impl Member {
    pub(super) fn new(
        number: u64,
        spec: &ConsumerSpec,
        filter: &FilterExpression,
        strategy: Allocation,
    ) -> Self {
        let mut subscriptions: Vec<_> = spec
            .destinations
            .iter()
            .map(|topic| (topic.clone(), filter.clone()))
            .collect();
        if spec.audience == Audience::Shared && spec.order == Order::Concurrent {
            subscriptions.push((names::retry_topic(&spec.group), FilterExpression::All));
        }
        Self {
            id: format!("memory@{number:020}"),
            subscriptions,
            order: spec.order,
            start: spec.start,
            strategy,
            workers: spec.concurrency.max(1),
            in_hand: 0,
            paused: false,
            assigned: Vec::new(),
            turn: 0,
        }
    }

    pub(super) fn topics(&self) -> impl Iterator<Item = &str> {
        self.subscriptions.iter().map(|(topic, _)| topic.as_str())
    }

    /// Whether a message that lies ready would be taken at once.
    pub(super) fn is_hungry(&self) -> bool {
        !self.paused && self.in_hand < self.workers
    }

    fn filter(&self, topic: &str) -> Option<&FilterExpression> {
        let own = self.subscriptions.iter().find(|(own, _)| own == topic);
        own.map(|(_, filter)| filter)
    }

    /// The share of this member among `members`, by the same arithmetic as over a real broker.
    fn share(&self, topics: &Topics, members: &BTreeMap<u64, Self>) -> Vec<QueueKey> {
        let mut share = Vec::new();
        for topic in self.topics() {
            let queues = topics.get(topic).map_or(0, Topic::queue_count);
            let queues: Vec<MessageQueue> = (0..i32::try_from(queues).unwrap_or(i32::MAX))
                .map(|queue| MessageQueue::new(topic, BROKER, queue))
                .collect();
            let ids: Vec<String> = members
                .values()
                .filter(|member| member.topics().any(|own| own == topic))
                .map(|member| member.id.clone())
                .collect();
            let own = self.strategy.of_topic(topic, &queues, &ids, &self.id);
            share.extend(
                own.into_iter().filter_map(|queue| {
                    Some((topic.to_owned(), u32::try_from(queue.queue_id).ok()?))
                }),
            );
        }
        share
    }
}

impl Group {
    /// Gives every member its queues anew, and queues without a position one.
    pub(super) fn rebalance(&mut self, topics: &Topics) {
        let shares: Vec<(u64, Vec<QueueKey>)> = self
            .members
            .iter()
            .map(|(number, member)| (*number, member.share(topics, &self.members)))
            .collect();
        for (number, share) in shares {
            let Some(member) = self.members.get_mut(&number) else {
                continue;
            };
            for key in &share {
                let queue = topics.get(&key.0).and_then(|topic| topic.queue(key.1));
                let start = if names::is_retry_topic(&key.0) {
                    StartAt::First
                } else {
                    member.start
                };
                self.positions
                    .entry(key.clone())
                    .or_insert_with(|| Position {
                        next: queue.map_or(0, |queue| offset_of(queue, start)),
                        ..Position::default()
                    });
            }
            member.assigned = share;
        }
    }

    /// Moves the group's position in every queue of `topic`.
    pub(super) fn reset(&mut self, topic: &Topic, to: StartAt) {
        for (number, queue) in (0_u32..).zip(&topic.queues) {
            let position = self
                .positions
                .entry((topic.name.to_string(), number))
                .or_default();
            *position = Position {
                next: offset_of(queue, to),
                epoch: position.epoch.wrapping_add(1),
                // A handler that runs keeps its queue until it is done.
                held: position.held,
                ..Position::default()
            };
        }
    }

    /// Whether this member takes nothing now, or is gone.
    pub(super) fn is_paused(&self, member: u64) -> bool {
        self.members.get(&member).is_none_or(|member| member.paused)
    }

    /// The next message that `member` can have now, without taking it.
    pub(super) fn front(&mut self, member: u64, topics: &Topics, now: i64) -> Option<Front> {
        let member = self.members.get_mut(&member)?;
        let count = member.assigned.len();
        for step in 0..count {
            let turn = (member.turn + step) % count;
            let key = &member.assigned[turn];
            let (Some(filter), Some(queue)) = (
                member.filter(&key.0),
                topics.get(&key.0).and_then(|topic| topic.queue(key.1)),
            ) else {
                continue;
            };
            let Some(position) = self.positions.get_mut(key) else {
                continue;
            };
            if let Some(stored) = position.front(queue, filter, now) {
                let front = Front {
                    key: key.clone(),
                    stored,
                    epoch: position.epoch,
                    reconsume_times: position.reconsume_times,
                    turn: turn + 1,
                };
                return Some(front);
            }
        }
        None
    }

    /// When a queue that is held back is free again.
    pub(super) fn next_due(&self, now: i64) -> Option<i64> {
        let members = self.members.values().filter(|member| !member.paused);
        let keys = members.flat_map(|member| &member.assigned);
        let positions = keys.filter_map(|key| self.positions.get(key));
        positions
            .filter(|position| !position.held && position.not_before > now)
            .map(|position| position.not_before)
            .min()
    }

    /// Messages stored but not handled, over the queues of `topic`.
    pub(super) fn lag(&self, topic: &Topic) -> u64 {
        let queues = (0_u32..).zip(&topic.queues);
        let behind = queues.map(|(number, queue)| {
            let position = self.positions.get(&(topic.name.to_string(), number));
            queue
                .max()
                .saturating_sub(position.map_or(queue.min(), Position::committed))
        });
        behind.sum()
    }
}

impl Position {
    /// Everything before it is handled.
    pub(super) fn committed(&self) -> u64 {
        let open = self.in_hand.iter().chain(&self.back).min();
        open.map_or(self.next, |open| (*open).min(self.next))
    }

    fn front(&mut self, queue: &Queue, filter: &FilterExpression, now: i64) -> Option<Arc<Stored>> {
        if self.held || self.not_before > now {
            return None;
        }
        while let Some(back) = self.back.first().copied() {
            match queue.at(back) {
                Some(stored) => return Some(Arc::clone(stored)),
                None => self.back.remove(&back),
            };
        }
        self.next = self.next.max(queue.min());
        while let Some(stored) = queue.at(self.next) {
            if stored.wanted(filter) {
                return Some(Arc::clone(stored));
            }
            self.next += 1;
        }
        None
    }

    pub(super) fn take(&mut self, offset: u64, order: Order) {
        match order {
            Order::PerQueue => self.held = true,
            Order::Concurrent => {
                if !self.back.remove(&offset) {
                    self.next = self.next.max(offset + 1);
                }
                self.in_hand.insert(offset);
            }
        }
    }

    /// The message is done with, one way or another.
    pub(super) fn done(&mut self, offset: u64, order: Order) {
        match order {
            Order::PerQueue => {
                self.next = offset + 1;
                self.release();
            }
            Order::Concurrent => {
                self.in_hand.remove(&offset);
            }
        }
    }

    /// The message comes again, at once.
    pub(super) fn give_back(&mut self, offset: u64, order: Order) {
        match order {
            Order::PerQueue => self.held = false,
            Order::Concurrent => {
                if self.in_hand.remove(&offset) {
                    self.back.insert(offset);
                }
            }
        }
    }

    /// Ordered inputs: the message stays at the front and comes again at `at`.
    pub(super) fn suspend(&mut self, at: i64, reconsume_times: u32) {
        self.held = false;
        self.not_before = at;
        self.reconsume_times = reconsume_times;
    }

    /// Ordered inputs: nobody has the queue any more.
    pub(super) fn release(&mut self) {
        self.held = false;
        self.not_before = 0;
        self.reconsume_times = 0;
    }
}

fn offset_of(queue: &Queue, start: StartAt) -> u64 {
    match start {
        StartAt::First => queue.min(),
        StartAt::Last => queue.max(),
        StartAt::Timestamp(millis) => queue.at_time(millis),
    }
}
