//! Expiry: old files go, the oldest first, and with the commit log everything that is derived from it.
//!
//! ```text
//! round ─▶ how full is the volume? ──▶ above the warning level: sends are refused
//!             │ hour of deleteWhen, volume too full, or asked for by an operator
//!             ▼
//!   commit log files older than fileReservedTime ─▶ queue files, first offsets ─▶ index files
//! ```
//! Rules of `CleanCommitLogService`, `CleanConsumeQueueService` and `IndexService.deleteExpiredFile` of Apache `RocketMQ`
//! 5.3.3. A file is unlinked at once: its mapping, and with it the space, lives until the last reader is gone, so nothing
//! has to wait for readers and nothing can hang on them (`destroyMapedFileIntervalForcibly` has nothing to do here).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::{DateTime, Local, Timelike};
use tracing::{error, info, warn};

use super::error::StoreError;
use super::inner::Inner;

/// Rounds of deletion that one request of an operator asks for (`manualDeleteFileSeveralTimes`).
const ROUNDS_BY_HAND: u32 = 20;

/// When and what to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiry {
    /// `fileReservedTime`: age at which a commit log file expires, counted from its last change. Default 72 hours.
    pub reserved: Duration,
    /// `deleteWhen`: local hours of the day in which expired files are deleted. Default 4.
    pub hours: Vec<u8>,
    /// `diskMaxUsedSpaceRatio`: above so many percent expired files are deleted at any hour. Default 75.
    pub max_used: u8,
    /// `diskSpaceCleanForciblyRatio`: above so many percent files are deleted even if they are not expired. Default 85.
    pub forcibly_above: u8,
    /// `diskSpaceWarningLevelRatio`: above so many percent no messages are taken. Default 90.
    pub refuse_above: u8,
    /// `cleanFileForciblyEnable`: whether files that are not expired may be deleted at all. Default true.
    pub forcibly: bool,
    /// `deleteFileBatchMax`: most commit log files of one round. Default 10.
    pub batch: usize,
    /// `deleteCommitLogFilesInterval`: pause between two of them. Default 100 ms.
    pub pause: Duration,
    /// `redeleteHangedFileInterval`: how long a file that could not be deleted is left alone. Default 120 s.
    pub retry: Duration,
}

impl Default for Expiry {
    fn default() -> Self {
        Self {
            reserved: Duration::from_hours(72),
            hours: vec![4],
            max_used: 75,
            forcibly_above: 85,
            refuse_above: 90,
            forcibly: true,
            batch: 10,
            pause: Duration::from_millis(100),
            retry: Duration::from_secs(120),
        }
    }
}

/// What one round deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Commit log files.
    pub log_files: usize,
    /// Consume queue files.
    pub queue_files: usize,
    /// Index files.
    pub index_files: usize,
}

/// What is remembered between rounds.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    expiry: ArcSwap<Expiry>,
    /// Rounds that an operator asked for and that have not been yet.
    by_hand: AtomicU32,
    /// The volume is above the warning level.
    full: AtomicBool,
    /// Keeps rounds apart.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// First offset of the log that queues and index were cleaned for.
    cleaned_for: i64,
    /// When a file could not be deleted, milliseconds since 1970.
    failed_at: Option<i64>,
    /// Said once, not each round, that the volume fills up and nothing can be deleted.
    shortage_told: bool,
}

/// How much the volume asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Nothing,
    /// Expired files are to go at any hour.
    Expired,
    /// The oldest files are to go, expired or not.
    Oldest,
}

impl Cleaner {
    /// With the rules the store was opened with.
    pub(super) fn new(expiry: Expiry) -> Self {
        Self {
            expiry: ArcSwap::from_pointee(expiry),
            ..Self::default()
        }
    }

    /// The rules in force now.
    pub(super) fn expiry(&self) -> Arc<Expiry> {
        self.expiry.load_full()
    }

    /// Puts other rules in force.
    pub(super) fn set_expiry(&self, expiry: Expiry) {
        self.expiry.store(Arc::new(expiry));
    }

    /// Asks for the next rounds to delete expired files at any hour.
    pub(super) fn ask(&self) {
        self.by_hand.store(ROUNDS_BY_HAND, Ordering::Release);
    }

    /// Whether rounds are asked for.
    pub(super) fn is_asked(&self) -> bool {
        self.by_hand.load(Ordering::Acquire) > 0
    }

    fn take_asked(&self) -> bool {
        let taken = self
            .by_hand
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                left.checked_sub(1)
            });
        taken.is_ok()
    }

    /// Whether the volume was above the warning level when it was last looked at.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }
}

impl Inner {
    /// Looks how full the volumes of log and queues are; sends are refused, or taken again, by that.
    pub(super) fn measure(&self) -> bool {
        let limit = i64::from(self.cleaner.expiry().refuse_above);
        let [log, queues] = self.used();
        let full = log.max(queues).is_some_and(|used| used > limit);
        if self.cleaner.full.swap(full, Ordering::AcqRel) != full {
            if full {
                error!(
                    ?log,
                    ?queues,
                    limit,
                    "the volume is too full: messages are refused"
                );
            } else {
                info!(?log, ?queues, "the volume has room again");
            }
        }
        full
    }

    /// Used percent of the volumes that hold the commit log and the consume queues.
    fn used(&self) -> [Option<i64>; 2] {
        let used = |path: &std::path::Path| self.config.space.used(path);
        [
            used(&self.config.commit_log_path()),
            used(&self.config.root),
        ]
    }

    fn need(&self) -> Need {
        let expiry = self.cleaner.expiry();
        let need = |used: Option<i64>| match used {
            Some(used) if used > i64::from(expiry.forcibly_above.min(expiry.refuse_above)) => {
                Need::Oldest
            }
            Some(used) if used <= i64::from(expiry.max_used) => Need::Nothing,
            _ => Need::Expired,
        };
        self.used()
            .map(need)
            .into_iter()
            .max()
            .unwrap_or(Need::Nothing)
    }
}

/// One round. Errors are logged: the next round tries again.
pub(super) fn round(store: &Inner) -> Cleaned {
    let mut state = store
        .cleaner
        .state
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    store.measure();
    let mut cleaned = Cleaned {
        log_files: log_files(store, &mut state),
        ..Cleaned::default()
    };
    let start = store.log.start();
    if start > state.cleaned_for {
        match derived(store, start, &mut cleaned) {
            Ok(()) => state.cleaned_for = start,
            Err(error) => {
                warn!(%error, start, "expired queue and index files cannot be deleted now");
            }
        }
    }
    if cleaned != Cleaned::default() {
        let Cleaned {
            log_files,
            queue_files,
            index_files,
        } = cleaned;
        info!(
            start,
            log_files, queue_files, index_files, "expired files deleted"
        );
        store.measure();
    }
    cleaned
}

fn log_files(store: &Inner, state: &mut State) -> usize {
    let expiry = store.cleaner.expiry();
    let now = store.config.clock.now_millis();
    let need = store.need();
    state.shortage_told &= need > Need::Nothing;
    if !store.cleaner.take_asked() && need == Need::Nothing && !is_hour(&expiry.hours, now) {
        return 0;
    }
    let retry = i64::try_from(expiry.retry.as_millis()).unwrap_or(i64::MAX);
    if state
        .failed_at
        .is_some_and(|failed| now < failed.saturating_add(retry))
    {
        return 0;
    }
    state.failed_at = None;
    let at_once = expiry.forcibly && need == Need::Oldest;
    match delete_log_files(store, at_once, now) {
        Ok(0) if need > Need::Nothing => {
            if !std::mem::replace(&mut state.shortage_told, true) {
                warn!("the volume is filling up, and no commit log file has expired");
            }
            0
        }
        Ok(deleted) => deleted,
        Err((deleted, error)) => {
            warn!(%error, "an expired commit log file cannot be deleted now");
            state.failed_at = Some(now);
            deleted
        }
    }
}

/// Deletes files of the log; on an error it gives back too how many went before.
fn delete_log_files(store: &Inner, at_once: bool, now: i64) -> Result<usize, (usize, StoreError)> {
    let expiry = store.cleaner.expiry();
    let reserved = i64::try_from(expiry.reserved.as_millis()).unwrap_or(i64::MAX);
    let mut deleted = 0;
    while deleted < expiry.batch {
        // What is not on disk, or not in the queues, is no one's to delete yet.
        let safe = store.log.flushed().min(store.dispatcher.done());
        let Some(file) = store.log.oldest(safe) else {
            break;
        };
        let changed = file.modified().map_err(|error| (deleted, error))?;
        if !at_once && now < changed.saturating_add(reserved) {
            break;
        }
        if deleted > 0 {
            std::thread::sleep(expiry.pause);
        }
        store
            .log
            .remove_oldest(&file)
            .map_err(|error| (deleted, error))?;
        deleted += 1;
    }
    Ok(deleted)
}

fn is_hour(hours: &[u8], now: i64) -> bool {
    let time = DateTime::from_timestamp_millis(now).unwrap_or_default();
    let hour = time.with_timezone(&Local).hour();
    hours.iter().any(|wanted| u32::from(*wanted) == hour)
}

/// Takes what lies before `start` out of queues and index.
fn derived(store: &Inner, start: i64, cleaned: &mut Cleaned) -> Result<(), StoreError> {
    let derived = store.dispatcher.derived();
    derived.queues.write()?;
    for queue in derived.queues.all() {
        cleaned.queue_files += queue.expire(start)?;
    }
    for queue in derived.queues.batches.all() {
        cleaned.queue_files += queue.expire(start)?;
    }
    derived.deleted.forget_before(start)?;
    if let Some(index) = &derived.index {
        cleaned.index_files += index.expire(start)?;
    }
    Ok(())
}

/// Removes the queues of which no message is left in the log, but those of topics that are `kept`; gives back how many.
/// Their numbering begins at 0 again, as after Apache's `CLEAN_EXPIRED_CONSUMEQUEUE` (306).
pub(super) fn drained_queues(
    store: &Inner,
    kept: impl Fn(&str) -> bool,
) -> Result<usize, StoreError> {
    let start = store.log.start();
    let mut removed = 0;
    for queue in store.dispatcher.derived().queues.all() {
        if kept(queue.topic()) {
            continue;
        }
        // Nothing is dispatched meanwhile, so the queue can't get a message between look and removal.
        removed += store.without_dispatch(|store| {
            let end = queue.highest_end();
            if (0..start).contains(&end) {
                let queues = &store.dispatcher.derived().queues;
                queues.remove(&queue).map(|()| 1)
            } else {
                Ok(0)
            }
        })?;
    }
    for queue in store.dispatcher.derived().queues.batches.all() {
        if kept(queue.topic()) || !(0..start).contains(&queue.highest_end()) {
            continue;
        }
        removed += store.without_dispatch(|store| {
            let queues = &store.dispatcher.derived().queues.batches;
            if (0..start).contains(&queue.highest_end()) {
                queues.remove(&queue).map(|()| 1)
            } else {
                Ok(0)
            }
        })?;
    }
    Ok(removed)
}
