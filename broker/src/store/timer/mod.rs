//! The files of timer messages: which message of `rmq_sys_wheel_timer` falls due when.
//!
//! ```text
//! Unit ─append─▶ timerlog/D20 ─position─▶ Slot of its due time (timerwheel): first and last unit, count
//!                     ▲ each unit names the one before it of the same slot ──┘
//! config/timercheck: how far the queue was read, up to which time slots were delivered, what is on the disk
//! ```
//! All three are functions of the commit log. Layouts are those of `TimerLog`, `TimerWheel` and `TimerCheckpoint` of
//! Apache `RocketMQ` 5.3.3, byte for byte.
mod log;
mod marks;
mod unit;
mod wheel;

pub use log::{TimerLog, sync as sync_log};
pub use marks::{Marks, TimerCheck};
pub use unit::{Kind, Unit};
pub use wheel::{SLOTS, Slot, Wheel};
