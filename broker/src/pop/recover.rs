//! After a crash: committed offsets lag behind what was handed out, but the log knows every hand-out.
//!
//! ```text
//! consumerOffset.json knows the log up to here ─▶ checkpoints behind ─▶ offsets move on behind what they handed out
//! ```
//! Without this, messages handed out in the last seconds before a kill would be handed out again, acknowledged or not.
use bindery_protocol::{
    message::{QueueOffset, RecordView, property},
    names,
    pop::{CHECKPOINT_TAG, Checkpoint},
};
use bytes::Bytes;

use crate::{config::BrokerConfig, offset::Offsets, store::Store};

/// Moves offsets on by what the log says. Runs before anything is handed out.
pub(crate) fn recover(store: &Store, offsets: &Offsets, config: &BrokerConfig) {
    let Some(known) = offsets.loaded_log_end() else {
        return;
    };
    let revive_topic = super::revive_topic(config);
    let mut records = since(store, names::TIMER_TOPIC, 0, known);
    for queue_id in store.queue_ids(&revive_topic) {
        records.extend(since(store, &revive_topic, queue_id, known));
    }
    for bytes in &records {
        let Some(checkpoint) = handed_out(bytes, &revive_topic) else {
            continue;
        };
        let last = (0..checkpoint.len())
            .filter_map(|place| checkpoint.offset_at(place))
            .max();
        let Some(next) = last.and_then(|last| last.checked_add(1)) else {
            continue;
        };
        let (group, topic, queue_id) = (&checkpoint.group, &checkpoint.topic, checkpoint.queue_id);
        let before = offsets.committed(group, topic, queue_id);
        if before.is_none_or(|before| before < next) {
            tracing::info!(topic, group, queue_id, from = ?before, to = next, "offset moved on behind what was handed out before the crash");
            offsets.commit(group, topic, queue_id, next, config.clock.now_millis());
        }
    }
}

/// The records of a queue that lie in the log behind `known`.
fn since(store: &Store, topic: &str, queue_id: i32, known: i64) -> Vec<Bytes> {
    let mut records = Vec::new();
    let mut offset = store.max_offset(topic, queue_id).0;
    let first = store.min_offset(topic, queue_id).0;
    while offset > first {
        offset -= 1;
        match store.entry(topic, queue_id, QueueOffset(offset)) {
            Some(entry) if entry.physical.0 >= known => {
                records.extend(store.message_at(entry.physical));
            }
            _ => break,
        }
    }
    records
}

/// The hand-out that a record notes; none for copies that the timer made of an older note.
fn handed_out(bytes: &Bytes, revive_topic: &str) -> Option<Checkpoint> {
    let record = RecordView::parse(bytes).ok()?;
    if record.property(property::TAGS) != Some(CHECKPOINT_TAG.as_bytes()) {
        return None;
    }
    let waits = record.topic() == names::TIMER_TOPIC.as_bytes();
    let is_copy = if waits {
        record.property(property::TIMER_ROLL_TIMES).is_some()
            || record.property(property::REAL_TOPIC) != Some(revive_topic.as_bytes())
    } else {
        record.property(property::TIMER_OUT_MS).is_some()
    };
    if is_copy {
        return None;
    }
    serde_json::from_slice(record.body()).ok()
}
