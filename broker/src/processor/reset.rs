//! Moving a group's offsets: 222.
//!
//! ```text
//! 222 ─┬─ useServerSideResetOffset: committed and set aside for the next pull (21) ─▶ offsets by queue
//!      └─ otherwise: every consumer of the group is told (220) and goes on there   ─▶ offsets by queue
//! ```
use bindery_protocol::{
    bodies::{self, MessageQueue, QueueMap, QueueOffset, ResetOffsetBody, ResetOffsetList},
    codes::RequestCode,
    frame::{Frame, Language, Reply, Request},
    headers::ResetOffsetHeader,
};
use bindery_remoting::Connection;

use super::{Answer, progress::queues_of, stats::queue};
use crate::{client::Member, refusal::Refusal, state::Core, store::Boundary};

/// First client version that understands 220 (`V3_0_7_SNAPSHOT`).
const UNDERSTOOD_SINCE: i32 = 28;

/// 222: to a place of one queue, or to a time (−1 = the end) of one queue or all.
pub(super) fn reset(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ResetOffsetHeader<'_> = frame.header()?;
    let config = core.topics.known(&header.topic)?;
    if core.groups.known(&header.group).is_none() {
        return Err(Refusal::GroupUnknown {
            group: header.group.into_owned(),
        });
    }
    let all = queues_of(&config);
    let queues = match header.queue_id {
        -1 => all,
        queue_id if all.contains(&queue_id) => queue_id..queue_id + 1,
        queue_id => {
            return Err(Refusal::ResetOutside {
                topic: header.topic.into_owned(),
                queue_id,
                offset: header.offset.unwrap_or(-1),
            });
        }
    };
    let mut targets = Vec::with_capacity(queues.len());
    for queue_id in queues {
        targets.push((queue_id, target(core, &header, queue_id)?));
    }
    let offset_table = if core.live().use_server_side_reset_offset {
        set_aside(core, &header, targets)
    } else {
        tell(core, &header, targets, frame.head.language)?
    };
    Ok(Reply::ok().body(bodies::to_vec(&ResetOffsetBody { offset_table })?))
}

/// Keeps the targets until the next pull of each queue, which is answered with it; consumers need not be online.
fn set_aside(
    core: &Core,
    header: &ResetOffsetHeader<'_>,
    targets: Vec<(i32, i64)>,
) -> QueueMap<i64> {
    let (group, topic) = (&*header.group, &*header.topic);
    let set = |(queue_id, offset)| {
        core.offsets.reset(group, topic, queue_id, offset);
        core.holds.disturb(topic, queue_id);
        crate::pop::disturb_topic(core, topic);
        (queue(core, topic, queue_id), offset)
    };
    targets.into_iter().map(set).collect()
}

/// Tells every consumer of the group. Without force, a queue whose group is not yet as far as its target stays there.
fn tell(
    core: &Core,
    header: &ResetOffsetHeader<'_>,
    targets: Vec<(i32, i64)>,
    asker: Language,
) -> Result<QueueMap<i64>, Refusal> {
    let (group, topic) = (&*header.group, &*header.topic);
    let mut table = QueueMap::default();
    for (queue_id, target) in targets {
        let committed = core
            .offsets
            .committed(group, topic, queue_id)
            .ok_or_else(|| Refusal::NothingToReset {
                group: group.to_owned(),
            })?;
        let offset = if header.is_force || target < committed {
            target
        } else {
            committed
        };
        table.insert(queue(core, topic, queue_id), offset);
    }
    let consumers: Vec<Member> = core
        .clients
        .with_consumers(group, |found| found.members().cloned().collect())
        .unwrap_or_default();
    if consumers.is_empty() {
        return Err(Refusal::ConsumerOffline {
            group: group.to_owned(),
        });
    }
    // The C++ client asks for resets of its own kind, and reads a list.
    let body = if asker == Language::CPP {
        bodies::to_vec(&ResetOffsetList {
            offset_table: table
                .iter()
                .map(|(queue, offset)| listed(queue, *offset))
                .collect(),
        })?
    } else {
        bodies::to_vec(&ResetOffsetBody {
            offset_table: table.clone(),
        })?
    };
    for member in consumers {
        if member.version < UNDERSTOOD_SINCE {
            tracing::warn!(
                client = member.client_id,
                "consumer too old to be told of a reset"
            );
            continue;
        }
        let request = Request::new(RequestCode::RESET_CONSUMER_CLIENT_OFFSET)
            .with(header)
            .body(body.clone());
        if let Err(error) = member.connection.oneway(request) {
            tracing::warn!(client = member.client_id, %error, "consumer not told of a reset");
        }
    }
    Ok(table)
}

fn listed(queue: &MessageQueue, offset: i64) -> QueueOffset {
    QueueOffset {
        broker_name: queue.broker_name.clone(),
        offset,
        queue_id: queue.queue_id,
        topic: queue.topic.clone(),
    }
}

fn target(core: &Core, header: &ResetOffsetHeader<'_>, queue_id: i32) -> Result<i64, Refusal> {
    let topic: &str = &header.topic;
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
