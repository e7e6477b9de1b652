//! Moving a group's offsets: 222.
use bindery_protocol::{
    bodies::{self, MessageQueue, QueueMap, ResetOffsetBody},
    frame::{Frame, Reply},
    headers::ResetOffsetHeader,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{refusal::Refusal, state::Core, store::Boundary};

/// 222: to a place of one queue, or to a time (−1 = the end) of one queue or all. The broker keeps the target until the
/// next pull of the queue, which is answered with it; consumers need not be online.
pub(super) fn reset(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ResetOffsetHeader<'_> = frame.header()?;
    let (group, topic) = (&*header.group, &*header.topic);
    let config = core.topics.known(topic)?;
    if core.groups.known(group).is_none() {
        return Err(Refusal::GroupUnknown {
            group: group.to_owned(),
        });
    }
    let queues = if header.queue_id >= 0 {
        header.queue_id..header.queue_id.saturating_add(1)
    } else {
        0..config.read_queue_nums
    };
    if queues.end > config.read_queue_nums {
        return Err(Refusal::ResetOutside {
            topic: topic.to_owned(),
            queue_id: header.queue_id,
            offset: header.offset.unwrap_or(-1),
        });
    }
    let mut targets = Vec::new();
    for queue_id in queues {
        targets.push((queue_id, target(core, &header, topic, queue_id)?));
    }
    let mut offset_table = QueueMap::default();
    for (queue_id, offset) in targets {
        core.offsets.reset(group, topic, queue_id, offset);
        core.holds.disturb(topic, queue_id);
        let queue = MessageQueue {
            broker_name: core.config.broker_name.clone(),
            queue_id,
            topic: topic.to_owned(),
        };
        offset_table.insert(queue, offset);
    }
    Ok(Reply::ok().body(bodies::to_vec(&ResetOffsetBody { offset_table })?))
}

fn target(
    core: &Core,
    header: &ResetOffsetHeader<'_>,
    topic: &str,
    queue_id: i32,
) -> Result<i64, Refusal> {
    let max = core.store.max_offset(topic, queue_id).0;
    match header.offset {
        Some(offset) if offset >= 0 && header.queue_id >= 0 => {
            if offset < core.store.min_offset(topic, queue_id).0 || offset > max + 1 {
                return Err(Refusal::ResetOutside {
                    topic: topic.to_owned(),
                    queue_id,
                    offset,
                });
            }
            Ok(offset)
        }
        _ if header.timestamp < 0 => Ok(max),
        _ => Ok(core
            .store
            .offset_by_time(topic, queue_id, header.timestamp, Boundary::Lower)
            .0),
    }
}
