//! Receiving: a push consumer shares the queues of its topics with the other members of its group, pulls from those it has,
//! calls the listener, and reports how far it came.
//!
//! ```text
//! rebalance ─▶ held queues ─▶ pull (long poll) ─▶ process queue ─▶ workers ─▶ listener
//!                  ▲                                   │                          │
//!      40 / 20 s ──┘                 lowest unfinished ▼                          ▼
//!                                    position ─▶ broker        failed ─▶ send back ─▶ %RETRY% ─▶ %DLQ%
//! ```
use std::time::Duration;

use crate::MessageQueue;

use crate::{Client, ClientConfig, ClientError};

mod listener;
mod message;
mod subscription;

pub use listener::{
    ConcurrentContext, ConcurrentListener, ConcurrentStatus, Listener, OrderlyContext,
    OrderlyListener, OrderlyStatus,
};
pub use message::{MessageExt, Origin};
pub use subscription::FilterExpression;

/// Where a group begins in a queue for which the broker has no position of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConsumeFrom {
    /// With messages sent from now on (the default).
    #[default]
    Last,
    /// With the oldest message there is.
    First,
    /// With the first message stored at or after this time, ms since 1970.
    Timestamp(i64),
}

/// Who of a group gets a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageModel {
    /// One member (the default).
    #[default]
    Clustering,
    /// Every member. Positions are kept in local files, failed messages are dropped.
    Broadcasting,
}

/// How the queues of a topic are distributed over the members of a group. All members must use the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllocateStrategy {
    /// Neighbouring queues to each member (`AVG`, the default).
    #[default]
    Averagely,
    /// Every n-th queue to each of n members (`AVG_BY_CIRCLE`).
    AveragelyByCircle,
    /// By a hash ring with ten places a member (`CONSISTENT_HASH`): few queues move when members come and go.
    ConsistentHash,
}

/// How far a consumer is in one of its queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePosition {
    /// The queue.
    pub queue: MessageQueue,
    /// Everything below was handled; what the broker is told. `None` before the start position is known.
    pub committed: Option<i64>,
    /// Next offset to pull.
    pub next_pull: i64,
    /// Next offset the broker will give to a new message, as of the last pull; `None` before the first.
    pub max_offset: Option<i64>,
    /// Messages pulled and not yet handled.
    pub unfinished: usize,
}

/// A consumer that calls a listener. A handle: clones share everything.
#[derive(Debug, Clone)]
pub struct PushConsumer {}

/// Settings of a [`PushConsumer`], with Java's defaults.
#[derive(Debug)]
pub struct PushConsumerBuilder {}

impl PushConsumer {
    /// Starts building a consumer of this group.
    #[must_use]
    pub fn builder(group: impl Into<String>) -> PushConsumerBuilder {
        todo!()
    }
    /// Stops pulling and starting handlers; running ones end. Queues are kept.
    pub fn pause(&self) {
        todo!()
    }
    /// Ends a pause.
    pub fn resume(&self) {
        todo!()
    }
    /// Whether it is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        todo!()
    }
    /// The queues it has now, in order.
    #[must_use]
    pub fn assignment(&self) -> Vec<MessageQueue> {
        todo!()
    }
    /// How far it is in each of them.
    #[must_use]
    pub fn offsets(&self) -> Vec<QueuePosition> {
        todo!()
    }
    /// Its group.
    #[must_use]
    pub fn group(&self) -> &str {
        todo!()
    }
    /// The client it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        todo!()
    }
    /// Stops in order: no new pulls, running handlers end (for at most the grace), positions are saved, queues unlocked, the group
    /// left, so that other members take over at once. A second call waits for the first. A client that was made for this consumer
    /// alone is shut down too.
    pub async fn shutdown(&self) {
        todo!()
    }
}

impl PushConsumerBuilder {
    /// Uses the connections, routes and heartbeats of this client.
    #[must_use]
    pub fn client(self, client: &Client) -> Self {
        todo!()
    }
    /// Makes a client of its own from this configuration.
    #[must_use]
    pub fn config(self, config: ClientConfig) -> Self {
        todo!()
    }
    /// Makes a client of its own with these name servers (`;`-separated) and defaults else.
    #[must_use]
    pub fn name_servers(self, list: &str) -> Self {
        todo!()
    }
    /// Adds a topic. All members of a group must subscribe to the same topics with the same expressions.
    #[must_use]
    pub fn subscribe(self, topic: impl Into<String>, filter: FilterExpression) -> Self {
        todo!()
    }
    /// Where to begin without a stored position; [`ConsumeFrom::Last`].
    #[must_use]
    pub fn consume_from(self, from: ConsumeFrom) -> Self {
        todo!()
    }
    /// Takes the broker's word for the start of a new group, as the Java client does: on a young topic `Last` and `Timestamp` then
    /// begin with the oldest message. Off.
    #[must_use]
    pub fn start_like_java(self, on: bool) -> Self {
        todo!()
    }
    /// Who of the group gets a message; [`MessageModel::Clustering`].
    #[must_use]
    pub fn message_model(self, model: MessageModel) -> Self {
        todo!()
    }
    /// How queues are distributed; [`AllocateStrategy::Averagely`].
    #[must_use]
    pub fn allocate(self, strategy: AllocateStrategy) -> Self {
        todo!()
    }
    /// Handlers that may run at a time; 20.
    #[must_use]
    pub fn concurrency(self, handlers: usize) -> Self {
        todo!()
    }
    /// Messages a handler is given at most; 1.
    #[must_use]
    pub fn batch_size(self, messages: usize) -> Self {
        todo!()
    }
    /// Messages asked for in one pull; 32 (the broker has limits of its own).
    #[must_use]
    pub fn pull_batch_size(self, messages: i32) -> Self {
        todo!()
    }
    /// Pause between two pulls of a queue; none.
    #[must_use]
    pub fn pull_interval(self, pause: Duration) -> Self {
        todo!()
    }
    /// Unhandled messages of a queue at which pulling waits; 1000.
    #[must_use]
    pub fn max_cached_messages(self, messages: usize) -> Self {
        todo!()
    }
    /// Bytes of unhandled messages of a queue at which pulling waits; 100 MiB.
    #[must_use]
    pub fn max_cached_bytes(self, bytes: usize) -> Self {
        todo!()
    }
    /// Distance from the lowest unhandled to the newest pulled message of a queue at which pulling waits (not for orderly); 2000.
    #[must_use]
    pub fn max_span(self, offsets: i64) -> Self {
        todo!()
    }
    /// Failures after which a message becomes a dead letter; `None` (the default) is 16, for orderly without end.
    #[must_use]
    pub fn max_reconsume_times(self, times: Option<i32>) -> Self {
        todo!()
    }
    /// Delay level of failed messages where the context does not say otherwise; 0, see [`ConcurrentContext::set_delay_level`].
    #[must_use]
    pub fn delay_level_when_next_consume(self, level: i32) -> Self {
        todo!()
    }
    /// How long an orderly queue waits after a failure; 1 s, kept within 10 ms and 30 s.
    #[must_use]
    pub fn suspend_current_queue(self, pause: Duration) -> Self {
        todo!()
    }
    /// How long a handler may run before its messages are sent back; 15 min. Not for orderly.
    #[must_use]
    pub fn consume_timeout(self, limit: Duration) -> Self {
        todo!()
    }
    /// How long a shutdown, or a queue that goes to another member, waits for running handlers; 30 s.
    #[must_use]
    pub fn shutdown_grace(self, limit: Duration) -> Self {
        todo!()
    }
    /// What to call.
    #[must_use]
    pub fn listener(self, listener: Listener) -> Self {
        todo!()
    }
    /// Starts consuming. A topic that does not exist yet is taken up when it appears.
    ///
    /// # Errors
    /// Bad settings, an already used group, no name server address, a filter expression that the broker refuses.
    pub async fn start(self) -> Result<PushConsumer, ClientError> {
        todo!()
    }
}
