//! Replies on their way to requesters: 324, 325 → 326.
//!
//! ```text
//! replier ─▶ checks of a send ─▶ stored (CLUSTER_REPLY_TOPIC) ─▶ REPLY_TO_CLIENT ─▶ 326 on the requester's connection
//!                                                                     └─ the requester's answer, or 10 s ─▶ replier
//! ```
//! As `ReplyMessageProcessor` of Apache `RocketMQ` 5.3.3: a reply that nobody takes is stored all the same, and its answer
//! tells both. Only the order differs, the store comes first, so that nothing is held in memory while a requester is slow.
use std::{sync::Arc, time::Duration};

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply, Request},
    headers::{PushReplyHeader, SendHeader, SendReply},
    message::{SysFlag, property},
};
use bindery_remoting::Connection;

use super::{
    Exchange,
    deposit::{self, Draft, Wait},
    properties::{self, Facts, Rewrite},
    send,
};
use crate::{
    refusal::Refusal,
    state::{Core, canonical},
    store::Appended,
};

/// Time a requester has to take a reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// A reply that was checked and, if so configured, stored.
struct Taken {
    queue_id: i32,
    stored: Option<Appended>,
    push: Result<Push, Refusal>,
}

/// What goes to the requester.
struct Push {
    client_id: String,
    requester: Connection,
    request: Request,
}

/// Serves one reply.
pub(super) fn reply(core: &Arc<Core>, exchange: Exchange) {
    let Exchange {
        connection,
        frame,
        responder,
    } = exchange;
    let Ok(slot) = core.replies.clone().try_acquire_owned() else {
        return responder.send(refused(core, &Refusal::Overload));
    };
    let taken = match take(core, &connection, &frame) {
        Ok(taken) => taken,
        Err(refusal) => {
            tracing::debug!(peer = %connection.peer(), %refusal, "reply refused");
            return responder.send(refused(core, &refusal));
        }
    };
    let core = core.clone();
    core.tasks.clone().spawn(async move {
        let outcome = match taken.push {
            Ok(push) => tokio::select! {
                () = core.stop.cancelled() => Err(Refusal::NotServing),
                outcome = push.run() => outcome,
            },
            Err(refusal) => Err(refusal),
        };
        drop(slot);
        let answer = answer(&core, &outcome, taken.queue_id, taken.stored.as_ref());
        match taken.stored {
            Some(appended) => deposit::settle(&core, &appended, Wait::ForDisk, move |_| {
                responder.send(answer);
            }),
            None => responder.send(answer),
        }
    });
}

fn take(core: &Core, connection: &Connection, frame: &Frame) -> Result<Taken, Refusal> {
    let header: SendHeader<'_> = frame.header()?;
    let topic = send::admit(core, connection, &header)?;
    if frame.body.is_empty() {
        return Err(Refusal::NoBody);
    }
    let stored_in = if header.queue_id < 0 {
        Core::random_queue(topic.write_queue_nums)
    } else {
        header.queue_id
    };
    let stored = core.live().store_reply_message_enable.then(|| {
        store(
            core,
            connection,
            frame,
            &header,
            &topic.topic_name,
            stored_in,
        )
    });
    Ok(Taken {
        queue_id: stored_in,
        // A reply that can't be stored still reaches its requester.
        stored: stored.and_then(Result::ok),
        push: push(core, connection, frame, &header),
    })
}

fn store(
    core: &Core,
    connection: &Connection,
    frame: &Frame,
    header: &SendHeader<'_>,
    topic: &str,
    queue_id: i32,
) -> Result<Appended, Refusal> {
    let properties = header.properties.as_deref().unwrap_or_default();
    let facts = Facts::of(properties);
    let draft = Draft {
        topic,
        queue_id,
        flag: header.flag,
        sys_flag: SysFlag(header.sys_flag),
        born_timestamp: header.born_timestamp,
        born_host: canonical(connection.peer()),
        reconsume_times: header.reconsume_times.unwrap_or(0),
        prepared_transaction_offset: 0,
        body: &frame.body,
        properties,
        delay_level: facts.delay_level,
        slot: deposit::slot(core, &facts)?,
    };
    deposit::append(core, &draft, &place(core), b"")
}

/// What the broker adds to every reply.
fn place(core: &Core) -> [(&'static str, &str); 2] {
    let trace = if core.config.trace_on {
        "true"
    } else {
        "false"
    };
    [
        (property::MSG_REGION, &core.config.region_id),
        (property::TRACE_ON, trace),
    ]
}

fn push(
    core: &Core,
    connection: &Connection,
    frame: &Frame,
    header: &SendHeader<'_>,
) -> Result<Push, Refusal> {
    let properties = header.properties.as_deref().unwrap_or_default();
    let client_id =
        properties::value(properties, property::REPLY_TO_CLIENT).ok_or(Refusal::ReplyToNobody)?;
    let requester = core
        .clients
        .producing(client_id)
        .ok_or_else(|| Refusal::RequesterUnknown {
            client_id: client_id.to_owned(),
        })?;
    let now = core.now();
    let time = now.to_string();
    let [region, trace] = place(core);
    let mut text = Vec::new();
    Rewrite {
        added: &[region, trace, (property::PUSH_REPLY_TIME, &time)],
        ..Rewrite::default()
    }
    .write(properties, &mut text);
    let pushed = PushReplyHeader {
        producer_group: header.producer_group.as_ref().into(),
        topic: header.topic.as_ref().into(),
        default_topic: header.default_topic.as_ref().into(),
        default_topic_queue_nums: header.default_topic_queue_nums,
        queue_id: header.queue_id,
        sys_flag: header.sys_flag,
        born_timestamp: header.born_timestamp,
        flag: header.flag,
        properties: Some(String::from_utf8_lossy(&text)),
        reconsume_times: Some(header.reconsume_times.unwrap_or(0)),
        unit_mode: header.unit_mode.unwrap_or(false),
        born_host: canonical(connection.peer()).to_string().into(),
        store_host: core.address.to_string().into(),
        store_timestamp: now,
    };
    Ok(Push {
        client_id: client_id.to_owned(),
        requester,
        request: Request::new(RequestCode::PUSH_REPLY_MESSAGE_TO_CLIENT)
            .with(&pushed)
            .body(frame.body.clone()),
    })
}

impl Push {
    async fn run(self) -> Result<(), Refusal> {
        let failed = match self.requester.call(self.request, PATIENCE).await {
            Ok(answer) if answer.response_code() == ResponseCode::SUCCESS => return Ok(()),
            Ok(answer) => format!("answered {}", answer.head.code),
            Err(error) => error.to_string(),
        };
        tracing::warn!(
            client = self.client_id,
            failed,
            "reply not taken by its requester"
        );
        Err(Refusal::ReplyNotTaken {
            client_id: self.client_id,
        })
    }
}

/// The replier's answer: whether the requester took it, and where it is stored.
fn answer(
    core: &Core,
    outcome: &Result<(), Refusal>,
    queue_id: i32,
    stored: Option<&Appended>,
) -> Reply {
    let mut reply = match outcome {
        Ok(()) => Reply::ok(),
        Err(refusal) => refusal.reply(),
    };
    if outcome.is_ok() || stored.is_some() {
        let header = SendReply {
            msg_id: stored
                .map_or_else(
                    || "0".to_owned(),
                    |found| found.offset_msg_ids(core.address),
                )
                .into(),
            queue_id,
            queue_offset: stored.map_or(0, |found| found.queue_offset.0),
            ..SendReply::default()
        };
        reply = reply.with(&header);
    }
    send::stamp(&core.config, &mut reply);
    reply
}

fn refused(core: &Core, refusal: &Refusal) -> Reply {
    let mut reply = refusal.reply();
    send::stamp(&core.config, &mut reply);
    reply
}
