//! Transactions: a message that consumers get exactly if a local transaction is committed.
//!
//! ```text
//! message ─▶ half message at a broker ─▶ local transaction ─▶ END_TRANSACTION ─▶ committed: consumers get it
//!                     │                                            │ lost, or unknown     rolled back: nobody does
//!                     └─ broker asks (39) any producer of the group ◀┘ ─▶ check_local ─▶ END_TRANSACTION
//! ```
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bindery_protocol::{
    codes::RequestCode,
    frame::Request,
    headers::EndTransactionHeader,
    message::{SysFlag, Transaction, id::parse_offset_msg_id, property},
};
use tokio_util::sync::DropGuard;

use self::listener::caught;
use super::{Producer, prepare};
use crate::{Client, ClientError, Message, MessageIllegal, SendResult, SendStatus, namespace};

mod builder;
mod checks;
mod listener;

pub use builder::TransactionProducerBuilder;
pub(crate) use checks::{Checks, Question};
pub use listener::{
    BoxError, HalfMessage, LocalFailure, LocalState, TransactionArgs, TransactionListener,
};

/// Attempts at telling the outcome when the answer is awaited.
const END_ATTEMPTS: usize = 3;

/// Sends messages that consumers get exactly if a local transaction is committed. A handle: clones share everything.
///
/// ```no_run
/// # use bindery_client::{Client, ClientError, Message, Producer, TransactionArgs, TransactionListener};
/// # async fn example(client: &Client, orders: impl TransactionListener) -> Result<(), ClientError> {
/// let producer = Producer::builder("orders")
///     .client(client)
///     .topics(["orders"])
///     .transactional(orders)
///     .start()
///     .await?;
/// let sent = producer.send_in_transaction(Message::new("orders", "hello"), TransactionArgs::none()).await?;
/// println!("{} ended as {:?}", sent.transaction_id, sent.state);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TransactionProducer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    producer: Producer,
    checks: Arc<Checks>,
    await_end: bool,
    stopped: AtomicBool,
    _stop_with_the_last: DropGuard,
}

/// What came of a transactional send.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TransactionSendResult {
    /// What the broker said about the half message; offset and broker's id are not those that consumers will see.
    pub sent: SendResult,
    /// What the transaction is filed under: the message's id.
    pub transaction_id: String,
    /// How the local transaction ended.
    pub state: LocalState,
    /// Why it has no outcome of its own, if so.
    pub failure: Option<Arc<LocalFailure>>,
    /// Whether the outcome was handed over to the broker (acknowledged by it, with
    /// [`TransactionProducerBuilder::await_end`]). If not, the broker asks.
    pub reported: bool,
}

impl TransactionProducer {
    /// Stores the message where consumers don't get it, runs the listener's local transaction, and tells the broker how it ended.
    ///
    /// A half message that is stored less safely than configured (any status but `Ok`) is rolled back without running the local
    /// transaction. Dropping the future half-way leaves the decision to the broker's question.
    ///
    /// # Errors
    /// As [`Producer::send`], for the half message: the local transaction is not run then. [`MessageIllegal::TransactionKind`] for a
    /// message with a delay.
    pub async fn send_in_transaction(
        &self,
        message: Message,
        args: TransactionArgs,
    ) -> Result<TransactionSendResult, ClientError> {
        let half = self.send_half(message).await?;
        let outcome = if half.sent().status == SendStatus::Ok {
            self.inner.checks.listener().execute(&half, &args).await
        } else {
            Err(LocalFailure::NotStored(half.sent().status))
        };
        Ok(self.end(&half, outcome).await)
    }

    /// [`TransactionProducer::send_in_transaction`] with this function in the place of the listener's `execute_local`. It answers the
    /// outcome and a value for the caller; the value is missing when the function was not called since the half message was stored
    /// less safely than configured, or when it panicked.
    ///
    /// # Errors
    /// As [`TransactionProducer::send_in_transaction`].
    pub async fn transaction<T, F, Fut>(
        &self,
        message: Message,
        local: F,
    ) -> Result<(TransactionSendResult, Option<T>), ClientError>
    where
        F: FnOnce(HalfMessage) -> Fut + Send,
        Fut: Future<Output = (LocalState, T)> + Send,
        T: Send,
    {
        let half = self.send_half(message).await?;
        let (outcome, value) = if half.sent().status == SendStatus::Ok {
            let handle = half.clone();
            match caught(async move { local(handle).await }).await {
                Some((state, value)) => (Ok(state), Some(value)),
                None => (Err(LocalFailure::Panicked), None),
            }
        } else {
            (Err(LocalFailure::NotStored(half.sent().status)), None)
        };
        Ok((self.end(&half, outcome).await, value))
    }

    /// The producer behind it, for messages of the same group without transaction.
    #[must_use]
    pub fn producer(&self) -> &Producer {
        &self.inner.producer
    }

    /// The client it belongs to.
    #[must_use]
    pub fn client(&self) -> &Client {
        self.inner.producer.client()
    }

    /// Takes no more questions of brokers, lets running checks end (for at most the grace), and leaves the brokers, see
    /// [`Producer::shutdown`]. Local transactions that run are not waited for. A second call does nothing.
    pub async fn shutdown(&self) {
        if self.inner.stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        self.inner.checks.shutdown(&self.client().shared).await;
        self.inner.producer.shutdown().await;
    }

    async fn send_half(&self, mut message: Message) -> Result<HalfMessage, ClientError> {
        let producer = &self.inner.producer.inner;
        self.inner.producer.running()?;
        let (shared, sender) = (&producer.client.shared, &producer.sender);
        prepare::check(&message, sender.settings.max_message_size)?;
        check_kind(&message)?;
        message.properties.put(property::TRAN_MSG, "true");
        message
            .properties
            .put(property::PGROUP, sender.group.as_str());
        let mut outgoing = prepare::prepare(shared, &sender.settings, message.clone()).await?;
        outgoing.sys_flag = SysFlag(outgoing.sys_flag)
            .with_transaction(Transaction::Prepared)
            .0;
        let mut sent = sender.send(&outgoing, sender.settings.retries).await?;
        let id = sent
            .transaction_id
            .get_or_insert_with(|| sent.msg_id.clone());
        message
            .properties
            .put(property::UNIQ_KEY, sent.msg_id.as_str());
        message
            .properties
            .put(property::TRANSACTION_ID, id.as_str());
        Ok(HalfMessage::new(message, sent))
    }

    async fn end(
        &self,
        half: &HalfMessage,
        outcome: Result<LocalState, LocalFailure>,
    ) -> TransactionSendResult {
        let (state, failure) = match outcome {
            Ok(state) => (state, None),
            Err(failure @ LocalFailure::NotStored(_)) => (LocalState::Rollback, Some(failure)),
            Err(failure) => (LocalState::Unknown, Some(failure)),
        };
        if let Some(failure) = &failure {
            tracing::warn!(transaction_id = half.transaction_id(), ?state, %failure, "local transaction without outcome");
        }
        let reported = match self.report(half, state).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(transaction_id = half.transaction_id(), ?state, %error, "outcome of a transaction not told: the broker will ask");
                false
            }
        };
        TransactionSendResult {
            sent: half.sent().clone(),
            transaction_id: half.transaction_id().to_owned(),
            state,
            failure: failure.map(Arc::new),
            reported,
        }
    }

    /// Tells the broker that stored the half message. Repeating it does no harm.
    async fn report(&self, half: &HalfMessage, state: LocalState) -> Result<(), ClientError> {
        let shared = &self.client().shared;
        let sent = half.sent();
        let broker = &sent.queue.broker_name;
        let (_, place) =
            parse_offset_msg_id(&sent.offset_msg_id).map_err(|error| ClientError::Decode {
                what: format!("the id that {broker} gave to a half message"),
                source: Box::new(error),
            })?;
        let topic = namespace::wrap(shared.config.namespace.as_deref(), half.message().topic());
        let header = EndTransactionHeader {
            topic: Some(topic.into()),
            producer_group: (&*self.inner.producer.inner.sender.group).into(),
            tran_state_table_offset: sent.queue_offset,
            commit_log_offset: place.0,
            commit_or_rollback: state.wire(),
            from_transaction_check: false,
            msg_id: (&*sent.msg_id).into(),
            transaction_id: Some(half.transaction_id().into()),
        };
        let mut request = Request::new(RequestCode::END_TRANSACTION).with(&header);
        request.ext.put("bname", broker);
        let timeout = shared.config.call_timeout;
        // To "unknown" brokers give no answer.
        if !self.inner.await_end || state == LocalState::Unknown {
            return shared
                .tell(&shared.routes.master(broker)?, request, timeout)
                .await;
        }
        let mut attempt = 1;
        loop {
            let told = match shared.routes.master(broker) {
                Ok(addr) => shared.ask(&addr, request.clone(), timeout).await,
                Err(error) => Err(error),
            };
            match told {
                Ok(_) => return Ok(()),
                Err(error) if attempt < END_ATTEMPTS && error.is_retryable() => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// A delay would be counted from the half message on at one broker and be lost at another; Java's client drops it without a word.
fn check_kind(message: &Message) -> Result<(), MessageIllegal> {
    if property::DELAYS
        .iter()
        .any(|name| message.properties.contains(name))
    {
        return Err(MessageIllegal::TransactionKind { what: "a delay" });
    }
    Ok(())
}
