//! Between the framework's words and the client's: settings, messages both ways, errors.
//!
//! ```text
//! Message (headers) ──outgoing──▶ bindery_client::Message        RocketmqProducer ─▶ ProducerBuilder
//! MessageExt ──received──▶ Message (headers, delivery)           ClientError ─▶ SendError
//! ```

use std::sync::Arc;

use bindery_client::{
    AllocateStrategy, Allocation, ClientError, ConsumeFrom, FilterExpression, MessageExt,
    MessageQueue, Producer, ProducerBuilder, SendResult, SendStatus,
};

use crate::binder::{ConsumerSpec, Selection, StartAt};
use crate::binding::{SendError, SendReceipt};
use crate::config::{self, ProducerType, RocketmqConsumer, RocketmqProducer};
use crate::handler::Delivery;
use crate::headers::{Timing, names};
use crate::message::Message;
use crate::transaction::HalfMessage;

pub(super) fn producer_builder(group: &str, settings: &RocketmqProducer) -> ProducerBuilder {
    Producer::builder(group)
        .send_timeout(settings.send_msg_timeout)
        .retries(usize::try_from(settings.retry_times_when_send_failed).unwrap_or(usize::MAX))
        .async_retries(
            usize::try_from(settings.retry_times_when_send_async_failed).unwrap_or(usize::MAX),
        )
        .retry_when_not_stored_ok(settings.retry_another_broker)
        .compress_over(Some(settings.compress_msg_body_threshold))
        .max_message_size(settings.max_message_size)
}

/// Whether two outputs of one group can share a producer.
pub(super) fn same_client_settings(a: &RocketmqProducer, b: &RocketmqProducer) -> bool {
    a.send_msg_timeout == b.send_msg_timeout
        && a.compress_msg_body_threshold == b.compress_msg_body_threshold
        && a.retry_times_when_send_failed == b.retry_times_when_send_failed
        && a.retry_times_when_send_async_failed == b.retry_times_when_send_async_failed
        && a.retry_another_broker == b.retry_another_broker
        && a.max_message_size == b.max_message_size
        // The group's one listener answers the broker's questions about all of its messages.
        && (a.producer_type == ProducerType::Trans) == (b.producer_type == ProducerType::Trans)
        && a.transaction_listener == b.transaction_listener
}

pub(super) fn filter(selection: &Selection) -> FilterExpression {
    match selection {
        Selection::All => FilterExpression::all(),
        Selection::Tags(tags) => FilterExpression::tags(tags.as_str()),
        Selection::Sql(condition) => FilterExpression::sql(condition.as_str()),
    }
}

pub(super) fn consume_from(start: StartAt) -> ConsumeFrom {
    match start {
        StartAt::First => ConsumeFrom::First,
        StartAt::Last => ConsumeFrom::Last,
        StartAt::Timestamp(millis) => ConsumeFrom::Timestamp(millis),
    }
}

/// How this input's consumer comes to its queues; the configuration's check has refused queues it can't read.
pub(crate) fn allocate(spec: &ConsumerSpec, settings: &RocketmqConsumer) -> Allocation {
    match settings.allocate_strategy {
        config::AllocateStrategy::Averagely => AllocateStrategy::Averagely.into(),
        config::AllocateStrategy::AveragelyByCircle => AllocateStrategy::AveragelyByCircle.into(),
        config::AllocateStrategy::ConsistentHash => Allocation::ConsistentHash {
            places: settings.virtual_nodes,
        },
        config::AllocateStrategy::ByConfig => {
            let named = settings.message_queues.iter().filter_map(|queue| {
                let (broker, id) = queue.rsplit_once(':')?;
                Some((broker.trim(), id.trim().parse::<u16>().ok()?))
            });
            let of_all = named.flat_map(|(broker, id)| {
                let of = move |topic: &String| MessageQueue::new(topic, broker, i32::from(id));
                spec.destinations.iter().map(of)
            });
            Allocation::Fixed(of_all.collect())
        }
        config::AllocateStrategy::MachineRoom => Allocation::MachineRoom {
            rooms: settings.machine_rooms.clone(),
        },
    }
}

/// A message as the client sends it.
pub(super) fn outgoing(
    binding: &str,
    topic: &str,
    message: &Message,
) -> Result<bindery_client::Message, SendError> {
    let headers = message
        .headers()
        .outgoing()
        .map_err(|source| SendError::Header {
            binding: binding.to_owned(),
            source: Box::new(source),
        })?;
    let mut out = bindery_client::Message::new(topic, message.payload().clone())
        .flag(headers.flag)
        .wait_store(headers.wait_store);
    if let Some(tag) = headers.tags {
        out = out.tags(tag);
    }
    if let Some(keys) = headers.keys {
        out = out.keys(keys.split_ascii_whitespace());
    }
    if let Some(level) = headers.delay_level {
        out = out.delay_level(level);
    }
    match headers.timing {
        Some(Timing::At(millis)) => out = out.deliver_at(millis),
        Some(Timing::After(delay)) => out = out.deliver_after(delay),
        None => {}
    }
    Ok(headers
        .properties
        .into_iter()
        .fold(out, |out, (name, value)| out.property(name, value)))
}

/// What every message of one input has in common, shared instead of copied per message.
#[derive(Debug)]
pub(super) struct InputFacts {
    binding: Arc<str>,
    group: Arc<str>,
    redeliveries: Option<u32>,
}

impl InputFacts {
    pub(super) fn of(spec: &ConsumerSpec) -> Self {
        Self {
            binding: spec.binding.as_str().into(),
            group: spec.group.as_str().into(),
            redeliveries: spec.redelivery.limit,
        }
    }

    /// For messages that no input receives.
    pub(super) fn plain(binding: &str, group: &str) -> Self {
        Self {
            binding: binding.into(),
            group: group.into(),
            redeliveries: None,
        }
    }
}

/// A received message as handlers see it.
pub(super) fn incoming(facts: &InputFacts, message: &MessageExt) -> Message {
    let delivery = Delivery {
        binding: Arc::clone(&facts.binding),
        group: Arc::clone(&facts.group),
        topic: message.topic().into(),
        broker_name: message.broker_name().into(),
        queue_id: message.queue_id(),
        queue_offset: message.queue_offset(),
        message_id: message.msg_id().into(),
        born_millis: message.born_timestamp(),
        store_millis: message.store_timestamp(),
        born_host: Some(message.born_host().to_string().into()),
        transaction_id: message.transaction_id().map(Into::into),
        sys_flag: message.stored().sys_flag.0,
        flag: message.flag(),
        reconsume_times: u32::try_from(message.reconsume_times()).unwrap_or(0),
        max_reconsume_times: facts.redeliveries,
        ..Delivery::default()
    };
    let visible = message
        .properties()
        .iter()
        .filter(|(name, _)| is_visible(name));
    Message::received(message.body().clone(), visible, Arc::new(delivery))
}

/// A half message of this process as its local transaction sees it.
pub(super) fn half(message: &bindery_client::HalfMessage) -> HalfMessage {
    let (sent, id) = (message.sent(), message.transaction_id());
    let message = message.message();
    let delivery = Delivery {
        topic: message.topic().into(),
        broker_name: sent.queue.broker_name.as_str().into(),
        queue_id: sent.queue.queue_id,
        queue_offset: sent.queue_offset,
        message_id: sent.msg_id.as_str().into(),
        transaction_id: Some(id.into()),
        ..Delivery::default()
    };
    let visible = message
        .properties()
        .iter()
        .filter(|(name, _)| is_visible(name));
    HalfMessage::new(
        Message::received(message.body().clone(), visible, Arc::new(delivery)),
        id,
    )
}

/// Whether handlers see a property: their own ones, tag and keys, but not what RocketMQ keeps its books with.
fn is_visible(name: &str) -> bool {
    !matches!(name, names::DELAY | names::WAIT) && names::reserved(name).is_none()
}

pub(super) fn receipt(binding: &str, result: SendResult) -> Result<SendReceipt, SendError> {
    let receipt = SendReceipt {
        destination: result.queue.topic,
        msg_id: result.msg_id,
        offset_msg_id: result.offset_msg_id,
        broker: result.queue.broker_name,
        queue_id: result.queue.queue_id,
        queue_offset: result.queue_offset,
        partition: None,
    };
    let status = match result.status {
        SendStatus::Ok => return Ok(receipt),
        SendStatus::FlushDiskTimeout => "FLUSH_DISK_TIMEOUT",
        SendStatus::FlushSlaveTimeout => "FLUSH_SLAVE_TIMEOUT",
        SendStatus::SlaveNotAvailable => "SLAVE_NOT_AVAILABLE",
    };
    tracing::debug!(binding, status, msg_id = %receipt.msg_id, "stored less safely than asked");
    Err(SendError::NotStored {
        status,
        receipt: Box::new(receipt),
    })
}

pub(super) fn send_error(binding: &str, topic: &str, error: ClientError) -> SendError {
    match error {
        ClientError::SendFailed {
            source,
            attempts,
            brokers,
            ..
        } => {
            tracing::debug!(binding, topic, attempts, ?brokers, "send failed");
            send_error(binding, topic, *source)
        }
        ClientError::NoNameServer | ClientError::NameServersUnreachable { .. } => {
            SendError::NoNameServer(Box::new(error))
        }
        ClientError::TopicNotFound { .. } | ClientError::NoQueue { .. } => SendError::NoRoute {
            topic: topic.to_owned(),
            source: Box::new(error),
        },
        ClientError::Connect { .. }
        | ClientError::Lost { .. }
        | ClientError::BrokerUnknown { .. } => SendError::Connect(Box::new(error)),
        ClientError::Timeout { .. } => SendError::Timeout {
            destination: topic.to_owned(),
            source: Box::new(error),
        },
        ClientError::Broker {
            code, ref remark, ..
        } => SendError::Broker {
            code: code.0,
            remark: remark.clone(),
            retryable: error.is_retryable(),
        },
        ClientError::ShutDown { .. } => SendError::Closed {
            binding: binding.to_owned(),
        },
        other => SendError::Client(Box::new(other)),
    }
}

/// Names a queue for logs.
pub(super) fn queue_name(queue: &MessageQueue) -> String {
    format!("{}@{}:{}", queue.topic, queue.broker_name, queue.queue_id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::config::{Config, LoadOptions};

    /// The client's settings behind this producer section.
    fn settings(producer: &str) -> String {
        let yaml = format!(
            "spring.cloud.stream:\n  bindings.out.destination: t\n  rocketmq.bindings.out.producer: {{ {producer} }}\n"
        );
        let loaded = Config::load(LoadOptions::from_text(yaml)).unwrap();
        let binding = loaded.config.rocketmq.binding("out");
        format!("{:?}", producer_builder("g", &binding.producer))
    }

    #[test]
    fn every_key_about_retries_reaches_the_client() {
        let plain = settings("");
        for (written, setting, default) in [
            ("retryTimesWhenSendFailed: 5", "retries: 5", "retries: 2"),
            (
                "retryTimesWhenSendAsyncFailed: 0",
                "async_retries: 0",
                "async_retries: 2",
            ),
            ("sendMsgTimeout: 5000", "timeout: 5s", "timeout: 3s"),
            ("sendMessageTimeout: 5000", "timeout: 5s", "timeout: 3s"),
            (
                "retryAnotherBrokerWhenNotStoreOK: true",
                "retry_when_not_stored_ok: true",
                "retry_when_not_stored_ok: false",
            ),
            (
                "retryAnotherBrokerWhenNotStoreOk: true",
                "retry_when_not_stored_ok: true",
                "retry_when_not_stored_ok: false",
            ),
            (
                "retry-next-server: true",
                "retry_when_not_stored_ok: true",
                "retry_when_not_stored_ok: false",
            ),
            (
                "maxMessageSize: 1KB",
                "max_message_size: 1024",
                "max_message_size: 4194304",
            ),
        ] {
            assert!(plain.contains(&format!(" {default},")), "{plain}");
            let set = settings(written);
            assert!(set.contains(&format!(" {setting},")), "{written}: {set}");
        }
    }
}
