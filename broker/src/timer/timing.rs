//! When a message wants to be delivered, and what becomes of the wish.
//!
//! ```text
//! TIMER_DELAY_SEC ▸ TIMER_DELAY_MS ▸ TIMER_DELIVER_MS ─▶ Timing ─▶ due ─┬─ past: an ordinary message
//!                                                                       ├─ too far, unreadable: refused
//!                                                                       └─ its slot, unless that is crowded
//! ```
use crate::config::BrokerConfig;

/// What the properties of a message ask for; of several the first of this list counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing<'a> {
    /// `TIMER_DELAY_SEC`: so many seconds from now.
    AfterSeconds(&'a str),
    /// `TIMER_DELAY_MS`: so many milliseconds from now.
    AfterMillis(&'a str),
    /// `TIMER_DELIVER_MS`: at this time, milliseconds since 1970.
    At(&'a str),
}

/// Why a message can't be timed as it wishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimingError {
    /// `timerWheelEnable` is false.
    #[error("accurate timer message is not enabled, timerWheelEnable is false")]
    Off,
    /// Later than `timerMaxDelaySec`, no number, or something to cancel that is due already.
    #[error(
        "timer message illegal, the delay time should not be bigger than the max delay {most}ms; or if set del msg, the delay time should be bigger than the current time"
    )]
    Illegal {
        /// The longest delay in milliseconds.
        most: i64,
    },
    /// More messages are due in that second than `timerCongestNumEachSlot`.
    #[error(
        "timer message is under flow control, max num limit is {twice} or the current value is greater than {limit} and less than {twice}, trigger random flow control"
    )]
    Crowded {
        /// The limit.
        limit: i64,
        /// From here on all are refused.
        twice: i64,
    },
}

impl Timing<'_> {
    /// The time asked for, milliseconds since 1970; none if it is no number.
    fn time(self, now: i64) -> Option<i64> {
        match self {
            Self::AfterSeconds(text) => {
                let seconds: i64 = text.parse().ok()?;
                Some(now.saturating_add(seconds.saturating_mul(1000)))
            }
            Self::AfterMillis(text) => Some(now.saturating_add(text.parse().ok()?)),
            Self::At(text) => text.parse().ok(),
        }
    }

    /// The slot for the message; none when it is due already and goes to its topic at once.
    pub(super) fn slot(
        self,
        now: i64,
        cancels: bool,
        config: &BrokerConfig,
    ) -> Result<Option<i64>, TimingError> {
        let most = i64::from(config.timer_max_delay_sec) * 1000;
        let illegal = TimingError::Illegal { most };
        let time = self.time(now).ok_or(illegal)?;
        if time <= now {
            return if cancels { Err(illegal) } else { Ok(None) };
        }
        if time.saturating_sub(now) > most {
            return Err(illegal);
        }
        // A slot is delivered when it is over: a full second is reached at the end of the slot before it.
        let precision = i64::from(config.timer_precision_ms.max(1));
        Ok(Some((time - 1).div_euclid(precision) * precision))
    }
}

/// Refuses a message for a slot that has so many already. Between once and twice the limit chance decides, the more likely
/// against it the more there are, so that senders feel it before all are refused.
pub(super) fn admit(count: i64, limit: i64, chance: f64) -> Result<(), TimingError> {
    let twice = limit.saturating_mul(2);
    if count <= limit {
        return Ok(());
    }
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let share = (count - limit) as f64 / (limit.max(1)) as f64;
    if count >= twice || chance < share {
        return Err(TimingError::Crowded { limit, twice });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_300;

    fn slot(timing: Timing<'_>) -> Result<Option<i64>, TimingError> {
        timing.slot(NOW, false, &BrokerConfig::default())
    }

    #[test]
    fn a_time_belongs_to_the_slot_that_ends_with_it() {
        for (timing, expected) in [
            (Timing::At("1700000005000"), 1_700_000_004_000),
            (Timing::At("1700000005001"), 1_700_000_005_000),
            (Timing::At("1700000005999"), 1_700_000_005_000),
            (Timing::AfterSeconds("2"), 1_700_000_002_000),
            (Timing::AfterMillis("700"), 1_700_000_000_000),
            (Timing::AfterMillis("1"), 1_700_000_000_000),
        ] {
            assert_eq!(slot(timing), Ok(Some(expected)), "{timing:?}");
        }
    }

    #[test]
    fn what_is_due_is_an_ordinary_message_unless_it_cancels() {
        for timing in [
            Timing::At("1700000000300"),
            Timing::At("-5"),
            Timing::AfterSeconds("0"),
            Timing::AfterMillis("-9223372036854775808"),
            Timing::AfterSeconds("-9223372036854775808"),
        ] {
            assert_eq!(slot(timing), Ok(None), "{timing:?}");
            let cancels = timing.slot(NOW, true, &BrokerConfig::default());
            assert!(matches!(cancels, Err(TimingError::Illegal { .. })));
        }
    }

    #[test]
    fn no_more_than_three_days_ahead_and_no_nonsense() {
        assert_eq!(
            slot(Timing::AfterSeconds("259200")),
            Ok(Some(1_700_259_200_000))
        );
        for timing in [
            Timing::AfterMillis("259200001"),
            Timing::AfterSeconds("9223372036854775807"),
            Timing::At("9223372036854775807"),
            Timing::At("9223372036854775808"),
            Timing::At(""),
            Timing::AfterSeconds("1.5"),
        ] {
            let most = 259_200_000;
            assert_eq!(
                slot(timing),
                Err(TimingError::Illegal { most }),
                "{timing:?}"
            );
        }
    }

    #[test]
    fn a_crowded_slot_refuses_more_and_more() {
        assert_eq!(admit(10, 10, 0.0), Ok(()));
        assert_eq!(admit(11, 10, 0.2), Ok(()));
        assert!(admit(11, 10, 0.05).is_err());
        assert!(admit(19, 10, 0.85).is_err());
        assert!(admit(20, 10, 0.999).is_err());
        assert_eq!(admit(i64::MAX, i64::MAX, 0.0), Ok(()));
    }
}
