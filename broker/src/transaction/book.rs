//! Which half messages are open: everything from the first undecided one on, in memory.
//!
//! ```text
//!                    half                                 half_end
//! half topic ────────┼──── open · closed · open · open ───┼─▶ next half message
//!   all of it closed ┘
//! op topic   ────────┼──── op messages that name offsets from `half` on
//!                    op
//! ```
//! A transaction is known by the offset of its newest half message, and by its unique key where an older one is named:
//! a message that was written again for a check is one transaction, however late the verdict on its first copy comes.
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// How many of the last verdicts are remembered behind the position, so that a repeated one is recognised.
const REMEMBERED: usize = 16_384;

/// Why an offset from the position on is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// A verdict is being carried out.
    Deciding,
    /// Decided, given up, or written again.
    Over,
}

/// What came of asking for the right to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The caller decides, and must call [`Book::decided`] or [`Book::release`] with this offset.
    Yours(i64),
    /// It was decided before.
    Decided,
    /// Another verdict on it is being carried out.
    Busy,
    /// It was given up, or was never there.
    Gone,
}

/// All that is known of half messages.
#[derive(Debug, Default)]
pub(super) struct Book {
    half: i64,
    half_end: i64,
    closed: BTreeMap<i64, Closing>,
    /// The newest half message of each open transaction that was written again, by unique key.
    copies: HashMap<String, i64>,
    recent: Recent,
    op: i64,
    /// Op messages from `op` on: their offset, and the highest half offset they name.
    used: VecDeque<(i64, i64)>,
}

impl Book {
    /// Positions as they were kept: the first half message that may be open, and the first op message of use.
    pub(super) fn at(half: i64, op: i64) -> Self {
        Self {
            half,
            half_end: half,
            op,
            ..Self::default()
        }
    }

    /// The first half message that is not over, and the first op message that names one from there on.
    pub(super) fn positions(&self) -> (i64, i64) {
        (self.half, self.op)
    }

    /// Behind the last half message.
    pub(super) fn half_end(&self) -> i64 {
        self.half_end
    }

    /// How many transactions are open.
    pub(super) fn open(&self) -> usize {
        let span = usize::try_from(self.half_end - self.half).unwrap_or(0);
        span.saturating_sub(self.closed.len())
    }

    /// Whether the half message at `offset` is there and undecided.
    pub(super) fn is_open(&self, offset: i64) -> bool {
        (self.half..self.half_end).contains(&offset) && !self.closed.contains_key(&offset)
    }

    /// A half message was stored.
    pub(super) fn opened(&mut self, offset: i64) {
        self.half_end = self.half_end.max(offset + 1);
    }

    /// Asks for the right to decide on the half message at `offset`, or on its newest copy.
    pub(super) fn claim(&mut self, offset: i64, key: &str) -> Claim {
        let offset = if offset < self.half || self.closed.get(&offset) == Some(&Closing::Over) {
            match self.copies.get(key) {
                Some(copy) => *copy,
                None if self.recent.holds(key) => return Claim::Decided,
                None => return Claim::Gone,
            }
        } else {
            offset
        };
        match self.closed.get(&offset) {
            Some(Closing::Deciding) => Claim::Busy,
            Some(Closing::Over) => Claim::Decided,
            None => {
                self.opened(offset);
                self.closed.insert(offset, Closing::Deciding);
                Claim::Yours(offset)
            }
        }
    }

    /// A claimed verdict could not be carried out.
    pub(super) fn release(&mut self, offset: i64) {
        self.closed.remove(&offset);
    }

    /// A verdict was carried out.
    pub(super) fn decided(&mut self, offset: i64, key: &str) {
        self.copies.remove(key);
        self.recent.remember(key);
        self.close(offset);
    }

    /// The half message at `offset` was written again at `copy`.
    pub(super) fn moved(&mut self, offset: i64, key: &str, copy: i64) {
        self.opened(copy);
        self.copied(key, copy);
        self.close(offset);
    }

    /// The half message at `offset` will never be decided, or can't be.
    pub(super) fn given_up(&mut self, offset: i64, key: &str) {
        self.copies.remove(key);
        self.close(offset);
    }

    /// Nothing can be read of the half messages before `offset`.
    pub(super) fn lost_before(&mut self, offset: i64) {
        for lost in self.half..offset.min(self.half_end) {
            self.closed.entry(lost).or_insert(Closing::Over);
        }
        self.advance();
    }

    /// An op message was stored; `last_half` is the highest half offset it names.
    pub(super) fn op_written(&mut self, offset: i64, last_half: i64) {
        self.used.push_back((offset, last_half));
        self.advance();
    }

    /// An op message was found; as [`Book::op_written`], while the half messages are not known yet.
    pub(super) fn op_read(&mut self, offset: i64, last_half: i64) {
        self.used.push_back((offset, last_half));
    }

    /// A copy was found that is open.
    pub(super) fn copied(&mut self, key: &str, copy: i64) {
        if !key.is_empty() {
            self.copies.insert(key.to_owned(), copy);
        }
    }

    /// No record was found of the half messages from `from` up to `to`.
    pub(super) fn lost_before_reading(&mut self, from: i64, to: i64) {
        for lost in from..to {
            self.opened(lost);
            self.close(lost);
        }
    }

    fn close(&mut self, offset: i64) {
        if offset >= self.half {
            self.closed.insert(offset, Closing::Over);
        }
        self.advance();
    }

    fn advance(&mut self) {
        while self.half < self.half_end && self.closed.get(&self.half) == Some(&Closing::Over) {
            self.closed.remove(&self.half);
            self.half += 1;
        }
        while let Some((op, last_half)) = self.used.front()
            && *last_half < self.half
        {
            self.op = op + 1;
            self.used.pop_front();
        }
    }
}

/// The unique keys of the last verdicts.
#[derive(Debug, Default)]
struct Recent {
    order: VecDeque<String>,
    keys: HashSet<String>,
}

impl Recent {
    fn holds(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    fn remember(&mut self, key: &str) {
        if key.is_empty() || !self.keys.insert(key.to_owned()) {
            return;
        }
        self.order.push_back(key.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn book(opened: i64) -> Book {
        let mut book = Book::at(0, 0);
        for offset in 0..opened {
            book.opened(offset);
        }
        book
    }

    #[test]
    fn the_position_waits_for_the_first_undecided() {
        let mut book = book(3);
        assert_eq!(book.claim(1, "b"), Claim::Yours(1));
        assert_eq!(book.open(), 2);
        book.decided(1, "b");
        book.op_written(0, 1);
        assert_eq!((book.positions(), book.open()), ((0, 0), 2));
        assert_eq!(book.claim(0, "a"), Claim::Yours(0));
        book.decided(0, "a");
        assert_eq!((book.positions(), book.open()), ((2, 1), 1));
    }

    #[test]
    fn a_verdict_counts_once_however_often_it_comes() {
        let mut book = book(2);
        assert_eq!(book.claim(1, "b"), Claim::Yours(1));
        assert_eq!(book.claim(1, "b"), Claim::Busy);
        book.decided(1, "b");
        assert_eq!(book.claim(1, "b"), Claim::Decided);
        assert_eq!(book.claim(0, "a"), Claim::Yours(0));
        book.release(0);
        assert_eq!(book.claim(0, "a"), Claim::Yours(0));
        book.decided(0, "a");
        assert_eq!(book.claim(0, "a"), Claim::Decided);
        assert_eq!(book.positions().0, 2);
    }

    #[test]
    fn a_late_verdict_on_the_first_copy_decides_the_newest() {
        let mut book = book(1);
        book.moved(0, "a", 1);
        book.moved(1, "a", 2);
        assert_eq!((book.positions().0, book.open()), (2, 1));
        assert_eq!(book.claim(0, "a"), Claim::Yours(2));
        book.decided(2, "a");
        assert_eq!(book.claim(1, "a"), Claim::Decided);
        assert_eq!(book.open(), 0);
    }

    #[test]
    fn what_was_given_up_stays_given_up() {
        let mut book = book(1);
        book.moved(0, "a", 1);
        book.given_up(1, "a");
        for offset in [0, 1] {
            assert_eq!(book.claim(offset, "a"), Claim::Gone);
        }
        assert_eq!((book.positions().0, book.open()), (2, 0));
    }

    #[test]
    fn only_so_many_verdicts_are_remembered() {
        let mut recent = Recent::default();
        for number in 0..=REMEMBERED {
            recent.remember(&number.to_string());
        }
        assert!(!recent.holds("0") && recent.holds("1"));
        assert_eq!(
            (recent.order.len(), recent.keys.len()),
            (REMEMBERED, REMEMBERED)
        );
    }

    proptest! {
        #[test]
        fn nothing_open_is_ever_behind_the_position(verdicts in prop::collection::vec(0_i64..20, 0..60)) {
            let mut book = book(20);
            let mut decided = HashSet::new();
            for offset in verdicts {
                let key = offset.to_string();
                match book.claim(offset, &key) {
                    Claim::Yours(claimed) => {
                        prop_assert_eq!(claimed, offset);
                        prop_assert!(decided.insert(offset));
                        book.decided(offset, &key);
                    }
                    Claim::Decided => prop_assert!(decided.contains(&offset)),
                    other => prop_assert!(false, "{:?}", other),
                }
                let first = (0..20).find(|offset| !decided.contains(offset)).unwrap_or(20);
                prop_assert_eq!(book.positions().0, first);
                prop_assert_eq!(book.open(), 20 - decided.len());
            }
        }
    }
}
