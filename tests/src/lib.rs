//! What whole-system tests share: real processes that are started, asked and killed, and a bare wire client that judges a
//! broker by nothing but its answers.
//!
//! ```text
//! test ─▶ Process (binary, ready line, signals)     test ─▶ Wire (send, pull) ─▶ socket ─▶ broker
//! ```
#![forbid(unsafe_code)]

mod process;
mod wire;

pub use process::Process;
pub use wire::{NullService, Stored, Wire, WireError};
