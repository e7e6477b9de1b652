//! How far groups have come: 208, 303, 308, 317.
//!
//! ```text
//! committed offsets ─┐
//! ends of queues  ───┼─▶ by queue: end, committed, pulled, store times ─▶ lag of a group, of a broker
//! store times     ───┘
//! ```
//! All of them look at the queues that can be read or written: the last ones of a shrunk topic may still hold messages
//! that a group has to consume.
use std::collections::{BTreeMap, BTreeSet};

use bindery_protocol::{
    bodies::{
        self, ConsumeStats, ConsumeStatsList, ConsumeTimeSpanBody, CorrectionOffsets,
        OffsetProgress, QueueTimeSpan, TopicConfig,
    },
    frame::{Frame, Reply},
    headers::{
        BrokerConsumeStatsHeader, ConsumeStatsHeader, ConsumeTimeSpanHeader, CorrectionOffsetHeader,
    },
    message::QueueOffset,
};
use bindery_remoting::Connection;

use super::{Answer, stats::queue};
use crate::{client::Subscribed, state::Core};

/// All queues of a topic that are readable, writable, or were so before the topic was shrunk on one side.
pub(super) fn queues_of(topic: &TopicConfig) -> std::ops::Range<i32> {
    0..topic.read_queue_nums.max(topic.write_queue_nums)
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
        if let Some(config) = consumed(core, group, &topic) {
            add_progress(core, group, &config, &mut stats);
        }
    }
    Ok(Reply::ok().body(bodies::to_vec(&stats)?))
}

/// 317: how far all groups have come, each with all topics it has offsets for, or with the ordered ones among them.
pub(super) fn all_consumption(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: BrokerConsumeStatsHeader = frame.header()?;
    let mut list = ConsumeStatsList {
        broker_addr: core.address.to_string(),
        ..ConsumeStatsList::default()
    };
    for group in core.groups.table().entries() {
        let name = &group.group_name;
        let topics: BTreeSet<String> = core.offsets.topics_of(name).into_iter().collect();
        let mut of_group = Vec::new();
        for topic in topics {
            let Some(config) = consumed(core, name, &topic) else {
                continue;
            };
            if header.is_order && !config.order {
                continue;
            }
            let mut stats = ConsumeStats::default();
            add_progress(core, name, &config, &mut stats);
            for progress in stats.offset_table.values() {
                let ahead = |end: i64, from: i64| end.saturating_sub(from).max(0);
                list.total_diff = list
                    .total_diff
                    .saturating_add(ahead(progress.broker_offset, progress.consumer_offset));
                list.total_inflight_diff = list
                    .total_inflight_diff
                    .saturating_add(ahead(progress.pull_offset, progress.consumer_offset));
            }
            of_group.push(stats);
        }
        list.consume_stats_list
            .push(BTreeMap::from([(name.clone(), of_group)]));
    }
    Ok(Reply::ok().body(bodies::to_vec(&list)?))
}

/// The topic, unless it is gone, or the group is connected and no longer subscribes to it: its offset would show as a
/// lag that never ends.
fn consumed(core: &Core, group: &str, topic: &str) -> Option<std::sync::Arc<TopicConfig>> {
    match core.clients.subscription(group, topic) {
        Subscribed::NotToTopic => None,
        _ => core.topics.topic(topic),
    }
}

fn add_progress(core: &Core, group: &str, config: &TopicConfig, stats: &mut ConsumeStats) {
    let topic = &config.topic_name;
    for queue_id in queues_of(config) {
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
    stats.consume_tps += core.stats.get_rate(topic, group, core.now());
}

/// 303: between which store times a group works on each queue of a topic, and for how long its next message has waited.
pub(super) fn time_span(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ConsumeTimeSpanHeader<'_> = frame.header()?;
    let (group, topic) = (&*header.group, &*header.topic);
    let config = core.topics.known(topic)?;
    let spans = queues_of(&config).map(|queue_id| {
        let time = |offset: i64| {
            core.store
                .store_time(topic, queue_id, QueueOffset(offset))
                .unwrap_or(-1)
        };
        let end = core.store.max_offset(topic, queue_id).0;
        let committed = core.offsets.committed(group, topic, queue_id).unwrap_or(-1);
        let min_time_stamp = core.store.earliest_time(topic, queue_id);
        let next = time(committed.max(core.store.min_offset(topic, queue_id).0));
        QueueTimeSpan {
            consume_time_stamp: if committed > 0 {
                time(committed - 1)
            } else {
                min_time_stamp
            },
            delay_time: if committed < end && next >= 0 {
                (core.now() - next).max(0)
            } else {
                0
            },
            max_time_stamp: time(end - 1),
            message_queue: queue(core, topic, queue_id),
            min_time_stamp,
        }
    });
    let body = ConsumeTimeSpanBody {
        consume_time_span_set: spans.collect(),
    };
    Ok(Reply::ok().body(bodies::to_vec(&body)?))
}

/// 308: for each queue a group has an offset of, the least offset of all groups but those listed; `i64::MAX` where the
/// group itself is behind that.
///
/// Apache's broker forgets the committed offsets of the groups it is to leave out (`queryMinOffsetInAllGroup` takes them
/// out of the table itself); here they stay.
pub(super) fn correction(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: CorrectionOffsetHeader<'_> = frame.header()?;
    let topic: &str = &header.topic;
    let left_out: BTreeSet<&str> = header
        .filter_groups
        .as_deref()
        .unwrap_or_default()
        .split(',')
        .filter(|group| !group.is_empty())
        .collect();
    let mut least: BTreeMap<i32, i64> = BTreeMap::new();
    for group in core.offsets.groups_of(topic) {
        if left_out.contains(group.as_str()) {
            continue;
        }
        for (queue_id, offset) in core.offsets.of_topic(&group, topic) {
            // An offset of messages that are gone says nothing about where a group is.
            if offset >= core.store.min_offset(topic, queue_id).0 {
                let known = least.entry(queue_id).or_insert(offset);
                *known = (*known).min(offset);
            }
        }
    }
    let correction_offsets = core
        .offsets
        .of_topic(&header.compare_group, topic)
        .into_iter()
        .filter_map(|(queue_id, own)| {
            let least = *least.get(&queue_id)?;
            Some((queue_id, if least > own { i64::MAX } else { least }))
        })
        .collect();
    Ok(Reply::ok().body(bodies::to_vec(&CorrectionOffsets { correction_offsets })?))
}
