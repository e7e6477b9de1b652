//! Timer messages: messages for a point of time of the sender's choice, to a second, up to days ahead.
//!
//! ```text
//! send ─▶ Timing ─▶ TIMER_OUT_MS, REAL_TOPIC ─▶ rmq_sys_wheel_timer ─▶ enqueue ─┬─ due: delivered at once
//!                                                                               └─ unit in the timer log, slot of the wheel
//! first waiting slot ─▶ the only sleep ─▶ dequeue ─▶ each message of the slot ─┬─ to its real topic
//!                                                                             ├─ cancelled by another one of the slot
//!                                                                             └─ due later: into the queue again
//! timerlog, timerwheel, timercheck ◀─ flush ── timerFlushIntervalMs after the first change
//! ```
//! What was in the timer queue is delivered at least once, whatever is killed: a message is read from the queue again
//! unless its unit is in the log, and a slot is delivered again unless the marks say that it was.
//! Rules and files are those of `TimerMessageStore` of Apache `RocketMQ` 5.3.3.
mod book;
mod deliver;
mod dequeue;
mod enqueue;
mod flush;
mod metrics;
mod recover;
mod run;
mod timing;

pub(crate) use book::{Arrived, Progress, Timer};
pub(crate) use flush::flush;
pub(crate) use recover::open;
pub(crate) use run::run;
pub(crate) use timing::{Timing, TimingError};
