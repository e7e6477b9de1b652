//! The batch consume queue: for topics of `queue.type=BatchCQ`, where in the commit log the batch with the n-th message lies.
//!
//! ```text
//! commit log ──dispatch──▶ BatchQueue::append ──▶ 46-byte entries in files ──find by base offset──▶ entries ──▶ pull
//! ```
//! A batch is one record and has one entry, so an entry's place does not follow from a queue offset: it is searched for.
//! Entries go straight to their file, there are few. Derived data: deleting the folder and restarting rebuilds it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, BufMut};
use tracing::warn;

use super::consume_queue::remove_folder;
use super::error::StoreError;
use super::queue_files::{QueueFiles, QueueSerial, checked_files};

/// Bytes of an entry.
pub(super) const ENTRY: usize = 46;
const ENTRY_BYTES: i64 = 46;
/// Bytes read at once when a queue is scanned.
const SCAN: usize = 1000 * ENTRY;

/// One entry: 46 bytes, big endian: physical offset (i64), record size (i32), tags code (i64), store time (i64), queue offset
/// of the first message (i64), number of messages (i16), compacted offset (i32, −1), reserved (i32, 0). Mirrors
/// `BatchConsumeQueue.putBatchMessagePositionInfo` of Apache `RocketMQ` 5.3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchEntry {
    pub(super) physical: i64,
    /// Bytes of the record.
    pub(super) size: i32,
    pub(super) tags_code: i64,
    /// Milliseconds since 1970.
    pub(super) store_timestamp: i64,
    /// Queue offset of the first message.
    pub(super) base: i64,
    /// How many messages.
    pub(super) count: i16,
}

impl BatchEntry {
    fn read(mut bytes: &[u8]) -> Self {
        Self {
            physical: bytes.try_get_i64().unwrap_or(0),
            size: bytes.try_get_i32().unwrap_or(0),
            tags_code: bytes.try_get_i64().unwrap_or(0),
            store_timestamp: bytes.try_get_i64().unwrap_or(0),
            base: bytes.try_get_i64().unwrap_or(0),
            count: bytes.try_get_i16().unwrap_or(0),
        }
    }

    fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ENTRY);
        bytes.put_i64(self.physical);
        bytes.put_i32(self.size);
        bytes.put_i64(self.tags_code);
        bytes.put_i64(self.store_timestamp);
        bytes.put_i64(self.base);
        bytes.put_i16(self.count);
        bytes.put_i32(-1);
        bytes.put_i32(0);
        bytes
    }

    fn is_entry(self) -> bool {
        self.physical >= 0 && self.size > 0 && self.base >= 0 && self.count > 0
    }

    fn end(self) -> i64 {
        self.physical.saturating_add(i64::from(self.size))
    }

    /// The queue offset behind the batch.
    pub(super) fn after(self) -> i64 {
        self.base.saturating_add(i64::from(self.count))
    }
}

/// One queue.
#[derive(Debug)]
pub(super) struct BatchQueue {
    topic: Box<str>,
    id: i32,
    dir: PathBuf,
    serial: QueueSerial,
    files: Arc<QueueFiles>,
    /// The queue offset that the next batch begins with.
    pub(super) next: AtomicI64,
    min: AtomicI64,
    max: AtomicI64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// First byte of the oldest file.
    first_file: i64,
    /// Byte behind the newest entry.
    end: i64,
    /// Offset behind the record of the newest entry, -1 for none: what is below is already here.
    highest_end: i64,
    /// Files with bytes that may not be on disk yet.
    unsynced: Vec<i64>,
    /// The topic was deleted: nothing is written any more.
    deleted: bool,
}

impl BatchQueue {
    /// A queue without entries.
    pub(super) fn new(
        topic: &str,
        id: i32,
        dir: PathBuf,
        serial: QueueSerial,
        files: Arc<QueueFiles>,
    ) -> Self {
        Self {
            topic: topic.into(),
            id,
            dir,
            serial,
            files,
            next: AtomicI64::new(0),
            min: AtomicI64::new(0),
            max: AtomicI64::new(0),
            state: Mutex::new(State {
                first_file: 0,
                end: 0,
                highest_end: -1,
                unsynced: Vec::new(),
                deleted: false,
            }),
        }
    }

    /// Opens a queue's files and finds the last valid entry, looking at the last three of them; files behind it go.
    pub(super) fn load(
        topic: &str,
        id: i32,
        dir: PathBuf,
        serial: QueueSerial,
        files: Arc<QueueFiles>,
    ) -> Result<Self, StoreError> {
        let queue = Self::new(topic, id, dir, serial, files);
        let found = checked_files(&queue.dir, queue.files.file_size())?;
        let Some(first) = found.first() else {
            return Ok(queue);
        };
        let size = queue.files.file_size();
        let mut state = queue.state();
        (state.first_file, state.end) = (*first, *first);
        let newest = Cell::new((-1, -1));
        for file in &found[found.len().saturating_sub(3)..] {
            // An entry out of order is damage, and what follows it can't be told from that.
            let (valid, last) = queue.scan(*file, |entry| {
                let before = newest.replace((entry.physical, entry.base));
                before.0 < entry.physical && before.1 < entry.base
            })?;
            queue.set_end(&mut state, file + valid, last);
            if valid < size {
                break;
            }
        }
        let end = state.end;
        for file in found.iter().filter(|file| **file > end) {
            queue.files.remove(queue.serial, &queue.dir, *file)?;
        }
        drop(state);
        Ok(queue)
    }

    /// The topic.
    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    /// The queue id.
    pub(super) fn id(&self) -> i32 {
        self.id
    }

    /// Smallest offset that can be read.
    pub(super) fn min(&self) -> i64 {
        self.min.load(Ordering::Acquire)
    }

    /// Offset behind the newest message.
    pub(super) fn max(&self) -> i64 {
        self.max.load(Ordering::Acquire)
    }

    /// Offset behind the record of the newest entry; -1 if there is none.
    pub(super) fn highest_end(&self) -> i64 {
        self.state().highest_end
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_end(&self, state: &mut State, end: i64, last: Option<BatchEntry>) {
        state.end = end;
        if let Some(last) = last {
            state.highest_end = last.end();
            self.max.store(last.after(), Ordering::Release);
            self.next.fetch_max(last.after(), Ordering::AcqRel);
        }
    }

    /// Puts an entry at the end; what the queue holds already is skipped. Gives back whether it was put.
    ///
    /// A batch whose offsets an earlier record has taken belongs to a topic that was deleted and made again: the log is the
    /// truth, so the queue ends before it and goes on with it.
    pub(super) fn append(&self, entry: BatchEntry) -> Result<bool, StoreError> {
        let mut state = self.state();
        if state.deleted || entry.end() <= state.highest_end || !entry.is_entry() {
            return Ok(false);
        }
        if state.highest_end >= 0 && entry.base < self.max() {
            warn!(topic = %self.topic, queue_id = self.id, queue_offset = entry.base, "a later record took the offset: the batch queue is cut");
            self.cut(&mut state, |old| old.after() <= entry.base)?;
        }
        if state.highest_end < 0 {
            self.min.store(entry.base, Ordering::Release);
        }
        let size = self.files.file_size();
        let at = state.end;
        let file = at / size * size;
        self.files.write(
            self.serial,
            &self.dir,
            file,
            unsigned(at - file),
            &entry.bytes(),
        )?;
        if !state.unsynced.contains(&file) {
            state.unsynced.push(file);
        }
        self.set_end(&mut state, at + ENTRY_BYTES, Some(entry));
        Ok(true)
    }

    /// Writes the queue's files to the disk.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let unsynced = std::mem::take(&mut self.state().unsynced);
        let sync = |file: &i64| self.files.sync(self.serial, &self.dir, *file);
        let synced = unsynced.iter().try_for_each(sync);
        if synced.is_err() {
            self.state().unsynced.extend(unsynced);
        }
        synced
    }

    /// The numbers of the entries there are: of the oldest, and behind the newest.
    fn numbers(&self) -> (i64, i64) {
        let state = self.state();
        (state.first_file / ENTRY_BYTES, state.end / ENTRY_BYTES)
    }

    fn entry(&self, number: i64) -> Result<Option<BatchEntry>, StoreError> {
        let (at, size) = (number.saturating_mul(ENTRY_BYTES), self.files.file_size());
        let mut bytes = [0; ENTRY];
        let (file, at) = (at / size * size, unsigned(at % size));
        let there = self
            .files
            .read(self.serial, &self.dir, file, at, &mut bytes)?;
        let entry = there.then(|| BatchEntry::read(&bytes));
        Ok(entry.filter(|entry| entry.is_entry()))
    }

    /// The number of the first entry that is not `before`.
    fn partition(&self, before: impl Fn(BatchEntry) -> bool) -> Result<i64, StoreError> {
        let (mut low, mut high) = self.numbers();
        while low < high {
            let middle = low + (high - low) / 2;
            // An entry that is gone meanwhile lies before everything.
            if self.entry(middle)?.is_none_or(&before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Up to `limit` entries, beginning with the one that holds queue offset `from`.
    pub(super) fn entries(&self, from: i64, limit: usize) -> Result<Vec<BatchEntry>, StoreError> {
        let first = self.partition(|entry| entry.after() <= from)?;
        let behind = self.numbers().1;
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX);
        let numbers = first..behind.min(first.saturating_add(wanted));
        let mut entries = Vec::new();
        for number in numbers {
            entries.extend(self.entry(number)?);
        }
        Ok(entries)
    }

    /// The newest entry.
    pub(super) fn newest(&self) -> Result<Option<BatchEntry>, StoreError> {
        let (first, behind) = self.numbers();
        if first == behind {
            return Ok(None);
        }
        self.entry(behind - 1)
    }

    /// Takes all entries away.
    pub(super) fn clear(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        self.cut(&mut state, |_| false)
    }

    /// The first batch that is not `before`; `None` if all are.
    pub(super) fn first_not(
        &self,
        before: impl Fn(BatchEntry) -> bool,
    ) -> Result<Option<BatchEntry>, StoreError> {
        let number = self.partition(before)?;
        if number >= self.numbers().1 {
            return Ok(None);
        }
        self.entry(number)
    }

    /// Sets the smallest readable offset: that of the first batch that lies at or behind `start`, the first byte of the commit
    /// log.
    pub(super) fn correct_min(&self, start: i64) -> Result<(), StoreError> {
        let first = self.first_not(|entry| entry.physical < start)?;
        let min = first.map_or(self.max(), |first| first.base);
        self.min.store(min, Ordering::Release);
        Ok(())
    }

    /// Deletes the files, but the newest, whose entries all point before `start`. Gives back how many.
    pub(super) fn expire(&self, start: i64) -> Result<usize, StoreError> {
        let size = self.files.file_size();
        let mut expired = Vec::new();
        loop {
            let first = self.state().first_file;
            if self.state().deleted || first + size >= self.state().end {
                break;
            }
            let newest = self.entry((first + size) / ENTRY_BYTES - 1)?;
            if newest.is_none_or(|entry| entry.physical >= start) {
                break;
            }
            expired.push(first);
            self.state().first_file += size;
        }
        self.correct_min(start)?;
        for file in &expired {
            self.files.remove(self.serial, &self.dir, *file)?;
        }
        Ok(expired.len())
    }

    /// Cuts off the entries that point at or behind `end`, where recovery cut the commit log.
    pub(super) fn truncate(&self, end: i64) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.highest_end <= end {
            return Ok(());
        }
        self.cut(&mut state, |entry| entry.end() <= end)
    }

    /// Keeps the entries at the front that are `kept`; the rest is erased, so that it can't count again at the next start.
    fn cut(&self, state: &mut State, kept: impl Fn(BatchEntry) -> bool) -> Result<(), StoreError> {
        let size = self.files.file_size();
        let mut file = (state.end - 1).max(0) / size * size;
        loop {
            let (valid, last) = self.scan(file, &kept)?;
            if last.is_some() {
                self.set_end(state, file + valid, last);
                return self.erase(file, valid);
            }
            self.files.remove(self.serial, &self.dir, file)?;
            if file <= state.first_file {
                break;
            }
            file -= size;
        }
        (state.first_file, state.end, state.highest_end) = (0, 0, -1);
        self.min.store(0, Ordering::Release);
        self.max.store(0, Ordering::Release);
        Ok(())
    }

    fn erase(&self, file: i64, from: i64) -> Result<(), StoreError> {
        let len = usize::try_from(self.files.file_size() - from).unwrap_or(0);
        let zeros = vec![0; len];
        self.files
            .write(self.serial, &self.dir, file, unsigned(from), &zeros)?;
        self.files.sync(self.serial, &self.dir, file)
    }

    /// Walks the entries of a file while they are valid and `wanted`; gives back how many bytes that was, and the last one.
    fn scan(
        &self,
        file: i64,
        wanted: impl Fn(BatchEntry) -> bool,
    ) -> Result<(i64, Option<BatchEntry>), StoreError> {
        let size = usize::try_from(self.files.file_size()).unwrap_or(0);
        let (mut at, mut last) = (0, None);
        let mut chunk = Vec::new();
        while at < size {
            chunk.resize(SCAN.min(size - at), 0);
            let position = u64::try_from(at).unwrap_or(0);
            if !self
                .files
                .read(self.serial, &self.dir, file, position, &mut chunk)?
            {
                break;
            }
            for bytes in chunk.chunks_exact(ENTRY) {
                let entry = BatchEntry::read(bytes);
                if !entry.is_entry() || !wanted(entry) {
                    return Ok((i64::try_from(at).unwrap_or(0), last));
                }
                last = Some(entry);
                at += ENTRY;
            }
        }
        Ok((i64::try_from(at).unwrap_or(0), last))
    }

    /// Ends recovery: the next batch begins behind the newest entry.
    pub(super) fn settle(&self) {
        self.next.store(self.max(), Ordering::Release);
    }

    /// Deletes the queue's files; entries that come later are dropped.
    pub(super) fn delete(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        state.deleted = true;
        state.unsynced.clear();
        self.files.forget(self.serial);
        remove_folder(Path::new(&self.dir))
    }
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
