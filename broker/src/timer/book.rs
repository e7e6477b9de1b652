//! The state of timer messages: files, how far queue and slots were read, and what changed since the last flush.
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use bindery_protocol::names;
use tokio::sync::Notify;

use super::{
    metrics::Metrics,
    timing::{self, Timing, TimingError},
};
use crate::{
    config::BrokerConfig,
    store::{
        StoreError,
        timer::{Kind, Marks, SLOTS, TimerCheck, TimerLog, Unit, Wheel},
    },
    table::next_version,
};

/// Slots of a wheel that are never used for a message rolled ahead.
const SPARE: i64 = 60;

/// Wakes the timer when its queue has a new message.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    wake: Notify,
}

impl Arrived {
    /// A message was stored in a queue; only the timer's matters.
    pub(crate) fn arrived(&self, topic: &str) {
        if topic == names::TIMER_TOPIC {
            self.wake.notify_one();
        }
    }

    /// Waits for one. Cancel safe.
    pub(super) async fn wait(&self) {
        self.wake.notified().await;
    }
}

/// Timer messages of one broker.
#[derive(Debug)]
pub(crate) struct Timer {
    pub(super) arrived: Arc<Arrived>,
    pub(super) metrics: Metrics,
    pub(super) check: TimerCheck,
    book: Mutex<Book>,
    changed: Notify,
    dirty: AtomicBool,
}

/// What the lock guards.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) log: TimerLog,
    pub(super) wheel: Wheel,
    /// As they are in the file, or will be soon.
    pub(super) marks: Marks,
    /// Now, rounded down to a slot; it never goes back.
    pub(super) write_time: i64,
    /// Slots ahead in which a message may lie; later ones are reached in several steps.
    pub(super) window: i64,
    /// Which messages of the queue were seen before a kill or a loss of files.
    pub(super) seen: super::recover::Seen,
}

/// How far the timer is, for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// Seconds by which the delivery of slots is late.
    pub(crate) read_behind: i64,
    /// Messages of the queue that are not in the wheel yet.
    pub(crate) offset_behind: i64,
    /// Messages in the wheel.
    pub(crate) waiting: i64,
}

impl Timer {
    pub(super) fn new(
        book: Book,
        check: TimerCheck,
        metrics: Metrics,
        arrived: Arc<Arrived>,
    ) -> Self {
        Self {
            arrived,
            metrics,
            check,
            book: Mutex::new(book),
            changed: Notify::new(),
            dirty: AtomicBool::new(false),
        }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot for a message with this wish; none when it goes to its topic at once. `cancels` tells whether the message
    /// is there to cancel another one.
    ///
    /// # Errors
    /// [`TimingError`]
    pub(crate) fn slot(
        &self,
        timing: Timing<'_>,
        now: i64,
        cancels: bool,
        config: &BrokerConfig,
    ) -> Result<Option<i64>, TimingError> {
        let slot = timing.slot(now, cancels, config)?;
        let limit = i64::from(config.timer_congest_num_each_slot);
        // A slot can't count beyond the default limit: no need to look.
        if let Some(time) = slot
            && limit < i64::from(i32::MAX)
        {
            let count = self.book().count(time);
            timing::admit(count, limit, rand::random())?;
        }
        Ok(slot)
    }

    /// Something changed that is not on the disk.
    pub(super) fn touch(&self) {
        if !self.dirty.swap(true, Ordering::AcqRel) {
            self.changed.notify_one();
        }
    }

    /// Whether something changed since the last call.
    pub(super) fn take_dirty(&self) -> bool {
        self.dirty.swap(false, Ordering::AcqRel)
    }

    /// Waits for the first change since the last flush. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The marks, as slaves ask for them.
    pub(crate) fn marks(&self, now: i64) -> Marks {
        let mut book = self.book();
        book.move_to(now);
        book.rest();
        book.marks
    }

    /// Whether the timer log has files that may expire.
    pub(super) fn has_several_files(&self) -> bool {
        self.book().log.files() > 1
    }

    /// How far it is. `queue_end` is the end of the timer queue.
    pub(crate) fn progress(&self, now: i64, queue_end: i64) -> Progress {
        let mut book = self.book();
        book.move_to(now);
        book.rest();
        Progress {
            read_behind: (book.write_time - book.marks.read_time).max(0) / 1000,
            offset_behind: (queue_end - book.marks.queue).max(0),
            waiting: book.wheel.count().max(0),
        }
    }

    /// The messages by real topic, as JSON.
    pub(crate) fn metrics_json(&self) -> Vec<u8> {
        self.metrics.json()
    }
}

impl Book {
    /// The window in slots that a configured `timerRollWindowSlot` comes to. A unit has 32 bits for its milliseconds.
    pub(super) fn window(configured: i64, precision: i64) -> i64 {
        let most = SLOTS - SPARE;
        let window = if (2..=most).contains(&configured) {
            configured
        } else {
            most
        };
        window.min(i64::from(i32::MAX) / precision.max(1)).max(2)
    }

    /// Moves time on to now.
    pub(super) fn move_to(&mut self, now: i64) {
        self.write_time = self.write_time.max(self.wheel.floor(now));
    }

    /// Moves the time of reading up to the first slot that waits, or to now.
    pub(super) fn rest(&mut self) {
        let until = match self.wheel.next(self.marks.read_time) {
            Some(next) => next.min(self.write_time),
            None => self.write_time,
        };
        self.marks.read_time = self.marks.read_time.max(until);
    }

    fn count(&self, time: i64) -> i64 {
        match self.wheel.slot(time) {
            Ok(slot) => slot.map_or(0, |slot| i64::from(slot.count)),
            Err(error) => {
                tracing::warn!(%error, "timer wheel cannot be read");
                0
            }
        }
    }

    /// The slot and kind of a message due at `out`: later than the window it goes half or all of the window ahead, so that
    /// the last step is never a short one.
    pub(super) fn place(&self, out: i64) -> (i64, bool) {
        let precision = self.wheel.precision();
        let ahead = out.saturating_sub(self.write_time);
        let window = self.window * precision;
        if ahead < window {
            return (out, false);
        }
        let step = if ahead - window < self.window / 3 * precision {
            self.window / 2 * precision
        } else {
            window
        };
        (self.write_time + step, true)
    }

    /// Writes the unit of a message into the log and its slot.
    pub(super) fn enqueue(&mut self, out: i64, message: &Enqueued) -> Result<(), StoreError> {
        let (due, rolls) = self.place(out);
        let slot = self.wheel.slot(due)?;
        let unit = Unit {
            previous: slot.map_or(-1, |slot| slot.last),
            kind: Kind::new(rolls, message.cancels),
            written: self.write_time,
            delay: i32::try_from(due - self.write_time).unwrap_or(i32::MAX),
            physical: message.physical,
            size: message.size,
            topic_hash: message.topic_hash,
        };
        let position = self.log.append(&unit)?;
        self.wheel
            .add(due, position, if message.cancels { -1 } else { 1 })
    }

    /// Raises the marks' version; called when read time or queue offset changed.
    pub(super) fn moved(&mut self, now: i64) {
        next_version(&mut self.marks.version, now);
    }
}

/// What of a message goes into its unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Enqueued {
    pub(super) physical: bindery_protocol::message::PhysicalOffset,
    pub(super) size: i32,
    pub(super) cancels: bool,
    pub(super) topic_hash: i32,
}
