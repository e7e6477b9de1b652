//! The store's threads: writing the commit log to the disk, keeping the derived files behind it, and making room ahead.
//!
//! ```text
//! flush    SYNC_FLUSH   one fdatasync serves all who wait, then dispatch     ASYNC_FLUSH  by interval while dirty
//! keep     consume queues, full index files, checkpoint: by interval while dirty
//! prepare  the next window of the current file, and the next file
//! ```
//! Every thread sleeps without a timer while there is nothing to do.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bindery_protocol::message::PhysicalOffset;
use tracing::{error, warn};

use super::config::{FlushPace, FlushPolicy};
use super::error::StoreError;
use super::inner::Inner;

/// Pages are counted in these units.
const PAGE: i64 = 4096;

/// Whether a message is as safe as `flushDiskType` asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It is.
    Stored,
    /// Not within `syncFlushTimeout`, or the disk failed (`FLUSH_DISK_TIMEOUT`).
    FlushTimeout,
}

/// Called once, from the flush thread or at once: must not block.
pub type WhenDurable = Box<dyn FnOnce(Durability) + Send>;

struct Waiter {
    end: i64,
    since: Instant,
    done: WhenDurable,
}

/// Wakes a thread that sleeps without a timer.
#[derive(Debug, Default)]
pub(super) struct Bell {
    thread: OnceLock<Thread>,
    asleep: AtomicBool,
}

impl Bell {
    /// Called by those who made work. Cheap while the thread is awake.
    pub(super) fn ring(&self) {
        // Pairs with `sleep`: either this sees the thread asleep, or the thread sees the work.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed)
            && self.asleep.swap(false, Ordering::AcqRel)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Wakes the thread before its interval is over.
    fn hurry(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn own(&self) {
        // There is one thread for each bell.
        self.thread.get_or_init(thread::current);
    }

    /// Sleeps until somebody rings, unless there is `work` already.
    fn sleep(&self, work: impl Fn() -> bool) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !work() {
            thread::park();
        }
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Sleeps for an interval, less when somebody rings, not at all when there is `work` already.
    fn nap(&self, interval: Duration, work: impl Fn() -> bool) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !work() {
            thread::park_timeout(interval);
        }
        self.asleep.store(false, Ordering::Relaxed);
    }
}

/// Who waits for the disk, and how the threads are woken and stopped.
#[derive(Default)]
pub(super) struct Flusher {
    waiters: Mutex<Vec<Waiter>>,
    flush: Bell,
    keep: Bell,
    stop: AtomicBool,
    poisoned: AtomicBool,
}

impl std::fmt::Debug for Flusher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flusher")
            .field("stop", &self.stop)
            .field("poisoned", &self.poisoned)
            .finish_non_exhaustive()
    }
}

impl Flusher {
    /// The log grew.
    pub(super) fn appended(&self) {
        self.flush.ring();
    }

    /// Consume queues or index grew.
    pub(super) fn dispatched(&self) {
        self.keep.ring();
    }

    /// Many consume-queue entries wait to be written.
    pub(super) fn crowded(&self) {
        self.keep.hurry();
    }

    /// A flush failed: what was written since the last one may be lost.
    pub(super) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Waits for an interval, less when woken. The wake-up of a stop may have been used up by a sleep just before.
    fn pause(&self, interval: Duration) {
        if !self.is_stopping() {
            thread::park_timeout(interval);
        }
    }

    /// Makes all threads end as soon as they are woken.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Calls `done` when everything before `end` is on disk.
    pub(super) fn wait(&self, end: PhysicalOffset, done: WhenDurable) {
        let waiter = Waiter {
            end: end.0,
            since: Instant::now(),
            done,
        };
        if self.is_stopping() {
            (waiter.done)(Durability::FlushTimeout);
            return;
        }
        self.waiters().push(waiter);
        self.flush.ring();
        if self.is_stopping() {
            // Nobody may come by any more.
            self.give_up();
        }
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, Vec<Waiter>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers those for whom the disk holds enough.
    pub(super) fn answer(&self, flushed: i64, limit: Duration) {
        let ready: Vec<_> = self
            .waiters()
            .extract_if(.., |waiter| waiter.end <= flushed)
            .collect();
        for waiter in ready {
            let late = waiter.since.elapsed() > limit;
            (waiter.done)(if late {
                Durability::FlushTimeout
            } else {
                Durability::Stored
            });
        }
    }

    /// Tells everybody who still waits that it came to nothing.
    pub(super) fn give_up(&self) {
        let waiters = std::mem::take(&mut *self.waiters());
        for waiter in waiters {
            (waiter.done)(Durability::FlushTimeout);
        }
    }

    /// After a failed flush nobody knows what is on disk: no more is taken.
    pub(super) fn poison(&self, error: &StoreError) {
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            error!(%error, "flushing the commit log failed; the store takes no more messages");
        }
        self.give_up();
    }
}

/// Body of the thread that flushes the commit log.
pub(super) fn flush_loop(store: &Inner) {
    store.flusher.flush.own();
    match store.config.flush {
        FlushPolicy::Sync => group_commit(store),
        FlushPolicy::Async => flush_by_interval(store),
    }
}

fn group_commit(store: &Inner) {
    let flusher = &store.flusher;
    loop {
        flusher
            .flush
            .sleep(|| flusher.is_stopping() || store.log.flushed() < store.log.end());
        if flusher.is_stopping() {
            return;
        }
        // What is appended from here on is taken by the next round.
        if flusher.is_poisoned() {
            flusher.give_up();
            flusher.flush.sleep(|| flusher.is_stopping());
            continue;
        }
        match store.flush_log() {
            Ok(end) => {
                // First the queue entries: who was answered finds its message with the next pull.
                store.dispatch();
                flusher.answer(end, store.config.sync_flush_timeout);
            }
            Err(error) => flusher.poison(&error),
        }
    }
}

fn flush_by_interval(store: &Inner) {
    let (flusher, config) = (&store.flusher, &store.config);
    let least = i64::from(config.flush_commit_log_least_pages) * PAGE;
    let mut thorough = Instant::now();
    while !flusher.is_stopping() {
        if store.log.flushed() >= store.log.end() || flusher.is_poisoned() {
            flusher
                .flush
                .sleep(|| flusher.is_stopping() || store.log.flushed() < store.log.end());
            thorough = Instant::now();
        }
        let dirty = || store.log.end() - store.log.flushed();
        if config.flush_pace == FlushPace::Pages {
            let enough = || flusher.is_stopping() || dirty() >= least;
            flusher.flush.nap(config.flush_interval_commit_log, enough);
        } else {
            flusher.pause(config.flush_interval_commit_log);
        }
        let dirty = dirty();
        let due = thorough.elapsed() >= config.flush_commit_log_thorough_interval;
        if flusher.is_stopping() || flusher.is_poisoned() || (dirty < least && !due) {
            continue;
        }
        thorough = if due { Instant::now() } else { thorough };
        if let Err(error) = store.flush_log() {
            flusher.poison(&error);
        }
    }
}

/// Body of the thread that writes consume queues, index and checkpoint.
pub(super) fn keep_loop(store: &Inner) {
    let (flusher, config) = (&store.flusher, &store.config);
    flusher.keep.own();
    let mut kept = store.dispatcher.done();
    let mut synced = kept;
    let mut thorough = Instant::now();
    let mut failing = false;
    while !flusher.is_stopping() {
        if synced == store.dispatcher.done() && !store.dispatcher.is_blocked() {
            flusher
                .keep
                .sleep(|| flusher.is_stopping() || synced != store.dispatcher.done());
            thorough = Instant::now();
        }
        flusher.pause(config.flush_interval_consume_queue);
        if flusher.is_stopping() {
            return;
        }
        if store.dispatcher.is_blocked() {
            store.dispatch();
        }
        let done = store.dispatcher.done();
        let quiet = done == kept;
        let due = thorough.elapsed() >= config.flush_consume_queue_thorough_interval;
        let result = if quiet || due {
            store.sync_derived()
        } else {
            store.dispatcher.derived().queues.write()
        };
        let failed = result.is_err();
        match result {
            Ok(()) if quiet || due => (synced, thorough) = (done, Instant::now()),
            Err(error) if !failing => warn!(%error, "consume queues cannot be written now"),
            Ok(()) | Err(_) => {}
        }
        failing = failed;
        kept = done;
    }
}

/// Body of the thread that makes room ahead of the appends.
pub(super) fn prepare_loop(store: &Inner) {
    store.log.set_preparer(thread::current());
    let mut full = false;
    while !store.flusher.is_stopping() {
        // The log has grown by a window since the last look.
        store.measure();
        match store.log.prepare() {
            Ok(()) => full = false,
            Err(error) => {
                // Appends make room themselves, and answer when there is none.
                if !full {
                    warn!(%error, "no room can be made ahead in the commit log");
                }
                full = true;
            }
        }
        thread::park();
    }
}
