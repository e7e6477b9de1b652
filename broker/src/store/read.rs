//! Reading a queue: from a queue offset on, the records that pass a filter, as slices of the mapped commit log.
//!
//! ```text
//! offset ─▶ consume-queue entries ─tags?─▶ commit log slice ─properties?─▶ messages        (no body is copied)
//! ```
//! Limits and answers are those of `DefaultMessageStore.getMessage` of Apache `RocketMQ` 5.3.3.

use std::sync::Arc;

use bindery_protocol::message::{PhysicalOffset, QueueOffset};
use bytes::Bytes;
use tracing::warn;

use super::batch_queue::BatchQueue;
use super::consume_queue::{ConsumeQueue, ENTRY, Entry};
use super::inner::Inner;
use super::mapped_file::MappedFile;

/// What came of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadStatus {
    /// There are messages.
    Found,
    /// The queue does not exist.
    NoMatchedLogicQueue,
    /// The queue never had a message.
    NoMessageInQueue,
    /// The offset lies below the queue's first message.
    OffsetTooSmall,
    /// The offset is the queue's end: the next message will have it.
    OffsetOverflowOne,
    /// The offset lies beyond the queue's end.
    OffsetOverflowBadly,
    /// The entries at the offset can't be read.
    OffsetFoundNull,
    /// There are messages, none passed the filter.
    NoMatchedMessage,
    /// The records are gone from the commit log.
    MessageWasRemoving,
}

/// How much one read gives back.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimits {
    /// Most messages (`maxMsgNums`).
    pub messages: usize,
    /// Most bytes; the first message is given whatever its size. Default 128 MiB.
    pub bytes: usize,
}

impl ReadLimits {
    /// At most `messages` messages.
    #[must_use]
    pub fn messages(messages: usize) -> Self {
        Self {
            messages,
            bytes: 128 << 20,
        }
    }
}

/// Which messages a read gives back.
pub trait EntryFilter {
    /// Decides by the tags code alone, before the record is touched.
    fn matches_tags(&self, tags_code: i64) -> bool;

    /// Decides by the whole record.
    fn matches_record(&self, record: &[u8]) -> bool {
        let _ = record;
        true
    }
}

/// Lets everything through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Everything;

impl EntryFilter for Everything {
    fn matches_tags(&self, _: i64) -> bool {
        true
    }
}

impl EntryFilter for bindery_protocol::message::TagExpression {
    fn matches_tags(&self, tags_code: i64) -> bool {
        self.matches_code(tags_code)
    }
}

/// What a read gives back.
#[derive(Debug, Clone)]
pub struct ReadResult {
    /// What came of it.
    pub status: ReadStatus,
    /// Where to read on.
    pub next: QueueOffset,
    /// The queue's first offset.
    pub min: QueueOffset,
    /// The offset behind the queue's last message.
    pub max: QueueOffset,
    /// The records, in order; each is a slice of the commit log.
    pub messages: Vec<Bytes>,
    /// Sum of their sizes in bytes.
    pub bytes: usize,
    /// The reader is so far behind that a slave had better serve it.
    pub suggest_slave: bool,
}

impl ReadResult {
    fn empty(status: ReadStatus, next: i64, (min, max): (i64, i64)) -> Self {
        Self {
            status,
            next: QueueOffset(next),
            min: QueueOffset(min),
            max: QueueOffset(max),
            messages: Vec::new(),
            bytes: 0,
            suggest_slave: false,
        }
    }
}

/// The written part of the file that was looked at last: most records of a read lie in one file.
struct LastFile {
    file: Arc<MappedFile>,
    window: Bytes,
}

struct Reading<'a> {
    store: &'a Inner,
    limits: ReadLimits,
    filter: &'a dyn EntryFilter,
    result: ReadResult,
    /// Messages in the result; a batch counts as many as it holds.
    taken: usize,
    last_file: Option<LastFile>,
    /// Offset of the file behind one that is gone from the log: entries below it need no look.
    skip_below: i64,
}

/// Of which kind a queue is.
enum Queue {
    Simple(Arc<ConsumeQueue>),
    Batch(Arc<BatchQueue>),
}

/// Reads `queue_id` of `topic` from `from` on.
pub(super) fn read(
    store: &Inner,
    topic: &str,
    queue_id: i32,
    from: QueueOffset,
    limits: ReadLimits,
    filter: &dyn EntryFilter,
) -> ReadResult {
    let queues = &store.dispatcher.derived().queues;
    let batches = (!queues.batches.is_empty())
        .then(|| queues.batches.find(topic, queue_id))
        .flatten();
    let queue = match batches {
        Some(batches) => Queue::Batch(batches),
        None => match queues.find(topic, queue_id) {
            Some(queue) => Queue::Simple(queue),
            None => return ReadResult::empty(ReadStatus::NoMatchedLogicQueue, 0, (0, 0)),
        },
    };
    let range = match &queue {
        Queue::Simple(queue) => (queue.min(), queue.max()),
        Queue::Batch(queue) => (queue.min(), queue.max()),
    };
    let (min, max) = range;
    let from = from.0;
    match from {
        _ if max == 0 => ReadResult::empty(ReadStatus::NoMessageInQueue, 0, range),
        _ if from < min => ReadResult::empty(ReadStatus::OffsetTooSmall, min, range),
        _ if from == max => ReadResult::empty(ReadStatus::OffsetOverflowOne, from, range),
        _ if from > max => ReadResult::empty(ReadStatus::OffsetOverflowBadly, max, range),
        _ => {
            let result = ReadResult::empty(ReadStatus::NoMatchedMessage, from, range);
            let reading = Reading {
                store,
                limits,
                filter,
                result,
                taken: 0,
                last_file: None,
                skip_below: i64::MIN,
            };
            match &queue {
                Queue::Simple(queue) => reading.run(queue, from),
                Queue::Batch(queue) => reading.run_batches(queue, from),
            }
        }
    }
}

impl Reading<'_> {
    fn run(mut self, queue: &ConsumeQueue, from: i64) -> ReadResult {
        let look_at = (self.store.config.max_filter_message_size / ENTRY).max(self.limits.messages);
        let mut entries = Vec::with_capacity(look_at.min(64) * ENTRY);
        // Entries come from memory or one file at a time; both kinds of a read stay within one queue file.
        let (mut next, behind, mut looked_at) = (from, queue.next_file(from), 0);
        let mut going = true;
        while going && looked_at < look_at && next < behind.min(self.result.max.0) {
            entries.clear();
            // Small steps first: most reads are satisfied by as many entries as they want messages.
            let step = (look_at - looked_at).min(self.limits.messages.max(32));
            if let Err(error) = queue.entries(next, step, &mut entries) {
                warn!(%error, topic = queue.topic(), queue_id = queue.id(), "consume queue cannot be read");
                break;
            }
            if entries.is_empty() {
                break;
            }
            for bytes in entries.chunks_exact(ENTRY) {
                going = self.take(Entry::read(bytes), 1);
                if !going {
                    break;
                }
                next += 1;
                looked_at += 1;
            }
        }
        self.result.next = QueueOffset(next);
        if next == from {
            self.result.status = ReadStatus::OffsetFoundNull;
            self.result.next = QueueOffset(behind.min(self.result.max.0));
        }
        self.result
    }

    /// The same for batches: the one that holds `from` is given whole.
    fn run_batches(mut self, queue: &BatchQueue, from: i64) -> ReadResult {
        let look_at = (self.store.config.max_filter_message_size / ENTRY).max(self.limits.messages);
        let entries = queue.entries(from, look_at).unwrap_or_else(|error| {
            warn!(%error, topic = queue.topic(), queue_id = queue.id(), "batch queue cannot be read");
            Vec::new()
        });
        let mut next = from;
        for batch in entries {
            let entry = Entry {
                physical: PhysicalOffset(batch.physical),
                size: batch.size,
                tags_code: batch.tags_code,
            };
            let looked_at = usize::try_from(batch.base.saturating_sub(from)).unwrap_or(0);
            let count = usize::try_from(batch.count).unwrap_or(1);
            if looked_at >= look_at || !self.take(entry, count) {
                break;
            }
            next = batch.after();
        }
        self.result.next = QueueOffset(next);
        if next == from {
            // Entries that can't be read: there is nothing before the end.
            self.result.status = ReadStatus::OffsetFoundNull;
            self.result.next = self.result.max;
        }
        self.result
    }

    /// Looks at one entry, which stands for `count` messages; `false` when the read is full and the entry belongs to the next one.
    fn take(&mut self, entry: Entry, count: usize) -> bool {
        let physical = entry.physical.0;
        let size = usize::try_from(entry.size).unwrap_or(0);
        let in_memory = self.store.in_memory(physical);
        if self.is_full(size, count, in_memory) {
            return false;
        }
        self.result.suggest_slave = !in_memory;
        if entry.is_filler()
            || physical < self.skip_below
            || !self.filter.matches_tags(entry.tags_code)
        {
            return true;
        }
        let Some(record) = self.record(physical, size) else {
            if self.result.messages.is_empty() {
                self.result.status = ReadStatus::MessageWasRemoving;
            }
            self.skip_below = self.store.log.start();
            return true;
        };
        if self.filter.matches_record(&record) {
            self.result.status = ReadStatus::Found;
            self.result.bytes += size;
            self.taken += count;
            self.result.messages.push(record);
        }
        true
    }

    fn is_full(&self, size: usize, count: usize, in_memory: bool) -> bool {
        let (messages, bytes) = (self.taken, self.result.bytes);
        let config = &self.store.config;
        let (most_bytes, most_messages) = if in_memory {
            (
                config.max_transfer_bytes_in_memory,
                config.max_transfer_count_in_memory,
            )
        } else {
            (
                config.max_transfer_bytes_on_disk,
                config.max_transfer_count_on_disk,
            )
        };
        messages > 0
            && (messages + count > self.limits.messages
                || messages >= most_messages
                || bytes + size > self.limits.bytes.min(most_bytes))
    }

    fn record(&mut self, physical: i64, size: usize) -> Option<Bytes> {
        let holds = |last: &LastFile| last.file.base() <= physical && physical < last.file.end();
        if !self.last_file.as_ref().is_some_and(holds) {
            let file = self.store.log.file_at(physical)?;
            let window = file.window();
            self.last_file = Some(LastFile { file, window });
        }
        let last = self.last_file.as_ref()?;
        let at = usize::try_from(physical - last.file.base()).ok()?;
        let end = at
            .checked_add(size)
            .filter(|end| *end <= last.window.len())?;
        Some(last.window.slice(at..end))
    }
}
