//! Error handlers: the program's word on messages that could not be handled or sent.
//!
//! ```text
//! input:  attempts used up · rejected · undecodable ─┐
//! output: asynchronous send failed ──────────────────┴─▶ Failure ─▶ the binding's handlers, else the default ones
//!      ─▶ ErrorAction ─┬─ Handled ─▶ acknowledged      ├─ SendTo ─▶ sent there, then acknowledged
//!                      └─ Rethrow ─▶ as without a handler: redelivery, dead letter
//! ```
//!
//! A handler that fails itself, by an error or a panic, has not handled anything: that is a `Rethrow`.

mod action;
mod failure;
mod handler;
mod run;

#[cfg(test)]
mod tests;

pub use action::{ErrorAction, IntoErrorAction};
pub use failure::{Failure, FailureContext, FromFailure};
pub use handler::{CallableOnFailure, ErrorCallFn, ErrorHandler, ErrorHandlerResult, OnError};

pub(crate) use handler::Target;
pub(crate) use run::{ErrorHandlers, Outcome, is_of};
