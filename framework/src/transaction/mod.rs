//! Transactions: a message that consumers get exactly if a local transaction is committed.
//!
//! ```text
//! Output::send · send_in_transaction ─▶ half message at the broker ─▶ TransactionListener::execute_local ─┐
//! Output::transaction(closure) ───────▶ half message at the broker ─▶ the closure ────────────────────────┴─▶ LocalState
//!                                                │ no verdict                                   Commit: consumers get it
//!       broker ─▶ any process of the group ◀─────┘ ─▶ TransactionListener::check_local ─▶ …     Rollback: nobody does
//! ```
//!
//! An output is transactional by `rocketmq.bindings.<name>.producer`: `producerType: Trans`, `group`, and
//! `transactionListener`, the name of a [`transaction_listener`](macro@crate::transaction_listener). The listener is
//! needed for the closure form too, because it answers the broker's questions about transactions whose process is gone.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::binding::SendReceipt;
use crate::error::BoxError;
use crate::message::Message;

mod listener;
mod store;

#[cfg(test)]
mod tests;

pub(crate) use listener::caught;
pub use listener::{ListenerHandle, LocalWork, TransactionListener};
pub use store::{MemoryTxStore, MemoryWork, StoredListener, TxStore};

/// How a local transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LocalState {
    /// Consumers get the message.
    Commit,
    /// Nobody gets the message.
    Rollback,
    /// Not known yet (the default): the broker asks [`TransactionListener::check_local`] after some seconds, again and
    /// again, and gives the message up when nobody knew (after 15 questions by default).
    #[default]
    Unknown,
}

/// What the sender hands to its own listener beside the message. It stays in this process and never travels; a broker's
/// question comes without it. Cheap to clone.
#[derive(Clone, Default)]
pub struct TxArgs(Option<Arc<dyn Any + Send + Sync>>);

impl TxArgs {
    /// Nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// A text, as the header `TRANSACTIONAL_ARGS` gives it too.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(text.into())
    }

    /// Any value.
    ///
    /// ```
    /// use bindery::transaction::TxArgs;
    ///
    /// assert_eq!(TxArgs::of(7_u32).downcast_ref::<u32>(), Some(&7));
    /// assert_eq!(TxArgs::text("binder").as_text(), Some("binder"));
    /// assert!(TxArgs::none().as_text().is_none());
    /// ```
    #[must_use]
    pub fn of<T: Any + Send + Sync>(value: T) -> Self {
        Self(Some(Arc::new(value)))
    }

    /// The value, if there is one of this type.
    #[must_use]
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.0.as_deref().and_then(|value| value.downcast_ref())
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        self.downcast_ref::<String>().map(String::as_str)
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for TxArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.is_none() { "none" } else { ".." };
        f.debug_tuple("TxArgs").field(&value).finish()
    }
}

/// A message that the broker has and nobody gets yet. Payload and headers are those of the [`Message`] it derefs to, the
/// payload encoded as it travels.
#[derive(Debug, Clone)]
pub struct HalfMessage {
    message: Message,
    transaction_id: Arc<str>,
}

impl HalfMessage {
    /// For binders: a message the broker has stored, and what its transaction is filed under.
    pub fn new(message: Message, transaction_id: impl Into<Arc<str>>) -> Self {
        Self {
            message,
            transaction_id: transaction_id.into(),
        }
    }

    /// What to file the outcome under: the same when the transaction runs and whenever the broker asks.
    #[must_use]
    pub fn transaction_id(&self) -> &str {
        &self.transaction_id
    }
}

impl Deref for HalfMessage {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

/// What the function given to [`Output::transaction`](crate::Output::transaction) decides, with a value for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TxOutcome<R> {
    /// [`LocalState::Commit`].
    Commit(R),
    /// [`LocalState::Rollback`].
    Rollback(R),
    /// [`LocalState::Unknown`]: the broker asks the listener.
    Unknown,
}

impl<R> TxOutcome<R> {
    pub(crate) fn split(self) -> (LocalState, Option<R>) {
        match self {
            Self::Commit(value) => (LocalState::Commit, Some(value)),
            Self::Rollback(value) => (LocalState::Rollback, Some(value)),
            Self::Unknown => (LocalState::Unknown, None),
        }
    }
}

/// What came of a transactional send. As JSON: the fields of the receipt, `transactionId`, `state` and `reported`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TxReceipt {
    /// The broker's word about the half message; its offset is not the one consumers will see.
    #[serde(flatten)]
    pub sent: SendReceipt,
    /// What the transaction is filed under.
    pub transaction_id: String,
    /// How the local transaction ended.
    pub state: LocalState,
    /// Whether the end was told to the broker. If not, the broker asks.
    pub reported: bool,
    /// Why the local transaction has no outcome of its own and counts as unknown, if so.
    #[serde(skip)]
    pub failure: Option<Arc<dyn Error + Send + Sync>>,
}

impl TxReceipt {
    /// For binders: a local transaction that ended like this and of which the broker knows.
    #[must_use]
    pub fn new(sent: SendReceipt, transaction_id: impl Into<String>, state: LocalState) -> Self {
        Self {
            sent,
            transaction_id: transaction_id.into(),
            state,
            reported: true,
            failure: None,
        }
    }
}

/// Why a local transaction has no outcome of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalFailure {
    /// It returned an error.
    #[error("the local transaction failed")]
    Failed(#[source] BoxError),
    /// It panicked.
    #[error("the local transaction panicked")]
    Panicked,
}
