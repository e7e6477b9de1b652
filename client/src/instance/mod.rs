//! One client instance: what its producers, consumers and admin calls share.
//!
//! ```text
//!              ┌─ connections ─ one a server
//! Client ─▶ Shared ─ routes ──── refreshed every 30 s, or soon after a broker could not be reached
//!              ├─ heartbeats ─── every 30 s to every broker
//!              └─ groups ─────── callbacks of brokers find their consumer here
//! ```
use std::{
    collections::{BTreeMap, btree_map::Entry},
    net::IpAddr,
    sync::{
        Arc, RwLock, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Request},
    headers::UnregisterClientHeader,
    message::id::UniqueIdGenerator,
};
use futures_util::future::join_all;
use rand::seq::SliceRandom;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    Admin, ClientConfig, ClientError,
    consumer::core::ConsumerCore,
    producer::Checks,
    sync::{read, write},
};

mod callbacks;
mod calls;
mod connections;
mod heartbeat;
mod identity;
mod outages;
mod requests;
mod routes;

pub(crate) use calls::{PullAnswer, read_header};
pub(crate) use connections::{Peer, refusal, success};
pub(crate) use identity::host_text;
pub(crate) use outages::{Server, warn_once};
pub(crate) use routes::{MASTER, Refreshed, TopicEntry, TopicRoute};

/// Rounds asked for early come at most so often.
const SHORTEST_ROUND: Duration = Duration::from_secs(1);

/// A client instance: one id, one set of connections, one route table, shared by the producers, consumers and admin calls made
/// from it. A handle: clones share everything; when the last one is dropped its rounds stop.
///
/// ```no_run
/// # async fn example() -> Result<(), bindery_client::ClientError> {
/// use bindery_client::{Client, ClientConfig, Message, Producer};
///
/// let client = Client::start(ClientConfig::new("127.0.0.1:9876"))?;
/// let producer = Producer::builder("orders").client(&client).start().await?;
/// producer.send(Message::new("orders", "hello")).await?;
/// producer.shutdown().await;
/// client.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    _stop_with_the_last: Arc<DropGuard>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) this: Weak<Shared>,
    pub(crate) config: ClientConfig,
    pub(crate) id: String,
    pub(crate) ip: IpAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) routes: routes::Routes,
    pub(crate) unique_ids: UniqueIdGenerator,
    connections: connections::Connections,
    outages: outages::Outages,
    pub(crate) requests: requests::Requests,
    /// Shuffled once, so that the clients of a cluster spread over its name servers.
    name_servers: Vec<String>,
    /// The one that answered last.
    chosen: AtomicUsize,
    /// With what answers brokers' questions about its transactions, if it makes some.
    producers: RwLock<BTreeMap<String, Option<Arc<Checks>>>>,
    consumers: RwLock<BTreeMap<String, Arc<ConsumerCore>>>,
}

impl Client {
    /// Starts a client. Must be called within a tokio runtime; nothing is connected yet.
    ///
    /// # Errors
    /// [`ClientError::NoNameServer`] for an empty list.
    pub fn start(config: ClientConfig) -> Result<Self, ClientError> {
        if config.name_servers.is_empty() {
            return Err(ClientError::NoNameServer);
        }
        let ip = identity::local_ip(&config);
        let id = identity::client_id(&config, ip);
        let mut name_servers = config.name_servers.clone();
        name_servers.shuffle(&mut rand::rng());
        let stop = CancellationToken::new();
        let shared = Arc::new_cyclic(|this| Shared {
            this: this.clone(),
            id,
            ip,
            stop: stop.clone(),
            tasks: TaskTracker::new(),
            routes: routes::Routes::default(),
            unique_ids: UniqueIdGenerator::new(ip),
            connections: connections::Connections::default(),
            outages: outages::Outages::default(),
            requests: requests::Requests::default(),
            name_servers,
            chosen: AtomicUsize::new(0),
            producers: RwLock::default(),
            consumers: RwLock::default(),
            config,
        });
        shared.tasks.spawn(route_rounds(Arc::clone(&shared)));
        shared.tasks.spawn(heartbeat_rounds(Arc::clone(&shared)));
        Ok(Self {
            shared,
            _stop_with_the_last: Arc::new(stop.drop_guard()),
        })
    }

    /// `ip@instance`, the name brokers know it by.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// What it was made from.
    #[must_use]
    pub fn config(&self) -> &ClientConfig {
        &self.shared.config
    }

    /// Administration calls over this client's connections.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(self.clone())
    }

    /// Shuts the consumers down that were made from it, stops its rounds and closes the connections. Producers made from it can't
    /// send any more.
    pub async fn shutdown(&self) {
        let consumers: Vec<_> = read(&self.shared.consumers).values().cloned().collect();
        join_all(consumers.iter().map(|consumer| consumer.shutdown())).await;
        let producers = std::mem::take(&mut *write(&self.shared.producers));
        for (group, checks) in &producers {
            if let Some(checks) = checks {
                checks.shutdown(&self.shared).await;
            }
            self.shared.unregister(Some(group), None).await;
        }
        self.shared.stop.cancel();
        self.shared.requests.give_up();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        join_all(
            self.shared
                .connections
                .close_all()
                .iter()
                .map(bindery_remoting::Connection::closed),
        )
        .await;
    }
}

/// Routes are asked for again and again; a round can be asked for early, then consumers of changed topics rebalance.
async fn route_rounds(shared: Arc<Shared>) {
    let clock = shared.config.clock.clone();
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = shared.routes.early.notified() => {}
            () = clock.sleep(shared.config.poll_name_server_interval) => {}
        }
        let changed = shared.refresh_all().await;
        for topic in &changed {
            shared.topic_changed(topic);
        }
        if !changed.is_empty() && shared.has_checks() {
            // A new broker may have questions about transactions, and asks nobody it has not heard of.
            shared.greet_all().await;
        }
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = clock.sleep(SHORTEST_ROUND) => {}
        }
    }
}

async fn heartbeat_rounds(shared: Arc<Shared>) {
    let clock = shared.config.clock.clone();
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = clock.sleep(shared.config.heartbeat_interval) => {}
        }
        shared.routes.drop_unused_brokers();
        shared.heartbeat_all().await;
    }
}

impl Shared {
    /// Makes a producer group known.
    pub(crate) fn register_producer(
        &self,
        group: &str,
        checks: Option<Arc<Checks>>,
    ) -> Result<(), ClientError> {
        match write(&self.producers).entry(group.to_owned()) {
            Entry::Vacant(place) => {
                place.insert(checks);
                Ok(())
            }
            Entry::Occupied(_) => Err(ClientError::DuplicateGroup {
                kind: "producer",
                group: group.to_owned(),
            }),
        }
    }

    /// What answers questions about the transactions of a group.
    pub(crate) fn checks(&self, group: &str) -> Option<Arc<Checks>> {
        read(&self.producers).get(group).cloned().flatten()
    }

    fn has_checks(&self) -> bool {
        read(&self.producers).values().any(Option::is_some)
    }

    /// Makes a consumer group known; callbacks find it from now on.
    pub(crate) fn register_consumer(
        &self,
        consumer: &Arc<ConsumerCore>,
    ) -> Result<(), ClientError> {
        let group = consumer.group();
        let mut consumers = write(&self.consumers);
        if consumers.contains_key(group) {
            return Err(ClientError::DuplicateGroup {
                kind: "consumer",
                group: group.to_owned(),
            });
        }
        consumers.insert(group.to_owned(), Arc::clone(consumer));
        Ok(())
    }

    pub(crate) fn forget_producer(&self, group: &str) {
        write(&self.producers).remove(group);
    }

    pub(crate) async fn producer_leaves(&self, group: &str) {
        if write(&self.producers).remove(group).is_some() {
            self.unregister(Some(group), None).await;
        }
    }

    pub(crate) async fn consumer_leaves(&self, group: &str) {
        if write(&self.consumers).remove(group).is_some() {
            self.unregister(None, Some(group)).await;
        }
    }

    pub(crate) fn consumer(&self, group: &str) -> Option<Arc<ConsumerCore>> {
        read(&self.consumers).get(group).cloned()
    }

    /// The connection to a broker ended: it may give our queues to others.
    fn disconnected(&self, addr: &str) {
        let brokers = self.routes.brokers_at(addr);
        for consumer in read(&self.consumers).values() {
            for broker in &brokers {
                consumer.doubt(broker);
            }
        }
    }

    /// A broker was reached again. It may have been restarted: then it knows neither members nor locks.
    fn reconnected(&self) {
        for consumer in read(&self.consumers).values() {
            consumer.rebalance_soon();
            consumer.renew_locks_soon();
        }
    }

    fn topic_changed(&self, topic: &str) {
        for consumer in read(&self.consumers).values() {
            if consumer.subscribes(topic) {
                consumer.rebalance_soon();
            }
        }
    }

    /// Tells every broker that a group of this client is gone; they tell the other members at once.
    async fn unregister(&self, producer: Option<&str>, consumer: Option<&str>) {
        let header = UnregisterClientHeader {
            client_id: (&*self.id).into(),
            producer_group: producer.map(Into::into),
            consumer_group: consumer.map(Into::into),
        };
        let request = Request::new(RequestCode::UNREGISTER_CLIENT).with(&header);
        let timeout = self.config.call_timeout.min(Duration::from_secs(1));
        join_all(self.routes.addresses(false).iter().map(|addr| {
            let request = request.clone();
            async move {
                if let Err(error) = self.ask(addr, request, timeout).await {
                    tracing::debug!(addr, %error, "broker not told that the group left");
                }
            }
        }))
        .await;
    }

    /// Asks the name servers one after the other, starting with the one that answered last, until one's answer is `good`; else the
    /// last answer. The time is divided so that a silent one leaves some for the others.
    pub(crate) async fn ask_name_servers(
        &self,
        request: &Request,
        good: impl Fn(&Frame) -> bool,
    ) -> Result<(String, Frame), ClientError> {
        let count = self.name_servers.len();
        let first = self.chosen.load(Ordering::Relaxed);
        let deadline = Instant::now() + self.config.call_timeout;
        let mut answered = None;
        let mut failed = None;
        for turn in 0..count {
            let index = (first + turn) % count;
            let addr = &self.name_servers[index];
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(count - turn).unwrap_or(1);
            match self
                .call(Peer::NameServer, addr, request.clone(), share)
                .await
            {
                Ok(answer) => {
                    let done = good(&answer);
                    if done || answered.is_none() {
                        self.chosen.store(index, Ordering::Relaxed);
                        answered = Some((addr.clone(), answer));
                    }
                    if done {
                        break;
                    }
                }
                Err(error) => {
                    tracing::debug!(addr, %error, "name server did not answer");
                    failed = Some(error);
                }
            }
        }
        match (answered, failed) {
            (Some(answer), _) => Ok(answer),
            (None, Some(source)) => Err(ClientError::NameServersUnreachable {
                addrs: self.name_servers.clone(),
                source: Box::new(source),
            }),
            (None, None) => Err(ClientError::NoNameServer),
        }
    }

    /// All name servers, for what every one of them must be told.
    pub(crate) fn name_servers(&self) -> &[String] {
        &self.name_servers
    }
}

/// Whether an answer is anything but "no such topic": then another name server may know better.
pub(crate) fn knows_topic(answer: &Frame) -> bool {
    answer.response_code() != ResponseCode::TOPIC_NOT_EXIST
}
