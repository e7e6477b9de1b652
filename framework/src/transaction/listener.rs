//! The application's side of a transaction, and how binders hold it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use super::{HalfMessage, LocalState, TxArgs};
use crate::error::BoxError;
use crate::handler::BoxFuture;

/// Runs local transactions, and remembers how they ended.
///
/// Put `#[transaction_listener("name")]` on the `impl`; the application builds the listener by its
/// [`FromApp`](crate::handler::FromApp). Or give one to
/// [`AppBuilder::transaction_listener`](crate::AppBuilder::transaction_listener).
///
/// An error or a panic of either function counts as [`LocalState::Unknown`], never as a rollback.
///
/// ```
/// use bindery::transaction::{HalfMessage, LocalState, TransactionListener, TxArgs};
/// use bindery::error::BoxError;
///
/// # #[derive(Clone)] struct Books;
/// # impl Books {
/// #     async fn enter(&self, id: &str, body: &[u8]) -> Result<(), BoxError> { Ok(()) }
/// #     async fn has(&self, id: &str) -> Result<bool, BoxError> { Ok(true) }
/// # }
/// impl TransactionListener for Books {
///     async fn execute_local(&self, half: &HalfMessage, _: &TxArgs) -> Result<LocalState, BoxError> {
///         // What is booked and the transaction's id, in one database transaction.
///         self.enter(half.transaction_id(), half.payload()).await?;
///         Ok(LocalState::Commit)
///     }
///
///     async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
///         let booked = self.has(half.transaction_id()).await?;
///         Ok(if booked { LocalState::Commit } else { LocalState::Unknown })
///     }
/// }
/// ```
pub trait TransactionListener: Send + Sync + 'static {
    /// Runs the local transaction of a message that the broker has just stored.
    fn execute_local(
        &self,
        half: &HalfMessage,
        args: &TxArgs,
    ) -> impl Future<Output = Result<LocalState, BoxError>> + Send;

    /// Says how the transaction of a message ended. Any process of the producer group may be asked, also about another
    /// one's messages and while their transaction still runs: decide by what is recorded durably, and answer
    /// [`LocalState::Unknown`] for what is not known.
    fn check_local(
        &self,
        half: &HalfMessage,
    ) -> impl Future<Output = Result<LocalState, BoxError>> + Send;
}

/// A local transaction as a binder is given it: called once, when the half message is stored.
pub type LocalWork<'a> =
    Box<dyn FnOnce(HalfMessage) -> BoxFuture<'a, Result<LocalState, BoxError>> + Send + 'a>;

/// A [`TransactionListener`] of any type, with its name. Cheap to clone.
#[derive(Clone)]
pub struct ListenerHandle {
    name: Arc<str>,
    listener: Arc<dyn Listening>,
}

/// [`TransactionListener`] behind a pointer.
trait Listening: Send + Sync {
    fn execute<'a>(
        &'a self,
        half: &'a HalfMessage,
        args: &'a TxArgs,
    ) -> BoxFuture<'a, Result<LocalState, BoxError>>;

    fn check<'a>(&'a self, half: &'a HalfMessage) -> BoxFuture<'a, Result<LocalState, BoxError>>;
}

impl<L: TransactionListener> Listening for L {
    fn execute<'a>(
        &'a self,
        half: &'a HalfMessage,
        args: &'a TxArgs,
    ) -> BoxFuture<'a, Result<LocalState, BoxError>> {
        Box::pin(self.execute_local(half, args))
    }

    fn check<'a>(&'a self, half: &'a HalfMessage) -> BoxFuture<'a, Result<LocalState, BoxError>> {
        Box::pin(self.check_local(half))
    }
}

impl ListenerHandle {
    /// A handle on `listener`, which configuration calls `name`.
    pub fn new(name: impl Into<Arc<str>>, listener: impl TransactionListener) -> Self {
        Self {
            name: name.into(),
            listener: Arc::new(listener),
        }
    }

    /// The name that configuration uses.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// [`TransactionListener::execute_local`].
    ///
    /// # Errors
    /// The listener's own.
    pub async fn execute(&self, half: &HalfMessage, args: &TxArgs) -> Result<LocalState, BoxError> {
        self.listener.execute(half, args).await
    }

    /// [`TransactionListener::check_local`].
    ///
    /// # Errors
    /// The listener's own.
    pub async fn check(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        self.listener.check(half).await
    }

    /// The listener's local transaction, to be run once.
    pub(crate) fn work(&self, args: TxArgs) -> LocalWork<'static> {
        let listener = Arc::clone(&self.listener);
        Box::new(move |half| Box::pin(async move { listener.execute(&half, &args).await }))
    }
}

impl fmt::Debug for ListenerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ListenerHandle").field(&self.name).finish()
    }
}

/// The outcome of the application's code; nothing when it panicked. What it left half done is its own.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Some),
            Err(_panic) => Poll::Ready(None),
        },
    )
    .await
}
