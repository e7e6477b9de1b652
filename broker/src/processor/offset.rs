//! Offsets of groups (14, 15, 43, 45) and of queues (29 to 32).
use bindery_protocol::{
    bodies,
    frame::{Frame, Reply},
    headers::{
        MaxOffsetHeader, OffsetReply, QueryOffsetHeader, QueueHeader, SearchOffsetHeader,
        StoreTimeReply, UpdateOffsetHeader,
    },
    message::QueueOffset,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{refusal::Refusal, state::Core, store::Boundary};

fn answer(offset: i64) -> Reply {
    Reply::ok().with(&OffsetReply { offset })
}

/// 14: the committed offset of a group, or what a group without one begins with.
///
/// A queue whose first message still lies in memory counts as young: the answer is 0 then, whatever the client's own
/// start rule says, unless it asks with `setZeroIfNotFound=false`.
pub(super) fn query(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: QueryOffsetHeader<'_> = frame.header()?;
    let (topic, queue_id) = (&*header.topic, header.queue_id);
    if let Some(committed) = core
        .offsets
        .committed(&header.consumer_group, topic, queue_id)
    {
        return Ok(answer(committed));
    }
    if header.set_zero_if_not_found == Some(false) {
        return Err(Refusal::OffsetNotFoundNoZero);
    }
    if core.store.min_offset(topic, queue_id).0 <= 0
        && core.store.entry_in_memory(topic, queue_id, QueueOffset(0))
    {
        return Ok(answer(0));
    }
    Err(Refusal::OffsetNotFound)
}

/// 15: commits.
pub(super) fn update(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: UpdateOffsetHeader<'_> = frame.header()?;
    let (group, topic) = (&*header.consumer_group, &*header.topic);
    if core.groups.known(group).is_none() {
        return Err(Refusal::OffsetGroupUnknown {
            group: group.to_owned(),
        });
    }
    let config = core
        .topics
        .topic(topic)
        .ok_or_else(|| Refusal::OffsetTopicUnknown {
            topic: topic.to_owned(),
        })?;
    // Queues that are only written to now were readable before, perhaps.
    let queues = config.read_queue_nums.max(config.write_queue_nums);
    if !(0..queues).contains(&header.queue_id) || header.commit_offset < 0 {
        return Err(Refusal::CommitOutside {
            topic: topic.to_owned(),
            queue_id: header.queue_id,
            queues,
            offset: header.commit_offset,
        });
    }
    if core.offsets.reset_pending(group, topic, header.queue_id) {
        return Ok(Reply {
            remark: Some("Offset has been previously reset".into()),
            ..Reply::ok()
        });
    }
    core.offsets.commit(
        group,
        topic,
        header.queue_id,
        header.commit_offset,
        core.now(),
    );
    Ok(Reply::ok())
}

/// 30: the end of a queue; 0 for one that does not exist.
pub(super) fn max(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: MaxOffsetHeader<'_> = frame.header()?;
    Ok(answer(
        core.store.max_offset(&header.topic, header.queue_id).0,
    ))
}

/// 31: the start of a queue.
pub(super) fn min(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: QueueHeader<'_> = frame.header()?;
    Ok(answer(
        core.store.min_offset(&header.topic, header.queue_id).0,
    ))
}

/// 29: the offset that belongs to a store time.
pub(super) fn search(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: SearchOffsetHeader<'_> = frame.header()?;
    let boundary = match header.boundary_type.as_deref() {
        Some(text) if text.eq_ignore_ascii_case("UPPER") => Boundary::Upper,
        _ => Boundary::Lower,
    };
    Ok(answer(
        core.store
            .offset_by_time(&header.topic, header.queue_id, header.timestamp, boundary)
            .0,
    ))
}

/// 32: when the first message of a queue was stored; -1 when there is none.
pub(super) fn earliest(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: QueueHeader<'_> = frame.header()?;
    let timestamp = core.store.earliest_time(&header.topic, header.queue_id);
    Ok(Reply::ok().with(&StoreTimeReply { timestamp }))
}

/// 45: the next message of each delay level, for slaves.
pub(super) fn delays(core: &Core, _: &Connection, _: &Frame) -> Answer {
    Ok(Reply::ok().body(bodies::to_vec(&core.schedule.snapshot())?))
}

/// 43: all committed offsets, for slaves.
pub(super) fn all(core: &Core, _: &Connection, _: &Frame) -> Answer {
    Ok(Reply::ok().body(bodies::to_vec(&core.offsets.snapshot())?))
}
