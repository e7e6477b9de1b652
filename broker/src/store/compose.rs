//! Appends of records whose own text names queue offsets: inner batches and messages for light queues.
//!
//! ```text
//! NewMessage ─▶ [turn: next offsets → INNER_BASE, INNER_MULTI_QUEUE_OFFSET ─▶ encode ─▶ commit log ─▶ offsets taken]
//! ```
//! Whoever takes offsets of such queues waits for its turn, so that between the text and the log nobody else takes them.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use bindery_protocol::message::{NewMessage, SysFlag, Transaction, property};

use super::append::{Appended, check, encode, place};
use super::commit_log::Encoded;
use super::error::AppendError;
use super::inner::Inner;
use super::light;

/// Pairs that the store itself adds; a sender's are dropped.
const OWN: [&str; 2] = [property::INNER_BASE, property::INNER_MULTI_QUEUE_OFFSET];

/// Whether a message has to wait for its turn.
pub(super) fn is_needed(store: &Inner, message: &NewMessage<'_>) -> bool {
    message.sys_flag.contains(SysFlag::INNER_BATCH)
        || (store.config.light_queues.is_some()
            && (message.topic.starts_with(light::PREFIX) || names_light_queues(message)))
}

/// Whether the message is for light queues too.
pub(super) fn names_light_queues(message: &NewMessage<'_>) -> bool {
    light::is_dispatched(message.topic) && text(message, property::INNER_MULTI_DISPATCH).is_some()
}

fn text<'a>(message: &NewMessage<'a>, name: &str) -> Option<&'a str> {
    pairs(message.properties).find_map(|(key, value)| {
        (key == name.as_bytes()).then_some(std::str::from_utf8(value).ok())?
    })
}

fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|byte| *byte == 2).filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == 1)?;
        Some((&pair[..at], &pair[at + 1..]))
    })
}

/// Appends one message.
pub(super) fn append(
    store: &Inner,
    message: &NewMessage<'_>,
    buffer: &mut Encoded,
) -> Result<Appended, AppendError> {
    let _turn = store.turn.lock().unwrap_or_else(PoisonError::into_inner);
    let queues = &store.dispatcher.derived().queues;
    let mut own = String::new();
    let mut put = |name: &str, value: &str| own.extend([name, "\u{1}", value, "\u{2}"]);

    let batch = message.sys_flag.contains(SysFlag::INNER_BATCH);
    let step = if batch { batch_size(message)? } else { 1 };
    let visible = matches!(
        message.sys_flag.transaction(),
        Transaction::None | Transaction::Commit
    );
    let light = match store.config.light_queues {
        Some(most) if names_light_queues(message) => {
            let names = text(message, property::INNER_MULTI_DISPATCH).unwrap_or_default();
            light::queues(queues, &light::named(names)?, most)?
        }
        _ => Vec::new(),
    };
    if !light.is_empty() {
        put(property::INNER_MULTI_QUEUE_OFFSET, &light::offsets(&light));
    }
    let batches = batch.then(|| {
        queues
            .batches
            .find_or_create(message.topic, message.queue_id)
    });
    let simple = (!batch).then(|| queues.find_or_create(message.topic, message.queue_id));
    let next = batches.as_ref().map(|queue| &queue.next);
    let Some(next) = next.or_else(|| simple.as_ref().map(|queue| &queue.next)) else {
        return Err(AppendError::Batch);
    };
    if batch {
        put(
            property::INNER_BASE,
            &next.load(Ordering::Acquire).to_string(),
        );
    }
    let properties = with_own(message.properties, own.as_bytes());
    let message = NewMessage {
        properties: &properties,
        ..*message
    };
    check(&message, store.config.max_message_size)?;
    encode(std::slice::from_ref(&message), buffer)?;
    let mut appended = place(store, buffer, next, if visible { step } else { 0 })?;
    for queue in &light {
        queue.next.fetch_add(1, Ordering::AcqRel);
    }
    appended.count = usize::try_from(step).unwrap_or(1);
    Ok(appended)
}

/// How many messages an inner batch holds: an entry's count has 16 bits.
fn batch_size(message: &NewMessage<'_>) -> Result<i64, AppendError> {
    let count = text(message, property::INNER_NUM).and_then(|count| count.parse::<i16>().ok());
    let count = count.filter(|count| *count > 0).ok_or(AppendError::Batch)?;
    Ok(i64::from(count))
}

/// The text without a sender's pairs of our names, and with ours.
fn with_own(properties: &[u8], own: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(properties.len() + own.len() + 1);
    for (name, value) in pairs(properties) {
        if !OWN.iter().any(|own| own.as_bytes() == name) {
            for part in [name, &[1], value, &[2]] {
                text.extend_from_slice(part);
            }
        }
    }
    text.extend_from_slice(own);
    text
}
