//! The life of one queue with this consumer.
//!
//! ```text
//! acquire ─▶ still ours? ─▶ pull (long poll) ─▶ filter ─▶ process queue ─▶ workers
//!                ▲                                             │ full
//!                └──────────────── has room ◀──────────────────┘
//! told to leave ─▶ release
//! ```
use std::{sync::Arc, time::Duration};

use bindery_protocol::{
    codes::ResponseCode,
    headers::{PullHeader, PullReply},
    message::record,
};
use bytes::{Buf, Bytes};

use super::{
    MessageExt, MessageModel, Origin,
    core::{ConsumerCore, Subscription},
    process_queue::{ProcessQueue, PullPoint},
};
use crate::{
    ClientError,
    instance::{MASTER, PullAnswer},
};

/// How long the broker holds a pull that finds nothing.
const HOLD: Duration = Duration::from_secs(15);
/// The broker looks for expired holds every 5 s only, so an answer may take that much longer than [`HOLD`].
const PULL_TIMEOUT: Duration = Duration::from_secs(30);
/// Hint for the size of an answer.
const PULL_BYTES: i32 = 262_144;
/// Pause after a failure.
const AFTER_ERROR: Duration = Duration::from_secs(1);
/// Pause when the broker asks for one (code 215).
const AFTER_FLOW_CONTROL: Duration = Duration::from_millis(20);
/// Pause after a heartbeat that the broker was missing.
const AFTER_HEARTBEAT: Duration = Duration::from_millis(100);

const COMMIT: i32 = 1;
const SUSPEND: i32 = 2;

/// From assignment to release.
pub(super) async fn own(core: Arc<ConsumerCore>, queue: Arc<ProcessQueue>) {
    tokio::select! {
        biased;
        () = queue.leave.cancelled() => {}
        () = pull_on(&core, &queue) => {}
    }
    queue.settle();
    core.release(&queue).await;
}

async fn pull_on(core: &Arc<ConsumerCore>, queue: &Arc<ProcessQueue>) {
    core.acquire(queue, None).await;
    loop {
        core.not_paused().await;
        core.keep(queue).await;
        queue.has_room(&core.settings.limits).await;
        tokio::select! {
            biased;
            // The position or the lock changed under the pull: its answer is not wanted any more.
            () = queue.moved.notified() => {}
            () = core.pull_once(queue) => {}
        }
    }
}

impl ConsumerCore {
    async fn pull_once(self: &Arc<Self>, queue: &Arc<ProcessQueue>) {
        let Some(point) = queue.pull_point(self.now()) else {
            // Begun again by a reset in a moment, or about to leave.
            return std::future::pending().await;
        };
        let Some(subscription) = self.subscription(&queue.mq.topic) else {
            return std::future::pending().await;
        };
        let clock = &self.client.config.clock;
        match self.pull_from(queue, &point, subscription).await {
            Ok(()) => {
                if !self.settings.pull_interval.is_zero() {
                    clock.sleep(self.settings.pull_interval).await;
                }
            }
            Err((addr, error)) => {
                let pause = self.after_failure(queue, &addr, &error).await;
                clock.sleep(pause).await;
            }
        }
    }

    async fn pull_from(
        self: &Arc<Self>,
        queue: &Arc<ProcessQueue>,
        point: &PullPoint,
        subscription: &Subscription,
    ) -> Result<(), (String, ClientError)> {
        let mq = &queue.mq;
        let Some(addr) = self
            .client
            .routes
            .address(&mq.broker_name, point.broker_id, false)
        else {
            self.client.routes.hurry();
            return Err((
                String::new(),
                ClientError::BrokerUnknown {
                    broker: mq.broker_name.clone(),
                },
            ));
        };
        let master = self
            .client
            .routes
            .address(&mq.broker_name, MASTER, true)
            .as_ref()
            == Some(&addr);
        let commits = master && self.settings.model == MessageModel::Clustering;
        let commit = point.committed.filter(|offset| commits && *offset > 0);
        let header = PullHeader {
            consumer_group: self.group().into(),
            topic: (&*mq.topic).into(),
            queue_id: mq.queue_id,
            queue_offset: point.offset,
            max_msg_nums: self.settings.pull_batch_size,
            sys_flag: if commit.is_some() {
                SUSPEND | COMMIT
            } else {
                SUSPEND
            },
            commit_offset: commit.unwrap_or(0),
            suspend_timeout_millis: i64::try_from(HOLD.as_millis()).unwrap_or(i64::MAX),
            sub_version: subscription.version,
            expression_type: Some(subscription.filter.wire_kind().into()),
            max_msg_bytes: Some(PULL_BYTES),
            ..PullHeader::default()
        };
        let answer = self.client.pull(&addr, &header, PULL_TIMEOUT).await;
        let taken = match answer {
            Ok(PullAnswer::Found { reply, records }) => {
                self.take_in(queue, point, subscription, &reply, records)
            }
            Ok(PullAnswer::Nothing { reply }) => {
                queue.pull_from(reply.suggest_which_broker_id);
                queue.accept(
                    point.epoch,
                    Vec::new(),
                    reply.next_begin_offset,
                    reply.max_offset,
                );
                Ok(())
            }
            Ok(PullAnswer::Illegal { reply }) => {
                self.correct(queue, point, &reply, master).await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        if queue.unsaved().is_some() {
            self.unsaved.notify_one();
        }
        taken.map_err(|error| (addr, error))
    }

    /// Decodes what was found, keeps what really passes the filter (the broker compares hashes only), and hands it on.
    fn take_in(
        self: &Arc<Self>,
        queue: &Arc<ProcessQueue>,
        point: &PullPoint,
        subscription: &Subscription,
        reply: &PullReply,
        mut records: Bytes,
    ) -> Result<(), ClientError> {
        queue.pull_from(reply.suggest_which_broker_id);
        let origin = Origin {
            broker_name: &queue.mq.broker_name,
            min_offset: reply.min_offset,
            max_offset: reply.max_offset,
            namespace: self.client.config.namespace.as_deref(),
        };
        let mut next = reply.next_begin_offset;
        let mut messages = Vec::new();
        let mut last = None;
        while !records.is_empty() {
            let unreadable = |source| ClientError::Decode {
                what: format!("a message of {}", queue.mq),
                source,
            };
            let (stored, size) = match record::decode(&records) {
                Ok(decoded) => decoded,
                Err(error) => match last {
                    // Go on behind what could be read; if that is nothing, the next pull says so again.
                    Some(last) => {
                        tracing::warn!(queue = %queue.mq, %error, "pulled messages cut short");
                        next = last + 1;
                        break;
                    }
                    None => return Err(unreadable(Box::new(error))),
                },
            };
            records.advance(size);
            last = Some(stored.queue_offset.0);
            if subscription.tags.matches_tag(stored.tags()) {
                messages.push(
                    MessageExt::received(stored, &origin)
                        .map_err(|error| unreadable(Box::new(error)))?,
                );
            }
        }
        if queue.accept(point.epoch, messages, next, reply.max_offset) {
            self.offer(queue);
        }
        Ok(())
    }

    /// The offset asked for lies outside the queue, or an administrator moved the group.
    async fn correct(
        &self,
        queue: &ProcessQueue,
        point: &PullPoint,
        reply: &PullReply,
        master: bool,
    ) {
        if !master {
            // A slave may lag behind: its correction would replay what the master has long since been told is done (lesson L7).
            queue.pull_from(MASTER);
            return self.client.config.clock.sleep(AFTER_ERROR).await;
        }
        let next = reply.next_begin_offset;
        tracing::warn!(queue = %queue.mq, group = self.group(), from = point.offset, to = next, "position corrected by the broker");
        if self.is_orderly() {
            queue.end_ownership();
            queue.is_idle().await;
        }
        queue.begin(next, None);
        if self.settings.model == MessageModel::Clustering {
            self.save_one(queue, next).await;
        }
    }

    /// What a failed pull calls for before the next one; answers how long to wait.
    async fn after_failure(
        &self,
        queue: &ProcessQueue,
        addr: &str,
        error: &ClientError,
    ) -> Duration {
        tracing::debug!(queue = %queue.mq, group = self.group(), %error, "pull failed");
        let ClientError::Broker { code, .. } = error else {
            queue.pull_from(MASTER);
            return AFTER_ERROR;
        };
        match *code {
            ResponseCode::FLOW_CONTROL => AFTER_FLOW_CONTROL,
            ResponseCode::SUBSCRIPTION_NOT_EXIST
            | ResponseCode::SUBSCRIPTION_NOT_LATEST
            | ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST => {
                // It forgot us, or never heard of this subscription: tell it now and not with the next round.
                self.introduce_to(addr).await;
                AFTER_HEARTBEAT
            }
            ResponseCode::TOPIC_NOT_EXIST | ResponseCode::INVALID_PARAMETER => {
                self.client.routes.hurry();
                AFTER_ERROR
            }
            _ => {
                tracing::warn!(queue = %queue.mq, group = self.group(), %error, "pull refused");
                AFTER_ERROR
            }
        }
    }
}
