//! Transactions: half messages, the verdicts on them, and the questions for those nobody has decided.
//!
//! ```text
//! send with TRAN_MSG ─▶ RMQ_SYS_TRANS_HALF_TOPIC, queue 0 ─▶ Book: open
//! END_TRANSACTION (37) ─▶ claim ─┬─ commit:   the message goes to its real topic ─┐
//!                                └─ roll back ────────────────────────────────────┴▶ decided ─▶ OpLog ─▶ op message
//! open for too long ─▶ round: written to the end of the half topic again ─▶ CHECK_TRANSACTION_STATE (39) to a producer
//!                             asked too often or too old: TRANS_CHECK_MAX_TIME_TOPIC
//! ```
//! The half topic is walked in order. Everything before its position (a consumer offset of `CID_RMQ_SYS_TRANS`) is
//! decided, given up or written again behind it; op messages name what is decided behind it. Both lie in the log as
//! Apache `RocketMQ` 5.3.3 writes them, so a store may change hands between the two brokers at any moment.
//!
//! What the log can't tell quickly is kept in memory ([`book::Book`]) and read back at start ([`recover`]).
mod book;
mod check;
mod half;
mod ops;
mod question;
mod recover;
mod resume;
mod state;

pub(crate) use self::{
    book::Claim,
    check::run,
    half::{HalfMessage, ROOM_FOR_CHECKS, immunity_millis},
    recover::recover,
    resume::resume,
    state::Transactions,
};

/// Under whose name the positions are kept.
const GROUP: &str = "CID_RMQ_SYS_TRANS";
/// Half messages and op messages have one queue each.
const QUEUE: i32 = 0;
/// Nothing is to be done.
const NEVER: i64 = i64::MAX;
/// Milliseconds until what the store refused is tried again.
const RETRY: i64 = 1000;
