//! Sending: one message, a batch, a reply to a requester; and taking a timed message back.
//!
//! ```text
//! 10, 324       spelled-out names ┐
//! 310, 320, 325 letters a … n     ┴▶ SendHeader ─▶ store ─▶ SendReply
//! ```

use std::borrow::Cow;

use super::{FieldInfo, FieldKind, FieldValue, WireHeader};
use crate::frame::{ExtFields, ExtText, ExtWriter, HeaderError};

/// Codes 10 and 324 (spelled-out names), 310, 320 and 325 (letters): read from both, written as letters.
///
/// Written by hand, not as a table, because it is read for every message: the name's length and first byte choose the
/// field in one step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SendHeader<'a> {
    /// `a`: producer group.
    pub producer_group: Cow<'a, str>,
    /// `b`: topic.
    pub topic: Cow<'a, str>,
    /// `c`: the topic whose settings a topic gets that is created by this send, `TBW102`.
    pub default_topic: Cow<'a, str>,
    /// `d`: how many queues such a topic gets at most.
    pub default_topic_queue_nums: i32,
    /// `e`: queue; negative lets the broker choose.
    pub queue_id: i32,
    /// `f`: compression and transaction bits (protocol §7.2).
    pub sys_flag: i32,
    /// `g`: when the message was made, ms since 1970.
    pub born_timestamp: i64,
    /// `h`: the user's flag.
    pub flag: i32,
    /// `i`: properties, `name 0x01 value 0x02` repeated.
    pub properties: Option<Cow<'a, str>>,
    /// `j`: how often the message was retried, when a client sends to a retry topic.
    pub reconsume_times: Option<i32>,
    /// `k`: sent by a client in unit mode.
    pub unit_mode: Option<bool>,
    /// `l`: how often it may be retried, when a client sends to a retry topic.
    pub max_reconsume_times: Option<i32>,
    /// `m`: the body is a batch.
    pub batch: Option<bool>,
    /// `n`: name of the broker meant; Java 5 sends it.
    pub broker_name: Option<Cow<'a, str>>,
}

const NAMES: [&str; 14] = [
    "producerGroup",
    "topic",
    "defaultTopic",
    "defaultTopicQueueNums",
    "queueId",
    "sysFlag",
    "bornTimestamp",
    "flag",
    "properties",
    "reconsumeTimes",
    "unitMode",
    "maxReconsumeTimes",
    "batch",
    "bname",
];

const LETTERS: [&str; 14] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n",
];

/// Which field a name means, counted from `a` = 0.
fn position(name: ExtText<'_>) -> Option<usize> {
    match name.plain()? {
        [letter @ b'a'..=b'n'] => Some(usize::from(letter - b'a')),
        [_] => None,
        long => NAMES.iter().position(|known| known.as_bytes() == long),
    }
}

/// One row of [`SendHeader`]'s table.
const fn field(name: &'static str, mandatory: bool, kind: FieldKind) -> FieldInfo {
    FieldInfo {
        name,
        mandatory,
        kind,
    }
}

impl<'a> WireHeader<'a> for SendHeader<'a> {
    const FIELDS: &'static [FieldInfo] = &[
        field(NAMES[0], true, FieldKind::Text),
        field(NAMES[1], true, FieldKind::Text),
        field(NAMES[2], true, FieldKind::Text),
        field(NAMES[3], true, FieldKind::I32),
        field(NAMES[4], true, FieldKind::I32),
        field(NAMES[5], true, FieldKind::I32),
        field(NAMES[6], true, FieldKind::I64),
        field(NAMES[7], true, FieldKind::I32),
        field(NAMES[8], false, FieldKind::Text),
        field(NAMES[9], false, FieldKind::I32),
        field(NAMES[10], false, FieldKind::Bool),
        field(NAMES[11], false, FieldKind::I32),
        field(NAMES[12], false, FieldKind::Bool),
        field(NAMES[13], false, FieldKind::Text),
    ];

    fn read(fields: ExtFields<'a>) -> Result<Self, HeaderError> {
        let (mut group, mut topic, mut default_topic, mut default_queues) =
            (None, None, None, None);
        let (mut queue_id, mut sys_flag, mut born, mut flag) = (None, None, None, None);
        let mut header = Self::default();
        for (name, value) in fields {
            let Some(at) = position(name) else { continue };
            match at {
                0 => group = Some(value.text()),
                1 => topic = Some(value.text()),
                2 => default_topic = Some(value.text()),
                3 => default_queues = FieldValue::parse(NAMES[3], value)?,
                4 => queue_id = FieldValue::parse(NAMES[4], value)?,
                5 => sys_flag = FieldValue::parse(NAMES[5], value)?,
                6 => born = FieldValue::parse(NAMES[6], value)?,
                7 => flag = FieldValue::parse(NAMES[7], value)?,
                8 => header.properties = Some(value.text()),
                9 => header.reconsume_times = FieldValue::parse(NAMES[9], value)?,
                10 => header.unit_mode = FieldValue::parse(NAMES[10], value)?,
                11 => header.max_reconsume_times = FieldValue::parse(NAMES[11], value)?,
                // Not as other booleans: the C++ client sends a batch as one message, flagged `1`, and expects one.
                12 => header.batch = Some(value.text().eq_ignore_ascii_case("true")),
                _ => header.broker_name = Some(value.text()),
            }
        }
        Ok(Self {
            producer_group: mandatory(group, 0)?,
            topic: mandatory(topic, 1)?,
            default_topic: mandatory(default_topic, 2)?,
            default_topic_queue_nums: mandatory(default_queues, 3)?,
            queue_id: mandatory(queue_id, 4)?,
            sys_flag: mandatory(sys_flag, 5)?,
            born_timestamp: mandatory(born, 6)?,
            flag: mandatory(flag, 7)?,
            ..header
        })
    }

    /// Writes letters: what 310, 320 and 325 carry.
    fn write(&self, ext: &mut ExtWriter) {
        self.write_named(&LETTERS, ext);
    }
}

fn mandatory<T>(value: Option<T>, at: usize) -> Result<T, HeaderError> {
    value.ok_or(HeaderError::Missing { field: NAMES[at] })
}

impl SendHeader<'_> {
    /// Writes spelled-out names: what 10 and 324 carry.
    pub fn write_v1(&self, ext: &mut ExtWriter) {
        self.write_named(&NAMES, ext);
    }

    fn write_named(&self, names: &[&'static str; 14], ext: &mut ExtWriter) {
        self.producer_group.put(names[0], ext);
        self.topic.put(names[1], ext);
        self.default_topic.put(names[2], ext);
        self.default_topic_queue_nums.put(names[3], ext);
        self.queue_id.put(names[4], ext);
        self.sys_flag.put(names[5], ext);
        self.born_timestamp.put(names[6], ext);
        self.flag.put(names[7], ext);
        self.properties.put(names[8], ext);
        self.reconsume_times.put(names[9], ext);
        self.unit_mode.put(names[10], ext);
        self.max_reconsume_times.put(names[11], ext);
        self.batch.put(names[12], ext);
        self.broker_name.put(names[13], ext);
    }

    /// Copies what is borrowed from the frame.
    #[must_use]
    pub fn into_owned(self) -> SendHeader<'static> {
        SendHeader {
            producer_group: FieldValue::into_owned(self.producer_group),
            topic: FieldValue::into_owned(self.topic),
            default_topic: FieldValue::into_owned(self.default_topic),
            default_topic_queue_nums: self.default_topic_queue_nums,
            queue_id: self.queue_id,
            sys_flag: self.sys_flag,
            born_timestamp: self.born_timestamp,
            flag: self.flag,
            properties: FieldValue::into_owned(self.properties),
            reconsume_times: self.reconsume_times,
            unit_mode: self.unit_mode,
            max_reconsume_times: self.max_reconsume_times,
            batch: self.batch,
            broker_name: FieldValue::into_owned(self.broker_name),
        }
    }
}

header! {
    /// Answer to 10, 310, 320, 324 and 325.
    pub struct SendReply<'a> {
        /// Where the message lies: store address and physical offset in hex; a comma list for a batch.
        pub msg_id: Cow<'a, str>,
        /// The queue that took it.
        pub queue_id: i32,
        /// Its offset there; of the first message for a batch.
        pub queue_offset: i64,
        /// The unique key of the message, made by the broker if the sender gave none.
        pub transaction_id: Option<Cow<'a, str>>,
        /// The unique key of a batch as a whole.
        pub batch_uniq_id: Option<Cow<'a, str>>,
        /// What takes a timed message back (code 370).
        pub recall_handle: Option<Cow<'a, str>>,
        /// Region of the broker, `DefaultRegion`.
        #[wire("MSG_REGION")]
        pub region_id: Option<Cow<'a, str>>,
        /// Whether the sender may write traces; absent means yes.
        #[wire("TRACE_ON")]
        pub trace_on: Option<bool>,
    }
}

header! {
    /// 326: a reply on its way to its requester. The fields of a send, and what the broker knows about it.
    pub struct PushReplyHeader<'a> {
        /// Group of the replying producer.
        pub producer_group: Cow<'a, str>,
        /// The reply topic, `CLUSTER_REPLY_TOPIC`.
        pub topic: Cow<'a, str>,
        /// See [`SendHeader::default_topic`].
        pub default_topic: Cow<'a, str>,
        /// See [`SendHeader::default_topic_queue_nums`].
        pub default_topic_queue_nums: i32,
        /// See [`SendHeader::queue_id`].
        pub queue_id: i32,
        /// See [`SendHeader::sys_flag`].
        pub sys_flag: i32,
        /// See [`SendHeader::born_timestamp`].
        pub born_timestamp: i64,
        /// See [`SendHeader::flag`].
        pub flag: i32,
        /// See [`SendHeader::properties`].
        pub properties: Option<Cow<'a, str>>,
        /// See [`SendHeader::reconsume_times`].
        pub reconsume_times: Option<i32>,
        /// See [`SendHeader::unit_mode`].
        pub unit_mode: bool = false,
        /// Address of the replier, `ip:port`.
        pub born_host: Cow<'a, str>,
        /// Address of the broker, `ip:port`.
        pub store_host: Cow<'a, str>,
        /// When the broker took the reply, ms since 1970.
        pub store_timestamp: i64,
    }
}

header! {
    /// 370: take back a timed message that is not due yet.
    pub struct RecallHeader<'a> {
        /// Producer group.
        pub producer_group: Option<Cow<'a, str>>,
        /// Topic of the message.
        pub topic: Cow<'a, str>,
        /// From the answer to the send.
        pub recall_handle: Cow<'a, str>,
    }
}

header! {
    /// Answer to 370.
    pub struct RecallReply<'a> {
        /// The id of the message that cancels the timed one.
        pub msg_id: Cow<'a, str>,
        /// Region of the broker.
        #[wire("MSG_REGION")]
        pub region_id: Option<Cow<'a, str>>,
    }
}
