//! How one configuration value is read from text and written back.
use std::{fmt::Display, path::PathBuf};

use bindery_protocol::bodies::RequestMode;

/// A type that a key of `broker.conf` may have.
pub(super) trait Value: Sized {
    /// What a reader of an error message should have written.
    const EXPECTED: &'static str;
    /// Reads the text of a properties file; `None` when it does not fit.
    fn parse(text: &str) -> Option<Self>;
    /// The text that [`Value::parse`] reads back.
    fn render(&self) -> String;
}

macro_rules! from_str {
    ($($ty:ty => $expected:literal),* $(,)?) => { $(
        impl Value for $ty {
            const EXPECTED: &'static str = $expected;
            fn parse(text: &str) -> Option<Self> {
                text.trim().parse().ok()
            }
            fn render(&self) -> String {
                display(self)
            }
        }
    )* };
}

fn display(value: &impl Display) -> String {
    value.to_string()
}

from_str! {
    u16 => "a number between 0 and 65535",
    u32 => "a number that is not negative",
    i32 => "a whole number",
    u64 => "a number that is not negative",
    i64 => "a whole number",
    usize => "a number that is not negative",
}

impl Value for bool {
    const EXPECTED: &'static str = "`true` or `false`";
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            value if value.eq_ignore_ascii_case("true") => Some(true),
            value if value.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        }
    }
    fn render(&self) -> String {
        display(self)
    }
}

impl Value for String {
    const EXPECTED: &'static str = "a text";
    fn parse(text: &str) -> Option<Self> {
        Some(text.trim().to_owned())
    }
    fn render(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    const EXPECTED: &'static str = "a path";
    fn parse(text: &str) -> Option<Self> {
        Some(PathBuf::from(text.trim()))
    }
    fn render(&self) -> String {
        self.display().to_string()
    }
}

/// When a send is answered: once the message is in the log, or once it is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlushDiskType {
    /// Answer once the message is in the log; the disk follows within 500 ms.
    #[default]
    Async,
    /// Answer once the message is on the disk; one flush serves all that wait.
    Sync,
}

impl Value for FlushDiskType {
    const EXPECTED: &'static str = "`ASYNC_FLUSH` or `SYNC_FLUSH`";
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "ASYNC_FLUSH" => Some(Self::Async),
            "SYNC_FLUSH" => Some(Self::Sync),
            _ => None,
        }
    }
    fn render(&self) -> String {
        match self {
            Self::Async => "ASYNC_FLUSH",
            Self::Sync => "SYNC_FLUSH",
        }
        .to_owned()
    }
}

/// What a broker is to the others of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BrokerRole {
    /// Takes writes; slaves follow when they can.
    #[default]
    AsyncMaster,
    /// Takes writes; waits for as many slaves as `inSyncReplicas` asks for.
    SyncMaster,
    /// Follows a master.
    Slave,
}

impl Value for BrokerRole {
    const EXPECTED: &'static str = "`ASYNC_MASTER`, `SYNC_MASTER` or `SLAVE`";
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "ASYNC_MASTER" => Some(Self::AsyncMaster),
            "SYNC_MASTER" => Some(Self::SyncMaster),
            "SLAVE" => Some(Self::Slave),
            _ => None,
        }
    }
    fn render(&self) -> String {
        match self {
            Self::AsyncMaster => "ASYNC_MASTER",
            Self::SyncMaster => "SYNC_MASTER",
            Self::Slave => "SLAVE",
        }
        .to_owned()
    }
}

/// A share in percent, from 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent(pub u8);

impl Value for Percent {
    const EXPECTED: &'static str = "a percentage between 1 and 100";
    fn parse(text: &str) -> Option<Self> {
        let percent = text.trim().parse().ok();
        percent
            .filter(|percent| (1..=100).contains(percent))
            .map(Self)
    }
    fn render(&self) -> String {
        display(&self.0)
    }
}

/// Hours of the day, local time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hours(pub Vec<u8>);

impl Value for Hours {
    const EXPECTED: &'static str = "hours from 00 to 23, separated by semicolons";
    fn parse(text: &str) -> Option<Self> {
        let hour = |text: &str| text.trim().parse().ok().filter(|hour| *hour < 24);
        text.split(';').map(hour).collect::<Option<_>>().map(Self)
    }
    fn render(&self) -> String {
        let hours: Vec<_> = self.0.iter().map(|hour| format!("{hour:02}")).collect();
        hours.join(";")
    }
}

impl Value for RequestMode {
    const EXPECTED: &'static str = "`PULL` or `POP`";
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "PULL" => Some(Self::Pull),
            "POP" => Some(Self::Pop),
            _ => None,
        }
    }
    fn render(&self) -> String {
        self.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn booleans_are_read_in_any_case_and_nothing_else_is_one() {
        assert_eq!(bool::parse("TRUE "), Some(true));
        assert_eq!(bool::parse("false"), Some(false));
        assert_eq!(bool::parse("yes"), None);
    }

    #[test]
    fn hours_and_percentages_that_cannot_be_are_refused() {
        assert_eq!(Hours::parse("04;16"), Some(Hours(vec![4, 16])));
        assert_eq!(Hours(vec![4, 16]).render(), "04;16");
        for bad in ["24", "", "4,16", "four", "-1"] {
            assert_eq!(Hours::parse(bad), None, "{bad}");
        }
        assert_eq!(Percent::parse("75"), Some(Percent(75)));
        for bad in ["0", "101", "0.75"] {
            assert_eq!(Percent::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_value_reads_back_what_it_wrote() {
        assert_eq!(
            FlushDiskType::parse(&FlushDiskType::Sync.render()),
            Some(FlushDiskType::Sync)
        );
        assert_eq!(
            BrokerRole::parse(&BrokerRole::Slave.render()),
            Some(BrokerRole::Slave)
        );
        assert_eq!(u64::parse(&u64::MAX.render()).unwrap(), u64::MAX);
    }
}
