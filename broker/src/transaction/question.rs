//! The question about a half message, and to whom it goes.
//!
//! ```text
//! copy of the half message ─▶ Question ─▶ CHECK_TRANSACTION_STATE (39), one-way ─▶ the group's producers in turn
//! ```
use bindery_protocol::{
    codes::RequestCode,
    frame::Request,
    headers::CheckTransactionHeader,
    message::{PhysicalOffset, QueueOffset, id, property, record},
    names,
};

use super::half::{self, HalfMessage};
use crate::{state::Core, store::Appended};

/// Producers that are tried with one question.
const TRIES: usize = 3;

/// A question to a producer group.
pub(super) struct Question {
    group: String,
    key: String,
    body: Vec<u8>,
    queue_offset: QueueOffset,
    physical_offset: PhysicalOffset,
}

impl Question {
    /// About a half message that was written again with these properties: the copy's record, under its real topic.
    pub(super) fn about(
        core: &Core,
        half: &HalfMessage<'_>,
        properties: &[u8],
        copy: &Appended,
    ) -> Option<Self> {
        // Java's broker clears the flag in memory before it builds the body.
        let properties = half::with(properties, property::WAIT, "false");
        let message = half.again(half.topic, half.queue_id, core.address, &properties);
        let mut body = Vec::with_capacity(record::encoded_len(&message));
        if let Err(error) = record::encode(&message, &mut body) {
            tracing::warn!(key = half.key, %error, "half message doesn't fit a question");
            return None;
        }
        record::patch(
            &mut body,
            copy.queue_offset,
            copy.physical_offset,
            copy.store_timestamp,
        );
        Some(Self {
            group: half.group.to_owned(),
            key: half.key.to_owned(),
            body,
            queue_offset: copy.queue_offset,
            physical_offset: copy.physical_offset,
        })
    }

    fn request(&self, core: &Core) -> Request {
        let header = CheckTransactionHeader {
            topic: Some(names::TRANS_HALF_TOPIC.into()),
            tran_state_table_offset: self.queue_offset.0,
            commit_log_offset: self.physical_offset.0,
            msg_id: Some(self.key.as_str().into()),
            transaction_id: Some(self.key.as_str().into()),
            offset_msg_id: Some(id::offset_msg_id(core.address, self.physical_offset).into()),
        };
        let mut request = Request::new(RequestCode::CHECK_TRANSACTION_STATE).with(&header);
        request.ext.put("bname", &core.config.broker_name);
        request.body(self.body.clone())
    }
}

/// Deals questions out to the members of producer groups in turn.
#[derive(Default)]
pub(super) struct Questions {
    turn: usize,
}

impl Questions {
    /// Asks one producer of the group that can be reached; the answer is a request of its own (37).
    pub(super) fn ask(&mut self, core: &Core, question: &Question) {
        let mut members = core.clients.producers(&question.group);
        members.sort_by_key(|member| member.connection.id());
        self.turn = self.turn.wrapping_add(1);
        for attempt in 0..TRIES.min(members.len()) {
            let member = &members[self.turn.wrapping_add(attempt) % members.len()];
            match member.connection.oneway(question.request(core)) {
                Ok(()) => {
                    tracing::debug!(
                        group = question.group,
                        key = question.key,
                        client = member.client_id,
                        "transaction asked about"
                    );
                    return;
                }
                Err(error) => {
                    tracing::debug!(group = question.group, client = member.client_id, %error, "producer not asked");
                }
            }
        }
        tracing::warn!(
            group = question.group,
            key = question.key,
            "no producer of the group to ask about a transaction"
        );
    }
}
