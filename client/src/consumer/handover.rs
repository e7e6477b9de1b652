//! How a queue comes to this member and how it leaves.
//!
//! ```text
//! orderly:     lock ─▶ position ─▶ … pull … ─▶ handlers end ─▶ position saved ─▶ unlock
//! concurrent:  wait ─▶ position ─▶ … pull … ─▶ handlers end, for a moment ─▶ position saved
//!               └ longer than the moment above and the save take, if others could be giving the queue up right now
//! ```
//! Concurrent members have no lock: the one that gives a queue up saves its position once, soon, and never again; the one that gets
//! it reads the position a little later. So a saved position never moves back, and what runs twice is at most what was in handlers.
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{MessageModel, core::ConsumerCore, orderly::LOCK_TIMEOUT, process_queue::ProcessQueue};
use crate::{
    ClientError,
    instance::{Server, warn_once},
};

/// How long a concurrent member that loses a queue to another waits for its handlers.
const GIVE_UP: Duration = Duration::from_millis(100);
/// How long the other one waits before it reads the position.
const SETTLE: Duration = Duration::from_millis(300);
/// First pause when another member still has the lock; doubled up to [`LONGEST_LOCK_WAIT`].
const FIRST_LOCK_WAIT: Duration = Duration::from_millis(100);
const LONGEST_LOCK_WAIT: Duration = Duration::from_secs(1);
/// Pause after a failure.
const AFTER_ERROR: Duration = Duration::from_secs(1);

impl ConsumerCore {
    /// Locks the queue if it must be locked, finds the position and saves it if it was found by rule. Goes on until it succeeds. `own`
    /// is where this member itself was, if it had the queue before.
    pub(super) async fn acquire(&self, queue: &ProcessQueue, own: Option<i64>) {
        let clock = &self.client.config.clock;
        if queue.contested && own.is_none() && !self.needs_locks() {
            clock.sleep(SETTLE).await;
        }
        let mut wait = FIRST_LOCK_WAIT;
        loop {
            match self.try_acquire(queue, own).await {
                Ok(true) => break,
                Ok(false) => {
                    queue.settle();
                    tracing::debug!(queue = %queue.mq, group = self.group(), "another member still has the lock");
                    clock.sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_LOCK_WAIT);
                }
                Err(error) => {
                    if error.is_outage() {
                        queue.settle();
                    }
                    let news = self
                        .client
                        .is_news(Server::Broker(&queue.mq.broker_name), &error);
                    warn_once!(news, queue = %queue.mq, group = self.group(), %error, "queue not acquired yet");
                    clock.sleep(AFTER_ERROR).await;
                }
            }
        }
        if let Some(offset) = queue.unsaved()
            && (self.settings.model == MessageModel::Broadcasting
                || !self.save_one(queue, offset).await)
        {
            self.unsaved.notify_one();
        }
        queue.settle();
    }

    async fn try_acquire(
        &self,
        queue: &ProcessQueue,
        own: Option<i64>,
    ) -> Result<bool, ClientError> {
        if self.needs_locks() && !self.lock_queue(queue).await? {
            return Ok(false);
        }
        self.begin(queue, own).await?;
        Ok(true)
    }

    /// Makes sure that the queue is still ours before the next pull: that its lock is good, and, after the connection broke, that
    /// nobody else had the queue meanwhile.
    pub(super) async fn keep(&self, queue: &ProcessQueue) {
        if self.needs_locks() && !queue.is_locked(self.now()) {
            let own = queue.end_ownership();
            // A handler of ours may still run although the lock is lost; a new one must not run beside it.
            queue.is_idle().await;
            self.acquire(queue, own).await;
        } else if queue.doubtful.load(Ordering::Acquire)
            && self.settings.model == MessageModel::Clustering
        {
            self.resolve_doubt(queue).await;
        }
        queue.doubtful.store(false, Ordering::Release);
    }

    /// While the connection was gone the broker may have given the queue to others. If they saved a higher position than ours, theirs
    /// counts; saving ours would move the group back.
    async fn resolve_doubt(&self, queue: &ProcessQueue) {
        loop {
            match self.stored_position(&queue.mq).await {
                Ok(stored) => {
                    if stored.is_some() && stored > queue.committed() {
                        tracing::info!(queue = %queue.mq, group = self.group(), "another member had the queue meanwhile");
                        let own = queue.end_ownership();
                        self.acquire(queue, own).await;
                    }
                    return;
                }
                Err(error) => {
                    tracing::debug!(queue = %queue.mq, group = self.group(), %error, "position not found out yet");
                    self.client.config.clock.sleep(AFTER_ERROR).await;
                }
            }
        }
    }

    /// The connection to a broker ended: see [`ConsumerCore::keep`].
    pub(crate) fn doubt(&self, broker_name: &str) {
        for queue in self
            .held()
            .iter()
            .filter(|queue| queue.mq.broker_name == broker_name)
        {
            queue.doubtful.store(true, Ordering::Release);
        }
    }

    /// The end of a queue here. As long as nobody else can get it, running handlers have their time, so that their results count and
    /// the next owner does not run the same messages.
    pub(super) async fn release(&self, queue: &Arc<ProcessQueue>) {
        queue.close();
        // While stopping we are still a member, so the queue is not given away before we have left.
        let exclusive = self.needs_locks()
            || self.stop.is_cancelled()
            || self.settings.model == MessageModel::Broadcasting;
        let patience = if exclusive {
            self.settings.grace
        } else {
            GIVE_UP
        };
        tokio::select! {
            biased;
            () = queue.is_idle() => {}
            () = self.kill.cancelled() => {}
            () = self.client.config.clock.sleep(patience) => {
                tracing::info!(queue = %queue.mq, group = self.group(), "queue given up while handlers run: their messages come again");
            }
        }
        let last = queue.unsaved().filter(|_| self.may_save(queue));
        queue.end_epoch();
        if let Some(offset) = last {
            self.save_last(queue, offset).await;
        }
        if self.needs_locks() {
            self.unlock(queue).await;
        }
        self.with_held(|held| held.remove(&queue.mq));
        if queue.wanted_again.load(Ordering::Acquire) {
            self.rebalance_soon();
        }
    }

    /// Whether our position is the group's: without a good lock, or after the connection broke, another member may be ahead of us.
    pub(super) fn may_save(&self, queue: &ProcessQueue) -> bool {
        !queue.doubtful.load(Ordering::Acquire)
            && (!self.needs_locks() || queue.is_locked(self.now()))
    }

    async fn save_last(&self, queue: &Arc<ProcessQueue>, offset: i64) {
        if self.settings.model == MessageModel::Broadcasting {
            self.save(std::slice::from_ref(queue)).await;
        } else {
            self.save_one(queue, offset).await;
        }
    }

    /// Also when we know of no lock: the answer to a request for one may have been on its way. Only an own lock is given back.
    async fn unlock(&self, queue: &ProcessQueue) {
        let Ok(addr) = self.client.routes.master(&queue.mq.broker_name) else {
            return;
        };
        let unlocked = self
            .client
            .unlock_queues(
                &addr,
                self.group(),
                std::slice::from_ref(&queue.mq),
                LOCK_TIMEOUT,
            )
            .await;
        if let Err(error) = unlocked {
            let news = self
                .client
                .is_news(Server::Broker(&queue.mq.broker_name), &error);
            warn_once!(news, queue = %queue.mq, group = self.group(), %error, "queue not unlocked: the lock ends by itself within a minute");
        }
    }
}
