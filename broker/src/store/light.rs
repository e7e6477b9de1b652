//! Light queues (LMQ): one record that further queues, named in it, hold an entry for.
//!
//! ```text
//! INNER_MULTI_DISPATCH=%LMQ%a,%LMQ%b  ─append─▶  INNER_MULTI_QUEUE_OFFSET=7,0  ─dispatch─▶ an entry in queue 0 of each
//! ```
//! The offsets are text in the record, so they are known before it is encoded: appends that need some take turns. Rules of
//! `MultiDispatchUtils` and `ConsumeQueue.multiDispatchLmqQueue` of Apache `RocketMQ` 5.3.3.

use std::sync::Arc;

use bindery_protocol::message::{RecordView, property};
use bindery_protocol::names;

use super::consume_queue::ConsumeQueue;
use super::error::AppendError;
use super::queues::Queues;

/// Starts the name of every light queue.
pub(crate) const PREFIX: &str = "%LMQ%";
/// Parts names, and offsets.
const SEPARATOR: char = ',';

/// Whether records of a topic are dispatched to light queues: not while they wait elsewhere for their own topic.
pub(super) fn is_dispatched(topic: &str) -> bool {
    !topic.starts_with(names::RETRY_PREFIX)
        && !matches!(
            topic,
            names::SCHEDULE_TOPIC
                | names::TIMER_TOPIC
                | names::TRANS_HALF_TOPIC
                | names::TRANS_OP_HALF_TOPIC
        )
}

/// The light queues a properties text names, for an append.
///
/// # Errors
/// [`AppendError::LightQueue`] for a name that can't be one: it becomes a folder (L31).
pub(super) fn named(text: &str) -> Result<Vec<&str>, AppendError> {
    let names = text.split(SEPARATOR);
    names
        .map(|name| {
            let good = name.starts_with(PREFIX) && name.len() > PREFIX.len();
            if good && names::check_topic(name).is_ok() {
                Ok(name)
            } else {
                Err(AppendError::LightQueue {
                    name: name.to_owned(),
                })
            }
        })
        .collect()
}

/// The queues behind those names.
///
/// # Errors
/// [`AppendError::TooManyLightQueues`] when there would be more than `most`.
pub(super) fn queues(
    queues: &Queues,
    names: &[&str],
    most: usize,
) -> Result<Vec<Arc<ConsumeQueue>>, AppendError> {
    let unknown = |name: &&&str| queues.find(name, 0).is_none();
    let new = names.iter().filter(unknown).count();
    if new > 0 && queues.count_topics(PREFIX).saturating_add(new) > most {
        return Err(AppendError::TooManyLightQueues { most });
    }
    let find = |name: &&str| queues.find_or_create(name, 0);
    Ok(names.iter().map(find).collect())
}

/// The text for those queues' next offsets.
pub(super) fn offsets(queues: &[Arc<ConsumeQueue>]) -> String {
    let next = |queue: &Arc<ConsumeQueue>| {
        let next = queue.next.load(std::sync::atomic::Ordering::Acquire);
        next.to_string()
    };
    queues.iter().map(next).collect::<Vec<_>>().join(",")
}

/// The light queues of a stored record, each with its offset there; none if the text can't be right.
pub(super) fn of_record(record: &RecordView<'_>) -> Vec<(String, i64)> {
    let text = |name| record.property(name).map(String::from_utf8_lossy);
    let (Some(names), Some(offsets)) = (
        text(property::INNER_MULTI_DISPATCH),
        text(property::INNER_MULTI_QUEUE_OFFSET),
    ) else {
        return Vec::new();
    };
    if names.split(SEPARATOR).count() != offsets.split(SEPARATOR).count() {
        return Vec::new();
    }
    let pairs = names.split(SEPARATOR).zip(offsets.split(SEPARATOR));
    pairs
        .filter(|(name, _)| name.starts_with(PREFIX) && super::dispatch::is_folder_name(name))
        .filter_map(|(name, offset)| {
            let offset = offset.parse().ok().filter(|offset| *offset >= 0)?;
            Some((name.to_owned(), offset))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l31_names_that_cannot_be_folders_are_refused() {
        assert!(named("%LMQ%a,%LMQ%b").is_ok_and(|names| names == ["%LMQ%a", "%LMQ%b"]));
        for bad in [
            "",
            "a",
            "%LMQ%",
            "%LMQ%a,",
            "%LMQ%a/../../b",
            "%LMQ%a,b",
            "%LMQ%..",
        ] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }
}
