//! Orderly consumption: one worker has a queue at a time, and one member of the group has it in the cluster.
//!
//! ```text
//! locked? ─ no ─▶ pull loop gets a lock and the position again
//!    └ yes ─▶ take ─▶ handler ─┬─ success ─▶ finish, next batch
//!                              ├─ suspend ─▶ back to the front, pause, again
//!                              └─ failed too often ─▶ dead letter (stored first), finish
//! ```
//! A broker keeps a lock for 60 s after it was last asked for; we ask every 20 s and stop handing out 30 s after the last yes, so
//! two members never have a queue at a time (invariant I6).
use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::join_all};

use super::{
    MessageExt,
    core::ConsumerCore,
    listener::{ErasedOrderly, OrderlyContext, OrderlyStatus},
    process_queue::{Batch, ProcessQueue},
};
use crate::{
    ClientError, MessageQueue,
    instance::{Server, warn_once},
};

/// How often locks are renewed.
const RENEWAL: Duration = Duration::from_secs(20);
/// Time allowed for a lock request (Java's).
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const SHORTEST_SUSPEND: Duration = Duration::from_millis(10);
const LONGEST_SUSPEND: Duration = Duration::from_secs(30);
/// Delay level that makes a dead letter.
const DEAD: i32 = -1;

/// What a worker does with the queue after a batch.
enum Then {
    /// To the end of the line.
    GoOn,
    /// To the end of the line after a pause.
    Pause(Duration),
    /// Out of the line, until something is pulled.
    Rest,
}

impl ConsumerCore {
    /// The queue stays marked as queued all the while, so no second worker gets it.
    pub(super) async fn serve_orderly(
        self: &Arc<Self>,
        listener: &dyn ErasedOrderly,
        queue: &Arc<ProcessQueue>,
    ) {
        match self.orderly_batch(listener, queue).await {
            Then::GoOn => self.line_up(Arc::clone(queue)),
            Then::Pause(pause) => self.line_up_later(queue, pause),
            Then::Rest => {
                queue.leave_line();
                // Something may have come between the last look and now.
                if queue.has_pending() {
                    self.offer(queue);
                }
            }
        }
    }

    async fn orderly_batch(&self, listener: &dyn ErasedOrderly, queue: &ProcessQueue) -> Then {
        if self.needs_locks() && !queue.is_locked(self.now()) {
            queue.lock_lost();
            return Then::Rest;
        }
        let Some((batch, _)) = queue.take(self.settings.batch_size, self.now()) else {
            return Then::Rest;
        };
        let then = self.run_orderly(listener, queue, batch).await;
        queue.left_handler();
        then
    }

    async fn run_orderly(
        &self,
        listener: &dyn ErasedOrderly,
        queue: &ProcessQueue,
        batch: Batch,
    ) -> Then {
        let context = OrderlyContext::new(queue.mq.clone());
        let handler =
            AssertUnwindSafe(listener.consume(batch.messages.clone(), &context)).catch_unwind();
        let status = tokio::select! {
            biased;
            result = handler => result.unwrap_or(OrderlyStatus::Suspend(None)),
            () = self.kill.cancelled() => return Then::Rest,
        };
        let status = match status {
            OrderlyStatus::Success | OrderlyStatus::Commit
                if !self.bury_rejected(&context, &batch.messages).await =>
            {
                OrderlyStatus::Suspend(None)
            }
            status => status,
        };
        match (status, context.auto_commit()) {
            (OrderlyStatus::Success | OrderlyStatus::Commit | OrderlyStatus::Rollback, true)
            | (OrderlyStatus::Commit, false) => {
                self.finish_all(queue, batch.epoch, &batch.messages);
                Then::GoOn
            }
            (OrderlyStatus::Success, false) => {
                queue.hold(batch.epoch, batch.messages);
                Then::GoOn
            }
            (OrderlyStatus::Rollback, false) => {
                let mut again = queue.take_held(batch.epoch);
                again.extend(batch.messages);
                queue.put_back(batch.epoch, again);
                Then::Pause(self.suspend_time(None))
            }
            (OrderlyStatus::Suspend(pause), auto_commit) => {
                self.suspend(queue, batch, pause, auto_commit).await
            }
        }
    }

    /// The batch is done, and with it everything that was held back before.
    fn finish_all(&self, queue: &ProcessQueue, epoch: u64, done: &[MessageExt]) {
        let held = queue.take_held(epoch);
        let offsets = held.iter().chain(done).map(MessageExt::queue_offset);
        if queue.finish(epoch, offsets.collect::<Vec<_>>()) {
            self.unsaved.notify_one();
        }
    }

    /// The batch failed: again after a pause, unless every message of it failed too often and became a dead letter.
    async fn suspend(
        &self,
        queue: &ProcessQueue,
        batch: Batch,
        pause: Option<Duration>,
        auto_commit: bool,
    ) -> Then {
        let Batch { epoch, messages } = batch;
        let mut again = Vec::new();
        let mut dead = Vec::new();
        for message in messages {
            if queue.is_current(epoch) && self.is_given_up(&message).await {
                dead.push(message);
            } else {
                again.push(message.failed_once_more());
            }
        }
        if again.is_empty() {
            if auto_commit {
                self.finish_all(queue, epoch, &dead);
            } else {
                queue.hold(epoch, dead);
            }
            return Then::GoOn;
        }
        // Those that became dead letters don't run again; they are done already.
        queue.finish(
            epoch,
            dead.iter()
                .map(MessageExt::queue_offset)
                .collect::<Vec<_>>(),
        );
        queue.put_back(epoch, again);
        Then::Pause(self.suspend_time(pause))
    }

    /// Whether all that the listener rejected is stored as dead letters now.
    async fn bury_rejected(&self, context: &OrderlyContext, batch: &[MessageExt]) -> bool {
        for message in batch {
            if context.is_rejected(message) && !self.bury(message).await {
                return false;
            }
        }
        true
    }

    /// Whether the message failed as often as it may and is now stored as a dead letter.
    async fn is_given_up(&self, message: &MessageExt) -> bool {
        message.reconsume_times() >= self.settings.orderly_retries() && self.bury(message).await
    }

    /// Whether the message is stored as a dead letter now.
    async fn bury(&self, message: &MessageExt) -> bool {
        match self
            .send_back(message, DEAD, self.settings.orderly_retries())
            .await
        {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(msg_id = message.msg_id(), %error, "dead letter not stored, the queue stays suspended");
                false
            }
        }
    }

    fn suspend_time(&self, asked: Option<Duration>) -> Duration {
        asked
            .unwrap_or(self.settings.suspend)
            .clamp(SHORTEST_SUSPEND, LONGEST_SUSPEND)
    }

    fn line_up_later(self: &Arc<Self>, queue: &Arc<ProcessQueue>, pause: Duration) {
        let (core, queue) = (Arc::clone(self), Arc::clone(queue));
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = queue.leave.cancelled() => {}
                () = core.client.config.clock.sleep(pause) => core.line_up(queue),
            }
        });
    }

    /// Asks the broker for the queue's lock. The time before the question counts, since the broker's own count starts later.
    pub(super) async fn lock_queue(&self, queue: &ProcessQueue) -> Result<bool, ClientError> {
        let asked_at = self.now();
        let addr = self.client.routes.master(&queue.mq.broker_name)?;
        let granted = self
            .client
            .lock_queues(
                &addr,
                self.group(),
                std::slice::from_ref(&queue.mq),
                LOCK_TIMEOUT,
            )
            .await?;
        let got = granted.contains(&queue.mq);
        if got {
            queue.locked(asked_at);
        }
        Ok(got)
    }

    async fn renew(&self, addr: &str, queues: Vec<Arc<ProcessQueue>>) {
        let asked_at = self.now();
        let names: Vec<MessageQueue> = queues.iter().map(|queue| queue.mq.clone()).collect();
        match self
            .client
            .lock_queues(addr, self.group(), &names, LOCK_TIMEOUT)
            .await
        {
            Ok(granted) => {
                for queue in queues {
                    if granted.contains(&queue.mq) {
                        queue.locked(asked_at);
                    } else {
                        tracing::warn!(queue = ?queue.mq, group = self.group(), "lock lost: another member has the queue");
                        queue.lock_lost();
                    }
                }
            }
            // Not an answer: the locks stay good until they are too old.
            Err(error) => {
                warn_once!(self.client.is_news(Server::At(addr), &error), addr, %error, "locks not renewed");
            }
        }
    }
}

/// Renews the locks of all queues that have one.
pub(super) async fn lock_rounds(core: Arc<ConsumerCore>) {
    loop {
        tokio::select! {
            () = core.renewal.notified() => {}
            () = core.client.config.clock.sleep(RENEWAL) => {}
        }
        let now = core.now();
        let mut by_broker: BTreeMap<String, Vec<Arc<ProcessQueue>>> = BTreeMap::new();
        for queue in core.held().into_iter().filter(|queue| queue.is_locked(now)) {
            if let Ok(addr) = core.client.routes.master(&queue.mq.broker_name) {
                by_broker.entry(addr).or_default().push(queue);
            }
        }
        join_all(by_broker.into_iter().map(|(addr, queues)| {
            let core = &core;
            async move { core.renew(&addr, queues).await }
        }))
        .await;
    }
}
