//! Rates of the whole broker.
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Seconds a meter remembers.
const SECONDS: usize = 600;

/// Events per second over the last ten minutes.
pub(crate) struct Meter {
    seconds: Box<[(AtomicI64, AtomicU64)]>,
    total: AtomicU64,
}

impl Default for Meter {
    fn default() -> Self {
        Self::over(SECONDS)
    }
}

impl Meter {
    /// A meter that remembers so many seconds.
    pub(crate) fn over(seconds: usize) -> Self {
        Self {
            seconds: (0..seconds)
                .map(|_| (AtomicI64::new(-1), AtomicU64::new(0)))
                .collect(),
            total: AtomicU64::new(0),
        }
    }

    /// Counts `count` events at `now` (milliseconds).
    pub(crate) fn mark(&self, count: u64, now: i64) {
        self.total.fetch_add(count, Relaxed);
        let second = now.div_euclid(1000);
        let (stamp, events) = &self.seconds[self.slot(second)];
        // Two threads may meet on a stale slot: the one that moves the stamp clears it, an event of the other may be
        // counted before that. One event in ten minutes at worst, in a figure that is a rate.
        if stamp.swap(second, Relaxed) != second {
            events.store(0, Relaxed);
        }
        events.fetch_add(count, Relaxed);
    }

    /// Events since the start.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Events in the last `seconds` full seconds before `now`.
    pub(crate) fn sum(&self, seconds: i64, now: i64) -> u64 {
        let this = now.div_euclid(1000);
        (this - seconds..this)
            .filter_map(|second| {
                let (stamp, events) = &self.seconds[self.slot(second)];
                (stamp.load(Relaxed) == second).then(|| events.load(Relaxed))
            })
            .sum()
    }

    /// Events a second over the last `seconds` full seconds.
    pub(crate) fn rate(&self, seconds: u32, now: i64) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a rate is shown, not computed with"
        )]
        let sum = self.sum(i64::from(seconds), now) as f64;
        sum / f64::from(seconds)
    }

    /// `a b c` as Java shows them: rates over 10 s, 1 min and 10 min.
    pub(crate) fn three_rates(&self, now: i64) -> String {
        format!(
            "{} {} {}",
            self.rate(10, now),
            self.rate(60, now),
            self.rate(600, now)
        )
    }

    fn slot(&self, second: i64) -> usize {
        let len = i64::try_from(self.seconds.len()).unwrap_or(i64::MAX);
        usize::try_from(second.rem_euclid(len)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_counts_only_the_seconds_asked_for() {
        let meter = Meter::default();
        for second in 0..100 {
            meter.mark(2, second * 1000);
        }
        assert_eq!(meter.total(), 200);
        assert_eq!(meter.sum(10, 100_000), 20);
        assert!((meter.rate(60, 100_000) - 2.0).abs() < 1e-9);
        assert_eq!(meter.sum(10, 300_000), 0, "old events do not come back");
        meter.mark(1, 600_500);
        assert_eq!(
            meter.sum(1, 601_000),
            1,
            "a slot of ten minutes ago was cleared"
        );
    }
}
