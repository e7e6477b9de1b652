//! Time inside an application, and who waits for it: what lets a test jump over pauses.
//!
//! ```text
//! pipeline, binder ─▶ Pace::pause ─▶ sleep_until               machine: the runtime's timers
//!                        │                                     virtual: a manual Clock, stands still until jumped
//!                        └─▶ table of pauses ─▶ "everybody waits, next one due at t" ─▶ jump_to(t)
//! ```

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindery_remoting::{Clock, ManualClock};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// The application's time. Cheap to clone; clones are the same time.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    time: Time,
    pauses: Mutex<Pauses>,
    changed: Notify,
}

#[derive(Debug)]
enum Time {
    /// The runtime's timers, anchored once to the wall clock: setting that clock moves nothing that waits here, and a
    /// runtime whose own clock is paused runs through every wait.
    Machine { anchor_millis: i64, anchor: Instant },
    /// The mutex keeps two jumps from adding up.
    Virtual {
        clock: Clock,
        hands: Mutex<ManualClock>,
    },
}

#[derive(Debug, Default)]
struct Pauses {
    next: u64,
    /// When each pause ends, and which one it is.
    due: BTreeSet<(i64, u64)>,
}

impl Pace {
    /// The machine's time.
    pub(crate) fn system() -> Self {
        Self::of(Time::Machine {
            anchor_millis: Clock::system().now_millis(),
            anchor: Instant::now(),
        })
    }

    /// Time that begins at `start_millis` (since 1970 UTC) and moves only by [`jump_to`](Self::jump_to).
    pub(crate) fn virtual_from(start_millis: i64) -> Self {
        let (clock, hands) = Clock::manual(start_millis);
        let hands = Mutex::new(hands);
        Self::of(Time::Virtual { clock, hands })
    }

    fn of(time: Time) -> Self {
        Self {
            shared: Arc::new(Shared {
                time,
                pauses: Mutex::default(),
                changed: Notify::new(),
            }),
        }
    }

    pub(crate) fn now_millis(&self) -> i64 {
        match &self.shared.time {
            Time::Machine {
                anchor_millis,
                anchor,
            } => {
                let since = i64::try_from(anchor.elapsed().as_millis());
                anchor_millis.saturating_add(since.unwrap_or(i64::MAX))
            }
            Time::Virtual { clock, .. } => clock.now_millis(),
        }
    }

    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.shared.time, Time::Virtual { .. })
    }

    /// Waits without keeping anything from being at rest. Cancel safe.
    pub(crate) async fn sleep_until(&self, millis: i64) {
        match &self.shared.time {
            Time::Machine { .. } => loop {
                let left = u64::try_from(millis.saturating_sub(self.now_millis()));
                let Ok(left @ 1..) = left else { return };
                tokio::time::sleep(Duration::from_millis(left)).await;
            },
            Time::Virtual { clock, .. } => clock.sleep_until(millis).await,
        }
    }

    /// Waits as part of handling or sending a message: whoever does so is at rest until then. Cancel safe.
    pub(crate) async fn pause(&self, pause: Duration) {
        let until = self.after(pause);
        let _pausing = Pausing::begin(self, until);
        self.sleep_until(until).await;
    }

    /// The time `duration` from now, rounded up to milliseconds.
    pub(crate) fn after(&self, duration: Duration) -> i64 {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        self.now_millis()
            .saturating_add(i64::try_from(millis).unwrap_or(i64::MAX))
    }

    /// How many pauses end later than now, and the first of these ends.
    pub(crate) fn pausing(&self) -> (usize, Option<i64>) {
        let now = self.now_millis();
        let pauses = lock(&self.shared.pauses);
        let later = pauses.due.range((now.saturating_add(1), 0)..);
        (later.clone().count(), later.map(|(at, _)| *at).next())
    }

    /// Moves virtual time forward to `at`; the machine's time goes by itself.
    pub(crate) fn jump_to(&self, at: i64) {
        if let Time::Virtual { hands, .. } = &self.shared.time {
            let hands = lock(hands);
            if let Ok(millis) = u64::try_from(at.saturating_sub(self.now_millis())) {
                hands.advance(Duration::from_millis(millis));
            }
        }
        self.tell();
    }

    /// Says that something changed that others may wait for.
    pub(crate) fn tell(&self) {
        self.shared.changed.notify_waiters();
    }

    /// Completes with the next [`tell`](Self::tell) after this call, also when it is polled later only.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.shared.changed.notified()
    }
}

/// A pause under way; leaves the table when dropped.
struct Pausing<'a> {
    pace: &'a Pace,
    entry: (i64, u64),
}

impl<'a> Pausing<'a> {
    fn begin(pace: &'a Pace, until: i64) -> Self {
        let mut pauses = lock(&pace.shared.pauses);
        pauses.next += 1;
        let entry = (until, pauses.next);
        pauses.due.insert(entry);
        drop(pauses);
        pace.tell();
        Self { pace, entry }
    }
}

impl Drop for Pausing<'_> {
    fn drop(&mut self) {
        lock(&self.pace.shared.pauses).due.remove(&self.entry);
        self.pace.tell();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can fail half-way runs while a lock is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pause_is_seen_until_its_time_has_come() {
        let pace = Pace::virtual_from(1_000);
        let pause = pace.pause(Duration::from_millis(5));
        tokio::pin!(pause);
        assert!(futures_poll(pause.as_mut()).is_pending());
        assert_eq!(pace.pausing(), (1, Some(1_005)));
        pace.jump_to(1_005);
        assert_eq!(pace.pausing(), (0, None), "due: no longer at rest");
        pause.await;
        pace.jump_to(1_000);
        assert_eq!(pace.now_millis(), 1_005, "time never moves back");
    }

    fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
