//! Copying a group's offsets to another group: 314.
use bindery_protocol::{
    frame::{Frame, Reply},
    headers::CloneOffsetHeader,
    names,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{client::Subscribed, state::Core};

/// 314: of one topic, or of all the source has offsets for. Without `offline`, topics that a connected source does not
/// subscribe to are left out. The source's own retry topic is of no use to another group.
pub(super) fn offsets(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: CloneOffsetHeader<'_> = frame.header()?;
    let (from, to) = (&*header.src_group, &*header.dest_group);
    core.groups.required(to)?;
    let topics = match header.topic.as_deref() {
        Some(topic) if !topic.is_empty() => vec![topic.to_owned()],
        _ => core.offsets.topics_of(from),
    };
    for topic in topics {
        let left = !header.offline
            && matches!(
                core.clients.subscription(from, &topic),
                Subscribed::NotToTopic
            );
        if left || topic == names::retry_topic(from) || core.topics.topic(&topic).is_none() {
            continue;
        }
        for (queue_id, offset) in core.offsets.of_topic(from, &topic) {
            core.offsets
                .commit(to, &topic, queue_id, offset, core.now());
        }
        tracing::info!(topic, from, to, "consumer offsets copied");
    }
    Ok(Reply::ok())
}
