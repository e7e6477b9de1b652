//! Queues whose newest entry does not lead to its record. What such an entry says of how far its queue goes can't be relied
//! on: records that it seems to cover would be left out for ever.
//!
//! ```text
//! newest entry ─▶ record there? of that size, topic, queue and offset? ── no ─▶ the queue is built again from the log
//! ```

use std::sync::atomic::Ordering;

use bindery_protocol::message::{RecordView, SysFlag};
use tracing::warn;

use super::batch_queue::{BatchEntry, BatchQueue};
use super::dispatch::{Derived, batch_entry};
use super::error::StoreError;
use super::light;
use super::mapped_file::MappedFile;
use super::rebuild;

/// The record at a place, if it has that size.
fn record_at(files: &[MappedFile], place: i64, size: i32) -> Option<RecordView<'_>> {
    let file = files.iter().rfind(|file| file.base() <= place)?;
    let at = usize::try_from(place - file.base()).ok()?;
    let record = RecordView::parse(file.written().get(at..)?).ok()?;
    (usize::try_from(size) == Ok(record.size())).then_some(record)
}

/// Marks such queues as damaged.
pub(super) fn mark_queues(files: &[MappedFile], derived: &Derived) -> Result<(), StoreError> {
    let start = files.first().map_or(0, MappedFile::base);
    for queue in derived.queues.all() {
        if !derived.light && queue.topic().starts_with(light::PREFIX) {
            // Nobody says of a record then that it belongs there.
            continue;
        }
        let newest = queue.max() - 1;
        let entry = queue.entry(newest)?.filter(|entry| !entry.is_filler());
        let Some(entry) = entry.filter(|entry| entry.physical.0 >= start) else {
            continue;
        };
        let leads = record_at(files, entry.physical.0, entry.size).is_some_and(|record| {
            let places = rebuild::places(derived, &record);
            let here = |(topic, id, n): &(String, i32, i64)| {
                topic == queue.topic() && *id == queue.id() && *n == newest
            };
            places.iter().any(here)
        });
        queue.damaged.fetch_or(!leads, Ordering::AcqRel);
    }
    Ok(())
}

/// Builds such batch queues again from the records before `until`.
pub(super) fn rebuild_batches(
    files: &[MappedFile],
    derived: &Derived,
    until: i64,
) -> Result<(), StoreError> {
    let start = files.first().map_or(0, MappedFile::base);
    for queue in derived.queues.batches.all() {
        let Some(newest) = queue.newest()? else {
            continue;
        };
        if newest.physical < start || leads(files, &queue, newest) {
            continue;
        }
        warn!(
            topic = queue.topic(),
            queue_id = queue.id(),
            "damaged batch queue is built again"
        );
        queue.clear()?;
        rebuild::records(files, start, until, |_, record| {
            let inner = record.sys_flag().contains(SysFlag::INNER_BATCH);
            if inner
                && record.queue_id() == queue.id()
                && record.topic() == queue.topic().as_bytes()
            {
                derived.put_queue(record)?;
            }
            Ok(true)
        })?;
    }
    Ok(())
}

fn leads(files: &[MappedFile], queue: &BatchQueue, newest: BatchEntry) -> bool {
    record_at(files, newest.physical, newest.size).is_some_and(|record| {
        let entry = batch_entry(&record, newest.tags_code);
        record.topic() == queue.topic().as_bytes()
            && record.queue_id() == queue.id()
            && entry == Some(newest)
    })
}
