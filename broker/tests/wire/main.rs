//! A broker over a real socket, spoken to in frames.
//!
//! ```text
//! test ─▶ Peer (one connection) ─▶ Broker on any free port, store in a temporary folder, time moved by hand
//! ```
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod admin;
mod clients;
mod configuration;
mod delivery;
mod docs;
mod expiry;
mod filters;
mod fuzz;
mod levels;
mod limits;
mod operators;
mod pop;
mod replies;
mod restart;
mod sending;
mod support;
mod timers;
mod transactions;
