//! Administration of consumer groups: 200, 201, 207, 225, 352, 353.
use bindery_protocol::{
    bodies::{
        self, GroupConfigList, GroupForbidden, SubscriptionGroupConfig, SubscriptionGroupTable,
    },
    frame::{Frame, Reply},
    headers::{DeleteGroupHeader, GroupForbiddenHeader, GroupHeader},
    names,
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{limits, refusal::Refusal, state::Core};

/// 200: creates or changes a group.
pub(super) fn create(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let group: SubscriptionGroupConfig = bodies::from_slice(&frame.body)?;
    check(&group)?;
    core.groups.put(group)?;
    Ok(Reply::ok())
}

/// 225: creates or changes several groups; none of them when one can't be.
pub(super) fn create_all(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let list: GroupConfigList = bodies::from_slice(&frame.body)?;
    list.group_config_list.iter().try_for_each(check)?;
    for group in list.group_config_list {
        core.groups.put(group)?;
    }
    Ok(Reply::ok())
}

fn check(group: &SubscriptionGroupConfig) -> Result<(), Refusal> {
    limits::group(&group.group_name)?;
    limits::queues("retryQueueNums", group.retry_queue_nums, 0)
}

/// 207: deletes a group, with its offsets if asked to.
pub(super) fn delete(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: DeleteGroupHeader<'_> = frame.header()?;
    let name: &str = &header.group_name;
    core.groups.remove(name)?;
    core.locks.forget(name);
    if header.clean_offset {
        core.offsets.forget_group(name);
    }
    core.stats.forget_group(name);
    tracing::info!(group = name, "consumer group deleted");
    Ok(Reply::ok())
}

/// 353: whether a group may read a topic, after changing that if asked to.
pub(super) fn forbidden(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: GroupForbiddenHeader<'_> = frame.header()?;
    let (group, topic) = (&*header.group, &*header.topic);
    if let Some(readable) = header.readable {
        limits::group(group)?;
        names::check_topic(topic).map_err(Refusal::TopicName)?;
        core.groups.let_read(group, topic, readable)?;
        core.holds.disturb_topic(topic);
        tracing::info!(group, topic, readable, "reading permitted or forbidden");
    }
    Ok(Reply::ok().body(bodies::to_vec(&GroupForbidden {
        group: group.to_owned(),
        readable: core.groups.may_read(group, topic),
        topic: topic.to_owned(),
    })?))
}

/// 352: the configuration of a group.
pub(super) fn config(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: GroupHeader<'_> = frame.header()?;
    let name: &str = &header.group;
    let group = core.groups.required(name)?;
    Ok(Reply::ok().body(bodies::to_vec(&*group)?))
}

/// 201: the configuration of all groups.
pub(super) fn all(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let table = SubscriptionGroupTable {
        data_version: core.groups.table().version(),
        forbidden_table: core.groups.table().rest(Clone::clone),
        subscription_group_table: core
            .groups
            .table()
            .entries()
            .into_iter()
            .map(|group| {
                (
                    group.group_name.clone(),
                    SubscriptionGroupConfig::clone(&group),
                )
            })
            .collect(),
    };
    Ok(Reply::ok().body(bodies::to_vec(&table)?))
}
