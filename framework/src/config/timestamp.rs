//! The time of `consume-timestamp`, in its three notations.
//!
//! ```text
//! 20220117110148               local time ─┐
//! 2022-01-17T11:01:48.5+08:00  RFC 3339   ─┼─▶ milliseconds since 1970
//! 1642388508500                as it is   ─┘
//! ```
//! RocketMQ's own client (`UtilAll.parseDate` of 5.3.3) knows the first alone and reads it leniently: month 13 rolls over, and
//! `2024-01-01 12:30:59` is a day in 2023. Here only what is written down in full is accepted.

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// Length of `yyyyMMddHHmmss`.
const LOCAL: usize = 14;
/// Length of every number of milliseconds from 2001 to 2286.
const MILLIS: usize = 13;
/// Where `CONSUME_FROM_TIMESTAMP` begins without `consume-timestamp`, as in RocketMQ's own client.
const WITHOUT: Duration = Duration::from_secs(30 * 60);

/// A text that is no time of `consume-timestamp`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// Of none of the three notations.
    #[error(
        "`{text}` is neither 14 digits (yyyyMMddHHmmss), nor RFC 3339 with its offset, nor 13 digits (milliseconds since 1970)"
    )]
    Notation {
        /// The text.
        text: String,
    },
    /// Of one of the notations, but no date, or one that can't be placed in the time zone.
    #[error("`{text}` is no time")]
    Date {
        /// The text.
        text: String,
        /// What is wrong with it.
        #[source]
        source: jiff::Error,
    },
    /// A time zone that is not known here.
    #[error("the time zone `{name}` is unknown")]
    Zone {
        /// The zone.
        name: String,
        /// What is wrong with it.
        #[source]
        source: jiff::Error,
    },
    /// No message is older than 1970.
    #[error("`{text}` is before 1970")]
    TooEarly {
        /// The text.
        text: String,
        /// The negative number of milliseconds.
        #[source]
        source: std::num::TryFromIntError,
    },
}

/// Reads a time, in milliseconds since 1970 (UTC). Local time is that of `zone` (`Europe/Berlin`), or of the process: `TZ`,
/// else the machine's. A local time that a clock skips is read as if it had not been put forward yet, one that it shows
/// twice as the second, both as Java does.
///
/// # Errors
/// [`TimestampError`] when the text is no such time.
pub fn consume_timestamp(text: &str, zone: Option<&str>) -> Result<u64, TimestampError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let millis = match text.len() {
        LOCAL if digits => local(text, zone)?,
        // At most 13 digits, so that they fit.
        MILLIS if digits => text
            .bytes()
            .fold(0, |n, byte| n * 10 + i64::from(byte - b'0')),
        _ if text.contains(['T', 't']) => {
            let parsed: Timestamp = text.parse().map_err(|source| date(text, source))?;
            parsed.as_millisecond()
        }
        _ => {
            return Err(TimestampError::Notation {
                text: text.to_owned(),
            });
        }
    };
    u64::try_from(millis).map_err(|source| TimestampError::TooEarly {
        text: text.to_owned(),
        source,
    })
}

fn date(text: &str, source: jiff::Error) -> TimestampError {
    TimestampError::Date {
        text: text.to_owned(),
        source,
    }
}

fn local(text: &str, zone: Option<&str>) -> Result<i64, TimestampError> {
    let zone = match zone {
        None => TimeZone::system(),
        Some(name) => TimeZone::get(name).map_err(|source| TimestampError::Zone {
            name: name.to_owned(),
            source,
        })?,
    };
    // A leap second would be read as the one before it.
    if text.ends_with("60") {
        return Err(TimestampError::Notation {
            text: text.to_owned(),
        });
    }
    let time = DateTime::strptime("%Y%m%d%H%M%S", text).map_err(|source| date(text, source))?;
    let zoned = zone.to_ambiguous_zoned(time).later();
    Ok(zoned
        .map_err(|source| date(text, source))?
        .timestamp()
        .as_millisecond())
}

/// Half an hour before this process first asked, the same for everybody who asks.
pub(crate) fn without_timestamp() -> u64 {
    static SINCE: OnceLock<u64> = OnceLock::new();
    *SINCE.get_or_init(|| millis_since_1970().saturating_sub(as_millis(WITHOUT)))
}

/// Now, by the machine's clock.
pub(crate) fn millis_since_1970() -> u64 {
    as_millis(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn one_moment_has_three_notations() {
        let moment = 1_642_388_508_000;
        assert_eq!(consume_timestamp("1642388508000", None).unwrap(), moment);
        assert_eq!(
            consume_timestamp("2022-01-17T11:01:48+08:00", None).unwrap(),
            moment
        );
        assert_eq!(
            consume_timestamp("2022-01-17T03:01:48.250Z", None).unwrap(),
            moment + 250
        );
        assert_eq!(
            consume_timestamp("20220117030148", Some("UTC")).unwrap(),
            moment
        );
    }

    #[test]
    fn what_is_not_written_in_full_is_refused() {
        for text in [
            "",
            "abc",
            "20220117",
            "2022011703014",
            "20221301000000",
            "20230229120000",
            "20240101240000",
            "20240101235960",
            "20240101123059 ",
            "2022-01-17T11:01:48",
            "2022-01-17 11:01:48",
            "19691231235959",
        ] {
            let read = consume_timestamp(text, Some("UTC"));
            // 13 digits are milliseconds, even those of a date that lacks one.
            assert_eq!(read.is_err(), text != "2022011703014", "{text}: {read:?}");
        }
    }
}
