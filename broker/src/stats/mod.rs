//! Counters of what the broker does, cheap enough for the message path.
//!
//! ```text
//! send, pull ─┬─▶ Meter::mark (atomics) ─▶ rates over 10 s, 60 s, 600 s ─▶ runtime info (28)
//!             └─▶ Figures: Counter::add by topic, by topic and group ─▶ minute, hour, day (315), rates (202, 208)
//! ```
//! Nothing runs in the background: a meter is a ring of seconds that are cleared when they are next written to, and a
//! counter notes what it stood at when it first counts behind a boundary of time.
mod counter;
mod figures;
mod meter;

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
};

use bindery_protocol::bodies::BrokerStatsData;

use self::{figures::Figures, meter::Meter};

/// Totals as they stood at the last two midnights (UTC).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mornings {
    day: i64,
    /// Total at the midnight before the last.
    pub(crate) yesterday: u64,
    /// Total at the last midnight.
    pub(crate) today: u64,
}

/// Upper bounds, in milliseconds, of the put-time classes of Java's `putMessageDistributeTime`, with their labels.
const PUT_CLASSES: [(u64, &str); 13] = [
    (0, "[<=0ms]"),
    (10, "[0~10ms]"),
    (50, "[10~50ms]"),
    (100, "[50~100ms]"),
    (200, "[100~200ms]"),
    (500, "[200~500ms]"),
    (1000, "[500ms~1s]"),
    (2000, "[1~2s]"),
    (3000, "[2~3s]"),
    (4000, "[3~4s]"),
    (5000, "[4~5s]"),
    (10_000, "[5~10s]"),
    (u64::MAX, "[10s~]"),
];

/// Everything counted about one broker.
pub(crate) struct Stats {
    /// Messages stored.
    pub(crate) put: Meter,
    /// Messages handed out.
    pub(crate) transferred: Meter,
    /// Pulls that found something.
    pub(crate) found: Meter,
    /// Pulls that found nothing.
    pub(crate) missed: Meter,
    figures: Figures,
    put_bytes: AtomicU64,
    put_failed: AtomicU64,
    put_longest: AtomicU64,
    get_longest: AtomicU64,
    put_classes: [AtomicU64; PUT_CLASSES.len()],
    put_mornings: Mutex<Mornings>,
    get_mornings: Mutex<Mornings>,
    today: AtomicI64,
    /// When the broker started, in milliseconds.
    pub(crate) started: i64,
}

impl Stats {
    /// Counters that start now.
    pub(crate) fn new(now: i64) -> Self {
        let morning = Mornings {
            day: day(now),
            ..Mornings::default()
        };
        Self {
            put: Meter::default(),
            transferred: Meter::default(),
            found: Meter::default(),
            missed: Meter::default(),
            figures: Figures::default(),
            put_bytes: AtomicU64::new(0),
            put_failed: AtomicU64::new(0),
            put_longest: AtomicU64::new(0),
            get_longest: AtomicU64::new(0),
            put_classes: Default::default(),
            put_mornings: Mutex::new(morning),
            get_mornings: Mutex::new(morning),
            today: AtomicI64::new(day(now)),
            started: now,
        }
    }

    /// Messages of one send were stored: their bytes in the log, and the milliseconds it took.
    pub(crate) fn stored(&self, topic: &str, count: u64, bytes: u64, millis: u64, now: i64) {
        self.turn_day(now);
        self.put.mark(count, now);
        self.put_bytes.fetch_add(bytes, Relaxed);
        self.put_longest.fetch_max(millis, Relaxed);
        let class = PUT_CLASSES
            .iter()
            .position(|(bound, _)| millis <= *bound)
            .unwrap_or(PUT_CLASSES.len() - 1);
        self.put_classes[class].fetch_add(1, Relaxed);
        self.figures.put(topic, count, bytes, now);
    }

    /// A send could not be stored.
    pub(crate) fn refused(&self) {
        self.put_failed.fetch_add(1, Relaxed);
    }

    /// A pull's read took so many milliseconds.
    pub(crate) fn read_took(&self, millis: u64) {
        self.get_longest.fetch_max(millis, Relaxed);
    }

    /// A pull of a group was answered with so many messages, and the bytes of their records.
    pub(crate) fn pulled(&self, topic: &str, group: &str, count: u64, bytes: u64, now: i64) {
        self.turn_day(now);
        if count == 0 {
            self.missed.mark(1, now);
            return;
        }
        self.found.mark(1, now);
        self.transferred.mark(count, now);
        self.figures.got(topic, group, count, bytes, now);
    }

    /// A group gave a message of a topic back.
    pub(crate) fn sent_back(&self, topic: &str, group: &str, now: i64) {
        self.figures.sent_back(topic, group, now);
    }

    /// Messages stored in a topic a second, over the last minute.
    pub(crate) fn put_rate(&self, topic: &str, now: i64) -> f64 {
        self.figures.put_rate(topic, now)
    }

    /// Messages of a topic handed to a group a second, over the last minute.
    pub(crate) fn get_rate(&self, topic: &str, group: &str, now: i64) -> f64 {
        self.figures.get_rate(topic, group, now)
    }

    /// One of Apache's figures by its name and key (315), as far as something was counted for it; `cluster` is the key
    /// of those about the whole broker.
    pub(crate) fn figure(
        &self,
        name: &str,
        key: &str,
        cluster: &str,
        now: i64,
    ) -> Option<BrokerStatsData> {
        self.figures.named(name, key, cluster, now)
    }

    /// Forgets what was counted for a topic.
    pub(crate) fn forget_topic(&self, topic: &str) {
        self.figures.forget_topic(topic);
    }

    /// Forgets what was counted for a group.
    pub(crate) fn forget_group(&self, group: &str) {
        self.figures.forget_group(group);
    }

    /// Bytes stored since the start.
    pub(crate) fn put_bytes(&self) -> u64 {
        self.put_bytes.load(Relaxed)
    }

    /// Sends that failed since the start.
    pub(crate) fn put_failed(&self) -> u64 {
        self.put_failed.load(Relaxed)
    }

    /// The longest put, in milliseconds.
    pub(crate) fn put_longest(&self) -> u64 {
        self.put_longest.load(Relaxed)
    }

    /// The longest read of a pull, in milliseconds.
    pub(crate) fn get_longest(&self) -> u64 {
        self.get_longest.load(Relaxed)
    }

    /// `[<=0ms]:12 [0~10ms]:3 …` as Java writes it.
    pub(crate) fn put_distribution(&self) -> String {
        let mut text = String::new();
        for ((_, label), count) in PUT_CLASSES.iter().zip(&self.put_classes) {
            text.push_str(label);
            text.push(':');
            text.push_str(&count.load(Relaxed).to_string());
            text.push(' ');
        }
        text
    }

    /// Upper bound in milliseconds of the class in which the given share of puts (0 to 1) is reached.
    pub(crate) fn put_latency(&self, share: f64) -> u64 {
        let counts: Vec<u64> = self
            .put_classes
            .iter()
            .map(|count| count.load(Relaxed))
            .collect();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count times a share between 0 and 1"
        )]
        let wanted = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for ((bound, _), count) in PUT_CLASSES.iter().zip(counts) {
            seen += count;
            if seen >= wanted {
                return (*bound).min(self.put_longest());
            }
        }
        self.put_longest()
    }

    /// Totals of puts and of gets at the last two midnights.
    pub(crate) fn mornings(&self, now: i64) -> (Mornings, Mornings) {
        self.turn_day(now);
        let copy =
            |mornings: &Mutex<Mornings>| *mornings.lock().unwrap_or_else(PoisonError::into_inner);
        (copy(&self.put_mornings), copy(&self.get_mornings))
    }

    /// The first event of a day finds the totals as they stood at midnight, so no timer is needed.
    fn turn_day(&self, now: i64) {
        let today = day(now);
        if self.today.load(Relaxed) == today {
            return;
        }
        for (mornings, meter) in [
            (&self.put_mornings, &self.put),
            (&self.get_mornings, &self.transferred),
        ] {
            let mut mornings = mornings.lock().unwrap_or_else(PoisonError::into_inner);
            if mornings.day == today {
                continue;
            }
            mornings.yesterday = if mornings.day == today - 1 {
                mornings.today
            } else {
                meter.total()
            };
            mornings.today = meter.total();
            mornings.day = today;
        }
        self.today.store(today, Relaxed);
    }
}

fn day(now: i64) -> i64 {
    now.div_euclid(86_400_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_midnight_are_taken_by_the_first_event_of_the_day() {
        let stats = Stats::new(0);
        stats.stored("T", 5, 500, 0, 1000);
        stats.stored("T", 1, 100, 3, 86_400_000);
        let (put, _) = stats.mornings(86_400_001);
        assert_eq!((put.today, put.yesterday), (5, 0));
        let (put, _) = stats.mornings(2 * 86_400_000);
        assert_eq!((put.today, put.yesterday), (6, 5));
        assert!(
            stats
                .put_distribution()
                .starts_with("[<=0ms]:1 [0~10ms]:1 ")
        );
    }
}
