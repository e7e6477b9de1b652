//! Connections that carry remoting frames in both directions, the server that accepts them, and the injected clock.
//!
//! ```text
//! socket ─▶ reader task ─▶ Frame ─┬─ response ─▶ waiting call (by opaque)
//!                                 └─ request ──▶ Service::request(conn, frame, Responder)
//! Responder / call / oneway ─▶ bounded out queue ─▶ writer task ─▶ one vectored write for all that is queued
//! ```
#![forbid(unsafe_code)]

mod clock;
mod connection;
mod server;

pub use clock::{Clock, ManualClock};
pub use connection::{ConnectOptions, Connection, ConnectionId, RemotingError, Responder, Service};
pub use server::{Server, ServerOptions};
