//! What operators look at: ends of queues, connections, subscriptions, counters (202, 203, 204, 300, 315, 328, 343, 345).
use std::collections::BTreeSet;

use bindery_protocol::{
    bodies::{
        self, ClientConnection, ConsumerConnection, GroupList, MessageQueue, ProducerConnection,
        ProducerInfo, ProducerTable, QueueMap, SubscriptionBody, TopicList, TopicOffset,
        TopicStatsTable,
    },
    frame::{Frame, Reply},
    headers::{
        BrokerStatsHeader, ConsumerGroupHeader, GroupHeader, ProducerConnectionHeader,
        SubscriptionHeader, TopicHeader,
    },
    message::QueueOffset,
};
use bindery_remoting::Connection;

use super::{Answer, progress::queues_of};
use crate::{
    client::{Member, Subscribed},
    refusal::Refusal,
    state::Core,
};

pub(super) fn queue(core: &Core, topic: &str, queue_id: i32) -> MessageQueue {
    MessageQueue {
        broker_name: core.config.broker_name.clone(),
        queue_id,
        topic: topic.to_owned(),
    }
}

/// 202: the ends of all queues of a topic, those no longer readable or writable too.
pub(super) fn topic(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: TopicHeader<'_> = frame.header()?;
    let name: &str = &header.topic;
    let topic = core.topics.known(name)?;
    let mut offset_table: QueueMap<TopicOffset> = QueueMap::default();
    for queue_id in queues_of(&topic) {
        let max = core.store.max_offset(name, queue_id);
        let last = QueueOffset(max.0 - 1);
        let offset = TopicOffset {
            last_update_timestamp: core.store.store_time(name, queue_id, last).unwrap_or(0),
            max_offset: max.0,
            min_offset: core.store.min_offset(name, queue_id).0.max(0),
        };
        offset_table.insert(queue(core, name, queue_id), offset);
    }
    let topic_put_tps = core.stats.put_rate(name, core.now());
    Ok(Reply::ok().body(bodies::to_vec(&TopicStatsTable {
        offset_table,
        topic_put_tps,
    })?))
}

fn connection_of(member: &Member) -> ClientConnection {
    ClientConnection {
        client_addr: member.connection.origin().to_string(),
        client_id: member.client_id.clone(),
        language: member.language,
        version: member.version,
    }
}

/// 203: the members of a consumer group and what they subscribe to.
pub(super) fn consumer_connections(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ConsumerGroupHeader<'_> = frame.header()?;
    let group: &str = &header.consumer_group;
    let body = core
        .clients
        .with_consumers(group, |found| ConsumerConnection {
            connection_set: found.members().map(connection_of).collect(),
            consume_from_where: found.consume_from_where,
            consume_type: found.consume_type,
            message_model: found.message_model,
            subscription_table: found.subscription_table(),
        })
        .ok_or_else(|| Refusal::ConsumerOffline {
            group: group.to_owned(),
        })?;
    Ok(Reply::ok().body(bodies::to_vec(&body)?))
}

/// 204: the members of a producer group.
pub(super) fn producer_connections(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ProducerConnectionHeader<'_> = frame.header()?;
    let group: &str = &header.producer_group;
    let members = core.clients.producers(group);
    if members.is_empty() {
        return Err(Refusal::ProducerOffline {
            group: group.to_owned(),
        });
    }
    let connection_set = members.iter().map(connection_of).collect();
    Ok(Reply::ok().body(bodies::to_vec(&ProducerConnection { connection_set })?))
}

/// 328: all producer groups and their members.
pub(super) fn all_producers(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let info = |member: Member| ProducerInfo {
        client_id: member.client_id,
        language: member.language,
        last_update_timestamp: member.last_seen,
        // Java prints an address with a slash where a host name could stand.
        remote_ip: format!("/{}", member.connection.origin()),
        version: member.version,
    };
    let groups = core.clients.all_producers().into_iter();
    let data = groups
        .map(|(group, members)| (group, members.into_iter().map(info).collect()))
        .collect();
    Ok(Reply::ok().body(bodies::to_vec(&ProducerTable { data })?))
}

/// 300: the groups that subscribe to a topic now or have offsets for it.
pub(super) fn groups_of_topic(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: TopicHeader<'_> = frame.header()?;
    let mut groups: BTreeSet<String> = core
        .clients
        .subscribers(&header.topic)
        .into_iter()
        .collect();
    groups.extend(core.offsets.groups_of(&header.topic));
    Ok(Reply::ok().body(bodies::to_vec(&GroupList { group_list: groups })?))
}

/// 345: what a connected group subscribes to of a topic.
pub(super) fn subscription(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: SubscriptionHeader<'_> = frame.header()?;
    let topic = header.topic.unwrap_or_default().into_owned();
    let subscription_data = match core.clients.subscription(&header.group, &topic) {
        Subscribed::To { subscription, .. } => Some(subscription.data.clone()),
        Subscribed::NotToTopic | Subscribed::GroupOffline => None,
    };
    Ok(Reply::ok().body(bodies::to_vec(&SubscriptionBody {
        group: header.group.into_owned(),
        subscription_data,
        topic,
    })?))
}

/// 315: one counter over the last minute, hour and day.
pub(super) fn figure(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: BrokerStatsHeader<'_> = frame.header()?;
    let (name, key) = (&*header.stats_name, &*header.stats_key);
    let figure = core
        .stats
        .figure(name, key, &core.config.broker_cluster_name, core.now())
        .ok_or_else(|| Refusal::NoFigure {
            name: name.to_owned(),
            key: key.to_owned(),
        })?;
    Ok(Reply::ok().body(bodies::to_vec(&figure)?))
}

/// 343: the topics a group has offsets for.
pub(super) fn topics_of_group(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: GroupHeader<'_> = frame.header()?;
    let list = TopicList {
        topic_list: core.offsets.topics_of(&header.group).into_iter().collect(),
        broker_addr: Some(core.address.to_string()),
    };
    Ok(Reply::ok().body(bodies::to_vec(&list)?))
}
