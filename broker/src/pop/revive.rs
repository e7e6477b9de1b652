//! Messages that were popped and not acknowledged in time come again, through the retry topic of their group and topic.
//!
//! ```text
//! arrival in the revive topic ─┐
//! time of the first hand-out ──┼─▶ round: read on ─▶ Book ─▶ due ─▶ message ─▶ %RETRY%group_topic, reconsumed once more
//!                              ┘                                       └─ can't be stored ─▶ noted again, for later
//! ```
//! Nobody wakes while nothing is handed out. Rounds keep `reviveInterval` between them, so that one serves many arrivals.
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use bindery_protocol::{
    bodies::{PERM_READ, PERM_WRITE},
    message::{NewMessage, Properties, QueueOffset, RecordView, property},
    names,
    pop::{Checkpoint, REVIVE_GROUP},
};
use bytes::Bytes;
use tokio::sync::Notify;

use super::{book::Book, log, origin};
use crate::{
    state::Core,
    store::{AppendError, Everything, ReadLimits, ReadStatus},
};

/// Messages read at a time.
const STEP: usize = 32;
/// Milliseconds until what could not even be noted again is tried again.
const RETRY: i64 = 1_000;
/// Milliseconds until the timer is looked at again that is behind.
const BEHIND: i64 = 100;
/// Seconds by which a message that can't be brought back is put off, by the number of tries before.
const LATER: [i64; 17] = [
    10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
];
/// Nothing to do.
const NEVER: i64 = i64::MAX;

/// The revive queues, and who is told of arrivals in them.
#[derive(Debug)]
pub(crate) struct Revive {
    topic: String,
    arrived: Vec<AtomicBool>,
    wake: Notify,
    books: Mutex<Vec<Queue>>,
}

#[derive(Debug)]
struct Queue {
    book: Book,
    /// When the broker started: what was handed out before may have been brought back before a crash.
    started: i64,
}

impl Revive {
    /// For so many queues of `topic`.
    pub(crate) fn new(topic: String, queues: i32) -> Self {
        Self {
            topic,
            arrived: (0..queues).map(|_| AtomicBool::new(true)).collect(),
            wake: Notify::new(),
            books: Mutex::default(),
        }
    }

    /// A message was stored; only those of the revive topic matter.
    pub(crate) fn arrived(&self, topic: &str, queue_id: i32) {
        if topic != self.topic {
            return;
        }
        let index = usize::try_from(queue_id).ok();
        if let Some(arrived) = index.and_then(|index| self.arrived.get(index)) {
            arrived.store(true, Ordering::SeqCst);
            self.wake.notify_one();
        }
    }

    fn open(&self, core: &Core) {
        let patience = i64::try_from(core.config.revive_ack_wait_ms).unwrap_or(i64::MAX);
        let queues = (0_i32..).take(self.arrived.len());
        *self.books() = queues
            .map(|queue_id| {
                let committed = core.offsets.committed(REVIVE_GROUP, &self.topic, queue_id);
                Queue {
                    book: Book::new(committed, patience),
                    started: core.now(),
                }
            })
            .collect();
    }

    fn books(&self) -> MutexGuard<'_, Vec<Queue>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Brings messages back until the broker stops. One task per broker.
pub(crate) async fn run(core: Arc<Core>) {
    let revive = core.pop.door.revive.clone();
    revive.open(&core);
    // What was handed out before the start is looked at once without an arrival.
    revive.wake.notify_one();
    let interval = i64::try_from(core.config.revive_interval).unwrap_or(i64::MAX);
    let mut last = i64::MIN;
    let mut until = NEVER;
    loop {
        tokio::select! {
            biased;
            () = core.stop.cancelled() => return,
            () = revive.wake.notified() => {}
            () = core.clock.sleep_until(until), if until != NEVER => {}
        }
        // What is due does not wait for the rest that arrivals have to.
        let rested = last.saturating_add(interval).min(until);
        if rested > core.now() {
            tokio::select! {
                biased;
                () = core.stop.cancelled() => return,
                () = core.clock.sleep_until(rested) => {}
            }
        }
        last = core.now();
        until = NEVER;
        for (index, queue_id) in (0..revive.arrived.len()).zip(0_i32..) {
            until = until.min(round(&core, &revive, index, queue_id).await);
        }
    }
}

/// Reads what is new of one queue and brings back what is due; when to look again.
async fn round(core: &Arc<Core>, revive: &Revive, index: usize, queue_id: i32) -> i64 {
    let news = revive.arrived[index].swap(false, Ordering::SeqCst);
    let mut more = news;
    loop {
        while more && !core.stop.is_cancelled() {
            more = with(revive, index, |queue| {
                read_on(core, revive, queue_id, queue)
            });
            tokio::task::yield_now().await;
        }
        if core.stop.is_cancelled() {
            return NEVER;
        }
        let next = loop {
            match with(revive, index, |queue| bring_back(core, queue_id, queue)) {
                Step::On if core.stop.is_cancelled() => return NEVER,
                Step::Read => {
                    more = true;
                    break NEVER;
                }
                Step::On => tokio::task::yield_now().await,
                Step::End { next } => break next,
            }
        };
        if more {
            continue;
        }
        more = with(revive, index, |queue| queue.book.tidy(core.now()));
        with(revive, index, |queue| {
            commit(core, revive, queue_id, &queue.book);
        });
        if !more {
            return next;
        }
    }
}

fn with<R: Default>(revive: &Revive, index: usize, work: impl FnOnce(&mut Queue) -> R) -> R {
    revive.books().get_mut(index).map(work).unwrap_or_default()
}

/// Reads a few messages; whether there may be more.
fn read_on(core: &Core, revive: &Revive, queue_id: i32, queue: &mut Queue) -> bool {
    let cursor = queue.book.cursor();
    let read = core.store.read(
        &revive.topic,
        queue_id,
        QueueOffset(cursor),
        ReadLimits::messages(STEP),
        &Everything,
    );
    for bytes in &read.messages {
        match RecordView::parse(bytes) {
            Ok(record) => queue.book.read(&record, core.now()),
            Err(error) => {
                tracing::error!(queue_id, %error, "message of the revive topic not readable");
            }
        }
    }
    match read.status {
        ReadStatus::OffsetOverflowOne
        | ReadStatus::NoMessageInQueue
        | ReadStatus::NoMatchedLogicQueue => false,
        _ if read.next.0 <= cursor && read.messages.is_empty() => {
            tracing::error!(queue_id, cursor, status = ?read.status, "message of the revive topic not readable, left out");
            queue.book.skip_to(cursor.saturating_add(1));
            true
        }
        _ => {
            // Files that are gone, and records nobody could read.
            if queue.book.cursor() < read.next.0 || read.messages.is_empty() {
                queue.book.skip_to(read.next.0);
            }
            true
        }
    }
}

/// What a step came to.
#[derive(Debug, Default)]
enum Step {
    /// There may be more.
    #[default]
    On,
    /// There may be acks to read first.
    Read,
    /// Nothing now; when to look again.
    End { next: i64 },
}

/// Brings back one hand-out, if one is due.
fn bring_back(core: &Core, queue_id: i32, queue: &mut Queue) -> Step {
    let now = core.now();
    let due = queue.book.next_look().filter(|look_at| *look_at <= now);
    if due.is_some() {
        if timer_is_behind(core, now) {
            return Step::End {
                next: now.saturating_add(BEHIND),
            };
        }
        // What the timer delivered up to now has to be read first.
        if core.store.max_offset(&core.pop.revive_topic, queue_id).0 > queue.book.cursor() {
            return Step::Read;
        }
    }
    let Some(mut checkpoint) = queue.book.take_due(now) else {
        return Step::End {
            next: queue.book.next_look().unwrap_or(NEVER),
        };
    };
    let before = checkpoint.pop_time <= queue.started;
    if let Err(Refused) = bring_all_back(core, queue_id, &mut checkpoint, before) {
        queue.book.put_back(checkpoint, now.saturating_add(RETRY));
    }
    Step::On
}

/// Whether acks may still be on their way through the timer that were due before [`book::GRACE`].
fn timer_is_behind(core: &Core, now: i64) -> bool {
    let queue_end = core.store.max_offset(names::TIMER_TOPIC, 0).0;
    core.timer.as_ref().is_some_and(|timer| {
        let progress = timer.progress(now, queue_end);
        progress.offset_behind > 0 || progress.read_behind > 1
    })
}

/// The store takes nothing now, not even a note.
struct Refused;

fn bring_all_back(
    core: &Core,
    queue_id: i32,
    checkpoint: &mut Checkpoint,
    before_start: bool,
) -> Result<(), Refused> {
    let (topic, group) = (checkpoint.topic.clone(), checkpoint.group.clone());
    if core.topics.topic(origin(&topic, &group)).is_none() || core.groups.known(&group).is_none() {
        tracing::warn!(
            topic,
            group,
            "popped messages of a topic or group that is gone, left out"
        );
        return Ok(());
    }
    let open: Vec<i64> = checkpoint.open().collect();
    for offset in open {
        let settled = match message(core, checkpoint, offset) {
            Found::Message(bytes) => one_back(core, checkpoint, &bytes, before_start).is_ok(),
            Found::Gone => true,
            Found::Unreadable => false,
        };
        if !settled {
            note_again(core, queue_id, checkpoint, offset)?;
        }
        checkpoint.mark(offset);
        super::back(core, &topic, &group, checkpoint.queue_id);
    }
    Ok(())
}

/// A message did not come back now; perhaps it can later.
struct NotNow;

enum Found {
    Message(Bytes),
    Gone,
    Unreadable,
}

fn message(core: &Core, checkpoint: &Checkpoint, offset: i64) -> Found {
    let read = core.store.read(
        &checkpoint.topic,
        checkpoint.queue_id,
        QueueOffset(offset),
        ReadLimits::messages(1),
        &Everything,
    );
    match read.status {
        ReadStatus::Found => match read.messages.into_iter().next() {
            Some(bytes) => Found::Message(bytes),
            None => Found::Unreadable,
        },
        ReadStatus::OffsetFoundNull => Found::Unreadable,
        status => {
            tracing::info!(
                topic = checkpoint.topic,
                queue_id = checkpoint.queue_id,
                offset,
                ?status,
                "popped message is gone"
            );
            Found::Gone
        }
    }
}

/// Puts one message into its retry topic.
fn one_back(
    core: &Core,
    checkpoint: &Checkpoint,
    bytes: &Bytes,
    before_start: bool,
) -> Result<(), NotNow> {
    let Ok(record) = RecordView::parse(bytes) else {
        return Err(NotNow);
    };
    let topic = retry_topic(core, checkpoint);
    let times = record.reconsume_times().saturating_add(1);
    if before_start && is_back(core, &topic, &record, times, checkpoint.revive_time()) {
        return Ok(());
    }
    if let Err(refusal) = core.topics.derived(&topic, 1, PERM_WRITE | PERM_READ, 0) {
        tracing::error!(topic, %refusal, "retry topic not made");
        return Err(NotNow);
    }
    if core
        .offsets
        .committed(&checkpoint.group, &topic, 0)
        .is_none()
    {
        core.offsets
            .commit(&checkpoint.group, &topic, 0, 0, core.now());
    }
    let mut properties = Properties::parse_bytes(record.properties());
    if record.reconsume_times() == 0 || !properties.contains(property::FIRST_POP_TIME) {
        properties.put(property::FIRST_POP_TIME, checkpoint.pop_time.to_string());
    }
    let properties = properties.encode();
    let message = NewMessage {
        topic: &topic,
        queue_id: 0,
        flag: record.flag(),
        sys_flag: record.sys_flag(),
        born_timestamp: record.born_timestamp(),
        born_host: core.address,
        store_host: core.address,
        reconsume_times: times,
        prepared_transaction_offset: 0,
        body: record.body(),
        properties: properties.as_bytes(),
    };
    match core.store.append(&message) {
        Ok(appended) => {
            let bytes = u64::try_from(appended.end.0 - appended.physical_offset.0).unwrap_or(0);
            core.stats.stored(&topic, 1, bytes, 0, core.now());
            Ok(())
        }
        Err(error) => {
            core.stats.refused();
            match error {
                AppendError::Closed | AppendError::Store(_) => {
                    tracing::warn!(topic, %error, "popped message not back, tried again");
                }
                _ => {
                    tracing::error!(topic, offset = %record.physical_offset(), %error, "popped message can't come back");
                }
            }
            Err(NotNow)
        }
    }
}

fn retry_topic(core: &Core, checkpoint: &Checkpoint) -> String {
    if names::is_retry_topic(&checkpoint.topic) {
        checkpoint.topic.clone()
    } else if core.config.enable_retry_topic_v2 {
        names::pop_retry_topic_v2(&checkpoint.group, &checkpoint.topic)
    } else {
        names::pop_retry_topic_v1(&checkpoint.group, &checkpoint.topic)
    }
}

/// Whether a message came back before a crash that took the note of it: the index knows it by its key.
fn is_back(core: &Core, topic: &str, record: &RecordView<'_>, times: i32, since: i64) -> bool {
    let Some(key) = record
        .property(property::UNIQ_KEY)
        .and_then(|key| std::str::from_utf8(key).ok())
    else {
        return false;
    };
    let found = core.store.query(topic, key, 64, since, i64::MAX);
    found.records.iter().any(|bytes| {
        RecordView::parse(bytes).is_ok_and(|other| {
            other.reconsume_times() == times
                && other.property(property::UNIQ_KEY) == Some(key.as_bytes())
        })
    })
}

/// Notes one message again, to be tried later.
fn note_again(
    core: &Core,
    queue_id: i32,
    checkpoint: &Checkpoint,
    offset: i64,
) -> Result<(), Refused> {
    let tries = tries(checkpoint);
    if tries >= LATER.len() && core.config.skip_when_ck_re_put_reach_max_times {
        tracing::error!(
            topic = checkpoint.topic,
            group = checkpoint.group,
            offset,
            "popped message given up: it could not come back for too long"
        );
        return Ok(());
    }
    let later = LATER[tries.min(LATER.len() - 1)].saturating_mul(1000);
    let again = Checkpoint {
        done: 0,
        count: 1,
        start_offset: offset,
        differences: Some(vec![0]),
        revive_offset: 0,
        put_again: Some(tries.saturating_add(1).to_string()),
        ..checkpoint.clone()
    }
    .hidden(
        checkpoint.pop_time,
        checkpoint.invisible_time.saturating_add(later),
    );
    match log::checkpoint(core, queue_id, &again) {
        Ok(_) => Ok(()),
        Err(_) => Err(Refused),
    }
}

/// How often it was noted again before; what can't be read counts as often.
fn tries(checkpoint: &Checkpoint) -> usize {
    match &checkpoint.put_again {
        None => 0,
        Some(text) => text.parse().unwrap_or(LATER.len()),
    }
}

fn commit(core: &Core, revive: &Revive, queue_id: i32, book: &Book) {
    let committed = book.committed();
    let before = core
        .offsets
        .committed(REVIVE_GROUP, &revive.topic, queue_id);
    if committed >= 0 && before != Some(committed) {
        core.offsets
            .commit(REVIVE_GROUP, &revive.topic, queue_id, committed, core.now());
    }
}
