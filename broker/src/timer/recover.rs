//! Opening the timer's files after any kind of stop.
//!
//! ```text
//! timerlog ─scan─▶ its end, last unit ─▶ where to read the queue on
//!              └─▶ units that their slots don't know are linked again
//! log shorter than wheel or marks know of ─▶ both emptied, the queue read again from its start
//! ```
use std::{collections::HashSet, sync::Arc};

use bindery_protocol::{
    message::{QueueOffset, RecordView, tag::java_hash},
    names,
};

use super::{
    book::{Arrived, Book, Timer},
    metrics::Metrics,
};
use crate::{
    config::BrokerConfig,
    store::{
        Store, StoreError,
        timer::{Marks, SLOTS, TimerCheck, TimerLog, Unit, Wheel},
    },
};

/// Slots that a start looks back less than the wheel's seven days, when no marks say how far the last run came.
const SPARE: i64 = 60;
/// Milliseconds of one slot at most: an hour.
const LONGEST_SLOT: i64 = 3_600_000;
/// Milliseconds by which a message must be past the time of its next step to count as gone on.
const STEP_SLACK: i64 = 60_000;

/// What becomes of a message of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// Its unit is in the log already, or it was delivered.
    Known,
    /// It goes to its topic at once.
    Due,
    /// It goes into the wheel.
    Ahead,
}

/// Which messages of the queue were taken care of before the last stop, although the marks don't say so.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Physical offsets of messages whose units are in the log.
    in_log: HashSet<i64>,
    /// Messages before this queue offset were enqueued once, but their units are lost.
    lost_until: i64,
}

impl Seen {
    /// Whether a message needs nothing more.
    pub(super) fn knows(
        &mut self,
        record: &RecordView<'_>,
        out: i64,
        read_time: i64,
        wheel: &Wheel,
        window: i64,
    ) -> bool {
        if !self.in_log.is_empty() && self.in_log.remove(&record.physical_offset().0) {
            return true;
        }
        if record.queue_offset().0 >= self.lost_until {
            return false;
        }
        // Slots before the time of reading were delivered, those of steps on the way too.
        let stored = wheel.floor(record.store_timestamp());
        let window = window.saturating_mul(wheel.precision());
        let stepped = out.saturating_sub(stored) >= window
            && stored.saturating_add(window).saturating_add(STEP_SLACK) < read_time;
        out < read_time || stepped
    }
}

/// Opens the files below the broker's folder, and finds out where the last run stopped.
pub(crate) fn open(
    config: &BrokerConfig,
    store: &Store,
    arrived: Arc<Arrived>,
) -> Result<Timer, StoreError> {
    let root = &config.store_path_root_dir;
    let folder = root.join("config");
    let now = config.clock.now_millis();
    let precision = i64::from(config.timer_precision_ms);
    if !(1..=LONGEST_SLOT).contains(&precision) {
        return Err(StoreError::Setting {
            key: "timerPrecisionMs",
            value: precision,
        });
    }
    let space = store.config().space.clone();
    let log = TimerLog::open(
        root.join("timerlog"),
        config.mapped_file_size_timer_log,
        space.clone(),
    )?;
    let wheel = Wheel::open(&root.join("timerwheel"), precision, space)?;
    let (check, marks) = TimerCheck::open(&folder.join("timercheck"))?;
    let metrics = Metrics::open(&folder)?;
    let blank = wheel
        .floor(now)
        .saturating_sub((SLOTS - SPARE) * wheel.precision());
    let mut book = Book {
        log,
        window: Book::window(config.timer_roll_window_slot, precision),
        write_time: wheel.floor(now),
        marks: marks.unwrap_or(Marks {
            read_time: blank,
            ..Marks::default()
        }),
        wheel,
        seen: Seen::default(),
    };
    Recovery {
        store,
        marked: marks.is_some(),
        book: &mut book,
    }
    .run()?;
    recount(&book, &metrics)?;
    let timer = Timer::new(book, check, metrics, arrived);
    Ok(timer)
}

struct Recovery<'a> {
    store: &'a Store,
    /// Whether the last run left marks.
    marked: bool,
    book: &'a mut Book,
}

impl Recovery<'_> {
    fn run(mut self) -> Result<(), StoreError> {
        let book = &mut *self.book;
        let from = (book.marks.log_synced - book.log.file_size()).max(book.log.start());
        let mut last = None;
        let end = book.log.scan(from, |_, unit| last = Some(unit))?;
        book.log.cut(end)?;
        let plausible = book.wheel.wait_from(book.marks.read_time)?;
        let rewound = !plausible || book.wheel.is_fresh() || !self.marked;
        if self.lost(end)? {
            return self.start_over();
        }
        self.find_offset(last.as_ref());
        let book = &mut *self.book;
        if rewound {
            book.wheel.clear()?;
        }
        let from = if rewound { book.log.start() } else { from };
        self.relink(from)
    }

    /// Whether units are gone that wheel or marks know of.
    fn lost(&self, end: i64) -> Result<bool, StoreError> {
        let book = &*self.book;
        let mut lost = end < book.marks.log_synced;
        book.wheel.each(|slot| {
            lost |= slot.last >= end
                && slot.number.saturating_mul(book.wheel.precision()) >= book.marks.read_time;
        })?;
        Ok(lost)
    }

    /// The log can't be relied on: the queue has all that is needed to build it again.
    fn start_over(&mut self) -> Result<(), StoreError> {
        let book = &mut *self.book;
        tracing::warn!("timer log lost units, it is built again from the timer queue");
        book.log.cut(book.log.start())?;
        book.wheel.clear()?;
        let min = self.store.min_offset(names::TIMER_TOPIC, 0).0;
        book.seen.lost_until = if self.marked { book.marks.queue } else { 0 };
        book.marks.queue = min;
        book.marks.queue_synced = min;
        book.marks.log_synced = book.log.end();
        Ok(())
    }

    /// Where the queue is read on: behind the last unit's message, but not behind what the marks vouch for, because a
    /// message delivered at once has no unit.
    fn find_offset(&mut self, last: Option<&Unit>) {
        let book = &mut *self.book;
        let behind_last = last.and_then(|unit| {
            let bytes = self.store.message_at(unit.physical)?;
            let record = RecordView::parse(&bytes).ok()?;
            let offset = record.queue_offset();
            let entry = self.store.entry(names::TIMER_TOPIC, 0, offset)?;
            (record.topic() == names::TIMER_TOPIC.as_bytes() && entry.physical == unit.physical)
                .then_some(offset.0 + 1)
        });
        let mut queue = behind_last.unwrap_or(book.marks.queue_synced);
        if self.marked {
            queue = queue.min(book.marks.queue);
        }
        let min = self.store.min_offset(names::TIMER_TOPIC, 0).0;
        let max = self.store.max_offset(names::TIMER_TOPIC, 0).0;
        book.marks.queue = queue.clamp(min, max.max(min));
    }

    /// Links units to their slots where those don't know them, and remembers the ones whose messages will be read again.
    fn relink(&mut self, from: i64) -> Result<(), StoreError> {
        let book = &mut *self.book;
        let next = QueueOffset(book.marks.queue);
        let again = self.store.entry(names::TIMER_TOPIC, 0, next);
        let again = again.map_or(i64::MAX, |entry| entry.physical.0);
        let (log, wheel, seen) = (&book.log, &mut book.wheel, &mut book.seen);
        let read_time = book.marks.read_time;
        let mut failed = None;
        log.scan(from, |position, unit| {
            if unit.physical.0 >= again {
                seen.in_log.insert(unit.physical.0);
            }
            if unit.due() >= read_time && failed.is_none() {
                let change = if unit.kind.cancels() { -1 } else { 1 };
                failed = wheel.relink(unit.due(), position, change).err();
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}

/// Counts what waits by topic: after a kill the counts of the file are old.
fn recount(book: &Book, metrics: &Metrics) -> Result<(), StoreError> {
    let topics = metrics.topics();
    if topics.is_empty() {
        return Ok(());
    }
    let mut counts: std::collections::HashMap<i32, (usize, i64)> = std::collections::HashMap::new();
    for topic in &topics {
        counts.entry(java_hash(topic)).or_default().0 += 1;
    }
    book.log.scan(book.log.start(), |_, unit| {
        if unit.due() >= book.marks.read_time
            && let Some((_, count)) = counts.get_mut(&unit.topic_hash)
        {
            *count += if unit.kind.cancels() { -1 } else { 1 };
        }
    })?;
    // Topics of the same hash can't be told apart; theirs stay.
    let counted = topics.into_iter().filter_map(|topic| {
        let (same, count) = counts.get(&java_hash(&topic)).copied()?;
        (same == 1).then_some((topic, count))
    });
    metrics.recount(counted.collect());
    Ok(())
}
