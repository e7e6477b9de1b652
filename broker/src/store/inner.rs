//! The parts of an open store, shared by its handles and threads.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use super::checkpoint::Checkpoint;
use super::clean::Cleaner;
use super::commit_log::CommitLog;
use super::config::{FlushPolicy, StoreConfig};
use super::dispatch::{Arrivals, Dispatcher};
use super::error::StoreError;
use super::flush::Flusher;
use super::lock::{AbortMark, FolderLock};
use super::recover::{self, LastStop};

const OPENED: u8 = 0;
const RUNNING: u8 = 1;
const CLOSED: u8 = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) config: StoreConfig,
    pub(super) log: CommitLog,
    pub(super) dispatcher: Dispatcher,
    pub(super) checkpoint: Checkpoint,
    pub(super) flusher: Flusher,
    pub(super) abort: AbortMark,
    pub(super) cleaner: Cleaner,
    /// Held by an append whose record names queue offsets in its text.
    pub(super) turn: Mutex<()>,
    phase: AtomicU8,
    /// How many bytes behind the log's end count as in memory.
    memory: i64,
    _lock: FolderLock,
}

impl Inner {
    /// Locks the folder, loads and recovers.
    pub(super) fn open(
        config: StoreConfig,
        arrivals: Arc<dyn Arrivals>,
    ) -> Result<Self, StoreError> {
        config.check()?;
        let lock = FolderLock::take(&config.root)?;
        let abort = AbortMark::new(&config.root);
        let last_stop = if abort.is_set() {
            LastStop::Unclean
        } else {
            LastStop::Clean
        };
        let cleaner = Cleaner::new(config.expiry.clone());
        let opened = recover::open(&config, last_stop)?;
        let (dir, size) = (
            config.commit_log_path(),
            usize::try_from(config.commit_log_file_size).unwrap_or(0),
        );
        let timestamp = opened.log.timestamp;
        let (from, behind) = (opened.dispatched, opened.dispatched < opened.log.end);
        let dispatcher = Dispatcher::new(opened.derived, arrivals, from, behind, timestamp);
        let log = CommitLog::new(
            dir,
            size,
            config.space.clone(),
            config.clock.clone(),
            opened.log,
        );
        Ok(Self {
            memory: memory_share(config.access_message_in_memory_max_ratio),
            config,
            log,
            dispatcher,
            checkpoint: opened.checkpoint,
            flusher: Flusher::default(),
            abort,
            cleaner,
            turn: Mutex::default(),
            phase: AtomicU8::new(OPENED),
            _lock: lock,
        })
    }

    /// Goes from opened to running; `false` if it is elsewhere already.
    pub(super) fn begin(&self) -> bool {
        self.phase
            .compare_exchange(OPENED, RUNNING, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Takes no more messages; gives back whether the store was running.
    pub(super) fn close(&self) -> bool {
        let was_running = self.phase.swap(CLOSED, Ordering::SeqCst) == RUNNING;
        self.log.close();
        was_running
    }

    /// Whether messages are taken.
    pub(super) fn is_running(&self) -> bool {
        self.phase.load(Ordering::Acquire) == RUNNING
    }

    /// Offset up to which readers may see the log: with `SYNC_FLUSH` what is on disk.
    pub(super) fn confirmed(&self) -> i64 {
        match self.config.flush {
            FlushPolicy::Sync => self.log.flushed(),
            FlushPolicy::Async => self.log.end(),
        }
    }

    /// Dispatches what is confirmed.
    pub(super) fn dispatch(&self) {
        self.dispatcher.run(&self.log, || self.confirmed());
        self.flusher.dispatched();
        if self.dispatcher.derived().queues.is_crowded() {
            self.flusher.crowded();
        }
    }

    /// Keeps dispatch away while `work` changes what it writes to, and makes up for it then.
    pub(super) fn without_dispatch<T>(&self, work: impl FnOnce(&Self) -> T) -> T {
        let done = self.dispatcher.paused(|_| work(self));
        self.dispatch();
        done
    }

    /// Leaves all present records of a topic out of queues built later. While dispatch is kept away.
    pub(super) fn bury(&self, topic: &str) -> Result<(), StoreError> {
        let (end, timestamp) = self.log.end_and_time();
        let derived = self.dispatcher.derived();
        // Without queues there is nothing to come back, unless records wait to be dispatched.
        if self.dispatcher.done() == end && !derived.queues.has_topic(topic) {
            return Ok(());
        }
        derived.deleted.bury(topic, end, timestamp)
    }

    /// Writes the log to the disk; gives back up to where.
    pub(super) fn flush_log(&self) -> Result<i64, StoreError> {
        let (end, timestamp) = self.log.flush()?;
        self.checkpoint
            .physic
            .fetch_max(timestamp, Ordering::AcqRel);
        Ok(end)
    }

    /// Writes consume queues, full index files and the checkpoint to the disk.
    pub(super) fn sync_derived(&self) -> Result<(), StoreError> {
        // Read first: what is dispatched from here on is not vouched for.
        let timestamp = self.dispatcher.timestamp();
        let derived = self.dispatcher.derived();
        derived.queues.sync()?;
        self.checkpoint
            .logics
            .fetch_max(timestamp, Ordering::AcqRel);
        if let Some(index) = &derived.index
            && let Some(end) = index.sync_full()?
        {
            self.checkpoint.index.fetch_max(end, Ordering::AcqRel);
        }
        self.checkpoint.persist()
    }

    /// The last work of a clean stop, after the threads ended.
    pub(super) fn finish(&self) -> Result<(), StoreError> {
        let flushed = self.flush_log()?;
        self.flusher.answer(flushed, self.config.sync_flush_timeout);
        self.flusher.give_up();
        self.dispatch();
        let index = self.dispatcher.derived().index.as_ref();
        if let Some(end) = index.map_or(Ok(None), super::index::Index::sync)? {
            self.checkpoint.index.fetch_max(end, Ordering::AcqRel);
        }
        self.sync_derived()?;
        self.log.drop_prepared()?;
        if self.dispatcher.done() < self.log.end() || self.flusher.is_poisoned() {
            // The mark stays: the next start looks closely.
            return Err(StoreError::Poisoned);
        }
        self.abort.clear()
    }

    /// Whether a record at `physical` is likely still in the page cache.
    pub(super) fn in_memory(&self, physical: i64) -> bool {
        self.log.end() - physical <= self.memory
    }
}

/// `ratio` percent of the machine's memory, in bytes.
fn memory_share(ratio: u8) -> i64 {
    let info = rustix::system::sysinfo();
    let total = u128::from(info.totalram) * u128::from(info.mem_unit);
    i64::try_from(total * u128::from(ratio) / 100).unwrap_or(i64::MAX)
}
