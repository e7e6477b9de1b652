//! What one revive queue says: hand-outs whose time has not come, with what of them is done.
//!
//! ```text
//! revive queue, message by message ─▶ Book::read ─┬─ checkpoint ─▶ pending, by the time its messages become visible
//!                                                 └─ ack ─▶ marked, or kept a while until its checkpoint comes
//! the time has come ─▶ Book::take_due ─▶ what is not done comes again
//! ```
//! The committed offset of a revive queue is, as in Apache `RocketMQ` 5.3.3, that of the last message nobody needs any more:
//! reading begins behind it.
use std::collections::{BTreeMap, BTreeSet, HashMap};

use bindery_protocol::{
    message::{RecordView, property},
    pop::{ACK_TAG, Ack, BATCH_ACK_TAG, CHECKPOINT_TAG, Checkpoint},
};

/// Milliseconds after its time until a hand-out is looked at: acks that were on their way have arrived then.
pub(crate) const GRACE: i64 = 2_001;
/// Hand-outs kept at a time. Acks of the others are read again once there is room for them.
const ROOM: usize = 20_000;
/// Acks kept that came before their hand-out.
const ROOM_FOR_EARLY: usize = 20_000;

/// Names one hand-out; acks say the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    topic: String,
    group: String,
    queue_id: i32,
    start_offset: i64,
    pop_time: i64,
}

impl Key {
    fn of(checkpoint: &Checkpoint) -> Self {
        Self {
            topic: checkpoint.topic.clone(),
            group: checkpoint.group.clone(),
            queue_id: checkpoint.queue_id,
            start_offset: checkpoint.start_offset,
            pop_time: checkpoint.pop_time,
        }
    }
}

#[derive(Debug)]
struct Early {
    /// Of the first of them in the revive queue.
    offset: i64,
    /// Store time after which they are given up.
    until: i64,
    done: Vec<i64>,
}

/// One revive queue.
#[derive(Debug)]
pub(crate) struct Book {
    /// Next message to read.
    cursor: i64,
    /// By offset in the revive queue.
    pending: BTreeMap<i64, Checkpoint>,
    keys: HashMap<Key, i64>,
    /// By time, then offset.
    times: BTreeSet<(i64, i64)>,
    early: HashMap<Key, Early>,
    /// First checkpoint that was passed over for want of room.
    passed_over: Option<i64>,
    /// How long an ack waits for its hand-out, ms (`reviveAckWaitMs`).
    patience: i64,
    /// Hand-outs kept at a time.
    room: usize,
}

impl Book {
    /// Begins behind the committed offset.
    pub(crate) fn new(committed: Option<i64>, patience: i64) -> Self {
        Self {
            cursor: committed
                .map_or(0, |committed| committed.saturating_add(1))
                .max(0),
            pending: BTreeMap::new(),
            keys: HashMap::new(),
            times: BTreeSet::new(),
            early: HashMap::new(),
            passed_over: None,
            patience,
            room: ROOM,
        }
    }

    /// The next message to read.
    pub(crate) fn cursor(&self) -> i64 {
        self.cursor
    }

    /// Goes on at another message: those between are gone.
    pub(crate) fn skip_to(&mut self, cursor: i64) {
        self.cursor = cursor;
    }

    /// Takes in one message of the queue.
    pub(crate) fn read(&mut self, record: &RecordView<'_>, now: i64) {
        let offset = record.queue_offset().0;
        self.cursor = offset.saturating_add(1);
        let tag = record.property(property::TAGS).unwrap_or_default();
        if tag == CHECKPOINT_TAG.as_bytes() {
            match serde_json::from_slice::<Checkpoint>(record.body()) {
                Ok(checkpoint) if checkpoint.topic.is_empty() || checkpoint.group.is_empty() => {}
                Ok(checkpoint) => self.handed_out(checkpoint, offset),
                Err(error) => tracing::error!(offset, %error, "hand-out not readable, left out"),
            }
        } else if tag == ACK_TAG.as_bytes() || tag == BATCH_ACK_TAG.as_bytes() {
            match serde_json::from_slice::<Ack>(record.body()) {
                Ok(ack) => self.done(&ack, offset, now),
                Err(error) => tracing::error!(offset, %error, "ack not readable, left out"),
            }
        }
    }

    fn handed_out(&mut self, mut checkpoint: Checkpoint, offset: i64) {
        let key = Key::of(&checkpoint);
        // The timer may deliver twice after a crash; what is done stays done.
        let known = self
            .keys
            .get(&key)
            .and_then(|first| self.pending.get(first));
        if known.is_some_and(|known| {
            known.differences == checkpoint.differences
                && known.count == checkpoint.count
                && known.revive_time() == checkpoint.revive_time()
        }) {
            return;
        }
        if self.pending.len() >= self.room {
            self.passed_over = self.passed_over.or(Some(offset));
            return;
        }
        if let Some(early) = self.early.remove(&key) {
            for offset in early.done {
                checkpoint.mark(offset);
            }
        }
        checkpoint.revive_offset = offset;
        self.keys.insert(key, offset);
        self.times.insert((checkpoint.revive_time(), offset));
        self.pending.insert(offset, checkpoint);
    }

    fn done(&mut self, ack: &Ack, offset: i64, now: i64) {
        let key = Key {
            topic: ack.topic.clone(),
            group: ack.group.clone(),
            queue_id: ack.queue_id,
            start_offset: ack.start_offset,
            pop_time: ack.pop_time,
        };
        if let Some(checkpoint) = self
            .keys
            .get(&key)
            .and_then(|offset| self.pending.get_mut(offset))
        {
            for offset in ack.done() {
                if !checkpoint.mark(offset) {
                    tracing::warn!(
                        topic = key.topic,
                        group = key.group,
                        offset,
                        "ack of a message that was not handed out"
                    );
                }
            }
            return;
        }
        // Behind one that was passed over everything is read again.
        if self.passed_over.is_some() || self.early.len() >= ROOM_FOR_EARLY {
            return;
        }
        let early = self.early.entry(key).or_insert_with(|| Early {
            offset,
            until: now.saturating_add(self.patience),
            done: Vec::new(),
        });
        if early.done.len() < 32 {
            early.done.extend(ack.done().take(32));
        }
    }

    /// When to look at the first hand-out; none when there is none.
    pub(crate) fn next_look(&self) -> Option<i64> {
        let (time, _) = self.times.first()?;
        Some(time.saturating_add(GRACE))
    }

    /// Takes out the first hand-out whose messages became visible at least [`GRACE`] before `now`.
    pub(crate) fn take_due(&mut self, now: i64) -> Option<Checkpoint> {
        let (time, offset) = self.times.first().copied()?;
        if time.saturating_add(GRACE) > now {
            return None;
        }
        self.remove(offset)
    }

    /// Puts back what could not be brought back; it is looked at again at `look_at`.
    pub(crate) fn put_back(&mut self, checkpoint: Checkpoint, look_at: i64) {
        let offset = checkpoint.revive_offset;
        self.keys.insert(Key::of(&checkpoint), offset);
        self.times.insert((look_at.saturating_sub(GRACE), offset));
        self.pending.insert(offset, checkpoint);
    }

    fn remove(&mut self, offset: i64) -> Option<Checkpoint> {
        let checkpoint = self.pending.remove(&offset)?;
        if !self.times.remove(&(checkpoint.revive_time(), offset)) {
            self.times.retain(|(_, other)| *other != offset);
        }
        let key = Key::of(&checkpoint);
        if self.keys.get(&key) == Some(&offset) {
            self.keys.remove(&key);
        }
        Some(checkpoint)
    }

    /// Gives up early acks whose hand-out has not come; goes back to what was passed over once there is room. Whether
    /// there is more to read.
    pub(crate) fn tidy(&mut self, now: i64) -> bool {
        if !self.early.is_empty() {
            self.early.retain(|_, early| early.until > now);
        }
        if self.pending.is_empty()
            && let Some(offset) = self.passed_over.take()
        {
            self.early.clear();
            self.cursor = offset;
            return true;
        }
        false
    }

    /// The last message nobody needs any more; −1 if the first is needed still.
    pub(crate) fn committed(&self) -> i64 {
        let pending = self.pending.keys().next().copied();
        let early = self.early.values().map(|early| early.offset).min();
        [pending, early, self.passed_over]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(self.cursor)
            .saturating_sub(1)
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
