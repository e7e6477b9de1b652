//! One queue as one group pops it: who may pop now, how many messages are out, and what was handed out of it that is not
//! committed yet.
//!
//! ```text
//! pop, ack, write-out ─▶ Queues::with(topic, group, queue) ─▶ PopQueue, one caller at a time
//! ```
//! A queue that says nothing beyond the committed offset is forgotten when its last user leaves it.
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::ahead::Ahead;

/// What is known of a queue that a group pops.
#[derive(Debug, Default)]
pub(crate) struct PopQueue {
    /// Messages handed out and neither done nor back; counted only under `enablePopMessageThreshold`.
    pub(crate) in_flight: u64,
    /// Hand-outs in memory.
    pub(crate) ahead: Ahead,
}

impl PopQueue {
    fn is_blank(&self) -> bool {
        self.in_flight == 0 && self.ahead.is_empty()
    }
}

type Shared = Arc<Mutex<PopQueue>>;

/// All queues that are being popped.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    table: Mutex<HashMap<String, HashMap<i32, Shared>>>,
}

impl Queues {
    /// Runs `work` with the queue; nobody else has it meanwhile. Must not be called from within `work`.
    pub(crate) fn with<R>(
        &self,
        topic: &str,
        group: &str,
        queue_id: i32,
        work: impl FnOnce(&mut PopQueue) -> R,
    ) -> R {
        let key = format!("{topic}@{group}");
        let shared = self.shared(&key, queue_id);
        let result = work(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
        self.leave(&key, queue_id, shared);
        result
    }

    /// The offset behind the last hand-out in memory, if there is one.
    pub(crate) fn ahead(&self, topic: &str, group: &str, queue_id: i32) -> Option<i64> {
        let shared = {
            let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
            let queues = table.get(&format!("{topic}@{group}"))?;
            queues.get(&queue_id)?.clone()
        };
        let queue = shared.lock().unwrap_or_else(PoisonError::into_inner);
        queue.ahead.last_next()
    }

    fn shared(&self, key: &str, queue_id: i32) -> Shared {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.contains_key(key) {
            table.insert(key.to_owned(), HashMap::new());
        }
        match table.get_mut(key) {
            Some(queues) => queues.entry(queue_id).or_default().clone(),
            None => Shared::default(),
        }
    }

    fn leave(&self, key: &str, queue_id: i32, shared: Shared) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever else comes for it takes it from the table, which is locked: two holders are the table and this call.
        let blank = Arc::strong_count(&shared) == 2
            && shared
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_blank();
        drop(shared);
        if !blank {
            return;
        }
        if let Some(queues) = table.get_mut(key) {
            queues.remove(&queue_id);
            if queues.is_empty() {
                table.remove(key);
            }
        }
    }

    /// Drops what is known of queues that `gone` says no longer matter, by `topic@group`.
    pub(crate) fn forget(&self, gone: impl Fn(&str, &str) -> bool) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.retain(|key, _| {
            key.split_once('@')
                .is_none_or(|(topic, group)| !gone(topic, group))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_kept_while_it_says_something() {
        let queues = Queues::default();
        queues.with("T", "g", 1, |queue| queue.in_flight = 2);
        queues.with("T", "g", 2, |_| {});
        assert_eq!(queues.with("T", "g", 1, |queue| queue.in_flight), 2);
        queues.with("T", "g", 1, |queue| queue.in_flight = 0);
        assert!(queues.table.lock().is_ok_and(|table| table.is_empty()));
        queues.with("T", "g", 1, |queue| queue.in_flight = 2);
        queues.forget(|topic, _| topic == "T");
        assert_eq!(queues.with("T", "g", 1, |queue| queue.in_flight), 0);
    }
}
