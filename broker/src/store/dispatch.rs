//! Dispatch: turns what the commit log holds into consume-queue entries and index items, and tells waiting pulls.
//!
//! ```text
//! append ─▶ log end moves ─▶ run(): record after record ─▶ consume queue ─▶ index ─▶ Arrivals::arrived
//!                              ▲ one thread at a time; who finds it busy leaves, and the one at work sees the new end
//! ```
//! There is no polling: the append itself (or, with `SYNC_FLUSH`, the flush) calls [`Dispatcher::run`].

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use bindery_protocol::message::record::RecordError;
use bindery_protocol::message::{QueueOffset, RecordView, SysFlag, Transaction, property, tag};
use tracing::{error, warn};

use super::batch_queue::{BatchEntry, BatchQueue};
use super::commit_log::CommitLog;
use super::consume_queue::{ConsumeQueue, Entry};
use super::deleted::Deleted;
use super::error::StoreError;
use super::index::Index;
use super::levels::LiveLevels;
use super::light;
use super::queues::Queues;

/// The topic whose queues hold messages of one delay level each.
const SCHEDULE_TOPIC: &[u8] = b"SCHEDULE_TOPIC_XXXX";

/// Told of every message that became readable.
pub trait Arrivals: Send + Sync {
    /// Called straight after the consume-queue entry can be read, from the thread that appended (or flushed): it must
    /// neither block nor call the store's writing side. `queue_offset_after` is the message's offset plus one;
    /// `properties` is its properties text.
    fn arrived(
        &self,
        topic: &str,
        queue_id: i32,
        queue_offset_after: QueueOffset,
        tags_code: i64,
        store_timestamp: i64,
        properties: &[u8],
    );
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoArrivals;

impl Arrivals for NoArrivals {
    fn arrived(&self, _: &str, _: i32, _: QueueOffset, _: i64, _: i64, _: &[u8]) {}
}

/// What dispatch writes to.
#[derive(Debug)]
pub(super) struct Derived {
    /// Consume queues.
    pub(super) queues: Queues,
    /// Index; `None` when switched off.
    pub(super) index: Option<Index>,
    /// Topics whose older records have no place in queues.
    pub(super) deleted: Deleted,
    /// Whether records are put into the light queues they name.
    pub(super) light: bool,
    /// For the tags code of delayed messages.
    pub(super) delay_levels: LiveLevels,
}

/// Queue entries as dispatch made them for one record.
struct Dispatched {
    /// The queue of the message's own topic.
    queue: Queue,
    /// Offset behind the message there.
    after: i64,
    /// Light queues, each with the offset behind the message there.
    light: Vec<(Arc<ConsumeQueue>, i64)>,
    tags_code: i64,
}

/// Of which kind a queue is.
enum Queue {
    Simple(Arc<ConsumeQueue>),
    Batch(Arc<BatchQueue>),
}

impl Derived {
    /// Puts a record into its queue and the index; what they hold already is skipped.
    pub(super) fn put(&self, record: &RecordView<'_>) -> Result<(), StoreError> {
        self.enter(record).map(drop)
    }

    /// Puts a record into its queue alone.
    pub(super) fn put_queue(&self, record: &RecordView<'_>) -> Result<(), StoreError> {
        self.enter_queue(record).map(drop)
    }

    fn enter(&self, record: &RecordView<'_>) -> Result<Option<Dispatched>, StoreError> {
        let entered = self.enter_queue(record)?;
        if let Some(index) = &self.index {
            index.put(record)?;
        }
        Ok(entered)
    }

    fn enter_queue(&self, record: &RecordView<'_>) -> Result<Option<Dispatched>, StoreError> {
        let visible = matches!(
            record.sys_flag().transaction(),
            Transaction::None | Transaction::Commit
        );
        if !visible {
            return Ok(None);
        }
        let topic = record.topic_text();
        if !is_folder_name(&topic) {
            error!(%topic, physical_offset = record.physical_offset().0, "record with an impossible topic is skipped");
            return Ok(None);
        }
        if self.hides(&topic, record) {
            return Ok(None);
        }
        let tags_code = self.tags_code(record);
        if record.sys_flag().contains(SysFlag::INNER_BATCH) {
            return self.enter_batch(record, &topic, tags_code);
        }
        let entry = Entry {
            physical: record.physical_offset(),
            size: i32::try_from(record.size()).unwrap_or(i32::MAX),
            tags_code,
        };
        let offset = record.queue_offset().0;
        let queue = self.queues.find_or_create(&topic, record.queue_id());
        self.queues.append(&queue, entry, offset)?;
        let mut light = Vec::new();
        for (name, offset) in self.light_queues(&topic, record) {
            let queue = self.queues.find_or_create(&name, 0);
            self.queues.append(&queue, entry, offset)?;
            light.push((queue, offset.saturating_add(1)));
        }
        Ok(Some(Dispatched {
            queue: Queue::Simple(queue),
            after: offset.saturating_add(1),
            light,
            tags_code,
        }))
    }

    fn enter_batch(
        &self,
        record: &RecordView<'_>,
        topic: &str,
        tags_code: i64,
    ) -> Result<Option<Dispatched>, StoreError> {
        let Some(entry) = batch_entry(record, tags_code) else {
            error!(%topic, physical_offset = record.physical_offset().0, "inner batch without a possible base and number is skipped");
            return Ok(None);
        };
        let queue = self.queues.batches.find_or_create(topic, record.queue_id());
        queue.append(entry)?;
        Ok(Some(Dispatched {
            queue: Queue::Batch(queue),
            after: entry.after(),
            light: Vec::new(),
            tags_code,
        }))
    }

    /// The light queues that hold the record too, each with its offset there.
    pub(super) fn light_queues(&self, topic: &str, record: &RecordView<'_>) -> Vec<(String, i64)> {
        if !self.light || !light::is_dispatched(topic) {
            return Vec::new();
        }
        let mut queues = light::of_record(record);
        queues.retain(|(name, _)| !self.hides(name, record));
        queues
    }

    /// Whether the record came before its topic was deleted.
    pub(super) fn hides(&self, topic: &str, record: &RecordView<'_>) -> bool {
        let (physical, time) = (record.physical_offset().0, record.store_timestamp());
        self.deleted.hides(topic, physical, time)
    }

    /// Hash of the tag; for a delayed message its due time in milliseconds.
    fn tags_code(&self, record: &RecordView<'_>) -> i64 {
        let text = |name| record.property(name).map(String::from_utf8_lossy);
        if record.topic() == SCHEDULE_TOPIC
            && let Some(level) = text(property::DELAY).and_then(|level| level.parse::<i32>().ok())
            && level > 0
        {
            let levels = self.delay_levels.current();
            return levels.due(levels.clamp(level), record.store_timestamp());
        }
        text(property::TAGS).map_or(0, |tags| tag::tag_code(&tags))
    }
}

/// The queue entry of an inner batch; `None` if its properties don't tell one that can be.
pub(super) fn batch_entry(record: &RecordView<'_>, tags_code: i64) -> Option<BatchEntry> {
    let text = |name| std::str::from_utf8(record.property(name)?).ok();
    let base = text(property::INNER_BASE)?.parse().ok()?;
    let count = text(property::INNER_NUM)?.parse().ok()?;
    // The record's own offset says the same: a damaged text must not stretch the queue.
    (base == record.queue_offset().0 && base >= 0 && count > 0).then(|| BatchEntry {
        physical: record.physical_offset().0,
        size: i32::try_from(record.size()).unwrap_or(i32::MAX),
        tags_code,
        store_timestamp: record.store_timestamp(),
        base,
        count,
    })
}

/// Whether a topic can be a folder: what a name must not be so that it stays below `consumequeue`.
pub(super) fn is_folder_name(topic: &str) -> bool {
    let bad = |c: char| matches!(c, '/' | '\0');
    !topic.is_empty() && topic.len() <= 255 && topic != "." && topic != ".." && !topic.contains(bad)
}

/// Runs dispatch over what is appended.
pub(super) struct Dispatcher {
    derived: Derived,
    arrivals: Arc<dyn Arrivals>,
    /// Offset up to which records are dispatched; the lock keeps runs apart.
    position: Mutex<i64>,
    /// Copy of `position` for those who only look.
    done: AtomicI64,
    /// Store time of the newest dispatched record.
    timestamp: AtomicI64,
    /// The last run could not write.
    blocked: AtomicBool,
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("done", &self.done)
            .field("blocked", &self.blocked)
            .finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// Goes on at `from`, the end of what recovery dispatched. When that is `behind` the log for want of space, it counts
    /// as blocked: a new message would get a queue offset that a waiting record has.
    pub(super) fn new(
        derived: Derived,
        arrivals: Arc<dyn Arrivals>,
        from: i64,
        behind: bool,
        timestamp: i64,
    ) -> Self {
        Self {
            derived,
            arrivals,
            position: Mutex::new(from),
            done: AtomicI64::new(from),
            timestamp: AtomicI64::new(timestamp),
            blocked: AtomicBool::new(behind),
        }
    }

    /// What it writes to.
    pub(super) fn derived(&self) -> &Derived {
        &self.derived
    }

    /// Offset up to which records are dispatched.
    pub(super) fn done(&self) -> i64 {
        self.done.load(Ordering::Acquire)
    }

    /// Store time of the newest dispatched record.
    pub(super) fn timestamp(&self) -> i64 {
        self.timestamp.load(Ordering::Acquire)
    }

    /// Whether the last run could not write, for want of space most likely. The next run tries again.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Acquire)
    }

    /// Dispatches everything up to `confirmed()`, unless another thread is at it: that one sees the new end.
    pub(super) fn run(&self, log: &CommitLog, confirmed: impl Fn() -> i64) {
        loop {
            match self.position.try_lock() {
                Ok(mut position) => self.advance(log, &mut position, &confirmed),
                Err(TryLockError::Poisoned(poisoned)) => {
                    self.advance(log, &mut poisoned.into_inner(), &confirmed);
                }
                Err(TryLockError::WouldBlock) => return,
            }
            // Pairs with the appender that moves the end, finds the lock taken and leaves: either it sees the lock
            // free, or this sees its end.
            fence(Ordering::SeqCst);
            if confirmed() <= self.done() || self.is_blocked() {
                return;
            }
        }
    }

    /// Keeps dispatch away while `work` changes what it writes to.
    pub(super) fn paused<T>(&self, work: impl FnOnce(&Derived) -> T) -> T {
        let _position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        work(&self.derived)
    }

    fn advance(&self, log: &CommitLog, position: &mut i64, confirmed: &impl Fn() -> i64) {
        let mut result = Ok(());
        *position = (*position).max(log.start());
        while result.is_ok() && *position < confirmed() {
            let Some(file) = log.file_at(*position) else {
                break;
            };
            let limit = usize::try_from(confirmed() - file.base()).unwrap_or(0);
            let written = file.written();
            let written = &written[..written.len().min(limit)];
            let at = usize::try_from(*position - file.base()).unwrap_or(0);
            if at >= written.len() {
                break;
            }
            result = self.dispatch(&written[at..], file.end(), position);
            self.done.store(*position, Ordering::SeqCst);
        }
        match result {
            Ok(()) => self.blocked.store(false, Ordering::Release),
            Err(error) => {
                if !self.blocked.swap(true, Ordering::AcqRel) {
                    error!(%error, position = *position, "dispatch stopped; sends are refused until it goes on");
                }
            }
        }
    }

    /// Dispatches the records that `bytes` begins with; they lie in one file, which ends at `file_end`.
    fn dispatch(
        &self,
        mut bytes: &[u8],
        file_end: i64,
        position: &mut i64,
    ) -> Result<(), StoreError> {
        while !bytes.is_empty() {
            let record = match RecordView::parse(bytes) {
                Ok(record) => record,
                Err(RecordError::Blank { .. }) => {
                    *position = file_end;
                    return Ok(());
                }
                Err(RecordError::Lengths { total }) if total > 0 && total <= bytes.len() => {
                    error!(position = *position, "damaged record is skipped");
                    *position += i64::try_from(total).unwrap_or(0);
                    bytes = &bytes[total..];
                    continue;
                }
                Err(error) => {
                    warn!(%error, position = *position, "the rest of the commit log as written now is skipped");
                    *position += i64::try_from(bytes.len()).unwrap_or(0);
                    return Ok(());
                }
            };
            let entered = self.derived.enter(&record)?;
            self.timestamp
                .store(record.store_timestamp(), Ordering::Release);
            if let Some(dispatched) = entered {
                self.tell(&dispatched, &record);
            }
            let size = record.size();
            *position += i64::try_from(size).unwrap_or(0);
            bytes = &bytes[size..];
        }
        Ok(())
    }

    fn tell(&self, dispatched: &Dispatched, record: &RecordView<'_>) {
        let (time, properties) = (record.store_timestamp(), record.properties());
        let tell = |topic: &str, id, after| {
            let after = QueueOffset(after);
            let code = dispatched.tags_code;
            self.arrivals
                .arrived(topic, id, after, code, time, properties);
        };
        match &dispatched.queue {
            Queue::Simple(queue) => tell(queue.topic(), queue.id(), dispatched.after),
            Queue::Batch(queue) => tell(queue.topic(), queue.id(), dispatched.after),
        }
        for (queue, after) in &dispatched.light {
            tell(queue.topic(), queue.id(), *after);
        }
    }
}
