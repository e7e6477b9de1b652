//! What the user gives to be called with messages, and what it may answer.
//!
//! ```text
//! batch + context ─▶ ConcurrentListener ─▶ Success · ReconsumeLater   (context: ack index, delay level)
//!                 ─▶ OrderlyListener ────▶ Success · Suspend · Commit · Rollback
//! ```
use std::{
    fmt,
    future::Future,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::MessageQueue;
use futures_util::future::BoxFuture;

use super::message::MessageExt;

/// The outcome of a batch of a concurrent consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConcurrentStatus {
    /// Done, up to [`ConcurrentContext::set_done`]; what lies behind is treated as failed.
    Success,
    /// Failed: every message of the batch is sent back and comes again later.
    ReconsumeLater,
}

/// The outcome of a batch of an orderly consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderlyStatus {
    /// Done. The position moves on, unless auto commit is off.
    Success,
    /// Failed: the queue waits (`None`: as long as the consumer's setting says) and the batch is tried again in place.
    Suspend(Option<Duration>),
    /// Commits all batches that succeeded since the last commit; the same as `Success` while auto commit is on.
    Commit,
    /// Takes all batches back that succeeded since the last commit; the same as `Success` while auto commit is on.
    Rollback,
}

/// Handles messages of a queue in parallel and in any order. A panic counts as [`ConcurrentStatus::ReconsumeLater`].
///
/// Every closure `Fn(Vec<MessageExt>) -> impl Future<Output = ConcurrentStatus>` is one.
pub trait ConcurrentListener: Send + Sync + 'static {
    /// Handles one batch; it has one message unless the consumer's batch size says otherwise.
    fn consume(
        &self,
        batch: Vec<MessageExt>,
        context: &ConcurrentContext,
    ) -> impl Future<Output = ConcurrentStatus> + Send;
}

impl<F, Fut> ConcurrentListener for F
where
    F: Fn(Vec<MessageExt>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ConcurrentStatus> + Send,
{
    fn consume(
        &self,
        batch: Vec<MessageExt>,
        _: &ConcurrentContext,
    ) -> impl Future<Output = ConcurrentStatus> + Send {
        self(batch)
    }
}

/// Handles the messages of each queue one after the other. A panic counts as [`OrderlyStatus::Suspend`].
///
/// Every closure `Fn(Vec<MessageExt>) -> impl Future<Output = OrderlyStatus>` is one.
pub trait OrderlyListener: Send + Sync + 'static {
    /// Handles one batch; it has one message unless the consumer's batch size says otherwise.
    fn consume(
        &self,
        batch: Vec<MessageExt>,
        context: &OrderlyContext,
    ) -> impl Future<Output = OrderlyStatus> + Send;
}

impl<F, Fut> OrderlyListener for F
where
    F: Fn(Vec<MessageExt>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = OrderlyStatus> + Send,
{
    fn consume(
        &self,
        batch: Vec<MessageExt>,
        _: &OrderlyContext,
    ) -> impl Future<Output = OrderlyStatus> + Send {
        self(batch)
    }
}

/// What a concurrent listener is told beside the messages, and may set.
#[derive(Debug)]
pub struct ConcurrentContext {
    queue: MessageQueue,
    ack_index: AtomicUsize,
    delay_level: AtomicI32,
}

impl ConcurrentContext {
    /// A context with nothing set.
    #[must_use]
    pub fn new(queue: MessageQueue) -> Self {
        Self {
            queue,
            ack_index: AtomicUsize::new(usize::MAX),
            delay_level: AtomicI32::new(0),
        }
    }

    /// The queue the batch is from; for a redelivered message a queue of the group's retry topic.
    #[must_use]
    pub fn queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// How many messages at the front of the batch count as done when the status is `Success`; all by default.
    pub fn set_done(&self, messages: usize) {
        self.ack_index.store(messages, Ordering::Relaxed);
    }

    /// Delay level of failed messages (`delayLevelWhenNextConsume`): 0, the default, lets the broker raise it with every failure
    /// (10 s, 30 s, 1 min, …), a positive level is used as it is, -1 sends the message to the dead letters at once.
    pub fn set_delay_level(&self, level: i32) {
        self.delay_level.store(level, Ordering::Relaxed);
    }

    /// See [`ConcurrentContext::set_done`].
    #[must_use]
    pub fn done(&self) -> usize {
        self.ack_index.load(Ordering::Relaxed)
    }

    /// See [`ConcurrentContext::set_delay_level`].
    #[must_use]
    pub fn delay_level(&self) -> i32 {
        self.delay_level.load(Ordering::Relaxed)
    }
}

/// What an orderly listener is told beside the messages, and may set.
#[derive(Debug)]
pub struct OrderlyContext {
    queue: MessageQueue,
    auto_commit: AtomicBool,
    rejected: Mutex<Vec<i64>>,
}

impl OrderlyContext {
    /// A context with auto commit on.
    #[must_use]
    pub fn new(queue: MessageQueue) -> Self {
        Self {
            queue,
            auto_commit: AtomicBool::new(true),
            rejected: Mutex::default(),
        }
    }

    /// The queue the batch is from.
    #[must_use]
    pub fn queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// Whether `Success` moves the position on; `true` by default. When off, only `Commit` does.
    pub fn set_auto_commit(&self, on: bool) {
        self.auto_commit.store(on, Ordering::Relaxed);
    }

    /// Makes a message of the batch a dead letter, its id and properties unchanged, once the batch is done; the queue goes on
    /// behind it. While that fails the batch is tried again.
    pub fn reject(&self, message: &MessageExt) {
        self.rejected().push(message.queue_offset());
    }

    pub(super) fn is_rejected(&self, message: &MessageExt) -> bool {
        self.rejected().contains(&message.queue_offset())
    }

    fn rejected(&self) -> MutexGuard<'_, Vec<i64>> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`OrderlyContext::set_auto_commit`].
    #[must_use]
    pub fn auto_commit(&self) -> bool {
        self.auto_commit.load(Ordering::Relaxed)
    }
}

/// A listener of either kind, ready to be given to a [`PushConsumer`](crate::PushConsumer).
pub struct Listener(pub(crate) ListenerKind);

pub(crate) enum ListenerKind {
    Concurrent(Box<dyn ErasedConcurrent>),
    Orderly(Box<dyn ErasedOrderly>),
}

impl Listener {
    /// Messages of a queue may run in parallel.
    #[must_use]
    pub fn concurrent(listener: impl ConcurrentListener) -> Self {
        Self(ListenerKind::Concurrent(Box::new(listener)))
    }

    /// Messages of a queue run one after the other, and over all members of the group one consumer at a time has a queue.
    #[must_use]
    pub fn orderly(listener: impl OrderlyListener) -> Self {
        Self(ListenerKind::Orderly(Box::new(listener)))
    }

    /// Whether it was made by [`Listener::orderly`].
    #[must_use]
    pub fn is_orderly(&self) -> bool {
        matches!(self.0, ListenerKind::Orderly(_))
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ListenerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Concurrent(_) => "concurrent listener",
            Self::Orderly(_) => "orderly listener",
        })
    }
}

/// [`ConcurrentListener`] behind a pointer.
pub(crate) trait ErasedConcurrent: Send + Sync {
    fn consume<'a>(
        &'a self,
        batch: Vec<MessageExt>,
        context: &'a ConcurrentContext,
    ) -> BoxFuture<'a, ConcurrentStatus>;
}

impl<L: ConcurrentListener> ErasedConcurrent for L {
    fn consume<'a>(
        &'a self,
        batch: Vec<MessageExt>,
        context: &'a ConcurrentContext,
    ) -> BoxFuture<'a, ConcurrentStatus> {
        Box::pin(ConcurrentListener::consume(self, batch, context))
    }
}

/// [`OrderlyListener`] behind a pointer.
pub(crate) trait ErasedOrderly: Send + Sync {
    fn consume<'a>(
        &'a self,
        batch: Vec<MessageExt>,
        context: &'a OrderlyContext,
    ) -> BoxFuture<'a, OrderlyStatus>;
}

impl<L: OrderlyListener> ErasedOrderly for L {
    fn consume<'a>(
        &'a self,
        batch: Vec<MessageExt>,
        context: &'a OrderlyContext,
    ) -> BoxFuture<'a, OrderlyStatus> {
        Box::pin(OrderlyListener::consume(self, batch, context))
    }
}
