//! What a pop's answer says of the queues it took from: entries joined by `;`, each `mark queue value`.

use std::fmt::{Display, Write as _};

use super::RetryMark;

/// Adds the offset a queue was read from.
pub fn push_start(info: &mut String, topic: &str, queue_id: i32, start: i64) {
    push(info, topic, queue_id, start);
}

/// Adds the offsets handed out of a queue.
pub fn push_offsets(info: &mut String, topic: &str, queue_id: i32, offsets: &[i64]) {
    let mut list = String::with_capacity(offsets.len() * 8);
    for offset in offsets {
        if !list.is_empty() {
            list.push(',');
        }
        append(&mut list, offset);
    }
    push(info, topic, queue_id, list);
}

/// Adds how often one message was handed out before.
pub fn push_order_count(info: &mut String, topic: &str, queue_id: i32, offset: i64, count: i32) {
    push(info, topic, format_args!("qo{queue_id}%{offset}"), count);
}

/// Adds how often all messages of a queue were handed out before: what older clients look at.
pub fn push_queue_order_count(info: &mut String, topic: &str, queue_id: i32, count: i32) {
    push(info, topic, queue_id, count);
}

fn push(info: &mut String, topic: &str, key: impl Display, value: impl Display) {
    if !info.is_empty() {
        info.push(';');
    }
    append(
        info,
        format_args!("{} {key} {value}", RetryMark::of(topic).text()),
    );
}

fn append(text: &mut String, value: impl Display) {
    // Writing to a string can't fail.
    _ = write!(text, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_recorded_answers() {
        let (mut starts, mut offsets, mut counts) = (String::new(), String::new(), String::new());
        push_start(&mut starts, "T", 2, 0);
        push_start(&mut starts, "%RETRY%g_T", 0, 7);
        push_offsets(&mut offsets, "T", 3, &[0, 1, 4]);
        push_offsets(&mut offsets, "%RETRY%g+T", 0, &[9]);
        push_order_count(&mut counts, "T", 3, 4, 1);
        push_queue_order_count(&mut counts, "T", 3, 0);
        assert_eq!(starts, "0 2 0;1 0 7");
        assert_eq!(offsets, "0 3 0,1,4;2 0 9");
        assert_eq!(counts, "0 qo3%4 1;0 3 0");
    }
}
