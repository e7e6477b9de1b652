//! The numbers of a [`ProcessQueue`](super::process_queue::ProcessQueue), and the rules by which they move together.
use std::collections::{BTreeMap, VecDeque};

use super::message::MessageExt;

/// When pulling waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheLimits {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    /// From the lowest unfinished offset to the last pulled one.
    pub(crate) span: i64,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) epoch: u64,
    /// No more batches are given out.
    pub(super) closed: bool,
    /// Start position known.
    pub(super) begun: bool,
    /// A start waits for this queue no longer.
    pub(super) settled: bool,
    /// Offset and size of everything pulled and not finished: pending, running, or waiting to be tried again.
    pub(super) unfinished: BTreeMap<i64, usize>,
    pub(super) bytes: usize,
    pub(super) pending: VecDeque<MessageExt>,
    /// Orderly without auto commit: succeeded, but neither committed nor rolled back.
    pub(super) uncommitted: Vec<MessageExt>,
    /// Batches in a handler, of any epoch.
    pub(super) running: usize,
    /// End of the last pull: everything below was pulled, or left out by the filter.
    pub(super) next_pull: i64,
    pub(super) max_offset: Option<i64>,
    pub(super) committed: Option<i64>,
    pub(super) persisted: Option<i64>,
    /// Where we were when the ownership ended.
    pub(super) own: Option<i64>,
    /// Broker id to pull from next.
    pub(super) pull_from: i64,
    pub(super) locked_at: Option<i64>,
    pub(super) last_pull: i64,
    pub(super) last_consume: i64,
}

impl State {
    pub(super) fn new(now: i64) -> Self {
        Self {
            epoch: 0,
            closed: false,
            begun: false,
            settled: false,
            unfinished: BTreeMap::new(),
            bytes: 0,
            pending: VecDeque::new(),
            uncommitted: Vec::new(),
            running: 0,
            next_pull: 0,
            max_offset: None,
            committed: None,
            persisted: None,
            own: None,
            pull_from: crate::instance::MASTER,
            locked_at: None,
            last_pull: now,
            last_consume: now,
        }
    }

    pub(super) fn disown(&mut self) {
        if self.begun {
            self.begun = false;
            self.epoch += 1;
            self.own = self.committed.take();
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.unfinished.clear();
        self.pending.clear();
        self.uncommitted.clear();
        self.bytes = 0;
    }

    /// Moves the position up to the lowest unfinished offset.
    pub(super) fn settle(&mut self) -> bool {
        let lowest = self
            .unfinished
            .first_key_value()
            .map_or(self.next_pull, |(offset, _)| *offset);
        let moved = self.committed.is_none_or(|committed| lowest > committed);
        if moved {
            self.committed = Some(lowest);
        }
        moved
    }

    pub(super) fn is_full(&self, limits: &CacheLimits) -> bool {
        let span = self
            .unfinished
            .first_key_value()
            .map_or(0, |(lowest, _)| self.next_pull - lowest);
        self.unfinished.len() >= limits.messages || self.bytes >= limits.bytes || span > limits.span
    }
}
