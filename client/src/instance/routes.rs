//! Which queues a topic has, and where their brokers are: asked of a name server once, then again every half minute.
//!
//! ```text
//! name server ─▶ RouteData ─▶ TopicRoute { publish queues, subscribe queues } ─▶ producers, consumers
//!                      └────▶ broker name ─▶ id ─▶ address                    ─▶ every call
//! ```
//! A route once known is kept when the name servers no longer know it: that lets sends survive their restart.
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use bindery_protocol::{
    bodies::{PERM_READ, PERM_WRITE, RouteData},
    names,
};
use tokio::sync::Notify;

use super::{Server, Shared, outages::warn_once};
use crate::{
    ClientError, MessageQueue,
    sync::{read, write},
};

/// Id of a master.
pub(crate) const MASTER: i64 = 0;

#[derive(Debug, Default)]
pub(crate) struct Routes {
    topics: RwLock<HashMap<String, Arc<TopicEntry>>>,
    brokers: RwLock<HashMap<String, BTreeMap<i64, String>>>,
    /// Asks for a round before its time.
    pub(super) early: Notify,
}

/// What is known of one topic.
#[derive(Debug)]
pub(crate) struct TopicEntry {
    route: RwLock<Option<Arc<TopicRoute>>>,
    /// Round robin over the publish queues.
    pub(crate) next: AtomicUsize,
    /// Counts answers of name servers, whatever they said.
    answers: AtomicU64,
    /// Held over the question on purpose: all who need the topic wait for one answer.
    asking: tokio::sync::Mutex<()>,
}

/// A topic's queues.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TopicRoute {
    /// Writable queues of brokers with a master, by broker name and queue id.
    pub(crate) publish: Vec<MessageQueue>,
    /// Readable queues, in the same order.
    pub(crate) subscribe: Vec<MessageQueue>,
    /// Names of the brokers, in order.
    pub(crate) brokers: Vec<String>,
    /// Names of the clusters they belong to, in order, each once.
    pub(crate) clusters: Vec<String>,
    /// Whether the topic does not exist yet and this is what it will look like when the first message makes it.
    pub(crate) provisional: bool,
}

/// What a question about a topic brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refreshed {
    Changed,
    Same,
    /// The name servers know no route; one known before is kept.
    Missing,
}

impl Default for TopicEntry {
    fn default() -> Self {
        // A random start, or the first messages of many short-lived programs would all go to the same queue.
        let next = AtomicUsize::new(usize::from(rand::random::<u16>()));
        Self {
            route: RwLock::default(),
            next,
            answers: AtomicU64::new(0),
            asking: tokio::sync::Mutex::default(),
        }
    }
}

impl TopicEntry {
    pub(crate) fn route(&self) -> Option<Arc<TopicRoute>> {
        read(&self.route).clone()
    }
}

impl Routes {
    /// The place of a topic, made if there is none; from now on the rounds ask for it.
    pub(crate) fn entry(&self, topic: &str) -> Arc<TopicEntry> {
        if let Some(entry) = read(&self.topics).get(topic) {
            return Arc::clone(entry);
        }
        Arc::clone(write(&self.topics).entry(topic.to_owned()).or_default())
    }

    /// What is known of a topic that exists.
    pub(crate) fn existing(&self, topic: &str) -> Option<Arc<TopicRoute>> {
        let entry = read(&self.topics).get(topic).cloned()?;
        entry.route().filter(|route| !route.provisional)
    }

    /// Address of a broker: the wanted id, else any other of that name if `exactly` is off.
    pub(crate) fn address(&self, broker: &str, id: i64, exactly: bool) -> Option<String> {
        let brokers = read(&self.brokers);
        let addresses = brokers.get(broker)?;
        let found = addresses.get(&id).or_else(|| {
            if exactly {
                None
            } else {
                addresses.values().next()
            }
        });
        found.cloned()
    }

    /// Address of a master.
    pub(crate) fn master(&self, broker: &str) -> Result<String, ClientError> {
        self.address(broker, MASTER, true)
            .ok_or_else(|| ClientError::BrokerUnknown {
                broker: broker.to_owned(),
            })
    }

    /// Names of the brokers with this address.
    pub(super) fn brokers_at(&self, addr: &str) -> Vec<String> {
        let brokers = read(&self.brokers);
        let there =
            |addresses: &BTreeMap<i64, String>| addresses.values().any(|known| known == addr);
        brokers
            .iter()
            .filter(|(_, addresses)| there(addresses))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Addresses of all known brokers, or of masters alone.
    pub(crate) fn addresses(&self, masters_only: bool) -> Vec<String> {
        let brokers = read(&self.brokers);
        let all = brokers
            .values()
            .flatten()
            .filter(|(id, _)| !masters_only || **id == MASTER);
        all.map(|(_, addr)| addr.clone()).collect()
    }

    /// Forgets a topic that was deleted.
    pub(crate) fn forget(&self, topic: &str) {
        write(&self.topics).remove(topic);
    }

    /// Makes the next round start soon (at most one a second).
    pub(crate) fn hurry(&self) {
        self.early.notify_one();
    }

    pub(super) fn topics(&self) -> Vec<String> {
        read(&self.topics).keys().cloned().collect()
    }

    /// Forgets brokers that no route names any more.
    pub(super) fn drop_unused_brokers(&self) {
        let routes: Vec<_> = read(&self.topics)
            .values()
            .filter_map(|entry| entry.route())
            .collect();
        let named: std::collections::HashSet<&str> = routes
            .iter()
            .flat_map(|route| route.brokers.iter().map(String::as_str))
            .collect();
        write(&self.brokers).retain(|broker, _| named.contains(broker.as_str()));
    }

    fn learn(
        &self,
        topic: &str,
        entry: &TopicEntry,
        data: &RouteData,
        provisional: bool,
    ) -> Refreshed {
        {
            let mut brokers = write(&self.brokers);
            for broker in &data.broker_datas {
                if brokers.get(&broker.broker_name) != Some(&broker.broker_addrs) {
                    brokers.insert(broker.broker_name.clone(), broker.broker_addrs.clone());
                }
            }
        }
        let route = TopicRoute::of(topic, data, provisional);
        let mut known = write(&entry.route);
        if known.as_deref() == Some(&route) {
            return Refreshed::Same;
        }
        tracing::debug!(
            topic,
            publish = route.publish.len(),
            subscribe = route.subscribe.len(),
            "route changed"
        );
        *known = Some(Arc::new(route));
        Refreshed::Changed
    }
}

impl TopicRoute {
    fn of(topic: &str, data: &RouteData, provisional: bool) -> Self {
        let mut queue_datas: Vec<_> = data.queue_datas.iter().collect();
        queue_datas.sort_by(|a, b| a.broker_name.cmp(&b.broker_name));
        let has_master = |name: &str| {
            data.broker_datas.iter().any(|broker| {
                broker.broker_name == name && broker.broker_addrs.contains_key(&MASTER)
            })
        };
        let queues = |broker: &str, count: i32| {
            let broker = broker.to_owned();
            (0..count).map(move |queue_id| MessageQueue {
                topic: topic.to_owned(),
                broker_name: broker.clone(),
                queue_id,
            })
        };
        let mut publish = Vec::new();
        let mut subscribe = Vec::new();
        for queue_data in &queue_datas {
            let name = &queue_data.broker_name;
            if queue_data.perm & PERM_WRITE != 0 && has_master(name) {
                publish.extend(queues(name, queue_data.write_queue_nums));
            }
            if queue_data.perm & PERM_READ != 0 {
                subscribe.extend(queues(name, queue_data.read_queue_nums));
            }
        }
        // A fixed order of queues given by the cluster's administrator (`broker-a:4;broker-b:8`): it stays when a broker is down, so
        // that an ordered topic fails to send rather than moves to other queues.
        if let Some(conf) = data
            .order_topic_conf
            .as_deref()
            .filter(|conf| !conf.trim().is_empty())
        {
            publish = ordered_queues(conf)
                .flat_map(|(broker, count)| queues(broker, count).collect::<Vec<_>>())
                .collect();
        }
        let mut brokers: Vec<_> = data
            .broker_datas
            .iter()
            .map(|broker| broker.broker_name.clone())
            .collect();
        brokers.sort();
        let clusters: BTreeSet<_> = data
            .broker_datas
            .iter()
            .map(|broker| broker.cluster.clone())
            .collect();
        Self {
            publish,
            subscribe,
            brokers,
            clusters: clusters.into_iter().collect(),
            provisional,
        }
    }
}

fn ordered_queues(conf: &str) -> impl Iterator<Item = (&str, i32)> {
    conf.split(';').filter_map(|part| {
        let (broker, count) = part.split_once(':')?;
        Some((broker.trim(), count.trim().parse().ok()?))
    })
}

impl Shared {
    /// The route of a topic to send to: known, or asked for, or that of a topic which the first message will make.
    pub(crate) async fn publish_route(
        &self,
        topic: &str,
        new_queues: i32,
    ) -> Result<(Arc<TopicEntry>, Arc<TopicRoute>), ClientError> {
        let entry = self.routes.entry(topic);
        if let Some(route) = entry.route() {
            return Ok((entry, route));
        }
        self.refresh(topic, &entry, Some(new_queues)).await?;
        match entry.route() {
            Some(route) => Ok((entry, route)),
            None => Err(ClientError::TopicNotFound {
                topic: topic.to_owned(),
            }),
        }
    }

    /// Asks the name servers about a topic. With `new_queues`, a topic that does not exist gets the route of the default topic,
    /// with at most so many queues a broker.
    pub(crate) async fn refresh(
        &self,
        topic: &str,
        entry: &TopicEntry,
        new_queues: Option<i32>,
    ) -> Result<Refreshed, ClientError> {
        let answers = entry.answers.load(Ordering::Acquire);
        let _one_question = entry.asking.lock().await;
        if entry.answers.load(Ordering::Acquire) != answers && entry.route().is_some() {
            return Ok(Refreshed::Same);
        }
        let refreshed = match self.ask_route(topic).await? {
            Some(data) => self.routes.learn(topic, entry, &data, false),
            None => match new_queues {
                Some(limit) if entry.route().is_none() => {
                    self.adopt_default(topic, entry, limit).await?
                }
                _ => Refreshed::Missing,
            },
        };
        entry.answers.fetch_add(1, Ordering::Release);
        Ok(refreshed)
    }

    async fn adopt_default(
        &self,
        topic: &str,
        entry: &TopicEntry,
        limit: i32,
    ) -> Result<Refreshed, ClientError> {
        let Some(mut data) = self.ask_route(names::AUTO_CREATE_TOPIC).await? else {
            return Ok(Refreshed::Missing);
        };
        for queues in &mut data.queue_datas {
            let count = limit.min(queues.read_queue_nums);
            queues.read_queue_nums = count;
            queues.write_queue_nums = count;
        }
        Ok(self.routes.learn(topic, entry, &data, true))
    }

    /// One round over all topics; answers those whose route changed.
    pub(super) async fn refresh_all(&self) -> Vec<String> {
        let mut changed = Vec::new();
        for topic in self.routes.topics() {
            let entry = self.routes.entry(&topic);
            match self.refresh(&topic, &entry, None).await {
                Ok(Refreshed::Changed) => changed.push(topic),
                Ok(_) => {}
                Err(error) => {
                    warn_once!(self.is_news(Server::NameServers, &error), topic, %error, "route not refreshed");
                    // The others would fail the same way, each after its own timeout.
                    break;
                }
            }
        }
        changed
    }
}
