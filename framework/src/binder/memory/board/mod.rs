//! What the in-process broker knows: topics with their queues, groups with their positions, what waits for its time.
//!
//! ```text
//! send ─▶ Board::store ─┬─▶ topic/queue ─▶ take ─▶ worker ─▶ ack · retry · bury · give_back
//!                       └─▶ delayed ──due──▶ topic/queue            │       └─▶ %DLQ%group
//!                             ▲                                     └─ concurrent: %RETRY%group, later
//!                             └─────────────────────────────────────┘  ordered: the queue waits
//! ```

mod flow;
mod group;
mod settle;
mod topic;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_protocol::filter::FilterExpression;
use bindery_protocol::message::DelayLevels;
use bindery_protocol::message::id::UniqueIdGenerator;
use bindery_protocol::names;

pub(super) use self::flow::{Counting, Rest};
use self::group::{Group, Member, QueueKey, Topics};
pub(super) use self::topic::{Content, Stored};
use self::topic::{QUEUE_CAPACITY, Topic};
use super::transactions::Halves;
use super::{DEFAULT_QUEUES, Outage};
use crate::binder::{Access, AssignedQueue, Audience, ConsumerSpec, Order, Place, Resume, StartAt};
use crate::binding::{SendError, SendReceipt};
use crate::headers::Timing;
use crate::pace::Pace;
use bindery_client::Allocation;

/// The broker's name in receipts and facts.
pub(super) const BROKER: &str = "memory";

/// `ResponseCode.SYSTEM_BUSY` of Apache RocketMQ.
const SYSTEM_BUSY: i32 = 2;

/// The state of the broker; shared by its producers and workers.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) pace: Pace,
    ids: UniqueIdGenerator,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    topics: Topics,
    groups: BTreeMap<String, Group>,
    /// Messages that wait for their time, by that and by their number.
    delayed: BTreeMap<(i64, u64), Waiting>,
    pub(super) halves: Halves,
    pub(super) levels: DelayLevels,
    pub(super) outage: Option<Outage>,
    numbers: u64,
    round_robin: u32,
    /// Messages in the hands of workers, also of members that have left.
    running: usize,
    pub(super) attempts: u64,
}

#[derive(Debug)]
struct Waiting {
    key: QueueKey,
    content: Content,
}

/// A seat of a consumer: its group and its number in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seat {
    group: String,
    member: u64,
}

/// A message in the hands of a worker.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) stored: Arc<Stored>,
    pub(super) reconsume_times: u32,
    key: QueueKey,
    epoch: u32,
}

/// What [`Board::take`] found.
pub(super) enum Next {
    /// A message to handle.
    Message(Box<Taken>),
    /// Nothing now, something at this time.
    At(i64),
    /// Nothing.
    Idle,
}

/// How long a message that is sent waits before consumers see it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Delay {
    /// Not at all.
    None,
    /// As the table of levels says.
    Level(u8),
    /// Until a point of time.
    Time(Timing),
}

impl Delay {
    /// When it is over, milliseconds since 1970.
    fn due(self, levels: &DelayLevels, now: i64) -> Option<i64> {
        match self {
            Self::None => None,
            Self::Level(level) => Some(levels.due(levels.clamp(i32::from(level)), now)),
            Self::Time(Timing::At(millis)) => Some(millis),
            Self::Time(Timing::After(delay)) => {
                let millis = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
                Some(now.saturating_add(millis))
            }
        }
    }
}

impl Board {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            ids: UniqueIdGenerator::new(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            state: Mutex::default(),
        }
    }

    pub(super) fn new_id(&self) -> Arc<str> {
        self.ids.next_id().into()
    }

    pub(super) fn create(&self, topic: &str, queues: u32, access: Access) {
        self.change(|state, _| state.create(topic, queues, access));
    }

    /// Writable queues of a topic.
    pub(super) fn queues(&self, topic: &str) -> u32 {
        self.change(|state, _| {
            state.create(topic, DEFAULT_QUEUES, Access::Both);
            match state.topics.get(topic) {
                Some(topic) if topic.access != Access::Read => topic.queue_count(),
                _ => 0,
            }
        })
    }

    /// Everything stored under `topic` that `wanted` lets through, queue after queue.
    pub(super) fn stored(&self, topic: &str, key: Option<&str>) -> Vec<Arc<Stored>> {
        self.change(|state, _| {
            let queues = state
                .topics
                .get(topic)
                .into_iter()
                .flat_map(|topic| &topic.queues);
            let stored = queues.flat_map(topic::Queue::iter);
            stored
                .filter(|stored| key.is_none_or(|key| stored.has_key(key)))
                .cloned()
                .collect()
        })
    }

    /// Lets a consumer read the topics of `spec`; a group that is new to a queue begins where the spec says.
    pub(super) fn join(
        &self,
        spec: &ConsumerSpec,
        filter: &FilterExpression,
        strategy: Allocation,
    ) -> Seat {
        self.change(|state, _| {
            for topic in &spec.destinations {
                state.create(topic, DEFAULT_QUEUES, Access::Both);
            }
            let number = state.number();
            let group = match spec.audience {
                Audience::Shared => {
                    state.create(&names::retry_topic(&spec.group), 1, Access::Both);
                    spec.group.clone()
                }
                Audience::Everyone => format!("{}#{number}", spec.group),
            };
            let member = Member::new(number, spec, filter, strategy);
            let State { topics, groups, .. } = state;
            let entry = groups.entry(group.clone()).or_default();
            if spec.resume == Resume::Start && entry.members.is_empty() {
                let read = spec.destinations.iter().filter_map(|name| topics.get(name));
                read.for_each(|topic| entry.reset(topic, spec.start));
            }
            entry.members.insert(number, member);
            entry.rebalance(topics);
            Seat {
                group,
                member: number,
            }
        })
    }

    pub(super) fn leave(&self, seat: &Seat) {
        self.change(|state, _| {
            let State { topics, groups, .. } = state;
            if let Some(group) = groups.get_mut(&seat.group) {
                group.members.remove(&seat.member);
                group.rebalance(topics);
            }
            // The positions of a broadcasting member are of no use to anybody else.
            if seat.group.ends_with(&format!("#{}", seat.member)) {
                groups.remove(&seat.group);
            }
        });
    }

    pub(super) fn pause(&self, seat: &Seat, paused: bool) {
        self.change(|state, _| {
            let group = state.groups.get_mut(&seat.group);
            if let Some(member) = group.and_then(|group| group.members.get_mut(&seat.member)) {
                member.paused = paused;
            }
        });
    }

    pub(super) fn assignment(&self, seat: &Seat) -> Vec<AssignedQueue> {
        let state = self.lock();
        let member = state
            .groups
            .get(&seat.group)
            .and_then(|group| group.members.get(&seat.member));
        let assigned = member.into_iter().flat_map(|member| &member.assigned);
        assigned
            .map(|(destination, queue)| AssignedQueue {
                destination: destination.clone(),
                broker: BROKER.to_owned(),
                queue_id: i32::try_from(*queue).unwrap_or(i32::MAX),
            })
            .collect()
    }

    /// Moves the positions of a group in every queue of a topic.
    pub(super) fn reset(&self, group: &str, topic: &str, to: StartAt) {
        self.change(|state, _| {
            state.create(topic, DEFAULT_QUEUES, Access::Both);
            let State { topics, groups, .. } = state;
            if let Some(topic) = topics.get(topic) {
                groups.entry(group.to_owned()).or_default().reset(topic, to);
            }
        });
    }

    /// Messages of `topic` that `group` has not handled yet.
    pub(super) fn lag(&self, group: &str, topic: &str) -> u64 {
        self.change(
            |state, _| match (state.groups.get(group), state.topics.get(topic)) {
                (Some(group), Some(topic)) => group.lag(topic),
                _ => 0,
            },
        )
    }

    /// Stores a message, or keeps it until its time has come.
    pub(super) fn store(
        &self,
        topic: &str,
        content: Content,
        place: Place,
        delay: Delay,
    ) -> Result<SendReceipt, SendError> {
        self.change(|state, now| {
            let queue = state.choose(topic, place)?;
            let msg_id = content.msg_id.to_string();
            let key = (topic.to_owned(), queue);
            let offset = match delay.due(&state.levels, now) {
                Some(due) if due > now => state.delay(due, key, content),
                _ => state.push(&key, content, now),
            };
            Ok(SendReceipt {
                destination: topic.to_owned(),
                msg_id,
                offset_msg_id: String::new(),
                broker: BROKER.to_owned(),
                queue_id: i32::try_from(queue).unwrap_or(i32::MAX),
                queue_offset: i64::try_from(offset).unwrap_or(i64::MAX),
                partition: None,
            })
        })
    }

    /// The next message for the consumer in `seat`.
    pub(super) fn take(&self, seat: &Seat) -> Next {
        let mut state = self.lock();
        let now = self.pace.now_millis();
        state.release_due(now);
        let due = state.next_due(now);
        let down = state.outage.is_some();
        let State {
            topics,
            groups,
            running,
            ..
        } = &mut *state;
        let Some(group) = groups.get_mut(&seat.group).filter(|_| !down) else {
            return Next::Idle;
        };
        if group.is_paused(seat.member) {
            return Next::Idle;
        }
        let Some(front) = group.front(seat.member, topics, now) else {
            return due.map_or(Next::Idle, Next::At);
        };
        let (Some(member), Some(position)) = (
            group.members.get_mut(&seat.member),
            group.positions.get_mut(&front.key),
        ) else {
            return Next::Idle;
        };
        position.take(front.stored.offset, member.order);
        member.in_hand += 1;
        member.turn = front.turn;
        *running += 1;
        let reconsume_times = match member.order {
            Order::PerQueue => front.reconsume_times,
            Order::Concurrent => front.stored.content.reconsume_times,
        };
        Next::Message(Box::new(Taken {
            stored: front.stored,
            reconsume_times,
            key: front.key,
            epoch: front.epoch,
        }))
    }

    /// Changes the state and tells everybody who waits. What is due has been released before.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut State, i64) -> R) -> R {
        let mut state = self.lock();
        let now = self.pace.now_millis();
        state.release_due(now);
        let result = change(&mut state, now);
        drop(state);
        self.pace.tell();
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Creates the topic unless it is there; groups that read it get its queues.
    fn create(&mut self, topic: &str, queues: u32, access: Access) {
        if self.topics.contains_key(topic) {
            return;
        }
        self.topics
            .insert(topic.to_owned(), Topic::new(topic, queues, access));
        let Self { topics, groups, .. } = self;
        for group in groups.values_mut() {
            group.rebalance(topics);
        }
    }

    /// The queue for a message; refuses what a broker would.
    fn choose(&mut self, topic: &str, place: Place) -> Result<u32, SendError> {
        self.create(topic, DEFAULT_QUEUES, Access::Both);
        let known = self
            .topics
            .get(topic)
            .filter(|topic| topic.access != Access::Read);
        let queues = known.map_or(0, Topic::queue_count);
        if queues == 0 {
            return Err(SendError::NoRoute {
                topic: topic.to_owned(),
                source: "nobody may write to it".into(),
            });
        }
        let queue = match place {
            Place::Partition(partition) => partition,
            Place::Any => {
                self.round_robin = self.round_robin.wrapping_add(1);
                self.round_robin % queues
            }
        };
        if queue >= queues {
            return Err(SendError::PartitionMissing {
                destination: topic.to_owned(),
                partition: queue,
                queues: usize::try_from(queues).unwrap_or(usize::MAX),
            });
        }
        self.make_room(&(topic.to_owned(), queue))?;
        Ok(queue)
    }

    /// A full queue gives up its oldest message if every group with a consumer has handled it.
    fn make_room(&mut self, key: &QueueKey) -> Result<(), SendError> {
        let Some(queue) = self
            .topics
            .get_mut(&key.0)
            .and_then(|topic| topic.queue_mut(key.1))
        else {
            return Ok(());
        };
        if !queue.is_full() {
            return Ok(());
        }
        let oldest = queue.min();
        let waited_for = self.groups.values().any(|group| {
            let position = group.positions.get(key);
            !group.members.is_empty()
                && position.is_some_and(|position| position.committed() <= oldest)
        });
        if waited_for {
            return Err(SendError::Broker {
                code: SYSTEM_BUSY,
                remark: format!(
                    "queue {} of {} holds {QUEUE_CAPACITY} messages that are not handled",
                    key.1, key.0
                ),
                retryable: true,
            });
        }
        queue.drop_oldest();
        Ok(())
    }

    /// Stores a message; its offset.
    pub(super) fn push(&mut self, key: &QueueKey, content: Content, now: i64) -> u64 {
        self.create(&key.0, DEFAULT_QUEUES, Access::Both);
        let number = self.number();
        let Some(topic) = self.topics.get_mut(&key.0) else {
            return 0;
        };
        let name = Arc::clone(&topic.name);
        let Some(queue) = topic.queue_mut(key.1) else {
            return 0;
        };
        let offset = queue.max();
        queue.push(Arc::new(Stored {
            topic: name,
            queue: key.1,
            offset,
            store_millis: now,
            number,
            content,
        }));
        offset
    }

    /// Keeps a message until `due`; its place among those that wait.
    fn delay(&mut self, due: i64, key: QueueKey, content: Content) -> u64 {
        let number = self.number();
        self.delayed.insert((due, number), Waiting { key, content });
        number
    }

    /// Puts messages whose time has come where they belong. A broker that is down does nothing.
    fn release_due(&mut self, now: i64) {
        if self.outage.is_some() {
            return;
        }
        while let Some(entry) = self
            .delayed
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            let Waiting { key, content } = entry.remove();
            self.push(&key, content, now);
        }
    }
}
