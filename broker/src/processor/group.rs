//! Administration of consumer groups: 200, 201, 207, 352.
use bindery_protocol::{
    bodies::{self, SubscriptionGroupConfig, SubscriptionGroupTable},
    frame::{Frame, Reply},
    headers::{DeleteGroupHeader, GroupHeader},
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{limits, state::Core};

/// 200: creates or changes a group.
pub(super) fn create(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let group: SubscriptionGroupConfig = bodies::from_slice(&frame.body)?;
    limits::group(&group.group_name)?;
    limits::queues("retryQueueNums", group.retry_queue_nums, 0)?;
    core.groups.put(group)?;
    Ok(Reply::ok())
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
    core.stats
        .group_get
        .forget(|key| key.split_once('@').is_some_and(|(_, group)| group == name));
    tracing::info!(group = name, "consumer group deleted");
    Ok(Reply::ok())
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
        ..SubscriptionGroupTable::default()
    };
    Ok(Reply::ok().body(bodies::to_vec(&table)?))
}
