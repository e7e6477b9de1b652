//! What a broker must offer to carry bindings. Chosen by configuration; nothing above this trait knows which it is.
//!
//! ```text
//! Output<T> ─▶ ProducerBinding::send ─▶ broker ─▶ ConsumerBinding ─▶ Deliver::deliver ─▶ Settlement
//!                                                        ▲                                  │
//!                                                        └── ack · again later · suspend · dead letter
//! ```
//!
//! [`rocketmq`] speaks to the included broker and to Apache RocketMQ clusters; [`memory`] lives inside the process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::binding::{SendError, SendReceipt};
use crate::error::BoxError;
use crate::message::Message;
use crate::transaction::{LocalWork, TxReceipt};

pub(crate) mod levels;
pub mod memory;
pub mod rocketmq;
mod spec;

pub use spec::{
    Audience, ConsumerSpec, Order, Place, ProducerSpec, Redelivery, Resume, Selection, StartAt,
    TransactionSpec,
};

/// A kind of broker, connected.
#[async_trait]
pub trait Binder: Send + Sync + 'static {
    /// The name that configuration uses: `rocketmq`, `memory`.
    fn kind(&self) -> &'static str;

    /// What this binder can do. Asking for more is an error at start, never ignored.
    fn capabilities(&self) -> Capabilities;

    /// Creates the destinations that do not exist yet; existing ones are left as they are.
    ///
    /// # Errors
    /// [`BinderError`] when the broker refuses or cannot be reached.
    async fn declare(&self, destinations: &[Destination]) -> Result<(), BinderError>;

    /// Starts to consume; messages go to `sink` until the binding is stopped.
    ///
    /// # Errors
    /// [`BinderError`] when the consumer cannot start.
    async fn bind_consumer(
        &self,
        spec: ConsumerSpec,
        sink: Arc<dyn Deliver>,
    ) -> Result<Arc<dyn ConsumerBinding>, BinderError>;

    /// Opens a destination for sending.
    ///
    /// # Errors
    /// [`BinderError`] when the producer cannot start.
    async fn bind_producer(
        &self,
        spec: ProducerSpec,
    ) -> Result<Arc<dyn ProducerBinding>, BinderError>;

    /// Whether the broker answers.
    async fn health(&self) -> Health;

    /// Closes what all bindings share. Bindings are stopped before.
    ///
    /// # Errors
    /// [`BinderError`] when something could not be closed in order.
    async fn shutdown(&self) -> Result<(), BinderError>;
}

/// One input at the broker.
#[async_trait]
pub trait ConsumerBinding: Send + Sync + 'static {
    /// Takes no more messages; those that are being handled go on.
    async fn pause(&self);
    /// Takes messages again after [`pause`](Self::pause).
    async fn resume(&self);
    /// The queues that this process has now.
    async fn assignment(&self) -> Vec<AssignedQueue>;
    /// Takes no more messages, lets running handlers finish within the spec's grace, commits, and gives the queues to others.
    ///
    /// # Errors
    /// [`BinderError`] when positions could not be committed: some messages come again.
    async fn stop(&self) -> Result<(), BinderError>;
}

/// One output at the broker.
#[async_trait]
pub trait ProducerBinding: Send + Sync + 'static {
    /// Stores one message. Its payload is encoded; its headers carry tags, keys and delay.
    ///
    /// # Errors
    /// [`SendError`] when the message is not known to be stored.
    async fn send(&self, message: &Message, place: Place) -> Result<SendReceipt, SendError>;
    /// Stores one message where consumers don't get it, runs `work` once, and tells the broker how it ended. Called only
    /// where the spec has a transaction.
    ///
    /// # Errors
    /// [`SendError`] when the message is not known to be stored; `work` has not run then.
    async fn send_in_transaction(
        &self,
        message: &Message,
        work: LocalWork<'_>,
    ) -> Result<TxReceipt, SendError>;
    /// How many partitions the destination has: its writable queues.
    ///
    /// # Errors
    /// [`SendError`] when the destination is not known.
    async fn partitions(&self) -> Result<u32, SendError>;
    /// Sends what is under way and closes.
    ///
    /// # Errors
    /// [`BinderError`] when it could not be closed in order.
    async fn stop(&self) -> Result<(), BinderError>;
}

/// Where the binder hands over the messages of one input.
#[async_trait]
pub trait Deliver: Send + Sync + 'static {
    /// Handles one message, with the in-process attempts, and says what becomes of it. The binder has put the facts of
    /// the delivery into its headers ([`Message::received`]).
    async fn deliver(&self, message: Message) -> Settlement;
}

/// What becomes of a delivered message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settlement {
    /// Handled, or skipped on purpose: never again.
    Ack,
    /// Again later: by the binding's own rule, or after at least the given time. Ordered inputs hold their queue meanwhile.
    Retry(Option<Duration>),
    /// Never again: to the group's dead letters.
    Reject,
    /// Not handled because the application stops: back to the broker as if it had not been delivered.
    Return,
}

/// A destination to create if it is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Name.
    pub name: String,
    /// Queues it gets when it is created; `None`: the binder's default.
    pub queues: Option<u32>,
    /// Who may use it.
    pub access: Access,
    /// Whether the broker is told that it is for ordered messages.
    pub ordered: bool,
}

/// What a destination is open for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Sending and consuming.
    #[default]
    Both,
    /// Consuming only.
    Read,
    /// Sending only.
    Write,
}

/// A queue that this process consumes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AssignedQueue {
    /// Destination.
    pub destination: String,
    /// Broker that has it; empty where there are none.
    pub broker: String,
    /// Number of the queue at its broker.
    pub queue_id: i32,
}

/// What a binder can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(u16);

impl Capabilities {
    /// Messages of one key go to one partition.
    pub const PARTITIONS: Self = Self(1);
    /// Queues are handled in order.
    pub const ORDERED: Self = Self(1 << 1);
    /// Messages may be delivered later.
    pub const DELAY: Self = Self(1 << 2);
    /// Every member gets every message.
    pub const BROADCAST: Self = Self(1 << 3);
    /// Tags select messages at the broker.
    pub const TAGS: Self = Self(1 << 4);
    /// SQL92 conditions select messages at the broker.
    pub const SQL: Self = Self(1 << 5);
    /// Inputs can be paused.
    pub const PAUSE: Self = Self(1 << 6);
    /// A group may begin at a point in time.
    pub const START_BY_TIME: Self = Self(1 << 7);
    /// Messages may depend on a local transaction.
    pub const TRANSACTIONS: Self = Self(1 << 8);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is offered.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Whether a binder works.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// The broker answers.
    Up,
    /// It does not, and why.
    Down(String),
}

/// Why a binder did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BinderError {
    /// A binding needs what this binder has not.
    #[error("binding `{binding}`: the binder `{binder}` has no {what}")]
    Unsupported {
        /// Binding.
        binding: String,
        /// Binder.
        binder: &'static str,
        /// The missing capability.
        what: &'static str,
    },
    /// The broker refused, or was not reached.
    #[error("{action} `{subject}` failed")]
    Broker {
        /// What was tried: `creating topic`, `starting consumer group`.
        action: &'static str,
        /// With what.
        subject: String,
        /// Cause.
        #[source]
        source: BoxError,
    },
    /// The binder was shut down.
    #[error("the binder is closed")]
    Closed,
}

impl fmt::Debug for dyn Binder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binder")
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for dyn ConsumerBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerBinding").finish_non_exhaustive()
    }
}

impl fmt::Debug for dyn ProducerBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerBinding").finish_non_exhaustive()
    }
}

impl fmt::Debug for dyn Deliver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deliver").finish_non_exhaustive()
    }
}

/// Fails unless `binder` offers what the spec of an input needs.
///
/// # Errors
/// [`BinderError::Unsupported`], naming the first missing capability.
pub fn require(binder: &dyn Binder, spec: &ConsumerSpec) -> Result<(), BinderError> {
    let needs = [
        (
            spec.order == Order::PerQueue,
            Capabilities::ORDERED,
            "ordered consumption",
        ),
        (
            spec.audience == Audience::Everyone,
            Capabilities::BROADCAST,
            "broadcasting",
        ),
        (
            matches!(spec.selection, Selection::Tags(_)),
            Capabilities::TAGS,
            "selection by tags",
        ),
        (
            matches!(spec.selection, Selection::Sql(_)),
            Capabilities::SQL,
            "selection by SQL92",
        ),
        (
            matches!(spec.start, StartAt::Timestamp(_)),
            Capabilities::START_BY_TIME,
            "start by time",
        ),
    ];
    let missing = needs
        .into_iter()
        .find(|(needed, capability, _)| *needed && !binder.capabilities().has(*capability));
    match missing {
        None => Ok(()),
        Some((_, _, what)) => Err(BinderError::Unsupported {
            binding: spec.binding.clone(),
            binder: binder.kind(),
            what,
        }),
    }
}
