//! A message: a payload and its headers.
//!
//! ```text
//! Message::new(order).tag("paid").key("k-1") ──▶ Output<Order>::send ──▶ binder
//! binder ──▶ Message<Bytes>::received(body, headers) ──▶ extractors ──▶ handler
//! ```

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use crate::handler::Delivery;
use crate::headers::{HeaderValue, Headers, names};

/// A payload with headers. `Message` alone is a received one, whose payload are bytes that nobody has decoded yet.
///
/// The setters chain and never fail; what cannot be sent (a reserved header, a delay level the broker doesn't have, a
/// key with a blank) is the error of the send.
///
/// ```
/// # use bindery::Message;
/// let message = Message::new("Hello RocketMQ!").tag("test").key("k-1").delay_level(2).header("type", "greeting");
/// assert_eq!(message.headers().tags(), Some("test"));
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Message<T = Bytes> {
    payload: T,
    headers: Headers,
}

impl<T> Message<T> {
    /// A message without headers.
    pub fn new(payload: T) -> Self {
        Self {
            payload,
            headers: Headers::new(),
        }
    }

    /// A message of these parts.
    pub fn from_parts(payload: T, headers: Headers) -> Self {
        Self { payload, headers }
    }

    /// The payload and the headers.
    pub fn into_parts(self) -> (T, Headers) {
        (self.payload, self.headers)
    }

    /// The payload.
    pub fn payload(&self) -> &T {
        &self.payload
    }

    /// The payload, without the headers.
    pub fn into_payload(self) -> T {
        self.payload
    }

    /// The headers.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The headers, to change them.
    pub fn headers_mut(&mut self) -> &mut Headers {
        &mut self.headers
    }

    /// The same headers with another payload.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Message<U> {
        Message {
            payload: change(self.payload),
            headers: self.headers,
        }
    }

    /// Sets the tag by which consumers select messages.
    #[must_use]
    pub fn tag(self, tag: impl Into<HeaderValue>) -> Self {
        self.header(names::TAGS, tag)
    }

    /// Adds a key by which the message can be looked up at the broker. A blank in it is an error of the send.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<str>) -> Self {
        self.headers.add_key(key.as_ref());
        self
    }

    /// Adds several keys.
    #[must_use]
    pub fn keys<K: AsRef<str>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        keys.into_iter().fold(self, Message::key)
    }

    /// Delivers the message later: level 1 to 18 of the broker's table (1 s, 5 s, 10 s, 30 s, 1 min, … 2 h by default);
    /// 0 delivers at once.
    #[must_use]
    pub fn delay_level(self, level: u8) -> Self {
        self.header(names::DELAY, level)
    }

    /// Delivers the message so long after the broker took it, to a second; for brokers of version 5 with their timer on, at
    /// most three days ahead unless they are set otherwise. Replaces a delay level.
    #[must_use]
    pub fn deliver_after(self, delay: Duration) -> Self {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.timed(names::TIMER_DELAY_MS, millis)
    }

    /// Delivers the message at this time, milliseconds since 1970; the rules are those of [`Message::deliver_after`]. A time
    /// that is past means at once.
    #[must_use]
    pub fn deliver_at(self, millis: u64) -> Self {
        self.timed(names::TIMER_DELIVER_MS, millis)
    }

    fn timed(mut self, name: &str, millis: u64) -> Self {
        for other in [
            names::DELAY,
            names::TIMER_DELAY_SEC,
            names::TIMER_DELAY_MS,
            names::TIMER_DELIVER_MS,
            names::START_DELIVER_TIME,
        ] {
            self.headers.remove(other);
        }
        self.header(name, millis.to_string())
    }

    /// Says how the payload is encoded, where it isn't what the output's `content-type` says.
    #[must_use]
    pub fn content_type(self, content_type: impl Into<HeaderValue>) -> Self {
        self.header(names::CONTENT_TYPE, content_type)
    }

    /// Sets a header. Names that RocketMQ keeps for itself are an error of the send.
    #[must_use]
    pub fn header(mut self, name: impl AsRef<str>, value: impl Into<HeaderValue>) -> Self {
        self.headers.insert(name, value);
        self
    }
}

impl Message<Bytes> {
    /// A received message: its body as it was on the wire, its user-visible properties and the facts of its delivery.
    pub fn received<N, V>(
        body: Bytes,
        properties: impl IntoIterator<Item = (N, V)>,
        delivery: Arc<Delivery>,
    ) -> Self
    where
        N: AsRef<str>,
        V: Into<Arc<str>>,
    {
        Self {
            payload: body,
            headers: Headers::received(properties, delivery),
        }
    }
}

impl<T> From<T> for Message<T> {
    fn from(payload: T) -> Self {
        Self::new(payload)
    }
}

impl From<&str> for Message<String> {
    fn from(payload: &str) -> Self {
        Self::new(payload.to_owned())
    }
}

impl From<Message<&str>> for Message<String> {
    fn from(message: Message<&str>) -> Self {
        message.map(str::to_owned)
    }
}
