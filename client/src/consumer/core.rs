//! The engine of a push consumer: what its tasks share, and how it starts and stops.
//!
//! ```text
//! rebalance task ─ assigns ─▶ one task a queue: acquire ─▶ pull … pull ─▶ release
//! save task ─ positions, while some are unsaved          lock task ─ renews broker locks (orderly)
//! workers ─ as many as there is work for, up to the concurrency
//! supervisor ─ waits for the stop, then for the queues, leaves the group
//! ```
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use bindery_protocol::{
    bodies::{self, ConsumeFromWhere, ConsumeType, ConsumerData, SubscriptionData},
    message::TagExpression,
    names,
};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::{Notify, watch};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::{
    ConsumeFrom, FilterExpression, MessageModel,
    listener::{Listener, ListenerKind},
    positions::Positions,
    process_queue::ProcessQueue,
    settings::Settings,
    start::{Known, Resets},
    workers::Workers,
};
use crate::{
    Client, ClientError, MessageQueue,
    instance::{Refreshed, Server, Shared, warn_once},
    namespace,
    sync::lock,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct ConsumerCore {
    pub(super) client: Arc<Shared>,
    /// With the namespace.
    group: String,
    plain_group: String,
    pub(super) retry_topic: String,
    pub(super) settings: Settings,
    pub(super) subscriptions: Vec<Subscription>,
    pub(super) listener: ListenerKind,
    pub(super) started_at: i64,
    held: Mutex<BTreeMap<MessageQueue, Arc<ProcessQueue>>>,
    pub(super) positions: Positions,
    pub(super) known: Known,
    pub(super) resets: Resets,
    pub(super) workers: Workers,
    /// No more pulls, no more rebalances; every queue is given up.
    pub(super) stop: CancellationToken,
    /// The grace is over: running handlers are dropped.
    pub(super) kill: CancellationToken,
    /// Tasks of the queues and workers.
    pub(super) tasks: TaskTracker,
    /// Everything has ended.
    stopped: CancellationToken,
    rebalance: Notify,
    /// Cancelled when the first pass has handed out its queues.
    pub(super) first_pass: CancellationToken,
    pub(super) renewal: Notify,
    /// A position is unsaved.
    pub(super) unsaved: Notify,
    /// The retry topic may have come into being.
    pub(super) retry_expected: Notify,
    paused: watch::Sender<bool>,
    /// Held during a reset, over awaits on purpose: resets follow one another.
    pub(super) resetting: tokio::sync::Mutex<()>,
}

/// What is wanted of one topic.
#[derive(Debug)]
pub(super) struct Subscription {
    /// With the namespace.
    pub(super) topic: String,
    pub(super) filter: FilterExpression,
    pub(super) tags: TagExpression,
    /// Stays the same for the life of the consumer: a pull can then never be newer than the broker's knowledge.
    pub(super) version: i64,
}

impl Subscription {
    fn data(&self) -> SubscriptionData {
        let (tags_set, code_set) = match &self.tags {
            TagExpression::All => Default::default(),
            TagExpression::Tags { tags, codes } => (
                tags.iter().cloned().collect(),
                codes.iter().copied().collect(),
            ),
        };
        SubscriptionData {
            topic: self.topic.clone(),
            sub_string: self.filter.text.clone(),
            expression_type: self.filter.wire_kind().to_owned(),
            sub_version: self.version,
            tags_set,
            code_set,
            ..SubscriptionData::default()
        }
    }
}

impl ConsumerCore {
    /// The guard begins the ordered stop when it is dropped, also half-way through this start.
    pub(super) async fn start(
        client: &Client,
        group: &str,
        settings: Settings,
        listener: Listener,
    ) -> Result<(Arc<Self>, DropGuard), ClientError> {
        let core = Arc::new(Self::new(client, group, settings, listener)?);
        // Not registered yet: no heartbeat may spread an expression that brokers refuse.
        core.check_filters().await?;
        core.client.register_consumer(&core)?;
        let guard = core.stop.clone().drop_guard();
        let rounds = TaskTracker::new();
        core.client
            .tasks
            .spawn(supervise(Arc::clone(&core), client.clone(), rounds.clone()));
        core.introduce().await;
        core.spawn_rounds(&rounds);
        core.first_positions().await;
        Ok((core, guard))
    }

    fn new(
        client: &Client,
        group: &str,
        settings: Settings,
        listener: Listener,
    ) -> Result<Self, ClientError> {
        let shared = Arc::clone(&client.shared);
        let space = shared.config.namespace.as_deref();
        let plain_group = group.to_owned();
        let group = namespace::wrap(space, group);
        let retry_topic = names::retry_topic(&group);
        let now = shared.config.clock.now_millis();
        let mut subscriptions = Vec::new();
        for (topic, filter) in &settings.subscriptions {
            let topic = namespace::wrap(space, topic);
            subscriptions.push(Subscription {
                topic,
                tags: filter.tag_set()?,
                filter: filter.clone(),
                version: now,
            });
        }
        if settings.model == MessageModel::Clustering {
            subscriptions.push(Subscription {
                topic: retry_topic.clone(),
                filter: FilterExpression::all(),
                tags: TagExpression::All,
                version: now,
            });
        }
        let positions = match settings.model {
            MessageModel::Clustering => Positions::Broker,
            MessageModel::Broadcasting => Positions::local(&shared, &group)?,
        };
        Ok(Self {
            workers: Workers::new(settings.concurrency),
            stop: CancellationToken::new(),
            kill: CancellationToken::new(),
            tasks: TaskTracker::new(),
            stopped: CancellationToken::new(),
            rebalance: Notify::new(),
            first_pass: CancellationToken::new(),
            renewal: Notify::new(),
            unsaved: Notify::new(),
            retry_expected: Notify::new(),
            paused: watch::Sender::new(false),
            resetting: tokio::sync::Mutex::default(),
            held: Mutex::default(),
            known: Known::default(),
            resets: Resets::default(),
            listener: listener.0,
            started_at: now,
            client: shared,
            group,
            plain_group,
            retry_topic,
            settings,
            subscriptions,
            positions,
        })
    }

    /// Routes, then a heartbeat that every broker has acknowledged, so that the first pull needs no second try; then the retry topic,
    /// which that heartbeat may have made.
    async fn introduce(&self) {
        for subscription in &self.subscriptions {
            self.look_up(&subscription.topic).await;
        }
        self.client.heartbeat_all().await;
        if self.settings.model == MessageModel::Clustering
            && self.client.routes.existing(&self.retry_topic).is_none()
        {
            self.look_up(&self.retry_topic).await;
        }
    }

    /// Asks for a topic's route and remembers which queues were there the first time.
    pub(super) async fn look_up(&self, topic: &str) -> bool {
        let entry = self.client.routes.entry(topic);
        match self.client.refresh(topic, &entry, None).await {
            Ok(refreshed) => {
                let route = self.client.routes.existing(topic);
                self.known.first_look(topic, route.as_deref());
                refreshed == Refreshed::Changed
            }
            Err(error) => {
                warn_once!(self.client.is_news(Server::NameServers, &error), topic, %error, "route not found out");
                false
            }
        }
    }

    /// A condition over properties is shown to a broker before anything else, so that a mistake ends the start and not every pull.
    async fn check_filters(&self) -> Result<(), ClientError> {
        for subscription in self
            .subscriptions
            .iter()
            .filter(|subscription| subscription.filter.is_sql())
        {
            self.look_up(&subscription.topic).await;
            let Some(route) = self.client.routes.existing(&subscription.topic) else {
                // No broker to ask yet.
                subscription.filter.parse_here()?;
                continue;
            };
            for broker in &route.brokers {
                let Ok(addr) = self.client.routes.master(broker) else {
                    continue;
                };
                self.client
                    .check_client_config(&addr, &self.group, subscription.data())
                    .await?;
            }
        }
        Ok(())
    }

    fn spawn_rounds(self: &Arc<Self>, rounds: &TaskTracker) {
        let until_stop = |round: BoxFuture<'static, ()>| {
            let stop = self.stop.clone();
            rounds.spawn(async move {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = round => {}
                }
            });
        };
        until_stop(super::rebalance::rounds(Arc::clone(self)).boxed());
        until_stop(super::rebalance::watch_routes(Arc::clone(self)).boxed());
        until_stop(super::positions::save_rounds(Arc::clone(self)).boxed());
        if self.needs_locks() {
            until_stop(super::orderly::lock_rounds(Arc::clone(self)).boxed());
        }
    }

    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    /// The group without the namespace.
    pub(super) fn plain_group(&self) -> &str {
        &self.plain_group
    }

    pub(crate) fn subscribes(&self, topic: &str) -> bool {
        self.subscription(topic).is_some()
    }

    pub(super) fn subscription(&self, topic: &str) -> Option<&Subscription> {
        self.subscriptions
            .iter()
            .find(|subscription| subscription.topic == topic)
    }

    pub(crate) fn is_orderly(&self) -> bool {
        matches!(self.listener, ListenerKind::Orderly(_))
    }

    /// Orderly broadcasting has every queue for itself anyway.
    pub(super) fn needs_locks(&self) -> bool {
        self.is_orderly() && self.settings.model == MessageModel::Clustering
    }

    pub(crate) fn rebalance_soon(&self) {
        self.rebalance.notify_one();
    }

    /// Locks are asked for again now and not with the next round.
    pub(crate) fn renew_locks_soon(&self) {
        self.renewal.notify_one();
    }

    pub(super) async fn rebalance_wanted(&self) {
        self.rebalance.notified().await;
    }

    pub(crate) fn heartbeat_data(&self) -> ConsumerData {
        ConsumerData {
            group_name: self.group.clone(),
            consume_type: ConsumeType::Passively,
            message_model: match self.settings.model {
                MessageModel::Clustering => bodies::MessageModel::Clustering,
                MessageModel::Broadcasting => bodies::MessageModel::Broadcasting,
            },
            consume_from_where: match self.settings.from {
                ConsumeFrom::Last => ConsumeFromWhere::LastOffset,
                ConsumeFrom::First => ConsumeFromWhere::FirstOffset,
                ConsumeFrom::Timestamp(_) => ConsumeFromWhere::Timestamp,
            },
            subscription_data_set: self.subscription_data(),
            ..ConsumerData::default()
        }
    }

    pub(super) fn subscription_data(&self) -> Vec<SubscriptionData> {
        self.subscriptions.iter().map(Subscription::data).collect()
    }

    pub(super) fn now(&self) -> i64 {
        self.client.config.clock.now_millis()
    }

    /// The queues it has or is about to have, or is giving up.
    pub(super) fn held(&self) -> Vec<Arc<ProcessQueue>> {
        lock(&self.held).values().cloned().collect()
    }

    pub(super) fn with_held<T>(
        &self,
        look: impl FnOnce(&mut BTreeMap<MessageQueue, Arc<ProcessQueue>>) -> T,
    ) -> T {
        look(&mut lock(&self.held))
    }

    pub(super) fn pause(&self, pause: bool) {
        self.paused.send_replace(pause);
    }

    pub(super) fn is_paused(&self) -> bool {
        *self.paused.borrow()
    }

    /// Waits for the end of a pause. Cancel safe.
    pub(super) async fn not_paused(&self) {
        let mut paused = self.paused.subscribe();
        if paused.wait_for(|paused| !paused).await.is_err() {
            // The sender is part of this consumer, so it is there as long as we are.
            std::future::pending::<()>().await;
        }
    }

    /// Begins the stop and waits for its end. See [`crate::PushConsumer::shutdown`].
    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        self.stopped.cancelled().await;
    }
}

/// The ordered end: queues are given up one by one (each waits for its handlers, saves its position and unlocks), then the group is
/// left, which makes the other members rebalance at once.
async fn supervise(core: Arc<ConsumerCore>, client: Client, rounds: TaskTracker) {
    core.stop.cancelled().await;
    core.pause(false);
    rounds.close();
    rounds.wait().await;
    core.tasks.close();
    tokio::select! {
        () = core.tasks.wait() => {}
        () = core.client.config.clock.sleep(core.settings.grace) => {
            tracing::warn!(group = core.group(), "handlers still running at the end of the grace are dropped");
        }
    }
    core.kill.cancel();
    core.tasks.wait().await;
    core.client.consumer_leaves(core.group()).await;
    core.stopped.cancel();
    drop(client);
}
