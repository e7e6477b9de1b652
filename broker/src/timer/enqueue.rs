//! From the timer queue into the wheel.
//!
//! ```text
//! rmq_sys_wheel_timer ─▶ 32 records ─▶ TIMER_OUT_MS ─┬─ before now: delivered
//!                                                    ├─ seen before the last stop: passed over
//!                                                    └─ unit in the timer log, linked to its slot
//! ```
use bindery_protocol::{
    message::{QueueOffset, RecordView, property, tag::java_hash},
    names,
};
use bytes::Bytes;

use super::{
    book::{Enqueued, Timer},
    deliver::{self, Delivered, To},
    recover::Sight,
};
use crate::{
    state::Core,
    store::{Everything, ReadLimits, ReadStatus},
};

/// What a round came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// The queue is read to its end.
    Empty,
    /// There may be more.
    More,
    /// The disk took nothing.
    Later,
}

/// Takes up to 32 messages of the queue.
pub(super) fn round(core: &Core, timer: &Timer) -> Round {
    if core.live().timer_stop_enqueue {
        return Round::Empty;
    }
    let from = timer.book().marks.queue;
    let read = core.store.read(
        names::TIMER_TOPIC,
        0,
        QueueOffset(from),
        ReadLimits::messages(32),
        &Everything,
    );
    match read.status {
        ReadStatus::OffsetOverflowOne
        | ReadStatus::NoMessageInQueue
        | ReadStatus::NoMatchedLogicQueue => return Round::Empty,
        _ if read.next.0 == from => return Round::Empty,
        ReadStatus::Found => {}
        _ => tracing::warn!(
            from,
            to = read.next.0,
            "offset of the timer queue corrected"
        ),
    }
    for bytes in &read.messages {
        if take(core, timer, bytes) == Taken::Later {
            return Round::Later;
        }
    }
    advance(core, timer, read.next.0);
    Round::More
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Done,
    Later,
}

fn take(core: &Core, timer: &Timer, bytes: &Bytes) -> Taken {
    let record = match RecordView::parse(bytes) {
        Ok(record) => record,
        Err(error) => {
            tracing::error!(%error, "timer message is not readable, left out");
            return Taken::Done;
        }
    };
    // Apache's broker stops here for good: anybody can send to the timer's topic.
    let Some(out) = deliver::number(&record, property::TIMER_OUT_MS) else {
        tracing::error!(offset = %record.physical_offset(), "timer message without a time, left out");
        return Taken::Done;
    };
    let taken = match sight(core, timer, &record, out) {
        Sight::Known => Taken::Done,
        Sight::Due => match deliver::deliver(core, &record, i64::MAX, To::Consumers) {
            Delivered::Later => Taken::Later,
            Delivered::Stored | Delivered::LeftOut => Taken::Done,
        },
        Sight::Ahead => place(core, timer, &record, out),
    };
    if taken == Taken::Done {
        advance(core, timer, record.queue_offset().0 + 1);
    }
    taken
}

fn sight(core: &Core, timer: &Timer, record: &RecordView<'_>, out: i64) -> Sight {
    let mut guard = timer.book();
    let book = &mut *guard;
    book.move_to(core.now());
    if book
        .seen
        .knows(record, out, book.marks.read_time, &book.wheel, book.window)
    {
        return Sight::Known;
    }
    let cancels = record.property(property::TIMER_DEL_UNIQKEY).is_some();
    match out < book.write_time {
        // What it would cancel is delivered already.
        true if cancels => Sight::Known,
        true => Sight::Due,
        false => Sight::Ahead,
    }
}

fn place(core: &Core, timer: &Timer, record: &RecordView<'_>, out: i64) -> Taken {
    let topic = deliver::text(record, property::REAL_TOPIC);
    let cancels = record.property(property::TIMER_DEL_UNIQKEY).is_some();
    let message = Enqueued {
        physical: record.physical_offset(),
        size: i32::try_from(record.size()).unwrap_or(i32::MAX),
        cancels,
        topic_hash: topic.map_or(0, java_hash),
    };
    let placed = timer.book().enqueue(out, &message);
    if let Err(error) = placed {
        tracing::warn!(%error, "timer message not enqueued, tried again");
        return Taken::Later;
    }
    if let Some(topic) = topic {
        let change = if cancels { -1 } else { 1 };
        timer.metrics.add(topic, change, core.now());
    }
    Taken::Done
}

fn advance(core: &Core, timer: &Timer, next: i64) {
    let mut book = timer.book();
    if book.marks.queue != next {
        book.marks.queue = next;
        book.moved(core.now());
        drop(book);
        timer.touch();
    }
}
