//! Message properties: name and value pairs in one text, and the names that mean something to RocketMQ.
//!
//! ```text
//! name 0x01 value 0x02 name 0x01 value 0x02 …        (a missing final 0x02 is tolerated)
//! ```
//! [`Properties`] is the owned map; [`pairs`], [`find`] and [`delete`] work on the text itself without allocating a map.
//! Mirrors `MessageDecoder.string2messageProperties` and `messageProperties2String` of Apache RocketMQ 5.3.3.

use indexmap::IndexMap;

/// Ends a name.
pub const NAME_SEPARATOR: u8 = 1;
/// Ends a pair.
pub const PAIR_SEPARATOR: u8 = 2;

/// The names with a meaning of their own.
pub mod property {
    macro_rules! names {
        ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
            $($(#[$doc])* pub const $name: &str = $text;)*
        };
    }

    names! {
        /// Index keys, separated by one blank.
        KEYS = "KEYS";
        /// The tag (one).
        TAGS = "TAGS";
        /// `true` or `false`: whether the producer waits for flush and replication.
        WAIT = "WAIT";
        /// Delay level, 1 to 18 by default.
        DELAY = "DELAY";
        /// The client's message id.
        UNIQ_KEY = "UNIQ_KEY";
        /// The broker's region, `DefaultRegion`.
        MSG_REGION = "MSG_REGION";
        /// Whether the message is traced.
        TRACE_ON = "TRACE_ON";
        /// The broker's cluster.
        CLUSTER = "CLUSTER";
        /// The original topic of a retried message.
        RETRY_TOPIC = "RETRY_TOPIC";
        /// The true topic of a delayed, half or timer message.
        REAL_TOPIC = "REAL_TOPIC";
        /// The true queue of a delayed, half or timer message.
        REAL_QID = "REAL_QID";
        /// The broker's id of the first version of a retried message.
        ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID";
        /// Number of attempts, set by clients that send a retry themselves.
        RECONSUME_TIME = "RECONSUME_TIME";
        /// Highest number of attempts, set by clients that send a retry themselves.
        MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES";
        /// The topic a dead letter came from.
        DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC";
        /// The message a dead letter came from.
        DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID";
        /// Smallest offset of the queue; filled in by the pulling client, never on the wire.
        MIN_OFFSET = "MIN_OFFSET";
        /// Largest offset of the queue; filled in by the pulling client, never on the wire.
        MAX_OFFSET = "MAX_OFFSET";
        /// `true` on a half message.
        TRAN_MSG = "TRAN_MSG";
        /// Producer group of a half message.
        PGROUP = "PGROUP";
        /// How often a half message was checked back.
        TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES";
        /// Seconds before a half message is checked back the first time.
        CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS";
        /// Queue offset of the half message.
        TRAN_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET";
        /// Transaction id.
        TRANSACTION_ID = "__transactionId__";
        /// When the client began to consume.
        CONSUME_START_TIME = "CONSUME_START_TIME";
        /// Namespace of the producer.
        INSTANCE_ID = "INSTANCE_ID";
        /// Request and reply: which request this answers.
        CORRELATION_ID = "CORRELATION_ID";
        /// Request and reply: the client that waits.
        REPLY_TO_CLIENT = "REPLY_TO_CLIENT";
        /// Request and reply: how long it waits, in milliseconds.
        TTL = "TTL";
        /// Request and reply: `reply`.
        MSG_TYPE = "MSG_TYPE";
        /// Request and reply: when the broker pushed the answer.
        PUSH_REPLY_TIME = "PUSH_REPLY_TIME";
        /// When the message arrived at the broker.
        ARRIVE_TIME = "ARRIVE_TIME";
        /// Delay in seconds, asked by the producer.
        TIMER_DELAY_SEC = "TIMER_DELAY_SEC";
        /// Delay in milliseconds, asked by the producer.
        TIMER_DELAY_MS = "TIMER_DELAY_MS";
        /// Due time in milliseconds since 1970, asked by the producer.
        TIMER_DELIVER_MS = "TIMER_DELIVER_MS";
        /// Due time kept by the broker.
        TIMER_OUT_MS = "TIMER_OUT_MS";
        /// When the timer took the message.
        TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS";
        /// When the timer released the message.
        TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS";
        /// How often the timer rolled the message on.
        TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES";
        /// Id of a timer message to be recalled.
        TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY";
        /// Delay level served by the timer.
        TIMER_DELAY_LEVEL = "TIMER_DELAY_LEVEL";
        /// POP receipt; stripped from incoming sends.
        POP_CK = "POP_CK";
        /// POP receipt's offset.
        POP_CK_OFFSET = "POP_CK_OFFSET";
        /// When the message was popped first.
        FIRST_POP_TIME = "1ST_POP_TIME";
        /// Ordering key.
        SHARDING_KEY = "__SHARDINGKEY";
        /// Number of messages of an inner batch.
        INNER_NUM = "INNER_NUM";
        /// First queue offset of an inner batch.
        INNER_BASE = "INNER_BASE";
        /// Light message queues the message also goes to, separated by commas.
        INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH";
        /// The offsets in those queues.
        INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET";
        /// Checksum over the whole record.
        CRC32 = "__CRC32#";
        /// Address the message was born at, kept across proxies.
        BORN_HOST = "__BORNHOST";
        /// Time the message was born at, kept across proxies.
        BORN_TIMESTAMP = "BORN_TIMESTAMP";
        /// Marks a duplicated message.
        DUP_INFO = "DUP_INFO";
        /// Historic.
        EXTEND_UNIQ_INFO = "EXTEND_UNIQ_INFO";
        /// Historic.
        BUYER_ID = "BUYER_ID";
        /// Historic.
        TRANSFER_FLAG = "TRANSFER_FLAG";
        /// Historic.
        CORRECTION_FLAG = "CORRECTION_FLAG";
        /// Historic.
        MQ2_FLAG = "MQ2_FLAG";
    }

    /// Names a user property must not have (`MessageConst.STRING_HASH_SET`).
    pub const RESERVED: &[&str] = &[
        TRACE_ON,
        MSG_REGION,
        KEYS,
        TAGS,
        WAIT,
        DELAY,
        RETRY_TOPIC,
        REAL_TOPIC,
        REAL_QID,
        TRAN_MSG,
        PGROUP,
        MIN_OFFSET,
        MAX_OFFSET,
        BUYER_ID,
        ORIGIN_MESSAGE_ID,
        TRANSFER_FLAG,
        CORRECTION_FLAG,
        MQ2_FLAG,
        RECONSUME_TIME,
        UNIQ_KEY,
        MAX_RECONSUME_TIMES,
        CONSUME_START_TIME,
        POP_CK,
        POP_CK_OFFSET,
        FIRST_POP_TIME,
        TRAN_PREPARED_QUEUE_OFFSET,
        DUP_INFO,
        EXTEND_UNIQ_INFO,
        INSTANCE_ID,
        CORRELATION_ID,
        REPLY_TO_CLIENT,
        TTL,
        ARRIVE_TIME,
        PUSH_REPLY_TIME,
        CLUSTER,
        MSG_TYPE,
        INNER_MULTI_QUEUE_OFFSET,
        TIMER_DELAY_MS,
        TIMER_DELAY_SEC,
        TIMER_DELIVER_MS,
        TIMER_ENQUEUE_MS,
        TIMER_DEQUEUE_MS,
        TIMER_ROLL_TIMES,
        TIMER_OUT_MS,
        TIMER_DEL_UNIQKEY,
        TIMER_DELAY_LEVEL,
        BORN_HOST,
        BORN_TIMESTAMP,
        DLQ_ORIGIN_TOPIC,
        DLQ_ORIGIN_MESSAGE_ID,
        CRC32,
    ];

    /// Names by which a producer asks for a later delivery; a message has one of them.
    pub const DELAYS: [&str; 4] = [DELAY, TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS];
}

/// The properties of a message: an ordered map. Putting a name again keeps its place and takes the new value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    pairs: IndexMap<String, String>,
}

impl Properties {
    /// No properties.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a properties text. Pairs with an empty name or value, or without the separator, are dropped; of a name
    /// that comes twice the last value counts.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        pairs(text.as_bytes())
            // The separators are ASCII, so the pieces of a valid text are valid themselves.
            .map(|(name, value)| (lossy(name), lossy(value)))
            .collect()
    }

    /// [`Properties::parse`] for bytes from a peer or a disk; what is not UTF-8 is replaced, as Java does.
    #[must_use]
    pub fn parse_bytes(bytes: &[u8]) -> Self {
        Self::parse(&String::from_utf8_lossy(bytes))
    }

    /// The value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.get(name).map(String::as_str)
    }

    /// Whether there is a property of this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.pairs.contains_key(name)
    }

    /// Sets `name` to `value`; gives back what it was.
    pub fn put(&mut self, name: impl Into<String>, value: impl Into<String>) -> Option<String> {
        self.pairs.insert(name.into(), value.into())
    }

    /// Takes `name` out; the order of the others stays.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.pairs.shift_remove(name)
    }

    /// All pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The text form, with the final `0x02`.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::with_capacity(self.iter().map(|(n, v)| n.len() + v.len() + 2).sum());
        for (name, value) in self.iter() {
            text.push_str(name);
            text.push(char::from(NAME_SEPARATOR));
            text.push_str(value);
            text.push(char::from(PAIR_SEPARATOR));
        }
        text
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self {
            pairs: pairs.collect(),
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Walks the pairs of a properties text in order, duplicates included, without allocating.
pub fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|byte| *byte == PAIR_SEPARATOR)
        .filter_map(|pair| {
            let at = memchr::memchr(NAME_SEPARATOR, pair)?;
            let (name, value) = (&pair[..at], &pair[at + 1..]);
            (!name.is_empty() && !value.is_empty()).then_some((name, value))
        })
}

/// The value of `name` in a properties text; the last one if it comes twice.
#[must_use]
pub fn find<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    pairs(text)
        .filter_map(|(found, value)| (found == name.as_bytes()).then_some(value))
        .last()
}

/// The text without the pairs called `name`; the rest stays as it is.
#[must_use]
pub fn delete(text: &str, name: &str) -> String {
    text.split_inclusive(char::from(PAIR_SEPARATOR))
        .filter(|pair| {
            let found = pair.split(char::from(NAME_SEPARATOR)).next();
            found != Some(name) || !pair.contains(char::from(NAME_SEPARATOR))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_duplicate_wins_and_order_stays() {
        let properties = Properties::parse("a\u{1}1\u{2}b\u{1}2\u{2}a\u{1}3");
        assert_eq!(
            properties.iter().collect::<Vec<_>>(),
            [("a", "3"), ("b", "2")]
        );
        assert_eq!(properties.encode(), "a\u{1}3\u{2}b\u{1}2\u{2}");
        assert_eq!(find(b"a\x011\x02b\x012\x02a\x013", "a"), Some(&b"3"[..]));
    }

    #[test]
    fn names_may_be_taken_out() {
        let mut properties: Properties = [("a", "1"), ("b", "2")].into_iter().collect();
        assert_eq!(properties.remove("a").as_deref(), Some("1"));
        assert_eq!(properties.put("b", "3").as_deref(), Some("2"));
        assert_eq!(properties.len(), 1);
    }
}
