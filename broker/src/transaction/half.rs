//! A half message as it lies in the log, and the forms in which it is written again.
//!
//! ```text
//! record ─▶ HalfMessage ─┬─ committed:   REAL_TOPIC, REAL_QID, sysFlag commit
//!                        ├─ asked about: half topic again, TRANSACTION_CHECK_TIMES + 1
//!                        ├─ put back:    half topic again, TRAN_PREPARED_QUEUE_OFFSET
//!                        └─ given up:    TRANS_CHECK_MAX_TIME_TOPIC
//! ```
use std::net::SocketAddr;

use bindery_protocol::message::{NewMessage, RecordView, property};

use crate::config::BrokerConfig;

/// What transactions have to know of a half message.
#[derive(Debug, Clone)]
pub(crate) struct HalfMessage<'a> {
    /// The record itself.
    pub(crate) record: RecordView<'a>,
    /// Unique key; empty when there is none.
    pub(crate) key: &'a str,
    /// Producer group; empty when there is none.
    pub(crate) group: &'a str,
    /// Where the message is for.
    pub(crate) topic: &'a str,
    /// Which queue it is for.
    pub(crate) queue_id: i32,
    /// Delay level it asks for once committed; 0 for none.
    pub(crate) delay_level: i32,
    /// Checks so far.
    pub(super) checks: u32,
    /// Own time before the first check, in milliseconds.
    pub(super) immunity: Option<i64>,
    /// Offset of its first form in the half topic, if it was put back.
    pub(super) first_offset: Option<i64>,
    properties: &'a str,
}

impl<'a> HalfMessage<'a> {
    /// Looks at a record of the half topic; nothing if it is not one that a send made.
    pub(crate) fn of(record: RecordView<'a>, config: &BrokerConfig) -> Option<Self> {
        let properties = std::str::from_utf8(record.properties()).ok()?;
        let text = |name| text(&record, name);
        Some(Self {
            key: text(property::UNIQ_KEY)
                .or_else(|| text(property::TRANSACTION_ID))
                .unwrap_or_default(),
            group: text(property::PGROUP).unwrap_or_default(),
            topic: text(property::REAL_TOPIC)?,
            queue_id: text(property::REAL_QID)?.parse().ok()?,
            delay_level: number(text(property::DELAY)).unwrap_or(0),
            checks: number(text(property::TRANSACTION_CHECK_TIMES)).unwrap_or(0),
            immunity: text(property::CHECK_IMMUNITY_TIME_IN_SECONDS)
                .map(|text| immunity_millis(Some(text), config)),
            first_offset: number(text(property::TRAN_PREPARED_QUEUE_OFFSET)),
            record,
            properties,
        })
    }

    /// The property text.
    pub(crate) fn properties(&self) -> &'a str {
        self.properties
    }

    /// Whether it was written by the broker in place of an earlier one.
    pub(super) fn is_copy(&self) -> bool {
        self.checks > 0 || self.first_offset.is_some()
    }

    /// When its life began, in milliseconds: by the broker's clock where that is known. A copy was stored later than
    /// its original, so its producer's clock has to do.
    pub(super) fn since(&self) -> i64 {
        let stored = self.record.store_timestamp();
        if self.is_copy() {
            self.record.born_timestamp().min(stored)
        } else {
            stored
        }
    }

    /// How old it is, in milliseconds; negative when a clock was set back.
    pub(crate) fn age(&self, now: i64) -> i64 {
        now - self.since()
    }

    /// Whether its own time before the first check is over. Without one of its own it never is.
    pub(crate) fn outlived_immunity(&self, now: i64) -> bool {
        self.immunity
            .is_some_and(|immunity| self.age(now) > immunity)
    }

    /// When it may be checked first, in milliseconds.
    pub(super) fn first_check(&self, config: &BrokerConfig) -> i64 {
        let immunity = self
            .immunity
            .unwrap_or_else(|| millis(config.transaction_time_out));
        self.since().saturating_add(immunity).saturating_add(1)
    }

    /// The message as it is stored again under another topic and with other properties; everything else stays.
    pub(super) fn again<'b>(
        &self,
        topic: &'b str,
        queue_id: i32,
        store_host: SocketAddr,
        properties: &'b [u8],
    ) -> NewMessage<'b>
    where
        'a: 'b,
    {
        NewMessage {
            topic,
            queue_id,
            flag: self.record.flag(),
            sys_flag: self.record.sys_flag(),
            born_timestamp: self.record.born_timestamp(),
            born_host: self.record.born_host(),
            store_host,
            reconsume_times: self.record.reconsume_times(),
            prepared_transaction_offset: self.record.prepared_transaction_offset(),
            body: self.record.body(),
            properties,
        }
    }

    /// The property text with one pair replaced, or added at the end.
    pub(super) fn properties_with(&self, name: &str, value: &str) -> Vec<u8> {
        with(self.record.properties(), name, value)
    }
}

/// Bytes of property text that the checks of a half message may add: a count, the offset of its first form, and a
/// `WAIT=false` in the question.
pub(crate) const ROOM_FOR_CHECKS: usize =
    pair_len(property::TRANSACTION_CHECK_TIMES, LONGEST_COUNT)
        + pair_len(property::TRAN_PREPARED_QUEUE_OFFSET, LONGEST_OFFSET)
        + pair_len(property::WAIT, "false".len());

/// Digits of the largest `u32`.
const LONGEST_COUNT: usize = 10;
/// Digits of the largest `i64`.
const LONGEST_OFFSET: usize = 19;

/// Length of a pair in a property text.
const fn pair_len(name: &str, value: usize) -> usize {
    name.len() + value + 2
}

/// A property text with one pair replaced in its place, or added at the end.
pub(super) fn with(properties: &[u8], name: &str, value: &str) -> Vec<u8> {
    let mut text = Vec::with_capacity(properties.len() + name.len() + value.len() + 2);
    let mut found = false;
    for (known, old) in bindery_protocol::message::properties::pairs(properties) {
        let replaced = known == name.as_bytes();
        found |= replaced;
        put(
            &mut text,
            known,
            if replaced { value.as_bytes() } else { old },
        );
    }
    if !found {
        put(&mut text, name.as_bytes(), value.as_bytes());
    }
    text
}

/// A property text without one of its pairs.
pub(super) fn without(properties: &[u8], name: &str) -> Vec<u8> {
    let mut text = Vec::with_capacity(properties.len());
    for (known, value) in bindery_protocol::message::properties::pairs(properties) {
        if known != name.as_bytes() {
            put(&mut text, known, value);
        }
    }
    text
}

fn put(text: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    text.extend_from_slice(name);
    text.push(1);
    text.extend_from_slice(value);
    text.push(2);
}

/// `CHECK_IMMUNITY_TIME_IN_SECONDS` in milliseconds; what is absent, no number, or -1 stands for `transactionTimeOut`
/// (`TransactionalMessageUtil.getImmunityTime` of Apache `RocketMQ` 5.3.3).
pub(crate) fn immunity_millis(text: Option<&str>, config: &BrokerConfig) -> i64 {
    match number::<i64>(text) {
        None | Some(-1) => millis(config.transaction_time_out),
        Some(seconds) => seconds.saturating_mul(1000),
    }
}

/// Milliseconds of the configuration as a span between two times.
pub(super) fn millis(configured: u64) -> i64 {
    i64::try_from(configured).unwrap_or(i64::MAX)
}

fn text<'a>(record: &RecordView<'a>, name: &str) -> Option<&'a str> {
    std::str::from_utf8(record.property(name)?).ok()
}

fn number<T: std::str::FromStr>(text: Option<&str>) -> Option<T> {
    text?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_for_checks_is_what_they_add() {
        let mut text = b"a\x011\x02".to_vec();
        let before = text.len();
        for (name, value) in [
            (
                property::TRANSACTION_CHECK_TIMES,
                u32::MAX.to_string().as_str(),
            ),
            (
                property::TRAN_PREPARED_QUEUE_OFFSET,
                i64::MAX.to_string().as_str(),
            ),
            (property::WAIT, "false"),
        ] {
            text = with(&text, name, value);
        }
        assert_eq!(text.len() - before, ROOM_FOR_CHECKS);
    }

    #[test]
    fn a_pair_is_replaced_where_it_stands_or_added() {
        assert_eq!(with(b"a\x011\x02b\x012", "a", "3"), b"a\x013\x02b\x012\x02");
        assert_eq!(with(b"a\x011\x02", "b", "2"), b"a\x011\x02b\x012\x02");
        assert_eq!(with(b"", "b", "2"), b"b\x012\x02");
    }

    #[test]
    fn an_immunity_that_is_no_number_is_the_usual_timeout() {
        let config = BrokerConfig::default();
        for (text, immunity) in [
            (None, 6000),
            (Some("-1"), 6000),
            (Some("soon"), 6000),
            (Some(" 20 "), 20_000),
            (Some("0"), 0),
        ] {
            assert_eq!(immunity_millis(text, &config), immunity, "{text:?}");
        }
    }
}
