//! Whole systems under change: members of a group that come, go and are killed while messages flow.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod order;
mod rebalance;
