//! Sending: a message is checked, gets its id, finds a queue, and is tried until it is stored or the time is over.
//!
//! ```text
//! Message ─▶ validate ─▶ id, compression ─▶ route ─▶ select queue ─▶ send ─┬─▶ SendResult
//!                                              ▲                           │
//!                                              └── other broker ◀── retry ─┘
//! ```
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use self::attempt::Sender;
use crate::{
    Client, ClientError, Message, MessageIllegal, MessageQueue, SendResult, TopicSettings,
    namespace,
};

mod attempt;
mod builder;
mod prepare;
mod recall;
mod request;
mod select;
mod settings;
mod transaction;

pub use builder::ProducerBuilder;
pub(crate) use prepare::{Kind, Outgoing};
pub use request::ReplyMessage;
pub use transaction::{
    BoxError, HalfMessage, LocalFailure, LocalState, TransactionArgs, TransactionListener,
    TransactionProducer, TransactionProducerBuilder, TransactionSendResult,
};
pub(crate) use transaction::{Checks, Question};

/// Answers after which another broker is tried: topic unknown (17), service not available (14), system error (1) and busy (2), no
/// permission (16), no buyer (204), other unit (205), about to stop (1500). The set of the Java client 5.3.3.
pub const DEFAULT_RETRY_CODES: [i32; 8] = [17, 14, 1, 2, 16, 204, 205, 1500];

/// Sends messages as one producer group. A handle: clones share everything.
///
/// ```no_run
/// # async fn example(client: &bindery_client::Client) -> Result<(), bindery_client::ClientError> {
/// use bindery_client::{Message, Producer};
///
/// let producer = Producer::builder("orders").client(client).start().await?;
/// let sent = producer.send(Message::new("orders", "hello").tags("created").keys(["order-7"])).await?;
/// println!("{} lies at {} of {}", sent.msg_id, sent.queue_offset, sent.queue);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Producer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    sender: Sender,
    client: Client,
    /// The client was made for this producer alone.
    owns_client: bool,
    stopped: AtomicBool,
    in_flight: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Brokers hear of it with the next heartbeat, or never if there is none: then the connection ends too.
        self.client.shared.forget_producer(&self.sender.group);
    }
}

impl Producer {
    /// Starts building a producer of this group.
    #[must_use]
    pub fn builder(group: impl Into<String>) -> ProducerBuilder {
        ProducerBuilder::new(group.into())
    }

    /// Sends and waits for the broker's answer; failures that may pass are tried again, on another broker if there is one, within the
    /// send timeout.
    ///
    /// # Errors
    /// [`ClientError::MessageIllegal`] before anything is sent; [`ClientError::SendFailed`] with the last attempt's failure as source;
    /// [`ClientError::TopicNotFound`] and the name servers' failures. After a timeout the message may be stored all the same.
    pub async fn send(&self, message: Message) -> Result<SendResult, ClientError> {
        let outgoing = self.outgoing(message).await?;
        let retries = self.inner.sender.settings.retries;
        self.inner.sender.send(&outgoing, retries).await
    }

    /// Starts sending at once and returns what to wait on; dropping that does not stop the send. The rules are those of
    /// [`Producer::send`].
    ///
    /// # Errors
    /// At once: [`ClientError::TooManyInFlight`] and [`ClientError::ShutDown`]. Later: those of [`Producer::send`].
    pub fn send_async(
        &self,
        message: Message,
    ) -> Result<impl Future<Output = Result<SendResult, ClientError>> + Send + use<>, ClientError>
    {
        self.running()?;
        let limit = self.inner.sender.settings.max_in_flight;
        let Ok(permit) = Arc::clone(&self.inner.in_flight).try_acquire_owned() else {
            return Err(ClientError::TooManyInFlight { limit });
        };
        let producer = self.clone();
        let sending = self.inner.tasks.spawn(async move {
            let _in_flight = permit;
            let outgoing = producer.outgoing(message).await?;
            let retries = producer.inner.sender.settings.async_retries;
            producer.inner.sender.send(&outgoing, retries).await
        });
        Ok(async move {
            sending.await.unwrap_or(Err(ClientError::TaskEnded {
                what: "an asynchronous send",
            }))
        })
    }

    /// Hands the message to the connection and does not wait for an answer. It may get lost without notice.
    ///
    /// # Errors
    /// What can be known before an answer: illegal message, no route, no connection.
    pub async fn send_oneway(&self, message: Message) -> Result<(), ClientError> {
        let outgoing = self.outgoing(message).await?;
        self.inner.sender.oneway(&outgoing, None).await
    }

    /// [`Producer::send_oneway`] to the queue whose index the selector returns.
    ///
    /// # Errors
    /// As [`Producer::send_oneway`], and [`MessageIllegal::QueueIndex`].
    pub async fn send_oneway_ordered<F>(
        &self,
        message: Message,
        select: F,
    ) -> Result<(), ClientError>
    where
        F: FnOnce(&[MessageQueue], &Message) -> usize + Send,
    {
        let queue = self.selected(&message, select).await?;
        let outgoing = self.outgoing(message).await?;
        self.inner.sender.oneway(&outgoing, Some(&queue)).await
    }

    /// Sends to this very queue; no other queue is tried. Tried again only when nothing can have been stored.
    ///
    /// # Errors
    /// As [`Producer::send`], and [`MessageIllegal::QueueTopic`].
    pub async fn send_to_queue(
        &self,
        message: Message,
        queue: &MessageQueue,
    ) -> Result<SendResult, ClientError> {
        if message.topic != queue.topic {
            let (topic, queue_topic) = (message.topic, queue.topic.clone());
            return Err(MessageIllegal::QueueTopic { topic, queue_topic }.into());
        }
        let outgoing = self.outgoing(message).await?;
        self.inner.sender.send_to(&outgoing, queue).await
    }

    /// Sends to the queue whose index the selector returns for the topic's writable queues (see [`Producer::publish_queues`]); no
    /// other queue is tried. The same index for the same key keeps the messages of a key in order, as long as each send is awaited.
    ///
    /// # Errors
    /// As [`Producer::send`], and [`MessageIllegal::QueueIndex`].
    pub async fn send_ordered<F>(
        &self,
        message: Message,
        select: F,
    ) -> Result<SendResult, ClientError>
    where
        F: FnOnce(&[MessageQueue], &Message) -> usize + Send,
    {
        let queue = self.selected(&message, select).await?;
        self.send_to_queue(message, &queue).await
    }

    /// Sends several messages of one topic in one request; they are stored together, one behind the other, or not at all.
    ///
    /// # Errors
    /// As [`Producer::send`], and the batch variants of [`MessageIllegal`].
    pub async fn send_batch(&self, messages: Vec<Message>) -> Result<SendResult, ClientError> {
        self.running()?;
        let outgoing = prepare::prepare_batch(
            &self.inner.client.shared,
            &self.inner.sender.settings,
            messages,
        )?;
        let retries = self.inner.sender.settings.retries;
        self.inner.sender.send(&outgoing, retries).await
    }

    /// The writable queues of a topic, ordered by broker name and queue id. A topic that does not exist has those it will get when
    /// the first message makes it.
    ///
    /// # Errors
    /// [`ClientError::TopicNotFound`] when it does not exist and can't come into being by sending; the name servers' failures.
    pub async fn publish_queues(&self, topic: &str) -> Result<Vec<MessageQueue>, ClientError> {
        self.running()?;
        let client = &self.inner.client.shared;
        let wrapped = namespace::wrap(client.config.namespace.as_deref(), topic);
        let (_, route) = client
            .publish_route(&wrapped, self.inner.sender.settings.default_topic_queues)
            .await?;
        let plain = |queue: &MessageQueue| {
            MessageQueue::new(topic, queue.broker_name.clone(), queue.queue_id)
        };
        Ok(route.publish.iter().map(plain).collect())
    }

    /// Creates the topic on every master, with so many queues on each, and waits until its route is there.
    ///
    /// # Errors
    /// Those of [`crate::Admin::create_topic`].
    pub async fn create_topic(&self, topic: &str, queues: i32) -> Result<(), ClientError> {
        self.inner
            .client
            .admin()
            .create_topic(topic, TopicSettings::queues(queues))
            .await
    }

    /// The client it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// Leaves the brokers, after the sends in flight. A client that was made for this producer alone is shut down too. A second call
    /// does nothing.
    pub async fn shutdown(&self) {
        let inner = &self.inner;
        if inner.stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        inner.tasks.close();
        inner.tasks.wait().await;
        inner
            .client
            .shared
            .producer_leaves(&inner.sender.group)
            .await;
        if inner.owns_client {
            inner.client.shutdown().await;
        }
    }

    fn running(&self) -> Result<(), ClientError> {
        if self.inner.stopped.load(Ordering::Acquire) {
            Err(ClientError::ShutDown {
                what: "the producer",
            })
        } else {
            Ok(())
        }
    }

    async fn outgoing(&self, message: Message) -> Result<Outgoing, ClientError> {
        self.running()?;
        let settings = &self.inner.sender.settings;
        prepare::check(&message, settings.max_message_size)?;
        prepare::prepare(&self.inner.client.shared, settings, message).await
    }

    async fn selected<F>(&self, message: &Message, select: F) -> Result<MessageQueue, ClientError>
    where
        F: FnOnce(&[MessageQueue], &Message) -> usize + Send,
    {
        prepare::check(message, self.inner.sender.settings.max_message_size)?;
        let mut queues = self.publish_queues(&message.topic).await?;
        let index = select(&queues, message);
        if index >= queues.len() {
            return Err(MessageIllegal::QueueIndex {
                index,
                count: queues.len(),
            }
            .into());
        }
        Ok(queues.swap_remove(index))
    }
}
