//! Writing into the revive topic: what was handed out, and what of it is done. Both travel as timer messages, so that they are
//! read when the messages would become visible again.
//!
//! ```text
//! Checkpoint ─▶ due 1 s before its messages ─┐
//! Ack ────────▶ due with its messages ───────┴─▶ timer ─▶ rmq_sys_REVIVE_LOG_<cluster>, revive queue of the hand-out
//! ```
use bindery_protocol::{
    message::{SysFlag, property},
    pop::{ACK_TAG, Ack, BATCH_ACK_TAG, CHECKPOINT_TAG, Checkpoint},
};

use crate::{
    processor::deposit::{self, Draft},
    refusal::Refusal,
    state::Core,
    store::Appended,
};

/// Milliseconds by which a checkpoint is read before the acks that belong to it.
const LEAD: i64 = 1000;

/// How a list of acks is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// As a request brought it.
    Request,
    /// Gathered in memory.
    Memory,
}

/// Notes a hand-out.
pub(crate) fn checkpoint(
    core: &Core,
    revive_queue: i32,
    checkpoint: &Checkpoint,
) -> Result<Appended, Refusal> {
    let due = checkpoint.revive_time().saturating_sub(LEAD);
    let key = checkpoint.unique_key();
    put(core, revive_queue, CHECKPOINT_TAG, &key, checkpoint, due)
}

/// Notes that messages of a hand-out are done; they would have become visible at `due`.
pub(crate) fn ack(
    core: &Core,
    revive_queue: i32,
    ack: &Ack,
    due: i64,
    origin: Origin,
) -> Result<Appended, Refusal> {
    let tag = if ack.offsets.is_some() {
        BATCH_ACK_TAG
    } else {
        ACK_TAG
    };
    let key = match origin {
        Origin::Memory if ack.offsets.is_some() => ack.gathered_key(),
        _ => ack.unique_key(),
    };
    put(core, revive_queue, tag, &key, ack, due)
}

fn put(
    core: &Core,
    revive_queue: i32,
    tag: &str,
    key: &str,
    body: &impl serde::Serialize,
    due: i64,
) -> Result<Appended, Refusal> {
    // Receipts come from clients: a queue that nobody reads would keep the message for ever.
    if !(0..core.config.revive_queue_num).contains(&revive_queue) {
        return Err(Refusal::ReviveQueue {
            revive_queue,
            queues: core.config.revive_queue_num,
        });
    }
    let body = serde_json::to_vec(body).map_err(bindery_protocol::bodies::BodyError::from)?;
    let draft = Draft {
        topic: &core.pop.revive_topic,
        queue_id: revive_queue,
        flag: 0,
        sys_flag: SysFlag(0),
        born_timestamp: core.now(),
        born_host: core.address,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: &body,
        properties: "",
        delay_level: 0,
        slot: None,
    };
    let added = [(property::UNIQ_KEY, key), (property::TAGS, tag)];
    deposit::append_at(core, &draft, due, &added, b"")
        .inspect_err(|refusal| tracing::warn!(key, %refusal, "hand-out or ack not written"))
}
