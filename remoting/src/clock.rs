//! Time as a parameter: everything that waits takes its clock from here, so that tests move time instead of sleeping.
//!
//! ```text
//! Clock::system()  ─▶ the machine's wall clock and the runtime's timers
//! Clock::manual(t) ─▶ stands still ◀── ManualClock::advance wakes the sleepers that are due
//! ```
use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::sync::Notify;

use crate::lock;

/// A handle to the time source; cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock {
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    System,
    Manual(Arc<Manual>),
}

/// Moves the clock of a test. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ManualClock {
    shared: Arc<Manual>,
}

#[derive(Debug)]
struct Manual {
    hands: Mutex<Hands>,
    /// Told of every sleeper that lies down.
    asleep: Notify,
}

#[derive(Debug)]
struct Hands {
    now: i64,
    next_key: u64,
    /// By due time, then by the order of lying down.
    sleepers: BTreeMap<(i64, u64), Waker>,
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self {
            source: Source::System,
        }
    }

    /// A clock that stands still at `start_millis` (milliseconds since 1970 UTC) until it is moved.
    #[must_use]
    pub fn manual(start_millis: i64) -> (Self, ManualClock) {
        let hands = Hands {
            now: start_millis,
            next_key: 0,
            sleepers: BTreeMap::new(),
        };
        let shared = Arc::new(Manual {
            hands: Mutex::new(hands),
            asleep: Notify::new(),
        });
        (
            Self {
                source: Source::Manual(Arc::clone(&shared)),
            },
            ManualClock { shared },
        )
    }

    /// Milliseconds since 1970 UTC.
    #[must_use]
    pub fn now_millis(&self) -> i64 {
        match &self.source {
            Source::System => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => whole_millis(since),
                Err(before) => -whole_millis(before.duration()),
            },
            Source::Manual(shared) => lock(&shared.hands).now,
        }
    }

    /// Waits for `duration` of this clock's time; a manual clock rounds up to whole milliseconds. Cancel safe.
    pub async fn sleep(&self, duration: Duration) {
        match &self.source {
            Source::System => tokio::time::sleep(duration).await,
            Source::Manual(shared) => {
                let until = lock(&shared.hands).now.saturating_add(millis_up(duration));
                ManualSleep {
                    shared: Arc::clone(shared),
                    until,
                    key: None,
                }
                .await;
            }
        }
    }

    /// Waits until this clock shows `millis` or later; at once if it already does. When the system's clock is set
    /// back meanwhile, the wait goes on. Cancel safe.
    pub async fn sleep_until(&self, millis: i64) {
        match &self.source {
            Source::System => {
                while let Ok(left @ 1..) = u64::try_from(millis.saturating_sub(self.now_millis())) {
                    tokio::time::sleep(Duration::from_millis(left)).await;
                }
            }
            Source::Manual(shared) => {
                ManualSleep {
                    shared: Arc::clone(shared),
                    until: millis,
                    key: None,
                }
                .await;
            }
        }
    }
}

impl ManualClock {
    /// Moves time forward and wakes every sleeper that is due.
    ///
    /// Time jumps: all sleepers woken by one call see the new time, none a time in between. They are woken in the order
    /// of their due times, equal ones in the order in which they lay down; the runtime decides when each of them runs.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut hands = lock(&self.shared.hands);
            hands.now = hands.now.saturating_add(millis_up(by));
            // The first key that is not due: later than now.
            let rest = match hands.now.checked_add(1) {
                Some(later) => hands.sleepers.split_off(&(later, 0)),
                None => BTreeMap::new(),
            };
            std::mem::replace(&mut hands.sleepers, rest)
        };
        for waker in due.into_values() {
            waker.wake();
        }
    }

    /// How many sleepers lie waiting now.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        lock(&self.shared.hands).sleepers.len()
    }

    /// When the earliest sleeper is due, in milliseconds since 1970 UTC.
    #[must_use]
    pub fn next_due(&self) -> Option<i64> {
        lock(&self.shared.hands)
            .sleepers
            .keys()
            .next()
            .map(|(due, _)| *due)
    }

    /// Waits until at least `count` sleepers lie waiting: what a test does before it advances, so that no sleeper misses
    /// the move. Cancel safe.
    pub async fn wait_for_sleepers(&self, count: usize) {
        loop {
            let asleep = self.shared.asleep.notified();
            tokio::pin!(asleep);
            // Listening starts before the count is read, so that no sleeper slips in between.
            asleep.as_mut().enable();
            if self.sleepers() >= count {
                return;
            }
            asleep.await;
        }
    }
}

/// One wait on a manual clock; leaves the table when dropped.
struct ManualSleep {
    shared: Arc<Manual>,
    until: i64,
    key: Option<u64>,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = Arc::clone(&self.shared);
        let mut hands = lock(&shared.hands);
        if hands.now >= self.until {
            return Poll::Ready(());
        }
        let key = self.key.unwrap_or_else(|| {
            hands.next_key += 1;
            hands.next_key
        });
        self.key = Some(key);
        hands.sleepers.insert((self.until, key), cx.waker().clone());
        drop(hands);
        shared.asleep.notify_waiters();
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            lock(&self.shared.hands).sleepers.remove(&(self.until, key));
        }
    }
}

fn whole_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn millis_up(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_its_time_has_come_and_not_before() {
        let (clock, hands) = Clock::manual(1_000);
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_millis(50)).await }
        });
        hands.wait_for_sleepers(1).await;
        assert_eq!(hands.next_due(), Some(1_050));
        hands.advance(Duration::from_millis(49));
        assert_eq!((hands.sleepers(), clock.now_millis()), (1, 1_049));
        hands.advance(Duration::from_millis(1));
        assert!(tasks.join_next().await.is_some_and(|ended| ended.is_ok()));
        assert_eq!(hands.sleepers(), 0);
    }

    #[tokio::test]
    async fn sleepers_are_woken_in_order_of_their_due_times() {
        let (clock, hands) = Clock::manual(0);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        for due in [30, 10, 20] {
            let (clock, order) = (clock.clone(), Arc::clone(&order));
            tasks.spawn(async move {
                clock.sleep_until(due).await;
                lock(&order).push(due);
            });
        }
        hands.wait_for_sleepers(3).await;
        hands.advance(Duration::from_millis(30));
        while tasks.join_next().await.is_some() {}
        assert_eq!(*lock(&order), [10, 20, 30]);
    }

    #[tokio::test]
    async fn a_dropped_sleep_leaves_the_table() {
        let (clock, hands) = Clock::manual(0);
        let mut sleep = Box::pin(clock.sleep(Duration::from_secs(1)));
        assert!(futures_poll(sleep.as_mut()).is_pending());
        assert_eq!(hands.sleepers(), 1);
        drop(sleep);
        assert_eq!(hands.sleepers(), 0);
    }

    #[tokio::test]
    async fn a_time_already_shown_does_not_wait() {
        let (clock, _hands) = Clock::manual(5);
        clock.sleep_until(5).await;
        clock.sleep(Duration::ZERO).await;
        Clock::system().sleep_until(0).await;
    }

    #[tokio::test]
    async fn the_system_clock_sleeps_until_its_time() {
        let clock = Clock::system();
        let until = clock.now_millis() + 20;
        clock.sleep_until(until).await;
        assert!(clock.now_millis() >= until);
    }

    fn futures_poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }
}
