//! The routes: which brokers live, and which topics they have. Memory only; nothing is shared between name servers.
//!
//! ```text
//! register (103) ─▶ clusters: cluster → names ─▶ brokers: name → {id → address} ─▶ topics: topic → name → queues
//!                └▶ live: (cluster, address) → last sign of life, data version, connection
//! unregister (104), lost connection, no sign of life ─▶ the same backwards
//! ```
//! Answers are derived in `lookup.rs`. Rules as in `RouteInfoManager` of Apache's 5.3.3 name server, but for what it
//! leaves behind: a refused registration changes nothing here, and mappings go with their broker.
use std::collections::{BTreeMap, BTreeSet, HashMap};

use bindery_protocol::{
    bodies::{
        BrokerData, DataVersion, PERM_READ, PERM_WRITE, QueueData, QueueMappingInfo, TopicConfig,
        TopicConfigTable,
    },
    headers::RegisterBrokerHeader,
};
use bindery_remoting::{Connection, ConnectionId};

use super::{lookup::EncodedRoute, refusal::Refusal};

/// How long a broker is believed to live after its last sign of life, unless it says otherwise: 120 s.
const DEFAULT_TIMEOUT_MILLIS: i64 = 120_000;
/// Id of the master of a broker name.
pub(super) const MASTER_ID: i64 = 0;

/// All tables of a name server.
#[derive(Debug, Default)]
pub(super) struct RouteTable {
    pub(super) topics: HashMap<String, BTreeMap<String, QueueData>>,
    pub(super) brokers: BTreeMap<String, BrokerData>,
    pub(super) clusters: BTreeMap<String, BTreeSet<String>>,
    pub(super) mappings: HashMap<String, BTreeMap<String, QueueMappingInfo>>,
    live: HashMap<Member, Live>,
    /// Answers to 105, kept until what they say changes.
    pub(super) encoded: HashMap<String, EncodedRoute>,
}

/// One broker process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) cluster: String,
    pub(super) addr: String,
}

/// What is known of a living broker.
#[derive(Debug)]
struct Live {
    broker_name: String,
    seen: i64,
    timeout: i64,
    version: DataVersion,
    ha_server_addr: String,
    connection: Connection,
}

/// One request 103.
#[derive(Debug)]
pub(super) struct Registration<'a> {
    pub(super) header: &'a RegisterBrokerHeader<'a>,
    pub(super) table: TopicConfigTable,
    pub(super) connection: &'a Connection,
    /// Whether topics that a full table no longer names lose their queues on this broker.
    pub(super) delete_missing: bool,
    pub(super) now: i64,
}

/// What a registration is answered with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Registered {
    /// For slaves: the master's address for replication and its address for clients.
    pub(super) master: Option<(String, String)>,
    /// When the broker is given up if it stays silent, ms since 1970.
    pub(super) expires: Option<i64>,
}

/// Which way 205 and 327 turn the write permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WritePermission {
    Wipe,
    Add,
}

impl Member {
    pub(super) fn new(cluster: &str, addr: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            addr: addr.to_owned(),
        }
    }
}

impl Live {
    /// The first millisecond at which it is given up.
    fn expires(&self) -> i64 {
        self.seen.saturating_add(self.timeout).saturating_add(1)
    }
}

impl RouteTable {
    /// Takes a broker's registration, whole or an increment of one.
    ///
    /// # Errors
    /// [`Refusal::IncrementFirst`] when a broker that is not known yet names a single topic: that is an increment, and
    /// the broker must not appear with a part of its topics. Nothing is changed then.
    pub(super) fn register(
        &mut self,
        registration: &Registration<'_>,
    ) -> Result<Registered, Refusal> {
        let header = registration.header;
        let member = Member::new(&header.cluster_name, &header.broker_addr);
        let version = registration.table.data_version;
        if self.rival_is_newer(header, version) {
            tracing::warn!(broker = %header.broker_name, addr = %header.broker_addr, id = header.broker_id,
                "registration ignored: another broker of that id has a newer state");
            self.live.remove(&member);
            return Ok(Registered::default());
        }
        let group = self.brokers.get(&*header.broker_name);
        let known = group.is_some_and(|group| group.broker_addrs.contains_key(&header.broker_id));
        if !known && registration.table.topic_config_table.len() == 1 {
            return Err(Refusal::IncrementFirst);
        }
        let news = !known
            || self
                .live
                .get(&member)
                .is_none_or(|live| live.version != version);
        self.place(header);
        if header.broker_id == MASTER_ID {
            self.take_topics(
                &header.broker_name,
                &registration.table,
                news,
                registration.delete_missing,
            );
        }
        let live = Live {
            broker_name: header.broker_name.clone().into_owned(),
            seen: registration.now,
            timeout: header
                .heartbeat_timeout_millis
                .unwrap_or(DEFAULT_TIMEOUT_MILLIS),
            version,
            ha_server_addr: header.ha_server_addr.clone().into_owned(),
            connection: registration.connection.clone(),
        };
        let expires = Some(live.expires());
        if self.live.insert(member, live).is_none() {
            tracing::info!(broker = %header.broker_name, addr = %header.broker_addr, id = header.broker_id,
                cluster = %header.cluster_name, "broker registered");
        }
        Ok(Registered {
            master: self.master_for(header),
            expires,
        })
    }

    /// Whether another address holds the id with a newer state: after a change of masters the old one may come late.
    fn rival_is_newer(&self, header: &RegisterBrokerHeader<'_>, version: DataVersion) -> bool {
        let holder = self
            .brokers
            .get(&*header.broker_name)
            .and_then(|group| group.broker_addrs.get(&header.broker_id));
        let Some(rival) = holder.filter(|addr| **addr != header.broker_addr) else {
            return false;
        };
        let rival = self.live.get(&Member::new(&header.cluster_name, rival));
        rival.is_some_and(|live| live.version.state_version > version.state_version)
    }

    /// Puts the broker into its cluster and under its name and id.
    fn place(&mut self, header: &RegisterBrokerHeader<'_>) {
        let name = header.broker_name.clone().into_owned();
        self.clusters
            .entry(header.cluster_name.clone().into_owned())
            .or_default()
            .insert(name.clone());
        let group = self.brokers.entry(name).or_insert_with(|| BrokerData {
            cluster: header.cluster_name.clone().into_owned(),
            broker_name: header.broker_name.clone().into_owned(),
            ..BrokerData::default()
        });
        let before = group.clone();
        group.enable_acting_master = header.enable_acting_master.unwrap_or(false);
        group.zone_name = header
            .zone_name
            .as_ref()
            .map(|zone| zone.clone().into_owned());
        // A slave that became the master leaves its old id.
        group
            .broker_addrs
            .retain(|id, addr| *id == header.broker_id || *addr != header.broker_addr);
        group
            .broker_addrs
            .insert(header.broker_id, header.broker_addr.clone().into_owned());
        if *group != before {
            self.encoded.clear();
        }
    }

    fn take_topics(
        &mut self,
        broker_name: &str,
        table: &TopicConfigTable,
        news: bool,
        delete_missing: bool,
    ) {
        let topics = &table.topic_config_table;
        // A table of one topic is an increment and says nothing of the others.
        if delete_missing && topics.len() != 1 && table.topic_queue_mapping_info_map.is_empty() {
            self.remove_queues(broker_name, |topic| !topics.contains_key(topic));
        }
        for (topic, config) in topics {
            let queues = self
                .topics
                .get(topic)
                .and_then(|by_broker| by_broker.get(broker_name));
            let wanted = queue_data(broker_name, config);
            if queues.is_none() || (news && queues != Some(&wanted)) {
                self.encoded.remove(topic);
                self.topics
                    .entry(topic.clone())
                    .or_default()
                    .insert(broker_name.to_owned(), wanted);
            }
        }
        if news {
            for (topic, mapping) in &table.topic_queue_mapping_info_map {
                self.encoded.remove(topic);
                let by_broker = self.mappings.entry(topic.clone()).or_default();
                by_broker.insert(mapping.bname.clone(), mapping.clone());
            }
        }
    }

    fn master_for(&self, header: &RegisterBrokerHeader<'_>) -> Option<(String, String)> {
        if header.broker_id == MASTER_ID {
            return None;
        }
        let addr = self
            .brokers
            .get(&*header.broker_name)?
            .broker_addrs
            .get(&MASTER_ID)?;
        let live = self.live.get(&Member::new(&header.cluster_name, addr))?;
        Some((live.ha_server_addr.clone(), addr.clone()))
    }

    /// Takes a broker's leave; the last address of a name takes the name's queues with it.
    pub(super) fn unregister(&mut self, member: &Member, broker_name: &str) {
        let known = self.live.remove(member).is_some();
        let Some(group) = self.brokers.get_mut(broker_name) else {
            return;
        };
        let before = group.broker_addrs.len();
        group.broker_addrs.retain(|_, addr| *addr != member.addr);
        if group.broker_addrs.len() != before {
            self.encoded.clear();
        }
        if group.broker_addrs.is_empty() {
            self.forget_name(broker_name);
        }
        if known {
            tracing::info!(broker = %broker_name, addr = %member.addr, "broker unregistered");
        }
    }

    fn forget_name(&mut self, broker_name: &str) {
        self.brokers.remove(broker_name);
        self.clusters.retain(|_, names| {
            names.remove(broker_name);
            !names.is_empty()
        });
        self.remove_queues(broker_name, |_| true);
        self.mappings.retain(|_, by_broker| {
            by_broker.remove(broker_name);
            !by_broker.is_empty()
        });
    }

    /// Takes the queues of one broker name from the topics that `chosen` says.
    fn remove_queues(&mut self, broker_name: &str, chosen: impl Fn(&str) -> bool) {
        let encoded = &mut self.encoded;
        self.topics.retain(|topic, by_broker| {
            if chosen(topic) && by_broker.remove(broker_name).is_some() {
                encoded.remove(topic);
            }
            !by_broker.is_empty()
        });
    }

    /// Unregisters the brokers that registered over a connection that ended.
    pub(super) fn connection_lost(&mut self, id: ConnectionId) {
        self.unregister_where(|live| live.connection.id() == id);
    }

    /// Unregisters the brokers that gave no sign of life in time; their connections, to be closed.
    pub(super) fn expire(&mut self, now: i64) -> Vec<Connection> {
        self.unregister_where(|live| live.expires() <= now)
    }

    fn unregister_where(&mut self, gone: impl Fn(&Live) -> bool) -> Vec<Connection> {
        let lost: Vec<_> = self
            .live
            .iter()
            .filter(|(_, live)| gone(live))
            .map(|(member, live)| {
                (
                    member.clone(),
                    live.broker_name.clone(),
                    live.connection.clone(),
                )
            })
            .collect();
        for (member, broker_name, _) in &lost {
            self.unregister(member, broker_name);
        }
        lost.into_iter()
            .map(|(_, _, connection)| connection)
            .collect()
    }

    /// When the next broker is given up if all stay silent, ms since 1970; nothing when none lives.
    pub(super) fn next_expiry(&self) -> Option<i64> {
        self.live.values().map(Live::expires).min()
    }

    /// A sign of life.
    pub(super) fn touch(&mut self, member: &Member, now: i64) {
        if let Some(live) = self.live.get_mut(member) {
            live.seen = now;
        }
    }

    /// The data version a broker registered with.
    pub(super) fn data_version(&self, member: &Member) -> Option<DataVersion> {
        self.live.get(member).map(|live| live.version)
    }

    /// Turns the write permission of all topics of a broker name; how many topics there are.
    pub(super) fn turn_write(&mut self, broker_name: &str, permission: WritePermission) -> usize {
        let mut count = 0;
        for (topic, by_broker) in &mut self.topics {
            if let Some(queues) = by_broker.get_mut(broker_name) {
                queues.perm = match permission {
                    WritePermission::Wipe => queues.perm & !PERM_WRITE,
                    WritePermission::Add => PERM_READ | PERM_WRITE,
                };
                self.encoded.remove(topic);
                count += 1;
            }
        }
        count
    }

    /// Takes a topic's route away, everywhere or on the brokers of one cluster.
    pub(super) fn delete_topic(&mut self, topic: &str, cluster: Option<&str>) {
        self.encoded.remove(topic);
        match cluster {
            None => {
                self.topics.remove(topic);
                self.mappings.remove(topic);
            }
            Some(cluster) => {
                let Some(names) = self.clusters.get(cluster) else {
                    return;
                };
                if let Some(by_broker) = self.topics.get_mut(topic) {
                    by_broker.retain(|name, _| !names.contains(name));
                    if by_broker.is_empty() {
                        self.topics.remove(topic);
                    }
                }
            }
        }
    }

    /// Gives a topic queues on brokers that are known; with one unknown among them, nothing is taken.
    pub(super) fn register_topic(&mut self, topic: &str, queues: Vec<QueueData>) {
        if queues.is_empty()
            || queues
                .iter()
                .any(|queues| !self.brokers.contains_key(&queues.broker_name))
        {
            tracing::warn!(
                topic,
                "topic not registered: it names no broker or an unknown one"
            );
            return;
        }
        self.encoded.remove(topic);
        let by_broker = self.topics.entry(topic.to_owned()).or_default();
        by_broker.extend(
            queues
                .into_iter()
                .map(|queues| (queues.broker_name.clone(), queues)),
        );
    }
}

fn queue_data(broker_name: &str, config: &TopicConfig) -> QueueData {
    QueueData {
        broker_name: broker_name.to_owned(),
        perm: config.perm,
        read_queue_nums: config.read_queue_nums,
        topic_sys_flag: config.topic_sys_flag,
        write_queue_nums: config.write_queue_nums,
    }
}
