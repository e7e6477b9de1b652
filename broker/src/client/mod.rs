//! Who is connected: producer and consumer groups and their members, one per connection.
//!
//! ```text
//! heartbeat (34) ─▶ Clients::heartbeat ─┬─▶ members, subscriptions
//! 35, closed connection, 120 s silence ─┴─▶ changed groups ─▶ NOTIFY_CONSUMER_IDS_CHANGED (40) to every member
//! pull ─▶ Clients::subscription ─▶ filter of (group, topic)
//! ```
mod addresses;
mod group;
mod subscription;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bindery_protocol::{
    bodies::{ConsumerData, MessageModel, SubscriptionData},
    codes::RequestCode,
    frame::{Language, Request},
    headers::ConsumerGroupHeader,
};
use bindery_remoting::{Connection, ConnectionId};
use tokio::sync::Notify;

use self::addresses::Addresses;
pub(crate) use self::{
    group::ConsumerGroup,
    subscription::{Filter, Subscription, is_tag},
};

/// One client of a group.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// The connection it is reached on.
    pub(crate) connection: Connection,
    /// As the client names itself.
    pub(crate) client_id: String,
    /// What it is written in.
    pub(crate) language: Language,
    /// Its version ordinal.
    pub(crate) version: i32,
    /// Its last heartbeat, in milliseconds.
    pub(crate) last_seen: i64,
}

/// All connected clients.
#[derive(Default)]
pub(crate) struct Clients {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    consumers: HashMap<String, ConsumerGroup>,
    producers: HashMap<String, HashMap<ConnectionId, Member>>,
    /// The groups of each connection, so that its end costs no walk over all groups.
    joined: HashMap<ConnectionId, Joined>,
    /// Where clients that produce are reached by name.
    addresses: Addresses,
}

#[derive(Default)]
struct Joined {
    consumers: HashSet<String>,
    producers: HashSet<String>,
}

impl Clients {
    /// Takes in one producer group of a heartbeat.
    pub(crate) fn produce(&self, group: &str, member: Member) {
        let mut state = self.state();
        let id = member.connection.id();
        state
            .joined
            .entry(id)
            .or_default()
            .producers
            .insert(group.to_owned());
        state.addresses.add(&member.client_id, &member.connection);
        state
            .producers
            .entry(group.to_owned())
            .or_default()
            .insert(id, member);
        drop(state);
        self.arrived.notify_one();
    }

    /// Takes in one consumer group of a heartbeat; whether its members or its subscriptions changed.
    pub(crate) fn consume(
        &self,
        data: &ConsumerData,
        member: Member,
        without_subscriptions: bool,
    ) -> bool {
        let mut state = self.state();
        let id = member.connection.id();
        state
            .joined
            .entry(id)
            .or_default()
            .consumers
            .insert(data.group_name.clone());
        let group = state
            .consumers
            .entry(data.group_name.clone())
            .or_insert_with(|| ConsumerGroup::new(data));
        let joined = group.join(data, member);
        let resubscribed = !without_subscriptions && group.subscribe(&data.subscription_data_set);
        drop(state);
        self.arrived.notify_one();
        joined || resubscribed
    }

    /// Keeps the fingerprint of a group's subscriptions (heartbeats of the second kind); the one kept before.
    pub(crate) fn fingerprint(&self, group: &str, fingerprint: i32) -> Option<i32> {
        self.state()
            .consumers
            .get_mut(group)
            .and_then(|found| found.fingerprint.replace(fingerprint))
    }

    /// Takes one connection out of a consumer group; whether it was in.
    pub(crate) fn leave_consumers(&self, group: &str, id: ConnectionId) -> bool {
        let mut state = self.state();
        if let Some(joined) = state.joined.get_mut(&id) {
            joined.consumers.remove(group);
        }
        state.leave(group, id)
    }

    /// Takes one connection out of a producer group.
    pub(crate) fn leave_producers(&self, group: &str, id: ConnectionId) {
        let mut state = self.state();
        if let Some(joined) = state.joined.get_mut(&id) {
            joined.producers.remove(group);
            if joined.producers.is_empty() {
                state.addresses.remove(id);
            }
        }
        state.leave_producers(group, id);
    }

    /// Takes a connection that ended out of all its groups; the consumer groups that changed.
    pub(crate) fn disconnected(&self, id: ConnectionId) -> Vec<String> {
        let mut state = self.state();
        let Some(joined) = state.joined.remove(&id) else {
            return Vec::new();
        };
        state.addresses.remove(id);
        for group in &joined.producers {
            state.leave_producers(group, id);
        }
        joined
            .consumers
            .into_iter()
            .filter(|group| state.leave(group, id))
            .collect()
    }

    /// Connections whose last heartbeat is older than `expiry` milliseconds.
    pub(crate) fn silent(&self, expiry: i64, now: i64) -> Vec<Connection> {
        let state = self.state();
        let consumers = state.consumers.values().flat_map(ConsumerGroup::members);
        let producers = state.producers.values().flat_map(HashMap::values);
        let mut silent = BTreeMap::new();
        for member in consumers
            .chain(producers)
            .filter(|member| now - member.last_seen > expiry)
        {
            silent.insert(member.connection.id(), member.connection.clone());
        }
        silent.into_values().collect()
    }

    /// Whether nobody is connected.
    pub(crate) fn is_empty(&self) -> bool {
        self.state().joined.is_empty()
    }

    /// Waits until somebody sent a heartbeat. Cancel safe.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Tells every member of a consumer group that it changed.
    pub(crate) fn notify(&self, group: &str) {
        let members = self
            .state()
            .consumers
            .get(group)
            .filter(|found| found.message_model == MessageModel::Clustering)
            .map(|found| found.members().cloned().collect::<Vec<_>>());
        for member in members.unwrap_or_default() {
            let header = ConsumerGroupHeader {
                consumer_group: group.into(),
            };
            let request = Request::new(RequestCode::NOTIFY_CONSUMER_IDS_CHANGED).with(&header);
            if let Err(error) = member.connection.oneway(request) {
                tracing::debug!(group, client = member.client_id, %error, "member not told of the change");
            }
        }
    }

    /// Runs `read` on a consumer group that has members.
    pub(crate) fn with_consumers<R>(
        &self,
        group: &str,
        read: impl FnOnce(&ConsumerGroup) -> R,
    ) -> Option<R> {
        self.state().consumers.get(group).map(read)
    }

    /// What a connected group subscribes to of a topic.
    pub(crate) fn subscription(&self, group: &str, topic: &str) -> Subscribed {
        match self.state().consumers.get(group) {
            None => Subscribed::GroupOffline,
            Some(found) => match found.subscription(topic) {
                None => Subscribed::NotToTopic,
                Some(subscription) => Subscribed::To {
                    subscription,
                    model: found.message_model,
                },
            },
        }
    }

    /// The groups with members that subscribe to a topic.
    pub(crate) fn subscribers(&self, topic: &str) -> Vec<String> {
        let state = self.state();
        state
            .consumers
            .iter()
            .filter(|(_, group)| group.subscription(topic).is_some())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The members of a producer group.
    pub(crate) fn producers(&self, group: &str) -> Vec<Member> {
        self.state()
            .producers
            .get(group)
            .map(|members| members.values().cloned().collect())
            .unwrap_or_default()
    }

    /// A connection on which the producers of a client are reached.
    pub(crate) fn producing(&self, client_id: &str) -> Option<Connection> {
        self.state().addresses.find(client_id).cloned()
    }

    /// All producer groups and their members.
    pub(crate) fn all_producers(&self) -> BTreeMap<String, Vec<Member>> {
        let state = self.state();
        state
            .producers
            .iter()
            .map(|(group, members)| (group.clone(), members.values().cloned().collect()))
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn leave(&mut self, group: &str, id: ConnectionId) -> bool {
        let Some(found) = self.consumers.get_mut(group) else {
            return false;
        };
        let left = found.leave(id);
        if found.is_empty() {
            self.consumers.remove(group);
        }
        left
    }

    fn leave_producers(&mut self, group: &str, id: ConnectionId) {
        if let Some(members) = self.producers.get_mut(group) {
            members.remove(&id);
            if members.is_empty() {
                self.producers.remove(group);
            }
        }
    }
}

/// What a group has to say about a topic.
pub(crate) enum Subscribed {
    /// Nobody of the group is connected.
    GroupOffline,
    /// The group is connected and does not subscribe to the topic.
    NotToTopic,
    /// This.
    To {
        /// The subscription.
        subscription: Arc<Subscription>,
        /// Clustering or broadcasting.
        model: MessageModel,
    },
}

/// The subscription data of a topic as sent in a heartbeat, by topic.
pub(crate) type SubscriptionTable = BTreeMap<String, SubscriptionData>;
