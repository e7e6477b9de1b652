//! The verdict on a half message (37).
//!
//! ```text
//! EndTransactionHeader ─▶ half message at the physical offset ─▶ group, offsets verified ─▶ claimed
//!   ─▶ commit: deposit::append to the real topic ─▶ settle ─┐
//!   ─▶ roll back ───────────────────────────────────────────┴▶ Transactions::decided ─▶ answer
//! ```
use std::sync::Arc;

use bindery_protocol::{
    frame::{Frame, Reply},
    headers::{EndTransactionHeader, ResumeCheckHeader},
    message::{PhysicalOffset, QueueOffset, RecordView, SysFlag, Transaction, id},
    names,
};
use bindery_remoting::Connection;

use super::{
    Answer, Exchange, answer,
    deposit::{self, Draft, Wait},
    properties::Facts,
};
use crate::{
    config::BrokerRole,
    refusal::Refusal,
    state::Core,
    store::Appended,
    transaction::{self, Claim, HalfMessage},
};

/// A verdict that was carried out as far as memory goes.
enum Ended {
    /// Nothing is left to do.
    Done,
    /// The message is in the log; the transaction is decided once it is as durable as it has to be.
    Committed {
        appended: Appended,
        offset: i64,
        key: String,
    },
}

/// 323: checks a half message again that was given up; `msgId` is the one it has under `TRANS_CHECK_MAX_TIME_TOPIC`.
pub(super) fn check_again(core: &Core, _: &Connection, frame: &Frame) -> Answer {
    let header: ResumeCheckHeader<'_> = frame.header()?;
    let message_id = header.msg_id.as_deref().unwrap_or_default();
    let (_, offset) = id::parse_offset_msg_id(message_id)
        .ok()
        .ok_or_else(|| Refusal::BadText {
            what: "msgId",
            text: message_id.to_owned(),
        })?;
    transaction::resume(core, offset)?;
    Ok(Reply::ok())
}

/// Serves one.
pub(super) fn end(core: &Arc<Core>, exchange: Exchange) {
    let Exchange {
        frame, responder, ..
    } = exchange;
    let asked = frame.request_code();
    match carry_out(core, &frame) {
        // "Unknown" has no effect and, in Apache's broker, no answer either: the check will come.
        Ok(None) => drop(responder),
        Ok(Some(Ended::Done)) => answer(responder, asked, Ok(Reply::ok())),
        Ok(Some(Ended::Committed {
            appended,
            offset,
            key,
        })) => {
            let shared = core.clone();
            // A late flush is no failure: the message is in the log, and will be delivered.
            deposit::settle(core, &appended, Wait::ForDisk, move |_| {
                shared
                    .transactions
                    .decided(&shared, offset, &key, Transaction::Commit);
                responder.send(Reply::ok());
            });
        }
        Err(refusal) => {
            tracing::warn!(%refusal, "end of a transaction refused");
            answer(responder, asked, Err(refusal));
        }
    }
}

fn carry_out(core: &Core, frame: &Frame) -> Result<Option<Ended>, Refusal> {
    let header: EndTransactionHeader<'_> = frame.header()?;
    if core.config.broker_role == BrokerRole::Slave {
        return Err(Refusal::TransactionOnSlave);
    }
    let verdict = SysFlag(header.commit_or_rollback).transaction();
    if !matches!(verdict, Transaction::Commit | Transaction::Rollback) {
        return Ok(None);
    }
    let bytes = core
        .store
        .message_at(PhysicalOffset(header.commit_log_offset))
        .ok_or(Refusal::HalfMissing)?;
    let record = RecordView::parse(&bytes).or(Err(Refusal::HalfMissing))?;
    let half = verified(core, &header, record)?;
    let offset = match core
        .transactions
        .claim(header.tran_state_table_offset, half.key)
    {
        Claim::Yours(offset) => offset,
        Claim::Decided => return Ok(Some(Ended::Done)),
        Claim::Busy => return Err(Refusal::Overload),
        Claim::Gone => return Err(Refusal::HalfMissing),
    };
    if verdict == Transaction::Rollback {
        core.transactions.decided(core, offset, half.key, verdict);
        return Ok(Some(Ended::Done));
    }
    match commit(core, &half) {
        Ok(appended) => Ok(Some(Ended::Committed {
            appended,
            offset,
            key: half.key.to_owned(),
        })),
        Err(refusal) => {
            core.transactions.release(core, offset);
            Err(refusal)
        }
    }
}

/// The half message, if it is the one the producer means.
fn verified<'a>(
    core: &Core,
    header: &EndTransactionHeader<'_>,
    record: RecordView<'a>,
) -> Result<HalfMessage<'a>, Refusal> {
    if record.topic() != names::TRANS_HALF_TOPIC.as_bytes() {
        return Err(Refusal::HalfMissing);
    }
    let half = HalfMessage::of(record, &core.live()).ok_or(Refusal::HalfMissing)?;
    if !header.from_transaction_check && half.outlived_immunity(core.now()) {
        return Err(Refusal::TransactionTooLate {
            key: half.key.to_owned(),
        });
    }
    if half.group.is_empty() || half.group != header.producer_group {
        return Err(Refusal::TransactionGroup);
    }
    if record.queue_offset().0 != header.tran_state_table_offset {
        return Err(Refusal::TransactionTableOffset);
    }
    // Bytes of a message's body may look like a record: only the queue says where records begin. Under SYNC_FLUSH its
    // entry comes a moment after the answer that told the producer of its half message.
    let entry = core.store.entry(
        names::TRANS_HALF_TOPIC,
        record.queue_id(),
        QueueOffset(header.tran_state_table_offset),
    );
    let begins_there = match entry {
        Some(entry) => entry.physical.0 == header.commit_log_offset,
        None => core.transactions.holds(header.tran_state_table_offset),
    };
    if record.physical_offset().0 != header.commit_log_offset || !begins_there {
        return Err(Refusal::TransactionLogOffset);
    }
    Ok(half)
}

/// Stores the message where consumers find it, or in its delay level.
fn commit(core: &Core, half: &HalfMessage<'_>) -> Result<Appended, Refusal> {
    let record = &half.record;
    let draft = Draft {
        topic: half.topic,
        queue_id: half.queue_id,
        flag: record.flag(),
        sys_flag: record.sys_flag().with_transaction(Transaction::Commit),
        born_timestamp: record.born_timestamp(),
        born_host: record.born_host(),
        reconsume_times: record.reconsume_times(),
        prepared_transaction_offset: record.physical_offset().0,
        body: record.body(),
        properties: half.properties(),
        delay_level: half.delay_level,
        slot: deposit::slot(core, &Facts::of(half.properties()))?,
    };
    deposit::append(core, &draft, &[], &core.stamp)
}
