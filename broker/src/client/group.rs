//! One consumer group: its members and what they subscribe to.
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bindery_protocol::bodies::{
    ConsumeFromWhere, ConsumeType, ConsumerData, MessageModel, SubscriptionData,
};
use bindery_remoting::ConnectionId;

use super::{Member, Subscription, SubscriptionTable};

/// A consumer group that has members.
#[derive(Debug)]
pub(crate) struct ConsumerGroup {
    members: HashMap<ConnectionId, Member>,
    subscriptions: HashMap<String, Arc<Subscription>>,
    /// Of the last heartbeat that carried one.
    pub(super) fingerprint: Option<i32>,
    /// How its members consume.
    pub(crate) consume_type: ConsumeType,
    /// How messages are shared among its members.
    pub(crate) message_model: MessageModel,
    /// Where it begins.
    pub(crate) consume_from_where: ConsumeFromWhere,
}

impl ConsumerGroup {
    /// An empty group as one member describes it.
    pub(super) fn new(data: &ConsumerData) -> Self {
        Self {
            members: HashMap::new(),
            subscriptions: HashMap::new(),
            fingerprint: None,
            consume_type: data.consume_type,
            message_model: data.message_model,
            consume_from_where: data.consume_from_where,
        }
    }

    /// Adds or renews a member; whether it is new.
    pub(super) fn join(&mut self, data: &ConsumerData, member: Member) -> bool {
        self.consume_type = data.consume_type;
        self.message_model = data.message_model;
        self.consume_from_where = data.consume_from_where;
        self.members
            .insert(member.connection.id(), member)
            .is_none()
    }

    /// Takes newer subscriptions over and drops those of topics no longer named; whether the set of topics changed.
    pub(super) fn subscribe(&mut self, announced: &[SubscriptionData]) -> bool {
        let mut changed = false;
        for data in announced {
            match self.subscriptions.get(&data.topic) {
                Some(known) if known.data.sub_version >= data.sub_version => continue,
                Some(_) => {}
                None => changed = true,
            }
            let subscription = Arc::new(Subscription::announced(data.clone()));
            self.subscriptions.insert(data.topic.clone(), subscription);
        }
        let topics: HashSet<&str> = announced.iter().map(|data| data.topic.as_str()).collect();
        let before = self.subscriptions.len();
        self.subscriptions
            .retain(|topic, _| topics.contains(topic.as_str()));
        changed || self.subscriptions.len() != before
    }

    /// Takes a member out; whether it was one.
    pub(super) fn leave(&mut self, id: ConnectionId) -> bool {
        self.members.remove(&id).is_some()
    }

    /// Whether it has no members.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Its members, in no order.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// The member of that client id.
    pub(crate) fn member(&self, client_id: &str) -> Option<&Member> {
        self.members().find(|member| member.client_id == client_id)
    }

    /// What it wants of a topic.
    pub(crate) fn subscription(&self, topic: &str) -> Option<Arc<Subscription>> {
        self.subscriptions.get(topic).cloned()
    }

    /// All subscriptions as announced.
    pub(crate) fn subscription_table(&self) -> SubscriptionTable {
        self.subscriptions
            .iter()
            .map(|(topic, subscription)| (topic.clone(), subscription.data.clone()))
            .collect()
    }
}
