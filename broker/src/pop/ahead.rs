//! Hand-outs of one queue that are kept in memory (`enablePopBufferMerge`): acks meet them here, and what is done in time is
//! never written.
//!
//! ```text
//! committed ─▶ [ over │ open │ over │ open ] ◀─ next pop reads here
//!                 ▲ the offset is committed up to the first open one; an open one is over when all is done or it is written
//! ```
use std::collections::{HashMap, VecDeque};

use bindery_protocol::pop::Checkpoint;

/// Which of a queue's hand-outs, for as long as it is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HandOut(u64);

/// One hand-out that is not over.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    /// What was handed out, with what of it is done.
    pub(crate) checkpoint: Checkpoint,
    /// Where it is noted if it has to be.
    pub(crate) revive_queue: i32,
    /// Whether the checkpoint is in the log already, and only acks are missing there.
    pub(crate) written: bool,
}

/// The hand-outs of one queue in the order they were made.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Number of the first entry.
    first: u64,
    entries: VecDeque<Entry>,
    /// By start offset and pop time.
    open: HashMap<(i64, i64), HandOut>,
}

#[derive(Debug)]
struct Entry {
    next: i64,
    open: Option<Open>,
}

impl Ahead {
    /// Whether the committed offset says it all.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many hand-outs the committed offset is behind.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Where the next pop begins.
    pub(crate) fn last_next(&self) -> Option<i64> {
        self.entries.back().map(|entry| entry.next)
    }

    /// Adds a hand-out that acks may meet, up to the offset `next`; none when there is one like it.
    pub(crate) fn push(&mut self, open: Open, next: i64) -> Option<HandOut> {
        let key = key(&open.checkpoint);
        if self.open.contains_key(&key) {
            return None;
        }
        let number = HandOut(self.first + self.entries.len() as u64);
        self.open.insert(key, number);
        self.entries.push_back(Entry {
            next,
            open: Some(open),
        });
        Some(number)
    }

    /// Adds what needs nothing more, up to the offset `next`.
    pub(crate) fn push_over(&mut self, next: i64) {
        self.entries.push_back(Entry { next, open: None });
    }

    /// The open hand-out from `start_offset` at `pop_time`.
    pub(crate) fn find(
        &mut self,
        start_offset: i64,
        pop_time: i64,
    ) -> Option<(HandOut, &mut Open)> {
        let number = *self.open.get(&(start_offset, pop_time))?;
        Some((number, self.open_mut(number)?))
    }

    /// The hand-out if it is open still.
    pub(crate) fn open_mut(&mut self, number: HandOut) -> Option<&mut Open> {
        let index = usize::try_from(number.0.checked_sub(self.first)?).ok()?;
        self.entries.get_mut(index)?.open.as_mut()
    }

    /// The hand-out is over.
    pub(crate) fn finish(&mut self, number: HandOut) -> Option<Open> {
        let index = usize::try_from(number.0.checked_sub(self.first)?).ok()?;
        let open = self.entries.get_mut(index)?.open.take()?;
        self.open.remove(&key(&open.checkpoint));
        Some(open)
    }

    /// Takes out what is over at the front; the offset to commit, if it moved.
    pub(crate) fn settle(&mut self) -> Option<i64> {
        let mut next = None;
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.open.is_none())
        {
            next = self.entries.pop_front().map(|entry| entry.next);
            self.first += 1;
        }
        next
    }

    /// The open hand-outs, oldest first.
    pub(crate) fn numbers(&self) -> Vec<HandOut> {
        let mut numbers: Vec<HandOut> = self.open.values().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// Forgets all entries: the group goes on from another offset.
    pub(crate) fn clear(&mut self) {
        self.first += self.entries.len() as u64;
        self.entries.clear();
        self.open.clear();
    }
}

fn key(checkpoint: &Checkpoint) -> (i64, i64) {
    (checkpoint.start_offset, checkpoint.pop_time)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    fn open(start: i64) -> Open {
        Open {
            checkpoint: Checkpoint {
                start_offset: start,
                count: 1,
                ..Checkpoint::default()
            }
            .hidden(7, 1000),
            revive_queue: 0,
            written: false,
        }
    }

    #[test]
    fn offsets_are_committed_in_the_order_of_the_hand_outs() {
        let mut ahead = Ahead::default();
        let first = ahead.push(open(0), 3).unwrap();
        let second = ahead.push(open(3), 5).unwrap();
        ahead.push_over(9);
        assert_eq!(ahead.last_next(), Some(9));
        assert!(ahead.push(open(3), 9).is_none(), "there is one like it");
        assert!(ahead.finish(second).is_some());
        assert_eq!(ahead.settle(), None);
        assert_eq!(ahead.find(0, 7).unwrap().0, first);
        assert!(ahead.find(3, 7).is_none() && ahead.finish(second).is_none());
        assert!(ahead.finish(first).is_some());
        assert_eq!((ahead.settle(), ahead.len()), (Some(9), 0));
        let third = ahead.push(open(9), 10).unwrap();
        assert!(ahead.open_mut(first).is_none() && ahead.open_mut(third).is_some());
        ahead.clear();
        assert!(ahead.is_empty() && ahead.open_mut(third).is_none());
    }
}
