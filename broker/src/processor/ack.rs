//! What becomes of popped messages: done (200051, 200151), or to come again at another time (200053).
//!
//! ```text
//! receipt ─▶ in order? ─┬─ yes: order ─▶ committed offset ─▶ those that wait
//!                       └─ no:  ack ─▶ its hand-out in memory, or the log ─▶ as durable as it has to be ─▶ answer
//! ```
use std::sync::Arc;

use bindery_protocol::{
    bodies::{self, BatchAck, BatchAckBody},
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply},
    headers::{AckHeader, ChangeInvisibleTimeHeader, ChangeInvisibleTimeReply},
    pop::{Ack, Checkpoint, ORDER_REVIVE_QUEUE, Receipt, RetryMark},
};
use bindery_remoting::{Connection, Responder};

use super::{
    Exchange, NO_REMARK, answer,
    deposit::{self, Wait},
};
use crate::{
    pop::{
        self, buffer,
        hold::ANY_QUEUE,
        log::{self, Origin},
        order::Done,
    },
    refusal::Refusal,
    state::Core,
    store::Appended,
};

/// An answer, and what has to be safe before it may be sent.
type Settled = Result<(Reply, Option<Appended>), Refusal>;

/// 200051: one message is done.
pub(super) fn ack(core: &Arc<Core>, exchange: Exchange) {
    let done = done(core, &exchange.connection, &exchange.frame);
    settle(core, exchange.responder, RequestCode::ACK_MESSAGE, done);
}

/// 200151: messages are done.
pub(super) fn batch_ack(core: &Arc<Core>, exchange: Exchange) {
    let done = all_done(core, &exchange.connection, &exchange.frame);
    settle(
        core,
        exchange.responder,
        RequestCode::BATCH_ACK_MESSAGE,
        done,
    );
}

/// 200053: a message is to come again at another time.
pub(super) fn change(core: &Arc<Core>, exchange: Exchange) {
    let changed = changed(core, &exchange.connection, &exchange.frame);
    let asked = RequestCode::CHANGE_MESSAGE_INVISIBLETIME;
    settle(core, exchange.responder, asked, changed);
}

fn settle(core: &Core, responder: Responder, asked: RequestCode, settled: Settled) {
    match settled {
        Err(refusal) => answer(responder, asked, Err(refusal)),
        Ok((reply, None)) => responder.send(reply),
        // A flush that takes too long is no failure: the message may come again, as after any lost answer.
        Ok((reply, Some(appended))) => {
            deposit::settle(core, &appended, Wait::ForDisk, move |_| {
                responder.send(reply);
            });
        }
    }
}

/// Whether the queue exists; popped messages may be asked about however the topic's permissions are now.
fn check_queue(
    core: &Core,
    connection: &Connection,
    topic: &str,
    queue_id: i32,
) -> Result<(), Refusal> {
    let config = core.topics.known(topic)?;
    if (0..config.read_queue_nums).contains(&queue_id) {
        return Ok(());
    }
    Err(Refusal::AckQueue {
        queue_id,
        topic: topic.to_owned(),
        queues: config.read_queue_nums,
        consumer: connection.peer(),
    })
}

fn done(core: &Core, connection: &Connection, frame: &Frame) -> Settled {
    let header: AckHeader<'_> = frame.header()?;
    let (topic, queue_id, offset) = (&*header.topic, header.queue_id, header.offset);
    check_queue(core, connection, topic, queue_id)?;
    let min = core.store.min_offset(topic, queue_id).0;
    let max = core.store.max_offset(topic, queue_id).0;
    if !(min..=max).contains(&offset) {
        return Err(Refusal::AckOutside {
            topic: topic.to_owned(),
            queue_id,
            offset,
            min,
            max,
        });
    }
    let receipt = Receipt::parse(&header.extra_info)?;
    let place = (topic, &*header.consumer_group, queue_id);
    if receipt.revive_queue == ORDER_REVIVE_QUEUE {
        in_order(core, connection, place, offset, receipt.pop_time)?;
        return Ok((Reply::ok(), None));
    }
    let ack = Ack {
        offset,
        ..ack_of(
            place,
            receipt.start_offset,
            receipt.pop_time,
            &receipt.broker_name,
        )
    };
    let due = receipt.pop_time.saturating_add(receipt.invisible_time);
    let appended = note(core, receipt.revive_queue, &ack, due)?;
    Ok((Reply::ok(), appended))
}

fn ack_of(
    (topic, group, queue_id): (&str, &str, i32),
    start_offset: i64,
    pop_time: i64,
    broker_name: &str,
) -> Ack {
    Ack {
        offset: -1,
        offsets: None,
        broker_name: Some(broker_name.to_owned()),
        group: group.to_owned(),
        pop_time,
        queue_id,
        start_offset,
        topic: topic.to_owned(),
    }
}

/// Notes an ack, in memory or in the log.
fn note(core: &Core, revive_queue: i32, ack: &Ack, due: i64) -> Result<Option<Appended>, Refusal> {
    let appended = if buffer::meet(core, ack) {
        None
    } else {
        Some(log::ack(core, revive_queue, ack, due, Origin::Request)?)
    };
    for _ in ack.done() {
        pop::back(core, &ack.topic, &ack.group, ack.queue_id);
    }
    Ok(appended)
}

fn all_done(core: &Core, connection: &Connection, frame: &Frame) -> Settled {
    let body: BatchAckBody = if frame.body.is_empty() {
        BatchAckBody::default()
    } else {
        bodies::from_slice(&frame.body)?
    };
    if body.acks.is_empty() {
        return Ok((Reply::code(ResponseCode::NO_MESSAGE), None));
    }
    let mut last: Option<Appended> = None;
    for batch in &body.acks {
        if let Some(appended) = batch_done(core, connection, batch, &body.broker_name)? {
            last = Some(appended);
        }
    }
    Ok((Reply::ok(), last))
}

fn batch_done(
    core: &Core,
    connection: &Connection,
    batch: &BatchAck,
    broker_name: &str,
) -> Result<Option<Appended>, Refusal> {
    let retry = RetryMark::parse(&batch.retry).ok_or_else(|| Refusal::BadText {
        what: "retry mark",
        text: batch.retry.clone(),
    })?;
    let topic = retry.topic(&batch.consumer_group, &batch.topic);
    let place = (
        topic.as_str(),
        batch.consumer_group.as_str(),
        batch.queue_id,
    );
    let range = core.store.min_offset(&topic, batch.queue_id).0
        ..=core.store.max_offset(&topic, batch.queue_id).0;
    let offsets = batch
        .offsets
        .iter()
        .filter_map(|place| batch.start_offset.checked_add(place))
        .filter(|offset| range.contains(offset));
    if batch.revive_queue_id == ORDER_REVIVE_QUEUE {
        for offset in offsets {
            in_order(core, connection, place, offset, batch.pop_time)?;
        }
        return Ok(None);
    }
    let offsets: Vec<i64> = offsets.collect();
    if offsets.is_empty() {
        return Ok(None);
    }
    let ack = Ack {
        offsets: Some(offsets),
        ..ack_of(place, batch.start_offset, batch.pop_time, broker_name)
    };
    let due = batch.pop_time.saturating_add(batch.invisible_time);
    note(core, batch.revive_queue_id, &ack, due)
}

/// A message of an ordered pop is done.
fn in_order(
    core: &Core,
    connection: &Connection,
    (topic, group, queue_id): (&str, &str, i32),
    offset: i64,
    pop_time: i64,
) -> Result<(), Refusal> {
    let committed = |_: &mut _| core.offsets.committed(group, topic, queue_id).unwrap_or(-1);
    core.pop.queues.with(topic, group, queue_id, |queue| {
        let before = committed(queue);
        if offset < before {
            return Ok(());
        }
        match core
            .pop
            .orders
            .done(topic, group, queue_id, offset, pop_time)
        {
            Done::Stale => {}
            Done::Unknown => {
                return Err(Refusal::AckNotHandedOut {
                    key: format!("{topic}@{group}@{queue_id}"),
                    before,
                    offset,
                    consumer: connection.peer(),
                });
            }
            Done::Upto(next) => {
                if !core.offsets.reset_pending(group, topic, queue_id) {
                    core.offsets
                        .commit(group, topic, queue_id, next, core.now());
                }
            }
        }
        queue.in_flight = queue.in_flight.saturating_sub(1);
        Ok(())
    })?;
    let orders = &core.pop.orders;
    if orders
        .closed_until(topic, group, queue_id, None, 0, core.now())
        .is_none()
    {
        wake(core, topic, group, queue_id);
    }
    Ok(())
}

/// A queue is free again: whoever waits for it looks.
fn wake(core: &Core, topic: &str, group: &str, queue_id: i32) {
    for queue in [ANY_QUEUE, queue_id] {
        core.pop.door.pops.wake(topic, group, queue);
        core.pop.door.notifications.wake(topic, group, queue);
    }
}

fn changed(core: &Core, connection: &Connection, frame: &Frame) -> Settled {
    let header: ChangeInvisibleTimeHeader<'_> = frame.header()?;
    let (topic, queue_id, offset) = (&*header.topic, header.queue_id, header.offset);
    check_queue(core, connection, topic, queue_id)?;
    let min = core.store.min_offset(topic, queue_id).0;
    let max = core.store.max_offset(topic, queue_id).0;
    if !(min..max).contains(&offset) {
        let reply = Reply::error(ResponseCode::NO_MESSAGE, NO_REMARK);
        return Ok((reply, None));
    }
    let receipt = Receipt::parse(&header.extra_info)?;
    if receipt.revive_queue == ORDER_REVIVE_QUEUE {
        return Ok((changed_in_order(core, &header, &receipt), None));
    }
    // A hand-out is known by its start and its time: one of the same millisecond would be taken for this one.
    let now = core.now().max(receipt.pop_time.saturating_add(1));
    let again = Checkpoint {
        broker_name: Some(receipt.broker_name.clone().into_owned()),
        group: header.consumer_group.clone().into_owned(),
        differences: Some(vec![0]),
        count: 1,
        queue_id,
        start_offset: offset,
        topic: topic.to_owned(),
        ..Checkpoint::default()
    }
    .hidden(now, header.invisible_time);
    // First the new one: a crash between the two brings the message back twice, not never.
    let noted = log::checkpoint(core, receipt.revive_queue, &again)?;
    let place = (topic, &*header.consumer_group, queue_id);
    let old = Ack {
        offset,
        ..ack_of(
            place,
            receipt.start_offset,
            receipt.pop_time,
            &receipt.broker_name,
        )
    };
    let due = receipt.pop_time.saturating_add(receipt.invisible_time);
    let appended = if buffer::meet(core, &old) {
        noted
    } else {
        log::ack(core, receipt.revive_queue, &old, due, Origin::Request)?
    };
    let reply = ChangeInvisibleTimeReply {
        pop_time: Some(now),
        invisible_time: Some(header.invisible_time),
        revive_qid: Some(receipt.revive_queue),
    };
    Ok((remarked(Reply::ok().with(&reply)), Some(appended)))
}

fn changed_in_order(
    core: &Core,
    header: &ChangeInvisibleTimeHeader<'_>,
    receipt: &Receipt<'_>,
) -> Reply {
    let (topic, group, queue_id) = (&*header.topic, &*header.consumer_group, header.queue_id);
    let visible_at = core.pop.queues.with(topic, group, queue_id, |_| {
        let committed = core.offsets.committed(group, topic, queue_id);
        if committed.is_some_and(|committed| header.offset < committed) {
            return None;
        }
        let visible_at = core.now().saturating_add(header.invisible_time);
        let (offset, pop_time) = (header.offset, receipt.pop_time);
        let orders = &core.pop.orders;
        orders.postpone(topic, group, queue_id, offset, pop_time, visible_at);
        Some(visible_at)
    });
    let Some(visible_at) = visible_at else {
        return remarked(Reply::ok());
    };
    // Whoever waits has to learn the new time.
    wake(core, topic, group, queue_id);
    remarked(Reply::ok().with(&ChangeInvisibleTimeReply {
        pop_time: Some(receipt.pop_time),
        invisible_time: Some(visible_at.saturating_sub(receipt.pop_time)),
        revive_qid: Some(receipt.revive_queue),
    }))
}

fn remarked(mut reply: Reply) -> Reply {
    reply.remark = Some(NO_REMARK.into());
    reply
}
