//! Pops (200050) and what becomes of those that find nothing.
//!
//! ```text
//! PopHeader ─▶ checks ─▶ Wanted ─▶ take ─┬─ messages ─▶ answer; is more there, the next that waits is woken
//!                                        └─ nothing ─▶ Holds ─▶ (arrival, queue free, time over) ─▶ take again
//! ```
use std::sync::Arc;

use bindery_protocol::{
    bodies::PERM_READ,
    codes::{RequestCode, ResponseCode},
    frame::Reply,
    headers::{PopHeader, PopReply},
    pop::MOST_MESSAGES,
};
use bindery_remoting::{Connection, ConnectionId, Responder};

use super::{Exchange, answer};
use crate::{
    client::Filter,
    pop::{
        hold::Waiting,
        position, retry_topics,
        take::{Taken, Wanted, take},
    },
    refusal::Refusal,
    state::Core,
};

/// Milliseconds after its time at which a pop is not served any more: its client has given up.
const TOO_LATE: i64 = 500;
/// Milliseconds before its time at which a waiting pop is answered, so that the answer is there in time.
const AHEAD: i64 = 50;
/// Times a pop looks again before it waits, when something seems to be there.
const LOOKS: usize = 2;

/// A pop that waits for messages, with the right to answer it.
pub(crate) struct HeldPop {
    wanted: Wanted,
    connection: Connection,
    responder: Responder,
    deadline: i64,
    /// When to try again without a message.
    look_at: i64,
}

impl Waiting for HeldPop {
    fn topic(&self) -> &str {
        &self.wanted.topic
    }
    fn group(&self) -> &str {
        &self.wanted.group
    }
    fn queue_id(&self) -> i32 {
        self.wanted.queue_id.max(crate::pop::hold::ANY_QUEUE)
    }
    fn look_at(&self) -> i64 {
        self.look_at
    }
    fn connection(&self) -> ConnectionId {
        self.connection.id()
    }
    fn matches(&self, tags_code: i64, properties: &[u8]) -> bool {
        self.wanted.filter.matches_arrival(tags_code, properties)
    }
}

/// Serves one pop, now or later.
pub(super) fn pop(core: &Arc<Core>, exchange: Exchange) {
    let Exchange {
        connection,
        frame,
        responder,
    } = exchange;
    let admitted = frame
        .header()
        .map_err(Refusal::from)
        .and_then(|header| admit(core, &connection, &header));
    match admitted {
        Err(refusal) => answer(responder, RequestCode::POP_MESSAGE, Err(refusal)),
        Ok((wanted, deadline)) => {
            let held = HeldPop {
                wanted,
                connection,
                responder,
                deadline,
                look_at: deadline,
            };
            serve(core, held);
        }
    }
}

/// Runs a pop again that waited.
pub(crate) fn again(core: &Arc<Core>, held: HeldPop) {
    if held.connection.is_closed() {
        return;
    }
    if core.topics.topic(&held.wanted.topic).is_none() {
        let refusal = Refusal::TopicUnknown {
            topic: held.wanted.topic,
        };
        return answer(held.responder, RequestCode::POP_MESSAGE, Err(refusal));
    }
    serve(core, held);
}

fn serve(core: &Arc<Core>, mut held: HeldPop) {
    for _ in 0..LOOKS {
        let taken = take(core, &held.wanted);
        if !taken.messages.is_empty() {
            return found(core, held, taken);
        }
        if core.now() >= held.deadline {
            return nothing(held, &taken, ResponseCode::POLLING_TIMEOUT);
        }
        held.look_at = taken
            .free_at
            .map_or(held.deadline, |free_at| free_at.min(held.deadline));
        let (wanted, connection) = (held.wanted.clone(), held.connection.clone());
        let id = match core.pop.door.pops.hold(held) {
            Ok(id) => id,
            Err(held) => return nothing(held, &taken, ResponseCode::POLLING_FULL),
        };
        // A connection that ended meanwhile was told of already, and nobody would take its pop out again.
        if connection.is_closed() {
            core.pop.door.pops.forget(connection.id());
            return;
        }
        if !something_there(core, &wanted) {
            return;
        }
        match core.pop.door.pops.take(id) {
            Some(back) => held = back,
            None => return,
        }
    }
    // What is there can't be handed out now, whatever it is; the next arrival or the deadline tries again.
    if let Err(held) = core.pop.door.pops.hold(held) {
        let taken = take(core, &held.wanted);
        if taken.messages.is_empty() {
            nothing(held, &taken, ResponseCode::POLLING_FULL);
        } else {
            found(core, held, taken);
        }
    }
}

/// Whether a message may have come between the look that found nothing and the wait.
fn something_there(core: &Core, wanted: &Wanted) -> bool {
    let behind = |topic: &str, queue_id| {
        core.store.max_offset(topic, queue_id).0 > position(core, topic, &wanted.group, queue_id)
    };
    let any = |topic: &str| {
        let queues = core
            .topics
            .topic(topic)
            .map_or(0, |topic| topic.read_queue_nums);
        (0..queues).any(|queue_id| behind(topic, queue_id))
    };
    if wanted.order {
        let open = |queue_id| {
            let (topic, group, now) = (&wanted.topic, &wanted.group, core.now());
            let attempt = wanted.attempt_id.as_deref();
            let orders = &core.pop.orders;
            orders
                .closed_until(topic, group, queue_id, attempt, wanted.invisible_time, now)
                .is_none()
        };
        let queues = core
            .topics
            .topic(&wanted.topic)
            .map_or(0, |topic| topic.read_queue_nums);
        let all = if wanted.queue_id < 0 {
            0..queues
        } else {
            wanted.queue_id..wanted.queue_id.saturating_add(1)
        };
        return all
            .into_iter()
            .any(|queue_id| open(queue_id) && behind(&wanted.topic, queue_id));
    }
    let own = if wanted.queue_id < 0 {
        any(&wanted.topic)
    } else {
        behind(&wanted.topic, wanted.queue_id)
    };
    own || retry_topics(core, &wanted.group, &wanted.topic)
        .iter()
        .any(|topic| any(topic))
}

fn found(core: &Core, held: HeldPop, taken: Taken) {
    if taken.rest > 0 {
        let wanted = &held.wanted;
        let door = &core.pop.door;
        door.pops
            .wake(&wanted.topic, &wanted.group, held.queue_id());
    }
    let mut reply = reply(&held.wanted, &taken, ResponseCode::SUCCESS, "FOUND");
    reply.body = taken.messages;
    held.responder.send(reply);
}

fn nothing(held: HeldPop, taken: &Taken, code: ResponseCode) {
    let reply = reply(&held.wanted, taken, code, "NO_MESSAGE_IN_QUEUE");
    held.responder.send(reply);
}

fn reply(wanted: &Wanted, taken: &Taken, code: ResponseCode, remark: &'static str) -> Reply {
    let mut reply = Reply::code(code).with(&PopReply {
        pop_time: taken.pop_time,
        invisible_time: wanted.invisible_time,
        revive_qid: taken.revive_queue,
        rest_num: taken.rest,
        start_offset_info: Some(taken.starts.as_str().into()),
        msg_offset_info: Some(taken.offsets.as_str().into()),
        order_count_info: wanted.order.then(|| taken.counts.as_str().into()),
    });
    reply.remark = Some(remark.into());
    reply
}

/// The checks, in the order of `PopMessageProcessor`; what is wanted, and until when.
fn admit(
    core: &Core,
    connection: &Connection,
    header: &PopHeader<'_>,
) -> Result<(Wanted, i64), Refusal> {
    let now = core.now();
    let born = if header.born_time == 0 {
        now
    } else {
        header.born_time
    };
    let broker = core.address.ip().to_string();
    if now.saturating_sub(born).saturating_sub(header.poll_time) > TOO_LATE {
        return Err(Refusal::PopTooLate { broker });
    }
    if core.config.broker_permission & PERM_READ == 0 {
        return Err(Refusal::PopForbidden { broker });
    }
    if header.max_msg_nums > MOST_MESSAGES {
        return Err(Refusal::PopTooMany { broker });
    }
    if !core.config.timer_wheel_enable {
        return Err(Refusal::PopWithoutTimer { broker });
    }
    let longest = u64::from(core.config.timer_max_delay_sec) * 1000;
    if u64::try_from(header.invisible_time).is_ok_and(|time| time > longest) {
        return Err(Refusal::HiddenTooLong { longest });
    }
    super::notification::readable(
        core,
        connection,
        &header.topic,
        &header.consumer_group,
        header.queue_id,
    )?;
    let expression = header.exp.as_deref().filter(|text| !text.is_empty());
    let filter = match expression {
        None => Filter::all(),
        Some(text) => Filter::parse(header.exp_type.as_deref().unwrap_or_default(), text)
            .map_err(|_| Refusal::SubscriptionUnreadable)?,
    };
    let wanted = Wanted {
        group: header.consumer_group.clone().into_owned(),
        topic: header.topic.clone().into_owned(),
        queue_id: header.queue_id,
        most: usize::try_from(header.max_msg_nums).unwrap_or(0),
        invisible_time: header.invisible_time,
        from_newest: header.init_mode != PopHeader::FROM_MIN,
        filter,
        order: header.order,
        attempt_id: header.attempt_id.clone().map(std::borrow::Cow::into_owned),
    };
    Ok((wanted, deadline(now, born, header.poll_time)))
}

/// Until when a request waits: its poll time counts from when its client sent it, and no clock of a client makes it longer.
pub(super) fn deadline(now: i64, born: i64, poll_time: i64) -> i64 {
    if poll_time <= 0 {
        return now;
    }
    born.saturating_add(poll_time)
        .min(now.saturating_add(poll_time))
        .saturating_sub(AHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pop_waits_as_long_as_its_client_does() {
        assert_eq!(deadline(1000, 900, 500), 1350);
        assert_eq!(deadline(1000, 9000, 500), 1450);
        assert_eq!(deadline(1000, 900, 0), 1000);
        assert_eq!(deadline(1000, 1000, -5), 1000);
    }
}
