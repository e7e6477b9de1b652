//! What masters, slaves and their operators ask about replication: 906, 907, 908, 1007. This broker is a master without
//! slaves.
use bindery_protocol::{
    bodies::{self, HaRuntimeInfo},
    frame::{Frame, Reply},
    headers::{MasterFlushOffsetHeader, ReplicationHeader},
};
use bindery_remoting::Connection;

use super::Answer;
use crate::{refusal::Refusal, state::Core};

/// 906: the addresses of the master, and how far its log is on disk.
pub(super) fn exchange(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let _: ReplicationHeader<'_> = frame.header()?;
    Ok(Reply::ok().with(&ReplicationHeader {
        master_ha_address: Some(core.ha_address.to_string().into()),
        master_flush_offset: Some(core.store.stats().flushed.0),
        master_address: Some(core.address.to_string().into()),
    }))
}

/// 907: the state of replication.
pub(super) fn status(core: &Core, _: &Connection, _: &Frame) -> Answer {
    let info = HaRuntimeInfo {
        master: true,
        master_commit_log_max_offset: core.store.stats().max_physical_offset.0,
        ..HaRuntimeInfo::default()
    };
    Ok(Reply::ok().body(bodies::to_vec(&info)?))
}

/// 908: a master knows its own log and keeps to that, as Apache's does.
pub(super) fn flush_offset(_: &Core, _: &Connection, frame: &Frame) -> Answer {
    let _: MasterFlushOffsetHeader = frame.header()?;
    Ok(Reply::ok())
}

/// 1007: epochs are kept under a controller only.
pub(super) fn epochs(_: &Core, _: &Connection, _: &Frame) -> Answer {
    Err(Refusal::NoController)
}
