//! Who waits for pops: notifications (200054) tell when there is something to pop, 200055 tells how many pops wait.
use std::sync::Arc;

use bindery_protocol::{
    bodies::PERM_READ,
    codes::RequestCode,
    frame::{Frame, Reply},
    headers::{NotificationHeader, NotificationReply, PollingInfoHeader, PollingInfoReply},
};
use bindery_remoting::{Connection, ConnectionId, Responder};

use super::{Answer, Exchange, NO_REMARK, answer, pop::deadline};
use crate::{
    pop::{hold::Waiting, position, retry_topics},
    refusal::Refusal,
    state::Core,
};

/// A notification that waits, with the right to send it.
pub(crate) struct HeldNotification {
    group: String,
    topic: String,
    queue_id: i32,
    order: bool,
    attempt_id: Option<String>,
    connection: Connection,
    responder: Responder,
    deadline: i64,
}

impl Waiting for HeldNotification {
    fn topic(&self) -> &str {
        &self.topic
    }
    fn group(&self) -> &str {
        &self.group
    }
    fn queue_id(&self) -> i32 {
        self.queue_id.max(crate::pop::hold::ANY_QUEUE)
    }
    fn look_at(&self) -> i64 {
        self.deadline
    }
    fn connection(&self) -> ConnectionId {
        self.connection.id()
    }
    fn matches(&self, _: i64, _: &[u8]) -> bool {
        true
    }
}

/// 200054: serves one, now or later.
pub(super) fn notify(core: &Arc<Core>, exchange: Exchange) {
    let Exchange {
        connection,
        frame,
        responder,
    } = exchange;
    let admitted =
        frame
            .header()
            .map_err(Refusal::from)
            .and_then(|header: NotificationHeader<'_>| {
                admit_peek(
                    core,
                    &connection,
                    &header.topic,
                    &header.consumer_group,
                    header.queue_id,
                )?;
                Ok(header.into_owned())
            });
    match admitted {
        Err(refusal) => answer(responder, RequestCode::NOTIFICATION, Err(refusal)),
        Ok(header) => {
            let now = core.now();
            let born = if header.born_time == 0 {
                now
            } else {
                header.born_time
            };
            let held = HeldNotification {
                group: header.consumer_group.into_owned(),
                topic: header.topic.into_owned(),
                queue_id: header.queue_id,
                order: header.order,
                attempt_id: header.attempt_id.map(std::borrow::Cow::into_owned),
                connection,
                responder,
                deadline: deadline(now, born, header.poll_time),
            };
            again(core, held);
        }
    }
}

/// Looks whether there is something, and waits if not.
pub(crate) fn again(core: &Arc<Core>, mut held: HeldNotification) {
    loop {
        if held.connection.is_closed() {
            return;
        }
        if held.is_due(core) {
            return tell(held.responder, true, false);
        }
        if core.now() >= held.deadline {
            return tell(held.responder, false, false);
        }
        let look = held.look();
        let connection = held.connection.clone();
        let id = match core.pop.door.notifications.hold(held) {
            Ok(id) => id,
            Err(held) => return tell(held.responder, false, true),
        };
        if connection.is_closed() {
            core.pop.door.notifications.forget(connection.id());
            return;
        }
        // A message that came before it waited woke nobody.
        if !look.is_due(core) {
            return;
        }
        match core.pop.door.notifications.take(id) {
            Some(back) => held = back,
            None => return,
        }
    }
}

fn tell(responder: Responder, has_msg: bool, polling_full: bool) {
    let mut reply = Reply::ok().with(&NotificationReply {
        has_msg,
        polling_full,
    });
    reply.remark = Some(NO_REMARK.into());
    responder.send(reply);
}

/// What a notification asks.
struct Look {
    group: String,
    topic: String,
    queue_id: i32,
    order: bool,
    attempt_id: Option<String>,
}

impl HeldNotification {
    fn look(&self) -> Look {
        Look {
            group: self.group.clone(),
            topic: self.topic.clone(),
            queue_id: self.queue_id,
            order: self.order,
            attempt_id: self.attempt_id.clone(),
        }
    }

    fn is_due(&self, core: &Core) -> bool {
        self.look().is_due(core)
    }
}

impl Look {
    /// Whether there is something to pop.
    fn is_due(&self, core: &Core) -> bool {
        let all = |topic: &str| {
            let queues = core
                .topics
                .topic(topic)
                .map_or(0, |topic| topic.read_queue_nums);
            (0..queues).any(|queue_id| self.is_there(core, topic, queue_id))
        };
        let own = if self.queue_id < 0 {
            all(&self.topic)
        } else {
            self.is_there(core, &self.topic, self.queue_id)
        };
        own || retry_topics(core, &self.group, &self.topic)
            .iter()
            .any(|topic| all(topic))
    }

    fn is_there(&self, core: &Core, topic: &str, queue_id: i32) -> bool {
        let closed = self.order
            && core
                .pop
                .orders
                .closed_until(
                    &self.topic,
                    &self.group,
                    queue_id,
                    self.attempt_id.as_deref(),
                    0,
                    core.now(),
                )
                .is_some();
        !closed
            && core.store.max_offset(topic, queue_id).0
                > position(core, topic, &self.group, queue_id)
    }
}

/// 200055: how many pops wait for a topic, group and queue.
pub(super) fn polling(core: &Core, connection: &Connection, frame: &Frame) -> Answer {
    let header: PollingInfoHeader<'_> = frame.header()?;
    admit_peek(
        core,
        connection,
        &header.topic,
        &header.consumer_group,
        header.queue_id,
    )?;
    let waiting = core
        .pop
        .door
        .pops
        .count(&header.topic, &header.consumer_group, header.queue_id);
    let mut reply = Reply::ok().with(&PollingInfoReply {
        polling_num: i32::try_from(waiting).unwrap_or(i32::MAX),
    });
    reply.remark = Some(NO_REMARK.into());
    Ok(reply)
}

/// The checks of everything that looks without taking.
pub(super) fn admit_peek(
    core: &Core,
    connection: &Connection,
    topic: &str,
    group: &str,
    queue_id: i32,
) -> Result<(), Refusal> {
    if core.config.broker_permission & PERM_READ == 0 {
        return Err(Refusal::PeekForbidden {
            broker: core.address.ip().to_string(),
        });
    }
    readable(core, connection, topic, group, queue_id)
}

/// Whether a group may read a topic's queue, any when negative.
pub(super) fn readable(
    core: &Core,
    connection: &Connection,
    topic: &str,
    group: &str,
    queue_id: i32,
) -> Result<(), Refusal> {
    let config = core.topics.known(topic)?;
    if config.perm & PERM_READ == 0 {
        return Err(Refusal::TopicNotPeekable {
            topic: topic.to_owned(),
        });
    }
    if queue_id >= config.read_queue_nums {
        return Err(Refusal::PullQueue {
            queue_id,
            topic: topic.to_owned(),
            queues: config.read_queue_nums,
            consumer: connection.peer(),
        });
    }
    if !core.groups.required(group)?.consume_enable {
        return Err(Refusal::GroupForbidden {
            group: group.to_owned(),
        });
    }
    Ok(())
}
