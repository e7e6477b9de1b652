//! One bound on all that waits for readers, over every connection that shares it.
//!
//! ```text
//! queued ─▶ charge ─┬─ above half ─▶ connections with much queued read no more requests; the stalled are closed
//!                   └─ full ───────▶ answers with a body become "busy" (2), what we ask of clients fails
//! written, ended ─▶ release
//! ```
//! Nobody's share is fixed: a connection may queue as much as is still free below half of the limit. One that does not
//! read gets far while it is alone; a thousand of them leave each other, and everybody else, room. Whoever reads is not
//! slowed: with an empty queue of its own, a connection always goes on.
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// Bytes that may wait to be read by clients; a handle, clones share the same bytes.
#[derive(Debug, Clone)]
pub struct Budget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limit: usize,
    used: AtomicUsize,
    /// Told when more than half is used.
    pressed: Notify,
}

impl Budget {
    /// So many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            inner: Arc::new(Inner {
                limit,
                used: AtomicUsize::new(0),
                pressed: Notify::new(),
            }),
        }
    }

    /// No bound.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// Bytes that wait now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.inner.used.load(Ordering::Relaxed)
    }

    /// How much one connection may have queued before it is read no more.
    pub(crate) fn share(&self) -> usize {
        (self.inner.limit / 2).saturating_sub(self.used())
    }

    /// Whether so many more would be too many. What is alone fits, whatever its size.
    pub(crate) fn is_too_much(&self, bytes: usize) -> bool {
        let used = self.used();
        bytes > 0 && used > 0 && used.saturating_add(bytes) > self.inner.limit
    }

    /// By how many bytes more than half is used.
    pub(crate) fn excess(&self) -> usize {
        self.used().saturating_sub(self.inner.limit / 2)
    }

    /// Waits until more than half is used. Cancel safe.
    pub(crate) async fn pressed(&self) {
        loop {
            let pressed = self.inner.pressed.notified();
            if self.excess() > 0 {
                return;
            }
            pressed.await;
        }
    }

    pub(crate) fn charge(&self, bytes: usize) {
        let before = self.inner.used.fetch_add(bytes, Ordering::Relaxed);
        let half = self.inner.limit / 2;
        if before <= half && before.saturating_add(bytes) > half {
            self.inner.pressed.notify_waiters();
        }
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.inner.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_shrink_as_others_use_more_and_what_is_alone_always_fits() {
        let budget = Budget::new(1000);
        assert_eq!((budget.share(), budget.is_too_much(5000)), (500, false));
        budget.charge(300);
        assert_eq!((budget.share(), budget.excess()), (200, 0));
        assert!(budget.is_too_much(701) && !budget.is_too_much(700));
        budget.charge(900);
        assert_eq!((budget.share(), budget.excess()), (0, 700));
        assert!(!budget.is_too_much(0), "answers without a body always fit");
        budget.release(1200);
        assert_eq!((budget.share(), budget.used()), (500, 0));
    }
}
