//! Handing messages out: from which queues, from which offset, and what the answer says of them.
//!
//! ```text
//! Wanted ─▶ retry topic? ─▶ queues of the topic, the first at random ─▶ retry topic? ─▶ Taken
//! one queue, alone: start offset ─▶ read ─▶ noted (or its order kept) ─▶ offset committed ─▶ messages
//! ```
//! A message is never handed out before that is noted: a crash between the two hands it out again.
use std::{fmt::Write as _, ops::Range, sync::PoisonError};

use bindery_protocol::{
    message::{NewMessage, Properties, QueueOffset, RecordView, property, record},
    names,
    pop::{Checkpoint, ORDER_REVIVE_QUEUE, Receipt, RetryMark, push_offsets, push_start},
};
use bytes::{Bytes, BytesMut};

use super::{buffer, log, order::HandedOut, queue::PopQueue};
use crate::{
    client::Filter,
    state::Core,
    store::{ReadLimits, ReadResult, ReadStatus},
};

/// What a pop asks for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) group: String,
    pub(crate) topic: String,
    /// One queue, or any when negative.
    pub(crate) queue_id: i32,
    /// At most so many.
    pub(crate) most: usize,
    pub(crate) invisible_time: i64,
    /// Whether a new group begins with the newest message.
    pub(crate) from_newest: bool,
    pub(crate) filter: Filter,
    pub(crate) order: bool,
    pub(crate) attempt_id: Option<String>,
}

/// What a pop got.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) messages: Vec<Bytes>,
    pub(crate) pop_time: i64,
    pub(crate) revive_queue: i32,
    /// How many more there are, about.
    pub(crate) rest: i64,
    pub(crate) starts: String,
    pub(crate) offsets: String,
    pub(crate) counts: String,
    /// When the first queue that is closed for order is free again.
    pub(crate) free_at: Option<i64>,
}

/// Hands out what there is.
pub(crate) fn take(core: &Core, wanted: &Wanted) -> Taken {
    let luck: i32 = rand::random_range(0..100);
    let revive_queue = if wanted.order {
        ORDER_REVIVE_QUEUE
    } else {
        core.pop.next_revive_queue(core.config.revive_queue_num)
    };
    let mut taking = Taking {
        core,
        wanted,
        taken: Taken {
            messages: Vec::new(),
            pop_time: core.now(),
            revive_queue,
            rest: 0,
            starts: String::new(),
            offsets: String::new(),
            counts: String::new(),
            free_at: None,
        },
    };
    // Ordered groups have no retry topic: what fails stays in its queue.
    let retries = if wanted.order {
        Vec::new()
    } else {
        super::retry_topics(core, &wanted.group, &wanted.topic)
    };
    let retries_first = luck < core.config.pop_from_retry_probability;
    if retries_first {
        for topic in &retries {
            taking.any_queue(topic, luck);
        }
    }
    if wanted.queue_id < 0 {
        taking.any_queue(&wanted.topic, luck);
    } else {
        taking.one_queue(&wanted.topic, wanted.queue_id);
    }
    if !retries_first && !taking.is_full() {
        for topic in &retries {
            taking.any_queue(topic, luck);
        }
    }
    taking.taken
}

struct Taking<'a> {
    core: &'a Core,
    wanted: &'a Wanted,
    taken: Taken,
}

impl Taking<'_> {
    fn is_full(&self) -> bool {
        self.taken.messages.len() >= self.wanted.most
    }

    fn any_queue(&mut self, topic: &str, luck: i32) {
        let Some(config) = self.core.topics.topic(topic) else {
            return;
        };
        for queue_id in from(luck, 0..config.read_queue_nums) {
            self.one_queue(topic, queue_id);
        }
    }

    fn one_queue(&mut self, topic: &str, queue_id: i32) {
        let group = &self.wanted.group;
        let queues = &self.core.pop.queues;
        queues.with(topic, group, queue_id, |queue| {
            self.alone(topic, queue_id, queue);
        });
    }

    /// Takes from a queue that nobody else takes from meanwhile.
    fn alone(&mut self, topic: &str, queue_id: i32, queue: &mut PopQueue) {
        let (core, wanted) = (self.core, self.wanted);
        let place = (topic, wanted.group.as_str(), queue_id);
        let config = &core.config;
        let start = start(core, wanted, place, queue);
        let end = core.store.max_offset(topic, queue_id).0;
        let out = config.enable_pop_message_threshold
            && queue.in_flight > config.pop_inflight_message_threshold;
        if !out && wanted.order {
            let free_at = core.pop.orders.closed_until(
                topic,
                &wanted.group,
                queue_id,
                wanted.attempt_id.as_deref(),
                wanted.invisible_time,
                core.now(),
            );
            if let Some(free_at) = free_at {
                self.taken.free_at = Some(self.taken.free_at.map_or(free_at, |at| at.min(free_at)));
                return;
            }
            queue.in_flight = 0;
        }
        if out || self.is_full() {
            self.taken.rest += end - start;
            return;
        }
        let (start, read) = self.read(place, start);
        if read.messages.is_empty() {
            pass_over(core, wanted, queue, place, &read);
        } else if !self.hand_out(queue, place, start, &read) {
            self.taken.rest += i64::try_from(read.messages.len()).unwrap_or(0);
            return;
        }
        self.taken.rest += read.max.0 - read.next.0;
    }

    /// Reads from `start`, or from where the queue begins or ends when that is not within it.
    fn read(&self, (topic, group, queue_id): (&str, &str, i32), start: i64) -> (i64, ReadResult) {
        let core = self.core;
        let most = self.wanted.most - self.taken.messages.len();
        let read = |from| {
            let limits = ReadLimits::messages(most);
            core.store.read(
                topic,
                queue_id,
                QueueOffset(from),
                limits,
                &self.wanted.filter,
            )
        };
        let first = read(start);
        match first.status {
            ReadStatus::OffsetTooSmall
            | ReadStatus::OffsetOverflowBadly
            | ReadStatus::OffsetFoundNull => {
                let corrected = first.next.0;
                tracing::warn!(
                    topic,
                    group,
                    queue_id,
                    from = start,
                    to = corrected,
                    "pop offset corrected"
                );
                core.offsets
                    .commit(group, topic, queue_id, corrected, core.now());
                (corrected, read(corrected))
            }
            _ => (start, first),
        }
    }

    /// Notes what is handed out, and tells it; whether it could be noted.
    fn hand_out(
        &mut self,
        queue: &mut PopQueue,
        place: (&str, &str, i32),
        start: i64,
        read: &ReadResult,
    ) -> bool {
        let (core, wanted) = (self.core, self.wanted);
        let (topic, group, queue_id) = place;
        let records: Vec<RecordView<'_>> = read
            .messages
            .iter()
            .filter_map(|bytes| RecordView::parse(bytes).ok())
            .collect();
        let offsets: Vec<i64> = records
            .iter()
            .map(|record| record.queue_offset().0)
            .collect();
        if wanted.order {
            let out = HandedOut {
                topic,
                group,
                queue_id,
                attempt_id: wanted.attempt_id.as_deref(),
                pop_time: self.taken.pop_time,
                invisible_time: wanted.invisible_time,
                offsets: &offsets,
            };
            let counts = &mut self.taken.counts;
            core.pop.orders.handed_out(&out, counts, core.now());
            core.offsets
                .commit(group, topic, queue_id, start, core.now());
        } else if !self.note(queue, place, start, &offsets, read.next.0) {
            return false;
        }
        push_start(&mut self.taken.starts, topic, queue_id, start);
        push_offsets(&mut self.taken.offsets, topic, queue_id, &offsets);
        let count = u64::try_from(offsets.len()).unwrap_or(0);
        if core.config.enable_pop_message_threshold {
            queue.in_flight = queue.in_flight.saturating_add(count);
        }
        let bytes = u64::try_from(read.bytes).unwrap_or(u64::MAX);
        core.stats.pulled(topic, group, count, bytes, core.now());
        let as_stored = core.config.pop_response_return_actual_retry_topic;
        if as_stored || !names::is_retry_topic(topic) {
            self.taken.messages.extend(read.messages.iter().cloned());
        } else {
            let relabelled = records
                .iter()
                .map(|record| self.relabel(record, topic, start));
            let relabelled: Vec<Bytes> = relabelled.collect();
            self.taken.messages.extend(relabelled);
        }
        true
    }

    fn note(
        &self,
        queue: &mut PopQueue,
        place: (&str, &str, i32),
        start: i64,
        offsets: &[i64],
        next: i64,
    ) -> bool {
        let core = self.core;
        let differences = offsets
            .iter()
            .map(|offset| i32::try_from(offset - start).unwrap_or(i32::MAX));
        let checkpoint = Checkpoint {
            broker_name: Some(core.config.broker_name.clone()),
            group: place.1.to_owned(),
            differences: Some(differences.collect()),
            count: i8::try_from(offsets.len()).unwrap_or(i8::MAX),
            queue_id: place.2,
            start_offset: start,
            topic: place.0.to_owned(),
            ..Checkpoint::default()
        }
        .hidden(self.taken.pop_time, self.wanted.invisible_time);
        let revive_queue = self.taken.revive_queue;
        if buffer::offer(core, queue, &checkpoint, revive_queue, next) {
            return true;
        }
        let noting = core.pop.noting.read();
        let _noting = noting.unwrap_or_else(PoisonError::into_inner);
        if log::checkpoint(core, revive_queue, &checkpoint).is_err() {
            return false;
        }
        buffer::passed(core, queue, place, next);
        true
    }

    /// A message of a retry topic as the client asked for it: under the topic it came from, with its receipt.
    fn relabel(&self, record: &RecordView<'_>, topic: &str, start: i64) -> Bytes {
        let receipt = Receipt {
            start_offset: start,
            pop_time: self.taken.pop_time,
            invisible_time: self.wanted.invisible_time,
            revive_queue: self.taken.revive_queue,
            retry: RetryMark::of(topic),
            broker_name: self.core.config.broker_name.as_str().into(),
            queue_id: record.queue_id(),
            queue_offset: record.queue_offset().0,
        };
        let mut text = String::new();
        // Writing to a string can't fail.
        _ = write!(text, "{receipt}");
        let mut properties = Properties::parse_bytes(record.properties());
        if !properties.contains(property::POP_CK) {
            properties.put(property::POP_CK, text);
        }
        let properties = properties.encode();
        let message = NewMessage {
            topic: &self.wanted.topic,
            queue_id: record.queue_id(),
            flag: record.flag(),
            sys_flag: record.sys_flag(),
            born_timestamp: record.born_timestamp(),
            born_host: record.born_host(),
            store_host: record.store_host(),
            reconsume_times: record.reconsume_times(),
            prepared_transaction_offset: record.prepared_transaction_offset(),
            body: record.body(),
            properties: properties.as_bytes(),
        };
        let mut bytes = BytesMut::with_capacity(record::encoded_len(&message));
        if let Err(error) = record::encode(&message, &mut bytes) {
            tracing::warn!(topic, %error, "message handed out under its retry topic: it has no room for its receipt");
            return Bytes::copy_from_slice(record.bytes());
        }
        record::patch(
            &mut bytes,
            record.queue_offset(),
            record.physical_offset(),
            record.store_timestamp(),
        );
        bytes.freeze()
    }
}

/// Nothing of what was read is for this group: it goes on behind it.
fn pass_over(
    core: &Core,
    wanted: &Wanted,
    queue: &mut PopQueue,
    place: (&str, &str, i32),
    read: &ReadResult,
) {
    let (topic, group, queue_id) = place;
    let behind = matches!(
        read.status,
        ReadStatus::NoMatchedMessage
            | ReadStatus::OffsetFoundNull
            | ReadStatus::MessageWasRemoving
            | ReadStatus::NoMatchedLogicQueue
    );
    if !behind {
        return;
    }
    if wanted.order {
        core.offsets
            .commit(group, topic, queue_id, read.next.0, core.now());
    } else {
        buffer::passed(core, queue, place, read.next.0);
    }
}

/// Where a pop of a queue begins. A reset that waits is carried out here.
fn start(core: &Core, wanted: &Wanted, place: (&str, &str, i32), queue: &mut PopQueue) -> i64 {
    let (topic, group, queue_id) = place;
    if let Some(reset) = core.offsets.take_reset(group, topic, queue_id) {
        core.pop.orders.clear(topic, group, queue_id);
        buffer::clear(core, queue);
        queue.in_flight = 0;
        core.offsets
            .commit(group, topic, queue_id, reset, core.now());
        return reset;
    }
    let committed = core.offsets.committed(group, topic, queue_id);
    let committed = committed.unwrap_or_else(|| {
        let first = first_offset(core, topic, queue_id, wanted.from_newest);
        core.offsets
            .commit(group, topic, queue_id, first, core.now());
        first
    });
    queue
        .ahead
        .last_next()
        .map_or(committed, |next| next.max(committed))
}

/// Where a group begins that never was here.
fn first_offset(core: &Core, topic: &str, queue_id: i32, from_newest: bool) -> i64 {
    let min = core.store.min_offset(topic, queue_id).0;
    if !from_newest || names::is_retry_topic(topic) {
        return min;
    }
    let young = core.config.init_pop_offset_by_check_msg_in_mem
        && min <= 0
        && core.store.entry_in_memory(topic, queue_id, QueueOffset(0));
    if young {
        return 0;
    }
    (core.store.max_offset(topic, queue_id).0 - 1).max(0)
}

/// The numbers of a range, beginning somewhere in it.
pub(crate) fn from(luck: i32, range: Range<i32>) -> impl Iterator<Item = i32> {
    let count = range.end.max(1);
    range.map(move |number| (luck % count + number) % count)
}
