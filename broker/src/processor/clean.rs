//! Cleaning on demand: 306, 316, 329.
use bindery_protocol::frame::{Frame, Reply};
use bindery_remoting::Connection;

use super::Answer;
use crate::state::Core;

/// 306: deletes consume queues whose last message is no longer in the commit log.
pub(super) fn drained_queues(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let removed = core
        .store
        .remove_drained_queues(|topic| core.topics.is_system(topic))?;
    tracing::info!(removed, "drained consume queues removed");
    Ok(Reply::ok())
}

/// 329: deletes commit-log files that have expired without waiting for the hour they are deleted at.
#[expect(clippy::unnecessary_wraps, reason = "the shape of all handlers")]
pub(super) fn expired_log(core: &Core, _: &Connection, _: &Frame) -> Answer {
    core.store.delete_expired_soon();
    core.cleaning.notify_one();
    Ok(Reply::ok())
}

/// 316: deletes the consume queues of topics that have no configuration: nobody can reach them.
pub(super) fn unused_topics(core: &Core, _: &Connection, _: &Frame) -> Answer {
    for topic in core.store.topics() {
        let deleted = core
            .topics
            .while_absent(&topic, || core.store.delete_topic(&topic));
        if let Some(deleted) = deleted {
            deleted?;
            tracing::info!(topic, "queues of a topic that is gone deleted");
        }
    }
    Ok(Reply::ok())
}
