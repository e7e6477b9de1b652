//! Which queues go to which member of a group.

use bindery_client::{AllocateStrategy, MessageQueue};
use serde_json::Value as Json;

use super::corpus::{Judged, Verdict, number, same, text};

const PLACES: &str = "the hash ring has ten places a member, as Java's has by default";
const NOT_OFFERED: &str =
    "the strategy is not offered: queues of chosen machine rooms or of a fixed list";

pub(crate) fn judge(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    let strategy = match text(input, "strategy")? {
        "averagely" => AllocateStrategy::Averagely,
        "averagely-by-circle" => AllocateStrategy::AveragelyByCircle,
        "consistent-hash" if input["virtualNodes"] == 10 => AllocateStrategy::ConsistentHash,
        "consistent-hash" => return Ok(Verdict::Refused(PLACES)),
        _ => return Ok(Verdict::Refused(NOT_OFFERED)),
    };
    let topic = text(input, "topic")?;
    let queues = list(&input["queues"])
        .map(|queue| read_queue(topic, queue))
        .collect::<Result<Vec<_>, _>>()?;
    let members: Vec<String> = list(&input["clients"]).map(str::to_owned).collect();
    for member in &members {
        let ours = strategy.allocate(&queues, &members, member);
        let expected = out["allocated"][member].as_array().into_iter().flatten();
        let expected = expected
            .map(|index| Ok(queues[number::<usize>(index)?].clone()))
            .collect::<Result<Vec<_>, String>>()?;
        same(&format!("the share of {member}"), ours, expected)?;
    }
    Ok(Verdict::Passed)
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
