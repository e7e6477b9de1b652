//! A batch: messages of one queue stored by one append, each as a record of its own.
//!
//! ```text
//! body ─▶ elements ─▶ property texts (own + the batch's + the broker's) in one buffer ─▶ Store::append_batch
//! ```
use bindery_protocol::{
    bodies::TopicConfig,
    frame::Frame,
    headers::SendHeader,
    message::{NewMessage, SysFlag, Transaction, batch, property},
    names,
};
use bindery_remoting::Connection;

use super::{
    deposit::{self, Wait},
    properties::{Facts, Rewrite, put},
    send::{Stored, is_batch_topic},
};
use crate::{
    refusal::Refusal,
    state::{Core, canonical},
};

/// Stores a batch: all of it or nothing.
pub(super) fn store(
    core: &Core,
    connection: &Connection,
    frame: &Frame,
    header: &SendHeader<'_>,
    config: &TopicConfig,
    queue_id: i32,
) -> Result<Stored, Refusal> {
    let topic: &str = &header.topic;
    if topic.len() > names::MAX_TOPIC {
        return Err(Refusal::BatchTopicTooLong {
            length: topic.len(),
        });
    }
    if topic.starts_with(names::RETRY_PREFIX) {
        return Err(Refusal::BatchToRetry {
            topic: topic.to_owned(),
        });
    }
    let limit = core.config.max_message_size;
    if frame.body.len() > limit {
        return Err(Refusal::MessageIllegal { limit });
    }
    let whole = header.properties.as_deref().unwrap_or_default();
    let facts = Facts::of(whole);
    if facts.half {
        return Err(Refusal::TransactionRefused {
            broker: core.address.ip().to_string(),
        });
    }
    if SysFlag(header.sys_flag).contains(SysFlag::INNER_BATCH) || facts.inner {
        return Err(Refusal::MessageIllegal { limit });
    }
    if let Some(what) = extraordinary(SysFlag(header.sys_flag), &facts) {
        return Err(Refusal::BatchKind { what });
    }
    if is_batch_topic(config) {
        return store_inner(core, connection, frame, header, queue_id);
    }
    let made = facts.unique_key.is_none().then(|| core.ids.next_id());
    let unique_key = facts
        .unique_key
        .unwrap_or_else(|| made.as_deref().unwrap_or_default());
    let tail = batch_tail(core, whole, made.as_deref());
    let elements = batch::decode(&frame.body)?;
    let (text, ends) = batch_texts(&elements, &tail);
    let mut start = 0;
    let messages: Vec<NewMessage<'_>> = elements
        .iter()
        .zip(ends)
        .map(|(element, end)| {
            let properties = &text[start..end];
            start = end;
            NewMessage {
                topic,
                queue_id,
                flag: element.flag,
                sys_flag: SysFlag(header.sys_flag),
                born_timestamp: header.born_timestamp,
                born_host: canonical(connection.peer()),
                store_host: core.address,
                reconsume_times: header.reconsume_times.unwrap_or(0),
                prepared_transaction_offset: 0,
                body: element.body,
                properties,
            }
        })
        .collect();
    let appended = deposit::stored(core, topic, || core.store.append_batch(&messages))?;
    Ok(Stored {
        recall_handle: None,
        wait: if facts.wait {
            Wait::ForDisk
        } else {
            Wait::ForLog
        },
        queue_id,
        message_id: appended.offset_msg_ids(core.address),
        unique_key: unique_key.to_owned(),
        inner_batch: false,
        appended,
    })
}

/// Stores the whole batch as one record, with one entry in a batch queue.
fn store_inner(
    core: &Core,
    connection: &Connection,
    frame: &Frame,
    header: &SendHeader<'_>,
    queue_id: i32,
) -> Result<Stored, Refusal> {
    let topic: &str = &header.topic;
    let whole = header.properties.as_deref().unwrap_or_default();
    let facts = Facts::of(whole);
    let Some(unique_key) = facts.unique_key else {
        return Err(Refusal::BatchesOnly {
            topic: topic.to_owned(),
        });
    };
    let number = batch::decode(&frame.body)?.len().to_string();
    let rewrite = Rewrite {
        delayed: false,
        added: &[(property::INNER_NUM, &number)],
        stamp: &core.stamp,
    };
    let mut text = Vec::new();
    rewrite.write(whole, &mut text);
    let inner = SysFlag::NEED_UNWRAP.with(SysFlag::INNER_BATCH);
    let message = NewMessage {
        topic,
        queue_id,
        flag: header.flag,
        sys_flag: SysFlag(header.sys_flag).with(inner),
        born_timestamp: header.born_timestamp,
        born_host: canonical(connection.peer()),
        store_host: core.address,
        reconsume_times: header.reconsume_times.unwrap_or(0),
        prepared_transaction_offset: 0,
        body: &frame.body,
        properties: &text,
    };
    let appended = deposit::stored(core, topic, || core.store.append(&message))?;
    Ok(Stored {
        wait: if facts.wait {
            Wait::ForDisk
        } else {
            Wait::ForLog
        },
        queue_id,
        message_id: appended.offset_msg_ids(core.address),
        unique_key: unique_key.to_owned(),
        recall_handle: None,
        inner_batch: true,
        appended,
    })
}

/// What makes a batch more than ordinary messages: its members would be stored as if it were not there.
fn extraordinary(sys_flag: SysFlag, facts: &Facts<'_>) -> Option<&'static str> {
    if sys_flag.transaction() != Transaction::None {
        Some("a transaction state")
    } else if facts.delay_level > 0 {
        Some("a delay level")
    } else if facts.timing.is_some() {
        Some("a timer property")
    } else {
        None
    }
}

/// What every member of a batch gets after its own properties: those of the batch, and the broker's.
fn batch_tail(core: &Core, whole: &str, made_key: Option<&str>) -> Vec<u8> {
    let mut tail = Vec::new();
    Rewrite::default().write(whole, &mut tail);
    if let Some(key) = made_key {
        put(&mut tail, property::UNIQ_KEY, key);
    }
    tail.extend_from_slice(&core.stamp);
    tail
}

/// The property texts of all members in one buffer, and where each ends.
fn batch_texts(elements: &[batch::BatchElement<'_>], tail: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let size = elements
        .iter()
        .map(|element| element.properties.len() + 1 + tail.len())
        .sum();
    let mut text = Vec::with_capacity(size);
    let mut ends = Vec::with_capacity(elements.len());
    for element in elements {
        text.extend_from_slice(element.properties);
        if !element.properties.is_empty() && !element.properties.ends_with(&[2]) {
            text.push(2);
        }
        text.extend_from_slice(tail);
        ends.push(text.len());
    }
    (text, ends)
}
