//! The remoting wire and the message formats of RocketMQ, as pure functions over bytes: no I/O and no runtime.
//!
//! ```text
//! socket bytes ─▶ frame ─▶ header (typed, borrowed) ─┐
//!                   └───▶ body ─▶ bodies / message ──┴─▶ broker, name server, client
//! ```
#![forbid(unsafe_code)]

pub mod allocate;
pub mod bodies;
pub mod codes;
pub mod filter;
pub mod frame;
pub mod headers;
pub mod message;
pub mod names;
pub mod pop;

#[cfg(test)]
mod fuzz;
