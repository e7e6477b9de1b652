//! The record: a message as it lies in the commit log and travels in the answers to pulls and queries.
//!
//! ```text
//! totalSize magic bodyCRC queueId flag queueOffset physicalOffset sysFlag bornTimestamp bornHost storeTimestamp
//! storeHost reconsumeTimes preparedTransactionOffset bodyLength body topicLength topic propertiesLength properties
//!
//! NewMessage ──encode──▶ bytes (offsets and store time still 0) ──patch──▶ record
//! record ──RecordView::parse──▶ borrowed fields        record ──decode──▶ StoredMessage (owned)
//! ```
//! All integers big endian. Layout of Apache RocketMQ 5.3.3 (`MessageExtEncoder`, `MessageDecoder`).

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, BufMut, Bytes};

use super::compress::{self, BodyError};
use super::properties::{self, Properties, property};
use super::sysflag::SysFlag;
use super::{PhysicalOffset, QueueOffset, id};

/// Magic of a record whose topic length takes one byte.
pub const MAGIC_V1: i32 = 0xDAA3_20A7_u32.cast_signed();
/// Magic of a record whose topic length takes two bytes (topics longer than 127 bytes).
pub const MAGIC_V2: i32 = 0xDAA3_20AB_u32.cast_signed();
/// Magic of the blank that closes a commit-log file.
pub const MAGIC_BLANK: i32 = 0xCBD4_3194_u32.cast_signed();
/// The longest properties text, in bytes.
pub const MAX_PROPERTIES: usize = 32_767;
/// The longest topic whose length fits the first record format, in bytes.
pub const MAX_TOPIC_V1: usize = 127;

/// The record's fields up to the born host, in order: name and width in bytes. After them widths depend on the data.
pub const LAYOUT: [(Field, usize); 10] = [
    (Field::TotalSize, 4),
    (Field::Magic, 4),
    (Field::BodyCrc, 4),
    (Field::QueueId, 4),
    (Field::Flag, 4),
    (Field::QueueOffset, 8),
    (Field::PhysicalOffset, 8),
    (Field::SysFlag, 4),
    (Field::BornTimestamp, 8),
    (Field::BornHost, 8),
];

/// Fields with a fixed place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Whole record in bytes, this field included.
    TotalSize,
    /// [`MAGIC_V1`], [`MAGIC_V2`] or [`MAGIC_BLANK`].
    Magic,
    /// CRC-32 of the stored body, without its highest bit.
    BodyCrc,
    /// Queue id.
    QueueId,
    /// The user's flag.
    Flag,
    /// Position in the queue.
    QueueOffset,
    /// Position in the commit log.
    PhysicalOffset,
    /// See [`SysFlag`].
    SysFlag,
    /// The producer's clock, milliseconds since 1970.
    BornTimestamp,
    /// Address and port of the producer (8 bytes, 20 for IPv6).
    BornHost,
}

/// Where `field` begins, counted from the first byte of the record.
#[must_use]
pub const fn position(field: Field) -> usize {
    let mut at = 0;
    let mut index = 0;
    while index < LAYOUT.len() {
        if LAYOUT[index].0 as usize == field as usize {
            return at;
        }
        at += LAYOUT[index].1;
        index += 1;
    }
    at
}

const QUEUE_OFFSET_AT: usize = position(Field::QueueOffset);
const PHYSICAL_OFFSET_AT: usize = position(Field::PhysicalOffset);
const BORN_HOST_AT: usize = position(Field::BornHost);
/// Bytes of a record with two IPv4 hosts and a one-byte topic length, without body, topic and properties.
pub const FIXED_SIZE: usize = 91;
const V6_EXTRA: usize = 12;

/// A message about to be stored. Offsets and store time are not known yet: [`patch`] fills them in.
#[derive(Debug, Clone, Copy)]
pub struct NewMessage<'a> {
    /// The topic, UTF-8.
    pub topic: &'a str,
    /// The queue, from 0.
    pub queue_id: i32,
    /// The user's flag, not interpreted.
    pub flag: i32,
    /// The system flag; the bits for IPv6 hosts are set by [`encode`] itself.
    pub sys_flag: SysFlag,
    /// The producer's clock, milliseconds since 1970.
    pub born_timestamp: i64,
    /// The producer's address.
    pub born_host: SocketAddr,
    /// The broker's address.
    pub store_host: SocketAddr,
    /// How often the message was given back by consumers.
    pub reconsume_times: i32,
    /// Physical offset of the half message, for a committed one; otherwise 0.
    pub prepared_transaction_offset: i64,
    /// The body as sent (compressed if the system flag says so).
    pub body: &'a [u8],
    /// The properties text, see [`super::properties`].
    pub properties: &'a [u8],
}

/// Why a message can't be written as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The properties text is longer than [`MAX_PROPERTIES`].
    #[error("the properties take {len} bytes, at most {MAX_PROPERTIES} are possible")]
    PropertiesTooLong {
        /// Their length in bytes.
        len: usize,
    },
    /// The topic is longer than 32,767 bytes.
    #[error("the topic takes {len} bytes")]
    TopicTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The whole record is longer than a 32-bit length.
    #[error("the body takes {len} bytes")]
    BodyTooLong {
        /// Its length in bytes.
        len: usize,
    },
}

/// Bytes that are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Fewer bytes than the record needs.
    #[error("the record is cut short: {have} bytes of {needed}")]
    Short {
        /// How many bytes the record needs, as far as known.
        needed: usize,
        /// How many there are.
        have: usize,
    },
    /// The blank at the end of a commit-log file; the rest of the file holds nothing.
    #[error("the end of a commit-log file")]
    Blank {
        /// What the blank's size field says.
        size: i32,
    },
    /// Neither a record nor a blank begins here.
    #[error("no record begins with magic {found:#010x}")]
    Magic {
        /// The four bytes where the magic should be.
        found: i32,
    },
    /// The lengths of the fields don't add up to the record's size.
    #[error("the fields take other than the {total} bytes of the record")]
    Lengths {
        /// What the size field says, in bytes.
        total: usize,
    },
    /// The body's checksum differs.
    #[error("the body's checksum is {found:#010x}, the record says {stored:#010x}")]
    Crc {
        /// What the size field says, in bytes.
        total: usize,
        /// What the body gives.
        found: i32,
        /// What the record says.
        stored: i32,
    },
}

/// Size in bytes of the record that [`encode`] will write.
#[must_use]
pub fn encoded_len(message: &NewMessage<'_>) -> usize {
    FIXED_SIZE
        + usize::from(message.topic.len() > MAX_TOPIC_V1)
        + if message.born_host.is_ipv6() {
            V6_EXTRA
        } else {
            0
        }
        + if message.store_host.is_ipv6() {
            V6_EXTRA
        } else {
            0
        }
        + message.body.len()
        + message.topic.len()
        + message.properties.len()
}

/// Appends the record of `message` to `into`, with zeros for queue offset, physical offset and store time; gives back
/// its size in bytes. The second record format is chosen for topics longer than 127 bytes.
///
/// # Errors
/// Lengths that the format can't express; nothing is written then.
pub fn encode(message: &NewMessage<'_>, into: &mut impl BufMut) -> Result<usize, EncodeError> {
    let (topic, body, text) = (message.topic.as_bytes(), message.body, message.properties);
    let Ok(text_length) = i16::try_from(text.len()) else {
        return Err(EncodeError::PropertiesTooLong { len: text.len() });
    };
    let Ok(topic_length) = i16::try_from(topic.len()) else {
        return Err(EncodeError::TopicTooLong { len: topic.len() });
    };
    let size = encoded_len(message);
    let (Ok(total), Ok(body_length)) = (i32::try_from(size), i32::try_from(body.len())) else {
        return Err(EncodeError::BodyTooLong { len: body.len() });
    };
    let short_topic = u8::try_from(topic.len())
        .ok()
        .filter(|_| topic.len() <= MAX_TOPIC_V1);
    into.put_i32(total);
    into.put_i32(if short_topic.is_some() {
        MAGIC_V1
    } else {
        MAGIC_V2
    });
    into.put_i32(body_crc(body));
    into.put_i32(message.queue_id);
    into.put_i32(message.flag);
    into.put_i64(0);
    into.put_i64(0);
    into.put_i32(host_bits(message).0);
    into.put_i64(message.born_timestamp);
    put_host(message.born_host, into);
    into.put_i64(0);
    put_host(message.store_host, into);
    into.put_i32(message.reconsume_times);
    into.put_i64(message.prepared_transaction_offset);
    into.put_i32(body_length);
    into.put_slice(body);
    match short_topic {
        Some(length) => into.put_u8(length),
        None => into.put_i16(topic_length),
    }
    into.put_slice(topic);
    into.put_i16(text_length);
    into.put_slice(text);
    Ok(size)
}

/// The checksum of a stored body: CRC-32 (IEEE) without the highest bit; 0 for an empty body.
#[must_use]
pub fn body_crc(body: &[u8]) -> i32 {
    (crc32fast::hash(body) & 0x7FFF_FFFF).cast_signed()
}

fn host_bits(message: &NewMessage<'_>) -> SysFlag {
    let hosts = [
        (message.born_host, SysFlag::BORN_HOST_V6),
        (message.store_host, SysFlag::STORE_HOST_V6),
    ];
    hosts
        .into_iter()
        .fold(message.sys_flag, |flag, (host, bit)| {
            if host.is_ipv6() {
                flag.with(bit)
            } else {
                flag.without(bit)
            }
        })
}

fn put_host(host: SocketAddr, into: &mut impl BufMut) {
    match host.ip() {
        IpAddr::V4(ip) => into.put_slice(&ip.octets()),
        IpAddr::V6(ip) => into.put_slice(&ip.octets()),
    }
    into.put_i32(i32::from(host.port()));
}

/// Fills in what the append decides: `record` begins with a record made by [`encode`].
///
/// Bytes that are too short to be one are left alone.
pub fn patch(
    record: &mut [u8],
    queue_offset: QueueOffset,
    physical_offset: PhysicalOffset,
    store_timestamp: i64,
) {
    if record.len() < FIXED_SIZE {
        return;
    }
    write_i64(record, QUEUE_OFFSET_AT, queue_offset.0);
    write_i64(record, PHYSICAL_OFFSET_AT, physical_offset.0);
    write_i64(
        record,
        store_timestamp_at(sys_flag_of(record)),
        store_timestamp,
    );
}

const fn store_timestamp_at(flag: SysFlag) -> usize {
    BORN_HOST_AT + host_width(flag, SysFlag::BORN_HOST_V6)
}

const fn host_width(flag: SysFlag, bit: SysFlag) -> usize {
    if flag.contains(bit) { 20 } else { 8 }
}

fn sys_flag_of(record: &[u8]) -> SysFlag {
    SysFlag(read_i32(record, position(Field::SysFlag)))
}

fn write_i64(record: &mut [u8], at: usize, value: i64) {
    if let Some(place) = record.get_mut(at..at + 8) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// Big-endian integer at `at`; 0 if the bytes end before.
fn read_i32(record: &[u8], at: usize) -> i32 {
    record
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |bytes| i32::from_be_bytes(*bytes))
}

fn read_i64(record: &[u8], at: usize) -> i64 {
    record
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// A record seen where it lies: fields are read on demand, nothing is copied.
#[derive(Debug, Clone, Copy)]
pub struct RecordView<'a> {
    record: &'a [u8],
    sys_flag: SysFlag,
    body_at: usize,
    body_end: usize,
    topic_at: usize,
    topic_end: usize,
}

impl<'a> RecordView<'a> {
    /// Looks at the record that begins with `bytes`; what follows it is not touched. Lengths are checked, the body's
    /// checksum is not (see [`RecordView::check_crc`]).
    ///
    /// # Errors
    /// Every [`RecordError`] but [`RecordError::Crc`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let have = bytes.len();
        if have < 8 {
            return Err(RecordError::Short { needed: 8, have });
        }
        let (size, magic) = (read_i32(bytes, 0), read_i32(bytes, 4));
        if magic == MAGIC_BLANK {
            return Err(RecordError::Blank { size });
        }
        if magic != MAGIC_V1 && magic != MAGIC_V2 {
            return Err(RecordError::Magic { found: magic });
        }
        // A negative size is as far off as one beyond all bytes.
        let total = usize::try_from(size).unwrap_or(usize::MAX);
        let record = bytes.get(..total).ok_or(RecordError::Short {
            needed: total,
            have,
        })?;
        Self::fields(record, magic).ok_or(RecordError::Lengths { total })
    }

    /// `None` when the variable lengths don't add up to the record's size.
    fn fields(record: &'a [u8], magic: i32) -> Option<Self> {
        if record.len() < FIXED_SIZE {
            return None;
        }
        let sys_flag = sys_flag_of(record);
        let hosts = host_width(sys_flag, SysFlag::BORN_HOST_V6)
            + host_width(sys_flag, SysFlag::STORE_HOST_V6);
        // Store time, reconsume times and prepared transaction offset lie between the hosts and the body.
        let mut rest = record.get(BORN_HOST_AT + hosts + 20..)?;
        let body_length = usize::try_from(rest.try_get_i32().ok()?).ok()?;
        let body_at = record.len() - rest.len();
        rest = rest.get(body_length..)?;
        let topic_length = if magic == MAGIC_V1 {
            usize::from(rest.try_get_u8().ok()?)
        } else {
            usize::try_from(rest.try_get_i16().ok()?).ok()?
        };
        let topic_at = record.len() - rest.len();
        rest = rest.get(topic_length..)?;
        let properties_length = usize::try_from(rest.try_get_i16().ok()?).ok()?;
        (rest.len() == properties_length).then_some(Self {
            record,
            sys_flag,
            body_at,
            body_end: body_at + body_length,
            topic_at,
            topic_end: topic_at + topic_length,
        })
    }

    /// Compares the body with its checksum.
    ///
    /// # Errors
    /// [`RecordError::Crc`].
    pub fn check_crc(&self) -> Result<(), RecordError> {
        let (found, stored) = (body_crc(self.body()), self.body_crc());
        let total = self.size();
        // A record without a body carries no checksum worth comparing (Java skips it as well).
        if found == stored || self.body().is_empty() {
            Ok(())
        } else {
            Err(RecordError::Crc {
                total,
                found,
                stored,
            })
        }
    }

    /// The whole record.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.record
    }

    /// Size of the record in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.record.len()
    }

    /// Checksum of the stored body.
    #[must_use]
    pub fn body_crc(&self) -> i32 {
        read_i32(self.record, position(Field::BodyCrc))
    }

    /// Queue id.
    #[must_use]
    pub fn queue_id(&self) -> i32 {
        read_i32(self.record, position(Field::QueueId))
    }

    /// The user's flag.
    #[must_use]
    pub fn flag(&self) -> i32 {
        read_i32(self.record, position(Field::Flag))
    }

    /// Position in the queue.
    #[must_use]
    pub fn queue_offset(&self) -> QueueOffset {
        QueueOffset(read_i64(self.record, QUEUE_OFFSET_AT))
    }

    /// Position in the commit log, as the record says.
    #[must_use]
    pub fn physical_offset(&self) -> PhysicalOffset {
        PhysicalOffset(read_i64(self.record, PHYSICAL_OFFSET_AT))
    }

    /// System flag.
    #[must_use]
    pub fn sys_flag(&self) -> SysFlag {
        self.sys_flag
    }

    /// The producer's clock, milliseconds since 1970.
    #[must_use]
    pub fn born_timestamp(&self) -> i64 {
        read_i64(self.record, position(Field::BornTimestamp))
    }

    /// The producer's address.
    #[must_use]
    pub fn born_host(&self) -> SocketAddr {
        read_host(
            self.record,
            BORN_HOST_AT,
            self.sys_flag.contains(SysFlag::BORN_HOST_V6),
        )
    }

    /// The broker's clock when it stored the message, milliseconds since 1970.
    #[must_use]
    pub fn store_timestamp(&self) -> i64 {
        read_i64(self.record, store_timestamp_at(self.sys_flag))
    }

    /// The broker's address.
    #[must_use]
    pub fn store_host(&self) -> SocketAddr {
        let at = store_timestamp_at(self.sys_flag) + 8;
        read_host(
            self.record,
            at,
            self.sys_flag.contains(SysFlag::STORE_HOST_V6),
        )
    }

    /// How often consumers gave the message back.
    #[must_use]
    pub fn reconsume_times(&self) -> i32 {
        // Right before the body's length: reconsume times (4), prepared transaction offset (8).
        read_i32(self.record, self.body_at - 16)
    }

    /// Physical offset of the half message, for a committed one.
    #[must_use]
    pub fn prepared_transaction_offset(&self) -> i64 {
        read_i64(self.record, self.body_at - 12)
    }

    /// The body as stored.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        &self.record[self.body_at..self.body_end]
    }

    /// The topic's bytes.
    #[must_use]
    pub fn topic(&self) -> &'a [u8] {
        &self.record[self.topic_at..self.topic_end]
    }

    /// The topic as text; bytes that are not UTF-8 are replaced, as Java does.
    #[must_use]
    pub fn topic_text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.topic())
    }

    /// The properties text.
    #[must_use]
    pub fn properties(&self) -> &'a [u8] {
        &self.record[self.topic_end + 2..]
    }

    /// The value of one property.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&'a [u8]> {
        properties::find(self.properties(), name)
    }
}

fn read_host(record: &[u8], at: usize, v6: bool) -> SocketAddr {
    let rest = record.get(at..).unwrap_or_default();
    let (ip, width) = if v6 {
        (
            rest.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
            16,
        )
    } else {
        (
            rest.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
            4,
        )
    };
    // The port field is four bytes wide; what does not fit a port is cut like Java's decoder would refuse it.
    let port = u16::try_from(read_i32(rest, width)).unwrap_or(0);
    SocketAddr::new(ip.unwrap_or(IpAddr::from([0; 4])), port)
}

/// A message read back from a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// The topic.
    pub topic: String,
    /// The queue, from 0.
    pub queue_id: i32,
    /// The user's flag.
    pub flag: i32,
    /// Position in the queue.
    pub queue_offset: QueueOffset,
    /// Position in the commit log.
    pub physical_offset: PhysicalOffset,
    /// System flag.
    pub sys_flag: SysFlag,
    /// The producer's clock, milliseconds since 1970.
    pub born_timestamp: i64,
    /// The producer's address.
    pub born_host: SocketAddr,
    /// The broker's clock when it stored the message, milliseconds since 1970.
    pub store_timestamp: i64,
    /// The broker's address.
    pub store_host: SocketAddr,
    /// How often consumers gave the message back.
    pub reconsume_times: i32,
    /// Physical offset of the half message, for a committed one.
    pub prepared_transaction_offset: i64,
    /// The body as stored; see [`StoredMessage::decompressed_body`].
    pub body: Bytes,
    /// Checksum of the stored body.
    pub body_crc: i32,
    /// All properties.
    pub properties: Properties,
}

impl StoredMessage {
    /// The body as the producer gave it.
    ///
    /// # Errors
    /// [`BodyError`] when the compression is unknown or the bytes are damaged.
    pub fn decompressed_body(&self) -> Result<Bytes, BodyError> {
        if !self.sys_flag.is_compressed() {
            return Ok(self.body.clone());
        }
        let Some(compression) = self.sys_flag.compression() else {
            return Err(BodyError::UnknownCompression {
                sys_flag: self.sys_flag.0,
            });
        };
        compress::inflate(compression, &self.body).map(Bytes::from)
    }

    /// The client's message id.
    #[must_use]
    pub fn uniq_key(&self) -> Option<&str> {
        self.properties.get(property::UNIQ_KEY)
    }

    /// The tag.
    #[must_use]
    pub fn tags(&self) -> Option<&str> {
        self.properties.get(property::TAGS)
    }

    /// The index keys, separated by blanks.
    #[must_use]
    pub fn keys(&self) -> Option<&str> {
        self.properties.get(property::KEYS)
    }

    /// The delay level; 0 for none.
    #[must_use]
    pub fn delay_level(&self) -> i32 {
        let level = self.properties.get(property::DELAY);
        level.and_then(|level| level.parse().ok()).unwrap_or(0)
    }

    /// The broker's message id.
    #[must_use]
    pub fn offset_msg_id(&self) -> String {
        id::offset_msg_id(self.store_host, self.physical_offset)
    }

    /// The message id a consumer shows: the client's, else the broker's.
    #[must_use]
    pub fn msg_id(&self) -> Cow<'_, str> {
        self.uniq_key()
            .map_or_else(|| Cow::Owned(self.offset_msg_id()), Cow::Borrowed)
    }
}

/// Reads the record that `bytes` begins with; gives back the message and the record's size. The body is a slice of
/// `bytes`, not a copy. Checksums are not compared.
///
/// # Errors
/// See [`RecordView::parse`].
pub fn decode(bytes: &Bytes) -> Result<(StoredMessage, usize), RecordError> {
    let view = RecordView::parse(bytes)?;
    let message = StoredMessage {
        topic: view.topic_text().into_owned(),
        queue_id: view.queue_id(),
        flag: view.flag(),
        queue_offset: view.queue_offset(),
        physical_offset: view.physical_offset(),
        sys_flag: view.sys_flag(),
        born_timestamp: view.born_timestamp(),
        born_host: view.born_host(),
        store_timestamp: view.store_timestamp(),
        store_host: view.store_host(),
        reconsume_times: view.reconsume_times(),
        prepared_transaction_offset: view.prepared_transaction_offset(),
        body: bytes.slice(view.body_at..view.body_end),
        body_crc: view.body_crc(),
        properties: Properties::parse_bytes(view.properties()),
    };
    Ok((message, view.size()))
}

/// Reads all records of an answer's body, which lie back to back; stops cleanly at a truncated or damaged tail.
#[must_use]
pub fn decode_all(mut bytes: Bytes) -> Vec<StoredMessage> {
    let mut messages = Vec::new();
    while let Ok((message, size)) = decode(&bytes) {
        messages.push(message);
        bytes.advance(size);
    }
    messages
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use bytes::BytesMut;
    use proptest::prelude::*;

    const POSITIONS: [(Field, usize); 7] = [
        (Field::BodyCrc, 8),
        (Field::QueueId, 12),
        (Field::Flag, 16),
        (Field::QueueOffset, 20),
        (Field::PhysicalOffset, 28),
        (Field::SysFlag, 36),
        (Field::BornHost, 48),
    ];

    #[test]
    fn fixed_fields_lie_where_apache_puts_them() {
        for (field, at) in POSITIONS {
            assert_eq!(position(field), at, "{field:?}");
        }
    }

    fn hosts() -> impl Strategy<Value = SocketAddr> {
        any::<(IpAddr, u16)>().prop_map(SocketAddr::from)
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back(
            topic in "[a-zA-Z0-9_%-]{1,200}", queue_id: i32, flag: i32, bits in 0_i32..16, born_timestamp: i64,
            born_host in hosts(), store_host in hosts(), reconsume_times: i32, prepared: i64,
            body in proptest::collection::vec(any::<u8>(), 0..300),
            properties in proptest::collection::vec(("[a-z]{1,8}", "[a-z0-9]{1,20}"), 0..8),
            queue_offset: i64, physical_offset: i64, store_timestamp: i64,
        ) {
            let properties: Properties = properties.into_iter().collect();
            let text = properties.encode();
            let new = NewMessage {
                topic: &topic, queue_id, flag, sys_flag: SysFlag(bits), born_timestamp, born_host, store_host,
                reconsume_times, prepared_transaction_offset: prepared, body: &body, properties: text.as_bytes(),
            };
            let mut bytes = BytesMut::new();
            let size = encode(&new, &mut bytes).unwrap();
            prop_assert_eq!(size, bytes.len());
            patch(&mut bytes, QueueOffset(queue_offset), PhysicalOffset(physical_offset), store_timestamp);
            RecordView::parse(&bytes).unwrap().check_crc().unwrap();
            let (read, length) = decode(&bytes.freeze()).unwrap();
            prop_assert_eq!(length, size);
            prop_assert_eq!(&read.topic, &topic);
            prop_assert_eq!(read.properties, properties);
            prop_assert_eq!(&read.body[..], &body[..]);
            prop_assert_eq!((read.born_host, read.store_host), (born_host, store_host));
            prop_assert_eq!(
                (read.queue_id, read.flag, read.reconsume_times, read.prepared_transaction_offset),
                (queue_id, flag, reconsume_times, prepared)
            );
            prop_assert_eq!(
                (read.queue_offset.0, read.physical_offset.0, read.born_timestamp, read.store_timestamp),
                (queue_offset, physical_offset, born_timestamp, store_timestamp)
            );
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), v2: bool) {
            let mut bytes = bytes;
            if bytes.len() >= 8 {
                let size = i32::try_from(bytes.len()).unwrap();
                bytes[..4].copy_from_slice(&size.to_be_bytes());
                bytes[4..8].copy_from_slice(&(if v2 { MAGIC_V2 } else { MAGIC_V1 }).to_be_bytes());
            }
            let _ = decode_all(Bytes::from(bytes)).len();
        }
    }
}
