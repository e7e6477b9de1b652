//! Arguments of handlers: how each type is made from a message.
//!
//! ```text
//! MessageContext ──┬─ payload: Json<T> · Text · String · Bytes · Value · Message<T> · #[payload] T
//!                  ├─ headers: Headers · Tags · Keys · #[header("x")]
//!                  ├─ delivery: Topic · QueueId · MessageId · Redelivery · …
//!                  └─ application: State<T> · Bound<S> · StreamBridge
//! ```
//!
//! Any number of extractors may stand in any order: a message can be read many times.

use std::any::TypeId;
use std::future::Future;

use super::MessageContext;
use crate::convert::DecodeError;
use crate::error::BoxError;
use crate::registry::SourceDescriptor;

mod facts;
mod header;
mod payload;
mod state;

pub use facts::{
    BindingName, BornTime, Group, Keys, MessageId, QueueId, QueueOffset, Redelivery, StoreTime,
    Tags, Topic,
};
pub use header::{header_argument, header_or_default, optional_header};
pub use payload::{Text, payload_argument};
pub use state::State;

/// A handler's argument.
///
/// Implement it for a type of your own to compute an argument from the message or the application; the handler that
/// takes it needs nothing else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler argument",
    label = "not extractable from a message",
    note = "payload: take `Json<T>`, `Text`, `String`, `Bytes`, `serde_json::Value` or `Message<T>`, or mark the argument `#[payload]`",
    note = "headers: take `Headers`, `Tags`, `Keys`, or mark the argument `#[header(\"name\")]`",
    note = "application: take `State<T>`, `Bound<S>` or `StreamBridge`; delivery: `Topic`, `QueueId`, `MessageId`, `Redelivery`, …"
)]
pub trait FromMessage: Sized + Send {
    /// What the application must have for this argument; checked before anything is bound.
    const REQUIRES: &'static [Requirement] = &[];

    /// Makes the argument.
    ///
    /// # Errors
    /// A [`Rejection`] when the message or the application doesn't have it; the handler is not called then.
    fn from_message(
        cx: &MessageContext<'_>,
    ) -> impl Future<Output = Result<Self, Rejection>> + Send;
}

/// Why an argument could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The payload is not what the argument's type needs.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A required header is missing.
    #[error("the message has no header `{name}`")]
    MissingHeader {
        /// The header.
        name: String,
    },
    /// A header is there but cannot be read as the argument's type.
    #[error("the header `{name}` is `{value}`, which is no {expected}")]
    InvalidHeader {
        /// The header.
        name: String,
        /// Its text.
        value: String,
        /// The argument's type.
        expected: &'static str,
        /// Cause.
        #[source]
        source: BoxError,
    },
    /// The binder gave no such fact about the delivery.
    #[error("the binder knows no {what} of this message")]
    MissingFact {
        /// What is missing.
        what: &'static str,
    },
    /// The application was not given what the argument needs.
    #[error("the application has no {type_name}")]
    Missing {
        /// The missing type.
        type_name: &'static str,
    },
    /// An extractor outside the framework failed.
    #[error("{source}")]
    Other {
        /// Whether another attempt with the same message must fail as well.
        permanent: bool,
        /// Cause.
        #[source]
        source: BoxError,
    },
}

impl Rejection {
    /// Whether the message itself is the cause, so that trying it again cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Decode(_) | Self::MissingHeader { .. } | Self::InvalidHeader { .. } => true,
            Self::MissingFact { .. } | Self::Missing { .. } => false,
            Self::Other { permanent, .. } => *permanent,
        }
    }
}

/// Something the application must have before a handler can be bound.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Requirement {
    /// A value given with `AppBuilder::state`.
    State {
        /// The value's type.
        type_id: fn() -> TypeId,
        /// Its name.
        type_name: fn() -> &'static str,
    },
    /// The bindings of a `#[bindings]` struct.
    Source {
        /// The struct's description.
        descriptor: fn() -> &'static SourceDescriptor,
    },
}

impl std::fmt::Debug for Requirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::State { type_name, .. } => write!(f, "State<{}>", type_name()),
            Self::Source { descriptor } => write!(f, "Bound<{}>", descriptor().name),
        }
    }
}
