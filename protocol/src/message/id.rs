//! Message ids: the broker's, which says where a record lies, and the client's, which says who made it and when.
//!
//! ```text
//! offsetMsgId = hex(storeHost IP, port as 4 bytes, physical offset)                     32 or 56 characters
//! UNIQ_KEY    = hex(IP, pid u16, process hash i32, milliseconds into the month u32, counter u16)   likewise
//! ```
//! Layouts of `MessageDecoder.createMessageId` and `MessageClientIDSetter` of Apache RocketMQ 5.3.3.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Buf;
use chrono::{DateTime, Datelike, Days, Local, Months, NaiveTime, TimeZone};

use super::PhysicalOffset;

/// An id that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Neither 32 nor 56 characters.
    #[error("an id has 32 or 56 characters, {id:?} has {}", id.len())]
    Length {
        /// The text.
        id: String,
    },
    /// A character that is no hexadecimal digit.
    #[error("an id consists of hexadecimal digits: {id:?}")]
    Digit {
        /// The text.
        id: String,
    },
    /// A port above 65,535.
    #[error("the id {id:?} holds the port {port}")]
    Port {
        /// The text.
        id: String,
        /// The port field.
        port: u32,
    },
}

/// The broker's id of the record at `offset`: upper-case hex.
#[must_use]
pub fn offset_msg_id(store_host: SocketAddr, offset: PhysicalOffset) -> String {
    let mut bytes = Vec::with_capacity(28);
    put_ip(store_host.ip(), &mut bytes);
    bytes.extend(u32::from(store_host.port()).to_be_bytes());
    bytes.extend(offset.0.to_be_bytes());
    hex(&bytes)
}

/// Takes a broker's id apart; lower-case digits are accepted.
///
/// # Errors
/// [`IdError`] for anything that [`offset_msg_id`] could not have made. (Java accepts wrong digits and gives back
/// nonsense.)
pub fn parse_offset_msg_id(id: &str) -> Result<(SocketAddr, PhysicalOffset), IdError> {
    let bytes = unhex(id)?;
    let (ip, mut rest) = take_ip(&bytes, 12);
    let port = rest.get_u32();
    let offset = rest.get_i64();
    let Ok(port) = u16::try_from(port) else {
        return Err(IdError::Port {
            id: id.to_owned(),
            port,
        });
    };
    Ok((SocketAddr::new(ip, port), PhysicalOffset(offset)))
}

/// What a client's id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniqueId {
    /// The producer's address.
    pub ip: IpAddr,
    /// The lower 16 bits of its process id.
    pub pid: u16,
    /// A number that tells processes apart (Java: the class loader's hash).
    pub process_hash: u32,
    /// Milliseconds since the first of the month, 00:00 of the producer's local time.
    pub month_millis: u32,
    /// Number of the id in its process, wrapping.
    pub counter: u16,
}

impl UniqueId {
    /// Takes a client's id apart.
    ///
    /// # Errors
    /// [`IdError`] for a text of another length or with other characters than hexadecimal digits.
    pub fn decode(id: &str) -> Result<Self, IdError> {
        let bytes = unhex(id)?;
        let (ip, mut rest) = take_ip(&bytes, 12);
        Ok(Self {
            ip,
            pid: rest.get_u16(),
            process_hash: rest.get_u32(),
            month_millis: rest.get_u32(),
            counter: rest.get_u16(),
        })
    }

    /// The id as text, upper case.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(28);
        put_ip(self.ip, &mut bytes);
        bytes.extend(self.pid.to_be_bytes());
        bytes.extend(self.process_hash.to_be_bytes());
        bytes.extend(self.month_millis.to_be_bytes());
        bytes.extend(self.counter.to_be_bytes());
        hex(&bytes)
    }
}

/// Makes client ids (`UNIQ_KEY`). One per process is enough; shared between threads by reference.
///
/// The field that holds the class loader's hash in Java is random here, and the counter starts at random, so that
/// processes with the same address and pid (containers) don't make the same ids.
#[derive(Debug)]
pub struct UniqueIdGenerator {
    ip: IpAddr,
    pid: u16,
    process_hash: u32,
    counter: AtomicU16,
    month: Mutex<Month>,
}

/// The current month in milliseconds since 1970: `[start, end)`.
#[derive(Debug, Clone, Copy)]
struct Month {
    start: i64,
    end: i64,
}

impl UniqueIdGenerator {
    /// A generator for this process, which others see at `ip`.
    #[must_use]
    pub fn new(ip: IpAddr) -> Self {
        // RandomState is seeded by the operating system.
        let mut random = &RandomState::new().build_hasher().finish().to_be_bytes()[..];
        let [.., pid_high, pid_low] = std::process::id().to_be_bytes();
        Self {
            ip,
            pid: u16::from_be_bytes([pid_high, pid_low]),
            process_hash: random.get_u32(),
            counter: AtomicU16::new(random.get_u16()),
            month: Mutex::new(Month { start: 0, end: 0 }),
        }
    }

    /// A new id, for the present moment.
    #[must_use]
    pub fn next_id(&self) -> String {
        self.next_id_at(Local::now().timestamp_millis())
    }

    /// A new id for `now`, in milliseconds since 1970.
    #[must_use]
    pub fn next_id_at(&self, now: i64) -> String {
        let start = self.month_start(now);
        let id = UniqueId {
            ip: self.ip,
            pid: self.pid,
            process_hash: self.process_hash,
            month_millis: u32::try_from(now - start).unwrap_or(0),
            counter: self.counter.fetch_add(1, Ordering::Relaxed),
        };
        id.encode()
    }

    fn month_start(&self, now: i64) -> i64 {
        // The lock guards two plain numbers, which a panic elsewhere can't leave half written.
        let mut month = self
            .month
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if now < month.start || now >= month.end {
            *month = month_of(now);
        }
        month.start
    }
}

fn month_of(now: i64) -> Month {
    let moment = DateTime::from_timestamp_millis(now)
        .unwrap_or_default()
        .with_timezone(&Local);
    let first = moment.date_naive() - Days::new(u64::from(moment.day0()));
    let midnight = |date: chrono::NaiveDate| {
        let local = Local
            .from_local_datetime(&date.and_time(NaiveTime::MIN))
            .earliest();
        // A midnight that a clock change skips: count in UTC for that month.
        local.map_or_else(
            || date.and_time(NaiveTime::MIN).and_utc().timestamp_millis(),
            |time| time.timestamp_millis(),
        )
    };
    Month {
        start: midnight(first),
        end: midnight(first + Months::new(1)),
    }
}

fn put_ip(ip: IpAddr, into: &mut Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => into.extend(ip.octets()),
        IpAddr::V6(ip) => into.extend(ip.octets()),
    }
}

/// Splits the address off: everything but the last `tail` bytes, which [`unhex`] made 4 or 16.
fn take_ip(bytes: &[u8], tail: usize) -> (IpAddr, &[u8]) {
    let (ip, rest) = bytes.split_at(bytes.len() - tail);
    let ip = match (ip.first_chunk::<16>(), ip.first_chunk::<4>()) {
        (Some(octets), _) => IpAddr::from(*octets),
        (None, Some(octets)) => IpAddr::from(*octets),
        (None, None) => IpAddr::from([0; 4]),
    };
    (ip, rest)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0xF)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

/// The 16 or 28 bytes of an id.
fn unhex(id: &str) -> Result<Vec<u8>, IdError> {
    if id.len() != 32 && id.len() != 56 {
        return Err(IdError::Length { id: id.to_owned() });
    }
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let pairs = id.as_bytes().chunks_exact(2);
    let bytes = pairs
        .map(|pair| Some((digit(pair[0])? << 4) | digit(pair[1])?))
        .collect::<Option<_>>();
    bytes.ok_or_else(|| IdError::Digit { id: id.to_owned() })
}

/// The name of a store's data file that begins at `offset`: 20 decimal digits.
#[must_use]
pub fn file_name(offset: PhysicalOffset) -> String {
    let sign = if offset.0 < 0 { "-" } else { "" };
    format!("{sign}{:020}", offset.0.unsigned_abs())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn generated_ids_say_who_made_them_and_differ() {
        let generator = UniqueIdGenerator::new(IpAddr::from([10, 1, 2, 3]));
        let now = Local::now().timestamp_millis();
        let first = UniqueId::decode(&generator.next_id_at(now)).unwrap();
        let second = UniqueId::decode(&generator.next_id_at(now)).unwrap();
        assert_eq!(first.ip, IpAddr::from([10, 1, 2, 3]));
        assert_eq!(second.counter, first.counter.wrapping_add(1));
        assert!(i64::from(first.month_millis) < 31 * 86_400_000 + 3_600_000);
        let start = DateTime::from_timestamp_millis(now - i64::from(first.month_millis)).unwrap();
        assert_eq!(start.with_timezone(&Local).day(), 1);
    }

    #[test]
    fn a_new_month_starts_at_zero() {
        let generator = UniqueIdGenerator::new(IpAddr::from([10, 1, 2, 3]));
        let first = Local
            .with_ymd_and_hms(2026, 3, 1, 0, 0, 0)
            .unwrap()
            .timestamp_millis();
        let late = UniqueId::decode(&generator.next_id_at(first - 1)).unwrap();
        let early = UniqueId::decode(&generator.next_id_at(first + 5)).unwrap();
        assert!(late.month_millis > 27 * 86_400_000);
        assert_eq!(early.month_millis, 5);
    }
}
