//! The receipt of a popped message (`extraInfo`, property `POP_CK`), and which topic it came from.

use std::{borrow::Cow, fmt, str::FromStr};

use crate::names;

/// Which topic a popped message was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryMark {
    /// The one that was asked for.
    Normal,
    /// The group's retry topic of it, `%RETRY%group_topic`.
    V1,
    /// The same in its second naming, `%RETRY%group+topic`.
    V2,
}

impl RetryMark {
    /// What a topic's name says.
    #[must_use]
    pub fn of(topic: &str) -> Self {
        match topic.strip_prefix(names::RETRY_PREFIX) {
            None => Self::Normal,
            Some(rest) if rest.contains('+') => Self::V2,
            Some(_) => Self::V1,
        }
    }

    /// The mark written like that.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "0" => Some(Self::Normal),
            "1" => Some(Self::V1),
            "2" => Some(Self::V2),
            _ => None,
        }
    }

    /// As it is written.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Normal => "0",
            Self::V1 => "1",
            Self::V2 => "2",
        }
    }

    /// The topic a message of `topic` was read from for `group`.
    #[must_use]
    pub fn topic(self, group: &str, topic: &str) -> String {
        match self {
            Self::Normal => topic.to_owned(),
            Self::V1 => names::pop_retry_topic_v1(group, topic),
            Self::V2 => names::pop_retry_topic_v2(group, topic),
        }
    }
}

/// What a client shows to acknowledge a message or to change when it comes again: eight values with blanks between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt<'a> {
    /// First offset of the hand-out.
    pub start_offset: i64,
    /// When it was handed out, ms since 1970.
    pub pop_time: i64,
    /// How long it stays hidden, ms.
    pub invisible_time: i64,
    /// Where the hand-out is noted; [`super::ORDER_REVIVE_QUEUE`] for ordered pops.
    pub revive_queue: i32,
    /// Which topic it was read from.
    pub retry: RetryMark,
    /// Broker that handed it out.
    pub broker_name: Cow<'a, str>,
    /// Queue it was read from.
    pub queue_id: i32,
    /// Its queue offset.
    pub queue_offset: i64,
}

/// A text that is no receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the receipt `{text}` has no readable {what}")]
pub struct ReceiptError {
    /// The text.
    pub text: String,
    /// What it lacks.
    pub what: &'static str,
}

impl<'a> Receipt<'a> {
    /// Reads a receipt. The last two values may be missing: the request that carries it says them too.
    ///
    /// # Errors
    /// [`ReceiptError`] with the first value that is missing or no number.
    pub fn parse(text: &'a str) -> Result<Self, ReceiptError> {
        let lacks = |what| ReceiptError {
            text: text.to_owned(),
            what,
        };
        let mut values = text.split(' ');
        let start_offset = number(values.next()).ok_or_else(|| lacks("start offset"))?;
        let pop_time = number(values.next()).ok_or_else(|| lacks("pop time"))?;
        let invisible_time = number(values.next()).ok_or_else(|| lacks("invisible time"))?;
        let revive_queue = number(values.next()).ok_or_else(|| lacks("revive queue"))?;
        let retry = values.next().and_then(RetryMark::parse);
        let retry = retry.ok_or_else(|| lacks("retry mark"))?;
        let broker_name = values.next().ok_or_else(|| lacks("broker name"))?;
        Ok(Self {
            start_offset,
            pop_time,
            invisible_time,
            revive_queue,
            retry,
            broker_name: broker_name.into(),
            queue_id: number(values.next()).unwrap_or(-1),
            queue_offset: number(values.next()).unwrap_or(-1),
        })
    }
}

fn number<N: FromStr>(text: Option<&str>) -> Option<N> {
    text?.parse().ok()
}

impl fmt::Display for Receipt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {} {} {} {} {}",
            self.start_offset,
            self.pop_time,
            self.invisible_time,
            self.revive_queue,
            self.retry.text(),
            self.broker_name,
            self.queue_id,
            self.queue_offset
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_recorded_receipt_is_read_and_written_alike() {
        let text = "0 1796053027931 60000 0 1 broker-g 2 9";
        let receipt = Receipt::parse(text).unwrap();
        assert_eq!((receipt.start_offset, receipt.queue_offset), (0, 9));
        assert_eq!(receipt.retry.topic("g", "T"), "%RETRY%g_T");
        assert_eq!(receipt.to_string(), text);
    }

    #[test]
    fn what_is_no_receipt_is_refused_with_what_it_lacks() {
        for (text, lacks) in [
            ("", "start offset"),
            ("0 1", "invisible time"),
            ("0 1 2 x 0 b", "revive queue"),
            ("0 1 2 3 7 b", "retry mark"),
            ("0 1 2 3 0", "broker name"),
        ] {
            assert_eq!(Receipt::parse(text).unwrap_err().what, lacks, "{text}");
        }
        assert_eq!(Receipt::parse("0 1 2 3 0 b").unwrap().queue_id, -1);
    }

    #[test]
    fn a_topic_says_which_kind_it_is() {
        for (topic, mark) in [
            ("T+x", RetryMark::Normal),
            ("%RETRY%g_T", RetryMark::V1),
            ("%RETRY%g+T", RetryMark::V2),
        ] {
            assert_eq!(RetryMark::of(topic), mark);
            assert_eq!(RetryMark::parse(mark.text()), Some(mark));
        }
    }
}
