//! What brokers ask of us over our own connections.
//!
//! ```text
//! 40 members changed ─▶ rebalance     220 reset ─▶ new position        221 positions in memory
//! 307 running info ──▶ answer          309 consume this message now ─▶ listener ─▶ answer
//! 326 a reply ─▶ the request that waits for it
//! 39 what became of this half message? ─▶ transaction listener ─▶ 37 to the same broker
//! ```
use std::sync::{Arc, Weak};

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::{Frame, HeaderError, Reply},
    headers::{
        CheckTransactionHeader, ConsumeDirectlyHeader, ConsumerGroupHeader, ConsumerStatusHeader,
        ResetOffsetHeader, RunningInfoHeader,
    },
    message::{property, record},
};
use bindery_remoting::{Connection, Responder, Service};

use super::{Peer, Shared, requests::ReplyError};
use crate::{
    ClientError, MessageExt, body,
    consumer::{Origin, core::ConsumerCore},
    producer::Question,
};

/// Receives the requests of one connection. Weak, since the connection must not keep the client alive.
pub(super) struct Inbound {
    client: Weak<Shared>,
    peer: Peer,
    addr: String,
}

impl Inbound {
    pub(super) fn new(client: Weak<Shared>, peer: Peer, addr: &str) -> Self {
        let addr = addr.to_owned();
        Self { client, peer, addr }
    }
}

impl Service for Inbound {
    fn request(&self, connection: &Connection, frame: Frame, responder: Responder) {
        let Some(client) = self.client.upgrade() else {
            return;
        };
        let code = frame.request_code();
        if let Err(error) = client.called_back(&self.addr, &frame, responder) {
            tracing::warn!(peer = %connection.peer(), code = code.0, %error, "request of a broker not understood");
        }
    }

    fn disconnected(&self, connection: &Connection) {
        let Some(client) = self.client.upgrade() else {
            return;
        };
        if self.peer == Peer::Broker && !client.stop.is_cancelled() {
            tracing::info!(peer = %connection.peer(), "connection to a broker ended");
            client.disconnected(&self.addr);
        }
    }
}

/// Why a callback can't be served.
#[derive(Debug, thiserror::Error)]
enum CallbackError {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Body(#[from] ClientError),
    #[error(transparent)]
    Reply(#[from] ReplyError),
}

impl Shared {
    /// Runs on the connection's reader task: what takes longer is handed to a task.
    fn called_back(
        self: &Arc<Self>,
        addr: &str,
        frame: &Frame,
        responder: Responder,
    ) -> Result<(), CallbackError> {
        match frame.request_code() {
            RequestCode::CHECK_TRANSACTION_STATE => self.asked_about_transaction(addr, frame)?,
            RequestCode::NOTIFY_CONSUMER_IDS_CHANGED => {
                let header: ConsumerGroupHeader<'_> = frame.header()?;
                if let Some(consumer) = self.consumer(&header.consumer_group) {
                    consumer.rebalance_soon();
                }
            }
            RequestCode::RESET_CONSUMER_CLIENT_OFFSET => {
                let header: ResetOffsetHeader<'_> = frame.header()?;
                let targets = super::calls::reset_targets(&frame.body)?;
                if let Some(consumer) = self.consumer(&header.group) {
                    tracing::info!(group = %header.group, topic = %header.topic, queues = targets.len(), "reset by the broker");
                    self.tasks
                        .spawn(async move { consumer.reset(targets).await });
                }
            }
            RequestCode::GET_CONSUMER_STATUS_FROM_CLIENT => {
                let header: ConsumerStatusHeader<'_> = frame.header()?;
                self.answer_about(&header.group, responder, |consumer| {
                    consumer.status_body(&header.topic)
                });
            }
            RequestCode::GET_CONSUMER_RUNNING_INFO => {
                let header: RunningInfoHeader<'_> = frame.header()?;
                self.answer_about(&header.consumer_group, responder, |consumer| {
                    consumer.running_info_body()
                });
            }
            RequestCode::CONSUME_MESSAGE_DIRECTLY => {
                let header: ConsumeDirectlyHeader<'_> = frame.header()?;
                let Some(consumer) = self.consumer(&header.consumer_group) else {
                    responder.send(unknown_group(&header.consumer_group));
                    return Ok(());
                };
                let body = frame.body.clone();
                let broker = header.broker_name.unwrap_or_default().into_owned();
                self.tasks.spawn(async move {
                    let reply = consumer.consume_directly(body, &broker).await;
                    responder.send(reply.unwrap_or_else(|error| {
                        Reply::error(ResponseCode::SYSTEM_ERROR, error.to_string())
                    }));
                });
            }
            RequestCode::PUSH_REPLY_MESSAGE_TO_CLIENT => {
                let taken = self.replied(addr, frame);
                responder.send(match &taken {
                    Ok(()) => Reply::ok(),
                    Err(error) => Reply::error(ResponseCode::SYSTEM_ERROR, error.to_string()),
                });
                taken?;
            }
            other => tracing::debug!(code = other.0, "request of a broker ignored"),
        }
        Ok(())
    }

    /// The answer is a request of our own; this one has none.
    fn asked_about_transaction(
        self: &Arc<Self>,
        addr: &str,
        frame: &Frame,
    ) -> Result<(), CallbackError> {
        let unreadable = |source| ClientError::Decode {
            what: "the half message of a check".to_owned(),
            source,
        };
        let header: CheckTransactionHeader<'_> = frame.header()?;
        let (stored, _) =
            record::decode(&frame.body).map_err(|error| unreadable(Box::new(error)))?;
        let Some(group) = stored.properties.get(property::PGROUP).map(str::to_owned) else {
            tracing::warn!(addr, "transaction check without a producer group");
            return Ok(());
        };
        let Some(checks) = self.checks(&group) else {
            tracing::warn!(
                addr,
                group,
                "transaction check for a group without transactions here"
            );
            return Ok(());
        };
        let brokers = self.routes.brokers_at(addr);
        let origin = Origin {
            broker_name: brokers.first().map_or("", String::as_str),
            min_offset: 0,
            max_offset: 0,
            namespace: self.config.namespace.as_deref(),
        };
        let message =
            MessageExt::received(stored, &origin).map_err(|error| unreadable(Box::new(error)))?;
        let question = Question {
            group,
            addr: addr.to_owned(),
            header: header.into_owned(),
            message,
        };
        checks.take(Arc::clone(self), question);
        Ok(())
    }

    fn answer_about<T: serde::Serialize>(
        &self,
        group: &str,
        responder: Responder,
        content: impl FnOnce(&Arc<ConsumerCore>) -> T,
    ) {
        let reply = match self.consumer(group) {
            None => unknown_group(group),
            Some(consumer) => match body::encode("an answer to a broker", &content(&consumer)) {
                Ok(body) => Reply::ok().body(body),
                Err(error) => Reply::error(ResponseCode::SYSTEM_ERROR, error.to_string()),
            },
        };
        responder.send(reply);
    }
}

fn unknown_group(group: &str) -> Reply {
    Reply::error(
        ResponseCode::SYSTEM_ERROR,
        format!("The Consumer Group <{group}> not exist in this consumer"),
    )
}
