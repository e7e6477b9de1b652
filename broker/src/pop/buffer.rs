//! Hand-outs kept in memory for a while (`enablePopBufferMerge`): most are acknowledged within seconds, and then neither the
//! hand-out nor its acks are ever written.
//!
//! ```text
//! pop ─▶ offer ─┬─ no room, or too short ─▶ written at once
//!               └─ kept ─▶ acks meet it ─┬─ all done ─▶ over
//!                                        └─ popCkStayBufferTime over, or popCkStayBufferTimeOut left ─▶ written, with its acks
//! ```
//! The offset is committed up to the first hand-out that is still kept. A kill loses what is kept, and its messages come
//! again, acknowledged or not: that is the price of the setting, as in Apache `RocketMQ` 5.3.3.
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bindery_protocol::pop::{Ack, Checkpoint};
use tokio::sync::Notify;

use super::{
    ahead::{HandOut, Open},
    log::{self, Origin},
    queue::PopQueue,
};
use crate::{refusal::Refusal, state::Core};

/// Milliseconds that an ack or a hand-out must have left before it would be written.
const MARGIN: i64 = 1_500;
/// Milliseconds until a hand-out that could not be written is tried again.
const RETRY: i64 = 1_000;
const NEVER: i64 = i64::MAX;

/// When which kept hand-out is written.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    due: Mutex<BTreeSet<Due>>,
    kept: AtomicUsize,
    wake: Notify,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: i64,
    topic: String,
    group: String,
    queue_id: i32,
    number: HandOut,
}

impl Due {
    fn of(core: &Core, checkpoint: &Checkpoint, number: HandOut) -> Self {
        let config = &core.config;
        let stay = checkpoint
            .pop_time
            .saturating_add(config.pop_ck_stay_buffer_time);
        let left = checkpoint
            .revive_time()
            .saturating_sub(config.pop_ck_stay_buffer_time_out);
        Self {
            at: stay.min(left),
            topic: checkpoint.topic.clone(),
            group: checkpoint.group.clone(),
            queue_id: checkpoint.queue_id,
            number,
        }
    }
}

impl Buffer {
    fn put(&self, due: Due) {
        let mut all = self.due();
        let is_first = all.first().is_none_or(|first| due.at < first.at);
        all.insert(due);
        self.kept.store(all.len(), Ordering::Relaxed);
        drop(all);
        if is_first {
            self.wake.notify_one();
        }
    }

    fn remove(&self, due: &Due) {
        let mut all = self.due();
        all.remove(due);
        self.kept.store(all.len(), Ordering::Relaxed);
    }

    fn take_due(&self, now: i64) -> Option<Due> {
        let mut all = self.due();
        let first = all.first().filter(|first| first.at <= now).cloned()?;
        all.remove(&first);
        self.kept.store(all.len(), Ordering::Relaxed);
        Some(first)
    }

    fn next(&self) -> i64 {
        self.due().first().map_or(NEVER, |first| first.at)
    }

    fn due(&self) -> MutexGuard<'_, BTreeSet<Due>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a hand-out in memory, if it may be; the queue is the hand-out's. Its offset is committed when it is over.
pub(crate) fn offer(
    core: &Core,
    queue: &mut PopQueue,
    checkpoint: &Checkpoint,
    revive_queue: i32,
    next: i64,
) -> bool {
    let config = &core.config;
    let time_left = checkpoint.revive_time().saturating_sub(core.now());
    if !config.enable_pop_buffer_merge
        || time_left < config.pop_ck_stay_buffer_time_out.saturating_add(MARGIN)
        || core.pop.buffer.kept.load(Ordering::Relaxed) > config.pop_ck_max_buffer_size
        || queue.ahead.len() >= config.pop_ck_offset_max_queue_size
    {
        return false;
    }
    let open = Open {
        checkpoint: checkpoint.clone(),
        revive_queue,
        written: false,
    };
    let Some(number) = queue.ahead.push(open, next) else {
        return false;
    };
    core.pop.buffer.put(Due::of(core, checkpoint, number));
    true
}

/// Everything up to the offset `next` of the queue is handed out and noted, or needs no note.
pub(crate) fn passed(
    core: &Core,
    queue: &mut PopQueue,
    (topic, group, queue_id): (&str, &str, i32),
    next: i64,
) {
    if queue.ahead.is_empty() {
        core.offsets
            .commit(group, topic, queue_id, next, core.now());
    } else {
        queue.ahead.push_over(next);
    }
}

/// Lets an ack meet its hand-out in memory; whether it did.
pub(crate) fn meet(core: &Core, ack: &Ack) -> bool {
    let config = &core.config;
    if !config.enable_pop_buffer_merge {
        return false;
    }
    core.pop
        .queues
        .with(&ack.topic, &ack.group, ack.queue_id, |queue| {
            let Some((number, open)) = queue.ahead.find(ack.start_offset, ack.pop_time) else {
                return false;
            };
            let (now, checkpoint) = (core.now(), &mut open.checkpoint);
            let left = checkpoint.revive_time().saturating_sub(now);
            let stayed = now.saturating_sub(checkpoint.pop_time);
            if left < config.pop_ck_stay_buffer_time_out.saturating_add(MARGIN)
                || stayed > config.pop_ck_stay_buffer_time.saturating_sub(MARGIN)
            {
                return false;
            }
            for offset in ack.done() {
                if !checkpoint.mark(offset) {
                    tracing::warn!(
                        topic = ack.topic,
                        group = ack.group,
                        offset,
                        "ack of a message that was not handed out"
                    );
                }
            }
            if checkpoint.open().next().is_none() {
                let due = Due::of(core, checkpoint, number);
                queue.ahead.finish(number);
                core.pop.buffer.remove(&due);
                settle(core, queue, (&ack.topic, &ack.group, ack.queue_id));
            }
            true
        })
}

/// Writes all hand-outs of a queue that are kept, and forgets them: the group goes on from another offset.
pub(crate) fn clear(core: &Core, queue: &mut PopQueue) {
    for number in queue.ahead.numbers() {
        if let Some(open) = queue.ahead.open_mut(number) {
            core.pop
                .buffer
                .remove(&Due::of(core, &open.checkpoint, number));
            if let Err(refusal) = write(core, open) {
                tracing::error!(%refusal, "hand-out lost: its messages do not come again");
            }
        }
    }
    queue.ahead.clear();
}

fn settle(core: &Core, queue: &mut PopQueue, (topic, group, queue_id): (&str, &str, i32)) {
    if let Some(next) = queue.ahead.settle() {
        core.offsets
            .commit(group, topic, queue_id, next, core.now());
    }
}

/// Writes kept hand-outs when they are due, and all of them when the broker stops. One task per broker.
pub(crate) async fn run(core: Arc<Core>) {
    loop {
        write_due(&core, core.now());
        let until = core.pop.buffer.next();
        tokio::select! {
            biased;
            () = core.stop.cancelled() => break,
            () = core.pop.buffer.wake.notified() => {}
            () = core.clock.sleep_until(until), if until != NEVER => {}
        }
    }
    // No more requests are served: what is kept now is all there is.
    write_due(&core, NEVER);
}

fn write_due(core: &Core, now: i64) {
    while let Some(due) = core.pop.buffer.take_due(now) {
        let place = (due.topic.as_str(), due.group.as_str(), due.queue_id);
        core.pop.queues.with(place.0, place.1, place.2, |queue| {
            let Some(open) = queue.ahead.open_mut(due.number) else {
                return;
            };
            match write(core, open) {
                Ok(()) => {
                    queue.ahead.finish(due.number);
                    settle(core, queue, place);
                }
                Err(refusal) if now == NEVER => {
                    tracing::error!(%refusal, "hand-out not written at the stop: its messages come again");
                }
                Err(refusal) => {
                    tracing::warn!(%refusal, "hand-out not written, tried again");
                    let at = now.saturating_add(RETRY);
                    core.pop.buffer.put(Due { at, ..due.clone() });
                }
            }
        });
    }
}

/// Writes one hand-out and what of it is done.
fn write(core: &Core, open: &mut Open) -> Result<(), Refusal> {
    let checkpoint = &open.checkpoint;
    if !open.written {
        let blank = Checkpoint {
            done: 0,
            ..checkpoint.clone()
        };
        log::checkpoint(core, open.revive_queue, &blank)?;
        open.written = true;
    }
    let still: Vec<i64> = checkpoint.open().collect();
    let done: Vec<i64> = (0..checkpoint.len())
        .filter_map(|place| checkpoint.offset_at(place))
        .filter(|offset| !still.contains(offset))
        .collect();
    let ack = Ack {
        group: checkpoint.group.clone(),
        topic: checkpoint.topic.clone(),
        queue_id: checkpoint.queue_id,
        start_offset: checkpoint.start_offset,
        pop_time: checkpoint.pop_time,
        ..Ack::default()
    };
    let due = checkpoint.revive_time();
    if core.config.enable_pop_batch_ack && !done.is_empty() {
        let list = Ack {
            offset: 0,
            offsets: Some(done),
            ..ack
        };
        log::ack(core, open.revive_queue, &list, due, Origin::Memory)?;
        return Ok(());
    }
    for offset in done {
        let single = Ack {
            offset,
            broker_name: checkpoint.broker_name.clone(),
            ..ack.clone()
        };
        log::ack(core, open.revive_queue, &single, due, Origin::Memory)?;
    }
    Ok(())
}
