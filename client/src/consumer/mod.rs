//! Receiving: a push consumer shares the queues of its topics with the other members of its group, pulls from those it has,
//! calls the listener, and reports how far it came.
//!
//! ```text
//! rebalance ─▶ held queues ─▶ pull (long poll) ─▶ process queue ─▶ workers ─▶ listener
//!                  ▲                                   │                          │
//!      40 / 20 s ──┘                 lowest unfinished ▼                          ▼
//!                                    position ─▶ broker        failed ─▶ send back ─▶ %RETRY% ─▶ %DLQ%
//! ```
use std::{collections::BTreeMap, sync::Arc};

use tokio_util::sync::DropGuard;

use self::core::ConsumerCore;
use crate::{Client, ClientError, MessageQueue};

mod allocate;
mod builder;
mod concurrent;
pub(crate) mod core;
mod handover;
mod introspect;
mod listener;
mod message;
mod orderly;
mod positions;
mod process_queue;
mod pull;
mod queue_state;
mod rebalance;
mod send_back;
mod settings;
mod start;
mod subscription;
mod workers;

pub use allocate::{Allocation, RoomOf};
pub use bindery_protocol::allocate::AllocateStrategy;
pub use builder::PushConsumerBuilder;
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

/// A consumer that calls a listener. A handle: clones share everything; when the last one is dropped, the consumer stops in order by
/// itself, see [`PushConsumer::shutdown`].
///
/// ```no_run
/// # async fn example(client: &bindery_client::Client) -> Result<(), bindery_client::ClientError> {
/// use bindery_client::{ConcurrentStatus, FilterExpression, Listener, MessageExt, PushConsumer};
///
/// let consumer = PushConsumer::builder("billing")
///     .client(client)
///     .subscribe("orders", FilterExpression::tags("created || paid"))
///     .listener(Listener::concurrent(|batch: Vec<MessageExt>| async move {
///         println!("{}", batch.len());
///         ConcurrentStatus::Success
///     }))
///     .start()
///     .await?;
/// consumer.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PushConsumer {
    core: Arc<ConsumerCore>,
    client: Client,
    /// The client was made for this consumer alone.
    owns_client: bool,
    _stop_with_the_last: Arc<DropGuard>,
}

impl PushConsumer {
    /// Starts building a consumer of this group.
    #[must_use]
    pub fn builder(group: impl Into<String>) -> PushConsumerBuilder {
        PushConsumerBuilder::new(group.into())
    }

    /// Stops pulling and starting handlers; running ones end. Queues are kept, heartbeats go on.
    pub fn pause(&self) {
        self.core.pause(true);
    }

    /// Ends a pause.
    pub fn resume(&self) {
        self.core.pause(false);
        self.core.resume_workers();
        self.core.rebalance_soon();
    }

    /// Whether it is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.core.is_paused()
    }

    /// The queues it has now, in order.
    #[must_use]
    pub fn assignment(&self) -> Vec<MessageQueue> {
        let held = self.core.held();
        let ours = held
            .iter()
            .filter(|queue| queue.has_begun() && !queue.leave.is_cancelled());
        ours.map(|queue| queue.mq.clone()).collect()
    }

    /// How far it is in each of them.
    #[must_use]
    pub fn offsets(&self) -> Vec<QueuePosition> {
        self.core
            .held()
            .iter()
            .map(|queue| queue.position())
            .collect()
    }

    /// Moves the group to the first messages of a topic that were stored at or after `timestamp` (ms since 1970), back or forward,
    /// whatever it has consumed; answers the new positions. This member goes there at once, the others as soon as their brokers
    /// tell them. A broadcasting consumer moves alone. Handlers that run end first; what they handled may come again.
    ///
    /// # Errors
    /// The brokers' failures; some queues may have been moved already.
    pub async fn seek_to_time(
        &self,
        topic: &str,
        timestamp: i64,
    ) -> Result<BTreeMap<MessageQueue, i64>, ClientError> {
        self.core.seek_to_time(&self.client, topic, timestamp).await
    }

    /// Moves one of its queues (see [`PushConsumer::assignment`]) to this offset, after the handlers that run there. The new position
    /// is saved at once.
    ///
    /// # Errors
    /// [`ClientError::NotAssigned`] for a queue it does not have, [`ClientError::OffsetOutside`], and the broker's failures.
    pub async fn seek(&self, queue: &MessageQueue, offset: i64) -> Result<(), ClientError> {
        self.core.seek(queue, offset).await
    }

    /// Its group.
    #[must_use]
    pub fn group(&self) -> &str {
        self.core.plain_group()
    }

    /// The client it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Stops in order: no new pulls, running handlers end (for at most the grace), positions are saved, queues unlocked, the group
    /// left, so that other members take over at once. A second call waits for the first. A client that was made for this consumer
    /// alone is shut down too.
    pub async fn shutdown(&self) {
        self.core.shutdown().await;
        if self.owns_client {
            self.client.shutdown().await;
        }
    }
}
