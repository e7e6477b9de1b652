//! Applications in memory, in virtual time, as their users test them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "testing/flow.rs"]
mod flow;
#[path = "testing/handlers.rs"]
mod handlers;
#[cfg(feature = "embedded")]
#[path = "testing/real.rs"]
mod real;
