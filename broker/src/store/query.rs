//! Other questions than "what is next in this queue": messages by key, by place, and offsets by time.

use bindery_protocol::message::{PhysicalOffset, QueueOffset, RecordView};
use bytes::Bytes;

use super::batch_queue::{BatchEntry, BatchQueue};
use super::consume_queue::{ConsumeQueue, Entry};
use super::error::StoreError;
use super::index_file::TimeRange;
use super::inner::Inner;

/// What a query by key gives back.
#[derive(Debug, Clone, Default)]
pub struct QueryResult {
    /// The records, oldest first. Keys are compared by hash: the caller compares them as text.
    pub records: Vec<Bytes>,
    /// Store time of the newest indexed record, milliseconds since 1970; 0 without index.
    pub index_last_update_timestamp: i64,
    /// Physical offset of the newest indexed record; 0 without index.
    pub index_last_update_offset: PhysicalOffset,
}

/// Which offset a search by time wants when no message has exactly that time, or several have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Boundary {
    /// The first message at or after the time.
    #[default]
    Lower,
    /// The last message at or before the time.
    Upper,
}

/// Messages of `topic` that carry `key` and were stored between `begin` and `end` (milliseconds, both included).
pub(super) fn by_key(
    store: &Inner,
    topic: &str,
    key: &str,
    max: usize,
    begin: i64,
    end: i64,
) -> QueryResult {
    let mut result = QueryResult::default();
    let Some(index) = &store.dispatcher.derived().index else {
        return result;
    };
    let max = max.min(store.config.max_msgs_num_batch);
    let mut range = TimeRange { begin, end };
    // As Apache does: when none of the hits can be read, look once or twice more for older ones.
    for _ in 0..3 {
        let mut hits = index.find(topic, key, range, max);
        result.index_last_update_timestamp = hits.last_update_timestamp;
        result.index_last_update_offset = PhysicalOffset(hits.last_update_offset);
        hits.offsets.sort_unstable();
        hits.offsets.dedup();
        result.records = hits
            .offsets
            .iter()
            .filter_map(|offset| message_at(store, *offset))
            .collect();
        let Some(oldest) = hits.offsets.first().filter(|_| result.records.is_empty()) else {
            break;
        };
        match time_at(store, *oldest) {
            Some(time) => range.end = time,
            None => break,
        }
    }
    result
}

/// The record that begins at `physical`.
pub(super) fn message_at(store: &Inner, physical: i64) -> Option<Bytes> {
    let file = store.log.file_at(physical)?;
    let at = usize::try_from(physical - file.base()).ok()?;
    let size = RecordView::parse(file.written().get(at..)?).ok()?.size();
    store.log.slice(physical, size)
}

fn time_at(store: &Inner, physical: i64) -> Option<i64> {
    let file = store.log.file_at(physical)?;
    let at = usize::try_from(physical - file.base()).ok()?;
    RecordView::parse(file.written().get(at..)?)
        .ok()
        .map(|record| record.store_timestamp())
}

/// Store time of the message an entry points at.
pub(super) fn time_of(store: &Inner, entry: Entry) -> Option<i64> {
    time_at(store, entry.physical.0).filter(|_| !entry.is_filler())
}

/// The offset for a time. Mirrors `ConsumeQueue.getOffsetInQueueByTime` of Apache `RocketMQ` 5.3.3.
pub(super) fn offset_by_time(
    store: &Inner,
    queue: &ConsumeQueue,
    timestamp: i64,
    boundary: Boundary,
) -> Result<QueueOffset, StoreError> {
    let (min, max) = (queue.min(), queue.max());
    let ranges = queue
        .file_ranges()
        .into_iter()
        .map(|(first, end)| (first.max(min), end));
    let ranges: Vec<_> = ranges.filter(|(first, end)| first < end).collect();
    let time = |offset: i64| -> Result<Option<i64>, StoreError> {
        Ok(queue.entry(offset)?.and_then(|entry| time_of(store, entry)))
    };
    let Some((first, end)) = file_for(&ranges, timestamp, boundary, &time)? else {
        return Ok(QueueOffset(if boundary == Boundary::Upper {
            0
        } else {
            min
        }));
    };
    let (Some(oldest), Some(newest)) = (time(first)?, time(end - 1)?) else {
        return Ok(QueueOffset(0));
    };
    let found = if newest < timestamp {
        if boundary == Boundary::Lower {
            end
        } else {
            end - 1
        }
    } else if oldest > timestamp {
        if boundary == Boundary::Lower {
            first
        } else {
            0
        }
    } else {
        // Entries whose records are gone count as older than everything.
        let before =
            |limit: i64| move |entry: Entry| time_of(store, entry).is_none_or(|time| time < limit);
        match boundary {
            Boundary::Lower => queue.partition(first, end, before(timestamp))?,
            Boundary::Upper => {
                queue.partition(first, end, before(timestamp.saturating_add(1)))? - 1
            }
        }
    };
    Ok(QueueOffset(found.clamp(min, max)))
}

/// The entry of the batch that holds a queue offset.
pub(super) fn batch_entry(queue: &BatchQueue, offset: i64) -> Result<Option<Entry>, StoreError> {
    let batch = queue.entries(offset, 1)?.into_iter().next();
    let holds = |batch: &BatchEntry| batch.base <= offset;
    Ok(batch.filter(holds).map(|batch| Entry {
        physical: PhysicalOffset(batch.physical),
        size: batch.size,
        tags_code: batch.tags_code,
    }))
}

/// The offset for a time in a batch queue: that of the first message of a batch, as all of it was stored at one time.
pub(super) fn batch_offset_by_time(
    queue: &BatchQueue,
    timestamp: i64,
    boundary: Boundary,
) -> Result<QueueOffset, StoreError> {
    let min = queue.min();
    let after = queue.first_not(|batch| {
        batch.base < min
            || batch.store_timestamp < timestamp
            || (boundary == Boundary::Upper && batch.store_timestamp == timestamp)
    })?;
    let found = match (boundary, after) {
        (Boundary::Lower, after) => after.map_or(queue.max(), |batch| batch.base),
        (Boundary::Upper, after) => {
            let behind = after.map_or(queue.max(), |batch| batch.base);
            let last = queue.entries(behind - 1, 1)?.into_iter().next();
            last.map_or(min, |batch| batch.base)
        }
    };
    Ok(QueueOffset(found.clamp(min, queue.max())))
}

type TimeOf<'a> = &'a dyn Fn(i64) -> Result<Option<i64>, StoreError>;

/// The queue file to search: for the lower boundary the first whose last message is not older than `timestamp` (or the
/// last file), for the upper one the last whose first message is not newer.
fn file_for(
    ranges: &[(i64, i64)],
    timestamp: i64,
    boundary: Boundary,
    time: TimeOf<'_>,
) -> Result<Option<(i64, i64)>, StoreError> {
    match boundary {
        Boundary::Lower => {
            for range in ranges {
                if time(range.1 - 1)?.is_some_and(|last| last >= timestamp) {
                    return Ok(Some(*range));
                }
            }
            Ok(ranges.last().copied())
        }
        Boundary::Upper => {
            for range in ranges.iter().rev() {
                if time(range.0)?.is_some_and(|first| first <= timestamp) {
                    return Ok(Some(*range));
                }
            }
            Ok(None)
        }
    }
}
