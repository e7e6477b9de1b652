//! A message that a test looks at.

use std::ops::Deref;

use serde::de::DeserializeOwned;

use crate::handler::Delivery;
use crate::message::Message;

/// A stored message: payload, headers, and where it lies. Derefs to the [`Message`].
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    message: Message,
    delivery: Delivery,
}

impl Received {
    pub(super) fn new(message: Message) -> Self {
        let delivery = message.headers().delivery().cloned().unwrap_or_default();
        Self { message, delivery }
    }

    /// The payload as text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.message.payload()).into_owned()
    }

    /// The payload read as JSON.
    ///
    /// # Panics
    /// When it is none of a `T`.
    #[must_use]
    #[track_caller]
    pub fn json<T: DeserializeOwned>(&self) -> T {
        serde_json::from_slice(self.message.payload())
            .unwrap_or_else(|error| panic!("the payload {:?} is another: {error}", self.text()))
    }

    /// A header, or a fact such as `ROCKET_MQ_QUEUE_ID`.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.message.headers().get(name)
    }

    /// The tag.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.message.headers().tags()
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        self.message.headers().keys().collect()
    }

    /// The topic that the message was sent to, also where it is a redelivery or a dead letter.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.delivery.topic
    }

    /// The number of the queue it lies in.
    #[must_use]
    pub fn queue_id(&self) -> i32 {
        self.delivery.queue_id
    }

    /// Its place in the queue.
    #[must_use]
    pub fn queue_offset(&self) -> i64 {
        self.delivery.queue_offset
    }

    /// The id that its sender was told.
    #[must_use]
    pub fn msg_id(&self) -> &str {
        &self.delivery.message_id
    }

    /// When it was stored, in milliseconds since 1970 UTC.
    #[must_use]
    pub fn store_millis(&self) -> i64 {
        self.delivery.store_millis
    }

    /// How often it had been redelivered.
    #[must_use]
    pub fn redeliveries(&self) -> u32 {
        self.delivery.reconsume_times
    }

    /// Everything known about its delivery.
    #[must_use]
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }
}

impl Deref for Received {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}
