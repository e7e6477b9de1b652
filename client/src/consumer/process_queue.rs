//! One queue while this consumer has it: what was pulled, what runs, and how far everything below is done.
//!
//! ```text
//! pull ─accept─▶ pending ─take─▶ running ─finish─▶ gone        committed = lowest unfinished offset,
//!                  ▲                │                           or the end of the last pull when none is left
//!                  └──── put_back ──┘
//! ```
//! Positions belong to an epoch. A reset begins a new one, and what still runs from an older one changes nothing any more: that is
//! how a committed position never moves back or past an unfinished message (invariant I5).
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    QueuePosition,
    message::MessageExt,
    queue_state::{CacheLimits, State},
};
use crate::{MessageQueue, sync::lock};

/// A lock of the broker counts for so long after it was given, ms (`REBALANCE_LOCK_MAX_LIVE_TIME` of Java; the broker keeps it for
/// twice as long).
pub(crate) const LOCK_LIFETIME: i64 = 30_000;

#[derive(Debug)]
pub(crate) struct ProcessQueue {
    pub(crate) mq: MessageQueue,
    /// Cancelled when the queue is to be given up.
    pub(crate) leave: CancellationToken,
    /// The group had other members when the queue was assigned to us.
    pub(crate) contested: bool,
    /// The connection to its broker broke: somebody else may have had it since.
    pub(crate) doubtful: AtomicBool,
    /// Assigned to us again while it is being given up.
    pub(crate) wanted_again: AtomicBool,
    /// In line for a worker; for an orderly queue also while a worker has it.
    pub(super) queued: AtomicBool,
    /// Tells the pull loop that the position or the lock changed: what it is waiting for is not wanted any more.
    pub(super) moved: Notify,
    /// Something finished.
    changed: Notify,
    state: Mutex<State>,
}

/// Messages taken together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) epoch: u64,
    pub(crate) messages: Vec<MessageExt>,
}

/// Where to pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PullPoint {
    pub(crate) epoch: u64,
    pub(crate) offset: i64,
    pub(crate) committed: Option<i64>,
    pub(crate) broker_id: i64,
}

/// Numbers for the running info (code 307).
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueNumbers {
    pub(crate) committed: i64,
    pub(crate) first_cached: i64,
    pub(crate) last_cached: i64,
    pub(crate) cached: usize,
    pub(crate) bytes: usize,
    pub(crate) locked: bool,
    pub(crate) locked_at: i64,
    pub(crate) last_pull: i64,
    pub(crate) last_consume: i64,
    pub(crate) uncommitted: usize,
}

impl ProcessQueue {
    pub(crate) fn new(
        mq: MessageQueue,
        leave: CancellationToken,
        contested: bool,
        now: i64,
    ) -> Self {
        let state = State::new(now);
        Self {
            mq,
            leave,
            contested,
            doubtful: AtomicBool::new(false),
            wanted_again: AtomicBool::new(false),
            queued: AtomicBool::new(false),
            moved: Notify::new(),
            changed: Notify::new(),
            state: Mutex::new(state),
        }
    }

    /// Begins a new epoch at `offset`. `persisted` is what the store of positions says already.
    pub(crate) fn begin(&self, offset: i64, persisted: Option<i64>) {
        {
            let mut state = lock(&self.state);
            state.epoch += 1;
            state.begun = true;
            state.clear();
            state.next_pull = offset;
            state.committed = Some(offset);
            state.persisted = persisted;
        }
        self.changed.notify_waiters();
        self.moved.notify_one();
    }

    /// Where to pull; nothing once the queue is given up.
    pub(crate) fn pull_point(&self, now: i64) -> Option<PullPoint> {
        let mut state = lock(&self.state);
        if state.closed || !state.begun {
            return None;
        }
        state.last_pull = now;
        Some(PullPoint {
            epoch: state.epoch,
            offset: state.next_pull,
            committed: state.committed,
            broker_id: state.pull_from,
        })
    }

    /// Which broker to ask next time.
    pub(crate) fn pull_from(&self, broker_id: i64) {
        lock(&self.state).pull_from = broker_id;
    }

    /// Takes what a pull brought. `next` is where the next pull begins, behind everything that the filter left out. Answers whether
    /// there is something to hand out.
    pub(crate) fn accept(
        &self,
        epoch: u64,
        messages: Vec<MessageExt>,
        next: i64,
        max_offset: i64,
    ) -> bool {
        let mut state = lock(&self.state);
        if state.epoch != epoch || state.closed || !state.begun {
            return false;
        }
        for message in messages {
            let size = message.body().len();
            if state
                .unfinished
                .insert(message.queue_offset(), size)
                .is_none()
            {
                state.bytes += size;
                state.pending.push_back(message);
            }
        }
        state.next_pull = next;
        state.max_offset = Some(max_offset);
        // A tail that the filter left out moves the position too, else the group would look behind for ever.
        state.settle();
        !state.pending.is_empty()
    }

    /// Takes up to `max` messages, and says whether more are pending.
    pub(crate) fn take(&self, max: usize, now: i64) -> Option<(Batch, bool)> {
        let mut state = lock(&self.state);
        if state.closed || state.pending.is_empty() {
            return None;
        }
        let count = max.min(state.pending.len());
        let messages: Vec<_> = state.pending.drain(..count).collect();
        state.running += 1;
        state.last_consume = now;
        Some((
            Batch {
                epoch: state.epoch,
                messages,
            },
            !state.pending.is_empty(),
        ))
    }

    /// A batch left its handler. Every [`ProcessQueue::take`] is followed by one call.
    pub(crate) fn left_handler(&self) {
        let mut state = lock(&self.state);
        state.running = state.running.saturating_sub(1);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Whether results of this epoch still count.
    pub(crate) fn is_current(&self, epoch: u64) -> bool {
        lock(&self.state).epoch == epoch
    }

    /// These messages are done: the position moves to the lowest one that is not. Answers whether it moved.
    pub(crate) fn finish(&self, epoch: u64, offsets: impl IntoIterator<Item = i64>) -> bool {
        let moved = {
            let mut state = lock(&self.state);
            if state.epoch != epoch {
                return false;
            }
            for offset in offsets {
                if let Some(size) = state.unfinished.remove(&offset) {
                    state.bytes = state.bytes.saturating_sub(size);
                }
            }
            state.settle()
        };
        self.changed.notify_waiters();
        moved
    }

    /// These messages come again, before all pending ones.
    pub(crate) fn put_back(&self, epoch: u64, messages: Vec<MessageExt>) -> bool {
        let mut state = lock(&self.state);
        if state.epoch != epoch || state.closed {
            return false;
        }
        for message in messages.into_iter().rev() {
            state.pending.push_front(message);
        }
        true
    }

    /// Orderly without auto commit: done so far, to be decided on later.
    pub(crate) fn hold(&self, epoch: u64, messages: Vec<MessageExt>) {
        let mut state = lock(&self.state);
        if state.epoch == epoch {
            state.uncommitted.extend(messages);
        }
    }

    /// Takes back what [`ProcessQueue::hold`] was given.
    pub(crate) fn take_held(&self, epoch: u64) -> Vec<MessageExt> {
        let mut state = lock(&self.state);
        if state.epoch == epoch {
            std::mem::take(&mut state.uncommitted)
        } else {
            Vec::new()
        }
    }

    pub(crate) fn has_pending(&self) -> bool {
        let state = lock(&self.state);
        !state.closed && !state.pending.is_empty()
    }

    /// Waits until pulling may go on. Cancel safe.
    pub(crate) async fn has_room(&self, limits: &CacheLimits) {
        self.until(|state| !state.is_full(limits)).await;
    }

    /// Waits until no handler has a batch. Cancel safe.
    pub(crate) async fn is_idle(&self) {
        self.until(|state| state.running == 0).await;
    }

    /// Waits until [`ProcessQueue::settle`]. Cancel safe.
    pub(crate) async fn is_settled(&self) {
        self.until(|state| state.settled).await;
    }

    /// The start position is decided, or it cannot be for now: nobody shall wait for it.
    pub(crate) fn settle(&self) {
        lock(&self.state).settled = true;
        self.changed.notify_waiters();
    }

    async fn until(&self, condition: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the look, or a change between look and wait would be missed.
            changed.as_mut().enable();
            if condition(&lock(&self.state)) {
                return;
            }
            changed.await;
        }
    }

    /// No batch is given out any more; running ones go on.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.pending.clear();
    }

    /// From now on nothing that still runs changes the position.
    pub(crate) fn end_epoch(&self) {
        lock(&self.state).epoch += 1;
    }

    /// The position, if the store of positions does not have it yet.
    pub(crate) fn unsaved(&self) -> Option<i64> {
        let state = lock(&self.state);
        state
            .committed
            .filter(|committed| state.persisted != Some(*committed))
    }

    pub(crate) fn saved(&self, offset: i64) {
        lock(&self.state).persisted = Some(offset);
    }

    pub(crate) fn committed(&self) -> Option<i64> {
        lock(&self.state).committed
    }

    pub(crate) fn has_begun(&self) -> bool {
        lock(&self.state).begun
    }

    /// The broker gave (or renewed) our lock at this time.
    pub(crate) fn locked(&self, at: i64) {
        lock(&self.state).locked_at = Some(at);
    }

    /// The lock is gone: nothing more is handed out, and the pull loop has to get a new one first.
    pub(crate) fn lock_lost(&self) {
        {
            let mut state = lock(&self.state);
            state.locked_at = None;
            state.disown();
        }
        self.moved.notify_one();
    }

    /// Nothing is handed out, and nothing that runs counts, until the next [`ProcessQueue::begin`]. Answers where we were: another
    /// member may have gone on from there, so the position is not saved any more.
    pub(crate) fn end_ownership(&self) -> Option<i64> {
        let mut state = lock(&self.state);
        state.disown();
        state.own
    }

    pub(crate) fn is_locked(&self, now: i64) -> bool {
        lock(&self.state)
            .locked_at
            .is_some_and(|at| now - at < LOCK_LIFETIME)
    }

    pub(crate) fn position(&self) -> QueuePosition {
        let state = lock(&self.state);
        QueuePosition {
            queue: self.mq.clone(),
            committed: state.committed,
            next_pull: state.next_pull,
            max_offset: state.max_offset,
            unfinished: state.unfinished.len(),
        }
    }

    pub(crate) fn numbers(&self, now: i64) -> QueueNumbers {
        let state = lock(&self.state);
        let edge = |entry: Option<(&i64, &usize)>| entry.map_or(0, |(offset, _)| *offset);
        QueueNumbers {
            committed: state.committed.unwrap_or(-1),
            first_cached: edge(state.unfinished.first_key_value()),
            last_cached: edge(state.unfinished.last_key_value()),
            cached: state.unfinished.len(),
            bytes: state.bytes,
            locked: state.locked_at.is_some_and(|at| now - at < LOCK_LIFETIME),
            locked_at: state.locked_at.unwrap_or(0),
            last_pull: state.last_pull,
            last_consume: state.last_consume,
            uncommitted: state.uncommitted.len(),
        }
    }

    /// Asks for a pass over the line again, see the worker pool.
    pub(super) fn leave_line(&self) {
        self.queued.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
