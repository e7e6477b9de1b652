//! A counter that knows what it counted over the last minute, hour and day.
//!
//! ```text
//! add ─▶ total ─┬─ same ten seconds as the last: nothing else
//!               └─ later: the total so far is noted as the one at each boundary in between
//! read ─▶ total now − total then; then lies between two boundaries and is interpolated
//! ```
//! Boundaries lie 10 s, 10 min and 1 h apart, as the samples of Apache's `StatsItem`; but a counter that nobody counts
//! on costs no time, and a figure covers its span, not one to seven samples of it.
use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
};

use bindery_protocol::bodies::{BrokerStatsData, BrokerStatsItem};

/// Counts something, and how often.
#[derive(Default)]
pub(super) struct Counter {
    sum: AtomicU64,
    times: AtomicU64,
    /// The finest boundary up to which totals are noted, plus one; 0 before the first event.
    noted: AtomicI64,
    past: Mutex<Past>,
}

/// Totals as they stood at boundaries of time.
#[derive(Default)]
struct Past {
    minute: Track,
    hour: Track,
    day: Track,
}

/// What a total was at the boundaries of one span; each mark stands for all boundaries behind the mark before it.
#[derive(Default)]
struct Track(VecDeque<Mark>);

#[derive(Clone, Copy)]
struct Mark {
    boundary: i64,
    total: Total,
}

#[derive(Clone, Copy, Default)]
struct Total {
    sum: u64,
    times: u64,
}

/// A span of time and the distance of its boundaries, in milliseconds.
#[derive(Clone, Copy)]
struct Span {
    length: i64,
    step: i64,
}

const MINUTE: Span = Span {
    length: 60_000,
    step: 10_000,
};
const HOUR: Span = Span {
    length: 3_600_000,
    step: 600_000,
};
const DAY: Span = Span {
    length: 86_400_000,
    step: 3_600_000,
};

impl Counter {
    /// Counts `amount` for one event at `now` (milliseconds).
    pub(super) fn add(&self, amount: u64, now: i64) {
        let finest = now.div_euclid(MINUTE.step).saturating_add(1);
        if self.noted.load(Relaxed) < finest {
            let mut past = self.past();
            // Another thread may have been first, and may have counted since: its event belongs behind the boundary.
            if self.noted.load(Relaxed) < finest {
                past.note(self.total(), now);
                self.noted.store(finest, Relaxed);
            }
        }
        self.sum.fetch_add(amount, Relaxed);
        self.times.fetch_add(1, Relaxed);
    }

    /// The sum a second over the last minute.
    pub(super) fn rate(&self, now: i64) -> f64 {
        self.past().minute.over(MINUTE, self.total(), now).tps
    }

    /// Minute, hour and day up to `now`.
    pub(super) fn data(&self, now: i64) -> BrokerStatsData {
        let (past, total) = (self.past(), self.total());
        BrokerStatsData {
            stats_day: past.day.over(DAY, total, now),
            stats_hour: past.hour.over(HOUR, total, now),
            stats_minute: past.minute.over(MINUTE, total, now),
        }
    }

    fn total(&self) -> Total {
        Total {
            sum: self.sum.load(Relaxed),
            times: self.times.load(Relaxed),
        }
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Past {
    fn note(&mut self, total: Total, now: i64) {
        self.minute.note(MINUTE, total, now);
        self.hour.note(HOUR, total, now);
        self.day.note(DAY, total, now);
    }
}

impl Track {
    fn note(&mut self, span: Span, total: Total, now: i64) {
        let boundary = now.div_euclid(span.step);
        if self.0.back().is_some_and(|last| last.boundary >= boundary) {
            return;
        }
        self.0.push_back(Mark { boundary, total });
        let oldest = now.saturating_sub(span.length).div_euclid(span.step);
        while self.0.front().is_some_and(|mark| mark.boundary < oldest) {
            self.0.pop_front();
        }
    }

    fn at(&self, boundary: i64, now: Total) -> Total {
        self.0
            .iter()
            .find(|mark| mark.boundary >= boundary)
            .map_or(now, |mark| mark.total)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "figures that are shown"
    )]
    fn over(&self, span: Span, total: Total, now: i64) -> BrokerStatsItem {
        let from = now.saturating_sub(span.length);
        let boundary = from.div_euclid(span.step);
        let (before, behind) = (self.at(boundary, total), self.at(boundary + 1, total));
        let part = from.rem_euclid(span.step) as f64 / span.step as f64;
        let since = |now: u64, before: u64, behind: u64| {
            let then = before as f64 + behind.saturating_sub(before) as f64 * part;
            (now as f64 - then).max(0.0)
        };
        let sum = since(total.sum, before.sum, behind.sum);
        let times = since(total.times, before.times, behind.times);
        BrokerStatsItem {
            avgpt: if times > 0.0 { sum / times } else { 0.0 },
            sum: sum.round() as i64,
            tps: sum * 1000.0 / span.length as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole hour.
    const START: i64 = 472_222 * 3_600_000;

    fn sums(counter: &Counter, now: i64) -> (i64, i64, i64) {
        let data = counter.data(now);
        (
            data.stats_minute.sum,
            data.stats_hour.sum,
            data.stats_day.sum,
        )
    }

    #[test]
    fn each_span_counts_what_lies_within_it() {
        let counter = Counter::default();
        for second in 0..120 {
            counter.add(2, START + second * 1000);
        }
        let now = START + 120_000;
        assert_eq!(sums(&counter, now), (120, 240, 240));
        assert!((counter.rate(now) - 2.0).abs() < 1e-9);
        assert!((counter.data(now).stats_minute.avgpt - 2.0).abs() < 1e-9);
        assert_eq!(sums(&counter, now + 60_000), (0, 240, 240));
        assert_eq!(sums(&counter, START + 3_600_000 + 600_000), (0, 0, 240));
        assert_eq!(sums(&counter, now + 25 * 3_600_000), (0, 0, 0));
    }

    #[test]
    fn what_came_before_a_long_silence_does_not_come_back() {
        let counter = Counter::default();
        counter.add(5, START);
        counter.add(7, START + 2 * 3_600_000);
        assert_eq!(sums(&counter, START + 2 * 3_600_000 + 1), (7, 7, 12));
    }

    #[test]
    fn a_busy_counter_remembers_no_more_than_a_day() {
        let counter = Counter::default();
        for minute in 0..3 * 24 * 60 {
            counter.add(1, START + minute * 60_000);
        }
        let past = counter.past();
        assert!(past.minute.0.len() <= 8 && past.hour.0.len() <= 8 && past.day.0.len() <= 26);
    }
}
