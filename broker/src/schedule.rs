//! Delayed messages: one queue of `SCHEDULE_TOPIC_XXXX` per level, delivered in order when they are due.
//!
//! ```text
//! append to SCHEDULE_TOPIC_XXXX ─▶ Schedule::arrived ─┐
//! earliest due time of all levels ─▶ the only sleep ──┼─▶ read level's queue from its offset ─▶ due? ─▶ append to REAL_TOPIC
//! delayOffset.json ◀─ 10 s after the first delivery ──┘
//! ```
//! Within a level messages fall due in the order they were stored, so only the first of each is looked at. Offsets are
//! kept by level; after a crash what was delivered since the last write of the file is delivered again.
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bindery_protocol::{
    bodies::{DataVersion, DelayOffsetTable},
    message::{DelayLevels, NewMessage, QueueOffset, RecordView, delay::DelayLevelError, property},
    names,
};
use bytes::Bytes;
use tokio::sync::Notify;

use crate::{
    state::Core,
    store::{AppendError, Everything, JsonFile, ReadLimits, ReadStatus},
    table::{TableError, next_version},
};

const FILE: &str = "delayOffset.json";
/// Milliseconds until a failed delivery is tried again.
const RETRY: i64 = 100;
/// Nothing waits in a level.
const NEVER: i64 = i64::MAX;

/// What is known of the delay levels between reads of their queues.
pub(crate) struct Schedule {
    /// Queues with messages that nobody has looked at.
    arrived: Mutex<BTreeSet<i32>>,
    /// The table of levels was replaced.
    retabled: AtomicBool,
    wake: Notify,
    offsets: Mutex<Offsets>,
    changed: Notify,
    file: JsonFile,
    path: PathBuf,
    version_step: u64,
}

struct Offsets {
    /// By level, from 1: the next message to deliver.
    next: BTreeMap<i32, i64>,
    version: DataVersion,
    deliveries: u64,
    dirty: bool,
}

impl Schedule {
    /// Reads the offsets of `dir`. The version of the file rises by one every `version_step` deliveries.
    pub(crate) fn open(dir: &Path, version_step: u64) -> Result<Self, TableError> {
        let path = dir.join(FILE);
        let file = JsonFile::new(path.clone());
        let loaded: Option<DelayOffsetTable> = file.load().map_err(|source| TableError::File {
            path: path.clone(),
            source,
        })?;
        let loaded = loaded.unwrap_or_default();
        let offsets = Offsets {
            next: loaded.offset_table,
            version: loaded.data_version.unwrap_or_default(),
            deliveries: 0,
            dirty: false,
        };
        Ok(Self {
            arrived: Mutex::default(),
            retabled: AtomicBool::new(false),
            wake: Notify::new(),
            offsets: Mutex::new(offsets),
            changed: Notify::new(),
            file,
            path,
            version_step: version_step.max(1),
        })
    }

    /// A message was stored in a queue; only those of the levels matter.
    pub(crate) fn arrived(&self, topic: &str, queue_id: i32) {
        if topic == names::SCHEDULE_TOPIC && self.news().insert(queue_id) {
            self.wake.notify_one();
        }
    }

    fn news(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message of a level to deliver.
    pub(crate) fn next(&self, level: i32) -> i64 {
        self.offsets().next.get(&level).copied().unwrap_or(0)
    }

    fn advance(&self, level: i32, next: i64, now: i64) {
        let mut offsets = self.offsets();
        if offsets.next.insert(level, next) == Some(next) {
            return;
        }
        offsets.deliveries += 1;
        if offsets.deliveries.is_multiple_of(self.version_step) {
            next_version(&mut offsets.version, now);
        }
        if !offsets.dirty {
            offsets.dirty = true;
            self.changed.notify_one();
        }
    }

    /// Waits for the first delivery since the file was written. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The file's content as it is now.
    pub(crate) fn snapshot(&self) -> DelayOffsetTable {
        let offsets = self.offsets();
        DelayOffsetTable {
            data_version: Some(offsets.version),
            offset_table: offsets.next.clone(),
        }
    }

    /// The file's content if it is no longer what is on the disk; the caller passes it to [`Schedule::write`] once all
    /// that was delivered so far is as durable as it has to be.
    pub(crate) fn take_unwritten(&self) -> Option<DelayOffsetTable> {
        let mut offsets = self.offsets();
        std::mem::take(&mut offsets.dirty).then(|| DelayOffsetTable {
            data_version: Some(offsets.version),
            offset_table: offsets.next.clone(),
        })
    }

    /// Writes the file. Blocks on the disk.
    pub(crate) fn write(&self, content: &DelayOffsetTable) -> Result<(), TableError> {
        let written = self.file.persist(content);
        if written.is_err() {
            self.offsets().dirty = true;
            self.changed.notify_one();
        }
        written.map_err(|source| TableError::File {
            path: self.path.clone(),
            source,
        })
    }

    fn offsets(&self) -> MutexGuard<'_, Offsets> {
        self.offsets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts another table of levels in force (`messageDelayLevel`). Messages that wait are due by the new one; those of levels
/// it no longer has, a second after they were stored.
///
/// # Errors
/// When the text is no table; the old one stays.
pub(crate) fn retable(core: &Core, text: &str) -> Result<(), DelayLevelError> {
    core.levels.replace(DelayLevels::parse(text)?);
    core.schedule.retabled.store(true, Ordering::SeqCst);
    core.schedule.wake.notify_one();
    Ok(())
}

/// Delivers until the broker stops. One task per broker.
pub(crate) async fn run(core: Arc<Core>) {
    let schedule = core.schedule.clone();
    // Of every level that ever had a message, whatever the table says now.
    let mut due: BTreeMap<i32, i64> = core
        .store
        .queue_ids(names::SCHEDULE_TOPIC)
        .into_iter()
        .map(|queue_id| (queue_id, i64::MIN))
        .collect();
    loop {
        if schedule.retabled.swap(false, Ordering::SeqCst) {
            for due in due.values_mut() {
                *due = i64::MIN;
            }
        }
        for queue_id in std::mem::take(&mut *schedule.news()) {
            // What arrives behind a message that waits falls due after it: no need to look.
            let due = due.entry(queue_id).or_insert(NEVER);
            if *due == NEVER {
                *due = i64::MIN;
            }
        }
        for (queue_id, due) in &mut due {
            if *due <= core.now() {
                *due = deliver(&core, *queue_id);
            }
        }
        let until = due.values().copied().min().unwrap_or(NEVER);
        tokio::select! {
            biased;
            () = core.stop.cancelled() => return,
            () = schedule.wake.notified() => {}
            () = core.clock.sleep_until(until), if until != NEVER && until > core.now() => {}
            () = tokio::task::yield_now(), if until <= core.now() => {}
        }
    }
}

/// Delivers what is due of one level, at most one read's worth; when to look again.
fn deliver(core: &Core, queue_id: i32) -> i64 {
    let level = queue_id.saturating_add(1);
    let from = core.schedule.next(level);
    let limits = ReadLimits::messages(32);
    let read = core.store.read(
        names::SCHEDULE_TOPIC,
        queue_id,
        QueueOffset(from),
        limits,
        &Everything,
    );
    match read.status {
        ReadStatus::Found => {}
        ReadStatus::OffsetOverflowOne
        | ReadStatus::NoMessageInQueue
        | ReadStatus::NoMatchedLogicQueue => return NEVER,
        _ if read.next.0 == from => return NEVER,
        _ => {
            tracing::warn!(level, from, to = read.next.0, "delay offset corrected");
            core.schedule.advance(level, read.next.0, core.now());
            return i64::MIN;
        }
    }
    for record in &read.messages {
        if let Err(again) = deliver_one(core, level, record) {
            return again;
        }
    }
    core.schedule.advance(level, read.next.0, core.now());
    i64::MIN
}

/// Delivers one message; otherwise when to look again.
fn deliver_one(core: &Core, level: i32, bytes: &Bytes) -> Result<(), i64> {
    let now = core.now();
    let record = match RecordView::parse(bytes) {
        Ok(record) => record,
        Err(error) => {
            tracing::error!(level, %error, "delayed message is not readable, left out");
            return Ok(());
        }
    };
    let levels = core.levels.current();
    let due = levels.due(level, record.store_timestamp());
    // A clock that was set back must not keep messages longer than their level.
    if due > now && due <= levels.due(level, now) {
        return Err(due);
    }
    if let Some((topic, queue_id)) = target(&record) {
        let message = NewMessage {
            topic: &topic,
            queue_id,
            flag: record.flag(),
            sys_flag: record.sys_flag(),
            born_timestamp: record.born_timestamp(),
            born_host: record.born_host(),
            store_host: record.store_host(),
            reconsume_times: record.reconsume_times(),
            prepared_transaction_offset: 0,
            body: record.body(),
            properties: record.properties(),
        };
        match core.store.append(&message) {
            Ok(_) => {}
            Err(error @ (AppendError::Closed | AppendError::Store(_))) => {
                tracing::warn!(topic, level, %error, "delayed message not delivered, tried again");
                return Err(now.saturating_add(RETRY));
            }
            // It never will be, and must not be in the way of those behind it.
            Err(error) => {
                tracing::error!(topic, level, offset = %record.physical_offset(), %error, "delayed message can't be delivered, left out");
            }
        }
    } else {
        tracing::error!(level, offset = %record.physical_offset(), "delayed message without a real topic, left out");
    }
    core.schedule
        .advance(level, record.queue_offset().0 + 1, now);
    Ok(())
}

/// Where a delayed message is to go. Half messages never are: they would become visible undecided.
fn target(record: &RecordView<'_>) -> Option<(String, i32)> {
    let topic = String::from_utf8(record.property(property::REAL_TOPIC)?.to_vec()).ok()?;
    let queue_id = std::str::from_utf8(record.property(property::REAL_QID)?)
        .ok()?
        .parse()
        .ok()?;
    (topic != names::TRANS_HALF_TOPIC).then_some((topic, queue_id))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn offsets_of_levels_are_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let schedule = Schedule::open(dir.path(), 200).unwrap();
        assert!(schedule.take_unwritten().is_none());
        schedule.advance(3, 7, 0);
        let content = schedule.take_unwritten().unwrap();
        schedule.write(&content).unwrap();
        assert!(schedule.take_unwritten().is_none());
        let again = Schedule::open(dir.path(), 200).unwrap();
        assert_eq!((again.next(3), again.next(1)), (7, 0));
    }

    #[test]
    fn only_the_queues_of_levels_wake_the_schedule() {
        let dir = tempfile::tempdir().unwrap();
        let schedule = Schedule::open(dir.path(), 200).unwrap();
        schedule.arrived("T", 0);
        assert!(schedule.news().is_empty());
        schedule.arrived(names::SCHEDULE_TOPIC, 1);
        assert!(schedule.news().contains(&1));
    }
}
