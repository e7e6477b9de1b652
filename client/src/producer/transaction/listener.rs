//! What the user says about a transaction: once when the half message is stored, and again whenever a broker asks.
//!
//! ```text
//! half message stored ─▶ execute_local ─┐
//!                                       ├─▶ LocalState ─▶ END_TRANSACTION
//! broker has no verdict ─▶ check_local ─┘      an error or a panic is Unknown: the broker asks (again) later
//! ```
use std::{any::Any, fmt, future::Future, panic::AssertUnwindSafe, sync::Arc};

use bindery_protocol::message::Transaction;
use futures_util::future::{BoxFuture, FutureExt};

use crate::{Message, MessageExt, SendResult, SendStatus};

/// Any error, for what a listener's own work can fail with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The outcome of a local transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LocalState {
    /// Consumers get the message.
    Commit,
    /// Nobody gets the message.
    Rollback,
    /// Not known yet (the default): the broker asks by [`TransactionListener::check_local`], first after some seconds, then again and
    /// again, and gives the message up after 15 times (the broker's `transactionTimeOut`, `transactionCheckInterval`,
    /// `transactionCheckMax`).
    #[default]
    Unknown,
}

impl LocalState {
    /// `commitOrRollback` of the wire.
    pub(super) fn wire(self) -> i32 {
        let state = match self {
            Self::Commit => Transaction::Commit,
            Self::Rollback => Transaction::Rollback,
            Self::Unknown => Transaction::None,
        };
        bindery_protocol::message::SysFlag::default()
            .with_transaction(state)
            .0
    }
}

/// What the sender hands to its own listener beside the message. It stays in this process and never travels; a broker's question comes
/// without it. A handle: clones share the value.
#[derive(Clone, Default)]
pub struct TransactionArgs(Option<Arc<dyn Any + Send + Sync>>);

impl TransactionArgs {
    /// Nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Any value.
    ///
    /// ```
    /// use bindery_client::TransactionArgs;
    ///
    /// let args = TransactionArgs::new("binder".to_owned());
    /// assert_eq!(args.downcast_ref::<String>().map(String::as_str), Some("binder"));
    /// assert!(args.downcast_ref::<u8>().is_none());
    /// ```
    #[must_use]
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self(Some(Arc::new(value)))
    }

    /// The value, if there is one of this type.
    #[must_use]
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.0.as_deref().and_then(|value| value.downcast_ref())
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for TransactionArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "TransactionArgs(..)"
        } else {
            "TransactionArgs(none)"
        })
    }
}

/// A half message that a broker has stored and nobody gets yet. A handle: clones share the contents.
#[derive(Debug, Clone)]
pub struct HalfMessage {
    data: Arc<Stored>,
}

#[derive(Debug)]
struct Stored {
    message: Message,
    sent: SendResult,
}

impl HalfMessage {
    pub(super) fn new(message: Message, sent: SendResult) -> Self {
        Self {
            data: Arc::new(Stored { message, sent }),
        }
    }

    /// The message with the properties that sending gave it: `UNIQ_KEY`, `TRAN_MSG`, `PGROUP` and `__transactionId__`.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.data.message
    }

    /// What to file the outcome under: the message's `UNIQ_KEY`. A broker's question has the same, see
    /// [`MessageExt::transaction_id`].
    #[must_use]
    pub fn transaction_id(&self) -> &str {
        &self.data.sent.msg_id
    }

    /// What the broker said. Queue offset and broker's id are those of the half message.
    #[must_use]
    pub fn sent(&self) -> &SendResult {
        &self.data.sent
    }
}

/// Runs local transactions and remembers how they ended.
///
/// An error or a panic of either function counts as [`LocalState::Unknown`], never as a rollback.
///
/// ```
/// use bindery_client::{BoxError, HalfMessage, LocalState, MessageExt, TransactionArgs, TransactionListener};
///
/// # #[derive(Clone)] struct Orders;
/// # impl Orders {
/// #     async fn book(&self, id: &str, body: &[u8]) -> Result<(), BoxError> { Ok(()) }
/// #     async fn is_booked(&self, id: &str) -> Result<bool, BoxError> { Ok(true) }
/// # }
/// impl TransactionListener for Orders {
///     async fn execute_local(&self, half: &HalfMessage, _: &TransactionArgs) -> Result<LocalState, BoxError> {
///         // The order and its transaction id in one database transaction.
///         self.book(half.transaction_id(), half.message().body()).await?;
///         Ok(LocalState::Commit)
///     }
///
///     async fn check_local(&self, message: &MessageExt) -> Result<LocalState, BoxError> {
///         let booked = self.is_booked(message.transaction_id().unwrap_or_default()).await?;
///         Ok(if booked { LocalState::Commit } else { LocalState::Unknown })
///     }
/// }
/// ```
pub trait TransactionListener: Send + Sync + 'static {
    /// Runs the local transaction of a half message that was just stored.
    fn execute_local(
        &self,
        half: &HalfMessage,
        args: &TransactionArgs,
    ) -> impl Future<Output = Result<LocalState, BoxError>> + Send;

    /// Says how the transaction of a half message ended. Any producer of the group may be asked, on any machine, also about messages
    /// of another one and while their transaction still runs: decide by what is recorded durably, and answer
    /// [`LocalState::Unknown`] for what is not known.
    fn check_local(
        &self,
        message: &MessageExt,
    ) -> impl Future<Output = Result<LocalState, BoxError>> + Send;
}

/// Why a local transaction has no outcome of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalFailure {
    /// The listener returned an error: unknown.
    #[error("the local transaction failed")]
    Failed(#[source] BoxError),
    /// The listener panicked: unknown.
    #[error("the local transaction panicked")]
    Panicked,
    /// The half message is stored less safely than configured: rolled back, and the local transaction was not begun.
    #[error("the half message was stored as {0:?}, so the local transaction was not begun")]
    NotStored(SendStatus),
}

/// [`TransactionListener`] behind a pointer.
pub(super) trait Listening: Send + Sync {
    fn execute<'a>(
        &'a self,
        half: &'a HalfMessage,
        args: &'a TransactionArgs,
    ) -> BoxFuture<'a, Result<LocalState, LocalFailure>>;

    fn check<'a>(
        &'a self,
        message: &'a MessageExt,
    ) -> BoxFuture<'a, Result<LocalState, LocalFailure>>;
}

impl<L: TransactionListener> Listening for L {
    fn execute<'a>(
        &'a self,
        half: &'a HalfMessage,
        args: &'a TransactionArgs,
    ) -> BoxFuture<'a, Result<LocalState, LocalFailure>> {
        settled(async move { self.execute_local(half, args).await }).boxed()
    }

    fn check<'a>(
        &'a self,
        message: &'a MessageExt,
    ) -> BoxFuture<'a, Result<LocalState, LocalFailure>> {
        settled(async move { self.check_local(message).await }).boxed()
    }
}

async fn settled(
    work: impl Future<Output = Result<LocalState, BoxError>>,
) -> Result<LocalState, LocalFailure> {
    match caught(work).await {
        Some(outcome) => outcome.map_err(LocalFailure::Failed),
        None => Err(LocalFailure::Panicked),
    }
}

/// The outcome of the user's code; nothing when it panicked. What it left half done is its own: nothing of ours is touched by it.
pub(super) async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_the_numbers_of_the_wire() {
        let numbers = [
            LocalState::Commit,
            LocalState::Rollback,
            LocalState::Unknown,
        ]
        .map(LocalState::wire);
        assert_eq!(numbers, [8, 12, 0]);
    }

    #[tokio::test]
    async fn a_panic_is_no_outcome() {
        assert_eq!(caught(async { panic!("listener") }).await, None::<()>);
        assert!(matches!(
            settled(async { Err("no".into()) }).await,
            Err(LocalFailure::Failed(_))
        ));
        assert!(matches!(
            settled(async { panic!("listener") }).await,
            Err(LocalFailure::Panicked)
        ));
    }
}
