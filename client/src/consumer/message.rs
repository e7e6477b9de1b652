//! A message as a listener sees it: the stored record with its topic restored, its body unpacked, and its origin.
//!
//! ```text
//! stored record ─▶ body inflated ─▶ %RETRY% topic replaced by RETRY_TOPIC ─▶ namespace taken off ─▶ MessageExt
//! ```
use std::{net::SocketAddr, sync::Arc};

use bindery_protocol::{
    message::{BodyError, Properties, StoredMessage, SysFlag, Transaction, property},
    names,
};
use bytes::Bytes;

use crate::{MessageQueue, namespace};

/// A received message. A handle: clones share the contents.
#[derive(Debug, Clone)]
pub struct MessageExt {
    data: Arc<Received>,
    /// Beside the shared part since a failed attempt in place raises it.
    reconsume_times: i32,
}

#[derive(Debug)]
struct Received {
    stored: StoredMessage,
    topic: String,
    broker_name: String,
    body: Bytes,
    msg_id: String,
    offset_msg_id: String,
    min_offset: i64,
    max_offset: i64,
}

/// Where a message was pulled from, for [`MessageExt::received`].
#[derive(Debug, Clone)]
pub struct Origin<'a> {
    /// Name of the broker.
    pub broker_name: &'a str,
    /// First offset of the queue at the time of the pull.
    pub min_offset: i64,
    /// Next offset of the queue at the time of the pull.
    pub max_offset: i64,
    /// Namespace to take off the topic.
    pub namespace: Option<&'a str>,
}

impl MessageExt {
    /// Makes the message that a listener would see from a stored record.
    ///
    /// # Errors
    /// When the body is compressed and damaged.
    pub fn received(stored: StoredMessage, origin: &Origin<'_>) -> Result<Self, BodyError> {
        let body = stored.decompressed_body()?;
        let offset_msg_id = stored.offset_msg_id();
        let msg_id = stored
            .uniq_key()
            .map_or_else(|| offset_msg_id.clone(), str::to_owned);
        let named = match stored.properties.get(property::RETRY_TOPIC) {
            Some(topic) if names::is_retry_topic(&stored.topic) => topic,
            _ => stored.topic.as_str(),
        };
        let topic = namespace::unwrap(origin.namespace, named);
        let reconsume_times = stored.reconsume_times;
        let data = Received {
            topic,
            broker_name: origin.broker_name.to_owned(),
            body,
            msg_id,
            offset_msg_id,
            min_offset: origin.min_offset,
            max_offset: origin.max_offset,
            stored,
        };
        Ok(Self {
            data: Arc::new(data),
            reconsume_times,
        })
    }

    /// The topic it was sent to, also for a redelivered message.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.data.topic
    }

    /// The topic it lies in: the group's retry topic for a redelivered message.
    #[must_use]
    pub fn stored_topic(&self) -> &str {
        &self.data.stored.topic
    }

    /// Body, uncompressed.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.data.body
    }

    /// All properties, the system's included.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.data.stored.properties
    }

    /// One property.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties().get(name)
    }

    /// Tag, if it has one.
    #[must_use]
    pub fn tags(&self) -> Option<&str> {
        self.property(property::TAGS)
    }

    /// Keys joined by blanks, if it has some.
    #[must_use]
    pub fn keys(&self) -> Option<&str> {
        self.property(property::KEYS)
    }

    /// The id made by the producer; equal over redeliveries. The broker's id where the producer made none.
    #[must_use]
    pub fn msg_id(&self) -> &str {
        &self.data.msg_id
    }

    /// What the sender's transaction is filed under: the id made by the producer; nothing for a message without transaction.
    #[must_use]
    pub fn transaction_id(&self) -> Option<&str> {
        let transactional = self.property(property::TRAN_MSG) == Some("true")
            || self.sys_flag().transaction() != Transaction::None;
        transactional.then(|| self.msg_id())
    }

    /// The id made by the broker: its address and the place in the commit log. New for every redelivery.
    #[must_use]
    pub fn offset_msg_id(&self) -> &str {
        &self.data.offset_msg_id
    }

    /// Name of the broker it came from.
    #[must_use]
    pub fn broker_name(&self) -> &str {
        &self.data.broker_name
    }

    /// Queue it lies in.
    #[must_use]
    pub fn queue_id(&self) -> i32 {
        self.data.stored.queue_id
    }

    /// The queue it lies in, with the topic it lies in.
    #[must_use]
    pub fn queue(&self) -> MessageQueue {
        MessageQueue {
            topic: self.data.stored.topic.clone(),
            broker_name: self.data.broker_name.clone(),
            queue_id: self.queue_id(),
        }
    }

    /// Its place in the queue.
    #[must_use]
    pub fn queue_offset(&self) -> i64 {
        self.data.stored.queue_offset.0
    }

    /// Its place in the broker's commit log, in bytes.
    #[must_use]
    pub fn physical_offset(&self) -> i64 {
        self.data.stored.physical_offset.0
    }

    /// How often it failed before: deliveries by the broker, and attempts in place of an orderly consumer.
    #[must_use]
    pub fn reconsume_times(&self) -> i32 {
        self.reconsume_times
    }

    /// When the producer made it, ms since 1970 by the producer's clock.
    #[must_use]
    pub fn born_timestamp(&self) -> i64 {
        self.data.stored.born_timestamp
    }

    /// When the broker stored it, ms since 1970 by the broker's clock.
    #[must_use]
    pub fn store_timestamp(&self) -> i64 {
        self.data.stored.store_timestamp
    }

    /// Address of the producer as the broker saw it.
    #[must_use]
    pub fn born_host(&self) -> SocketAddr {
        self.data.stored.born_host
    }

    /// Address of the broker.
    #[must_use]
    pub fn store_host(&self) -> SocketAddr {
        self.data.stored.store_host
    }

    /// The user's number given with the message.
    #[must_use]
    pub fn flag(&self) -> i32 {
        self.data.stored.flag
    }

    /// System bits: compression, transaction state, address kinds.
    #[must_use]
    pub fn sys_flag(&self) -> SysFlag {
        self.data.stored.sys_flag
    }

    /// First offset of the queue when the message was pulled.
    #[must_use]
    pub fn min_offset(&self) -> i64 {
        self.data.min_offset
    }

    /// Next offset of the queue when the message was pulled: `max_offset - queue_offset - 1` messages lie behind this one.
    #[must_use]
    pub fn max_offset(&self) -> i64 {
        self.data.max_offset
    }

    /// The record as stored.
    #[must_use]
    pub fn stored(&self) -> &StoredMessage {
        &self.data.stored
    }

    /// The same message after one more failed attempt in place.
    pub(crate) fn failed_once_more(mut self) -> Self {
        self.reconsume_times = self.reconsume_times.saturating_add(1);
        self
    }
}
