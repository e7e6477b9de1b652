//! What an operator asks of one consumer through the broker it is connected to: 307, 309.
//!
//! ```text
//! operator ─▶ broker ─▶ the consumer's own connection ─▶ answer ─▶ operator
//! ```
use std::{sync::Arc, time::Duration};

use bindery_protocol::{
    codes::RequestCode,
    frame::{Frame, Reply, Request},
    headers::{ConsumeDirectlyHeader, RunningInfoHeader},
    message::id,
};
use bindery_remoting::Connection;
use bytes::Bytes;

use super::{Exchange, answer};
use crate::{refusal::Refusal, state::Core};

/// Time a consumer has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// 307: what a consumer says about itself.
pub(super) fn running_info(core: &Arc<Core>, exchange: Exchange) {
    let prepared = exchange
        .frame
        .header::<RunningInfoHeader<'_>>()
        .map_err(Refusal::from)
        .and_then(|header| {
            let consumer = consumer(core, &header.consumer_group, &header.client_id)?;
            let request = forward(&exchange.frame, &[]);
            Ok((
                consumer,
                request,
                names(&header.consumer_group, &header.client_id),
            ))
        });
    relay(core, exchange, prepared);
}

/// 309: has a consumer handle one stored message at once.
pub(super) fn consume_directly(core: &Arc<Core>, exchange: Exchange) {
    let prepared = prepare_directly(core, &exchange.frame);
    relay(core, exchange, prepared);
}

type Prepared = Result<(Connection, Request, (String, String)), Refusal>;

fn prepare_directly(core: &Core, frame: &Frame) -> Prepared {
    let header: ConsumeDirectlyHeader<'_> = frame.header()?;
    let client_id = header.client_id.as_deref().unwrap_or_default();
    let consumer = consumer(core, &header.consumer_group, client_id)?;
    let message_id = header.msg_id.as_deref().unwrap_or_default();
    let (_, offset) = id::parse_offset_msg_id(message_id)
        .ok()
        .ok_or_else(|| Refusal::BadText {
            what: "msgId",
            text: message_id.to_owned(),
        })?;
    let record = core
        .store
        .message_at(offset)
        .ok_or(Refusal::MessageNotFound { offset: offset.0 })?;
    let topic_flag = header
        .topic
        .as_deref()
        .and_then(|topic| core.topics.topic(topic))
        .map(|topic| topic.topic_sys_flag);
    let group_flag = core
        .groups
        .known(&header.consumer_group)
        .map(|group| group.group_sys_flag);
    let added = [
        ("brokerName", core.config.broker_name.clone()),
        ("topicSysFlag", topic_flag.unwrap_or(0).to_string()),
        ("groupSysFlag", group_flag.unwrap_or(0).to_string()),
    ];
    let mut request = forward(frame, &added);
    request.body = record;
    Ok((consumer, request, names(&header.consumer_group, client_id)))
}

fn names(group: &str, client_id: &str) -> (String, String) {
    (group.to_owned(), client_id.to_owned())
}

/// The connection of one member of a group.
fn consumer(core: &Core, group: &str, client_id: &str) -> Result<Connection, Refusal> {
    core.clients
        .with_consumers(group, |found| {
            found
                .member(client_id)
                .map(|member| member.connection.clone())
        })
        .flatten()
        .ok_or_else(|| Refusal::ClientOffline {
            group: group.to_owned(),
            client_id: client_id.to_owned(),
        })
}

/// The same request with its fields, those in `added` replaced.
fn forward(frame: &Frame, added: &[(&str, String)]) -> Request {
    let mut request = Request::new(RequestCode(frame.head.code)).body(frame.body.clone());
    for (name, value) in frame.ext_fields() {
        if !added.iter().any(|(replaced, _)| *replaced == name) {
            request.ext.put(&name, &value);
        }
    }
    for (name, value) in added {
        request.ext.put(name, value);
    }
    request
}

/// Asks the consumer and passes its answer on. A waiting relay takes one of the slots for slow requests.
fn relay(core: &Arc<Core>, exchange: Exchange, prepared: Prepared) {
    let Exchange {
        frame, responder, ..
    } = exchange;
    let asked = frame.request_code();
    let (consumer, request, (group, client_id)) = match prepared {
        Ok(prepared) => prepared,
        Err(refusal) => return answer(responder, asked, Err(refusal)),
    };
    let Ok(slot) = core.workers.clone().try_acquire_owned() else {
        return answer(responder, asked, Err(Refusal::Overload));
    };
    let stop = core.stop.clone();
    core.tasks.spawn(async move {
        let outcome = tokio::select! {
            () = stop.cancelled() => return answer(responder, asked, Err(Refusal::NotServing)),
            outcome = consumer.call(request, PATIENCE) => outcome,
        };
        drop(slot);
        answer(
            responder,
            asked,
            outcome
                .map(passed_on)
                .map_err(|source| Refusal::ClientSilent {
                    group,
                    client_id,
                    source,
                }),
        );
    });
}

fn passed_on(frame: Frame) -> Reply {
    let mut reply = Reply::code(frame.response_code());
    reply.remark = frame.head.remark.map(Into::into);
    if !frame.body.is_empty() {
        reply.body.push(Bytes::clone(&frame.body));
    }
    reply
}
