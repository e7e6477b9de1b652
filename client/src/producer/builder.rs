//! How a producer is set up.
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::{
    Checks, Inner, Producer, TransactionListener, TransactionProducerBuilder, attempt::Sender,
    select::Faults, settings::Settings,
};
use crate::{Client, ClientConfig, ClientError, namespace, source::Source};

/// Settings of a [`Producer`], with Java's defaults.
#[derive(Debug, Clone)]
pub struct ProducerBuilder {
    group: String,
    source: Source,
    settings: Settings,
}

impl ProducerBuilder {
    pub(super) fn new(group: String) -> Self {
        Self {
            group,
            source: Source::default(),
            settings: Settings::default(),
        }
    }

    /// Uses the connections, routes and heartbeats of this client.
    #[must_use]
    pub fn client(mut self, client: &Client) -> Self {
        self.source = Source::Shared(client.clone());
        self
    }

    /// Makes a client of its own from this configuration.
    #[must_use]
    pub fn config(mut self, config: ClientConfig) -> Self {
        self.source = Source::Own(Box::new(config));
        self
    }

    /// Makes a client of its own with these name servers (`;`-separated) and defaults else.
    #[must_use]
    pub fn name_servers(self, list: &str) -> Self {
        self.config(ClientConfig::new(list))
    }

    /// Time for a whole send, its retries included; 3 s.
    #[must_use]
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Further attempts after the first one failed; 2. For [`Producer::send_async`] see [`ProducerBuilder::async_retries`].
    #[must_use]
    pub fn retries(mut self, times: usize) -> Self {
        self.settings.retries = times;
        self
    }

    /// Further attempts of [`Producer::send_async`] after the first one failed; 2.
    #[must_use]
    pub fn async_retries(mut self, times: usize) -> Self {
        self.settings.async_retries = times;
        self
    }

    /// Answers after which another attempt is made; [`super::DEFAULT_RETRY_CODES`].
    #[must_use]
    pub fn retry_codes(mut self, codes: impl IntoIterator<Item = i32>) -> Self {
        self.settings.retry_codes = codes.into_iter().collect();
        self
    }

    /// Whether a message that was stored less safely than configured is sent again elsewhere; off.
    #[must_use]
    pub fn retry_when_not_stored_ok(mut self, retry: bool) -> Self {
        self.settings.retry_when_not_stored_ok = retry;
        self
    }

    /// Bodies of at least so many bytes are compressed; 4096. `None` switches compression off.
    #[must_use]
    pub fn compress_over(mut self, bytes: Option<usize>) -> Self {
        self.settings.compress_over = bytes;
        self
    }

    /// Largest body in bytes, before compression; 4 MiB.
    #[must_use]
    pub fn max_message_size(mut self, bytes: usize) -> Self {
        self.settings.max_message_size = bytes;
        self
    }

    /// Queues of a topic that comes into being by sending to it; 4.
    #[must_use]
    pub fn default_topic_queues(mut self, queues: i32) -> Self {
        self.settings.default_topic_queues = queues;
        self
    }

    /// Whether brokers that failed or were slow are left out for a while; off.
    #[must_use]
    pub fn avoid_faulty_brokers(mut self, avoid: bool) -> Self {
        self.settings.avoid_faulty_brokers = avoid;
        self
    }

    /// Topics whose routes are fetched at the start, so that brokers hear of the group before the first send.
    #[must_use]
    pub fn topics<T: Into<String>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        self.settings.topics = topics.into_iter().map(Into::into).collect();
        self
    }

    /// Sends that may be in flight by [`Producer::send_async`]; 10,000.
    #[must_use]
    pub fn max_in_flight(mut self, sends: usize) -> Self {
        self.settings.max_in_flight = sends;
        self
    }

    /// Makes it a producer of transactional messages with these settings of sending.
    #[must_use]
    pub fn transactional(self, listener: impl TransactionListener) -> TransactionProducerBuilder {
        TransactionProducerBuilder::new(self, listener)
    }

    /// Starts the producer. Name servers and brokers may be down: sends will say so.
    ///
    /// # Errors
    /// A bad or already used group, or no name server address.
    pub async fn start(self) -> Result<Producer, ClientError> {
        self.start_with(None).await
    }

    pub(super) async fn start_with(
        self,
        checks: Option<Arc<Checks>>,
    ) -> Result<Producer, ClientError> {
        namespace::check_group("producer", &self.group)?;
        let (client, owns_client) = self.source.client()?;
        let shared = Arc::clone(&client.shared);
        let namespace = shared.config.namespace.clone();
        let group = namespace::wrap(namespace.as_deref(), &self.group);
        shared.register_producer(&group, checks)?;
        for topic in &self.settings.topics {
            let topic = namespace::wrap(namespace.as_deref(), topic);
            if let Err(error) = shared
                .publish_route(&topic, self.settings.default_topic_queues)
                .await
            {
                tracing::warn!(topic, %error, "route of a topic to send to not found yet");
            }
        }
        // Brokers that are connected already have to hear of the new group; others will with their first heartbeat.
        shared.heartbeat_all().await;
        let in_flight = Arc::new(Semaphore::new(self.settings.max_in_flight));
        let sender = Sender {
            client: shared,
            group,
            settings: self.settings,
            faults: Faults::default(),
        };
        let tasks = TaskTracker::new();
        let inner = Inner {
            sender,
            client,
            owns_client,
            stopped: AtomicBool::new(false),
            in_flight,
            tasks,
        };
        Ok(Producer {
            inner: Arc::new(inner),
        })
    }
}
