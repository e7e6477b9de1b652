//! The consume queue: for one topic and queue id, where in the commit log the n-th message lies.
//!
//! ```text
//! commit log ──dispatch──▶ ConsumeQueue::append ──▶ tail (memory) ──▶ 20-byte entries in files ──▶ entries ──▶ pull
//! ```
//! Entry n lies at byte 20·n of the queue. New entries gather in memory and are written in runs; what a crash loses of
//! them is dispatched again from the commit log. Derived data: deleting the folder and restarting rebuilds it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_protocol::message::PhysicalOffset;
use bytes::{Buf, BufMut};
use tracing::{error, warn};

use super::error::StoreError;
use super::queue_files::{QueueFiles, QueueSerial, data_files};

/// Bytes of an entry.
pub(super) const ENTRY: usize = 20;
const ENTRY_BYTES: i64 = 20;
/// Entries kept in memory before a queue writes them.
const TAIL_ENTRIES: usize = 256;
/// Bytes read at once when a queue is scanned.
const SCAN: usize = 3200 * ENTRY;

/// One entry: 20 bytes, big endian: physical offset (i64), record size in bytes (i32), tags code (i64).
/// Mirrors `ConsumeQueue.putMessagePositionInfo` of Apache `RocketMQ` 5.3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Where the record lies.
    pub physical: PhysicalOffset,
    /// Size of the record in bytes.
    pub size: i32,
    /// Hash of the tag, or the due time of a delayed message.
    pub tags_code: i64,
}

impl Entry {
    /// Fills places below the queue's first message.
    const FILLER: Self = Self {
        physical: PhysicalOffset(0),
        size: i32::MAX,
        tags_code: 0,
    };

    /// Reads an entry; missing bytes read as zero, which is no entry.
    pub(super) fn read(mut bytes: &[u8]) -> Self {
        Self {
            physical: PhysicalOffset(bytes.try_get_i64().unwrap_or(0)),
            size: bytes.try_get_i32().unwrap_or(0),
            tags_code: bytes.try_get_i64().unwrap_or(0),
        }
    }

    fn write(self, into: &mut Vec<u8>) {
        into.put_i64(self.physical.0);
        into.put_i32(self.size);
        into.put_i64(self.tags_code);
    }

    fn is_entry(self) -> bool {
        self.physical.0 >= 0 && self.size > 0
    }

    /// Whether this stands for no message.
    pub(super) fn is_filler(self) -> bool {
        self == Self::FILLER
    }

    /// Offset behind the record.
    pub(super) fn end(self) -> i64 {
        self.physical.0.saturating_add(i64::from(self.size))
    }
}

/// One queue.
#[derive(Debug)]
pub(super) struct ConsumeQueue {
    topic: Box<str>,
    id: i32,
    dir: PathBuf,
    serial: QueueSerial,
    files: Arc<QueueFiles>,
    /// The queue offset that the next append to the commit log gets; moved under that log's tail lock.
    pub(super) next: AtomicI64,
    min: AtomicI64,
    max: AtomicI64,
    /// Whether the queue waits in the list of those to be written.
    pub(super) listed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// First byte of the oldest file.
    first_file: i64,
    /// Byte behind the newest file; equal to `first_file` while there is none.
    end_file: i64,
    /// Queue offset of the first entry in `tail`; everything before it is in the files.
    tail_start: i64,
    /// Entries not yet written.
    tail: Vec<u8>,
    /// Offset behind the record of the newest entry, -1 for none: what is below is already here.
    highest_end: i64,
    /// Files with bytes that may not be on disk yet.
    unsynced: Vec<i64>,
    /// The topic was deleted: nothing is written any more.
    deleted: bool,
}

impl State {
    fn end(&self) -> i64 {
        self.tail_start + entries(self.tail.len())
    }
}

impl ConsumeQueue {
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
            listed: AtomicBool::new(false),
            state: Mutex::new(State {
                first_file: 0,
                end_file: 0,
                tail_start: 0,
                tail: Vec::new(),
                highest_end: -1,
                unsynced: Vec::new(),
                deleted: false,
            }),
        }
    }

    /// Opens a queue's files and finds the last valid entry; files behind it are deleted.
    pub(super) fn load(
        topic: &str,
        id: i32,
        dir: PathBuf,
        serial: QueueSerial,
        files: Arc<QueueFiles>,
    ) -> Result<Self, StoreError> {
        let queue = Self::new(topic, id, dir, serial, files);
        let size = queue.files.file_size();
        let mut found = Vec::new();
        let mut older = data_files(&queue.dir)?;
        let last = older.pop();
        for (base, path) in older.into_iter().chain(last.clone()) {
            let length = std::fs::metadata(&path)
                .map_err(|source| StoreError::io("read", &path, 0, source))?
                .len();
            if length == 0 && last.as_ref().is_some_and(|(newest, _)| *newest == base) {
                queue.files.remove(queue.serial, &queue.dir, base)?;
            } else if i64::try_from(length) == Ok(size) {
                found.push(base);
            } else {
                let expected = u64::try_from(size).unwrap_or(0);
                return Err(StoreError::FileLength {
                    path,
                    found: length,
                    expected,
                });
            }
        }
        queue.recover(&found)?;
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

    /// Offset behind the newest entry.
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

    /// Puts the entry of queue offset `n` at the end; what the queue holds already is skipped. Gives back whether it was
    /// put.
    ///
    /// # Errors
    /// The entries gathered so far can't be written; the queue is as it was.
    pub(super) fn append(&self, entry: Entry, n: i64) -> Result<bool, StoreError> {
        let mut state = self.state();
        if entry.end() <= state.highest_end || state.deleted {
            return Ok(false);
        }
        if state.tail.len() >= TAIL_ENTRIES * ENTRY {
            self.write_tail(&mut state)?;
        }
        let empty = state.end_file == state.first_file && state.tail.is_empty();
        if empty && n != 0 {
            self.begin_at(&mut state, n);
        }
        let have = state.end();
        if n < have {
            warn!(topic = %self.topic, queue_id = self.id, queue_offset = n, have, "repeated consume queue entry");
            return Ok(false);
        }
        if n - have > self.files.file_size() / ENTRY_BYTES {
            error!(topic = %self.topic, queue_id = self.id, queue_offset = n, have, "impossible queue offset, entry dropped");
            return Ok(false);
        }
        if n > have {
            warn!(topic = %self.topic, queue_id = self.id, queue_offset = n, have, "consume queue entries are missing");
            (have..n).for_each(|_| Entry::FILLER.write(&mut state.tail));
        }
        entry.write(&mut state.tail);
        state.highest_end = entry.end();
        self.max.store(n + 1, Ordering::Release);
        self.next.fetch_max(n + 1, Ordering::AcqRel);
        Ok(true)
    }

    /// The first message of the queue has offset `n`: places before it in its file are filled.
    fn begin_at(&self, state: &mut State, n: i64) {
        let per_file = self.files.file_size() / ENTRY_BYTES;
        let first = n / per_file * per_file;
        (state.first_file, state.end_file) = (first * ENTRY_BYTES, first * ENTRY_BYTES);
        state.tail_start = first;
        (first..n).for_each(|_| Entry::FILLER.write(&mut state.tail));
        self.min.store(n, Ordering::Release);
    }

    /// Writes the entries gathered in memory to the queue's files.
    pub(super) fn write(&self) -> Result<(), StoreError> {
        self.write_tail(&mut self.state())
    }

    fn write_tail(&self, state: &mut State) -> Result<(), StoreError> {
        if state.deleted || state.tail.is_empty() {
            return Ok(());
        }
        let size = self.files.file_size();
        let mut at = state.tail_start * ENTRY_BYTES;
        let mut rest = &state.tail[..];
        while !rest.is_empty() {
            let file = at / size * size;
            let room = usize::try_from(size - (at - file)).unwrap_or(usize::MAX);
            let (run, behind) = rest.split_at(room.min(rest.len()));
            self.files
                .write(self.serial, &self.dir, file, unsigned(at - file), run)?;
            if !state.unsynced.contains(&file) {
                state.unsynced.push(file);
            }
            state.end_file = state.end_file.max(file + size);
            at += i64::try_from(run.len()).unwrap_or(0);
            rest = behind;
        }
        state.tail_start += entries(state.tail.len());
        state.tail.clear();
        Ok(())
    }

    /// Writes the queue's files to the disk. [`ConsumeQueue::write`] comes first.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let unsynced = std::mem::take(&mut self.state().unsynced);
        for (index, file) in unsynced.iter().enumerate() {
            if let Err(error) = self.files.sync(self.serial, &self.dir, *file) {
                self.state().unsynced.extend(&unsynced[index..]);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Up to `limit` entries from offset `from` on, appended to `into` as bytes; they all lie in the queue file that
    /// holds `from`. Nothing is appended if there is no such entry.
    pub(super) fn entries(
        &self,
        from: i64,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let size = self.files.file_size();
        let position = from.saturating_mul(ENTRY_BYTES);
        let (file, left_in_file) = (
            position / size * size,
            (size - position % size) / ENTRY_BYTES,
        );
        let limit = limit.min(usize::try_from(left_in_file).unwrap_or(0));
        let written = {
            let state = self.state();
            if from < 0 || from >= state.end() || file < state.first_file {
                return Ok(());
            }
            if from >= state.tail_start {
                let start = usize::try_from(from - state.tail_start).unwrap_or(0) * ENTRY;
                let end = state.tail.len().min(start.saturating_add(limit * ENTRY));
                into.extend_from_slice(&state.tail[start..end]);
                return Ok(());
            }
            usize::try_from(state.tail_start - from).unwrap_or(0)
        };
        let start = into.len();
        into.resize(start + written.min(limit) * ENTRY, 0);
        let at = unsigned(position - file);
        if !self
            .files
            .read(self.serial, &self.dir, file, at, &mut into[start..])?
        {
            into.truncate(start);
        }
        Ok(())
    }

    /// The entry of queue offset `n`, if the queue has it.
    pub(super) fn entry(&self, n: i64) -> Result<Option<Entry>, StoreError> {
        let mut bytes = Vec::with_capacity(ENTRY);
        self.entries(n, 1, &mut bytes)?;
        Ok((!bytes.is_empty())
            .then(|| Entry::read(&bytes))
            .filter(|entry| entry.is_entry()))
    }

    /// The offset of the first entry in the file behind the one that holds `n`.
    pub(super) fn next_file(&self, n: i64) -> i64 {
        let per_file = self.files.file_size() / ENTRY_BYTES;
        let first = self.state().first_file / ENTRY_BYTES;
        if n < first {
            first
        } else {
            (n / per_file + 1).saturating_mul(per_file)
        }
    }

    /// The files of the queue as ranges of offsets, oldest first.
    pub(super) fn file_ranges(&self) -> Vec<(i64, i64)> {
        let per_file = self.files.file_size() / ENTRY_BYTES;
        let state = self.state();
        let (mut first, end) = (state.first_file / ENTRY_BYTES, state.end());
        let mut ranges = Vec::new();
        while first < end {
            ranges.push((first, end.min(first + per_file)));
            first += per_file;
        }
        ranges
    }

    /// Sets the smallest readable offset: the first entry of the first file that points at or behind `start`, the first
    /// byte of the commit log. A queue whose messages are all gone keeps its number: min = max.
    pub(super) fn correct_min(&self, start: i64) -> Result<(), StoreError> {
        let max = self.max();
        let (first, tail_start) = {
            let state = self.state();
            (state.first_file / ENTRY_BYTES, state.tail_start)
        };
        let min = match self.entry(max - 1)? {
            Some(last) if last.physical.0 < start => max,
            None => max,
            Some(_) => {
                let per_file = self.files.file_size() / ENTRY_BYTES;
                let end = if first + per_file <= tail_start {
                    first + per_file
                } else {
                    max
                };
                let gone = |entry: Entry| entry.is_filler() || entry.physical.0 < start;
                self.partition(first, end, gone)?
            }
        };
        self.min.store(min, Ordering::Release);
        Ok(())
    }

    /// Binary search in `[low, high)`: the first offset whose entry is not `before`.
    pub(super) fn partition(
        &self,
        mut low: i64,
        mut high: i64,
        before: impl Fn(Entry) -> bool,
    ) -> Result<i64, StoreError> {
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

    /// Finds the end of the valid entries in the last three of `found`, and deletes files behind it.
    fn recover(&self, found: &[i64]) -> Result<(), StoreError> {
        let Some(first) = found.first() else {
            return Ok(());
        };
        let size = self.files.file_size();
        let mut highest_end = -1;
        let mut end = *first;
        for file in &found[found.len().saturating_sub(3)..] {
            let (valid, last) = self.scan(*file, |_| true)?;
            highest_end = last.map_or(highest_end, Entry::end);
            end = file + valid;
            if valid < size {
                break;
            }
        }
        let (kept, gone): (Vec<i64>, Vec<i64>) = found.iter().partition(|file| **file <= end);
        for file in gone {
            self.files.remove(self.serial, &self.dir, file)?;
        }
        let mut state = self.state();
        state.first_file = *first;
        state.end_file = kept.last().map_or(*first, |last| last + size);
        state.highest_end = highest_end;
        self.set_end(&mut state, end / ENTRY_BYTES);
        Ok(())
    }

    fn set_end(&self, state: &mut State, end: i64) {
        state.tail_start = end;
        state.tail.clear();
        self.max.store(end, Ordering::Release);
        self.next.store(end, Ordering::Release);
    }

    /// Walks the entries of a file while they are valid and `wanted`; gives back how many bytes that was, and the last
    /// entry that stands for a message.
    fn scan(
        &self,
        file: i64,
        wanted: impl Fn(Entry) -> bool,
    ) -> Result<(i64, Option<Entry>), StoreError> {
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
                let entry = Entry::read(bytes);
                if !entry.is_entry() || !wanted(entry) {
                    return Ok((i64::try_from(at).unwrap_or(0), last));
                }
                last = if entry.is_filler() { last } else { Some(entry) };
                at += ENTRY;
            }
        }
        Ok((i64::try_from(at).unwrap_or(0), last))
    }

    /// Cuts off the entries that point at or behind `end`, where recovery cut the commit log. Bytes stay in the file;
    /// files that hold nothing else are deleted.
    pub(super) fn truncate(&self, end: i64) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.highest_end <= end {
            return Ok(());
        }
        self.write_tail(&mut state)?;
        let size = self.files.file_size();
        while state.end_file > state.first_file {
            let file = state.end_file - size;
            let (valid, last) =
                self.scan(file, |entry| entry.is_filler() || entry.physical.0 < end)?;
            if valid > 0 {
                state.highest_end = last.map_or(-1, Entry::end);
                self.set_end(&mut state, (file + valid) / ENTRY_BYTES);
                return Ok(());
            }
            self.files.remove(self.serial, &self.dir, file)?;
            state.end_file = file;
        }
        (state.first_file, state.end_file, state.highest_end) = (0, 0, -1);
        self.set_end(&mut state, 0);
        self.min.store(0, Ordering::Release);
        Ok(())
    }

    /// Deletes the queue's files; entries that come later are dropped.
    pub(super) fn delete(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        state.deleted = true;
        state.tail = Vec::new();
        state.unsynced.clear();
        self.files.forget(self.serial);
        remove_folder(&self.dir)
    }
}

/// Removes a folder with everything in it; one that is not there is fine.
pub(super) fn remove_folder(dir: &Path) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|source| StoreError::io("remove", dir, 0, source)),
    }
}

fn entries(bytes: usize) -> i64 {
    i64::try_from(bytes / ENTRY).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
