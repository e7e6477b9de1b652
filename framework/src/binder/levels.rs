//! RocketMQ's delay levels: a message waits for one of 18 fixed times, not for any time.

use std::time::Duration;

/// Levels 1 to 18 in seconds (`messageDelayLevel` of Apache RocketMQ 5.3.3, unless the broker's operator changed it).
const SECONDS: [u64; 18] = [
    1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
];

/// The level of the first redelivery by the broker's own ladder; each further one is a level higher.
pub(crate) const FIRST_REDELIVERY_LEVEL: u32 = 3;

/// How long a message of this level waits; levels above the highest wait as long as the highest, 0 not at all.
pub(crate) fn duration_of(level: usize) -> Duration {
    match level.checked_sub(1) {
        None => Duration::ZERO,
        Some(index) => Duration::from_secs(SECONDS[index.min(SECONDS.len() - 1)]),
    }
}

/// The lowest level that waits at least this long; the highest when none does.
pub(crate) fn level_for(wait: Duration) -> i32 {
    let index = SECONDS
        .iter()
        .position(|seconds| Duration::from_secs(*seconds) >= wait)
        .unwrap_or(SECONDS.len() - 1);
    i32::try_from(index + 1).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_gets_the_lowest_level_that_is_long_enough() {
        assert_eq!(level_for(Duration::ZERO), 1);
        assert_eq!(level_for(Duration::from_millis(1001)), 2);
        assert_eq!(level_for(Duration::from_secs(5)), 2);
        assert_eq!(level_for(Duration::from_secs(86_400)), 18);
    }
}
