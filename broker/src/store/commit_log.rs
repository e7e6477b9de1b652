//! The commit log: every message of the broker in the order of arrival, in files of one size. The only truth of the store.
//!
//! ```text
//! encoded records ──▶ [tail lock: offsets, time, copy] ──▶ current file ──▶ end() moves ──▶ dispatch, flush
//!                                  next file, prepared ahead ─┘ when a blank closes the current one
//! ```
//! A record never spans files: one that does not fit leaves a blank (size, magic `0xCBD43194`) that counts as written.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::Thread;

use bindery_protocol::message::record::{self, MAGIC_BLANK};
use bindery_protocol::message::{PhysicalOffset, QueueOffset};
use bindery_remoting::Clock;
use bytes::Bytes;
use tokio::sync::Notify;

use super::error::{AppendError, StoreError};
use super::mapped_file::{FileWriter, MappedFile, WINDOW};
use super::space::Space;

/// Bytes that a record must leave free behind it in its file: room for the blank.
pub(super) const BLANK: usize = 8;

/// All files, and the place where the next record goes.
#[derive(Debug)]
pub(super) struct CommitLog {
    dir: PathBuf,
    file_size: usize,
    space: Space,
    clock: Clock,
    /// Ascending and without gaps.
    files: RwLock<Vec<Arc<MappedFile>>>,
    tail: Mutex<Tail>,
    /// Offset behind the last record (or blank) that readers may see.
    end: AtomicI64,
    /// Offset up to which everything is on disk.
    flushed: AtomicI64,
    /// Made ahead of time by [`CommitLog::prepare`].
    next: Mutex<Option<MappedFile>>,
    preparer: OnceLock<Thread>,
    /// Told of every file that the log went on to.
    rolled: Notify,
    /// When the append that holds the tail began; 0 when none does. Milliseconds since 1970.
    entered: AtomicI64,
}

/// What an append changes.
#[derive(Debug)]
struct Tail {
    /// `None` while the log has no file at all.
    writer: Option<FileWriter>,
    /// Store time of the last record: the log's times never go back, whatever the clock does.
    timestamp: i64,
    /// The store shuts down: nothing is appended any more.
    closed: bool,
}

/// Records made by [`record::encode`], back to back, on their way into the log.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    /// The records.
    pub(super) bytes: Vec<u8>,
    /// The length of each.
    pub(super) sizes: Vec<usize>,
}

/// Where records went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    /// Queue offset of the first record.
    pub(super) queue_offset: QueueOffset,
    /// Physical offset of the first record.
    pub(super) start: PhysicalOffset,
    /// Offset behind the last record.
    pub(super) end: PhysicalOffset,
    /// Store time of all of them.
    pub(super) timestamp: i64,
}

impl CommitLog {
    /// A log of these files, the last of which is cut to the log's end. `timestamp` is the newest record's.
    pub(super) fn new(
        dir: PathBuf,
        file_size: usize,
        space: Space,
        clock: Clock,
        recovered: Recovered,
    ) -> Self {
        let Recovered {
            mut files,
            end,
            timestamp,
        } = recovered;
        let last = files.pop().map(MappedFile::into_writer);
        let mut files: Vec<_> = files.into_iter().map(Arc::new).collect();
        let writer = last.map(|(file, writer)| {
            files.push(file);
            writer
        });
        Self {
            dir,
            file_size,
            space,
            clock,
            files: RwLock::new(files),
            tail: Mutex::new(Tail {
                writer,
                timestamp,
                closed: false,
            }),
            end: AtomicI64::new(end),
            flushed: AtomicI64::new(end),
            next: Mutex::new(None),
            preparer: OnceLock::new(),
            rolled: Notify::new(),
            entered: AtomicI64::new(0),
        }
    }

    /// Offset behind the newest record.
    pub(super) fn end(&self) -> i64 {
        self.end.load(Ordering::Acquire)
    }

    /// Offset of the oldest file's first byte.
    pub(super) fn start(&self) -> i64 {
        self.files().first().map_or(0, |file| file.base())
    }

    /// Offset up to which everything is on disk.
    pub(super) fn flushed(&self) -> i64 {
        self.flushed.load(Ordering::Acquire)
    }

    /// The end of the log, and the newest record's store time at that end.
    pub(super) fn end_and_time(&self) -> (i64, i64) {
        let tail = self.tail();
        (self.end(), tail.timestamp)
    }

    /// Lets no append in from now on.
    pub(super) fn close(&self) {
        self.tail().closed = true;
    }

    /// When the append that is at work began; 0 when none is. Milliseconds since 1970.
    pub(super) fn entered(&self) -> i64 {
        self.entered.load(Ordering::Relaxed)
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        // A panic under this lock can't leave the tail half changed: the position moves in one store, last.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> std::sync::RwLockReadGuard<'_, Vec<Arc<MappedFile>>> {
        self.files.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that holds `offset`.
    pub(super) fn file_at(&self, offset: i64) -> Option<Arc<MappedFile>> {
        let files = self.files();
        let behind = usize::try_from(offset.checked_sub(files.first()?.base())?).ok()?;
        files.get(behind / self.file_size).cloned()
    }

    /// `size` bytes at `offset`, if they are written.
    pub(super) fn slice(&self, offset: i64, size: usize) -> Option<Bytes> {
        let file = self.file_at(offset)?;
        let at = usize::try_from(offset - file.base()).ok()?;
        let window = file.window();
        (at.checked_add(size)? <= window.len()).then(|| window.slice(at..at + size))
    }

    /// Appends records of one queue, all or none. `next` is that queue's next offset; each record takes `step` of them, 0 if
    /// it belongs into no queue.
    pub(super) fn append(
        &self,
        records: &mut Encoded,
        next: &AtomicI64,
        step: i64,
    ) -> Result<Placed, AppendError> {
        let total = records.bytes.len();
        if total + BLANK > self.file_size {
            return Err(AppendError::RecordTooLong {
                len: total,
                max: self.file_size - BLANK,
            });
        }
        let mut tail = self.tail();
        if tail.closed {
            return Err(AppendError::Closed);
        }
        let now = self.clock.now_millis();
        self.entered.store(now, Ordering::Relaxed);
        let placed = self.place(&mut tail, records, next, step, now);
        self.entered.store(0, Ordering::Relaxed);
        drop(tail);
        placed
    }

    fn place(
        &self,
        tail: &mut Tail,
        records: &mut Encoded,
        next: &AtomicI64,
        step: i64,
        now: i64,
    ) -> Result<Placed, AppendError> {
        let total = records.bytes.len();
        let last_timestamp = tail.timestamp;
        let writer = self.writer_for(tail, total)?;
        let at = writer.position();
        // The blank's place is claimed with the record, so that closing the file never needs room.
        writer.file().reserve(at + total + BLANK)?;
        self.wake_preparer(writer.file(), at + total);

        let timestamp = now.max(last_timestamp);
        let start = writer.file().base() + signed(at);
        let queue_offset = if step > 0 {
            next.load(Ordering::Relaxed)
        } else {
            0
        };
        let mut from = 0;
        for (size, number) in records.sizes.iter().zip(0_i64..) {
            let offset = QueueOffset(queue_offset + number * step);
            let place = PhysicalOffset(start + signed(from));
            record::patch(
                &mut records.bytes[from..from + size],
                offset,
                place,
                timestamp,
            );
            from += size;
        }
        if !writer.append(&records.bytes) {
            // Room was reserved above, so this can't be.
            return Err(StoreError::Poisoned.into());
        }
        tail.timestamp = timestamp;
        let end = start + signed(total);
        if step > 0 {
            let after = queue_offset + signed(records.sizes.len()) * step;
            next.store(after, Ordering::Release);
        }
        self.end.store(end, Ordering::SeqCst);
        Ok(Placed {
            queue_offset: QueueOffset(queue_offset),
            start: PhysicalOffset(start),
            end: PhysicalOffset(end),
            timestamp,
        })
    }

    /// The writer of a file in which `total` bytes and a blank fit: the current one or, after closing it, the next.
    fn writer_for<'t>(
        &self,
        tail: &'t mut Tail,
        total: usize,
    ) -> Result<&'t mut FileWriter, StoreError> {
        let fits = |writer: &FileWriter| writer.position() + total + BLANK <= self.file_size;
        if !tail.writer.as_ref().is_some_and(fits) {
            self.roll(tail, total)?;
        }
        // `roll` leaves a writer behind, and so does the condition that skips it.
        tail.writer.as_mut().ok_or(StoreError::Poisoned)
    }

    fn roll(&self, tail: &mut Tail, total: usize) -> Result<(), StoreError> {
        let base = tail.writer.as_ref().map_or(0, |writer| writer.file().end());
        // Held until the new file is in the list, so that `prepare` never opens it a second time.
        let mut prepared = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // First the new file, then the blank: when there is no room the log is as it was.
        let next = match prepared.take() {
            Some(file) if file.base() == base => file,
            _ => self.create_file(base)?,
        };
        if let Err(error) = next.reserve(total + BLANK) {
            *prepared = Some(next);
            return Err(error);
        }
        if let Some(writer) = tail.writer.as_mut() {
            close(writer)?;
        }
        let (file, writer) = next.into_writer();
        self.files
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(file);
        self.end.store(base, Ordering::SeqCst);
        tail.writer = Some(writer);
        self.rolled.notify_one();
        if let Some(thread) = self.preparer.get() {
            thread.unpark();
        }
        Ok(())
    }

    fn create_file(&self, base: i64) -> Result<MappedFile, StoreError> {
        let file = MappedFile::create(&self.dir, base, self.file_size, &self.space)?;
        super::json_file::sync_folder(&self.dir)
            .map_err(|source| StoreError::io("sync", &self.dir, 0, source))?;
        Ok(file)
    }

    /// Names the thread that calls [`CommitLog::prepare`], to be woken when appends come near what is prepared.
    pub(super) fn set_preparer(&self, thread: Thread) {
        self.preparer.get_or_init(|| thread);
    }

    fn wake_preparer(&self, file: &MappedFile, position: usize) {
        let margin = (WINDOW / 2).min(self.file_size / 4);
        if file.reserved() < (position + margin).min(file.len())
            && let Some(thread) = self.preparer.get()
        {
            thread.unpark();
        }
    }

    /// Makes room ahead of the appends: the next window of the current file, and the next file when that is all there.
    pub(super) fn prepare(&self) -> Result<(), StoreError> {
        if let Some(file) = self.files().last().cloned() {
            let written = file.written().len();
            file.reserve(written + WINDOW)?;
            if file.len() - written > WINDOW * 2 {
                return Ok(());
            }
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked under the lock: an append may just have taken the prepared file.
        let base = self.files().last().map_or(0, |file| file.end());
        if next.as_ref().is_none_or(|file| file.base() != base) {
            let file = self.create_file(base)?;
            file.reserve(WINDOW)?;
            *next = Some(file);
        }
        Ok(())
    }

    /// Completes when the log has gone on to another file. For one waiter; cancel safe.
    pub(super) async fn rolled(&self) {
        self.rolled.notified().await;
    }

    /// Whether there are files behind the current one.
    pub(super) fn has_older_files(&self) -> bool {
        self.files().len() > 1
    }

    /// The oldest file, unless it is the current one or ends behind `safe`.
    pub(super) fn oldest(&self, safe: i64) -> Option<Arc<MappedFile>> {
        let files = self.files();
        let oldest = files.first().filter(|_| files.len() > 1)?;
        (oldest.end() <= safe).then(|| Arc::clone(oldest))
    }

    /// Deletes the oldest file. Who holds slices of it keeps them.
    pub(super) fn remove_oldest(&self, file: &MappedFile) -> Result<(), StoreError> {
        match std::fs::remove_file(file.path()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => {
                removed.map_err(|source| StoreError::io("remove", file.path(), 0, source))?;
            }
        }
        // One by one: a later file gone and an earlier one back would be a gap.
        super::json_file::sync_folder(&self.dir)
            .map_err(|source| StoreError::io("sync", &self.dir, 0, source))?;
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        if files
            .first()
            .is_some_and(|oldest| oldest.base() == file.base())
        {
            files.remove(0);
        }
        Ok(())
    }

    /// Removes the file that was made ahead of time; part of a clean stop.
    pub(super) fn drop_prepared(&self) -> Result<(), StoreError> {
        let prepared = self
            .next
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // It may have become the current file since: then it is in the list.
        let Some(file) = prepared.filter(|file| file.base() >= self.end()) else {
            return Ok(());
        };
        std::fs::remove_file(file.path())
            .map_err(|source| StoreError::io("remove", file.path(), 0, source))
    }

    /// Writes everything up to the present end to the disk; gives back that end and its store time.
    pub(super) fn flush(&self) -> Result<(i64, i64), StoreError> {
        let (end, timestamp) = self.end_and_time();
        let flushed = self.flushed();
        let dirty: Vec<_> = {
            let files = self.files();
            files
                .iter()
                .filter(|file| file.end() > flushed && file.base() < end)
                .cloned()
                .collect()
        };
        for file in dirty {
            file.sync()
                .map_err(|source| StoreError::io("flush", file.path(), 0, source))?;
        }
        self.flushed.fetch_max(end, Ordering::SeqCst);
        Ok((end, timestamp))
    }
}

/// Closes a file with a blank.
fn close(writer: &mut FileWriter) -> Result<(), StoreError> {
    let at = writer.position();
    let free = writer.file().len() - at;
    let mut blank = [0; BLANK];
    blank[..4].copy_from_slice(&i32::try_from(free).unwrap_or(i32::MAX).to_be_bytes());
    blank[4..].copy_from_slice(&MAGIC_BLANK.to_be_bytes());
    writer.file().reserve(at + BLANK)?;
    // Every record left room for the blank, and it was just reserved.
    if !writer.append(&blank) {
        return Err(StoreError::Poisoned);
    }
    writer.seal();
    Ok(())
}

/// What recovery found.
#[derive(Debug)]
pub(super) struct Recovered {
    /// The files of the log, the last one cut to `end`.
    pub(super) files: Vec<MappedFile>,
    /// Offset behind the last good record.
    pub(super) end: i64,
    /// Store time of the last record; 0 for none.
    pub(super) timestamp: i64,
}

fn signed(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
