//! Putting a timer message where it belongs: into its real topic, or into the timer queue again.
//!
//! ```text
//! record of rmq_sys_wheel_timer ─▶ + TIMER_ENQUEUE_MS, TIMER_DEQUEUE_MS ─▶ REAL_TOPIC, REAL_QID
//!                                                    + TIMER_ROLL_TIMES ─▶ rmq_sys_wheel_timer
//! ```
//! `REAL_TOPIC`, `REAL_QID` and `TIMER_OUT_MS` stay, as in Apache's broker: the last one says that the message was timed.
use bindery_protocol::{
    message::{NewMessage, RecordView, property},
    names,
};

use crate::{state::Core, store::AppendError};

/// What the delivery of one message came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// It is in the log.
    Stored,
    /// It never will be; the log of the broker says why.
    LeftOut,
    /// The store takes nothing now.
    Later,
}

/// Where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// To its real topic.
    Consumers,
    /// Into the timer queue, for the rest of its time.
    Wheel,
}

/// Stores a message of the timer queue again. `enqueued` is when it came into the wheel, `i64::MAX` if it never did.
pub(super) fn deliver(core: &Core, record: &RecordView<'_>, enqueued: i64, to: To) -> Delivered {
    let now = core.now();
    let (topic, queue_id) = match to {
        To::Wheel => (names::TIMER_TOPIC, 0),
        To::Consumers => {
            let Some(target) = target(record) else {
                tracing::error!(offset = %record.physical_offset(), "timer message without a real topic, left out");
                return Delivered::LeftOut;
            };
            target
        }
    };
    let (enqueued, dequeued) = (enqueued.to_string(), now.to_string());
    let rolls = number(record, property::TIMER_ROLL_TIMES).unwrap_or(0);
    let rolls = rolls.saturating_add(1).to_string();
    let marks = [
        (property::TIMER_ENQUEUE_MS, enqueued.as_str()),
        (property::TIMER_DEQUEUE_MS, dequeued.as_str()),
        (property::TIMER_ROLL_TIMES, rolls.as_str()),
    ];
    let marks = match to {
        To::Consumers => &marks[..2],
        To::Wheel => &marks[..],
    };
    let properties = with_marks(record.properties(), marks);
    let message = NewMessage {
        topic,
        queue_id,
        flag: record.flag(),
        sys_flag: record.sys_flag(),
        born_timestamp: record.born_timestamp(),
        born_host: record.born_host(),
        store_host: record.store_host(),
        reconsume_times: record.reconsume_times(),
        prepared_transaction_offset: 0,
        body: record.body(),
        properties: &properties,
    };
    match core.store.append(&message) {
        Ok(_) => Delivered::Stored,
        Err(error @ (AppendError::Closed | AppendError::Store(_))) => {
            tracing::warn!(topic, %error, "timer message not delivered, tried again");
            Delivered::Later
        }
        // It never will be, and must not be in the way of those behind it.
        Err(error) => {
            tracing::error!(topic, offset = %record.physical_offset(), %error, "timer message can't be delivered, left out");
            Delivered::LeftOut
        }
    }
}

/// Where a message is to go. Half messages never are: they would become visible undecided.
fn target<'a>(record: &RecordView<'a>) -> Option<(&'a str, i32)> {
    let topic = text(record, property::REAL_TOPIC)?;
    let queue_id = text(record, property::REAL_QID)?.parse().ok()?;
    (topic != names::TRANS_HALF_TOPIC).then_some((topic, queue_id))
}

/// A property as text.
pub(super) fn text<'a>(record: &RecordView<'a>, name: &str) -> Option<&'a str> {
    std::str::from_utf8(record.property(name)?).ok()
}

/// A property as a number.
pub(super) fn number(record: &RecordView<'_>, name: &str) -> Option<i64> {
    text(record, name)?.parse().ok()
}

/// The property text with `marks` in place of what it says under their names.
fn with_marks(properties: &[u8], marks: &[(&str, &str)]) -> Vec<u8> {
    let mut text = Vec::with_capacity(properties.len() + 128);
    for pair in properties.split(|byte| *byte == 2) {
        let name = pair.split(|byte| *byte == 1).next().unwrap_or_default();
        if !pair.is_empty() && !marks.iter().any(|(mark, _)| mark.as_bytes() == name) {
            text.extend_from_slice(pair);
            text.push(2);
        }
    }
    for (name, value) in marks {
        text.extend_from_slice(name.as_bytes());
        text.push(1);
        text.extend_from_slice(value.as_bytes());
        text.push(2);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_replace_older_ones_and_leave_the_rest() {
        let text = "A\u{1}1\u{2}TIMER_ENQUEUE_MS\u{1}7\u{2}B\u{1}\u{3}";
        let marked = with_marks(text.as_bytes(), &[("TIMER_ENQUEUE_MS", "8"), ("C", "9")]);
        assert_eq!(
            String::from_utf8_lossy(&marked),
            "A\u{1}1\u{2}B\u{1}\u{3}\u{2}TIMER_ENQUEUE_MS\u{1}8\u{2}C\u{1}9\u{2}"
        );
    }
}
