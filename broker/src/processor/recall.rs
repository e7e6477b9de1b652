//! Taking back a timer message that is not due yet (370).
//!
//! ```text
//! recallHandle ─▶ topic, broker, time checked ─▶ a timer message for the same slot with TIMER_DEL_UNIQKEY ─▶ msgId
//! ```
//! The one cancels the other when the slot is delivered. Nobody looks whether the message is there at all, so the answer is
//! the same for one that was taken back before.
use std::sync::Arc;

use bindery_protocol::{
    bodies::PERM_WRITE,
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply},
    headers::{RecallHeader, RecallReply},
    message::{RecallHandle, SysFlag, property},
};
use bindery_remoting::Connection;

use super::{
    Exchange,
    deposit::{self, Draft, Wait},
};
use crate::{
    refusal::Refusal,
    state::{Core, canonical},
    store::Appended,
};

/// Tag of the messages that cancel others.
const TAG: &str = "_RECALL_TAG_";

/// Serves one.
pub(super) fn recall(core: &Arc<Core>, exchange: Exchange) {
    let Exchange {
        connection,
        frame,
        responder,
    } = exchange;
    match store(core, &connection, &frame) {
        Ok((appended, message_id)) => {
            let header = RecallReply {
                msg_id: message_id.into(),
                region_id: Some(core.config.region_id.as_str().into()),
            };
            let reply = Reply::ok().with(&header);
            // A late flush is no failure: the message is in the log.
            deposit::settle(core, &appended, Wait::ForDisk, move |_: ResponseCode| {
                responder.send(reply);
            });
        }
        Err(refusal) => {
            tracing::debug!(code = RequestCode::RECALL_MESSAGE.0, peer = %connection.peer(), %refusal, "request refused");
            let mut reply = refusal.reply();
            reply.ext.put(property::MSG_REGION, &core.config.region_id);
            responder.send(reply);
        }
    }
}

fn store(
    core: &Core,
    connection: &Connection,
    frame: &Frame,
) -> Result<(Appended, String), Refusal> {
    let header: RecallHeader<'_> = frame.header()?;
    if !core.live().recall_message_enable {
        return Err(Refusal::RecallForbidden);
    }
    let closed = core.live().broker_permission & PERM_WRITE == 0
        && !core.live().allow_recall_when_broker_not_writeable;
    if closed || core.live().start_accept_send_request_time_stamp > core.now() {
        return Err(Refusal::RecallClosed);
    }
    let topic: &str = &header.topic;
    if core.topics.topic(topic).is_none() {
        return Err(Refusal::RecallTopicUnknown {
            topic: topic.to_owned(),
        });
    }
    let handle = RecallHandle::parse(&header.recall_handle)?;
    if handle.topic != topic {
        return Err(Refusal::RecallTopic);
    }
    if handle.broker_name != core.config.broker_name {
        return Err(Refusal::RecallBroker);
    }
    let now = core.now();
    let time: i64 = handle.timestamp.parse().unwrap_or(-1);
    let left = time.saturating_sub(now);
    if left <= 0 || left >= i64::from(core.config.timer_max_delay_sec) * 1000 {
        return Err(Refusal::RecallTime);
    }
    append(core, connection, &header, &handle, time)
}

fn append(
    core: &Core,
    connection: &Connection,
    header: &RecallHeader<'_>,
    handle: &RecallHandle,
    time: i64,
) -> Result<(Appended, String), Refusal> {
    let now = core.now();
    let (cancelled, born) = (
        format!("{}+{}", handle.topic, handle.message_id),
        now.to_string(),
    );
    let mut added = vec![
        (property::TAGS, TAG),
        (property::TIMER_DEL_UNIQKEY, cancelled.as_str()),
        (property::UNIQ_KEY, handle.message_id.as_str()),
        (property::BORN_TIMESTAMP, born.as_str()),
    ];
    if let Some(group) = header
        .producer_group
        .as_deref()
        .filter(|group| !group.is_empty())
    {
        added.push((property::PGROUP, group));
    }
    let draft = Draft {
        topic: &handle.topic,
        queue_id: 0,
        flag: 0,
        sys_flag: SysFlag(0),
        born_timestamp: now,
        born_host: canonical(connection.peer()),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: b"0",
        properties: "",
        delay_level: 0,
        slot: None,
    };
    let appended = deposit::append_at(core, &draft, time, &added, b"");
    let appended = appended.map_err(|refusal| Refusal::RecallFailed {
        reason: refusal.to_string(),
    })?;
    Ok((appended, handle.message_id.clone()))
}
