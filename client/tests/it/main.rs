//! The client against a scripted server in the same process, and, when `BINDERY_NAMESRV` names one, against a real cluster (ours or
//! Apache's): `BINDERY_NAMESRV=127.0.0.1:9876 cargo test -p bindery-client --test it -- live`.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod consumer;
mod fake;
mod live;
mod live_start;
mod live_transaction;
mod outage;
mod producer;
mod request;
mod seek;
mod start;
mod transaction;
