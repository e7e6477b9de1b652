//! Sends: 10, 310, and batches (320).
//!
//! ```text
//! SendHeader ─▶ checks in Apache's order ─▶ topic (found or made) ─▶ queue ─▶ retry topic? dead letter?
//!   ─▶ one message: deposit::append   ─┐  (a half message: deposit::append_half)
//!   ─▶ batch::store: one append for all ┴▶ settle ─▶ SendReply with the message's place
//! ```
use std::sync::Arc;

use bindery_protocol::{
    bodies::{PERM_READ, PERM_WRITE, TopicConfig, TopicFilterType},
    codes::ResponseCode,
    frame::{Frame, Reply},
    headers::{SendHeader, SendReply},
    message::{RecallHandle, SysFlag, Transaction, property},
    names,
};
use bindery_remoting::{Connection, Responder};

use super::{
    Exchange, batch,
    deposit::{self, Draft, Wait},
    properties::Facts,
};
use crate::{
    config::BrokerConfig,
    refusal::Refusal,
    state::{Core, canonical},
    store::Appended,
    transaction::immunity_millis,
};

/// First client version whose `maxReconsumeTimes` is believed (`V3_4_9`).
const MAX_RECONSUME_SINCE: i32 = 121;

/// Serves one send.
pub(super) fn send(core: &Arc<Core>, exchange: Exchange) {
    let Exchange {
        connection,
        frame,
        responder,
    } = exchange;
    match store(core, &connection, &frame) {
        Ok(stored) => stored.answer(core, responder),
        Err(refusal) => {
            tracing::debug!(peer = %connection.peer(), %refusal, "send refused");
            let mut reply = refusal.reply();
            stamp(&core.config, &mut reply);
            responder.send(reply);
        }
    }
}

/// Every answer of a send, errors too, tells region and trace switch.
pub(super) fn stamp(config: &BrokerConfig, reply: &mut Reply) {
    reply.ext.put(property::MSG_REGION, &config.region_id);
    reply.ext.put(
        property::TRACE_ON,
        if config.trace_on { "true" } else { "false" },
    );
}

/// What lies in the log, and what the sender is told of it.
pub(super) struct Stored {
    pub(super) appended: Appended,
    pub(super) wait: Wait,
    pub(super) queue_id: i32,
    pub(super) message_id: String,
    pub(super) unique_key: String,
    /// Of a timer message.
    pub(super) recall_handle: Option<String>,
    /// Stored as one record that holds a batch: the answer says so.
    pub(super) inner_batch: bool,
}

impl Stored {
    fn answer(self, core: &Arc<Core>, responder: Responder) {
        if responder.is_oneway() {
            return;
        }
        let Self {
            appended,
            wait,
            queue_id,
            message_id,
            unique_key,
            recall_handle,
            inner_batch,
        } = self;
        let header = SendReply {
            msg_id: message_id.into(),
            queue_id,
            queue_offset: appended.queue_offset.0,
            batch_uniq_id: inner_batch.then(|| unique_key.clone().into()),
            transaction_id: Some(unique_key.into()),
            recall_handle: recall_handle.map(Into::into),
            region_id: Some(core.config.region_id.as_str().into()),
            trace_on: Some(core.config.trace_on),
        };
        let mut reply = Reply::ok().with(&header);
        deposit::settle(core, &appended, wait, move |code: ResponseCode| {
            reply.code = code;
            responder.send(reply);
        });
    }
}

fn store(core: &Core, connection: &Connection, frame: &Frame) -> Result<Stored, Refusal> {
    let header: SendHeader<'_> = frame.header()?;
    let topic = admit(core, connection, &header)?;
    if frame.body.is_empty() {
        return Err(Refusal::NoBody);
    }
    let queue_id = if header.queue_id < 0 {
        Core::random_queue(topic.write_queue_nums)
    } else {
        header.queue_id
    };
    if header.batch.unwrap_or(false) {
        batch::store(core, connection, frame, &header, &topic, queue_id)
    } else {
        store_one(core, connection, frame, &header, &topic, queue_id)
    }
}

/// The checks before anything is read of the message itself, in the order of `AbstractSendMessageProcessor`.
pub(super) fn admit(
    core: &Core,
    connection: &Connection,
    header: &SendHeader<'_>,
) -> Result<Arc<TopicConfig>, Refusal> {
    if core.live().start_accept_send_request_time_stamp > core.now() {
        return Err(Refusal::NotYet {
            until: core.live().start_accept_send_request_time_stamp,
        });
    }
    if core.overloaded() {
        return Err(Refusal::Busy);
    }
    let name: &str = &header.topic;
    let known = core.topics.topic(name);
    if core.live().broker_permission & PERM_WRITE == 0
        && known.as_ref().is_some_and(|topic| topic.order)
    {
        return Err(Refusal::BrokerNotWritable {
            broker: core.address.ip().to_string(),
        });
    }
    if known.is_none() {
        names::check_topic(name).map_err(Refusal::TopicName)?;
    }
    if names::is_send_forbidden(name) {
        return Err(Refusal::TopicForbidden {
            topic: name.to_owned(),
        });
    }
    let topic = if let Some(topic) = known {
        topic
    } else {
        let unit = if header.unit_mode.unwrap_or(false) {
            unit_flag(name)
        } else {
            0
        };
        core.topics.for_send(
            name,
            &header.default_topic,
            header.default_topic_queue_nums,
            unit,
        )?
    };
    let nothing_to_choose = header.queue_id < 0 && topic.write_queue_nums <= 0;
    if nothing_to_choose || header.queue_id >= topic.read_queue_nums.max(topic.write_queue_nums) {
        return Err(Refusal::SendQueue {
            queue_id: header.queue_id,
            topic_config: describe(&topic),
            producer: connection.origin(),
        });
    }
    Ok(topic)
}

/// `topicSysFlag` of a topic made by a sender in unit mode: bit 0 unit, bit 1 unit subscribers (retry topics).
pub(super) fn unit_flag(topic: &str) -> i32 {
    if topic.starts_with(names::RETRY_PREFIX) {
        2
    } else {
        1
    }
}

fn store_one(
    core: &Core,
    connection: &Connection,
    frame: &Frame,
    header: &SendHeader<'_>,
    topic: &TopicConfig,
    queue_id: i32,
) -> Result<Stored, Refusal> {
    let properties = header.properties.as_deref().unwrap_or_default();
    let facts = Facts::of(properties);
    let reconsume_times = header.reconsume_times.unwrap_or(0);
    // A retried message that once was a half message is an ordinary one by now.
    let prepared = facts.half || SysFlag(header.sys_flag).transaction() == Transaction::Prepared;
    let half = prepared && !(reconsume_times > 0 && facts.delay_level > 0);
    if half && core.live().reject_transaction_message {
        return Err(Refusal::TransactionRefused {
            broker: core.address.ip().to_string(),
        });
    }
    // Of a half message too: a wish that can't be granted had better be known before the commit, from which it counts.
    let slot = deposit::slot(core, &facts)?;
    if facts.inner {
        return Err(Refusal::MessageIllegal {
            limit: core.config.max_message_size,
        });
    }
    if is_batch_topic(topic) {
        return Err(Refusal::BatchesOnly {
            topic: topic.topic_name.clone(),
        });
    }
    let place = place(core, frame, header, topic)?;
    let made = facts.unique_key.is_none().then(|| core.ids.next_id());
    let unique_key = facts
        .unique_key
        .unwrap_or_else(|| made.as_deref().unwrap_or_default());
    let mut added: [(&str, &str); 2] = [("", ""); 2];
    let mut count = 0;
    if let Some(made) = &made {
        added[count] = (property::UNIQ_KEY, made);
        count += 1;
    }
    if place.is_dead_letter() {
        added[count] = (property::DELAY, "-1");
        count += 1;
    }
    let added = &added[..count];
    let draft = Draft {
        topic: place.topic(topic),
        queue_id: place.queue_id(queue_id),
        flag: header.flag,
        sys_flag: sys_flag(header, topic),
        born_timestamp: header.born_timestamp,
        born_host: canonical(connection.peer()),
        reconsume_times,
        prepared_transaction_offset: 0,
        body: &frame.body,
        properties,
        delay_level: if place.is_dead_letter() {
            0
        } else {
            facts.delay_level
        },
        slot: slot.filter(|_| !half && !place.is_dead_letter()),
    };
    let appended = if half {
        let appended = deposit::append_half(core, &draft, unique_key, added)?;
        let immunity = immunity_millis(facts.immunity, &core.live());
        core.transactions.opened(core, &appended, immunity);
        appended
    } else {
        deposit::append(core, &draft, added, &core.stamp)?
    };
    Ok(Stored {
        wait: if facts.wait {
            Wait::ForDisk
        } else {
            Wait::ForLog
        },
        queue_id: draft.queue_id,
        message_id: appended.offset_msg_ids(core.address),
        unique_key: unique_key.to_owned(),
        recall_handle: draft
            .slot
            .and_then(|slot| recall_handle(core, draft.topic, slot, unique_key)),
        inner_batch: false,
        appended,
    })
}

/// With which a timer message can be taken back.
fn recall_handle(core: &Core, topic: &str, slot: i64, unique_key: &str) -> Option<String> {
    let handle = RecallHandle {
        topic: topic.to_owned(),
        broker_name: core.config.broker_name.clone(),
        // A full second would belong to the slot before it.
        timestamp: slot.saturating_add(1).to_string(),
        message_id: unique_key.to_owned(),
    };
    (!topic.starts_with(names::RETRY_PREFIX)).then(|| handle.encode())
}

/// Whether the topic's queues hold batches (`queue.type=BatchCQ`).
pub(super) fn is_batch_topic(topic: &TopicConfig) -> bool {
    let kind = topic.attributes.get("queue.type");
    kind.is_some_and(|kind| kind == "BatchCQ")
}

/// The sender's flag as it is stored. A message marked as undecided would be in no queue at all: it lies in a topic of its
/// own instead, as an ordinary one.
fn sys_flag(header: &SendHeader<'_>, topic: &TopicConfig) -> SysFlag {
    let mut sys_flag = SysFlag(header.sys_flag);
    if sys_flag.transaction() == Transaction::Prepared {
        sys_flag = sys_flag.with_transaction(Transaction::None);
    }
    if topic.topic_filter_type == TopicFilterType::MultiTag {
        sys_flag = sys_flag.with(SysFlag::MULTI_TAGS);
    }
    sys_flag
}

/// Where a message really goes.
enum Place {
    /// Where it was sent to.
    AsSent,
    /// To the dead letters of its group: it was retried too often.
    DeadLetters(Arc<TopicConfig>),
}

impl Place {
    fn is_dead_letter(&self) -> bool {
        matches!(self, Self::DeadLetters(_))
    }

    fn topic<'a>(&'a self, sent: &'a TopicConfig) -> &'a str {
        match self {
            Self::AsSent => &sent.topic_name,
            Self::DeadLetters(topic) => &topic.topic_name,
        }
    }

    fn queue_id(&self, sent: i32) -> i32 {
        match self {
            Self::AsSent => sent,
            Self::DeadLetters(topic) => Core::random_queue(topic.write_queue_nums),
        }
    }
}

/// A client that could not give a message back (36) sends it to the retry topic itself: the limit holds there too, and
/// groups that consume in order never retry that way.
fn place(
    core: &Core,
    frame: &Frame,
    header: &SendHeader<'_>,
    topic: &TopicConfig,
) -> Result<Place, Refusal> {
    let Some(group_name) = topic.topic_name.strip_prefix(names::RETRY_PREFIX) else {
        return Ok(Place::AsSent);
    };
    let group = core
        .groups
        .group(group_name)?
        .ok_or_else(|| Refusal::SendGroupUnknown {
            group: group_name.to_owned(),
        })?;
    let limit = match header.max_reconsume_times {
        Some(limit) if frame.head.version >= MAX_RECONSUME_SINCE => limit,
        _ => group.retry_max_times,
    };
    let in_order = core.locks.any_held(group_name, core.now());
    if header.reconsume_times.unwrap_or(0) <= limit && !in_order {
        return Ok(Place::AsSent);
    }
    core.topics
        .derived(&names::dlq_topic(group_name), 1, PERM_WRITE | PERM_READ, 0)
        .map(Place::DeadLetters)
}

/// The topic's configuration as Java prints it.
fn describe(topic: &TopicConfig) -> String {
    let permission: String = [(PERM_READ, 'R'), (PERM_WRITE, 'W'), (1, 'X')]
        .map(|(bit, letter)| if topic.perm & bit == 0 { '-' } else { letter })
        .iter()
        .collect();
    format!(
        "TopicConfig [topicName={}, readQueueNums={}, writeQueueNums={}, perm={permission}, topicFilterType={}, topicSysFlag={}, order={}, attributes={{{}}}]",
        topic.topic_name,
        topic.read_queue_nums,
        topic.write_queue_nums,
        topic.topic_filter_type.name(),
        topic.topic_sys_flag,
        topic.order,
        topic
            .attributes
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(", "),
    )
}
