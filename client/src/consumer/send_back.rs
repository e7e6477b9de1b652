//! Failed messages: given back to the broker, which delivers them again later or buries them.
//!
//! ```text
//! failed ─▶ 36 to the broker it came from ─ refused or unreachable ─▶ sent as a new message to %RETRY%group
//! ```
//! A failed message counts as done only when one of the two was answered with success.
use bindery_protocol::{headers::SendBackHeader, message::property};

use super::{MessageExt, core::ConsumerCore};
use crate::{
    ClientError,
    producer::{Kind, Outgoing},
};

/// First delay level of a failed message; every further failure is one more.
const FIRST_LEVEL: i32 = 3;

impl ConsumerCore {
    /// Gives a message back. `level` is the delay level (0: by the number of failures, negative: dead letter at once).
    pub(super) async fn send_back(
        &self,
        message: &MessageExt,
        level: i32,
        max_reconsume_times: i32,
    ) -> Result<(), ClientError> {
        let done = match self
            .send_back_to_broker(message, level, max_reconsume_times)
            .await
        {
            Ok(()) => Ok(()),
            Err(error) => {
                tracing::warn!(msg_id = message.msg_id(), %error, "not taken back by its broker, sent to the retry topic");
                self.send_to_retry_topic(message, level, max_reconsume_times)
                    .await
            }
        };
        if done.is_ok() {
            self.retry_expected.notify_one();
        }
        done
    }

    async fn send_back_to_broker(
        &self,
        message: &MessageExt,
        level: i32,
        max_reconsume_times: i32,
    ) -> Result<(), ClientError> {
        let addr = self.client.routes.master(message.broker_name())?;
        let header = SendBackHeader {
            offset: message.physical_offset(),
            group: self.group().into(),
            delay_level: level,
            origin_msg_id: Some(message.msg_id().into()),
            origin_topic: Some(message.stored_topic().into()),
            unit_mode: false,
            max_reconsume_times: Some(max_reconsume_times),
        };
        self.client.send_back(&addr, &header).await
    }

    /// The way of the Java client when its broker refuses. The broker buries the message when it failed too often.
    async fn send_to_retry_topic(
        &self,
        message: &MessageExt,
        level: i32,
        max_reconsume_times: i32,
    ) -> Result<(), ClientError> {
        let failures = message.reconsume_times().saturating_add(1);
        let failures = if level < 0 {
            max_reconsume_times.saturating_add(1)
        } else {
            failures
        };
        let mut properties = message.properties().clone();
        for name in [
            property::MIN_OFFSET,
            property::MAX_OFFSET,
            property::REAL_TOPIC,
            property::REAL_QID,
        ] {
            properties.remove(name);
        }
        if !properties.contains(property::ORIGIN_MESSAGE_ID) {
            properties.put(property::ORIGIN_MESSAGE_ID, message.offset_msg_id());
        }
        if !properties.contains(property::RETRY_TOPIC) {
            properties.put(property::RETRY_TOPIC, message.stored_topic());
        }
        let delay = if level > 0 {
            level
        } else {
            FIRST_LEVEL.saturating_add(message.reconsume_times())
        };
        properties.put(property::DELAY, delay.to_string());
        let outgoing = Outgoing {
            topic: self.retry_topic.clone(),
            body: message.body().clone(),
            properties: properties.encode(),
            sys_flag: 0,
            flag: message.flag(),
            msg_id: message.msg_id().to_owned(),
            retried: Some((failures, max_reconsume_times)),
            kind: Kind::Single,
        };
        self.client.send_inner(&outgoing).await
    }
}
