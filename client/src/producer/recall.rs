//! Taking back a message that was sent for a later time.
//!
//! ```text
//! SendResult::recall_handle ─▶ Producer::recall ─▶ broker named in it ─▶ RECALL_MESSAGE (370) ─▶ message id
//! ```
use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::{RecallHeader, RecallReply},
    message::RecallHandle,
    names,
};

use super::Producer;
use crate::{
    ClientError, MessageIllegal,
    instance::{Peer, read_header, refusal},
};

impl Producer {
    /// Takes a message back before its time; gives back its id. Brokers that allow it (`recallMessageEnable`) do not look whether
    /// the message is still there, so success says no more than that it won't come from now on.
    ///
    /// # Errors
    /// [`MessageIllegal::RecallHandle`] and [`MessageIllegal::RecallTopic`] before anything is sent;
    /// [`ClientError::Broker`] with code 16 when the broker does not allow it and 604 when the time is past; and the failures of any call.
    pub async fn recall(&self, handle: &str) -> Result<String, ClientError> {
        self.running()?;
        let parsed = RecallHandle::parse(handle).map_err(MessageIllegal::from)?;
        if names::is_retry_topic(&parsed.topic) || names::is_dlq_topic(&parsed.topic) {
            let topic = parsed.topic;
            return Err(MessageIllegal::RecallTopic { topic }.into());
        }
        let inner = &self.inner;
        let (client, settings) = (&inner.client.shared, &inner.sender.settings);
        // Another process may have sent it: the broker is known once the topic's route is.
        client
            .publish_route(&parsed.topic, settings.default_topic_queues)
            .await?;
        let addr = client.routes.master(&parsed.broker_name)?;
        let header = RecallHeader {
            producer_group: Some((&*inner.sender.group).into()),
            topic: (&*parsed.topic).into(),
            recall_handle: handle.into(),
        };
        let request = Request::new(RequestCode::RECALL_MESSAGE).with(&header);
        let answer = client
            .call(Peer::Broker, &addr, request, settings.timeout)
            .await?;
        if answer.response_code() != ResponseCode::SUCCESS {
            return Err(refusal(&addr, &answer));
        }
        let reply: RecallReply<'_> = read_header(&addr, &answer)?;
        Ok(reply.msg_id.into_owned())
    }
}
