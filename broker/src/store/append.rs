//! Appending: a message is checked and encoded outside every lock, into the very bytes that will be stored.
//!
//! ```text
//! NewMessage ─check, encode (thread's own buffer)─▶ [tail lock: offsets, time, copy] ─▶ flush bell, dispatch
//! ```

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::atomic::AtomicI64;

use bindery_protocol::message::record::{self, EncodeError, MAX_PROPERTIES};
use bindery_protocol::message::{NewMessage, PhysicalOffset, QueueOffset, Transaction, id};

use super::commit_log::Encoded;
use super::compose;
use super::config::FlushPolicy;
use super::dispatch::is_folder_name;
use super::error::{AppendError, StoreError};
use super::inner::Inner;

/// A whole record may be this much longer than `maxMessageSize`, in bytes.
const RECORD_SLACK: usize = 64 << 10;
/// A thread keeps an encoding buffer up to this size, in bytes.
const KEPT_BUFFER: usize = 256 << 10;

thread_local! {
    static BUFFER: RefCell<Encoded> = RefCell::default();
}

/// Where messages went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Queue offset of the first message; the others follow without gaps.
    pub queue_offset: QueueOffset,
    /// Physical offset of the first message.
    pub physical_offset: PhysicalOffset,
    /// Offset behind the last record: what [`super::Store::when_durable`] is asked about.
    pub end: PhysicalOffset,
    /// Store time of all of them, milliseconds since 1970.
    pub store_timestamp: i64,
    /// How many messages.
    pub count: usize,
    /// Physical offsets of the second and later messages.
    pub more: Vec<PhysicalOffset>,
}

impl Appended {
    /// The broker's message ids, joined by commas. `store_host` is the one in the messages.
    #[must_use]
    pub fn offset_msg_ids(&self, store_host: SocketAddr) -> String {
        let mut ids = id::offset_msg_id(store_host, self.physical_offset);
        for offset in &self.more {
            ids.push(',');
            ids.push_str(&id::offset_msg_id(store_host, *offset));
        }
        ids
    }
}

/// Appends messages of one queue, all or none.
pub(super) fn append(store: &Inner, messages: &[NewMessage<'_>]) -> Result<Appended, AppendError> {
    let first = messages.first().ok_or(AppendError::Batch)?;
    if messages
        .iter()
        .any(|message| message.topic != first.topic || message.queue_id != first.queue_id)
    {
        return Err(AppendError::Batch);
    }
    // Elements of a batch have no turn in which offsets of further queues could be taken.
    let several = messages.len() > 1 && store.config.light_queues.is_some();
    if several && messages.iter().any(compose::names_light_queues) {
        return Err(AppendError::Batch);
    }
    let body: usize = messages.iter().map(|message| message.body.len()).sum();
    let max = store.config.max_message_size;
    if body > max {
        return Err(AppendError::BodyTooLong { len: body, max });
    }
    messages
        .iter()
        .try_for_each(|message| check(message, max))?;
    writable(store)?;
    let appended = BUFFER.with_borrow_mut(|buffer| {
        let appended = if messages.len() == 1 && compose::is_needed(store, first) {
            compose::append(store, first, buffer)
        } else {
            simple(store, messages, buffer)
        };
        buffer.bytes.clear();
        buffer.bytes.shrink_to(KEPT_BUFFER);
        buffer.sizes.clear();
        appended
    })?;
    store.flusher.appended();
    if store.config.flush == FlushPolicy::Async {
        store.dispatch();
    }
    Ok(appended)
}

pub(super) fn check(message: &NewMessage<'_>, max: usize) -> Result<(), AppendError> {
    if !is_folder_name(message.topic) {
        return Err(AppendError::Topic {
            topic: message.topic.to_owned(),
        });
    }
    let len = message.properties.len();
    if len > MAX_PROPERTIES {
        return Err(AppendError::PropertiesTooLong { len });
    }
    let (len, max) = (
        record::encoded_len(message),
        max.saturating_add(RECORD_SLACK),
    );
    if len > max {
        return Err(AppendError::RecordTooLong { len, max });
    }
    Ok(())
}

/// Refuses while the store is not running, after a failed flush, while the volume is above its warning level, and while dispatch can't write (it is tried again).
fn writable(store: &Inner) -> Result<(), AppendError> {
    if !store.is_running() {
        return Err(AppendError::Closed);
    }
    if store.flusher.is_poisoned() {
        return Err(StoreError::Poisoned.into());
    }
    // Looked at again, so that sends are taken as soon as there is room.
    if store.cleaner.is_full() && store.measure() {
        return Err(AppendError::VolumeFull {
            limit: store.cleaner.expiry().refuse_above,
        });
    }
    if store.dispatcher.is_blocked() {
        store.dispatch();
        if store.dispatcher.is_blocked() {
            let path = store.config.root.join("consumequeue");
            return Err(StoreError::Full { path, needed: 0 }.into());
        }
    }
    Ok(())
}

/// Messages of a plain queue.
fn simple(
    store: &Inner,
    messages: &[NewMessage<'_>],
    buffer: &mut Encoded,
) -> Result<Appended, AppendError> {
    encode(messages, buffer)?;
    let first = &messages[0];
    let queue = store
        .dispatcher
        .derived()
        .queues
        .find_or_create(first.topic, first.queue_id);
    let state = first.sys_flag.transaction();
    let visible = matches!(state, Transaction::None | Transaction::Commit);
    place(store, buffer, &queue.next, i64::from(visible))
}

pub(super) fn encode(messages: &[NewMessage<'_>], buffer: &mut Encoded) -> Result<(), AppendError> {
    for message in messages {
        let encoded = record::encode(message, &mut buffer.bytes);
        buffer
            .sizes
            .push(encoded.map_err(|error| refused(&error, message))?);
    }
    Ok(())
}

/// Puts encoded records into the log; each takes `step` of the queue's `next` offsets.
pub(super) fn place(
    store: &Inner,
    buffer: &mut Encoded,
    next: &AtomicI64,
    step: i64,
) -> Result<Appended, AppendError> {
    let placed = store.log.append(buffer, next, step)?;
    let mut at = placed.start.0;
    let offsets = buffer.sizes.iter().map(|size| {
        let offset = PhysicalOffset(at);
        at += i64::try_from(*size).unwrap_or(0);
        offset
    });
    Ok(Appended {
        queue_offset: placed.queue_offset,
        physical_offset: placed.start,
        end: placed.end,
        store_timestamp: placed.timestamp,
        count: buffer.sizes.len(),
        more: offsets.skip(1).collect(),
    })
}

fn refused(error: &EncodeError, message: &NewMessage<'_>) -> AppendError {
    match error {
        EncodeError::PropertiesTooLong { len } => AppendError::PropertiesTooLong { len: *len },
        EncodeError::TopicTooLong { .. } => AppendError::Topic {
            topic: message.topic.to_owned(),
        },
        _ => AppendError::RecordTooLong {
            len: record::encoded_len(message),
            max: usize::try_from(i32::MAX).unwrap_or(usize::MAX),
        },
    }
}
