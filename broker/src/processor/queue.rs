//! A look into a consume queue: 321.
use bindery_protocol::{
    bodies::{self, ConsumeQueueBody, ConsumeQueueEntry},
    frame::{Frame, Reply},
    headers::ConsumeQueueHeader,
    message::QueueOffset,
};
use bindery_remoting::Connection;

use super::{Answer, progress::queues_of};
use crate::{client::Subscribed, refusal::Refusal, state::Core, store::EntryFilter};

/// Most entries of one answer: a few hundred kilobytes.
const MOST: i32 = 4096;

/// 321: entries of a queue from an index on, and, for a group that is connected, whether its tags let them through.
///
/// `eval` stays false without a group, as in Apache's answer; with one, Apache's broker 5.3.3 leaves it false as well.
pub(super) fn entries(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ConsumeQueueHeader<'_> = frame.header()?;
    let topic: &str = header.topic.as_deref().unwrap_or_default();
    let queue_id = header.queue_id;
    let config = core.topics.topic(topic);
    if !config.is_some_and(|config| queues_of(&config).contains(&queue_id)) {
        return Err(Refusal::NoQueue {
            topic: topic.to_owned(),
            queue_id,
        });
    }
    let min = core.store.min_offset(topic, queue_id).0;
    let max = core.store.max_offset(topic, queue_id).0;
    if !(min..max).contains(&header.index) {
        // A success in Apache's broker: what is asked for is not there, but nothing went wrong.
        return Ok(Reply {
            remark: Some(
                format!("Index {} of {queue_id}@{topic} is not exist!", header.index).into(),
            ),
            ..Reply::ok()
        });
    }
    let mut body = ConsumeQueueBody {
        max_queue_index: max,
        min_queue_index: min,
        ..ConsumeQueueBody::default()
    };
    let mut filter = None;
    if let Some(group) = header
        .consumer_group
        .as_deref()
        .filter(|group| !group.is_empty())
    {
        match core.clients.subscription(group, topic) {
            Subscribed::To { subscription, .. } => {
                // The text `null`: what Java prints of expression data that a tag subscription does not have.
                body.filter_data = Some("null".to_owned());
                body.subscription_data = Some(subscription.data.clone());
                filter.clone_from(&subscription.filter);
            }
            _ => body.filter_data = Some(format!("{group}@{topic} is not online!")),
        }
    }
    let last = header
        .index
        .saturating_add(header.count.clamp(0, MOST).into())
        .min(max);
    body.queue_data = (header.index..last)
        .map_while(|index| core.store.entry(topic, queue_id, QueueOffset(index)))
        .map(|entry| ConsumeQueueEntry {
            eval: filter
                .as_ref()
                .is_some_and(|filter| filter.matches_tags(entry.tags_code)),
            physic_offset: entry.physical.0,
            physic_size: entry.size,
            tags_code: entry.tags_code,
            ..ConsumeQueueEntry::default()
        })
        .collect();
    Ok(Reply::ok().body(bodies::to_vec(&body)?))
}
