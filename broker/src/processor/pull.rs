//! Pulls (11, 361) and what becomes of those that find nothing.
//!
//! ```text
//! PullHeader ─▶ checks ─▶ Pull ─▶ read ─┬─ found, moved, no match ─▶ answer: the store's slices, uncopied
//!                                       └─ nothing there ─▶ Holds ─▶ (arrival, time over) ─▶ read again ─▶ answer
//! ```
use std::sync::Arc;

use bindery_protocol::{
    bodies::{MessageModel, PERM_READ, TopicConfig},
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply},
    headers::{PullHeader, PullReply},
    message::QueueOffset,
};
use bindery_remoting::{Connection, ConnectionId, Responder};
use bytes::Bytes;

use super::{Exchange, answer};
use crate::{
    client::{Filter, Subscribed, is_tag},
    hold::{Waiting, Wake},
    refusal::Refusal,
    state::Core,
    store::{ReadLimits, ReadStatus},
};

/// `commitOffset` is to be committed.
const COMMIT_OFFSET: i32 = 1;
/// The pull may wait.
const SUSPEND: i32 = 2;
/// The request carries its own subscription.
const SUBSCRIPTION: i32 = 4;

/// Longest wait, in milliseconds, whatever the request asks for: Apache's clients ask for 20 s or 30 s.
const LONGEST_WAIT: i64 = 60_000;

/// A pull that passed the checks.
struct Pull {
    group: String,
    topic: String,
    queue_id: i32,
    offset: i64,
    max_messages: i32,
    filter: Filter,
    topic_sys_flag: i32,
    group_sys_flag: i32,
}

/// A pull that waits for messages, with the right to answer it.
pub(crate) struct HeldPull {
    pull: Pull,
    connection: Connection,
    responder: Responder,
    deadline: i64,
}

impl Waiting for HeldPull {
    fn topic(&self) -> &str {
        &self.pull.topic
    }
    fn queue_id(&self) -> i32 {
        self.pull.queue_id
    }
    fn offset(&self) -> i64 {
        self.pull.offset
    }
    fn deadline(&self) -> i64 {
        self.deadline
    }
    fn connection(&self) -> ConnectionId {
        self.connection.id()
    }
    fn matches(&self, tags_code: i64, properties: &[u8]) -> bool {
        self.pull.filter.matches_arrival(tags_code, properties)
    }
}

/// Serves one pull, now or later.
pub(super) fn pull(core: &Arc<Core>, exchange: Exchange) {
    let Exchange {
        connection,
        frame,
        responder,
    } = exchange;
    let asked = frame.request_code();
    let header: PullHeader<'_> = match frame.header() {
        Ok(header) => header,
        Err(error) => return answer(responder, asked, Err(error.into())),
    };
    let pull = match admit(core, &connection, &frame, &header) {
        Ok(pull) => pull,
        Err(refusal) => return answer(responder, asked, Err(refusal)),
    };
    if header.sys_flag & COMMIT_OFFSET != 0 && header.commit_offset >= 0 {
        core.offsets.commit(
            &pull.group,
            &pull.topic,
            pull.queue_id,
            header.commit_offset,
            core.now(),
        );
    }
    core.offsets
        .pulling(&pull.group, &pull.topic, pull.queue_id, pull.offset);
    let read = pull.read(core);
    if header.sys_flag & SUSPEND == 0 || !read.waits() {
        return responder.send(pull.reply(core, read));
    }
    let patience = if core.live().long_polling_enable {
        header.suspend_timeout_millis
    } else {
        i64::try_from(core.live().short_polling_time_mills).unwrap_or(i64::MAX)
    };
    let deadline = core.now() + patience.clamp(0, LONGEST_WAIT);
    hold(
        core,
        HeldPull {
            pull,
            connection,
            responder,
            deadline,
        },
    );
}

/// Lets a pull wait, unless its client went or a message came between the read that found nothing and this.
fn hold(core: &Arc<Core>, mut held: HeldPull) {
    let connection = held.connection.clone();
    loop {
        let (group, topic) = (held.pull.group.clone(), held.pull.topic.clone());
        let (queue_id, offset) = (held.pull.queue_id, held.pull.offset);
        let id = match core.holds.hold(held) {
            Ok(id) => id,
            Err(HeldPull {
                pull, responder, ..
            }) => {
                let read = pull.read(core);
                return responder.send(pull.reply(core, read));
            }
        };
        // A connection that ended meanwhile was told of already, and nobody would take its pull out again.
        if connection.is_closed() {
            core.holds.forget(connection.id());
            return;
        }
        let pending = core.store.max_offset(&topic, queue_id).0 > offset
            || core.offsets.reset_pending(&group, &topic, queue_id);
        if !pending {
            return;
        }
        let Some(back) = core.holds.take(id) else {
            return;
        };
        let read = back.pull.read(core);
        if !read.waits() {
            return back.responder.send(back.pull.reply(core, read));
        }
        held = back;
    }
}

/// Runs a pull again that waited.
pub(crate) fn again(core: &Arc<Core>, held: HeldPull, wake: Wake) {
    if held.connection.is_closed() {
        return;
    }
    if core.topics.topic(&held.pull.topic).is_none() {
        let refusal = Refusal::TopicUnknown {
            topic: held.pull.topic,
        };
        return answer(held.responder, RequestCode::PULL_MESSAGE, Err(refusal));
    }
    let read = held.pull.read(core);
    if wake == Wake::Arrival && read.waits() && core.now() < held.deadline {
        return hold(core, held);
    }
    held.responder.send(held.pull.reply(core, read));
}

/// The checks, in the order of `PullMessageProcessor`.
fn admit(
    core: &Core,
    connection: &Connection,
    frame: &Frame,
    header: &PullHeader<'_>,
) -> Result<Pull, Refusal> {
    if core.live().broker_permission & PERM_READ == 0 {
        return Err(Refusal::BrokerNotReadable {
            broker: core.address.ip().to_string(),
        });
    }
    if frame.request_code() == RequestCode::LITE_PULL_MESSAGE
        && !core.live().lite_pull_message_enable
    {
        return Err(Refusal::LitePullOff);
    }
    let group_name: &str = &header.consumer_group;
    let group = core.groups.required(group_name)?;
    if !group.consume_enable {
        return Err(Refusal::GroupForbidden {
            group: group_name.to_owned(),
        });
    }
    let topic = core.topics.known(&header.topic)?;
    if topic.perm & PERM_READ == 0 {
        return Err(Refusal::TopicNotReadable {
            topic: header.topic.clone().into_owned(),
        });
    }
    if !(0..topic.read_queue_nums).contains(&header.queue_id) {
        return Err(Refusal::PullQueue {
            queue_id: header.queue_id,
            topic: header.topic.clone().into_owned(),
            queues: topic.read_queue_nums,
            consumer: connection.origin(),
        });
    }
    if !core.groups.may_read(group_name, &header.topic) {
        return Err(Refusal::ReadingForbidden {
            group: group_name.to_owned(),
            topic: header.topic.clone().into_owned(),
        });
    }
    let filter = filter(core, header, group.consume_broadcast_enable)?;
    Ok(Pull::new(header, &topic, group.group_sys_flag, filter))
}

/// The filter of the request itself, or of the group's subscription.
fn filter(core: &Core, header: &PullHeader<'_>, may_broadcast: bool) -> Result<Filter, Refusal> {
    let group: &str = &header.consumer_group;
    if header.sys_flag & SUBSCRIPTION != 0 {
        let expression_type = header.expression_type.as_deref().unwrap_or_default();
        let expression = header.subscription.as_deref().unwrap_or_default();
        let filter = Filter::parse(expression_type, expression)
            .ok()
            .ok_or(Refusal::SubscriptionUnreadable)?;
        supported(core, expression_type)?;
        return Ok(filter);
    }
    let (subscription, model) = match core.clients.subscription(group, &header.topic) {
        Subscribed::GroupOffline => return Err(Refusal::GroupOffline),
        Subscribed::NotToTopic => return Err(Refusal::NotSubscribed),
        Subscribed::To {
            subscription,
            model,
        } => (subscription, model),
    };
    if model == MessageModel::Broadcasting && !may_broadcast {
        return Err(Refusal::BroadcastForbidden {
            group: group.to_owned(),
        });
    }
    let asked = header.expression_type.as_deref().unwrap_or_default();
    let by_tags = subscription.is_tag() && is_tag(asked);
    if !by_tags && subscription.data.sub_version < header.sub_version {
        return Err(Refusal::SubscriptionOld);
    }
    supported(core, &subscription.data.expression_type)?;
    if subscription.data.sub_version < header.sub_version {
        // The client changed its subscription and its heartbeat has not come yet. Apache's broker refuses (25) and the
        // stock client then idles until its next heartbeat, up to 30 s. It compares tags itself, so it can be served
        // with everything: filtering by the old tags would skip what the new ones want.
        return Ok(Filter::all());
    }
    subscription.filter.clone().ok_or(Refusal::FilterUnknown)
}

/// Whether the broker filters by expressions of this type at all.
fn supported(core: &Core, expression_type: &str) -> Result<(), Refusal> {
    if is_tag(expression_type) || core.live().enable_property_filter {
        return Ok(());
    }
    Err(Refusal::FilterUnsupported {
        expression_type: expression_type.to_owned(),
    })
}

impl Pull {
    fn new(
        header: &PullHeader<'_>,
        topic: &TopicConfig,
        group_sys_flag: i32,
        filter: Filter,
    ) -> Self {
        Self {
            group: header.consumer_group.clone().into_owned(),
            topic: header.topic.clone().into_owned(),
            queue_id: header.queue_id,
            offset: header.queue_offset,
            max_messages: header.max_msg_nums,
            filter,
            topic_sys_flag: topic.topic_sys_flag,
            group_sys_flag,
        }
    }

    fn read(&self, core: &Core) -> Outcome {
        if let Some(offset) = core
            .offsets
            .take_reset(&self.group, &self.topic, self.queue_id)
        {
            return Outcome {
                code: ResponseCode::PULL_OFFSET_MOVED,
                status: "OFFSET_RESET",
                next: offset,
                min: core.store.min_offset(&self.topic, self.queue_id).0,
                max: core.store.max_offset(&self.topic, self.queue_id).0,
                messages: Vec::new(),
            };
        }
        let most = self
            .max_messages
            .min(core.live().pull_batch_max_message_count)
            .max(1);
        let limits = ReadLimits::messages(usize::try_from(most).unwrap_or(1));
        let before = core.now();
        let read = core.store.read(
            &self.topic,
            self.queue_id,
            QueueOffset(self.offset),
            limits,
            &self.filter,
        );
        core.stats
            .read_took(u64::try_from(core.now() - before).unwrap_or(0));
        Outcome {
            code: code_of(read.status, self.offset),
            status: name_of(read.status),
            next: read.next.0,
            min: read.min.0,
            max: read.max.0,
            messages: read.messages,
        }
    }

    fn reply(&self, core: &Core, outcome: Outcome) -> Reply {
        let now = core.now();
        let count = u64::try_from(outcome.messages.len()).unwrap_or(u64::MAX);
        let bytes: usize = outcome.messages.iter().map(Bytes::len).sum();
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        core.stats
            .pulled(&self.topic, &self.group, count, bytes, now);
        let mut reply = Reply::code(outcome.code).with(&PullReply {
            suggest_which_broker_id: 0,
            next_begin_offset: outcome.next,
            min_offset: outcome.min,
            max_offset: outcome.max,
            offset_delta: None,
            topic_sys_flag: Some(self.topic_sys_flag),
            group_sys_flag: Some(self.group_sys_flag),
            forbidden_type: None,
        });
        reply.remark = Some(outcome.status.into());
        reply.body = outcome.messages;
        reply
    }
}

/// What one read has to tell.
struct Outcome {
    code: ResponseCode,
    /// The status as Java names it: the answer's remark.
    status: &'static str,
    next: i64,
    min: i64,
    max: i64,
    messages: Vec<Bytes>,
}

impl Outcome {
    /// Whether there is nothing to tell yet.
    fn waits(&self) -> bool {
        self.code == ResponseCode::PULL_NOT_FOUND
    }
}

/// The answer's code: store.md §12 of Apache's `PullMessageProcessor.composeResponseHeader`.
fn code_of(status: ReadStatus, offset: i64) -> ResponseCode {
    match status {
        ReadStatus::Found => ResponseCode::SUCCESS,
        ReadStatus::NoMatchedMessage | ReadStatus::MessageWasRemoving => {
            ResponseCode::PULL_RETRY_IMMEDIATELY
        }
        ReadStatus::OffsetOverflowOne | ReadStatus::OffsetFoundNull => ResponseCode::PULL_NOT_FOUND,
        ReadStatus::NoMessageInQueue | ReadStatus::NoMatchedLogicQueue if offset == 0 => {
            ResponseCode::PULL_NOT_FOUND
        }
        ReadStatus::NoMessageInQueue
        | ReadStatus::NoMatchedLogicQueue
        | ReadStatus::OffsetOverflowBadly
        | ReadStatus::OffsetTooSmall => ResponseCode::PULL_OFFSET_MOVED,
    }
}

/// The status as Java names it: the answer's remark.
fn name_of(status: ReadStatus) -> &'static str {
    match status {
        ReadStatus::Found => "FOUND",
        ReadStatus::NoMatchedMessage => "NO_MATCHED_MESSAGE",
        ReadStatus::MessageWasRemoving => "MESSAGE_WAS_REMOVING",
        ReadStatus::OffsetOverflowOne => "OFFSET_OVERFLOW_ONE",
        ReadStatus::OffsetFoundNull => "OFFSET_FOUND_NULL",
        ReadStatus::NoMessageInQueue => "NO_MESSAGE_IN_QUEUE",
        ReadStatus::NoMatchedLogicQueue => "NO_MATCHED_LOGIC_QUEUE",
        ReadStatus::OffsetOverflowBadly => "OFFSET_OVERFLOW_BADLY",
        ReadStatus::OffsetTooSmall => "OFFSET_TOO_SMALL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_queue_is_waited_for_at_its_start_only() {
        assert_eq!(
            code_of(ReadStatus::NoMessageInQueue, 0),
            ResponseCode::PULL_NOT_FOUND
        );
        assert_eq!(
            code_of(ReadStatus::NoMessageInQueue, 3),
            ResponseCode::PULL_OFFSET_MOVED
        );
        assert_eq!(
            code_of(ReadStatus::OffsetOverflowOne, 3),
            ResponseCode::PULL_NOT_FOUND
        );
        assert_eq!(
            code_of(ReadStatus::OffsetOverflowBadly, 9),
            ResponseCode::PULL_OFFSET_MOVED
        );
    }
}
