//! Which half messages were open when the broker stopped, from the log.
//!
//! ```text
//! consumer offsets of CID_RMQ_SYS_TRANS ─▶ op messages from there ─▶ decided offsets ─┐
//!                                       └▶ half messages from there ──────────────────┼▶ Book
//! index: committed messages with the unique key of one that seems open ───────────────┘
//! ```
//! Positions and op messages are written seconds behind what they stand for. What was written again or committed since is
//! recognised by its unique key, so that no transaction is asked about, or delivered, twice for that.
use std::collections::{HashMap, HashSet};

use bindery_protocol::{
    message::{QueueOffset, RecordView, Transaction, property},
    names,
};

use super::{
    GROUP, QUEUE,
    book::Book,
    half::HalfMessage,
    ops,
    state::{Found, Transactions},
};
use crate::{
    config::BrokerConfig,
    offset::Offsets,
    store::{Everything, ReadLimits, Store},
};

/// Reads the transactions that may be open. Blocks on the disk.
pub(crate) fn recover(store: &Store, offsets: &Offsets, config: &BrokerConfig) -> Transactions {
    let half = position(store, offsets, names::TRANS_HALF_TOPIC);
    let op = position(store, offsets, names::TRANS_OP_HALF_TOPIC);
    let mut book = Book::at(half, op);
    let half_end = store.max_offset(names::TRANS_HALF_TOPIC, QUEUE).0;
    let decided = read_ops(store, op, half_end, &mut book);
    let halves = read_halves(store, half, &decided, config);
    let mut groups = HashSet::new();
    // What no record is left of is over as well.
    let mut next = half;
    for entry in &halves.entries {
        book.lost_before_reading(next, entry.offset);
        next = entry.offset + 1;
        book.opened(entry.offset);
        match halves.fate(entry) {
            Fate::Open if was_committed(store, entry) => book.decided(entry.offset, &entry.key),
            Fate::Open => {
                if !entry.group.is_empty() {
                    groups.insert(entry.group.clone());
                }
                if entry.is_copy {
                    book.copied(&entry.key, entry.offset);
                }
            }
            Fate::Decided => book.decided(entry.offset, &entry.key),
            Fate::Replaced => book.given_up(entry.offset, ""),
        }
    }
    book.lost_before_reading(next, half_end);
    if book.open() > 0 {
        tracing::info!(open = book.open(), "transactions without a verdict found");
    }
    let found = Found {
        book,
        kept: (half, op),
        groups,
    };
    Transactions::new(found, config)
}

/// The kept position of a queue, within what is there: a log that lost its tail ends before it.
fn position(store: &Store, offsets: &Offsets, topic: &str) -> i64 {
    let (min, max) = (
        store.min_offset(topic, QUEUE).0,
        store.max_offset(topic, QUEUE).0,
    );
    offsets
        .committed(GROUP, topic, QUEUE)
        .unwrap_or(min)
        .clamp(min, max.max(min))
}

/// The half offsets that op messages name. An offset that is not taken yet can only come from a log that lost its tail,
/// and must not decide the message that will get it.
fn read_ops(store: &Store, from: i64, half_end: i64, book: &mut Book) -> HashSet<i64> {
    let mut decided = HashSet::new();
    walk(store, names::TRANS_OP_HALF_TOPIC, from, |record| {
        let mut last_half = -1;
        if record.property(property::TAGS) == Some(ops::TAG.as_bytes()) {
            for half in ops::parse(record.body()).filter(|half| *half < half_end) {
                last_half = last_half.max(half);
                decided.insert(half);
            }
        }
        book.op_read(record.queue_offset().0, last_half);
    });
    decided
}

struct Entry {
    offset: i64,
    key: String,
    /// Producer group.
    group: String,
    /// Where it is for.
    topic: String,
    /// When its producer made it, in milliseconds.
    born: i64,
    is_copy: bool,
    /// The place of its first form, if it was put back.
    first_offset: Option<i64>,
    /// An op message names it.
    is_decided: bool,
}

impl Entry {
    /// What the record says; one that no send made has no key and no group.
    fn of(record: &RecordView<'_>, config: &BrokerConfig) -> Self {
        let half = HalfMessage::of(*record, config);
        let text =
            |field: fn(&HalfMessage<'_>) -> String| half.as_ref().map(field).unwrap_or_default();
        Self {
            offset: record.queue_offset().0,
            key: text(|half| half.key.to_owned()),
            group: text(|half| half.group.to_owned()),
            topic: text(|half| half.topic.to_owned()),
            born: record.born_timestamp(),
            is_copy: half.as_ref().is_some_and(HalfMessage::is_copy),
            first_offset: half.as_ref().and_then(|half| half.first_offset),
            is_decided: false,
        }
    }
}

enum Fate {
    Open,
    Decided,
    /// A later copy stands for it.
    Replaced,
}

#[derive(Default)]
struct Halves {
    entries: Vec<Entry>,
    /// Unique keys of decided transactions.
    decided: HashSet<String>,
    /// The last copy of each unique key.
    copies: HashMap<String, i64>,
}

impl Halves {
    fn fate(&self, entry: &Entry) -> Fate {
        if entry.is_decided || self.decided.contains(&entry.key) {
            return Fate::Decided;
        }
        match self.copies.get(&entry.key) {
            Some(copy) if *copy > entry.offset => Fate::Replaced,
            _ => Fate::Open,
        }
    }
}

fn read_halves(store: &Store, from: i64, decided: &HashSet<i64>, config: &BrokerConfig) -> Halves {
    let mut halves = Halves::default();
    walk(store, names::TRANS_HALF_TOPIC, from, |record| {
        let offset = record.queue_offset().0;
        let mut entry = Entry::of(record, config);
        let first_form = entry.first_offset.unwrap_or(offset);
        entry.is_decided = decided.contains(&offset) || decided.contains(&first_form);
        if !entry.key.is_empty() {
            if entry.is_decided {
                halves.decided.insert(entry.key.clone());
            }
            if entry.is_copy {
                halves.copies.insert(entry.key.clone(), offset);
            }
        }
        halves.entries.push(entry);
    });
    halves
}

/// Whether the message lies under its own topic, or in a delay level on its way there. A broker that was killed had not
/// written that down yet.
fn was_committed(store: &Store, entry: &Entry) -> bool {
    if entry.key.is_empty() {
        return false;
    }
    [entry.topic.as_str(), names::SCHEDULE_TOPIC]
        .iter()
        .flat_map(|topic| store.query(topic, &entry.key, 8, 0, i64::MAX).records)
        .any(|bytes| {
            RecordView::parse(&bytes).is_ok_and(|record| {
                record.sys_flag().transaction() == Transaction::Commit
                    && record.born_timestamp() == entry.born
                    && record.property(property::UNIQ_KEY) == Some(entry.key.as_bytes())
            })
        })
}

/// Shows every readable record of a queue from an offset on.
fn walk(store: &Store, topic: &str, from: i64, mut show: impl FnMut(&RecordView<'_>)) {
    let mut next = from;
    let end = store.max_offset(topic, QUEUE).0;
    while next < end {
        let limits = ReadLimits::messages(32);
        let read = store.read(topic, QUEUE, QueueOffset(next), limits, &Everything);
        for bytes in &read.messages {
            match RecordView::parse(bytes) {
                Ok(record) => show(&record),
                Err(error) => tracing::error!(topic, %error, "record not readable, left out"),
            }
        }
        if read.next.0 <= next {
            tracing::error!(topic, offset = next, status = ?read.status, "queue not readable from here on");
            return;
        }
        next = read.next.0;
    }
}
