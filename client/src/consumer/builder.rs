//! How a push consumer is set up.
use std::{sync::Arc, time::Duration};

use super::{
    Allocation, ConsumeFrom, FilterExpression, Listener, MessageModel, PushConsumer,
    core::ConsumerCore, settings::Settings,
};
use crate::{Client, ClientConfig, ClientError, namespace, source::Source};

/// Settings of a [`PushConsumer`], with Java's defaults.
#[derive(Debug)]
pub struct PushConsumerBuilder {
    group: String,
    source: Source,
    settings: Settings,
    listener: Option<Listener>,
}

impl PushConsumerBuilder {
    pub(super) fn new(group: String) -> Self {
        Self {
            group,
            source: Source::default(),
            settings: Settings::default(),
            listener: None,
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

    /// Adds a topic. All members of a group must subscribe to the same topics with the same expressions.
    #[must_use]
    pub fn subscribe(mut self, topic: impl Into<String>, filter: FilterExpression) -> Self {
        let topic = topic.into();
        self.settings
            .subscriptions
            .retain(|(known, _)| *known != topic);
        self.settings.subscriptions.push((topic, filter));
        self
    }

    /// Where to begin without a stored position; [`ConsumeFrom::Last`]. A queue that appears after the start is read from its
    /// beginning.
    #[must_use]
    pub fn consume_from(mut self, from: ConsumeFrom) -> Self {
        self.settings.from = from;
        self
    }

    /// Takes the broker's word for the start of a new group, as the Java client does: on a young topic `Last` and `Timestamp` then
    /// begin with the oldest message. Off.
    #[must_use]
    pub fn start_like_java(mut self, on: bool) -> Self {
        self.settings.start_like_java = on;
        self
    }

    /// Whether the group goes to where [`consume_from`](Self::consume_from) says although it has positions: in the queues that this
    /// consumer gets at its start, and only when the group has no other member then, whose positions they would be. Default false.
    #[must_use]
    pub fn reset_on_start(mut self, on: bool) -> Self {
        self.settings.reset_on_start = on;
        self
    }

    /// Who of the group gets a message; [`MessageModel::Clustering`].
    #[must_use]
    pub fn message_model(mut self, model: MessageModel) -> Self {
        self.settings.model = model;
        self
    }

    /// How queues are distributed; [`AllocateStrategy::Averagely`](super::AllocateStrategy::Averagely).
    #[must_use]
    pub fn allocate(mut self, strategy: impl Into<Allocation>) -> Self {
        self.settings.strategy = strategy.into();
        self
    }

    /// Handlers that may run at a time; 20.
    #[must_use]
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.settings.concurrency = handlers;
        self
    }

    /// Messages a handler is given at most; 1.
    #[must_use]
    pub fn batch_size(mut self, messages: usize) -> Self {
        self.settings.batch_size = messages;
        self
    }

    /// Messages asked for in one pull; 32 (the broker has limits of its own).
    #[must_use]
    pub fn pull_batch_size(mut self, messages: i32) -> Self {
        self.settings.pull_batch_size = messages;
        self
    }

    /// Pause between two pulls of a queue; none.
    #[must_use]
    pub fn pull_interval(mut self, pause: Duration) -> Self {
        self.settings.pull_interval = pause;
        self
    }

    /// Unhandled messages of a queue at which pulling waits; 1000.
    #[must_use]
    pub fn max_cached_messages(mut self, messages: usize) -> Self {
        self.settings.limits.messages = messages;
        self
    }

    /// Bytes of unhandled messages of a queue at which pulling waits; 100 MiB.
    #[must_use]
    pub fn max_cached_bytes(mut self, bytes: usize) -> Self {
        self.settings.limits.bytes = bytes;
        self
    }

    /// Distance from the lowest unhandled to the newest pulled message of a queue at which pulling waits (not for orderly); 2000.
    #[must_use]
    pub fn max_span(mut self, offsets: i64) -> Self {
        self.settings.limits.span = offsets;
        self
    }

    /// Failures after which a message becomes a dead letter; `None` (the default) is 16, for orderly without end.
    #[must_use]
    pub fn max_reconsume_times(mut self, times: Option<i32>) -> Self {
        self.settings.max_reconsume_times = times;
        self
    }

    /// Delay level of failed messages where the context does not say otherwise; 0, see [`super::ConcurrentContext::set_delay_level`].
    #[must_use]
    pub fn delay_level_when_next_consume(mut self, level: i32) -> Self {
        self.settings.delay_level = level;
        self
    }

    /// How long an orderly queue waits after a failure; 1 s, kept within 10 ms and 30 s.
    #[must_use]
    pub fn suspend_current_queue(mut self, pause: Duration) -> Self {
        self.settings.suspend = pause;
        self
    }

    /// How long a handler may run before its messages are sent back; 15 min. Not for orderly.
    #[must_use]
    pub fn consume_timeout(mut self, limit: Duration) -> Self {
        self.settings.consume_timeout = limit;
        self
    }

    /// How long a shutdown, or a queue that goes to another member, waits for running handlers; 30 s.
    #[must_use]
    pub fn shutdown_grace(mut self, limit: Duration) -> Self {
        self.settings.grace = limit;
        self
    }

    /// What to call.
    #[must_use]
    pub fn listener(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Starts consuming. A topic that does not exist yet is taken up when it appears.
    ///
    /// Returns when it is decided where the queues begin that no other member can have, so that a new group receives what is sent
    /// from then on. For that it waits 3 s at most, and not for brokers that cannot be reached.
    ///
    /// # Errors
    /// Bad settings, an already used group, no name server address, a filter expression that the broker refuses.
    pub async fn start(mut self) -> Result<PushConsumer, ClientError> {
        namespace::check_group("consumer", &self.group)?;
        self.settings.check()?;
        let missing = || ClientError::Config {
            setting: "listener",
            problem: "none is given".to_owned(),
        };
        let listener = self.listener.ok_or_else(missing)?;
        if listener.is_orderly() {
            // Only one batch of a queue runs at a time: the span says nothing that the number of messages does not.
            self.settings.limits.span = i64::MAX;
        }
        let (client, owns_client) = self.source.client()?;
        let (core, guard) =
            ConsumerCore::start(&client, &self.group, self.settings, listener).await?;
        Ok(PushConsumer {
            core,
            client,
            owns_client,
            _stop_with_the_last: Arc::new(guard),
        })
    }
}
