//! Building derived data again from the commit log, for ranges that the scan of recovery does not cover.
//!
//! ```text
//! index files of an unclean stop ─▶ first offset they covered ─┐
//! index files that name cut records ─▶ the same of those ──────┴─▶ records of the log, in order ─▶ index
//! damaged queues of a clean stop ─▶ the whole log ─▶ entries of those queues
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use bindery_protocol::message::{RecordView, SysFlag};
use tracing::{info, warn};

use super::dispatch::Derived;
use super::error::StoreError;
use super::index::{Distrusted, Index};
use super::mapped_file::MappedFile;

/// Calls `work` with every record that begins in `[from, until)`, its offset first; `false` ends the walk. A file is left
/// at its first byte that is no record.
pub(super) fn records(
    files: &[MappedFile],
    from: i64,
    until: i64,
    mut work: impl FnMut(i64, &RecordView<'_>) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    let within = |file: &&MappedFile| file.end() > from && file.base() < until;
    for file in files.iter().filter(within) {
        let mut at = from.max(file.base());
        while at < until {
            let rest = usize::try_from(at - file.base())
                .ok()
                .and_then(|start| file.written().get(start..));
            let Ok(record) = RecordView::parse(rest.unwrap_or_default()) else {
                break;
            };
            if !work(at, &record)? {
                return Ok(());
            }
            at = at.saturating_add(i64::try_from(record.size()).unwrap_or(i64::MAX));
        }
    }
    Ok(())
}

/// Indexes again what the distrusted files covered up to `until`, where the scan of recovery begins. Gives back the first
/// record for which there was no room: index items come in the order of the log, so nothing is to be dispatched before it.
pub(super) fn distrusted(
    files: &[MappedFile],
    derived: &Derived,
    distrusted: Distrusted,
    until: i64,
) -> Result<Option<i64>, StoreError> {
    let full = match (&derived.index, distrusted.begin()) {
        (Some(index), Some(begin)) => put(files, index, begin, until)?,
        _ => None,
    };
    distrusted.remove()?;
    Ok(full)
}

/// The index may name records behind `end`, where recovery cut the log: those files are built again up to `until`. Gives
/// back the first record for which there was no room. Of a log without any record the caller leaves no index.
pub(super) fn cut_off(
    files: &[MappedFile],
    derived: &Derived,
    end: i64,
    until: i64,
) -> Result<Option<i64>, StoreError> {
    let Some(index) = &derived.index else {
        return Ok(None);
    };
    match index.drop_from(end)? {
        Some(begin) => put(files, index, begin, until),
        None => Ok(None),
    }
}

/// Puts the keys of the records in `[from, until)` into the index. A full volume must not keep the store from opening: the
/// first record without room is given back, and dispatch goes on there.
fn put(
    files: &[MappedFile],
    index: &Index,
    from: i64,
    until: i64,
) -> Result<Option<i64>, StoreError> {
    let (mut full, mut count) = (None, 0_u64);
    records(files, from, until, |at, record| {
        match index.put(record) {
            Err(StoreError::Full { .. }) => full = Some(at),
            put => put?,
        }
        count += 1;
        Ok(full.is_none())
    })?;
    if count > 0 {
        info!(from, until, records = count, "keys indexed again");
    }
    Ok(full)
}

/// The queues that a record is to be found in.
fn keys(derived: &Derived, record: &RecordView<'_>) -> Vec<(String, i32)> {
    let places = places(derived, record).into_iter();
    places.map(|(topic, id, _)| (topic, id)).collect()
}

/// The queues that a record is to be found in, each with its offset there.
pub(super) fn places(derived: &Derived, record: &RecordView<'_>) -> Vec<(String, i32, i64)> {
    let topic = record.topic_text().into_owned();
    let light = derived.light_queues(&topic, record).into_iter();
    let light = light.map(|(name, offset)| (name, 0, offset));
    let (id, offset) = (record.queue_id(), record.queue_offset().0);
    let own = (!derived.hides(&topic, record)).then(|| (topic.clone(), id, offset));
    light.chain(own).collect()
}

/// Builds all batch queues again from the records before `until`.
pub(super) fn batches(
    files: &[MappedFile],
    derived: &Derived,
    until: i64,
) -> Result<(), StoreError> {
    let begin = files.first().map_or(0, MappedFile::base);
    records(files, begin, until, |_, record| {
        if record.sys_flag().contains(SysFlag::INNER_BATCH) {
            derived.put_queue(record)?;
        }
        Ok(true)
    })
}

/// Builds damaged queues again from the records before `until`. One of which the log has no record stays as it is. Gives
/// back the first record for which there was no room; the next start builds the queues again then.
pub(super) fn queues(
    files: &[MappedFile],
    derived: &Derived,
    until: i64,
) -> Result<Option<i64>, StoreError> {
    let all = derived.queues.all().into_iter();
    let damaged: HashMap<_, _> = all
        .filter(|queue| queue.damaged.load(Ordering::Acquire))
        .map(|queue| ((queue.topic().to_owned(), queue.id()), queue))
        .collect();
    if damaged.is_empty() {
        return Ok(None);
    }
    let begin = files.first().map_or(0, MappedFile::base);
    let mut logged = HashSet::new();
    records(files, begin, until, |_, record| {
        let keys = keys(derived, record).into_iter();
        logged.extend(keys.filter(|key| damaged.contains_key(key)));
        Ok(logged.len() < damaged.len())
    })?;
    for (key, queue) in &damaged {
        let rebuilt = logged.contains(key);
        warn!(
            topic = key.0,
            queue_id = key.1,
            rebuilt,
            "damaged consume queue"
        );
        if rebuilt {
            derived.queues.put_aside(queue)?;
        } else {
            queue.trim()?;
        }
    }
    let mut full = None;
    records(files, begin, until, |at, record| {
        if keys(derived, record).iter().any(|key| logged.contains(key)) {
            match derived.put_queue(record) {
                Err(StoreError::Full { .. }) => full = Some(at),
                put => put?,
            }
        }
        Ok(full.is_none())
    })?;
    if full.is_some() {
        return Ok(full);
    }
    match derived.queues.sync() {
        // The entries are in memory; the folders stay aside, in case they never reach the disk.
        Err(StoreError::Full { .. }) => return Ok(None),
        synced => synced?,
    }
    for (topic, id) in &logged {
        derived.queues.forget_aside(topic, *id)?;
    }
    Ok(None)
}
