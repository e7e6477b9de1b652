//! Which queues go to which member of a group.

use std::sync::Arc;

use bindery_client::{AllocateStrategy, Allocation, MessageQueue, RoomOf};
use serde_json::Value as Json;

use super::corpus::{Judged, Verdict, number, same, text};

const NO_LIST: &str =
    "by-config without a list is refused by the configuration's check, and a null pointer in Java";

pub(crate) fn judge(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    let topic = text(input, "topic")?;
    let queues = list(&input["queues"])
        .map(|queue| read_queue(topic, queue))
        .collect::<Result<Vec<_>, _>>()?;
    let members: Vec<String> = list(&input["clients"]).map(str::to_owned).collect();
    let Some(allocation) = allocation(topic, input)? else {
        return Ok(Verdict::Refused(NO_LIST));
    };
    for (member, expected) in out["allocated"].as_object().into_iter().flatten() {
        let ours = allocation.allocate(&queues, &members, member);
        let expected = expected.as_array().into_iter().flatten();
        let expected = expected
            .map(|index| match index.as_str() {
                // Not in the list: by its name.
                Some(queue) => read_queue(topic, queue),
                None => Ok(queues[number::<usize>(index)?].clone()),
            })
            .collect::<Result<Vec<_>, String>>()?;
        same(&format!("the share of {member}"), ours, expected)?;
    }
    Ok(Verdict::Passed)
}

/// The strategy of a case; nothing for a fixed list that is null.
fn allocation(topic: &str, input: &Json) -> Result<Option<Allocation>, String> {
    Ok(Some(match text(input, "strategy")? {
        "averagely" => AllocateStrategy::Averagely.into(),
        "averagely-by-circle" => AllocateStrategy::AveragelyByCircle.into(),
        "consistent-hash" => Allocation::ConsistentHash {
            places: number(&input["virtualNodes"])?,
        },
        "machine-room" => Allocation::MachineRoom {
            rooms: list(&input["consumerIdcs"]).map(str::to_owned).collect(),
        },
        "machine-room-nearby" => {
            let room: RoomOf = Arc::new(|name| Some(name.split('-').next()?.to_owned()));
            Allocation::MachineRoomNearby {
                inner: match text(input, "inner")? {
                    "averagely" => AllocateStrategy::Averagely,
                    "averagely-by-circle" => AllocateStrategy::AveragelyByCircle,
                    "consistent-hash" => AllocateStrategy::ConsistentHash,
                    other => return Err(format!("inner strategy {other}")),
                },
                broker: Arc::clone(&room),
                member: room,
            }
        }
        "by-config" if input["config"].is_null() => return Ok(None),
        "by-config" => {
            // The topic of a listed queue is not looked at, as in Java.
            let fixed = list(&input["config"]).map(|queue| {
                read_queue(
                    topic,
                    queue.rsplit_once('/').map_or(queue, |(_, queue)| queue),
                )
            });
            Allocation::Fixed(fixed.collect::<Result<_, _>>()?)
        }
        other => return Err(format!("strategy {other}")),
    }))
}

fn list(json: &Json) -> impl Iterator<Item = &str> {
    json.as_array()
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
}

fn read_queue(topic: &str, queue: &str) -> Result<MessageQueue, String> {
    let (broker, id) = queue.rsplit_once(':').ok_or("a queue without id")?;
    let id = id.parse().map_err(|_| format!("queue id {id}"))?;
    Ok(MessageQueue::new(topic, broker, id))
}
