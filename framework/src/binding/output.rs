//! Sending: the partition is chosen on the typed payload, then the payload is encoded, then the binder sends.
//!
//! ```text
//! Message<T> ─▶ partition key ─▶ scst_partition ─┐
//!          └──▶ codec by content type ───────────┴─▶ ProducerBinding::send(message, place) ─▶ SendReceipt
//! ```

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::background::Background;
use super::bindings::{Bindings, BoundField};
use super::error::{BindError, SendError};
use super::input::{BindingChange, ChangeError, InputState};
use super::kind::{Any, ProducerKind, Sends, Transacts};
use super::receipt::SendReceipt;
use crate::binder::{Place, ProducerBinding};
use crate::config::ProducerType;
use crate::convert::{ContentType, EncodeOptions, Payload};
use crate::error::BoxError;
use crate::error_handler::ErrorHandlers;
use crate::handler::AppContext;
use crate::headers::{Headers, names};
use crate::message::Message;
use crate::partition::Partitioning;
use crate::transaction::{HalfMessage, ListenerHandle, LocalWork, TxArgs, TxOutcome, TxReceipt};

/// A handle on one output that takes payloads of type `T`. Cheap to clone.
///
/// ```
/// use bindery::prelude::*;
/// use serde::Serialize;
///
/// #[derive(Serialize)]
/// struct Order { id: i64 }
///
/// # bindery::testing::entry::example("spring.cloud.stream.bindings: { doc-output: { destination: orders } }", |t| async move {
/// let orders: Output<Order> = t.app().output("doc-output").unwrap();
/// let receipt = orders.send(Message::new(Order { id: 7 }).tag("paid").key("k-7")).await.unwrap();
/// assert_eq!(receipt.destination, "orders");
///
/// let stored = &t.stored("orders").await[0];
/// assert_eq!((stored.text().as_str(), stored.tag()), (r#"{"id":7}"#, Some("paid")));
/// # });
/// ```
///
/// `K` is the kind of producer that the code relies on: [`Orderly`](super::Orderly) and [`Trans`](super::Trans) offer the sends that fit, and an
/// application whose configuration says otherwise does not start. [`Any`] leaves it to the configuration.
pub struct Output<T, K = Any> {
    binding: Arc<OutputBinding>,
    kind: PhantomData<fn(T, K)>,
}

impl<T: Serialize + Send + Sync + 'static, K: Sends> Output<T, K> {
    /// Sends one message and waits for the broker's word that it is stored. Takes a payload or a [`Message`] with headers.
    ///
    /// On a transactional output this is a [`send_in_transaction`](Self::send_in_transaction) with the argument of the header
    /// `TRANSACTIONAL_ARGS`, whose outcome only the listener learns. On an ordered or partitioned output, sends that are awaited one after the other are stored in that order.
    ///
    /// # Errors
    /// [`SendError`]: the message is not known to be stored. After a [`SendError::Timeout`] it may be stored all the same.
    pub fn send(
        &self,
        message: impl Into<Message<T>>,
    ) -> impl Future<Output = Result<SendReceipt, SendError>> + Send {
        let (payload, headers) = message.into().into_parts();
        let prepared = self.binding.prepare(&payload, headers);
        async move { self.binding.send_prepared(prepared?).await }
    }

    /// Sends one message after the other and stops at the first that fails.
    ///
    /// # Errors
    /// [`SendAllError`] with the receipts of those that are stored.
    pub async fn send_all<M: Into<Message<T>>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<Vec<SendReceipt>, SendAllError> {
        let mut stored = Vec::new();
        for message in messages {
            match self.send(message).await {
                Ok(receipt) => stored.push(receipt),
                Err(source) => return Err(SendAllError { stored, source }),
            }
        }
        Ok(stored)
    }
}

impl<T: Serialize + Send + Sync + 'static> Output<T> {
    /// Hands one message over and returns at once: what cannot be encoded or placed is told here, a failed send to the
    /// output's error handlers, and without any to the log. Sends under way are finished when the application stops.
    ///
    /// # Errors
    /// What can be said without asking the broker, [`SendError::TooManyInFlight`] among it.
    pub fn post(&self, message: impl Into<Message<T>>) -> Result<(), SendError> {
        let (payload, headers) = message.into().into_parts();
        let prepared = self.binding.prepare(&payload, headers)?;
        self.binding.start(prepared).map(drop)
    }
}

impl<T: Serialize + Send + Sync + 'static, K: Transacts> Output<T, K> {
    /// Stores one message where consumers don't get it, runs the local transaction of the output's listener, and tells the
    /// broker how it ended: consumers get the message, or nobody does, or the broker asks later.
    ///
    /// `args` reach the listener and never travel; without any, a header `TRANSACTIONAL_ARGS` takes their place and is
    /// taken off the message.
    ///
    /// # Errors
    /// [`SendError::WrongProducerType`] on an output that is not transactional, else as [`send`](Self::send), for the half
    /// message: the local transaction is not run then. That it fails is no error but [`TxReceipt::failure`].
    pub fn send_in_transaction(
        &self,
        message: impl Into<Message<T>>,
        args: TxArgs,
    ) -> impl Future<Output = Result<TxReceipt, SendError>> + Send {
        let (payload, headers) = message.into().into_parts();
        let prepared = self.binding.prepare(&payload, headers);
        async move {
            self.binding
                .send_prepared_in_transaction(&prepared?, args)
                .await
        }
    }

    /// [`send_in_transaction`](Self::send_in_transaction) with this function as the local transaction. What it returns in
    /// its [`TxOutcome`] comes back beside the receipt; nothing comes back when it failed, panicked, or does not know.
    ///
    /// The output's listener still answers the broker's questions: let the function record its outcome where
    /// `check_local` finds it.
    ///
    /// # Errors
    /// As [`send_in_transaction`](Self::send_in_transaction).
    pub fn transaction<R, E, F, Fut>(
        &self,
        message: impl Into<Message<T>>,
        local: F,
    ) -> impl Future<Output = Result<(TxReceipt, Option<R>), SendError>> + Send
    where
        F: FnOnce(HalfMessage) -> Fut + Send,
        Fut: Future<Output = Result<TxOutcome<R>, E>> + Send,
        R: Send,
        E: Into<BoxError>,
    {
        let (payload, headers) = message.into().into_parts();
        let prepared = self.binding.prepare(&payload, headers);
        async move {
            let mut value = None;
            let kept = &mut value;
            let work: LocalWork<'_> = Box::new(move |half| {
                Box::pin(async move {
                    let (state, returned) = local(half).await.map_err(Into::into)?.split();
                    *kept = returned;
                    Ok(state)
                })
            });
            let receipt = self.binding.run_transaction(&prepared?, work).await?;
            Ok((receipt, value))
        }
    }
}

impl<T, K> Output<T, K> {
    /// Name of the binding.
    #[must_use]
    pub fn name(&self) -> &str {
        self.binding.name()
    }
}

/// A message among several was not stored.
#[derive(Debug, thiserror::Error)]
#[error("{} messages are stored, the next is not", stored.len())]
pub struct SendAllError {
    /// Receipts of those that are stored, in the order given.
    pub stored: Vec<SendReceipt>,
    /// Why the next one is not.
    #[source]
    pub source: SendError,
}

impl<T, K> Clone for Output<T, K> {
    fn clone(&self) -> Self {
        Self {
            binding: Arc::clone(&self.binding),
            kind: PhantomData,
        }
    }
}

impl<T, K> fmt::Debug for Output<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("binding", &self.binding.name)
            .finish_non_exhaustive()
    }
}

impl<T, K: ProducerKind> BoundField for Output<T, K> {
    fn bind(bindings: &Bindings, name: &str) -> Result<Self, BindError> {
        let binding = bindings.output(name)?;
        let found = binding.parts.producer_type;
        match K::REQUIRED {
            Some(wanted) if wanted != found => Err(BindError::ProducerType {
                binding: binding.name.clone(),
                wanted,
                found,
            }),
            _ => Ok(Self {
                binding,
                kind: PhantomData,
            }),
        }
    }
}

/// What an output is made from.
#[derive(Debug)]
pub(crate) struct OutputParts {
    pub(crate) name: String,
    pub(crate) destination: String,
    pub(crate) content_type: ContentType,
    pub(crate) binder_kind: &'static str,
    /// What the configuration makes of it.
    pub(crate) producer_type: ProducerType,
    /// Present on partitioned outputs; empty until the partitions are counted.
    pub(crate) partitioning: Option<OnceLock<Partitioning>>,
    /// The listener that makes the output transactional.
    pub(crate) transaction: Option<ListenerHandle>,
    /// Told of failed sends, as far as `waiting` says so.
    pub(crate) errors: ErrorHandlers,
    /// Who waits for a send.
    pub(crate) waiting: Waiting,
    /// Time allowed for sends under way when the output is closed.
    pub(crate) grace: Duration,
    /// `None`: the output is disabled.
    pub(crate) producer: Option<Arc<dyn ProducerBinding>>,
}

impl OutputParts {
    /// What is special about the output, for the start report; empty when nothing is.
    pub(crate) fn traits(&self) -> String {
        match (&self.transaction, &self.partitioning) {
            (Some(listener), _) => format!(" (transactional, decided by {})", listener.name()),
            (None, Some(_)) => " (partitioned)".to_owned(),
            (None, None) => String::new(),
        }
    }
}

/// Who waits for the outcome of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The caller, who alone hears of a failure.
    Alone,
    /// The caller; of a failure the error handlers hear too (`error-channel-enabled`).
    AndErrorHandler,
    /// The caller if it wants; the send goes on without it, and error handlers hear of a failure (`send-type: Async`).
    Optional,
}

/// A message ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(super) message: Message,
    place: Place,
    /// From the header `TRANSACTIONAL_ARGS`.
    args: TxArgs,
}

/// One output of the application.
#[derive(Debug)]
pub(crate) struct OutputBinding {
    name: String,
    pub(crate) parts: OutputParts,
    closed: AtomicBool,
    told_about_delay: AtomicBool,
    pub(super) background: Background,
    /// For error handlers.
    pub(super) context: OnceLock<Weak<AppContext>>,
}

impl OutputBinding {
    pub(crate) fn new(parts: OutputParts) -> Self {
        Self {
            name: parts.name.clone(),
            parts,
            closed: AtomicBool::new(false),
            told_about_delay: AtomicBool::new(false),
            background: Background::default(),
            context: OnceLock::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Gives error handlers what the application shares with them; once, when that is complete.
    pub(crate) fn attach(&self, context: &Arc<AppContext>) {
        // Weak, because the context holds the bindings and so this output.
        self.context.get_or_init(|| Arc::downgrade(context));
    }

    /// Says how a partitioned output chooses partitions; once.
    pub(crate) fn partition(&self, rule: Partitioning) {
        if let Some(partitioning) = &self.parts.partitioning {
            partitioning.get_or_init(|| rule);
        }
    }

    pub(crate) async fn send(
        self: &Arc<Self>,
        payload: &dyn Payload,
        headers: Headers,
    ) -> Result<SendReceipt, SendError> {
        self.send_prepared(self.prepare(payload, headers)?).await
    }

    /// Chooses the partition and encodes. Apart from the sending, so that what waits for the broker does not hold the
    /// payload.
    pub(crate) fn prepare(
        &self,
        payload: &dyn Payload,
        mut headers: Headers,
    ) -> Result<Prepared, SendError> {
        let place = self.place(payload, &mut headers)?;
        let args = headers
            .get(names::TRANSACTIONAL_ARGS)
            .map_or_else(TxArgs::none, TxArgs::text);
        headers.remove(names::TRANSACTIONAL_ARGS);
        let body = self.encode(payload, &mut headers)?;
        Ok(Prepared {
            message: Message::from_parts(body, headers),
            place,
            args,
        })
    }

    /// Sends, and lets the error handlers know of a failure if the output is told to.
    pub(crate) async fn send_prepared(
        self: &Arc<Self>,
        prepared: Prepared,
    ) -> Result<SendReceipt, SendError> {
        match self.parts.waiting {
            Waiting::Optional => {
                let closed = |_ended| Err(self.closed());
                self.start(prepared)?.await.unwrap_or_else(closed)
            }
            Waiting::AndErrorHandler => match self.send_unreported(&prepared).await {
                Err(error) => Err(self.report(&prepared, error).await),
                stored => stored,
            },
            Waiting::Alone => self.send_unreported(&prepared).await,
        }
    }

    /// Sends; a failure is the caller's alone.
    pub(crate) async fn send_unreported(
        &self,
        prepared: &Prepared,
    ) -> Result<SendReceipt, SendError> {
        if self.parts.transaction.is_some() {
            let receipt = self
                .send_prepared_in_transaction(prepared, TxArgs::none())
                .await?;
            return Ok(receipt.sent);
        }
        let producer = self.open()?;
        let mut receipt = producer.send(&prepared.message, prepared.place).await?;
        if let Place::Partition(partition) = prepared.place {
            receipt.partition = Some(partition);
        }
        Ok(receipt)
    }

    pub(crate) async fn send_prepared_in_transaction(
        &self,
        prepared: &Prepared,
        args: TxArgs,
    ) -> Result<TxReceipt, SendError> {
        let listener = self.listener()?;
        let args = if args.is_none() {
            prepared.args.clone()
        } else {
            args
        };
        self.run_transaction(prepared, listener.work(args)).await
    }

    /// Stores the half message, runs `work`, tells the broker.
    pub(crate) async fn run_transaction(
        &self,
        prepared: &Prepared,
        work: LocalWork<'_>,
    ) -> Result<TxReceipt, SendError> {
        self.listener()?;
        let producer = self.open()?;
        if prepared
            .message
            .headers()
            .outgoing()
            .is_ok_and(|headers| headers.delay_level.is_some() || headers.timing.is_some())
        {
            return Err(SendError::Header {
                binding: self.name.clone(),
                source: "a transactional message cannot be delayed".into(),
            });
        }
        producer.send_in_transaction(&prepared.message, work).await
    }

    fn listener(&self) -> Result<&ListenerHandle, SendError> {
        let wrong = || SendError::WrongProducerType {
            binding: self.name.clone(),
        };
        self.parts.transaction.as_ref().ok_or_else(wrong)
    }

    /// The producer, unless the output is disabled or closed.
    fn open(&self) -> Result<&dyn ProducerBinding, SendError> {
        let Some(producer) = &self.parts.producer else {
            return Err(SendError::Disabled {
                binding: self.name.clone(),
            });
        };
        if self.closed.load(Ordering::Acquire) {
            return Err(self.closed());
        }
        Ok(&**producer)
    }

    pub(super) fn closed(&self) -> SendError {
        SendError::Closed {
            binding: self.name.clone(),
        }
    }

    /// Whether sends are taken; off and on by an operator, or off for good when the application stops.
    pub(crate) fn is_open(&self) -> bool {
        self.parts.producer.is_some() && !self.closed.load(Ordering::Acquire)
    }

    /// Starts or stops taking sends. An output cannot be paused, and a disabled one not started.
    pub(crate) fn change(&self, wanted: BindingChange) -> Result<(), ChangeError> {
        let closed = match (wanted, &self.parts.producer) {
            (BindingChange::Started, Some(_)) => false,
            (BindingChange::Stopped, Some(_)) => true,
            (_, None) => {
                let from = InputState::Disabled;
                return Err(ChangeError::Impossible { from, wanted });
            }
            (BindingChange::Paused | BindingChange::Resumed, Some(_)) => {
                let from = if self.is_open() {
                    InputState::Running
                } else {
                    InputState::Stopped
                };
                return Err(ChangeError::Impossible { from, wanted });
            }
        };
        self.closed.store(closed, Ordering::Release);
        Ok(())
    }

    /// No more sends; the producer sends what is under way.
    pub(crate) async fn stop(&self) -> Result<(), crate::binder::BinderError> {
        self.background.finish(self.parts.grace).await;
        self.closed.store(true, Ordering::Release);
        match &self.parts.producer {
            Some(producer) => producer.stop().await,
            None => Ok(()),
        }
    }

    fn place(&self, payload: &dyn Payload, headers: &mut Headers) -> Result<Place, SendError> {
        // What came in with a received message says nothing about where this one goes.
        headers.remove(names::PARTITION);
        let Some(partitioning) = &self.parts.partitioning else {
            headers.remove(names::PARTITION_OVERRIDE);
            return Ok(Place::Any);
        };
        let Some(partitioning) = partitioning.get() else {
            return Err(SendError::NotBound {
                binding: self.name.clone(),
            });
        };
        let partition = partitioning.partition(payload, headers)?;
        headers.remove(names::PARTITION_OVERRIDE);
        headers.insert(names::PARTITION, partition);
        if headers.get(names::DELAY).is_some()
            && !self.told_about_delay.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(binding = %self.name, "delayed messages on a partitioned output arrive after younger ones");
        }
        Ok(Place::Partition(partition))
    }

    fn encode(&self, payload: &dyn Payload, headers: &mut Headers) -> Result<Bytes, SendError> {
        let content_type = match headers.get(names::CONTENT_TYPE) {
            None => self.parts.content_type.clone(),
            Some(text) => text.parse().map_err(|source| SendError::Header {
                binding: self.name.clone(),
                source: Box::new(source),
            })?,
        };
        let encoded = payload
            .encode(&content_type, EncodeOptions::default())
            .map_err(|source| SendError::Encode {
                binding: self.name.clone(),
                source,
            })?;
        if encoded.bytes.is_empty() {
            return Err(SendError::EmptyPayload {
                binding: self.name.clone(),
            });
        }
        headers.insert(names::CONTENT_TYPE, encoded.content_type.as_str());
        Ok(encoded.bytes)
    }
}
