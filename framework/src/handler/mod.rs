//! Handlers: plain async functions whose arguments are extracted from a message and whose results become an outcome.
//!
//! ```text
//! Message + Delivery + AppContext ──▶ MessageContext ──FromMessage (any order)──▶ arguments ──▶ handler
//!     handler ──▶ () · Outcome · Result ──IntoOutcome──┐
//!     handler ──▶ value with #[send_to] ──IntoReplies──┴──▶ HandlerResult: replies to send, or a failure with a verdict
//! ```
//!
//! A handler never sees a broker: what a failure means for redelivery is decided by the delivery pipeline from the
//! [`Verdict`].

mod call;
mod context;
mod delivery;
mod error;
mod extract;
mod outcome;
mod reply;

#[cfg(test)]
mod tests;

pub use call::{BoxFuture, Callable, CallableWithReply, ErasedHandler, HandlerResult};
pub use context::{AppContext, FromApp, MessageContext, MissingState, TypeMap};
pub use delivery::Delivery;
pub use error::HandlerError;
pub use extract::{
    BindingName, BornTime, FromMessage, Group, Keys, MessageId, QueueId, QueueOffset, Redelivery,
    Rejection, Requirement, State, StoreTime, Tags, Text, Topic,
};
pub use outcome::{Cause, HandlerFailure, IntoOutcome, Outcome, Verdict};
pub use reply::{IntoReplies, Reply, ReplyValue};

pub(crate) use call::catching;
#[doc(hidden)]
pub use extract::{header_argument, header_or_default, optional_header, payload_argument};
#[doc(hidden)]
pub use reply::probe;
