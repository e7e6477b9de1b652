//! From the wheel to the consumers, slot by slot.
//!
//! ```text
//! slot ─last unit─▶ chain, newest first ─▶ keys that cancel
//!                                      └▶ every 128th position ─▶ part by part, oldest first ─▶ deliver
//! ```
//! The chain leads from the newest unit to the oldest, but messages are delivered in the order in which they came. Only
//! the position of every 128th unit is kept, so that a slot of a million messages costs no memory to speak of.
use std::collections::HashSet;

use bindery_protocol::{
    message::{RecordView, property},
    names,
};

use super::{
    book::Timer,
    deliver::{self, Delivered, To},
};
use crate::{
    state::Core,
    store::{StoreError, timer::Unit},
};

/// Units of one part.
const PART: usize = 128;
/// Milliseconds until what the store did not take is tried again.
const RETRY: i64 = 100;

/// What a look at the wheel came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// No message waits.
    Nothing,
    /// The first slot is due then, milliseconds since 1970.
    Until(i64),
    /// A slot was delivered.
    Done,
    /// The broker stops.
    Stopped,
}

/// Delivers the first slot if it is due.
pub(super) async fn slot(core: &Core, timer: &Timer) -> Look {
    if core.live().timer_stop_dequeue {
        return Look::Nothing;
    }
    let time = {
        let mut book = timer.book();
        book.move_to(core.now());
        book.rest();
        match book.wheel.next(book.marks.read_time) {
            None => return Look::Nothing,
            Some(time) if time >= book.write_time => {
                return Look::Until(time.saturating_add(book.wheel.precision()));
            }
            Some(time) => time,
        }
    };
    loop {
        match deliver_slot(core, timer, time).await {
            Ok(true) => break,
            Ok(false) => return Look::Stopped,
            Err(error) => {
                tracing::error!(%error, time, "timer slot cannot be read, tried again");
                if !pause(core).await {
                    return Look::Stopped;
                }
            }
        }
    }
    Look::Done
}

/// Delivers every message of a slot; `false` if the broker stopped before the end.
async fn deliver_slot(core: &Core, timer: &Timer, time: i64) -> Result<bool, StoreError> {
    let last = timer.book().wheel.slot(time)?.map_or(-1, |slot| slot.last);
    let (parts, keys) = survey(core, timer, time, last)?;
    for head in parts.into_iter().rev() {
        let mut units = Vec::with_capacity(PART);
        walk(timer, time, head, PART, |_, unit| units.push(unit))?;
        for unit in units.iter().rev() {
            while !deliver_unit(core, timer, unit, &keys) {
                if !pause(core).await {
                    return Ok(false);
                }
            }
        }
        tokio::task::yield_now().await;
    }
    let mut book = timer.book();
    book.wheel.done(time)?;
    book.marks.read_time = time.saturating_add(book.wheel.precision());
    book.moved(core.now());
    drop(book);
    timer.touch();
    Ok(true)
}

/// Waits before the next try; `false` when the broker stops.
async fn pause(core: &Core) -> bool {
    tokio::select! {
        biased;
        () = core.stop.cancelled() => false,
        () = core.clock.sleep_until(core.now().saturating_add(RETRY)) => true,
    }
}

/// Where the parts of a slot begin, newest first, and the keys of messages that are cancelled in it.
fn survey(
    core: &Core,
    timer: &Timer,
    time: i64,
    last: i64,
) -> Result<(Vec<i64>, HashSet<String>), StoreError> {
    let (mut parts, mut keys, mut count) = (Vec::new(), HashSet::new(), 0);
    walk(timer, time, last, usize::MAX, |position, unit| {
        if count % PART == 0 {
            parts.push(position);
        }
        count += 1;
        if unit.kind.cancels() && !unit.kind.rolls() {
            keys.extend(cancelled(core, &unit));
        }
    })?;
    Ok((parts, keys))
}

/// Shows at most `most` units from the one at `position` on, towards older ones.
fn walk(
    timer: &Timer,
    time: i64,
    mut position: i64,
    most: usize,
    mut show: impl FnMut(i64, Unit),
) -> Result<(), StoreError> {
    for _ in 0..most {
        if position < 0 {
            break;
        }
        let book = timer.book();
        let Some(unit) = book.log.unit(position)? else {
            // Its file is gone, and so are the messages of all units before it.
            break;
        };
        if book.wheel.floor(unit.due()) != time {
            tracing::error!(
                position,
                time,
                "timer log holds a unit of another slot, the rest of the slot is left out"
            );
            break;
        }
        drop(book);
        show(position, unit);
        if unit.previous >= position {
            tracing::error!(
                position,
                time,
                "timer log does not lead back, the rest of the slot is left out"
            );
            break;
        }
        position = unit.previous;
    }
    Ok(())
}

/// The key of the message that a unit cancels. Only one of the topic it was sent to: rights to send are by topic.
fn cancelled(core: &Core, unit: &Unit) -> Option<String> {
    let bytes = core.store.message_at(unit.physical)?;
    let record = RecordView::parse(&bytes).ok()?;
    let key = deliver::text(&record, property::TIMER_DEL_UNIQKEY)?;
    let topic = deliver::text(&record, property::REAL_TOPIC)?;
    let own = key.strip_prefix(topic)?.starts_with('+');
    own.then(|| key.to_owned())
}

/// Delivers the message of a unit; `false` if the store took nothing.
fn deliver_unit(core: &Core, timer: &Timer, unit: &Unit, keys: &HashSet<String>) -> bool {
    if unit.kind.cancels() && !unit.kind.rolls() {
        uncount(core, timer, unit, 1);
        return true;
    }
    let Some(bytes) = core.store.message_at(unit.physical) else {
        tracing::warn!(offset = %unit.physical, "timer message is gone from the commit log");
        return true;
    };
    let record = match RecordView::parse(&bytes) {
        Ok(record) if record.topic() == names::TIMER_TOPIC.as_bytes() => record,
        _ => {
            tracing::error!(offset = %unit.physical, "timer log names a place without a timer message, left out");
            return true;
        }
    };
    let delivered = if unit.kind.rolls() {
        deliver::deliver(core, &record, unit.written, To::Wheel)
    } else if !keys.is_empty() && is_cancelled(&record, keys) {
        Delivered::LeftOut
    } else {
        deliver::deliver(core, &record, unit.written, To::Consumers)
    };
    if delivered == Delivered::Later {
        return false;
    }
    if let Some(topic) = deliver::text(&record, property::REAL_TOPIC) {
        let change = if unit.kind.cancels() { 1 } else { -1 };
        timer.metrics.add(topic, change, core.now());
    }
    true
}

/// A message that cancels another one is no longer counted against it.
fn uncount(core: &Core, timer: &Timer, unit: &Unit, change: i64) {
    let Some(bytes) = core.store.message_at(unit.physical) else {
        return;
    };
    if let Ok(record) = RecordView::parse(&bytes)
        && let Some(topic) = deliver::text(&record, property::REAL_TOPIC)
    {
        timer.metrics.add(topic, change, core.now());
    }
}

fn is_cancelled(record: &RecordView<'_>, keys: &HashSet<String>) -> bool {
    let (Some(topic), Some(key)) = (
        deliver::text(record, property::REAL_TOPIC),
        deliver::text(record, property::UNIQ_KEY),
    ) else {
        return false;
    };
    keys.contains(&format!("{topic}+{key}"))
}
