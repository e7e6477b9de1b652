//! From a message to what goes on the wire: checked, named, numbered, compressed.
//!
//! ```text
//! Message ─▶ checks in Java's order ─▶ namespace ─▶ UNIQ_KEY ─▶ zlib if large and worth it ─▶ Outgoing
//! ```
use bindery_protocol::{
    message::{
        Compression, Properties, SysFlag,
        batch::{self, BatchElement},
        compress::deflate,
        property,
    },
    names,
};
use bytes::{Bytes, BytesMut};

use super::settings::Settings;
use crate::{ClientError, Message, MessageIllegal, instance::Shared, namespace};

/// What the record format has room for.
const MAX_PROPERTIES: usize = 32_767;
/// zlib's level (Java's default).
const LEVEL: u32 = 5;
/// Larger bodies are compressed on a thread of their own: a megabyte takes some ten milliseconds.
const COMPRESS_ELSEWHERE: usize = 256 * 1024;

/// A message ready to be sent, as often as it takes.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// With the namespace.
    pub(crate) topic: String,
    pub(crate) body: Bytes,
    /// Encoded.
    pub(crate) properties: String,
    pub(crate) sys_flag: i32,
    pub(crate) flag: i32,
    pub(crate) msg_id: String,
    /// How often it failed, and how often it may: for what is sent to a retry topic.
    pub(crate) retried: Option<(i32, i32)>,
    pub(crate) kind: Kind,
}

/// Which request carries a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One message: 310.
    Single,
    /// Several in one body: 320.
    Batch,
    /// A reply, which the broker hands on: 325.
    Reply,
}

/// The checks of one message, in Java's order.
pub(super) fn check(message: &Message, max_size: usize) -> Result<(), MessageIllegal> {
    names::check_topic(&message.topic)?;
    if names::is_send_forbidden(&message.topic) {
        return Err(MessageIllegal::TopicForbidden {
            topic: message.topic.clone(),
        });
    }
    if message.body.is_empty() {
        return Err(MessageIllegal::BodyEmpty);
    }
    if message.body.len() > max_size {
        return Err(MessageIllegal::BodyTooLarge {
            size: message.body.len(),
            max: max_size,
        });
    }
    message.illegal.clone().map_or(Ok(()), Err)
}

/// Prepares a message that was checked.
pub(super) async fn prepare(
    client: &Shared,
    settings: &Settings,
    message: Message,
) -> Result<Outgoing, ClientError> {
    let Message {
        topic,
        body,
        flag,
        properties,
        illegal: _,
    } = message;
    let (msg_id, properties) = numbered(client, properties)?;
    let delayed = properties.contains(property::DELAY);
    let (body, sys_flag) = match settings.compress_over {
        // A delayed message is compressed like any other; only its size counts.
        Some(limit) if body.len() >= limit => compress(body).await,
        _ => (body, 0),
    };
    tracing::trace!(
        topic,
        msg_id,
        delayed,
        size = body.len(),
        "message prepared"
    );
    Ok(Outgoing {
        topic: namespace::wrap(client.config.namespace.as_deref(), &topic),
        body,
        properties: properties.encode(),
        sys_flag,
        flag,
        msg_id,
        retried: None,
        kind: Kind::Single,
    })
}

/// Prepares several messages of one topic as one request.
pub(super) fn prepare_batch(
    client: &Shared,
    settings: &Settings,
    messages: Vec<Message>,
) -> Result<Outgoing, ClientError> {
    check_batch(&messages, settings.max_message_size)?;
    let mut body = BytesMut::new();
    let mut ids = Vec::with_capacity(messages.len());
    let mut topic = String::new();
    let mut wait = String::new();
    for message in messages {
        if wait.is_empty() {
            message
                .properties
                .get(property::WAIT)
                .unwrap_or("true")
                .clone_into(&mut wait);
        }
        let (id, properties) = numbered(client, message.properties)?;
        let properties = properties.encode();
        let element = BatchElement {
            flag: message.flag,
            body: &message.body,
            properties: properties.as_bytes(),
        };
        batch::encode(&element, &mut body).map_err(|source| ClientError::Encode {
            what: "a batch",
            source: Box::new(source),
        })?;
        ids.push(id);
        topic = message.topic;
    }
    // Without a UNIQ_KEY of the batch: the broker would write it over the messages' own ids.
    let properties: Properties = [(property::WAIT, wait)].into_iter().collect();
    Ok(Outgoing {
        topic: namespace::wrap(client.config.namespace.as_deref(), &topic),
        body: body.freeze(),
        properties: properties.encode(),
        sys_flag: 0,
        flag: 0,
        msg_id: ids.join(","),
        retried: None,
        kind: Kind::Batch,
    })
}

fn check_batch(messages: &[Message], max_size: usize) -> Result<(), MessageIllegal> {
    let first = messages.first().ok_or(MessageIllegal::BatchEmpty)?;
    let mut size = 0;
    for message in messages {
        check(message, max_size)?;
        if property::DELAYS
            .iter()
            .any(|name| message.properties.contains(name))
        {
            return Err(MessageIllegal::BatchKind { what: "a delay" });
        }
        if names::is_retry_topic(&message.topic) {
            return Err(MessageIllegal::BatchKind {
                what: "a retry topic",
            });
        }
        if message.topic != first.topic {
            return Err(MessageIllegal::BatchMixed { what: "topic" });
        }
        if message.properties.get(property::WAIT) != first.properties.get(property::WAIT) {
            return Err(MessageIllegal::BatchMixed { what: "wait_store" });
        }
        size += message.body.len();
    }
    if size > max_size {
        Err(MessageIllegal::BodyTooLarge {
            size,
            max: max_size,
        })
    } else {
        Ok(())
    }
}

/// Adds the id, and the namespace if there is one. Every call makes a new id: the same message sent twice is two messages.
fn numbered(
    client: &Shared,
    mut properties: Properties,
) -> Result<(String, Properties), MessageIllegal> {
    let id = client.unique_ids.next_id();
    properties.put(property::UNIQ_KEY, id.as_str());
    if let Some(namespace) = &client.config.namespace {
        properties.put(property::INSTANCE_ID, namespace.as_str());
    }
    let size = properties
        .iter()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    if size > MAX_PROPERTIES {
        return Err(MessageIllegal::PropertiesTooLarge {
            size,
            max: MAX_PROPERTIES,
        });
    }
    Ok((id, properties))
}

/// The compressed body with its flag, or the body as it is if that is not smaller.
async fn compress(body: Bytes) -> (Bytes, i32) {
    let packed = if body.len() < COMPRESS_ELSEWHERE {
        deflate(Compression::Zlib, LEVEL, &body).ok()
    } else {
        let body = body.clone();
        let packing =
            tokio::task::spawn_blocking(move || deflate(Compression::Zlib, LEVEL, &body).ok());
        packing.await.unwrap_or_default()
    };
    match packed {
        Some(packed) if packed.len() < body.len() => (
            Bytes::from(packed),
            SysFlag::default().with_compression(Compression::Zlib).0,
        ),
        _ => (body, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 4 << 20;

    #[test]
    fn checks_come_in_the_order_of_java() {
        let body = "x";
        let illegal = |message: Message| check(&message, MAX).expect_err("illegal");
        assert!(matches!(
            illegal(Message::new(" ", "")),
            MessageIllegal::Topic(_)
        ));
        assert!(matches!(
            illegal(Message::new("SCHEDULE_TOPIC_XXXX", "")),
            MessageIllegal::TopicForbidden { .. }
        ));
        assert_eq!(illegal(Message::new("t", "")), MessageIllegal::BodyEmpty);
        assert_eq!(
            illegal(Message::new("t", vec![0; MAX + 1])),
            MessageIllegal::BodyTooLarge {
                size: MAX + 1,
                max: MAX
            }
        );
        let reserved = Message::new("t", body)
            .property("KEYS", "k")
            .property("a", " ");
        assert_eq!(
            illegal(reserved),
            MessageIllegal::ReservedProperty {
                name: "KEYS".to_owned()
            },
            "the first mistake"
        );
        assert_eq!(
            illegal(Message::new("t", body).property("a", " ")),
            MessageIllegal::BlankProperty {
                name: "a".to_owned()
            }
        );
        let separator = Message::new("t", body).property("a", "b\u{1}c");
        assert_eq!(
            illegal(separator),
            MessageIllegal::PropertySeparator {
                name: "a".to_owned()
            }
        );
        assert_eq!(
            check(
                &Message::new("%RETRY%g", body).tags("a").property("b", "c"),
                MAX
            ),
            Ok(())
        );
        assert_eq!(check(&Message::new("t", vec![0; MAX]), MAX), Ok(()));
    }

    #[test]
    fn a_batch_has_one_topic_and_no_delays() {
        let check = |messages: &[Message]| check_batch(messages, MAX);
        let message = |topic: &str| Message::new(topic, "x");
        assert_eq!(check(&[]), Err(MessageIllegal::BatchEmpty));
        assert_eq!(
            check(&[message("a"), message("b")]),
            Err(MessageIllegal::BatchMixed { what: "topic" })
        );
        assert_eq!(
            check(&[message("a"), message("a").delay_level(1)]),
            Err(MessageIllegal::BatchKind { what: "a delay" })
        );
        assert_eq!(
            check(&[message("a"), message("a").wait_store(false)]),
            Err(MessageIllegal::BatchMixed { what: "wait_store" })
        );
        assert_eq!(
            check(&[message("%RETRY%a")]),
            Err(MessageIllegal::BatchKind {
                what: "a retry topic"
            })
        );
        assert_eq!(check(&[message("a"), message("a")]), Ok(()));
    }

    #[tokio::test]
    async fn c26_a_body_that_does_not_shrink_stays_as_it_is() {
        let noise: Vec<u8> = (0..5000).map(|_| rand::random()).collect();
        let (body, flag) = compress(Bytes::from(noise.clone())).await;
        assert_eq!((&body[..], flag), (&noise[..], 0));
        let (body, flag) = compress(Bytes::from(vec![7; 1 << 20])).await;
        assert!(body.len() < 1 << 20);
        assert_eq!(flag, 0x301);
    }
}
