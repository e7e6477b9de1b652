//! Sending: a message is checked, gets its id, finds a queue, and is tried until it is stored or the time is over.
//!
//! ```text
//! Message ─▶ validate ─▶ id, compression ─▶ route ─▶ select queue ─▶ send ─┬─▶ SendResult
//!                                              ▲                           │
//!                                              └── other broker ◀── retry ─┘
//! ```
use std::{future::Future, time::Duration};

use crate::{Client, ClientConfig, ClientError, Message, MessageQueue, SendResult};

/// Answers after which another broker is tried: TOPIC_NOT_EXIST, SERVICE_NOT_AVAILABLE, SYSTEM_ERROR, SYSTEM_BUSY, NO_PERMISSION,
/// NO_BUYER_ID, NOT_IN_CURRENT_UNIT, GO_AWAY (the set of the Java client 5.3.3).
pub const DEFAULT_RETRY_CODES: [i32; 8] = [17, 14, 1, 2, 16, 204, 205, 1500];

/// Sends messages as one producer group. A handle: clones share everything.
#[derive(Debug, Clone)]
pub struct Producer {}

/// Settings of a [`Producer`], with Java's defaults.
#[derive(Debug, Clone)]
pub struct ProducerBuilder {}

impl Producer {
    /// Starts building a producer of this group.
    #[must_use]
    pub fn builder(group: impl Into<String>) -> ProducerBuilder {
        todo!()
    }
    /// Sends and waits for the broker's answer; failures that may pass are tried again on another broker.
    pub async fn send(&self, message: Message) -> Result<SendResult, ClientError> {
        todo!()
    }
    /// Starts sending at once and returns what to wait on; dropping it does not stop the send. Refused when too many are in flight.
    pub fn send_async(
        &self,
        message: Message,
    ) -> Result<impl Future<Output = Result<SendResult, ClientError>> + Send + 'static, ClientError>
    {
        todo!();
        #[allow(unreachable_code)]
        Ok(async { todo!() })
    }
    /// Hands the message to the connection and does not wait for an answer. It may get lost without notice.
    pub async fn send_oneway(&self, message: Message) -> Result<(), ClientError> {
        todo!()
    }
    /// Sends to this very queue; no other queue is tried.
    pub async fn send_to_queue(
        &self,
        message: Message,
        queue: &MessageQueue,
    ) -> Result<SendResult, ClientError> {
        todo!()
    }
    /// Sends to the queue whose index the selector returns; no other queue is tried.
    pub async fn send_ordered<F>(
        &self,
        message: Message,
        select: F,
    ) -> Result<SendResult, ClientError>
    where
        F: FnOnce(&[MessageQueue], &Message) -> usize + Send,
    {
        todo!()
    }
    /// Sends several messages of one topic in one request; they are stored together or not at all.
    pub async fn send_batch(&self, messages: Vec<Message>) -> Result<SendResult, ClientError> {
        todo!()
    }
    /// The writable queues of a topic, ordered by broker name and queue id.
    pub async fn publish_queues(&self, topic: &str) -> Result<Vec<MessageQueue>, ClientError> {
        todo!()
    }
    /// Creates the topic on every master of the cluster, with so many read and write queues on each.
    pub async fn create_topic(&self, topic: &str, queues: u32) -> Result<(), ClientError> {
        todo!()
    }
    /// The client it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        todo!()
    }
    /// Leaves the brokers; sends in flight are awaited. A client that was made for this producer alone is shut down too.
    pub async fn shutdown(&self) {
        todo!()
    }
}

impl ProducerBuilder {
    /// Uses the connections, routes and heartbeats of this client.
    #[must_use]
    pub fn client(self, client: &Client) -> Self {
        todo!()
    }
    /// Makes a client of its own from this configuration.
    #[must_use]
    pub fn config(self, config: ClientConfig) -> Self {
        todo!()
    }
    /// Makes a client of its own with these name servers (`;`-separated) and defaults else.
    #[must_use]
    pub fn name_servers(self, list: &str) -> Self {
        todo!()
    }
    /// Time for a whole send, its retries included; 3 s.
    #[must_use]
    pub fn send_timeout(self, timeout: Duration) -> Self {
        todo!()
    }
    /// Further attempts after the first one failed; 2.
    #[must_use]
    pub fn retries(self, times: usize) -> Self {
        todo!()
    }
    /// Answers after which another attempt is made; [`DEFAULT_RETRY_CODES`].
    #[must_use]
    pub fn retry_codes(self, codes: impl IntoIterator<Item = i32>) -> Self {
        todo!()
    }
    /// Whether a message that was stored less safely than configured is sent again elsewhere; off.
    #[must_use]
    pub fn retry_when_not_stored_ok(self, retry: bool) -> Self {
        todo!()
    }
    /// Bodies of at least so many bytes are compressed; 4096. `None` switches compression off.
    #[must_use]
    pub fn compress_over(self, bytes: Option<usize>) -> Self {
        todo!()
    }
    /// Largest body in bytes, before compression; 4 MiB.
    #[must_use]
    pub fn max_message_size(self, bytes: usize) -> Self {
        todo!()
    }
    /// Queues of a topic that comes into being by sending to it; 4.
    #[must_use]
    pub fn default_topic_queues(self, queues: i32) -> Self {
        todo!()
    }
    /// Whether brokers that failed or were slow are left out for a while; off.
    #[must_use]
    pub fn avoid_faulty_brokers(self, avoid: bool) -> Self {
        todo!()
    }
    /// Topics whose routes are fetched at the start, so that brokers hear of the group before the first send.
    #[must_use]
    pub fn topics<T: Into<String>>(self, topics: impl IntoIterator<Item = T>) -> Self {
        todo!()
    }
    /// Sends that may be in flight by [`Producer::send_async`]; 10,000.
    #[must_use]
    pub fn max_in_flight(self, sends: usize) -> Self {
        todo!()
    }
    /// Starts the producer.
    ///
    /// # Errors
    /// A bad or already used group, or no name server address.
    pub async fn start(self) -> Result<Producer, ClientError> {
        todo!()
    }
}
