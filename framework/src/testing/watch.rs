//! What is in flight between an application under test and a real broker: noted where its messages pass.
//!
//! ```text
//! app ─▶ Watched(binder) ─▶ broker        sends with a delay: until when
//!                │                        deliveries: running, to come again, done
//!                └─▶ Watch ─▶ "nothing in flight", together with what the broker says about positions
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bindery_client::Client;
use bindery_protocol::names;

use crate::binder::rocketmq::RocketmqBinder;
use crate::binder::{
    Audience, Binder, BinderError, Capabilities, ConsumerBinding, ConsumerSpec, Deliver,
    Destination, Health, Order, Place, ProducerBinding, ProducerSpec, Settlement, levels,
};
use crate::binding::{SendError, SendReceipt};
use crate::headers::names as header;
use crate::message::Message;
use crate::pace::Pace;
use crate::transaction::{LocalWork, TxReceipt};

/// Redeliveries of a concurrent group without a limit of its own.
const DEFAULT_LIMIT: u32 = 16;

/// A delayed message may come this much after its time.
const LATE: Duration = Duration::from_millis(1_500);

/// The notes. A handle.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    pace: Pace,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Debug, Default)]
struct Notes {
    running: usize,
    /// Messages that come again: group and id.
    again: BTreeSet<(String, String)>,
    /// When delayed messages are with their consumers at the latest.
    delayed: Vec<i64>,
    /// Groups whose positions the broker keeps, with the topics they read.
    groups: BTreeMap<String, BTreeSet<String>>,
}

impl Watch {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            notes: Arc::default(),
        }
    }

    pub(super) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// What is in flight, in words; nothing when nothing is.
    pub(super) async fn in_flight(&self, client: &Client) -> Option<String> {
        if let Some(known) = self.known() {
            return Some(known);
        }
        let groups = self.lock().groups.clone();
        for (group, topics) in groups {
            for topic in topics {
                match client.admin().lag(&group, &topic).await {
                    Ok(0) => {}
                    Ok(lag) => return Some(format!("group {group} is {lag} behind in {topic}")),
                    // A retry topic that nothing ever came to.
                    Err(_) if names::is_retry_topic(&topic) => {}
                    Err(error) => return Some(format!("group {group} in {topic}: {error}")),
                }
            }
        }
        // Something may have begun while the broker was asked.
        self.known()
    }

    fn known(&self) -> Option<String> {
        let now = self.pace.now_millis();
        let mut notes = self.lock();
        notes.delayed.retain(|until| *until > now);
        let known = (notes.running, notes.again.len(), notes.delayed.len());
        let (running, again, delayed) = known;
        (known != (0, 0, 0))
            .then(|| format!("{running} in handlers, {again} to come again, {delayed} delayed"))
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The binder for RocketMQ, watched.
pub(super) struct Watched {
    inner: RocketmqBinder,
    watch: Watch,
}

impl Watched {
    pub(super) fn new(inner: RocketmqBinder, watch: Watch) -> Self {
        Self { inner, watch }
    }
}

#[async_trait]
impl Binder for Watched {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn declare(&self, destinations: &[Destination]) -> Result<(), BinderError> {
        self.inner.declare(destinations).await
    }

    async fn bind_consumer(
        &self,
        spec: ConsumerSpec,
        sink: Arc<dyn Deliver>,
    ) -> Result<Arc<dyn ConsumerBinding>, BinderError> {
        if spec.audience == Audience::Shared {
            let topics = spec.destinations.iter().cloned();
            let retries = [names::retry_topic(&spec.group)];
            let mut notes = self.watch.lock();
            let group = notes.groups.entry(spec.group.clone()).or_default();
            group.extend(topics.chain(retries));
        }
        let sink = Arc::new(WatchedSink {
            sink,
            spec: spec.clone(),
            watch: self.watch.clone(),
        });
        self.inner.bind_consumer(spec, sink).await
    }

    async fn bind_producer(
        &self,
        spec: ProducerSpec,
    ) -> Result<Arc<dyn ProducerBinding>, BinderError> {
        let inner = self.inner.bind_producer(spec).await?;
        Ok(Arc::new(WatchedProducer {
            inner,
            watch: self.watch.clone(),
        }))
    }

    async fn health(&self) -> Health {
        self.inner.health().await
    }

    async fn shutdown(&self) -> Result<(), BinderError> {
        self.inner.shutdown().await
    }
}

struct WatchedSink {
    sink: Arc<dyn Deliver>,
    spec: ConsumerSpec,
    watch: Watch,
}

#[async_trait]
impl Deliver for WatchedSink {
    async fn deliver(&self, message: Message) -> Settlement {
        let delivery = message.headers().delivery().cloned().unwrap_or_default();
        let key = (self.spec.group.clone(), delivery.message_id.to_string());
        {
            let mut notes = self.watch.lock();
            notes.running += 1;
            notes.again.remove(&key);
        }
        let settlement = self.sink.deliver(message).await;
        let limit = self.spec.redelivery.limit.or(match self.spec.order {
            Order::Concurrent => Some(DEFAULT_LIMIT),
            Order::PerQueue => None,
        });
        let spent = limit.is_some_and(|limit| delivery.reconsume_times >= limit);
        let dead_at_once = settlement == Settlement::Retry(None)
            && self.spec.order == Order::Concurrent
            && self.spec.redelivery.delay_level < 0;
        let mut notes = self.watch.lock();
        notes.running -= 1;
        let again = matches!(settlement, Settlement::Retry(_) | Settlement::Return);
        if again && !spent && !dead_at_once && self.spec.audience == Audience::Shared {
            notes.again.insert(key);
        }
        drop(notes);
        self.watch.pace.tell();
        settlement
    }
}

struct WatchedProducer {
    inner: Arc<dyn ProducerBinding>,
    watch: Watch,
}

#[async_trait]
impl ProducerBinding for WatchedProducer {
    async fn send(&self, message: &Message, place: Place) -> Result<SendReceipt, SendError> {
        let receipt = self.inner.send(message, place).await?;
        let level = message.headers().get(header::DELAY);
        let level = level.and_then(|text| text.trim().parse::<usize>().ok());
        if let Some(level @ 1..) = level {
            let until = self.watch.pace.after(levels::duration_of(level) + LATE);
            self.watch.lock().delayed.push(until);
        }
        Ok(receipt)
    }

    async fn send_in_transaction(
        &self,
        message: &Message,
        work: LocalWork<'_>,
    ) -> Result<TxReceipt, SendError> {
        self.inner.send_in_transaction(message, work).await
    }

    async fn partitions(&self) -> Result<u32, SendError> {
        self.inner.partitions().await
    }

    async fn stop(&self) -> Result<(), BinderError> {
        self.inner.stop().await
    }
}
