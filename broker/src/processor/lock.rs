//! Queue locks of orderly consumers: 41, 42.
use bindery_protocol::{
    bodies::{self, LockBatchBody, LockBatchReply},
    frame::{Frame, Reply},
};
use bindery_remoting::Connection;

use super::Answer;
use crate::state::Core;

/// 41: locks or renews; the answer lists what the client holds now of what it asked for.
pub(super) fn lock(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let body: LockBatchBody = bodies::from_slice(&frame.body)?;
    let granted = core.locks.lock(
        &body.consumer_group,
        &body.client_id,
        body.mq_set,
        core.now(),
    );
    Ok(Reply::ok().body(bodies::to_vec(&LockBatchReply {
        lock_ok_mq_set: granted,
    })?))
}

/// 42: releases.
pub(super) fn unlock(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let body: LockBatchBody = bodies::from_slice(&frame.body)?;
    core.locks
        .unlock(&body.consumer_group, &body.client_id, &body.mq_set);
    Ok(Reply::ok())
}
