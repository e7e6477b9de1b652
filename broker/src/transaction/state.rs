//! The part of transactions that requests and the checking task share.
//!
//! ```text
//! send ─▶ opened ─┐                        ┌─▶ positions ─▶ consumer offsets of CID_RMQ_SYS_TRANS
//! 37 ─▶ claim ─▶ settle, release ─▶ State ─┼─▶ op messages that are due
//!                                          └─▶ rounds that are due ─▶ the only sleep of the task
//! ```
use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bindery_protocol::{message::Transaction, names};
use tokio::sync::Notify;

use super::{
    GROUP, NEVER, QUEUE, RETRY,
    book::{Book, Claim},
    half::millis,
    ops::OpLog,
};
use crate::{config::BrokerConfig, offset::Offsets, state::Core, store::Appended};

/// The transactions of a broker.
pub(crate) struct Transactions {
    state: Mutex<State>,
    wake: Notify,
}

/// What lies behind the lock. It is held while a half message is written again, never over an await.
pub(super) struct State {
    pub(super) book: Book,
    pub(super) ops: OpLog,
    /// When the open half messages are to be looked at.
    pub(super) round_at: i64,
    /// When a round last wrote something.
    pub(super) last_round: i64,
    /// What the task sleeps until: what is due later need not wake it.
    sleeping_until: i64,
    /// Positions as last handed to the consumer offsets.
    kept: (i64, i64),
    /// Producer groups of what was open at the start and that nobody has joined yet.
    awaited: HashSet<String>,
}

/// What a start found.
pub(super) struct Found {
    pub(super) book: Book,
    /// Positions as the consumer offsets have them.
    pub(super) kept: (i64, i64),
    /// The producer groups of what is open.
    pub(super) groups: HashSet<String>,
}

impl Transactions {
    /// Transactions as a start found them. Producers come back after the broker: what is open is looked at when there is
    /// one of each group, at the latest after `transactionCheckInterval`.
    pub(super) fn new(found: Found, config: &BrokerConfig) -> Self {
        let Found { book, kept, groups } = found;
        let patience = millis(config.transaction_check_interval);
        let round_at = if book.open() == 0 {
            NEVER
        } else {
            config.clock.now_millis().saturating_add(patience)
        };
        Self {
            state: Mutex::new(State {
                book,
                ops: OpLog::new(
                    config.transaction_op_msg_max_size,
                    millis(config.transaction_op_batch_interval),
                ),
                round_at,
                last_round: i64::MIN,
                sleeping_until: i64::MIN,
                kept,
                awaited: groups,
            }),
            wake: Notify::new(),
        }
    }

    /// A half message was stored; `immunity` are the milliseconds before its first check.
    pub(crate) fn opened(&self, core: &Core, appended: &Appended, immunity: i64) {
        let mut state = self.state();
        state.book.opened(appended.queue_offset.0);
        let first_check = appended
            .store_timestamp
            .saturating_add(immunity)
            .saturating_add(1);
        let at = first_check.max(state.next_round(core));
        self.round_by(&mut state, at);
    }

    /// A producer sent its heartbeat.
    pub(crate) fn joined(&self, core: &Core, group: &str) {
        let mut state = self.state();
        if state.awaited.remove(group) && state.awaited.is_empty() && state.book.open() > 0 {
            let at = state.next_round(core).max(core.now());
            self.round_by(&mut state, at);
        }
    }

    /// Whether a half message was stored at `offset` that is not behind the position yet.
    pub(crate) fn holds(&self, offset: i64) -> bool {
        let state = self.state();
        (state.book.positions().0..state.book.half_end()).contains(&offset)
    }

    /// Asks for the right to decide on a half message: [`Claim::Yours`] must be followed by [`Transactions::decided`] or
    /// [`Transactions::release`].
    pub(crate) fn claim(&self, offset: i64, key: &str) -> Claim {
        self.state().book.claim(offset, key)
    }

    /// A claimed verdict could not be carried out.
    pub(crate) fn release(&self, core: &Core, offset: i64) {
        let mut state = self.state();
        state.book.release(offset);
        let at = state.next_round(core).max(core.now().saturating_add(RETRY));
        self.round_by(&mut state, at);
    }

    /// A claimed verdict was carried out: the message was committed or rolled back.
    pub(crate) fn decided(&self, core: &Core, offset: i64, key: &str, verdict: Transaction) {
        let mut state = self.state();
        state.book.decided(offset, key);
        state.ops.push(offset, core.now());
        if verdict == Transaction::Rollback {
            state.ops.hurry(core.now());
        }
        if state.book.open() == 0 {
            state.round_at = NEVER;
        }
        state.keep(&core.offsets, core.now());
        if state.ops.due() < state.sleeping_until {
            self.wake.notify_one();
        }
    }

    fn round_by(&self, state: &mut State, at: i64) {
        state.round_at = state.round_at.min(at);
        if state.round_at < state.sleeping_until {
            self.wake.notify_one();
        }
    }

    /// When there is something to do next; what comes earlier from here on wakes the sleeper.
    pub(super) fn sleep_until(&self) -> i64 {
        let mut state = self.state();
        state.sleeping_until = state.ops.due().min(state.round_at);
        state.sleeping_until
    }

    /// Waits to be woken. Cancel safe.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The earliest time of the next round: rounds that write keep their distance.
    pub(super) fn next_round(&self, core: &Core) -> i64 {
        self.last_round
            .saturating_add(millis(core.live().transaction_check_interval))
    }

    /// Hands the positions to the consumer offsets if they moved.
    pub(super) fn keep(&mut self, offsets: &Offsets, now: i64) {
        let (half, op) = self.book.positions();
        let (kept_half, kept_op) = std::mem::replace(&mut self.kept, (half, op));
        if half != kept_half {
            offsets.commit(GROUP, names::TRANS_HALF_TOPIC, QUEUE, half, now);
        }
        if op != kept_op {
            offsets.commit(GROUP, names::TRANS_OP_HALF_TOPIC, QUEUE, op, now);
        }
    }
}
