//! Where consumption of a queue begins.
//!
//! ```text
//! stored position ─ there ─┬───────────────────────────▶ it
//!        │                 └─ to be reset ──┐
//!        └─ none ─┬─ retry topic, or FIRST ────────────▶ oldest message
//!                 ├─ TIMESTAMP ────────────────────────▶ first message stored then or later
//!                 └─ LAST ─┬─ queue appeared after our start ─▶ oldest message: all of it was sent since
//!                          └──────────────────────────────────▶ end
//! ```
//! The start of a consumer waits until this is decided for the queues that are its alone: what is sent after it is then received.
//!
//! A position found by rule is saved before the first pull: if this member dies before it saves another one, its heir must not apply
//! the rule again, later, and skip what came in between.
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Mutex,
    time::Duration,
};

use futures_util::future::join_all;

use super::{ConsumeFrom, core::ConsumerCore, process_queue::ProcessQueue};
use crate::{ClientError, MessageQueue, instance::TopicRoute, sync::lock};

/// How long a start waits for positions at most. Real time, like every wait for an answer.
const FIRST_POSITIONS: Duration = Duration::from_secs(3);

/// The queues that were there when this consumer first learned about a topic.
#[derive(Debug, Default)]
pub(super) struct Known {
    topics: Mutex<HashMap<String, HashSet<MessageQueue>>>,
}

impl Known {
    /// What the first answer of a name server about a topic said; nothing for a topic that did not exist.
    pub(super) fn first_look(&self, topic: &str, route: Option<&TopicRoute>) {
        let mut topics = lock(&self.topics);
        if !topics.contains_key(topic) {
            let queues = route
                .map(|route| route.subscribe.iter().cloned().collect())
                .unwrap_or_default();
            topics.insert(topic.to_owned(), queues);
        }
    }

    fn is_new(&self, queue: &MessageQueue) -> bool {
        lock(&self.topics)
            .get(&queue.topic)
            .is_some_and(|queues| !queues.contains(queue))
    }
}

/// The queues that a consumer with `reset_on_start` got at its start and has not begun yet.
#[derive(Debug, Default)]
pub(super) struct Resets {
    seen: Mutex<HashSet<String>>,
    pending: Mutex<HashSet<MessageQueue>>,
}

impl Resets {
    /// The queues of a topic were given out; only the first time counts.
    fn assigned(&self, topic: &str, mine: &BTreeSet<MessageQueue>) {
        if lock(&self.seen).insert(topic.to_owned()) {
            lock(&self.pending).extend(mine.iter().cloned());
        }
    }

    fn is_pending(&self, queue: &MessageQueue) -> bool {
        lock(&self.pending).contains(queue)
    }

    fn done(&self, queue: &MessageQueue) {
        lock(&self.pending).remove(queue);
    }
}

impl ConsumerCore {
    /// Takes note of the queues to be reset. Where the group has other members they are going on from these very positions.
    pub(super) fn note_resets(&self, topic: &str, mine: &BTreeSet<MessageQueue>, contested: bool) {
        if !self.settings.reset_on_start || topic == self.retry_topic {
            return;
        }
        if contested {
            if lock(&self.resets.seen).insert(topic.to_owned()) {
                tracing::warn!(
                    group = self.group(),
                    topic,
                    "positions not reset: the group has other members"
                );
            }
        } else {
            self.resets.assigned(topic, mine);
        }
    }

    /// Waits for the first pass, and until the queues it brought have their start positions decided and saved. Not for those that
    /// another member may still have, nor for brokers that are away, nor for ever: a start does not fail because of this.
    pub(super) async fn first_positions(&self) {
        let waited = tokio::time::timeout(FIRST_POSITIONS, async {
            if self
                .subscriptions
                .iter()
                .any(|wanted| self.is_reachable(&wanted.topic))
            {
                self.first_pass.cancelled().await;
                let held = self.held();
                let ours = held
                    .iter()
                    .filter(|queue| !queue.contested && self.is_at_hand(&queue.mq.broker_name));
                join_all(ours.map(|queue| queue.is_settled())).await;
            }
        });
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            waited = waited => if waited.is_err() {
                tracing::warn!(group = self.group(), "started before all start positions are decided");
            }
        }
    }

    fn is_reachable(&self, topic: &str) -> bool {
        let route = self.client.routes.existing(topic);
        route.is_some_and(|route| route.brokers.iter().any(|broker| self.is_at_hand(broker)))
    }

    /// Whether there is a connection to a master: the heartbeat before made one if that was possible.
    fn is_at_hand(&self, broker: &str) -> bool {
        let addr = self.client.routes.master(broker);
        addr.is_ok_and(|addr| self.client.is_connected(&addr))
    }

    /// Finds the position of a queue and begins there. `at_least` is where this member itself was before it lost the queue's lock.
    pub(super) async fn begin(
        &self,
        queue: &ProcessQueue,
        at_least: Option<i64>,
    ) -> Result<(), ClientError> {
        if self.resets.is_pending(&queue.mq) {
            let (offset, rule) = self.offset_by_rule(&queue.mq).await?;
            queue.begin(offset, None);
            self.resets.done(&queue.mq);
            tracing::info!(queue = %queue.mq, group = self.group(), offset, why = "reset", rule, "consumption begins");
            return Ok(());
        }
        if let Some(stored) = self.stored_position(&queue.mq).await? {
            let offset = at_least.map_or(stored, |own| own.max(stored));
            queue.begin(offset, Some(stored));
            tracing::info!(queue = %queue.mq, group = self.group(), offset, why = "stored", "consumption begins");
            return Ok(());
        }
        let (offset, why) = match at_least {
            Some(own) => (own, "where it was"),
            None => self.offset_by_rule(&queue.mq).await?,
        };
        queue.begin(offset, None);
        tracing::info!(queue = %queue.mq, group = self.group(), offset, why, "consumption begins");
        Ok(())
    }

    async fn offset_by_rule(
        &self,
        queue: &MessageQueue,
    ) -> Result<(i64, &'static str), ClientError> {
        let addr = self.client.routes.master(&queue.broker_name)?;
        if queue.topic == self.retry_topic {
            return Ok((self.client.min_offset(&addr, queue).await?, "retry topic"));
        }
        match self.settings.from {
            ConsumeFrom::First => Ok((self.client.min_offset(&addr, queue).await?, "first")),
            ConsumeFrom::Timestamp(at) => Ok((
                self.client.search_offset(&addr, queue, at).await?,
                "timestamp",
            )),
            ConsumeFrom::Last if self.known.is_new(queue) => {
                Ok((self.client.min_offset(&addr, queue).await?, "new queue"))
            }
            ConsumeFrom::Last => Ok((self.client.max_offset(&addr, queue).await?, "last")),
        }
    }
}
