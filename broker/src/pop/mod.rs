//! POP consumption: the broker hands messages out, hides them for a while, and gives them again unless they are acknowledged.
//! Clients keep no offsets and own no queues.
//!
//! ```text
//! pop ─▶ take ─▶ checkpoint ─▶ log, or buffer (in memory) ─┐
//! ack ─────────────────────────────────────────────────────┼─▶ revive topic ─▶ revive ─▶ %RETRY%group_topic ─▶ next pop
//! change of the invisible time = checkpoint + ack ─────────┘
//! nothing there ─▶ hold ─▶ arrival, time over ─▶ take again
//! ordered pop ─▶ order (consumerOrderInfo.json) instead of checkpoints
//! ```
//! Records, keys and files are those of Apache `RocketMQ` 5.3.3, so that a store with open hand-outs can change brokers.
mod ahead;
mod book;
pub(crate) mod buffer;
pub(crate) mod hold;
pub(crate) mod log;
mod mode;
pub(crate) mod order;
mod queue;
mod recover;
pub(crate) mod revive;
pub(crate) mod take;

use std::{
    path::Path,
    sync::{
        Arc, RwLock,
        atomic::{AtomicU32, Ordering},
    },
};

use bindery_protocol::{message::QueueOffset, names, pop::REVIVE_TOPIC_PREFIX};

pub(crate) use self::recover::recover;
use self::{
    buffer::Buffer,
    hold::{Holds, Limits},
    mode::RequestModes,
    order::Orders,
    queue::Queues,
    revive::Revive,
};
use crate::{
    config::BrokerConfig,
    processor::{notification::HeldNotification, pop::HeldPop},
    state::Core,
    table::TableError,
};

/// What a broker knows of popped messages.
pub(crate) struct Pop {
    pub(crate) queues: Queues,
    pub(crate) buffer: Buffer,
    pub(crate) orders: Orders,
    pub(crate) modes: RequestModes,
    pub(crate) door: Arc<Door>,
    /// Where hand-outs and acks are noted.
    pub(crate) revive_topic: String,
    /// Held for reading from a hand-out's note to its commit.
    pub(crate) noting: RwLock<()>,
    turn: AtomicU32,
}

/// Everything of popping that is told of arrivals.
pub(crate) struct Door {
    pub(crate) pops: Arc<Holds<HeldPop>>,
    pub(crate) notifications: Arc<Holds<HeldNotification>>,
    pub(crate) revive: Arc<Revive>,
}

impl Door {
    /// With the limits of the configuration.
    pub(crate) fn new(config: &BrokerConfig) -> Self {
        let limits = Limits {
            all: config.max_pop_polling_size,
            one_key: config.pop_polling_size,
            keys: config.pop_polling_map_size,
        };
        let forced = i64::try_from(config.pop_long_polling_force_notify_interval).unwrap_or(0);
        Self {
            pops: Arc::new(Holds::new(limits, forced)),
            notifications: Arc::new(Holds::new(limits, forced)),
            revive: Arc::new(Revive::new(revive_topic(config), config.revive_queue_num)),
        }
    }

    /// A message is readable: `after` is the queue offset behind it.
    pub(crate) fn arrived(
        &self,
        topic: &str,
        queue_id: i32,
        after: QueueOffset,
        tags_code: i64,
        properties: &[u8],
    ) {
        self.pops
            .arrived(topic, queue_id, after.0, tags_code, properties);
        self.notifications
            .arrived(topic, queue_id, after.0, tags_code, properties);
        self.revive.arrived(topic, queue_id);
    }
}

impl Pop {
    /// Reads the files of `dir`.
    pub(crate) fn open(
        dir: &Path,
        config: &BrokerConfig,
        door: Arc<Door>,
    ) -> Result<Self, TableError> {
        Ok(Self {
            queues: Queues::default(),
            buffer: Buffer::default(),
            orders: Orders::open(dir)?,
            modes: RequestModes::open(dir)?,
            door,
            revive_topic: revive_topic(config),
            noting: RwLock::new(()),
            turn: AtomicU32::new(0),
        })
    }

    /// The revive queues take turns.
    pub(crate) fn next_revive_queue(&self, queues: i32) -> i32 {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let queues = u32::try_from(queues).unwrap_or(1).max(1);
        i32::try_from(turn % queues).unwrap_or(0)
    }
}

fn revive_topic(config: &BrokerConfig) -> String {
    format!("{REVIVE_TOPIC_PREFIX}{}", config.broker_cluster_name)
}

/// The retry topics that pops of a topic read.
pub(crate) fn retry_topics(core: &Core, group: &str, topic: &str) -> Vec<String> {
    let v1 = names::pop_retry_topic_v1(group, topic);
    if !core.config.enable_retry_topic_v2 {
        return vec![v1];
    }
    let mut topics = vec![names::pop_retry_topic_v2(group, topic)];
    if core.config.retrieve_message_from_pop_retry_topic_v1 {
        topics.push(v1);
    }
    topics
}

/// The retry topics through which messages of a topic came back to any group, in both namings.
pub(crate) fn retry_topics_of(core: &Core, topic: &str) -> Vec<String> {
    let groups = core.offsets.groups_of(topic).into_iter();
    groups
        .flat_map(|group| {
            [
                names::pop_retry_topic_v1(&group, topic),
                names::pop_retry_topic_v2(&group, topic),
            ]
        })
        .filter(|retry| core.topics.topic(retry).is_some())
        .collect()
}

/// The topic that messages of `topic` came from, if that is a retry topic of `group`.
fn origin<'a>(topic: &'a str, group: &str) -> &'a str {
    topic
        .strip_prefix(names::RETRY_PREFIX)
        .and_then(|rest| rest.strip_prefix(group))
        .and_then(|rest| rest.strip_prefix(['_', '+']))
        .unwrap_or(topic)
}

/// One message less is out: it is done, or came back.
pub(crate) fn back(core: &Core, topic: &str, group: &str, queue_id: i32) {
    if core.config.enable_pop_message_threshold {
        core.pop.queues.with(topic, group, queue_id, |queue| {
            queue.in_flight = queue.in_flight.saturating_sub(1);
        });
    }
}

/// Where the next pop of a queue begins; a group that never was here begins at the oldest message.
pub(crate) fn position(core: &Core, topic: &str, group: &str, queue_id: i32) -> i64 {
    let committed = core
        .offsets
        .committed(group, topic, queue_id)
        .unwrap_or_else(|| core.store.min_offset(topic, queue_id).0);
    let ahead = core.pop.queues.ahead(topic, group, queue_id);
    ahead.map_or(committed, |ahead| ahead.max(committed))
}

/// Drops the waiting pops and notifications of a connection that ended.
pub(crate) fn forget_connection(core: &Core, connection: bindery_remoting::ConnectionId) {
    core.pop.door.pops.forget(connection);
    core.pop.door.notifications.forget(connection);
}

/// A topic changed, or is gone: all that wait for it look again.
pub(crate) fn disturb_topic(core: &Core, topic: &str) {
    core.pop.door.pops.disturb_topic(topic);
    core.pop.door.notifications.disturb_topic(topic);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_retry_topic_came_from_the_topic_it_names() {
        assert_eq!(origin("T", "g"), "T");
        assert_eq!(origin("%RETRY%g_T_1", "g"), "T_1");
        assert_eq!(origin("%RETRY%g+T", "g"), "T");
        assert_eq!(origin("%RETRY%g", "g"), "%RETRY%g");
    }
}
