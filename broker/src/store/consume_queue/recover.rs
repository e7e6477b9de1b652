//! Opening a consume queue, and cutting it: where recovery cut the commit log, or where a later record takes over.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tracing::warn;

use super::super::error::StoreError;
use super::super::queue_files::{QueueFiles, QueueSerial, checked_files};
use super::super::recover::LastStop;
use super::{ConsumeQueue, ENTRY, ENTRY_BYTES, Entry, State};

/// Bytes read at once when a queue is scanned.
const SCAN: usize = 3200 * ENTRY;

impl ConsumeQueue {
    /// Opens a queue's files and finds the last valid entry; files behind it are deleted. A queue whose entries are out of
    /// order is marked as damaged, and so is one in which something follows that entry after a clean stop; its files stay.
    pub(in crate::store) fn load(
        topic: &str,
        id: i32,
        dir: PathBuf,
        serial: QueueSerial,
        files: Arc<QueueFiles>,
        last_stop: LastStop,
    ) -> Result<Self, StoreError> {
        let queue = Self::new(topic, id, dir, serial, files);
        let found = checked_files(&queue.dir, queue.files.file_size())?;
        queue.recover(&found, last_stop)?;
        Ok(queue)
    }

    /// Finds the end of the valid entries in the last three of `found`, and deletes files behind it.
    fn recover(&self, found: &[i64], last_stop: LastStop) -> Result<(), StoreError> {
        let Some(first) = found.first() else {
            return Ok(());
        };
        let size = self.files.file_size();
        let mut highest_end = -1;
        let mut end = *first;
        let (newest, in_order) = (Cell::new(-1), Cell::new(true));
        for file in &found[found.len().saturating_sub(3)..] {
            let (valid, last) = self.scan(*file, |entry| {
                let place = entry.physical.0;
                in_order
                    .set(in_order.get() && (entry.is_filler() || newest.replace(place) < place));
                true
            })?;
            highest_end = last.map_or(highest_end, Entry::end);
            end = file + valid;
            if valid < size {
                break;
            }
        }
        let (kept, gone): (Vec<i64>, Vec<i64>) = found.iter().partition(|file| **file <= end);
        let looked_at = found[found.len().saturating_sub(3)];
        // Entries out of order are damage after any stop; what may follow the end after an unclean one is not.
        let damaged = !in_order.get()
            || last_stop == LastStop::Clean
                && (!gone.is_empty() || end == looked_at || self.is_followed(end)?);
        if !damaged {
            for file in gone {
                self.files.remove(self.serial, &self.dir, file)?;
            }
        }
        self.damaged.store(damaged, Ordering::Release);
        let newest = if damaged { found.last() } else { kept.last() };
        let mut state = self.state();
        state.first_file = *first;
        state.end_file = newest.map_or(*first, |last| last + size);
        state.highest_end = highest_end;
        self.set_end(&mut state, end / ENTRY_BYTES);
        Ok(())
    }

    /// Whether anything but zeros follows `end` closely in its file. Not all of the file is read: there may be tens of
    /// thousands of queues.
    fn is_followed(&self, end: i64) -> Result<bool, StoreError> {
        let size = self.files.file_size();
        let left = usize::try_from((size - end % size) % size).unwrap_or(0);
        let mut rest = vec![0; left.min(SCAN)];
        let at = u64::try_from(end % size).unwrap_or(0);
        let file = end / size * size;
        let there = self
            .files
            .read(self.serial, &self.dir, file, at, &mut rest)?;
        Ok(there && rest.iter().any(|byte| *byte != 0))
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

    /// Cuts off the entries that point at or behind `end`, where recovery cut the commit log; files that hold nothing
    /// else are deleted.
    pub(in crate::store) fn truncate(&self, end: i64) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.highest_end <= end {
            return Ok(());
        }
        self.write_tail(&mut state)?;
        let size = self.files.file_size();
        while state.end_file > state.first_file {
            let file = state.end_file - size;
            let (valid, last) = self.scan(file, |entry| entry.is_filler() || entry.end() <= end)?;
            if valid > 0 {
                state.highest_end = last.map_or(-1, Entry::end);
                self.set_end(&mut state, (file + valid) / ENTRY_BYTES);
                return self.erase(file, valid);
            }
            self.files.remove(self.serial, &self.dir, file)?;
            state.end_file = file;
        }
        (state.first_file, state.end_file, state.highest_end) = (0, 0, -1);
        self.set_end(&mut state, 0);
        self.min.store(0, Ordering::Release);
        Ok(())
    }

    /// Ends the queue before `n`, which `entry` is about to take. `false` if the record there is the same or a later one.
    pub(super) fn make_way(
        &self,
        state: &mut State,
        entry: Entry,
        n: i64,
    ) -> Result<bool, StoreError> {
        let taken = self.entry_in(state, n)?.filter(|taken| !taken.is_filler());
        let (queue_id, have) = (self.id, state.end());
        if taken.is_some_and(|taken| taken.physical >= entry.physical) {
            warn!(topic = %self.topic, queue_id, queue_offset = n, have, "repeated consume queue entry");
            return Ok(false);
        }
        warn!(topic = %self.topic, queue_id, queue_offset = n, have, "a later record took the offset: the queue is cut");
        self.cut(state, n)?;
        Ok(true)
    }

    pub(super) fn entry_in(&self, state: &State, n: i64) -> Result<Option<Entry>, StoreError> {
        let mut bytes = [0; ENTRY];
        let Ok(written) = usize::try_from(n - state.tail_start) else {
            let (position, size) = (n.saturating_mul(ENTRY_BYTES), self.files.file_size());
            if position < state.first_file {
                return Ok(None);
            }
            let at = u64::try_from(position % size).unwrap_or(0);
            let file = position / size * size;
            let there = self
                .files
                .read(self.serial, &self.dir, file, at, &mut bytes)?;
            return Ok(there.then(|| Entry::read(&bytes)));
        };
        let tail = state.tail.chunks_exact(ENTRY).nth(written);
        Ok(tail.map(Entry::read))
    }

    /// Takes away the entries from `n` on, on disk too. Newest files go first, so that a crash leaves no gap.
    fn cut(&self, state: &mut State, n: i64) -> Result<(), StoreError> {
        if let Ok(kept) = usize::try_from(n - state.tail_start) {
            state.tail.truncate(kept.saturating_mul(ENTRY));
        } else {
            self.cut_files(state, n)?;
        }
        self.max.store(n, Ordering::Release);
        self.min.fetch_min(n, Ordering::AcqRel);
        Ok(())
    }

    /// Takes away what the files hold behind the newest entry of a damaged queue that the log can't replace.
    pub(in crate::store) fn trim(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        self.write_tail(&mut state)?;
        if state.highest_end < 0 {
            // Without any entry the files still tell which offsets are used up.
            return Ok(());
        }
        let end = state.end();
        self.cut_files(&mut state, end)
    }

    fn cut_files(&self, state: &mut State, n: i64) -> Result<(), StoreError> {
        let (size, end) = (self.files.file_size(), n.saturating_mul(ENTRY_BYTES));
        state.tail.clear();
        state.tail_start = state.end_file / ENTRY_BYTES;
        while state.end_file > state.first_file && state.end_file - size >= end {
            self.files
                .remove(self.serial, &self.dir, state.end_file - size)?;
            state.end_file -= size;
            state.tail_start = state.end_file / ENTRY_BYTES;
        }
        if state.end_file == state.first_file {
            (state.first_file, state.end_file, state.tail_start) = (0, 0, 0);
        } else {
            // Nothing to erase when `n` begins a file that is gone.
            if end % size != 0 {
                self.erase(end / size * size, end % size)?;
            }
            state.tail_start = n;
        }
        Ok(())
    }

    /// Zeroes what a file holds from `at` on: left there, it would count as entries again at the next start.
    fn erase(&self, file: i64, at: i64) -> Result<(), StoreError> {
        let (mut at, size) = (at, self.files.file_size());
        let mut chunk = Vec::new();
        let mut dirty = false;
        while at < size {
            let len = usize::try_from(size - at).map_or(SCAN, |left| left.min(SCAN));
            let position = u64::try_from(at).unwrap_or(0);
            chunk.resize(len, 0);
            if !self
                .files
                .read(self.serial, &self.dir, file, position, &mut chunk)?
            {
                break;
            }
            if chunk.iter().any(|byte| *byte != 0) {
                chunk.fill(0);
                self.files
                    .write(self.serial, &self.dir, file, position, &chunk)?;
                dirty = true;
            }
            at = at.saturating_add(i64::try_from(len).unwrap_or(size));
        }
        if dirty {
            self.files.sync(self.serial, &self.dir, file)?;
        }
        Ok(())
    }

    /// Ends recovery: the next message gets the offset behind the newest entry. While the log is scanned, that number may
    /// have been higher, with the entries of a topic that was deleted later.
    pub(in crate::store) fn settle(&self) {
        self.next.store(self.max(), Ordering::Release);
    }
}
