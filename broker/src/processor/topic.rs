//! Administration of topics: 17, 18, 21, 215, 305, 351.
use std::collections::BTreeMap;

use bindery_protocol::{
    bodies::{self, TopicConfig, TopicConfigList, TopicConfigTable, TopicFilterType, TopicList},
    frame::{Frame, Reply},
    headers::{CreateTopicHeader, TopicHeader},
    names,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{limits, refusal::Refusal, state::Core};

/// Attributes this broker understands, with the values it can honour.
const ATTRIBUTES: [(&str, &[&str]); 4] = [
    (
        "message.type",
        &["UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION"],
    ),
    ("queue.type", &["SimpleCQ", "BatchCQ"]),
    ("cleanup.policy", &["DELETE"]),
    ("reserve.time", &[]),
];

/// All bits a topic's permission may have: 8 priority, 4 read, 2 write, 1 inherit.
const EVERY_PERM: i32 = 15;
/// Attributes that stay as the topic was made with.
const FIXED: [&str; 2] = ["queue.type", "cleanup.policy"];

/// 17: creates or changes a topic.
pub(super) fn create(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: CreateTopicHeader<'_> = frame.header()?;
    let filter =
        TopicFilterType::from_name(&header.topic_filter_type).ok_or_else(|| Refusal::BadText {
            what: "topicFilterType",
            text: header.topic_filter_type.clone().into_owned(),
        })?;
    let changes = header.attributes.as_deref().unwrap_or_default().split(',');
    let wanted = TopicConfig {
        attributes: BTreeMap::new(),
        order: header.order,
        perm: header.perm,
        read_queue_nums: header.read_queue_nums,
        topic_filter_type: filter,
        topic_name: header.topic.into_owned(),
        topic_sys_flag: header.topic_sys_flag.unwrap_or(0),
        write_queue_nums: header.write_queue_nums,
    };
    let topic = checked(core, wanted, changes)?;
    put(core, topic)?;
    Ok(Reply::ok())
}

/// 18: creates or changes several topics; none of them when one can't be.
pub(super) fn create_all(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let list: TopicConfigList = bodies::from_slice(&frame.body)?;
    let mut topics = Vec::with_capacity(list.topic_config_list.len());
    for mut wanted in list.topic_config_list {
        let changes: Vec<String> = std::mem::take(&mut wanted.attributes)
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        topics.push(checked(core, wanted, changes.iter().map(String::as_str))?);
    }
    for topic in topics {
        put(core, topic)?;
    }
    Ok(Reply::ok())
}

/// The topic as it will be, if it may be.
fn checked<'a>(
    core: &Core,
    mut wanted: TopicConfig,
    changes: impl Iterator<Item = &'a str>,
) -> Result<TopicConfig, Refusal> {
    let name = &wanted.topic_name;
    names::check_topic(name).map_err(Refusal::TopicName)?;
    if core.topics.is_system(name) {
        return Err(Refusal::SystemTopic {
            topic: name.to_owned(),
        });
    }
    limits::queues("readQueueNums", wanted.read_queue_nums, 1)?;
    limits::queues("writeQueueNums", wanted.write_queue_nums, 1)?;
    if !(0..=EVERY_PERM).contains(&wanted.perm) {
        return Err(Refusal::BadText {
            what: "perm",
            text: wanted.perm.to_string(),
        });
    }
    let known = core.topics.topic(name);
    wanted.attributes = known
        .as_ref()
        .map(|topic| topic.attributes.clone())
        .unwrap_or_default();
    for change in changes.filter(|change| !change.is_empty()) {
        change_attribute(&mut wanted.attributes, change, known.is_some())?;
    }
    Ok(wanted)
}

fn put(core: &Core, topic: TopicConfig) -> Result<(), Refusal> {
    let name = topic.topic_name.clone();
    core.topics.put(topic)?;
    // Queues that can no longer be read are waited for in vain.
    core.holds.disturb_topic(&name);
    crate::pop::disturb_topic(core, &name);
    Ok(())
}

/// Applies `+key=value` or `-key`.
fn change_attribute(
    attributes: &mut BTreeMap<String, String>,
    change: &str,
    existing: bool,
) -> Result<(), Refusal> {
    let bad = || Refusal::BadText {
        what: "attribute",
        text: change.to_owned(),
    };
    let (key, value) = match change.split_at_checked(1) {
        Some(("+", rest)) => rest
            .split_once('=')
            .map(|(key, value)| (key, Some(value)))
            .ok_or_else(bad)?,
        Some(("-", rest)) => (rest.split_once('=').map_or(rest, |(key, _)| key), None),
        _ => return Err(bad()),
    };
    let (_, values) = ATTRIBUTES
        .iter()
        .find(|(known, _)| *known == key)
        .ok_or_else(bad)?;
    if existing && FIXED.contains(&key) {
        return Err(Refusal::FixedAttribute {
            key: key.to_owned(),
        });
    }
    let Some(value) = value else {
        if !existing {
            return Err(bad());
        }
        attributes.remove(key);
        return Ok(());
    };
    let fits = if values.is_empty() {
        value.parse::<i64>().is_ok()
    } else {
        values.contains(&value)
    };
    if !fits {
        return Err(bad());
    }
    attributes.insert(key.to_owned(), value.to_owned());
    Ok(())
}

/// 215: deletes a topic with its queues and the offsets of its groups.
pub(super) fn delete(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: TopicHeader<'_> = frame.header()?;
    let name: &str = &header.topic;
    names::check_topic(name).map_err(Refusal::TopicName)?;
    if core.topics.is_system(name) {
        return Err(Refusal::SystemTopic {
            topic: name.to_owned(),
        });
    }
    for retry in crate::pop::retry_topics_of(core, name) {
        forget(core, &retry)?;
    }
    forget(core, name)?;
    tracing::info!(topic = name, "topic deleted");
    Ok(Reply::ok())
}

/// Removes a topic and everything that is kept for it.
fn forget(core: &Core, name: &str) -> Result<(), Refusal> {
    // First noted, so that a crash anywhere here can't leave the messages to a topic of that name made later.
    core.store.bury_topic(name)?;
    core.topics.remove(name)?;
    // A send that makes the topic anew meanwhile keeps its queues.
    if let Some(deleted) = core
        .topics
        .while_absent(name, || core.store.delete_topic(name))
    {
        deleted?;
    }
    core.offsets.forget_topic(name);
    core.groups.forget_topic(name)?;
    core.holds.disturb_topic(name);
    core.stats.forget_topic(name);
    core.pop.queues.forget(|topic, _| topic == name);
    crate::pop::disturb_topic(core, name);
    Ok(())
}

/// 351: the configuration of a topic.
pub(super) fn config(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: TopicHeader<'_> = frame.header()?;
    let topic = core.topics.known(&header.topic)?;
    Ok(Reply::ok().body(bodies::to_vec(&*topic)?))
}

/// 21: the configuration of all topics.
pub(super) fn all(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let table = TopicConfigTable {
        data_version: core.topics.table().version(),
        mapping_data_version: Some(bodies::DataVersion::default()),
        topic_config_table: core
            .topics
            .table()
            .entries()
            .into_iter()
            .map(|topic| (topic.topic_name.clone(), TopicConfig::clone(&topic)))
            .collect(),
        ..TopicConfigTable::default()
    };
    Ok(Reply::ok().body(bodies::to_vec(&table)?))
}

/// 305: the topics that belong to the broker.
pub(super) fn system(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let list = TopicList {
        topic_list: core.topics.system_topics().into_iter().collect(),
        ..TopicList::default()
    };
    Ok(Reply::ok().body(bodies::to_vec(&list)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_set_and_removed_and_unknown_ones_refused() {
        let mut attributes = BTreeMap::new();
        assert!(change_attribute(&mut attributes, "+message.type=FIFO", false).is_ok());
        assert_eq!(
            attributes.get("message.type").map(String::as_str),
            Some("FIFO")
        );
        assert!(change_attribute(&mut attributes, "-message.type", true).is_ok());
        assert!(attributes.is_empty());
        for bad in [
            "+no.such=x",
            "+message.type=ODD",
            "message.type=FIFO",
            "+message.type",
            "+queue.type=OddCQ",
            "+queue.type=BatchCQ",
            "é",
        ] {
            assert!(
                change_attribute(&mut attributes, bad, true).is_err(),
                "{bad}"
            );
        }
    }
}
