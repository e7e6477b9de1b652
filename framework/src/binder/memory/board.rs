//! What the in-process broker knows: topics with their queues, groups with their positions, what waits for its time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::DEFAULT_QUEUES;
use crate::binder::{
    AssignedQueue, ConsumerSpec, Order, Place, Resume, Selection, StartAt, levels,
};
use crate::binding::{SendError, SendReceipt};
use crate::headers::{Headers, names};
use crate::message::Message;

/// Redeliveries of a group that sets no limit (`DEFAULT_MAX_RETRY_TIMES` of Apache RocketMQ).
const DEFAULT_RECONSUME_LIMIT: u32 = 16;

/// The topic of a group's dead letters.
pub(super) fn dead_letter_topic(group: &str) -> String {
    format!("%DLQ%{group}")
}

/// One stored message.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) topic: Arc<str>,
    pub(super) queue: u32,
    pub(super) offset: usize,
    pub(super) msg_id: Arc<str>,
    pub(super) at_millis: i64,
    pub(super) body: Bytes,
    pub(super) headers: Headers,
}

/// A message in the hands of a worker.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) stored: Arc<Stored>,
    pub(super) reconsume_times: u32,
}

/// What [`Board::take`] found.
pub(super) enum Next {
    /// A message to handle.
    Message(Taken),
    /// Nothing now, something at this time.
    At(Instant),
    /// Nothing.
    Idle,
}

/// The state of the broker; shared by its producers and workers.
#[derive(Debug, Default)]
pub(super) struct Board {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    topics: BTreeMap<String, Vec<Vec<Arc<Stored>>>>,
    seats: HashMap<String, Seat>,
    delayed: Vec<(Instant, String, u32, Arc<Stored>)>,
    round_robin: u32,
    next_id: u64,
}

/// A group, or one member of a broadcasting group.
#[derive(Debug, Default)]
struct Seat {
    topics: Vec<String>,
    selection: Option<Vec<String>>,
    cursors: BTreeMap<(String, u32), Cursor>,
    again: Vec<(Instant, Taken)>,
    running: usize,
    members: usize,
}

#[derive(Debug, Default, Clone)]
struct Cursor {
    next: usize,
    /// Ordered inputs: a worker has this queue.
    held: bool,
    /// Ordered inputs: not before this time, with the redeliveries of the message at the front.
    not_before: Option<Instant>,
    reconsume_times: u32,
}

impl Board {
    pub(super) fn create(&self, topic: &str, queues: u32) {
        self.lock().topic(topic, queues);
    }

    pub(super) fn queues(&self, topic: &str) -> u32 {
        let mut state = self.lock();
        u32::try_from(state.topic(topic, DEFAULT_QUEUES).len()).unwrap_or(u32::MAX)
    }

    pub(super) fn stored(&self, topic: &str) -> Vec<Message> {
        let state = self.lock();
        let queues = state.topics.get(topic).into_iter().flatten();
        queues
            .flatten()
            .map(|stored| Message::from_parts(stored.body.clone(), stored.headers.clone()))
            .collect()
    }

    /// Lets `seat` read the topics of `spec`; a seat that is taken for the first time begins where the spec says.
    pub(super) fn join(&self, seat: &str, spec: &ConsumerSpec) {
        let mut state = self.lock();
        let starts: Vec<((String, u32), usize)> = spec
            .destinations
            .iter()
            .flat_map(|topic| state.start_positions(topic, spec.start))
            .collect();
        let entry = state.seats.entry(seat.to_owned()).or_default();
        entry.members += 1;
        entry.topics.clone_from(&spec.destinations);
        entry.selection = match &spec.selection {
            Selection::Tags(tags) => {
                Some(tags.split("||").map(|tag| tag.trim().to_owned()).collect())
            }
            _ => None,
        };
        for (queue, next) in starts {
            let begin = Cursor {
                next,
                ..Cursor::default()
            };
            if spec.resume == Resume::Start && entry.members == 1 {
                entry.cursors.insert(queue, begin);
            } else {
                entry.cursors.entry(queue).or_insert(begin);
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn leave(&self, seat: &str) {
        if let Some(seat) = self.lock().seats.get_mut(seat) {
            seat.members -= 1;
        }
        self.changed.notify_waiters();
    }

    pub(super) fn assignment(&self, seat: &str) -> Vec<AssignedQueue> {
        let state = self.lock();
        let cursors = state
            .seats
            .get(seat)
            .into_iter()
            .flat_map(|seat| seat.cursors.keys());
        cursors
            .map(|(destination, queue)| AssignedQueue {
                destination: destination.clone(),
                broker: String::new(),
                queue_id: i32::try_from(*queue).unwrap_or(i32::MAX),
            })
            .collect()
    }

    pub(super) fn send(
        &self,
        topic: &str,
        message: &Message,
        place: Place,
    ) -> Result<SendReceipt, SendError> {
        let mut state = self.lock();
        let queues = state.topic(topic, DEFAULT_QUEUES).len();
        let queue = match place {
            Place::Partition(partition) => partition,
            Place::Any => {
                state.round_robin = state.round_robin.wrapping_add(1);
                state.round_robin % u32::try_from(queues).unwrap_or(1)
            }
        };
        if usize::try_from(queue).is_ok_and(|queue| queue >= queues) {
            return Err(SendError::PartitionMissing {
                destination: topic.to_owned(),
                partition: queue,
                queues,
            });
        }
        let (headers, delay) = visible(message.headers());
        let stored = state.store(topic, queue, message.payload().clone(), headers);
        let receipt = receipt(topic, &stored);
        match delay {
            None => state.push(topic, queue, stored),
            Some(delay) => state.delayed.push((
                Instant::now() + delay,
                topic.to_owned(),
                queue,
                Arc::new(stored),
            )),
        }
        drop(state);
        self.changed.notify_waiters();
        Ok(receipt)
    }

    /// The next message for `seat`, in the order redelivered, then queue by queue.
    pub(super) fn take(&self, seat: &str, order: Order) -> Next {
        let mut state = self.lock();
        let now = Instant::now();
        state.release_delayed(now);
        let State {
            topics,
            seats,
            delayed,
            ..
        } = &mut *state;
        let Some(seat) = seats.get_mut(seat) else {
            return Next::Idle;
        };
        if let Some(due) = seat.again.iter().position(|(at, _)| *at <= now) {
            seat.running += 1;
            return Next::Message(seat.again.swap_remove(due).1);
        }
        seat.add_new_queues(topics);
        let taken = seat.take_from_queues(topics, order, now);
        let waits = delayed.iter().map(|(at, ..)| *at).chain(seat.waits());
        match taken {
            Some(taken) => Next::Message(taken),
            None => waits.min().map_or(Next::Idle, Next::At),
        }
    }

    /// The message is done with.
    pub(super) fn ack(&self, seat: &str, taken: &Taken) {
        self.settle(seat, |_, seat| {
            if let Some(cursor) = seat.cursor_of(taken).filter(|cursor| cursor.held) {
                *cursor = Cursor {
                    next: taken.stored.offset + 1,
                    ..Cursor::default()
                };
            }
        });
    }

    /// The message comes again after `delay`, or goes to the dead letters when it has come `limit` times.
    pub(super) fn again(
        &self,
        seat: &str,
        group: &str,
        taken: &Taken,
        delay: Duration,
        limit: Option<u32>,
        order: Order,
    ) {
        let limit = match (limit, order) {
            (Some(limit), _) => limit,
            (None, Order::Concurrent) => DEFAULT_RECONSUME_LIMIT,
            (None, Order::PerQueue) => u32::MAX,
        };
        if taken.reconsume_times >= limit {
            self.bury(seat, group, taken);
            return;
        }
        let (at, times) = (Instant::now() + delay, taken.reconsume_times + 1);
        self.settle(seat, |_, seat| match order {
            Order::Concurrent => seat.again.push((
                at,
                Taken {
                    reconsume_times: times,
                    ..taken.clone()
                },
            )),
            Order::PerQueue => {
                if let Some(cursor) = seat.cursor_of(taken) {
                    *cursor = Cursor {
                        next: taken.stored.offset,
                        held: false,
                        not_before: Some(at),
                        reconsume_times: times,
                    };
                }
            }
        });
    }

    /// The message goes to the dead letters of `group`.
    pub(super) fn bury(&self, seat: &str, group: &str, taken: &Taken) {
        let topic = dead_letter_topic(group);
        self.settle(seat, |state, seat| {
            if let Some(cursor) = seat.cursor_of(taken).filter(|cursor| cursor.held) {
                *cursor = Cursor {
                    next: taken.stored.offset + 1,
                    ..Cursor::default()
                };
            }
            state.topic(&topic, 1);
            let mut dead = state.store(
                &topic,
                0,
                taken.stored.body.clone(),
                taken.stored.headers.clone(),
            );
            dead.msg_id = Arc::clone(&taken.stored.msg_id);
            state.push(&topic, 0, dead);
        });
    }

    /// The message goes back untouched: its worker stops.
    pub(super) fn give_back(&self, seat: &str, taken: &Taken, order: Order) {
        let now = Instant::now();
        self.settle(seat, |_, seat| match (order, seat.cursor_of(taken)) {
            (Order::PerQueue, Some(cursor)) => cursor.held = false,
            _ => seat.again.push((now, taken.clone())),
        });
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) async fn settled(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change between look and wait is not missed.
            changed.as_mut().enable();
            if self.lock().is_settled() {
                return;
            }
            changed.await;
        }
    }

    fn settle(&self, seat: &str, change: impl FnOnce(&mut State, &mut Seat)) {
        let mut state = self.lock();
        if let Some(mut entry) = state.seats.remove(seat) {
            entry.running -= 1;
            change(&mut state, &mut entry);
            state.seats.insert(seat.to_owned(), entry);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn topic(&mut self, topic: &str, queues: u32) -> &mut Vec<Vec<Arc<Stored>>> {
        self.topics
            .entry(topic.to_owned())
            .or_insert_with(|| (0..queues.max(1)).map(|_| Vec::new()).collect())
    }

    fn start_positions(&self, topic: &str, start: StartAt) -> Vec<((String, u32), usize)> {
        let queues = self.topics.get(topic).into_iter().flatten();
        let starts = queues.map(|queue| match start {
            StartAt::First => 0,
            StartAt::Last => queue.len(),
            StartAt::Timestamp(millis) => queue.partition_point(|stored| stored.at_millis < millis),
        });
        (0u32..)
            .zip(starts)
            .map(|(queue, next)| ((topic.to_owned(), queue), next))
            .collect()
    }

    fn store(&mut self, topic: &str, queue: u32, body: Bytes, headers: Headers) -> Stored {
        self.next_id += 1;
        let offset = self
            .topics
            .get(topic)
            .and_then(|queues| queues.get(queue_index(queue)))
            .map_or(0, Vec::len);
        Stored {
            topic: topic.into(),
            queue,
            offset,
            msg_id: format!("MEMORY{:010X}", self.next_id).into(),
            at_millis: now_millis(),
            body,
            headers,
        }
    }

    fn push(&mut self, topic: &str, queue: u32, mut stored: Stored) {
        let queues = self.topic(topic, DEFAULT_QUEUES);
        if let Some(queue) = queues.get_mut(queue_index(queue)) {
            stored.offset = queue.len();
            queue.push(Arc::new(stored));
        }
    }

    fn release_delayed(&mut self, now: Instant) {
        let (mut due, waiting): (Vec<_>, Vec<_>) =
            self.delayed.drain(..).partition(|(at, ..)| *at <= now);
        self.delayed = waiting;
        due.sort_by_key(|(at, ..)| *at);
        for (_, topic, queue, stored) in due {
            self.push(
                &topic,
                queue,
                Stored {
                    at_millis: now_millis(),
                    ..(*stored).clone()
                },
            );
        }
    }

    fn is_settled(&self) -> bool {
        let waits = |seat: &Seat| {
            seat.topics.iter().any(|topic| {
                let queues = self.topics.get(topic).into_iter().flatten();
                (0u32..).zip(queues).any(|(queue, messages)| {
                    seat.cursors
                        .get(&(topic.clone(), queue))
                        .map_or(0, |cursor| cursor.next)
                        < messages.len()
                })
            })
        };
        let busy = |seat: &Seat| seat.running > 0 || !seat.again.is_empty() || waits(seat);
        self.delayed.is_empty()
            && !self
                .seats
                .values()
                .any(|seat| seat.members > 0 && busy(seat))
    }
}

impl Seat {
    fn add_new_queues(&mut self, topics: &BTreeMap<String, Vec<Vec<Arc<Stored>>>>) {
        for topic in &self.topics {
            let queues = topics.get(topic).map_or(0, Vec::len);
            for queue in (0u32..).take(queues) {
                self.cursors.entry((topic.clone(), queue)).or_default();
            }
        }
    }

    fn take_from_queues(
        &mut self,
        topics: &BTreeMap<String, Vec<Vec<Arc<Stored>>>>,
        order: Order,
        now: Instant,
    ) -> Option<Taken> {
        for ((topic, queue), cursor) in &mut self.cursors {
            if cursor.held || cursor.not_before.is_some_and(|at| at > now) {
                continue;
            }
            let Some(messages) = topics
                .get(topic)
                .and_then(|queues| queues.get(queue_index(*queue)))
            else {
                continue;
            };
            while let Some(stored) = messages.get(cursor.next) {
                if !wanted(self.selection.as_deref(), stored) {
                    cursor.next += 1;
                    continue;
                }
                let taken = Taken {
                    stored: Arc::clone(stored),
                    reconsume_times: cursor.reconsume_times,
                };
                match order {
                    Order::Concurrent => cursor.next += 1,
                    Order::PerQueue => cursor.held = true,
                }
                self.running += 1;
                return Some(taken);
            }
        }
        None
    }

    /// The times at which this seat may have something to do again.
    fn waits(&self) -> impl Iterator<Item = Instant> {
        let held_back = self
            .cursors
            .values()
            .filter(|cursor| !cursor.held)
            .filter_map(|cursor| cursor.not_before);
        self.again
            .iter()
            .map(|(at, _)| *at)
            .chain(held_back.filter(|at| *at > Instant::now()))
    }

    fn cursor_of(&mut self, taken: &Taken) -> Option<&mut Cursor> {
        self.cursors
            .get_mut(&(taken.stored.topic.to_string(), taken.stored.queue))
    }
}

fn wanted(selection: Option<&[String]>, stored: &Stored) -> bool {
    match selection {
        None => true,
        Some(tags) if tags.iter().any(|tag| tag == "*") => true,
        Some(tags) => stored
            .headers
            .tags()
            .is_some_and(|own| tags.iter().any(|tag| tag == own)),
    }
}

/// The headers as a receiver sees them, and how long the message is held back.
fn visible(headers: &Headers) -> (Headers, Option<Duration>) {
    let mut headers = headers.clone();
    let level = headers
        .get(names::DELAY)
        .and_then(|text| text.trim().parse::<usize>().ok())
        .unwrap_or(0);
    headers.remove(names::DELAY);
    (headers, (level > 0).then(|| levels::duration_of(level)))
}

fn receipt(topic: &str, stored: &Stored) -> SendReceipt {
    SendReceipt {
        destination: topic.to_owned(),
        msg_id: stored.msg_id.to_string(),
        offset_msg_id: String::new(),
        broker: String::new(),
        queue_id: i32::try_from(stored.queue).unwrap_or(i32::MAX),
        queue_offset: i64::try_from(stored.offset).unwrap_or(i64::MAX),
        partition: None,
    }
}

fn queue_index(queue: u32) -> usize {
    usize::try_from(queue).unwrap_or(usize::MAX)
}

fn now_millis() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
