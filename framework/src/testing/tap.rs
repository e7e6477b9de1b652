//! Looking at what is stored in a topic, in the order of storing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bindery_client::Client;

use super::Received;
use crate::binder::{
    Audience, Binder, BinderError, ConsumerBinding, ConsumerSpec, Deliver, Order, Redelivery,
    Resume, Selection, Settlement, StartAt,
};
use crate::message::Message;
use crate::pace::Pace;

/// A topic's consumer of the test's own, on a real broker.
pub(super) struct Tap {
    topic: String,
    catch: Catch,
    consumer: Arc<dyn ConsumerBinding>,
    /// Messages that [`Taps::next`] has handed out.
    taken: Mutex<usize>,
}

/// What a tap has caught.
#[derive(Clone)]
struct Catch {
    caught: Arc<Mutex<Vec<Received>>>,
    pace: Pace,
}

#[async_trait]
impl Deliver for Catch {
    async fn deliver(&self, message: Message) -> Settlement {
        lock(&self.caught).push(Received::new(message));
        self.pace.tell();
        Settlement::Ack
    }
}

/// The taps of one test, by topic.
#[derive(Default)]
pub(super) struct Taps {
    open: Mutex<BTreeMap<String, Arc<Tap>>>,
    /// Memory: the number of the last message that was handed out, by topic.
    pub(super) seen: Mutex<BTreeMap<String, u64>>,
}

impl Taps {
    /// The tap of `topic`, opened at its oldest message when it is asked for first.
    pub(super) async fn of(
        &self,
        topic: &str,
        binder: &dyn Binder,
        pace: &Pace,
    ) -> Result<Arc<Tap>, BinderError> {
        if let Some(tap) = lock(&self.open).get(topic) {
            return Ok(Arc::clone(tap));
        }
        let catch = Catch {
            caught: Arc::default(),
            pace: pace.clone(),
        };
        let name: String = topic
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let spec = ConsumerSpec {
            binding: format!("look-at-{name}"),
            destinations: vec![topic.to_owned()],
            group: format!("look-at-{name}"),
            concurrency: 1,
            order: Order::Concurrent,
            audience: Audience::Shared,
            selection: Selection::All,
            start: StartAt::First,
            resume: Resume::Positions,
            redelivery: Redelivery {
                limit: None,
                delay_level: 0,
                suspend: Duration::from_secs(1),
            },
            grace: Duration::from_secs(1),
        };
        let consumer = binder.bind_consumer(spec, Arc::new(catch.clone())).await?;
        let tap = Arc::new(Tap {
            topic: topic.to_owned(),
            catch,
            consumer,
            taken: Mutex::new(0),
        });
        lock(&self.open).insert(topic.to_owned(), Arc::clone(&tap));
        Ok(tap)
    }

    pub(super) async fn close(&self) {
        let open = std::mem::take(&mut *lock(&self.open));
        for tap in open.into_values() {
            if let Err(error) = tap.consumer.stop().await {
                tracing::debug!(%error, topic = tap.topic, "a tap was not closed in order");
            }
        }
    }
}

impl Tap {
    /// The next message that was not handed out yet, if there is one.
    pub(super) fn next(&self) -> Option<Received> {
        let mut taken = lock(&self.taken);
        let next = lock(&self.catch.caught).get(*taken).cloned()?;
        *taken += 1;
        Some(next)
    }

    pub(super) fn all(&self) -> Vec<Received> {
        lock(&self.catch.caught).clone()
    }

    /// How many messages the topic has by the broker's own word.
    pub(super) async fn stored(
        &self,
        client: &Client,
    ) -> Result<usize, bindery_client::ClientError> {
        let mut count = 0;
        for queue in client.admin().queues(&self.topic).await? {
            let bounds = client.admin().bounds(&queue).await?;
            count += usize::try_from(bounds.max - bounds.min).unwrap_or(0);
        }
        Ok(count)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
