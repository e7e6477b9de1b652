//! Giving a message back (36): it comes again after a while, or goes to the dead letters of its group.
//!
//! ```text
//! SendBackHeader ─▶ record at the physical offset ─▶ reconsumed too often? ─┬─ no:  %RETRY%group, delay level
//!                                                                           └─ yes: %DLQ%group, at once
//! ```
use std::sync::Arc;

use bindery_protocol::{
    bodies::{PERM_READ, PERM_WRITE, SubscriptionGroupConfig, TopicConfig},
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply},
    headers::SendBackHeader,
    message::{PhysicalOffset, RecordView, id, property},
    names,
};

use super::{
    Exchange, answer,
    deposit::{self, Draft, Wait},
};
use crate::{refusal::Refusal, state::Core, store::Appended};

/// First client version whose `maxReconsumeTimes` is believed (`V3_4_9`).
const MAX_RECONSUME_SINCE: i32 = 121;

/// Serves one.
pub(super) fn send_back(core: &Arc<Core>, exchange: Exchange) {
    let Exchange {
        frame, responder, ..
    } = exchange;
    match store(core, &frame) {
        Err(refusal) => answer(responder, RequestCode::CONSUMER_SEND_MSG_BACK, Err(refusal)),
        Ok(None) => responder.send(Reply::ok()),
        // Apache's broker lets the copy's WAIT=false decide. The consumer takes the answer as leave to commit the
        // original, so a copy that a loss of power could take would be a message lost.
        Ok(Some(appended)) => {
            deposit::settle(core, &appended, Wait::ForDisk, move |code: ResponseCode| {
                responder.send(Reply::code(code));
            });
        }
    }
}

fn store(core: &Core, frame: &Frame) -> Result<Option<Appended>, Refusal> {
    let header: SendBackHeader<'_> = frame.header()?;
    let group_name: &str = &header.group;
    let group = core.groups.required(group_name)?;
    if core.live().broker_permission & PERM_WRITE == 0 {
        return Err(Refusal::BrokerNotWritable {
            broker: core.address.ip().to_string(),
        });
    }
    if group.retry_queue_nums <= 0 {
        return Ok(None);
    }
    let unit = if header.unit_mode { 2 } else { 0 };
    let retry = core.topics.derived(
        &names::retry_topic(group_name),
        group.retry_queue_nums,
        PERM_WRITE | PERM_READ,
        unit,
    )?;
    if retry.perm & PERM_WRITE == 0 {
        return Err(Refusal::TopicNotWritable {
            topic: retry.topic_name.clone(),
        });
    }
    let bytes =
        core.store
            .message_at(PhysicalOffset(header.offset))
            .ok_or(Refusal::SendBackNotFound {
                offset: header.offset,
            })?;
    let record = RecordView::parse(&bytes)?;
    let target = target(core, &header, frame.head.version, &group, &retry, &record)?;
    let appended = copy(core, &record, &target)?;
    let origin = record.property(property::RETRY_TOPIC);
    let topic = origin.map_or_else(|| record.topic_text(), String::from_utf8_lossy);
    core.stats.sent_back(&topic, group_name, core.now());
    Ok(Some(appended))
}

/// Where the copy goes.
struct Target {
    topic: String,
    queue_id: i32,
    delay_level: i32,
}

fn target(
    core: &Core,
    header: &SendBackHeader<'_>,
    version: i32,
    group: &SubscriptionGroupConfig,
    retry: &TopicConfig,
    record: &RecordView<'_>,
) -> Result<Target, Refusal> {
    let limit = match header.max_reconsume_times {
        Some(limit) if version >= MAX_RECONSUME_SINCE && limit >= 0 => limit,
        _ => group.retry_max_times,
    };
    if record.reconsume_times() >= limit || header.delay_level < 0 {
        let topic = names::dlq_topic(&group.group_name);
        let config = core.topics.derived(&topic, 1, PERM_WRITE | PERM_READ, 0)?;
        return Ok(Target {
            topic,
            queue_id: Core::random_queue(config.write_queue_nums),
            delay_level: 0,
        });
    }
    let delay_level = if header.delay_level == 0 {
        record.reconsume_times().saturating_add(3)
    } else {
        header.delay_level
    };
    Ok(Target {
        topic: retry.topic_name.clone(),
        // The topic may have been made when the group had more queues for retries, or fewer.
        queue_id: Core::random_queue(group.retry_queue_nums.min(retry.write_queue_nums)),
        delay_level,
    })
}

fn copy(core: &Core, record: &RecordView<'_>, target: &Target) -> Result<Appended, Refusal> {
    let properties = String::from_utf8_lossy(record.properties());
    let topic = record.topic_text();
    let origin = id::offset_msg_id(core.address, record.physical_offset());
    let mut added = vec![(property::WAIT, "false")];
    if record.property(property::RETRY_TOPIC).is_none() {
        added.push((property::RETRY_TOPIC, &topic));
    }
    if record.property(property::ORIGIN_MESSAGE_ID).is_none() {
        added.push((property::ORIGIN_MESSAGE_ID, &origin));
    }
    if target.delay_level == 0 {
        added.push((property::DELAY, "0"));
    }
    let draft = Draft {
        topic: &target.topic,
        queue_id: target.queue_id,
        flag: record.flag(),
        sys_flag: record.sys_flag(),
        born_timestamp: record.born_timestamp(),
        born_host: record.born_host(),
        reconsume_times: record.reconsume_times().saturating_add(1),
        prepared_transaction_offset: 0,
        body: record.body(),
        properties: &properties,
        delay_level: target.delay_level,
        slot: None,
    };
    deposit::append(core, &draft, &added, &core.stamp)
}
