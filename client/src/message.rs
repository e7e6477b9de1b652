//! A message on its way out: what the user gives, as the properties the broker will store, and what came of sending it.
//!
//! ```text
//! Message::new(topic, body).tags(…).keys(…).delay_level(…).property(…) ─▶ Producer::send ─▶ SendResult
//! ```
use std::time::Duration;

use bindery_protocol::message::{Properties, properties, property};
use bytes::Bytes;

use crate::{MessageQueue, error::MessageIllegal};

/// A message to send. Building never fails; what is wrong with it is reported by the send.
///
/// ```
/// use bindery_client::Message;
///
/// let message = Message::new("orders", "{\"id\":7}").tags("created").keys(["order-7"]).property("region", "eu");
/// assert_eq!(message.properties().get("TAGS"), Some("created"));
/// ```
#[derive(Debug, Clone)]
pub struct Message {
    pub(crate) topic: String,
    pub(crate) body: Bytes,
    pub(crate) flag: i32,
    pub(crate) properties: Properties,
    /// The first mistake made while building.
    pub(crate) illegal: Option<MessageIllegal>,
}

impl Message {
    /// A message without tag and keys that waits for the store (`WAIT=true`), as Java's constructor makes it.
    #[must_use]
    pub fn new(topic: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let mut properties = Properties::new();
        properties.put(property::WAIT, "true");
        Self {
            topic: topic.into(),
            body: body.into(),
            flag: 0,
            properties,
            illegal: None,
        }
    }

    /// The tag that subscriptions filter by; a message has one. An empty text is no tag.
    #[must_use]
    pub fn tags(self, tag: impl Into<String>) -> Self {
        self.system(property::TAGS, tag.into())
    }

    /// The keys under which the message can be found later; they are stored joined by blanks.
    #[must_use]
    pub fn keys<K: AsRef<str>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        let mut joined = String::new();
        for key in keys {
            if !joined.is_empty() {
                joined.push(' ');
            }
            joined.push_str(key.as_ref());
        }
        self.system(property::KEYS, joined)
    }

    /// Delivers the message after the broker's delay of this level (1 is the shortest; 0 means at once).
    #[must_use]
    pub fn delay_level(mut self, level: u8) -> Self {
        for other in property::DELAYS {
            self.properties.remove(other);
        }
        if level == 0 {
            return self;
        }
        self.system(property::DELAY, level.to_string())
    }

    /// Delivers the message at this time, milliseconds since 1970, to a second: one of brokers of version 5 with their timer on,
    /// at most three days ahead unless they are set otherwise. A time that is past means at once. Replaces a delay level and
    /// other wishes of this kind.
    #[must_use]
    pub fn deliver_at(self, millis: i64) -> Self {
        self.timed(property::TIMER_DELIVER_MS, millis.to_string())
    }

    /// Delivers the message so long after the broker took it, to a second; the rules are those of [`Message::deliver_at`].
    #[must_use]
    pub fn deliver_after(self, delay: Duration) -> Self {
        let millis = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        self.timed(property::TIMER_DELAY_MS, millis.to_string())
    }

    fn timed(mut self, name: &'static str, value: String) -> Self {
        for other in property::DELAYS {
            self.properties.remove(other);
        }
        self.system(name, value)
    }

    /// Whether the answer waits until the message is on disk or replicated, where the broker is so configured; `true` by default.
    #[must_use]
    pub fn wait_store(self, wait: bool) -> Self {
        self.system(property::WAIT, wait.to_string())
    }

    /// A number of the user's own that travels with the message.
    #[must_use]
    pub fn flag(mut self, flag: i32) -> Self {
        self.flag = flag;
        self
    }

    /// A user property. Names of the system, blank texts and texts with the separators 0x01 and 0x02 are refused by the send.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        let mistake = if property::RESERVED.contains(&name.as_str()) {
            Some(MessageIllegal::ReservedProperty { name: name.clone() })
        } else if name.trim().is_empty() || value.trim().is_empty() {
            Some(MessageIllegal::BlankProperty { name: name.clone() })
        } else if has_separator(&name) || has_separator(&value) {
            Some(MessageIllegal::PropertySeparator { name: name.clone() })
        } else {
            None
        };
        match mistake {
            Some(mistake) => self.illegal = self.illegal.or(Some(mistake)),
            None => drop(self.properties.put(name, value)),
        }
        self
    }

    /// Topic it goes to.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Body as given.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// All properties, the system's included.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    fn system(mut self, name: &'static str, value: String) -> Self {
        if has_separator(&value) {
            let mistake = MessageIllegal::PropertySeparator {
                name: name.to_owned(),
            };
            self.illegal = self.illegal.or(Some(mistake));
        } else if value.is_empty() {
            self.properties.remove(name);
        } else {
            self.properties.put(name, value);
        }
        self
    }
}

fn has_separator(text: &str) -> bool {
    text.bytes()
        .any(|byte| byte == properties::NAME_SEPARATOR || byte == properties::PAIR_SEPARATOR)
}

/// How safely a message was stored. All four mean that it is in the broker's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SendStatus {
    /// As safely as the broker is configured to.
    Ok,
    /// Not yet on disk, although the broker writes synchronously.
    FlushDiskTimeout,
    /// Not yet on a slave, although the broker replicates synchronously.
    FlushSlaveTimeout,
    /// No slave is there to replicate to, although the broker replicates synchronously.
    SlaveNotAvailable,
}

/// What the broker said about a message it stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendResult {
    /// How safely it was stored.
    pub status: SendStatus,
    /// The id made by the producer (`UNIQ_KEY`); it stays the same over retries and redeliveries. Comma-joined for a batch.
    pub msg_id: String,
    /// The id made by the broker: its address and the place in its commit log. Comma-joined for a batch.
    pub offset_msg_id: String,
    /// The queue it went to.
    pub queue: MessageQueue,
    /// Its place in that queue, the first message's for a batch. For a delayed message the place in the delay queue.
    pub queue_offset: i64,
    /// Transaction id, if the broker gave one.
    pub transaction_id: Option<String>,
    /// Region of the broker, `DefaultRegion` unless configured.
    pub region: String,
    /// With which a message for a later time can be taken back: [`Producer::recall`](crate::Producer::recall).
    pub recall_handle: Option<String>,
}
