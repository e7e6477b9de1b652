//! The binder for RocketMQ: the broker in the box and Apache RocketMQ clusters alike.
//!
//! ```text
//! ConsumerSpec + rocketmq.bindings.<name>.consumer ─▶ PushConsumer ─▶ Deliver ─▶ status
//! ProducerSpec + rocketmq.bindings.<name>.producer ─▶ Producer (one a group) ─▶ SendReceipt
//! … with a transaction ─▶ TransactionProducer (one a group) ─▶ TxReceipt; questions ─▶ listener
//!                     one Client: connections, routes, heartbeats
//! ```

mod consumer;
mod producer;
mod transaction;
mod translate;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bindery_client::{
    Client, ClientConfig, ClientError, Producer, TopicSettings, TransactionProducer,
};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use self::consumer::RocketmqConsuming;
use self::producer::RocketmqProducing;
use self::transaction::Questions;
pub(crate) use self::translate::allocate as allocation;
use super::{
    Access, Binder, BinderError, Capabilities, ConsumerBinding, ConsumerSpec, Deliver, Destination,
    Health, ProducerBinding, ProducerSpec, require,
};
use crate::config::{RocketmqConfig, RocketmqProducer};

/// Queues of a topic that is created without a setting: as many as the binder's topics under `bindery.topics` get.
const DEFAULT_QUEUES: u32 = 8;

/// Time allowed for the health check's question to a name server.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// What the binder is made from.
#[derive(Debug, Clone)]
pub struct RocketmqOptions {
    /// `spring.cloud.stream.rocketmq`.
    pub config: RocketmqConfig,
    /// `host:port` of the name servers; those of the embedded one where that runs.
    pub name_servers: Vec<String>,
    /// Names the producers of outputs that configure no group.
    pub application: String,
    /// `bindery.consumer.start-like-java`.
    pub start_like_java: bool,
    /// Folder for the positions of broadcasting inputs; `None`: the client's default.
    pub offset_dir: Option<PathBuf>,
}

/// A RocketMQ cluster.
#[derive(Debug)]
pub struct RocketmqBinder {
    client: Client,
    options: RocketmqOptions,
    producers: Mutex<HashMap<String, SharedProducer>>,
}

/// The producer of one group, and the settings it was made with.
#[derive(Debug, Clone)]
struct SharedProducer {
    producer: Producer,
    /// The same producer, where the group's outputs are transactional.
    transactional: Option<TransactionProducer>,
    settings: RocketmqProducer,
}

impl RocketmqBinder {
    /// A binder for these name servers. Nothing is connected yet.
    ///
    /// # Errors
    /// [`BinderError::Broker`] without a name server.
    pub fn start(options: RocketmqOptions) -> Result<Self, BinderError> {
        let binder = &options.config.binder;
        let mut config = ClientConfig::new(&options.name_servers.join(";"));
        config.namespace.clone_from(&binder.namespace);
        config.poll_name_server_interval = binder.poll_name_server_interval;
        config.heartbeat_interval = binder.heartbeat_broker_interval;
        config.persist_offset_interval = binder.persist_consumer_offset_interval;
        config.offset_dir.clone_from(&options.offset_dir);
        let client = Client::start(config).map_err(|source| {
            failed(
                "starting a client for",
                &options.name_servers.join(";"),
                source,
            )
        })?;
        Ok(Self {
            client,
            options,
            producers: Mutex::default(),
        })
    }

    /// The producer of a group: outputs of one group share it, so they must agree on its settings.
    async fn producer(
        &self,
        spec: &ProducerSpec,
        settings: &RocketmqProducer,
    ) -> Result<SharedProducer, BinderError> {
        let group = settings
            .group
            .clone()
            .unwrap_or_else(|| format!("{}-producer", self.options.application));
        let mut producers = self.producers.lock().await;
        if let Some(shared) = producers.get(&group) {
            return if translate::same_client_settings(&shared.settings, settings) {
                Ok(shared.clone())
            } else {
                Err(BinderError::Unsupported {
                    binding: spec.binding.clone(),
                    binder: "rocketmq",
                    what: "second set of producer settings for one producer group; name another `producer.group`",
                })
            };
        }
        let shared = self
            .start_producer(&group, spec, settings)
            .await
            .map_err(|source| failed("starting producer group", &group, source))?;
        producers.insert(group, shared.clone());
        Ok(shared)
    }

    async fn start_producer(
        &self,
        group: &str,
        spec: &ProducerSpec,
        settings: &RocketmqProducer,
    ) -> Result<SharedProducer, ClientError> {
        let builder = translate::producer_builder(group, settings)
            .client(&self.client)
            .topics([spec.destination.as_str()]);
        let (producer, transactional) = match &spec.transaction {
            None => (builder.start().await?, None),
            Some(transaction) => {
                let questions = Questions::new(transaction.listener.clone(), &spec.binding, group);
                let transactional = builder
                    .transactional(questions)
                    .shutdown_grace(transaction.grace)
                    .start()
                    .await?;
                (transactional.producer().clone(), Some(transactional))
            }
        };
        Ok(SharedProducer {
            producer,
            transactional,
            settings: settings.clone(),
        })
    }
}

#[async_trait]
impl Binder for RocketmqBinder {
    fn kind(&self) -> &'static str {
        "rocketmq"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTITIONS
            .with(Capabilities::ORDERED)
            .with(Capabilities::DELAY)
            .with(Capabilities::BROADCAST)
            .with(Capabilities::TAGS)
            .with(Capabilities::SQL)
            .with(Capabilities::PAUSE)
            .with(Capabilities::START_BY_TIME)
            .with(Capabilities::TRANSACTIONS)
    }

    async fn declare(&self, destinations: &[Destination]) -> Result<(), BinderError> {
        let mut tasks = JoinSet::new();
        for destination in destinations {
            let (admin, destination) = (self.client.admin(), destination.clone());
            tasks.spawn(async move {
                let result = match admin.topic_exists(&destination.name).await {
                    Ok(false) => {
                        admin
                            .create_topic(&destination.name, topic_settings(&destination))
                            .await
                    }
                    other => other.map(drop),
                };
                result.map_err(|source| failed("creating topic", &destination.name, source))
            });
        }
        let mut first_error = Ok(());
        while let Some(joined) = tasks.join_next().await {
            // A panic is the client's bug: it must not look like a created topic.
            let result = joined.unwrap_or_else(|source| Err(failed("creating", "topics", source)));
            first_error = first_error.and(result);
        }
        first_error
    }

    async fn bind_consumer(
        &self,
        spec: ConsumerSpec,
        sink: Arc<dyn Deliver>,
    ) -> Result<Arc<dyn ConsumerBinding>, BinderError> {
        require(self, &spec)?;
        let settings = &self.options.config.binding(&spec.binding).consumer;
        let consuming = RocketmqConsuming::start(
            &self.client,
            spec,
            settings,
            self.options.start_like_java,
            sink,
        )
        .await?;
        Ok(Arc::new(consuming))
    }

    async fn bind_producer(
        &self,
        spec: ProducerSpec,
    ) -> Result<Arc<dyn ProducerBinding>, BinderError> {
        let settings = self.options.config.binding(&spec.binding).producer.clone();
        let shared = self.producer(&spec, &settings).await?;
        Ok(Arc::new(RocketmqProducing::new(
            shared.producer,
            shared.transactional,
            spec,
            settings.send_type,
        )))
    }

    async fn health(&self) -> Health {
        match tokio::time::timeout(HEALTH_TIMEOUT, self.client.admin().topics()).await {
            Ok(Ok(_)) => Health::Up,
            Ok(Err(error)) => Health::Down(error.to_string()),
            Err(_elapsed) => {
                Health::Down(format!("no name server answered within {HEALTH_TIMEOUT:?}"))
            }
        }
    }

    async fn shutdown(&self) -> Result<(), BinderError> {
        let producers = std::mem::take(&mut *self.producers.lock().await);
        for shared in producers.into_values() {
            match shared.transactional {
                Some(transactional) => transactional.shutdown().await,
                None => shared.producer.shutdown().await,
            }
        }
        self.client.shutdown().await;
        Ok(())
    }
}

fn topic_settings(destination: &Destination) -> TopicSettings {
    let default_queues = if destination.name.starts_with('%') {
        1
    } else {
        DEFAULT_QUEUES
    };
    let queues = destination.queues.unwrap_or(default_queues);
    TopicSettings {
        permission: match destination.access {
            Access::Both => 6,
            Access::Read => 4,
            Access::Write => 2,
        },
        order: destination.ordered,
        ..TopicSettings::queues(i32::try_from(queues).unwrap_or(i32::MAX))
    }
}

fn failed(
    action: &'static str,
    subject: &str,
    source: impl Into<crate::error::BoxError>,
) -> BinderError {
    BinderError::Broker {
        action,
        subject: subject.to_owned(),
        source: source.into(),
    }
}

fn client_failed(action: &'static str, subject: &str) -> impl FnOnce(ClientError) -> BinderError {
    move |source| failed(action, subject, source)
}
