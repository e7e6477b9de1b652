//! Time as a parameter: everything that waits takes its clock from here.
use std::time::Duration;

/// A handle to the time source; cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock {}
/// Moves the clock of a test.
#[derive(Debug, Clone)]
pub struct ManualClock {}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        todo!()
    }
    /// A clock that stands still until it is moved.
    pub fn manual(start_millis: i64) -> (Self, ManualClock) {
        todo!()
    }
    /// Milliseconds since 1970 UTC.
    pub fn now_millis(&self) -> i64 {
        todo!()
    }
    /// Waits for `duration` of this clock's time. Cancel safe.
    pub async fn sleep(&self, duration: Duration) {
        todo!()
    }
    /// Waits until this clock shows `millis`. Cancel safe.
    pub async fn sleep_until(&self, millis: i64) {
        todo!()
    }
}
impl ManualClock {
    /// Moves time forward and wakes every sleeper that is due.
    pub fn advance(&self, by: Duration) {
        todo!()
    }
}
