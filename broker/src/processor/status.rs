//! The offsets a group's consumers hold in memory: 223, gathered by asking each of them (221).
//!
//! ```text
//! operator ─223─▶ broker ─221─▶ every consumer of the group, or the one named ─▶ offsets by client id ─▶ operator
//! ```
use std::{sync::Arc, time::Duration};

use bindery_protocol::{
    bodies::{self, ConsumerStatusBody},
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply, Request},
    headers::ConsumerStatusHeader,
};
use tokio::task::JoinSet;

use super::{Answer, Exchange, answer};
use crate::{client::Member, refusal::Refusal, state::Core};

/// Time a consumer has to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// First client version that understands 221 (`V3_0_7_SNAPSHOT`).
const UNDERSTOOD_SINCE: i32 = 28;

/// 223: asks, and answers when all consumers have or their time is over. A silent consumer is left out.
pub(super) fn consumer_status(core: &Arc<Core>, exchange: Exchange) {
    let Exchange {
        frame, responder, ..
    } = exchange;
    let asked = frame.request_code();
    let questions = match prepare(core, &frame) {
        Ok(questions) => questions,
        Err(refusal) => return answer(responder, asked, Err(refusal)),
    };
    let Ok(slot) = core.workers.clone().try_acquire_owned() else {
        return answer(responder, asked, Err(Refusal::Overload));
    };
    let stop = core.stop.clone();
    core.tasks.spawn(async move {
        let gathered = tokio::select! {
            () = stop.cancelled() => Err(Refusal::NotServing),
            gathered = gather(questions) => gathered,
        };
        drop(slot);
        answer(responder, asked, gathered);
    });
}

/// The consumers to ask, and with what.
struct Questions {
    consumers: Vec<Member>,
    header: ConsumerStatusHeader<'static>,
}

fn prepare(core: &Core, frame: &Frame) -> Result<Questions, Refusal> {
    let header: ConsumerStatusHeader<'_> = frame.header()?;
    let group: &str = &header.group;
    let only = header.client_addr.as_deref().filter(|id| !id.is_empty());
    let consumers: Vec<Member> = core
        .clients
        .with_consumers(group, |found| {
            found
                .members()
                .filter(|member| only.is_none_or(|only| member.client_id == only))
                .cloned()
                .collect()
        })
        .unwrap_or_default();
    if consumers.is_empty() {
        return Err(match only {
            Some(client_id) => Refusal::ClientOffline {
                group: group.to_owned(),
                client_id: client_id.to_owned(),
            },
            None => Refusal::ConsumerOffline {
                group: group.to_owned(),
            },
        });
    }
    Ok(Questions {
        consumers,
        header: header.into_owned(),
    })
}

async fn gather(questions: Questions) -> Answer {
    let mut asking = JoinSet::new();
    for member in questions.consumers {
        if member.version < UNDERSTOOD_SINCE {
            tracing::warn!(
                client = member.client_id,
                version = member.version,
                "consumer too old to be asked for its offsets"
            );
            continue;
        }
        let request =
            Request::new(RequestCode::GET_CONSUMER_STATUS_FROM_CLIENT).with(&questions.header);
        asking.spawn(async move {
            let said = member.connection.call(request, PATIENCE).await;
            (member.client_id, said)
        });
    }
    let mut body = ConsumerStatusBody::default();
    while let Some(asked) = asking.join_next().await {
        let Ok((client_id, said)) = asked else {
            tracing::error!("asking a consumer for its offsets panicked");
            continue;
        };
        match said {
            Ok(frame) if frame.response_code() == ResponseCode::SUCCESS => {
                let own: ConsumerStatusBody = bodies::from_slice(&frame.body)?;
                body.consumer_table
                    .insert(client_id, own.message_queue_table);
            }
            Ok(frame) => {
                tracing::warn!(client = client_id, remark = ?frame.head.remark, "consumer did not tell its offsets");
            }
            Err(error) => tracing::warn!(client = client_id, %error, "consumer silent"),
        }
    }
    Ok(Reply::ok().body(bodies::to_vec(&body)?))
}
