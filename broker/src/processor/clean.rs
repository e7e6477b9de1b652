//! Cleaning on demand: 316.
use bindery_protocol::frame::{Frame, Reply};
use bindery_remoting::Connection;

use super::Answer;
use crate::state::Core;

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
