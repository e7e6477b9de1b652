//! Connections that carry remoting frames in both directions, the server that accepts them, and the injected clock.
//!
//! ```text
//! socket ─▶ reader task ─▶ Frame ─┬─ response ─▶ waiting call (by opaque)
//!                                 └─ request ──▶ Service::request(connection, frame, Responder)
//! Responder / call / oneway ─▶ bounded out queue ─▶ writer task ─▶ one vectored write for all that is queued
//! ```
//!
//! A connection is the same thing at both ends: [`Connection::connect`] and [`Server`] hand out the same type, and
//! requests may flow either way over it. Every queue in here is bounded: what overflows is refused
//! ([`RemotingError::Busy`]) or no longer read from the socket, never buffered.
#![forbid(unsafe_code)]

mod budget;
mod calls;
mod clock;
mod connection;
mod driver;
mod error;
mod inbox;
mod outbox;
mod proxied;
mod server;
mod service;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use clock::{Clock, ManualClock};
pub use connection::{ConnectOptions, Connection, ConnectionId};
pub use error::RemotingError;
pub use server::{Server, ServerOptions};
pub use service::{Responder, Service};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose critical sections leave consistent data behind wherever they might be interrupted, so that a
/// panic elsewhere is no reason to refuse service.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
