//! The process queue against a model: a set of unfinished offsets.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
use std::collections::BTreeSet;

use bindery_protocol::message::{PhysicalOffset, Properties, QueueOffset, StoredMessage, SysFlag};
use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::consumer::Origin;

fn message(offset: i64) -> MessageExt {
    let host = ([127, 0, 0, 1], 1).into();
    let stored = StoredMessage {
        topic: "t".to_owned(),
        queue_id: 0,
        flag: 0,
        queue_offset: QueueOffset(offset),
        physical_offset: PhysicalOffset(offset),
        sys_flag: SysFlag(0),
        born_timestamp: 0,
        born_host: host,
        store_timestamp: 0,
        store_host: host,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: Bytes::from_static(b"body"),
        body_crc: 0,
        properties: Properties::new(),
    };
    let origin = Origin {
        broker_name: "b",
        min_offset: 0,
        max_offset: 0,
        namespace: None,
    };
    MessageExt::received(stored, &origin).unwrap()
}

fn queue(offset: i64) -> ProcessQueue {
    let queue = ProcessQueue::new(
        MessageQueue::new("t", "b", 0),
        CancellationToken::new(),
        false,
        0,
    );
    queue.begin(offset, None);
    queue
}

fn epoch(queue: &ProcessQueue) -> u64 {
    queue.pull_point(0).unwrap().epoch
}

fn accept(queue: &ProcessQueue, offsets: std::ops::Range<i64>, next: i64) -> bool {
    queue.accept(epoch(queue), offsets.map(message).collect(), next, next)
}

fn offsets(batch: &Batch) -> Vec<i64> {
    batch
        .messages
        .iter()
        .map(MessageExt::queue_offset)
        .collect()
}

#[test]
fn a_tail_left_out_by_the_filter_moves_the_position() {
    let queue = queue(5);
    assert!(!accept(&queue, 0..0, 9));
    assert_eq!(queue.committed(), Some(9));
    assert!(accept(&queue, 9..11, 20));
    assert_eq!(queue.committed(), Some(9));
    let (batch, more) = queue.take(10, 0).unwrap();
    assert_eq!((offsets(&batch), more), (vec![9, 10], false));
    queue.finish(batch.epoch, [10]);
    assert_eq!(queue.committed(), Some(9));
    assert!(queue.finish(batch.epoch, [9]));
    assert_eq!(queue.committed(), Some(20));
}

#[test]
fn what_is_pending_at_the_end_holds_the_position() {
    let queue = queue(0);
    accept(&queue, 0..5, 5);
    let (batch, _) = queue.take(1, 0).unwrap();
    queue.close();
    assert!(queue.take(1, 0).is_none());
    queue.finish(batch.epoch, [0]);
    assert_eq!(queue.unsaved(), Some(1), "message 1 was never handed out");
}

#[test]
fn results_of_an_older_epoch_change_nothing() {
    let queue = queue(0);
    accept(&queue, 0..3, 3);
    let (old, _) = queue.take(3, 0).unwrap();
    queue.begin(1, Some(1));
    assert_eq!(queue.unsaved(), None);
    assert!(!queue.finish(old.epoch, offsets(&old)));
    assert!(!queue.put_back(old.epoch, old.messages));
    assert!(!queue.accept(old.epoch, vec![message(3)], 4, 4));
    assert_eq!((queue.committed(), queue.has_pending()), (Some(1), false));
}

#[test]
fn a_lost_lock_ends_the_epoch_and_keeps_where_we_were() {
    let queue = queue(0);
    queue.locked(1_000);
    assert!(queue.is_locked(1_000 + LOCK_LIFETIME - 1) && !queue.is_locked(1_000 + LOCK_LIFETIME));
    accept(&queue, 0..3, 3);
    let (batch, _) = queue.take(1, 0).unwrap();
    queue.finish(batch.epoch, [0]);
    queue.lock_lost();
    assert_eq!(
        (queue.unsaved(), queue.has_pending(), queue.pull_point(0)),
        (None, false, None)
    );
    assert_eq!(
        queue.end_ownership(),
        Some(1),
        "asked again, the answer stays"
    );
}

#[tokio::test]
async fn room_comes_back_when_messages_are_done() {
    let limits = CacheLimits {
        messages: 100,
        bytes: 1 << 20,
        span: 3,
    };
    let queue = queue(0);
    accept(&queue, 0..5, 5);
    let (batch, _) = queue.take(5, 0).unwrap();
    let room = queue.has_room(&limits);
    tokio::pin!(room);
    assert!(
        futures_util::poll!(&mut room).is_pending(),
        "five offsets apart"
    );
    // Finished out of order: the span counts from the lowest unfinished one.
    queue.finish(batch.epoch, [1, 2, 3]);
    assert!(futures_util::poll!(&mut room).is_pending());
    queue.finish(batch.epoch, [0]);
    room.await;
}

#[derive(Debug, Clone)]
enum Step {
    Pull(i64, i64),
    Take(usize),
    Finish(prop::sample::Index),
    PutBack(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_i64, 0..4_i64).prop_map(|(found, left_out)| Step::Pull(found, left_out)),
        (1..4_usize).prop_map(Step::Take),
        any::<prop::sample::Index>().prop_map(Step::Finish),
        any::<prop::sample::Index>().prop_map(Step::PutBack),
    ]
}

proptest! {
    #[test]
    fn the_position_is_the_lowest_unfinished_offset(start in 0..1000_i64, steps in prop::collection::vec(step(), 0..80)) {
        let queue = queue(start);
        let (mut next, mut unfinished, mut running) = (start, BTreeSet::new(), Vec::<Batch>::new());
        let mut last = start;
        for step in steps {
            match step {
                Step::Pull(found, left_out) => {
                    unfinished.extend(next..next + found);
                    accept(&queue, next..next + found, next + found + left_out);
                    next += found + left_out;
                }
                Step::Take(max) => running.extend(queue.take(max, 0).map(|(batch, _)| batch)),
                Step::Finish(index) if !running.is_empty() => {
                    let batch = running.swap_remove(index.index(running.len()));
                    let done = offsets(&batch);
                    for offset in &done {
                        prop_assert!(unfinished.remove(offset), "handed out once");
                    }
                    queue.finish(batch.epoch, done);
                    queue.left_handler();
                }
                Step::PutBack(index) if !running.is_empty() => {
                    let batch = running.swap_remove(index.index(running.len()));
                    queue.put_back(batch.epoch, batch.messages);
                    queue.left_handler();
                }
                Step::Finish(_) | Step::PutBack(_) => {}
            }
            let committed = queue.committed().unwrap();
            prop_assert_eq!(committed, unfinished.first().copied().unwrap_or(next));
            prop_assert!(committed >= last);
            last = committed;
            prop_assert_eq!(queue.position().unfinished, unfinished.len());
        }
    }
}
