//! One input on RocketMQ: a push consumer whose listener hands each message to the delivery pipeline.
//!
//! ```text
//! PushConsumer ─▶ Sink ─▶ Deliver ─▶ Settlement ─┬─ concurrent: Success · ReconsumeLater with a delay level
//!                                                └─ ordered: Success · Suspend; a rejected message is marked for burial
//! ```

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bindery_client::{
    Client, ConcurrentContext, ConcurrentListener, ConcurrentStatus, Listener, MessageExt,
    MessageModel, OrderlyContext, OrderlyListener, OrderlyStatus, PushConsumer,
    PushConsumerBuilder,
};

use super::client_failed;
use super::translate::{InputFacts, allocate, consume_from, filter, incoming};
use crate::binder::{
    AssignedQueue, Audience, BinderError, ConsumerBinding, ConsumerSpec, Deliver, Order,
    Redelivery, Resume, Settlement, levels,
};
use crate::config::RocketmqConsumer;

/// The delay level that makes a failed message a dead letter at once.
const DEAD_LETTER: i32 = -1;

/// An input that consumes.
#[derive(Debug)]
pub(super) struct RocketmqConsuming {
    consumer: PushConsumer,
}

impl RocketmqConsuming {
    pub(super) async fn start(
        client: &Client,
        spec: ConsumerSpec,
        settings: &RocketmqConsumer,
        start_like_java: bool,
        sink: Arc<dyn Deliver>,
    ) -> Result<Self, BinderError> {
        honoured(&spec, settings)?;
        let group = spec.group.clone();
        let builder = builder(&spec, settings)
            .client(client)
            .start_like_java(start_like_java);
        let listener = listener(&spec, sink);
        let consumer = builder
            .listener(listener)
            .start()
            .await
            .map_err(client_failed("starting consumer group", &group))?;
        Ok(Self { consumer })
    }
}

#[async_trait]
impl ConsumerBinding for RocketmqConsuming {
    async fn pause(&self) {
        self.consumer.pause();
    }

    async fn resume(&self) {
        self.consumer.resume();
    }

    async fn assignment(&self) -> Vec<AssignedQueue> {
        let queues = self.consumer.assignment().into_iter();
        queues
            .map(|queue| AssignedQueue {
                destination: queue.topic,
                broker: queue.broker_name,
                queue_id: queue.queue_id,
            })
            .collect()
    }

    async fn stop(&self) -> Result<(), BinderError> {
        self.consumer.shutdown().await;
        Ok(())
    }
}

/// Fails for settings that the client has no counterpart for: ignoring them would be silence about a wish.
fn honoured(spec: &ConsumerSpec, settings: &RocketmqConsumer) -> Result<(), BinderError> {
    let defaults = RocketmqConsumer::default();
    let limits_by_topic = settings.pull_threshold_for_topic.is_some()
        || settings.pull_threshold_size_for_topic_mib.is_some();
    let what = if limits_by_topic {
        "flow control by topic (`pull-threshold-for-topic`); use `pull-threshold-for-queue`"
    } else if settings.pull_delay_when_exception != defaults.pull_delay_when_exception {
        "setting for the pause after a failed pull (`pull-time-delay-mills-when-exception`)"
    } else {
        return Ok(());
    };
    Err(BinderError::Unsupported {
        binding: spec.binding.clone(),
        binder: "rocketmq",
        what,
    })
}

fn builder(spec: &ConsumerSpec, settings: &RocketmqConsumer) -> PushConsumerBuilder {
    let mebibytes =
        usize::try_from(settings.pull_threshold_size_for_queue_mib).unwrap_or(usize::MAX);
    let model = match spec.audience {
        Audience::Shared => MessageModel::Clustering,
        Audience::Everyone => MessageModel::Broadcasting,
    };
    let builder = PushConsumer::builder(&spec.group)
        .consume_from(consume_from(spec.start))
        .reset_on_start(spec.resume == Resume::Start)
        .message_model(model)
        .allocate(allocate(spec, settings))
        .concurrency(spec.concurrency)
        .pull_batch_size(i32::try_from(settings.pull_batch_size).unwrap_or(i32::MAX))
        .pull_interval(settings.pull_interval)
        .max_cached_messages(
            usize::try_from(settings.pull_threshold_for_queue).unwrap_or(usize::MAX),
        )
        .max_cached_bytes(mebibytes.saturating_mul(1024 * 1024))
        .max_span(i64::from(settings.consume_max_span))
        .max_reconsume_times(
            spec.redelivery
                .limit
                .map(|limit| i32::try_from(limit).unwrap_or(i32::MAX)),
        )
        .delay_level_when_next_consume(spec.redelivery.delay_level)
        .suspend_current_queue(spec.redelivery.suspend)
        .consume_timeout(settings.consume_timeout)
        .shutdown_grace(spec.grace);
    spec.destinations.iter().fold(builder, |builder, topic| {
        builder.subscribe(topic, filter(&spec.selection))
    })
}

fn listener(spec: &ConsumerSpec, sink: Arc<dyn Deliver>) -> Listener {
    let facts = InputFacts::of(spec);
    match spec.order {
        Order::Concurrent => Listener::concurrent(ConcurrentSink {
            facts,
            redelivery: spec.redelivery,
            sink,
        }),
        Order::PerQueue => Listener::orderly(OrderedSink { facts, sink }),
    }
}

struct ConcurrentSink {
    facts: InputFacts,
    redelivery: Redelivery,
    sink: Arc<dyn Deliver>,
}

impl ConcurrentListener for ConcurrentSink {
    async fn consume(
        &self,
        batch: Vec<MessageExt>,
        context: &ConcurrentContext,
    ) -> ConcurrentStatus {
        for (done, message) in batch.iter().enumerate() {
            let level = match self.sink.deliver(incoming(&self.facts, message)).await {
                Settlement::Ack => continue,
                Settlement::Retry(None) => self.redelivery.delay_level,
                Settlement::Retry(Some(after)) => levels::level_for(after),
                Settlement::Reject => DEAD_LETTER,
                // The broker takes it back at once for another member; the shortest level is as close as it gets.
                Settlement::Return => 1,
            };
            context.set_delay_level(level);
            context.set_done(done);
            return if done == 0 {
                ConcurrentStatus::ReconsumeLater
            } else {
                ConcurrentStatus::Success
            };
        }
        ConcurrentStatus::Success
    }
}

struct OrderedSink {
    facts: InputFacts,
    sink: Arc<dyn Deliver>,
}

impl OrderlyListener for OrderedSink {
    async fn consume(&self, batch: Vec<MessageExt>, context: &OrderlyContext) -> OrderlyStatus {
        for message in &batch {
            match self.sink.deliver(incoming(&self.facts, message)).await {
                Settlement::Ack => {}
                Settlement::Retry(pause) => return OrderlyStatus::Suspend(pause),
                Settlement::Return => return OrderlyStatus::Suspend(Some(Duration::ZERO)),
                Settlement::Reject => context.reject(message),
            }
        }
        OrderlyStatus::Success
    }
}
