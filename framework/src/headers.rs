//! The headers of a message: what its sender set, and the facts a broker knows about a received one.
//!
//! ```text
//! properties on the wire ──received──▶ Headers { set: TAGS, KEYS, contentType, type, … }  ─┐
//! Delivery (topic, queue, times, …) ──────────▶ facts, under both of Spring's prefixes ───┴─▶ get("ROCKET_MQ_TOPIC")
//! Message::new(..).tag(..).header(..) ──▶ Headers ──outgoing (checked)──▶ binder
//! ```

use std::fmt;
use std::num::ParseIntError;
use std::ops::Index;
use std::sync::{Arc, OnceLock};

use crate::handler::Delivery;

pub mod names;
mod outgoing;
mod value;

#[cfg(test)]
mod tests;

pub use outgoing::{OutgoingHeaders, Timing};
pub use value::{HeaderKind, HeaderValue};

use names::{Resolved, fact};

/// A message's headers: names are case-sensitive and keep their order. A handle: cloning copies two pointers.
///
/// Lookups understand both prefixes of Spring Cloud Alibaba: `TAGS`, `ROCKET_TAGS` and `rocketmq_TAGS` are one header,
/// `ROCKET_MQ_TOPIC` and `rocketmq_TOPIC` one fact.
///
/// ```
/// # use bindery::Headers;
/// let mut headers = Headers::new();
/// headers.insert("TAGS", "paid");
/// headers.insert("amount", 3);
/// assert_eq!(headers.get("ROCKET_TAGS"), Some("paid"));
/// assert_eq!(&headers["amount"], "3");
/// ```
#[derive(Clone, Default)]
pub struct Headers {
    set: Arc<Vec<(Arc<str>, HeaderValue)>>,
    received: Option<Arc<Received>>,
    // The first mistake of a builder call: setters chain, so that it is told when the message is sent.
    mistake: Option<Box<HeaderError>>,
}

/// A delivery with its facts as text, written when a handler first asks for one by name.
struct Received {
    delivery: Arc<Delivery>,
    texts: OnceLock<Vec<(&'static str, HeaderValue)>>,
}

/// Why headers cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// RocketMQ keeps this name for itself.
    #[error("the header `{name}` is reserved{}", instead_of(instead))]
    Reserved {
        /// The header.
        name: String,
        /// What to use instead; empty when there is nothing.
        instead: &'static str,
    },
    /// The delay is no level the broker has.
    #[error("the delay level `{given}` is not between 0 and {max}")]
    InvalidDelay {
        /// What was set.
        given: String,
        /// The highest level.
        max: u8,
    },
    /// A wish for a later time is no number.
    #[error("the header `{name}` holds `{given}`, it must be a whole number that is not negative")]
    InvalidTime {
        /// The header.
        name: String,
        /// What was set.
        given: String,
    },
    /// The flag is no 32-bit integer.
    #[error("the message flag `{given}` is not a 32-bit integer")]
    InvalidFlag {
        /// What was set.
        given: String,
        /// Cause.
        #[source]
        source: ParseIntError,
    },
    /// A key holds a blank, at which the broker would split it.
    #[error("the key `{key}` holds a blank: the broker would take it for several keys")]
    BlankInKey {
        /// The key.
        key: String,
    },
    /// Name or value holds one of the two bytes that separate properties.
    #[error("the header `{name}` holds a separator byte (1 or 2)")]
    Separator {
        /// The header.
        name: String,
    },
    /// All headers together don't fit the message.
    #[error("the headers take {length} bytes, a message has room for {max}")]
    TooLong {
        /// Bytes as encoded.
        length: usize,
        /// The limit in bytes.
        max: usize,
    },
}

fn instead_of(instead: &str) -> String {
    if instead.is_empty() {
        String::new()
    } else {
        format!("; use {instead}")
    }
}

impl Headers {
    /// No headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The headers of a received message: its user-visible properties, in wire order, and the facts of its delivery.
    ///
    /// The older binder's typed headers (`spring_json_header_types`) get their type back.
    pub fn received<N, V>(
        properties: impl IntoIterator<Item = (N, V)>,
        delivery: Arc<Delivery>,
    ) -> Self
    where
        N: AsRef<str>,
        V: Into<Arc<str>>,
    {
        let mut headers = Self::new();
        let mut types: Option<Arc<str>> = None;
        for (name, value) in properties {
            let name = name.as_ref();
            if name == names::HEADER_TYPES {
                types = Some(value.into());
            } else {
                headers.insert(name, HeaderValue::text(value));
            }
        }
        if let Some(types) = types {
            headers.retype(&types);
        }
        headers.received = Some(Arc::new(Received {
            delivery,
            texts: OnceLock::new(),
        }));
        headers
    }

    fn retype(&mut self, types: &str) {
        // A header of another library that we can't read is no reason to refuse the message.
        let Ok(types) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(types)
        else {
            return;
        };
        for (name, value) in Arc::make_mut(&mut self.set) {
            if let Some(java_type) = types.get(&**name).and_then(serde_json::Value::as_str) {
                *value = HeaderValue::typed(value.as_str(), java_type);
            }
        }
    }

    /// Sets a header; what it had before is replaced. Whether it may be sent is checked when it is.
    pub fn insert(&mut self, name: impl AsRef<str>, value: impl Into<HeaderValue>) {
        // A fact's name stays as given: `outgoing` refuses it, and nothing can shadow what the broker said.
        let name = match names::resolve(name.as_ref()) {
            Resolved::Set(canonical) => canonical,
            Resolved::Fact(_) => name.as_ref(),
        };
        let value = value.into();
        let set = Arc::make_mut(&mut self.set);
        match set.iter_mut().find(|(existing, _)| &**existing == name) {
            Some((_, existing)) => *existing = value,
            None => set.push((name.into(), value)),
        }
    }

    /// Takes a header away; says whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let Resolved::Set(name) = names::resolve(name) else {
            return false;
        };
        if !self.set.iter().any(|(existing, _)| &**existing == name) {
            return false;
        }
        Arc::make_mut(&mut self.set).retain(|(existing, _)| &**existing != name);
        true
    }

    /// The text of a header or of a fact about the delivery.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.value(name).map(HeaderValue::as_str)
    }

    /// The value of a header or of a fact about the delivery, with its type.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&HeaderValue> {
        match names::resolve(name) {
            Resolved::Set(name) => self
                .set
                .iter()
                .find(|(existing, _)| &**existing == name)
                .map(|(_, value)| value),
            Resolved::Fact(fact) => self.fact(fact),
        }
    }

    fn fact(&self, fact: &str) -> Option<&HeaderValue> {
        let received = self.received.as_ref()?;
        let texts = received
            .texts
            .get_or_init(|| fact_texts(&received.delivery));
        texts
            .iter()
            .find(|(name, _)| *name == fact)
            .map(|(_, value)| value)
    }

    /// All headers that were set, in order, without the facts of the delivery.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HeaderValue)> {
        self.set.iter().map(|(name, value)| (&**name, value))
    }

    /// All facts of the delivery under the newer binder's names (`ROCKET_MQ_TOPIC`, …); empty for a message to be sent.
    pub fn facts(&self) -> impl Iterator<Item = (String, &HeaderValue)> {
        let texts = self
            .received
            .iter()
            .flat_map(|r| r.texts.get_or_init(|| fact_texts(&r.delivery)));
        texts.map(|(name, value)| (format!("ROCKET_MQ_{name}"), value))
    }

    /// The delivery these headers came with; `None` for a message to be sent.
    #[must_use]
    pub fn delivery(&self) -> Option<&Delivery> {
        self.received.as_ref().map(|received| &*received.delivery)
    }

    /// The payload's content type, else what Spring Cloud Stream 2.x called the original content type.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.get(names::CONTENT_TYPE)
            .or_else(|| self.get(names::ORIGINAL_CONTENT_TYPE))
    }

    /// The tag.
    #[must_use]
    pub fn tags(&self) -> Option<&str> {
        self.get(names::TAGS)
    }

    /// The keys, one by one.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.get(names::KEYS)
            .unwrap_or_default()
            .split_ascii_whitespace()
    }

    /// Takes over the headers of a received message that are absent here, as `copy_headers` does for a handler's
    /// answer: never the delay and never the facts of the delivery.
    pub fn copy_absent_from(&mut self, inbound: &Self) {
        for (name, value) in inbound.iter() {
            let travels =
                name != names::DELAY && !names::is_one_hop(name) && name != names::PARTITION;
            if travels && self.value(name).is_none() && names::reserved(name).is_none() {
                self.insert(name, value.clone());
            }
        }
    }

    /// Sets the tag, the keys or another header as part of a chain; a mistake is told by [`outgoing`](Self::outgoing).
    pub(crate) fn add_key(&mut self, key: &str) {
        if key.contains(char::is_whitespace) && self.mistake.is_none() {
            self.mistake = Some(Box::new(HeaderError::BlankInKey {
                key: key.to_owned(),
            }));
        }
        let keys = match self.get(names::KEYS) {
            Some(present) if !present.is_empty() => format!("{present} {key}"),
            _ => key.to_owned(),
        };
        self.insert(names::KEYS, keys);
    }
}

fn fact_texts(delivery: &Delivery) -> Vec<(&'static str, HeaderValue)> {
    let mut texts: Vec<(&'static str, HeaderValue)> = vec![
        (fact::TOPIC, delivery.topic.clone().into()),
        (fact::MESSAGE_ID, delivery.message_id.clone().into()),
        (fact::BORN_TIMESTAMP, delivery.born_millis.into()),
        (fact::STORE_TIMESTAMP, delivery.store_millis.into()),
        (fact::QUEUE_ID, delivery.queue_id.into()),
        (fact::QUEUE_OFFSET, delivery.queue_offset.into()),
        (fact::SYS_FLAG, delivery.sys_flag.into()),
        (fact::RECONSUME_TIMES, delivery.reconsume_times.into()),
    ];
    let optional = [
        (fact::BORN_HOST, &delivery.born_host),
        (fact::TRANSACTION_ID, &delivery.transaction_id),
    ];
    texts.extend(
        optional
            .into_iter()
            .filter_map(|(name, text)| Some((name, HeaderValue::text(text.clone()?)))),
    );
    texts
}

impl Index<&str> for Headers {
    type Output = str;

    /// The text of a header.
    ///
    /// # Panics
    /// When there is no such header; use [`Headers::get`] where it may be missing.
    fn index(&self, name: &str) -> &str {
        self.get(name)
            .unwrap_or_else(|| panic!("no header `{name}`"))
    }
}

impl PartialEq for Headers {
    fn eq(&self, other: &Self) -> bool {
        self.set == other.set
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter())
            .entries(self.facts())
            .finish()
    }
}

impl<N: AsRef<str>, V: Into<HeaderValue>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(entries: I) -> Self {
        let mut headers = Self::new();
        headers.extend(entries);
        headers
    }
}

impl<N: AsRef<str>, V: Into<HeaderValue>> Extend<(N, V)> for Headers {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, entries: I) {
        for (name, value) in entries {
            self.insert(name, value);
        }
    }
}
