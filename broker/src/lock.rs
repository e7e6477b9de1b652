//! Queue locks of orderly consumers: who may process which queue of a group.
//!
//! ```text
//! LOCK_BATCH_MQ (41) ─▶ QueueLocks::lock ─▶ the queues granted   (free, own, or not renewed for 60 s)
//! UNLOCK_BATCH_MQ (42) ─▶ QueueLocks::unlock
//! ```
//! In memory only, and they outlive the connection of their holder, as `RebalanceLockManager` of Apache `RocketMQ` 5.3.3.
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bindery_protocol::bodies::MessageQueue;

/// Milliseconds after which a lock that was not renewed is free (`rocketmq.broker.rebalance.lockMaxLiveTime`).
pub(crate) const LIFETIME: i64 = 60_000;

struct Lock {
    client_id: String,
    renewed: i64,
}

/// All queue locks of a broker.
#[derive(Default)]
pub(crate) struct QueueLocks {
    groups: Mutex<HashMap<String, HashMap<MessageQueue, Lock>>>,
}

impl QueueLocks {
    /// Locks or renews what it can of `queues` and returns it, in the order asked.
    pub(crate) fn lock(
        &self,
        group: &str,
        client_id: &str,
        queues: Vec<MessageQueue>,
        now: i64,
    ) -> Vec<MessageQueue> {
        let mut groups = self.groups();
        let locks = groups.entry(group.to_owned()).or_default();
        let mut granted = Vec::with_capacity(queues.len());
        for queue in queues {
            match locks.get_mut(&queue) {
                Some(lock) if lock.client_id != client_id && now - lock.renewed < LIFETIME => {
                    continue;
                }
                Some(lock) => {
                    if lock.client_id != client_id {
                        client_id.clone_into(&mut lock.client_id);
                    }
                    lock.renewed = now;
                }
                None => {
                    locks.insert(
                        queue.clone(),
                        Lock {
                            client_id: client_id.to_owned(),
                            renewed: now,
                        },
                    );
                }
            }
            granted.push(queue);
        }
        granted
    }

    /// Releases those of `queues` that the client holds.
    pub(crate) fn unlock(&self, group: &str, client_id: &str, queues: &[MessageQueue]) {
        let mut groups = self.groups();
        let Some(locks) = groups.get_mut(group) else {
            return;
        };
        for queue in queues {
            if locks
                .get(queue)
                .is_some_and(|lock| lock.client_id == client_id)
            {
                locks.remove(queue);
            }
        }
        if locks.is_empty() {
            groups.remove(group);
        }
    }

    /// Whether any client holds a queue of the group: the group consumes in order.
    pub(crate) fn any_held(&self, group: &str, now: i64) -> bool {
        self.groups()
            .get(group)
            .is_some_and(|locks| locks.values().any(|lock| now - lock.renewed < LIFETIME))
    }

    /// Forgets a group that was deleted.
    pub(crate) fn forget(&self, group: &str) {
        self.groups().remove(group);
    }

    fn groups(&self) -> MutexGuard<'_, HashMap<String, HashMap<MessageQueue, Lock>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(id: i32) -> MessageQueue {
        MessageQueue {
            topic: "T".into(),
            broker_name: "b".into(),
            queue_id: id,
        }
    }

    #[test]
    fn a_queue_is_granted_to_one_client_until_it_is_not_renewed_for_a_minute() {
        let locks = QueueLocks::default();
        assert_eq!(locks.lock("g", "a", vec![queue(0), queue(1)], 0).len(), 2);
        assert_eq!(
            locks.lock("g", "b", vec![queue(0), queue(2)], 10),
            vec![queue(2)]
        );
        assert_eq!(
            locks.lock("g", "a", vec![queue(0)], 50_000).len(),
            1,
            "renewed"
        );
        assert!(
            locks
                .lock("g", "b", vec![queue(0)], 50_000 + LIFETIME - 1)
                .is_empty()
        );
        assert_eq!(
            locks
                .lock("g", "b", vec![queue(0)], 50_000 + LIFETIME)
                .len(),
            1
        );
        assert!(
            locks
                .lock("g", "a", vec![queue(0)], 50_000 + LIFETIME)
                .is_empty()
        );
    }

    #[test]
    fn only_the_holder_unlocks() {
        let locks = QueueLocks::default();
        locks.lock("g", "a", vec![queue(0)], 0);
        locks.unlock("g", "b", &[queue(0)]);
        assert!(locks.lock("g", "b", vec![queue(0)], 1).is_empty());
        locks.unlock("g", "a", &[queue(0)]);
        assert_eq!(locks.lock("g", "b", vec![queue(0)], 2).len(), 1);
    }

    #[test]
    fn groups_do_not_see_each_others_locks() {
        let locks = QueueLocks::default();
        locks.lock("g", "a", vec![queue(0)], 0);
        assert_eq!(locks.lock("h", "b", vec![queue(0)], 0).len(), 1);
        assert!(
            locks.any_held("g", 1) && !locks.any_held("g", LIFETIME) && !locks.any_held("x", 0)
        );
    }
}
