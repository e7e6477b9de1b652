//! What operators look at: ends of queues, progress of groups, connections (202, 203, 204, 208, 300, 328, 343).
use std::collections::BTreeSet;

use bindery_protocol::{
    bodies::{
        self, ClientConnection, ConsumeStats, ConsumerConnection, GroupList, MessageQueue,
        OffsetProgress, ProducerConnection, ProducerInfo, ProducerTable, QueueMap, TopicList,
        TopicOffset, TopicStatsTable,
    },
    frame::{Frame, Reply},
    headers::{
        ConsumeStatsHeader, ConsumerGroupHeader, GroupHeader, ProducerConnectionHeader, TopicHeader,
    },
    message::QueueOffset,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{
    client::{Member, Subscribed},
    refusal::Refusal,
    state::Core,
};

fn queue(core: &Core, topic: &str, queue_id: i32) -> MessageQueue {
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
    for queue_id in 0..topic.read_queue_nums.max(topic.write_queue_nums) {
        let max = core.store.max_offset(name, queue_id);
        let last = QueueOffset(max.0 - 1);
        let offset = TopicOffset {
            last_update_timestamp: core.store.store_time(name, queue_id, last).unwrap_or(0),
            max_offset: max.0,
            min_offset: core.store.min_offset(name, queue_id).0.max(0),
        };
        offset_table.insert(queue(core, name, queue_id), offset);
    }
    let topic_put_tps = core.stats.topic_put.per_second(name, core.now());
    Ok(Reply::ok().body(bodies::to_vec(&TopicStatsTable {
        offset_table,
        topic_put_tps,
    })?))
}

/// 208: how far a group has come, of one topic, of those listed, or of all it has offsets for.
pub(super) fn consumption(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ConsumeStatsHeader<'_> = frame.header()?;
    let group: &str = &header.consumer_group;
    let topics: BTreeSet<String> = match (header.topic.as_deref(), header.topic_list.as_deref()) {
        (Some(topic), _) if !topic.is_empty() => BTreeSet::from([topic.to_owned()]),
        (_, Some(list)) if !list.is_empty() => list.split(';').map(str::to_owned).collect(),
        _ => core.offsets.topics_of(group).into_iter().collect(),
    };
    let mut stats = ConsumeStats::default();
    for topic in topics {
        // An offset of a topic the group no longer subscribes to would show as a lag that never ends.
        if matches!(
            core.clients.subscription(group, &topic),
            Subscribed::NotToTopic
        ) {
            continue;
        }
        add_progress(core, group, &topic, &mut stats);
    }
    Ok(Reply::ok().body(bodies::to_vec(&stats)?))
}

fn add_progress(core: &Core, group: &str, topic: &str, stats: &mut ConsumeStats) {
    let Some(config) = core.topics.topic(topic) else {
        return;
    };
    for queue_id in 0..config.read_queue_nums {
        let consumer_offset = core
            .offsets
            .committed(group, topic, queue_id)
            .unwrap_or(0)
            .max(0);
        let pull_offset = core
            .offsets
            .last_pulled(group, topic, queue_id)
            .unwrap_or(0)
            .max(consumer_offset);
        let last = QueueOffset(consumer_offset - 1);
        let progress = OffsetProgress {
            broker_offset: core.store.max_offset(topic, queue_id).0.max(0),
            consumer_offset,
            last_timestamp: core.store.store_time(topic, queue_id, last).unwrap_or(0),
            pull_offset,
        };
        stats
            .offset_table
            .insert(queue(core, topic, queue_id), progress);
    }
    stats.consume_tps += core
        .stats
        .group_get
        .per_second(&format!("{topic}@{group}"), core.now());
}

fn connection_of(member: &Member) -> ClientConnection {
    ClientConnection {
        client_addr: member.connection.peer().to_string(),
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
        remote_ip: format!("/{}", member.connection.peer()),
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

/// 343: the topics a group has offsets for.
pub(super) fn topics_of_group(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: GroupHeader<'_> = frame.header()?;
    let list = TopicList {
        topic_list: core.offsets.topics_of(&header.group).into_iter().collect(),
        broker_addr: Some(core.address.to_string()),
    };
    Ok(Reply::ok().body(bodies::to_vec(&list)?))
}
