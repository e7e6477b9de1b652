//! The store as the broker sees it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use bindery_protocol::message::{NewMessage, PhysicalOffset, QueueOffset};
use bytes::Bytes;
use tracing::warn;

use super::append::{self, Appended};
use super::batch_queue::BatchQueue;
use super::clean::{self, Cleaned, Expiry};
use super::config::{FlushPolicy, StoreConfig};
use super::consume_queue::{ConsumeQueue, Entry};
use super::dispatch::Arrivals;
use super::error::{AppendError, StoreError};
use super::flush::{self, Durability, WhenDurable};
use super::inner::Inner;
use super::query::{self, Boundary, QueryResult};
use super::read::{self, EntryFilter, ReadLimits, ReadResult};

/// An open store: a handle, cheap to clone. When the last one is dropped without [`Store::shutdown`] the files stay as
/// after a killed process, and the next start recovers.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
    threads: Arc<Threads>,
}

/// The store's threads; they end when this is dropped.
#[derive(Debug)]
struct Threads {
    inner: Arc<Inner>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    fn stop(&self) {
        self.inner.flusher.stop();
        let running =
            std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in &running {
            thread.thread().unpark();
        }
        for thread in running {
            if thread.join().is_err() {
                warn!("a thread of the store panicked");
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
        self.inner.flusher.give_up();
    }
}

/// What a thread of the store does until it is stopped.
type Body = fn(&Inner);

/// Numbers about a store.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoreStats {
    /// Offset of the oldest byte in the commit log.
    pub min_physical_offset: PhysicalOffset,
    /// Offset behind the newest record.
    pub max_physical_offset: PhysicalOffset,
    /// Offset up to which the commit log is on disk.
    pub flushed: PhysicalOffset,
    /// Bytes of confirmed records that are not yet in the consume queues.
    pub dispatch_behind_bytes: i64,
    /// Used share of the volume that holds the commit log, 0 to 1; -1 if it can't be told.
    pub disk_ratio: f64,
    /// The same of the volume that holds consume queues and index.
    pub queue_disk_ratio: f64,
}

impl Store {
    /// Locks the folder, loads the files and recovers. Takes messages after [`Store::start`].
    ///
    /// Blocks while files are read.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when another broker has the folder; [`StoreError::FileLength`] when the files were made
    /// with other sizes; [`StoreError::Io`].
    pub fn open(config: StoreConfig, arrivals: Arc<dyn Arrivals>) -> Result<Self, StoreError> {
        let inner = Arc::new(Inner::open(config, arrivals)?);
        let threads = Threads {
            inner: Arc::clone(&inner),
            running: Mutex::default(),
        };
        Ok(Self {
            inner,
            threads: Arc::new(threads),
        })
    }

    /// Writes the `abort` file and starts the store's threads. A second call does nothing.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the file can't be written or a thread can't be started.
    pub fn start(&self) -> Result<(), StoreError> {
        self.inner.abort.set()?;
        if !self.inner.begin() {
            return Ok(());
        }
        self.inner.measure();
        let bodies: [(&str, Body); 3] = [
            ("store-flush", flush::flush_loop),
            ("store-keep", flush::keep_loop),
            ("store-prepare", flush::prepare_loop),
        ];
        let mut running = self
            .threads
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (name, body) in bodies {
            let inner = Arc::clone(&self.inner);
            let thread = Builder::new()
                .name(name.to_owned())
                .spawn(move || body(&inner));
            let thread = thread
                .map_err(|source| StoreError::io("start", &self.inner.config.root, 0, source))?;
            running.push(thread);
        }
        Ok(())
    }

    /// Stores a message. It can be read when this returns (with `SYNC_FLUSH`: when it is on disk); what the broker
    /// promises its producer waits for [`Store::when_durable`].
    ///
    /// # Errors
    /// [`AppendError`]; nothing of the message remains then.
    pub fn append(&self, message: &NewMessage<'_>) -> Result<Appended, AppendError> {
        append::append(&self.inner, std::slice::from_ref(message))
    }

    /// Stores messages of one queue with consecutive offsets: all, or none.
    ///
    /// # Errors
    /// [`AppendError`]; nothing of the messages remains then.
    pub fn append_batch(&self, messages: &[NewMessage<'_>]) -> Result<Appended, AppendError> {
        append::append(&self.inner, messages)
    }

    /// Calls `done` when everything before `end` is as safe as `flushDiskType` asks: at once with `ASYNC_FLUSH`, after the
    /// next fdatasync with `SYNC_FLUSH` (one serves all who wait). `done` must not block.
    pub fn when_durable(&self, end: PhysicalOffset, done: WhenDurable) {
        match self.inner.config.flush {
            FlushPolicy::Async => done(Durability::Stored),
            FlushPolicy::Sync if self.inner.log.flushed() >= end.0 => done(Durability::Stored),
            FlushPolicy::Sync => self.inner.flusher.wait(end, done),
        }
    }

    /// Reads messages of a queue from `from` on.
    #[must_use]
    pub fn read(
        &self,
        topic: &str,
        queue_id: i32,
        from: QueueOffset,
        limits: ReadLimits,
        filter: &dyn EntryFilter,
    ) -> ReadResult {
        read::read(&self.inner, topic, queue_id, from, limits, filter)
    }

    fn queue(&self, topic: &str, queue_id: i32) -> Option<Arc<ConsumeQueue>> {
        self.inner.dispatcher.derived().queues.find(topic, queue_id)
    }

    fn batches(&self, topic: &str, queue_id: i32) -> Option<Arc<BatchQueue>> {
        let batches = &self.inner.dispatcher.derived().queues.batches;
        if batches.is_empty() {
            return None;
        }
        batches.find(topic, queue_id)
    }

    /// The queue's first offset; 0 if there is no such queue.
    #[must_use]
    pub fn min_offset(&self, topic: &str, queue_id: i32) -> QueueOffset {
        if let Some(batches) = self.batches(topic, queue_id) {
            return QueueOffset(batches.min());
        }
        QueueOffset(self.queue(topic, queue_id).map_or(0, |queue| queue.min()))
    }

    /// The offset behind the queue's last readable message; 0 if there is no such queue.
    #[must_use]
    pub fn max_offset(&self, topic: &str, queue_id: i32) -> QueueOffset {
        if let Some(batches) = self.batches(topic, queue_id) {
            return QueueOffset(batches.max());
        }
        QueueOffset(self.queue(topic, queue_id).map_or(0, |queue| queue.max()))
    }

    /// The offset for a time in milliseconds since 1970, between [`Store::min_offset`] and [`Store::max_offset`]; 0 if
    /// there is no such queue or its times can't be read.
    #[must_use]
    pub fn offset_by_time(
        &self,
        topic: &str,
        queue_id: i32,
        timestamp: i64,
        boundary: Boundary,
    ) -> QueueOffset {
        let found = match (self.batches(topic, queue_id), self.queue(topic, queue_id)) {
            (Some(batches), _) => query::batch_offset_by_time(&batches, timestamp, boundary),
            (None, Some(queue)) => query::offset_by_time(&self.inner, &queue, timestamp, boundary),
            (None, None) => return QueueOffset(0),
        };
        found.unwrap_or_else(|error| {
            warn!(%error, topic, queue_id, "consume queue cannot be read");
            QueueOffset(0)
        })
    }

    /// The record that begins at a physical offset. Whether one really begins there can't be known for sure.
    #[must_use]
    pub fn message_at(&self, offset: PhysicalOffset) -> Option<Bytes> {
        query::message_at(&self.inner, offset.0)
    }

    /// The consume-queue entry of a message; in a batch queue that of its batch.
    #[must_use]
    pub fn entry(&self, topic: &str, queue_id: i32, offset: QueueOffset) -> Option<Entry> {
        let entry = match self.batches(topic, queue_id) {
            Some(batches) => query::batch_entry(&batches, offset.0),
            None => self.queue(topic, queue_id)?.entry(offset.0),
        };
        entry.unwrap_or_else(|error| {
            warn!(%error, topic, queue_id, "consume queue cannot be read");
            None
        })
    }

    /// When a message was stored, milliseconds since 1970.
    #[must_use]
    pub fn store_time(&self, topic: &str, queue_id: i32, offset: QueueOffset) -> Option<i64> {
        query::time_of(&self.inner, self.entry(topic, queue_id, offset)?)
    }

    /// When the queue's first message was stored, milliseconds since 1970; -1 if there is none.
    #[must_use]
    pub fn earliest_time(&self, topic: &str, queue_id: i32) -> i64 {
        let first = self.min_offset(topic, queue_id);
        self.store_time(topic, queue_id, first).unwrap_or(-1)
    }

    /// Messages of a topic that carry a key (`UNIQ_KEY` or a word of `KEYS`), stored between `begin` and `end`
    /// (milliseconds, both included); the newest `max` of them, at most 64 by default, oldest first. Keys are compared by
    /// hash: the caller compares them as text.
    #[must_use]
    pub fn query(&self, topic: &str, key: &str, max: usize, begin: i64, end: i64) -> QueryResult {
        query::by_key(&self.inner, topic, key, max, begin, end)
    }

    /// Whether the record at `offset` is likely still in the page cache: closer to the log's end than 40 % of the
    /// machine's memory.
    #[must_use]
    pub fn in_memory(&self, offset: PhysicalOffset) -> bool {
        self.inner.in_memory(offset.0)
    }

    /// Whether the message of a queue is likely still in the page cache; `false` if there is none.
    #[must_use]
    pub fn entry_in_memory(&self, topic: &str, queue_id: i32, offset: QueueOffset) -> bool {
        self.entry(topic, queue_id, offset)
            .is_some_and(|entry| self.in_memory(entry.physical))
    }

    /// Notes that a topic is about to be deleted, durably: should a crash come before [`Store::delete_topic`], the next
    /// start finishes it. Messages of the topic can still be read until then.
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::Io`] when that can't be written.
    pub fn bury_topic(&self, topic: &str) -> Result<(), StoreError> {
        self.inner.without_dispatch(|inner| inner.bury(topic))
    }

    /// Deletes a topic's queues. The records stay in the commit log, and out of every queue built from it later.
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::Io`] when that can't be written or the files can't be removed.
    pub fn delete_topic(&self, topic: &str) -> Result<(), StoreError> {
        self.inner.without_dispatch(|inner| {
            inner.bury(topic)?;
            inner.dispatcher.derived().queues.delete_topic(topic)
        })
    }

    /// The topics that have queues.
    #[must_use]
    pub fn topics(&self) -> Vec<String> {
        self.inner.dispatcher.derived().queues.topics()
    }

    /// The queue ids of a topic that have messages, ascending.
    #[must_use]
    pub fn queue_ids(&self, topic: &str) -> Vec<i32> {
        let queues = &self.inner.dispatcher.derived().queues;
        let all = queues.all();
        let of_topic = all.iter().filter(|queue| queue.topic() == topic);
        let mut ids: Vec<_> = of_topic.map(|queue| queue.id()).collect();
        let batches = queues.batches.all();
        let of_topic = batches.iter().filter(|queue| queue.topic() == topic);
        ids.extend(of_topic.map(|queue| queue.id()));
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Whether an append has been at work for longer than `osPageCacheBusyTimeOutMills`.
    #[must_use]
    pub fn is_page_cache_busy(&self) -> bool {
        let entered = self.inner.log.entered();
        let limit = i64::try_from(self.inner.config.os_page_cache_busy_timeout.as_millis())
            .unwrap_or(i64::MAX);
        entered != 0 && self.inner.config.clock.now_millis() - entered > limit
    }

    /// Whether messages are taken: started, not shut down, no failed flush, dispatch not stopped, room on the volume.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.inner.is_running()
            && !self.inner.flusher.is_poisoned()
            && !self.inner.dispatcher.is_blocked()
            && !self.inner.cleaner.is_full()
    }

    /// One round of expiry: deletes what is due, see [`super::Expiry`]. Called every `cleanResourceInterval` while
    /// [`Store::may_expire`].
    ///
    /// Blocks for deletions.
    #[expect(clippy::must_use_candidate, reason = "the deletion is what matters")]
    pub fn clean(&self) -> Cleaned {
        clean::round(&self.inner)
    }

    /// Puts other rules of expiry in force, from the next round and the next look at the volume on.
    pub fn set_expiry(&self, expiry: Expiry) {
        self.inner.cleaner.set_expiry(expiry);
    }

    /// Has the next twenty rounds delete expired files whatever the hour (`DELETE_EXPIRED_COMMITLOG`, 329).
    pub fn delete_expired_soon(&self) {
        self.inner.cleaner.ask();
    }

    /// Whether a round of expiry could find anything to do: the current file of the log never goes.
    #[must_use]
    pub fn may_expire(&self) -> bool {
        self.inner.log.has_older_files() || self.inner.cleaner.is_asked()
    }

    /// Completes when the commit log has gone on to another file. For one waiter; cancel safe.
    pub async fn rolled(&self) {
        self.inner.log.rolled().await;
    }

    /// Removes the queues of which no message is left in the log, but those of topics that are `kept`; gives back how
    /// many (`CLEAN_EXPIRED_CONSUMEQUEUE`, 306). Their numbering begins at 0 again.
    ///
    /// Blocks for deletions.
    ///
    /// # Errors
    /// [`StoreError::Io`] when a folder can't be removed.
    pub fn remove_drained_queues(&self, kept: impl Fn(&str) -> bool) -> Result<usize, StoreError> {
        clean::drained_queues(&self.inner, kept)
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &StoreConfig {
        &self.inner.config
    }

    /// Numbers for monitoring.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let inner = &self.inner;
        StoreStats {
            min_physical_offset: PhysicalOffset(inner.log.start()),
            max_physical_offset: PhysicalOffset(inner.log.end()),
            flushed: PhysicalOffset(inner.log.flushed()),
            dispatch_behind_bytes: inner.confirmed() - inner.dispatcher.done(),
            disk_ratio: disk_ratio(&inner.config, &inner.config.commit_log_path()),
            queue_disk_ratio: disk_ratio(&inner.config, &inner.config.root),
        }
    }

    /// The checkpoint's three store times (commit log, consume queues, index), milliseconds since 1970.
    #[must_use]
    pub fn checkpoint(&self) -> [i64; 3] {
        let checkpoint = &self.inner.checkpoint;
        [&checkpoint.physic, &checkpoint.logics, &checkpoint.index]
            .map(|time| time.load(Ordering::Relaxed))
    }

    /// Stops in order: takes no more messages, writes everything to the disk, removes the `abort` file. Readers go on
    /// until the last handle is dropped, which releases the folder.
    ///
    /// Blocks for disk syncs. A second call does nothing.
    ///
    /// # Errors
    /// What could not be written; the `abort` file stays then, and the next start recovers.
    pub fn shutdown(&self) -> Result<(), StoreError> {
        let was_running = self.inner.close();
        self.threads.stop();
        if was_running {
            self.inner.finish()
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
impl Store {
    /// Has the log on disk, for tests that don't wait for the interval.
    pub(super) fn flush_now(&self) -> Result<i64, StoreError> {
        self.inner.flush_log()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn disk_ratio(config: &StoreConfig, path: &std::path::Path) -> f64 {
    config
        .space
        .used(path)
        .map_or(-1.0, |percent| percent as f64 / 100.0)
}
