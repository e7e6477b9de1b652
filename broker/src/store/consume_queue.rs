//! The consume queue: for one topic and queue id, where in the commit log the n-th message lies.
//!
//! ```text
//! commit log ──dispatch──▶ ConsumeQueue::append ──▶ tail (memory) ──▶ 20-byte entries in files ──▶ entries ──▶ pull
//! ```
//! Entry n lies at byte 20·n of the queue. New entries gather in memory and are written in runs; what a crash loses of
//! them is dispatched again from the commit log. Derived data: deleting the folder and restarting rebuilds it.

mod entry;
mod recover;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::{error, warn};

use super::error::StoreError;
use super::queue_files::{QueueFiles, QueueSerial};

pub use entry::Entry;

/// Bytes of an entry.
pub(super) const ENTRY: usize = 20;
const ENTRY_BYTES: i64 = 20;
/// Entries kept in memory before a queue writes them.
const TAIL_ENTRIES: usize = 256;

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
    /// Whether loading found entries that can't be right: the queue is to be built again from the log.
    pub(super) damaged: AtomicBool,
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
            damaged: AtomicBool::new(false),
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
    /// Entries come in the order of the log. One whose offset an earlier record has taken belongs to a topic that was
    /// deleted and made again: the log is the truth, so the queue ends before `n` and goes on with it.
    ///
    /// # Errors
    /// The entries gathered so far can't be written, or a cut can't be made; the queue is as it was, or ends at `n`.
    pub(super) fn append(&self, entry: Entry, n: i64) -> Result<bool, StoreError> {
        let mut state = self.state();
        if entry.end() <= state.highest_end || state.deleted {
            return Ok(false);
        }
        // No queue gets there; a damaged record may say so.
        if !(0..i64::MAX / ENTRY_BYTES / 2).contains(&n) {
            error!(topic = %self.topic, queue_id = self.id, queue_offset = n, "impossible queue offset, entry dropped");
            return Ok(false);
        }
        if state.tail.len() >= TAIL_ENTRIES * ENTRY {
            self.write_tail(&mut state)?;
        }
        if n < state.end() && !self.make_way(&mut state, entry, n)? {
            return Ok(false);
        }
        let empty = state.end_file == state.first_file && state.tail.is_empty();
        if empty && n != 0 {
            self.begin_at(&mut state, n);
        }
        let have = state.end();
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
        // There may be tens of thousands of queues; most of them are quiet.
        state.tail.shrink_to(16 * ENTRY);
        Ok(())
    }

    /// Writes the queue's files to the disk. [`ConsumeQueue::write`] comes first.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        let unsynced = self.take_unsynced();
        let sync = |file: &i64| self.files.sync(self.serial, &self.dir, *file);
        let synced = unsynced.iter().try_for_each(sync);
        if synced.is_err() {
            self.put_unsynced(unsynced);
        }
        synced
    }

    /// The files that may not be on disk yet; the caller syncs them, or gives them back.
    pub(super) fn take_unsynced(&self) -> Vec<i64> {
        std::mem::take(&mut self.state().unsynced)
    }

    /// Gives back what [`ConsumeQueue::take_unsynced`] took.
    pub(super) fn put_unsynced(&self, files: Vec<i64>) {
        self.state().unsynced.extend(files);
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

    /// Sets the smallest readable offset: the first entry that points at or behind `start`, the first byte of the commit
    /// log. A queue whose messages are all gone keeps its number: min = max.
    pub(super) fn correct_min(&self, start: i64) -> Result<(), StoreError> {
        let max = self.max();
        let first = self.state().first_file / ENTRY_BYTES;
        let min = match self.entry(max - 1)? {
            Some(last) if last.physical.0 < start => max,
            None => max,
            Some(_) => {
                let gone = |entry: Entry| entry.is_filler() || entry.physical.0 < start;
                self.partition(first, max, gone)?
            }
        };
        self.min.store(min, Ordering::Release);
        Ok(())
    }

    /// Deletes the files, but the newest, whose entries all point before `start`, the first byte of the commit log, and
    /// corrects the smallest readable offset. Gives back how many files went.
    pub(super) fn expire(&self, start: i64) -> Result<usize, StoreError> {
        let mut expired = Vec::new();
        {
            let mut state = self.state();
            let size = self.files.file_size();
            while !state.deleted && state.first_file + size < state.end_file {
                let newest = self.entry_in(&state, (state.first_file + size) / ENTRY_BYTES - 1)?;
                if newest.is_none_or(|entry| entry.physical.0 >= start) {
                    break;
                }
                expired.push(state.first_file);
                state.first_file += size;
            }
        }
        self.correct_min(start)?;
        for file in &expired {
            self.files.remove(self.serial, &self.dir, *file)?;
        }
        Ok(expired.len())
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

    /// Deletes the queue's files; entries that come later are dropped.
    pub(super) fn delete(&self) -> Result<(), StoreError> {
        self.retire(remove_folder)
    }

    /// Drops entries that come later; `work` has the queue's folder for itself.
    pub(super) fn retire<T>(&self, work: impl FnOnce(&Path) -> T) -> T {
        let mut state = self.state();
        state.deleted = true;
        state.tail = Vec::new();
        state.unsynced.clear();
        self.files.forget(self.serial);
        work(&self.dir)
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
