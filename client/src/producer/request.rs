//! Request and reply over topics.
//!
//! ```text
//! Producer::request ─▶ message with CORRELATION_ID, REPLY_TO_CLIENT, TTL ─▶ topic ─▶ a consumer of it
//!        ▲                                                                              │ MessageExt::reply
//!        └── 326 over the requester's connection ◀── broker ◀── Producer::send_reply ◀──┘
//! ```
//! The properties are Java's, so either side may be a Java program.
use std::{
    pin::pin,
    time::{Duration, Instant},
};

use bindery_protocol::{codes::ResponseCode, message::property, names};
use bytes::Bytes;

use super::{
    Kind, Outgoing, Producer,
    attempt::{Attempts, Sender},
};
use crate::{ClientError, Message, MessageExt, MessageIllegal, SendResult};

/// What a reply's `MSG_TYPE` says.
const REPLY: &str = "reply";

/// An answer to a request, made by [`MessageExt::reply`] and sent by [`Producer::send_reply`].
#[derive(Debug, Clone)]
pub struct ReplyMessage {
    /// The message; tags, keys and user properties may be added.
    pub message: Message,
    /// The broker over which the request came: the requester is connected to it.
    broker_name: String,
}

impl MessageExt {
    /// Whether the sender waits for a reply.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.property(property::CORRELATION_ID).is_some()
            && self.property(property::REPLY_TO_CLIENT).is_some()
    }

    /// Makes the reply to this request.
    ///
    /// # Errors
    /// [`MessageIllegal::NotARequest`] when the message lacks what a reply needs.
    pub fn reply(&self, body: impl Into<Bytes>) -> Result<ReplyMessage, MessageIllegal> {
        let needed = |property: &'static str| {
            self.property(property)
                .ok_or(MessageIllegal::NotARequest { property })
        };
        let topic = names::reply_topic(needed(property::CLUSTER)?);
        let mut message = Message::new(topic, body);
        for name in [property::CORRELATION_ID, property::REPLY_TO_CLIENT] {
            message.properties.put(name, needed(name)?);
        }
        if let Some(ttl) = self.property(property::TTL) {
            message.properties.put(property::TTL, ttl);
        }
        message.properties.put(property::MSG_TYPE, REPLY);
        Ok(ReplyMessage {
            message,
            broker_name: self.broker_name().to_owned(),
        })
    }
}

impl Producer {
    /// Sends a message and waits until one of its consumers replies, for `timeout` over all. Ends exactly once, with the
    /// reply or an error. Cancel safe: a late reply is dropped.
    ///
    /// # Errors
    /// Those of [`Producer::send`]; [`ClientError::NoReply`] when the time is over: the request may have been handled.
    pub async fn request(
        &self,
        mut message: Message,
        timeout: Duration,
    ) -> Result<MessageExt, ClientError> {
        let (topic, client) = (message.topic.clone(), &self.inner.client.shared);
        let correlation_id = client.unique_ids.next_id();
        let waiting = client.requests.wait(&correlation_id);
        let properties = &mut message.properties;
        properties.put(property::CORRELATION_ID, correlation_id);
        properties.put(property::REPLY_TO_CLIENT, client.id.as_str());
        properties.put(property::TTL, timeout.as_millis().to_string());
        let exchange = async {
            let outgoing = self.outgoing(message).await?;
            let sender = &self.inner.sender;
            let (_, route) = client
                .publish_route(&outgoing.topic, sender.settings.default_topic_queues)
                .await?;
            client.listen_for_replies(&route).await;
            let mut waiting = waiting;
            let mut sending = pin!(sender.send(&outgoing, sender.settings.retries));
            // The reply may overtake the broker's answer to the send.
            tokio::select! {
                reply = waiting.reply() => return reply,
                sent = &mut sending => drop(sent?),
            }
            waiting.reply().await
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(ClientError::NoReply {
                topic,
                after: timeout,
            }),
        }
    }

    /// Sends a reply: to the broker the request came from, and after a failure to others of its cluster, each once. The
    /// answer tells whether the requester took it.
    ///
    /// # Errors
    /// As [`Producer::send`]; a requester that is gone, or waits no more, is a [`ClientError::SendFailed`] with the
    /// broker's remark, and the reply is stored all the same.
    pub async fn send_reply(&self, reply: ReplyMessage) -> Result<SendResult, ClientError> {
        let ReplyMessage {
            message,
            broker_name,
        } = reply;
        let topic = message.topic.clone();
        let mut outgoing = self.outgoing(message).await?;
        // The reply topic is the cluster's own: it is in no namespace.
        outgoing.topic = topic;
        outgoing.kind = Kind::Reply;
        self.inner.sender.reply(&outgoing, &broker_name).await
    }
}

impl Sender {
    /// To the home broker first, then to the others, each at most once: a broker that could not hand the reply on has
    /// stored it, and would only store it again.
    async fn reply(&self, message: &Outgoing, home: &str) -> Result<SendResult, ClientError> {
        let mut attempts = Attempts {
            started: Instant::now(),
            brokers: Vec::new(),
        };
        let deadline = attempts.started + self.settings.timeout;
        let (_, route) = self.client.publish_route(&message.topic, 1).await?;
        let mut queues: Vec<_> = route.publish.iter().collect();
        queues.sort_by_key(|queue| (queue.broker_name != home, &queue.broker_name));
        queues.dedup_by_key(|queue| &queue.broker_name);
        let mut failure = None;
        for queue in queues.into_iter().take(self.settings.retries + 1) {
            let left = deadline.saturating_duration_since(Instant::now());
            let error = match self.try_once(message, queue, left, &route).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            attempts.brokers.push(queue.broker_name.clone());
            let again = self.worth_another(&error) || error.is_code(ResponseCode::SYSTEM_ERROR);
            failure = Some(error);
            if !again || Instant::now() >= deadline {
                break;
            }
        }
        attempts.end(message, None, failure)
    }
}
