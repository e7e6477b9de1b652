//! Delay levels: the broker's table of named waiting times (`messageDelayLevel`).

use std::fmt;
use std::time::Duration;

/// The default table of Apache RocketMQ: 18 levels from one second to two hours.
pub const DEFAULT_DELAY_LEVELS: &str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h";

/// A table of delay levels; level n is the n-th duration, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayLevels {
    delays: Vec<Duration>,
}

/// A word of the table that is not a number followed by `s`, `m`, `h` or `d`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("delay level {level} is not a duration like 30s, 5m, 2h or 1d: {word:?}")]
pub struct DelayLevelError {
    /// Which level, counted from 1.
    pub level: usize,
    /// The word in question.
    pub word: String,
}

impl DelayLevels {
    /// Reads a table such as `1s 5s 10s 30s 1m 2h 1d`.
    ///
    /// # Errors
    /// [`DelayLevelError`] names the first word that is no duration, the empty one when there is no word at all.
    pub fn parse(text: &str) -> Result<Self, DelayLevelError> {
        let word = |(index, word): (usize, &str)| {
            duration(word).ok_or_else(|| DelayLevelError {
                level: index + 1,
                word: word.to_owned(),
            })
        };
        let delays = text
            .split_whitespace()
            .enumerate()
            .map(word)
            .collect::<Result<Vec<_>, _>>()?;
        if delays.is_empty() {
            // A level would have no queue to go to.
            return Err(DelayLevelError {
                level: 1,
                word: String::new(),
            });
        }
        Ok(Self { delays })
    }

    /// The delay of `level`, or `None` for 0, negative and unknown levels.
    #[must_use]
    pub fn delay(&self, level: i32) -> Option<Duration> {
        let index = usize::try_from(level).ok()?.checked_sub(1)?;
        self.delays.get(index).copied()
    }

    /// The highest level; 0 for an empty table.
    #[must_use]
    pub fn max(&self) -> i32 {
        i32::try_from(self.delays.len()).unwrap_or(i32::MAX)
    }

    /// `level`, lowered to the highest level.
    #[must_use]
    pub fn clamp(&self, level: i32) -> i32 {
        level.min(self.max())
    }

    /// When a message of `level` stored at `store_timestamp` is due, in milliseconds since 1970. A level that is not in
    /// the table counts as one second, as in `ScheduleMessageService.computeDeliverTimestamp`.
    #[must_use]
    pub fn due(&self, level: i32, store_timestamp: i64) -> i64 {
        let delay = self.delay(level).unwrap_or(Duration::from_secs(1));
        store_timestamp.saturating_add(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX))
    }
}

impl Default for DelayLevels {
    fn default() -> Self {
        Self::parse(DEFAULT_DELAY_LEVELS).unwrap_or(Self { delays: Vec::new() })
    }
}

impl fmt::Display for DelayLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, delay) in self.delays.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{}s", delay.as_secs())?;
        }
        Ok(())
    }
}

fn duration(word: &str) -> Option<Duration> {
    let (unit_at, unit) = word.char_indices().last()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let number: u64 = word.get(..unit_at)?.parse().ok()?;
    number.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn the_default_table_has_eighteen_levels() {
        let levels = DelayLevels::default();
        assert_eq!(levels.max(), 18);
        assert_eq!(levels.delay(1), Some(Duration::from_secs(1)));
        assert_eq!(levels.delay(18), Some(Duration::from_secs(7200)));
        assert_eq!(levels.delay(19), None);
        assert_eq!(levels.clamp(25), 18);
        assert_eq!(levels.due(2, 1000), 6000);
        assert_eq!(levels.due(40, 1000), 2000);
    }

    #[test]
    fn a_wrong_word_is_named() {
        let error = DelayLevels::parse("1s 5x").unwrap_err();
        assert_eq!((error.level, error.word.as_str()), (2, "5x"));
        assert!(DelayLevels::parse("s").is_err());
        assert!(DelayLevels::parse(" ").is_err());
        assert!(DelayLevels::parse("5秒").is_err());
    }
}
