//! What brokers and administrators ask of a running consumer: positions, running info, a message to handle now, a reset.
use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use bindery_protocol::{
    bodies::{
        ConsumeDirectlyResult, ConsumeResult, ConsumerRunningInfo, ConsumerStatusBody,
        MessageQueue, ProcessQueueInfo,
    },
    frame::Reply,
    message::record,
};
use bytes::Bytes;
use futures_util::FutureExt;

use super::{
    MessageExt, MessageModel, Origin,
    core::ConsumerCore,
    listener::{ConcurrentContext, ConcurrentStatus, ListenerKind, OrderlyContext, OrderlyStatus},
    process_queue::ProcessQueue,
};
use crate::{Client, ClientError, body, namespace};

/// Name of the protocol version we speak, as Java prints it.
const VERSION_NAME: &str = "V5_3_3";

impl ConsumerCore {
    /// Moves queues to new positions (code 220). Each waits for its running handlers, whose results no longer count.
    pub(crate) async fn reset(self: Arc<Self>, targets: BTreeMap<MessageQueue, i64>) {
        // One reset at a time, or two could interleave on a queue.
        let _one_at_a_time = self.resetting.lock().await;
        for queue in self.held() {
            let Some(offset) = targets.get(&queue.mq).copied() else {
                continue;
            };
            queue.end_ownership();
            queue.is_idle().await;
            queue.begin(offset, None);
            self.save(std::slice::from_ref(&queue)).await;
            tracing::info!(queue = %queue.mq, group = self.group(), offset, "position reset");
        }
    }

    /// Moves the group to the first messages of a topic stored at or after `timestamp`, and this member's queues at once.
    pub(super) async fn seek_to_time(
        self: &Arc<Self>,
        client: &Client,
        topic: &str,
        timestamp: i64,
    ) -> Result<BTreeMap<MessageQueue, i64>, ClientError> {
        let space = self.client.config.namespace.as_deref();
        let moved = match self.settings.model {
            MessageModel::Clustering => {
                let admin = client.admin();
                admin
                    .reset_offset(self.plain_group(), topic, timestamp)
                    .await?
            }
            MessageModel::Broadcasting => self.search(topic, timestamp).await?,
        };
        let ours = moved.iter().map(|(queue, offset)| {
            let topic = namespace::wrap(space, &queue.topic);
            let wrapped = MessageQueue::new(topic, queue.broker_name.clone(), queue.queue_id);
            (wrapped, *offset)
        });
        Arc::clone(self).reset(ours.collect()).await;
        Ok(moved)
    }

    /// Where the messages of this time begin in each of our queues of a topic.
    async fn search(
        &self,
        topic: &str,
        timestamp: i64,
    ) -> Result<BTreeMap<MessageQueue, i64>, ClientError> {
        let wrapped = namespace::wrap(self.client.config.namespace.as_deref(), topic);
        let mut found = BTreeMap::new();
        for queue in self.held().iter().filter(|queue| queue.mq.topic == wrapped) {
            let mq = &queue.mq;
            let addr = self.client.routes.master(&mq.broker_name)?;
            let offset = self.client.search_offset(&addr, mq, timestamp).await?;
            let plain = MessageQueue::new(topic, mq.broker_name.clone(), mq.queue_id);
            found.insert(plain, offset);
        }
        Ok(found)
    }

    /// Moves one queue of this member.
    pub(super) async fn seek(
        self: &Arc<Self>,
        queue: &MessageQueue,
        offset: i64,
    ) -> Result<(), ClientError> {
        let topic = namespace::wrap(self.client.config.namespace.as_deref(), &queue.topic);
        let wrapped = MessageQueue::new(topic, queue.broker_name.clone(), queue.queue_id);
        let held = self.held();
        let ours = |held: &&Arc<ProcessQueue>| {
            held.mq == wrapped && held.has_begun() && !held.leave.is_cancelled()
        };
        if held.iter().find(ours).is_none() {
            return Err(ClientError::NotAssigned {
                queue: queue.clone(),
            });
        }
        let addr = self.client.routes.master(&wrapped.broker_name)?;
        let min = self.client.min_offset(&addr, &wrapped).await?;
        let max = self.client.max_offset(&addr, &wrapped).await?;
        if !(min..=max).contains(&offset) {
            return Err(ClientError::OffsetOutside { offset, min, max });
        }
        Arc::clone(self)
            .reset(BTreeMap::from([(wrapped, offset)]))
            .await;
        Ok(())
    }

    /// Answer to 221: positions in memory of one topic.
    pub(crate) fn status_body(&self, topic: &str) -> ConsumerStatusBody {
        let held = self.held();
        let of_topic = held.iter().filter(|queue| queue.mq.topic == topic);
        let message_queue_table = of_topic
            .filter_map(|queue| Some((queue.mq.clone(), queue.committed()?)))
            .collect();
        ConsumerStatusBody {
            message_queue_table,
            ..ConsumerStatusBody::default()
        }
    }

    /// Answer to 307.
    pub(crate) fn running_info_body(&self) -> ConsumerRunningInfo {
        let now = self.now();
        let mq_table = self
            .held()
            .iter()
            .map(|queue| (queue.mq.clone(), queue_info(queue, now)))
            .collect();
        ConsumerRunningInfo {
            mq_table,
            properties: self.running_properties(),
            subscription_set: self.subscription_data(),
            ..ConsumerRunningInfo::default()
        }
    }

    fn running_properties(&self) -> BTreeMap<String, String> {
        let settings = &self.settings;
        let retries = settings.max_reconsume_times.unwrap_or(-1);
        let pairs = [
            (
                ConsumerRunningInfo::PROP_NAMESERVER_ADDR,
                self.client.config.name_servers.join(";"),
            ),
            (
                ConsumerRunningInfo::PROP_CONSUME_TYPE,
                "CONSUME_PASSIVELY".to_owned(),
            ),
            (
                ConsumerRunningInfo::PROP_CONSUME_ORDERLY,
                self.is_orderly().to_string(),
            ),
            (
                ConsumerRunningInfo::PROP_THREADPOOL_CORE_SIZE,
                settings.concurrency.to_string(),
            ),
            (
                ConsumerRunningInfo::PROP_CONSUMER_START_TIMESTAMP,
                self.started_at.to_string(),
            ),
            (
                ConsumerRunningInfo::PROP_CLIENT_VERSION,
                VERSION_NAME.to_owned(),
            ),
            ("consumerGroup", self.plain_group().to_owned()),
            ("consumeThreadMax", settings.concurrency.to_string()),
            (
                "consumeMessageBatchMaxSize",
                settings.batch_size.to_string(),
            ),
            ("pullBatchSize", settings.pull_batch_size.to_string()),
            (
                "pullThresholdForQueue",
                settings.limits.messages.to_string(),
            ),
            ("maxReconsumeTimes", retries.to_string()),
        ];
        pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Runs the listener on one message outside of any queue (code 309).
    pub(crate) async fn consume_directly(
        &self,
        record: Bytes,
        broker_name: &str,
    ) -> Result<Reply, ClientError> {
        let unreadable = |source| ClientError::Decode {
            what: "the message to consume".to_owned(),
            source,
        };
        let (stored, _) = record::decode(&record).map_err(|error| unreadable(Box::new(error)))?;
        let namespace = self.client.config.namespace.as_deref();
        let origin = Origin {
            broker_name,
            min_offset: 0,
            max_offset: 0,
            namespace,
        };
        let message =
            MessageExt::received(stored, &origin).map_err(|error| unreadable(Box::new(error)))?;
        let started = Instant::now();
        let (consume_result, auto_commit) = self.run_directly(message).await;
        let result = ConsumeDirectlyResult {
            auto_commit,
            consume_result,
            order: self.is_orderly(),
            remark: None,
            spent_time_mills: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
        };
        Ok(Reply::ok().body(body::encode("the result of a message", &result)?))
    }

    async fn run_directly(&self, message: MessageExt) -> (ConsumeResult, bool) {
        let queue = message.queue();
        match &self.listener {
            ListenerKind::Concurrent(listener) => {
                let context = ConcurrentContext::new(queue);
                let ended = AssertUnwindSafe(listener.consume(vec![message], &context))
                    .catch_unwind()
                    .await;
                let result = match ended {
                    Ok(ConcurrentStatus::Success) => ConsumeResult::Success,
                    Ok(ConcurrentStatus::ReconsumeLater) => ConsumeResult::Later,
                    Err(_panic) => ConsumeResult::ThrowException,
                };
                (result, true)
            }
            ListenerKind::Orderly(listener) => {
                let context = OrderlyContext::new(queue);
                let ended = AssertUnwindSafe(listener.consume(vec![message], &context))
                    .catch_unwind()
                    .await;
                let result = match ended {
                    Ok(OrderlyStatus::Success) => ConsumeResult::Success,
                    Ok(OrderlyStatus::Suspend(_)) => ConsumeResult::Later,
                    Ok(OrderlyStatus::Commit) => ConsumeResult::Commit,
                    Ok(OrderlyStatus::Rollback) => ConsumeResult::Rollback,
                    Err(_panic) => ConsumeResult::ThrowException,
                };
                (result, context.auto_commit())
            }
        }
    }
}

fn queue_info(queue: &ProcessQueue, now: i64) -> ProcessQueueInfo {
    let numbers = queue.numbers(now);
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    ProcessQueueInfo {
        cached_msg_count: count(numbers.cached),
        cached_msg_max_offset: numbers.last_cached,
        cached_msg_min_offset: numbers.first_cached,
        cached_msg_size_in_mi_b: count(numbers.bytes >> 20),
        commit_offset: numbers.committed,
        droped: queue.leave.is_cancelled(),
        last_consume_timestamp: numbers.last_consume,
        last_lock_timestamp: numbers.locked_at,
        last_pull_timestamp: numbers.last_pull,
        locked: numbers.locked,
        transaction_msg_count: count(numbers.uncommitted),
        ..ProcessQueueInfo::default()
    }
}
