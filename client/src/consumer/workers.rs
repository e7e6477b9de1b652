//! Workers: tasks that run handlers. There are as many as there is work for, up to the consumer's concurrency, and none when idle.
//!
//! ```text
//! pull ─offer─▶ line of queues ─▶ worker takes one batch of the first queue ─▶ handler ─▶ queue to the end of the line if more
//! ```
//! Queues take turns, so a full one does not keep the others waiting.
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, atomic::Ordering},
};

use super::{core::ConsumerCore, listener::ListenerKind, process_queue::ProcessQueue};
use crate::sync::lock;

/// Batches after which a worker lets others run, since handlers that never wait would keep a runtime thread for themselves.
const BATCHES_IN_A_ROW: usize = 16;

#[derive(Debug)]
pub(super) struct Workers {
    line: Mutex<Line>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Line {
    queues: VecDeque<Arc<ProcessQueue>>,
    active: usize,
}

impl Workers {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            line: Mutex::default(),
            limit,
        }
    }
}

impl ConsumerCore {
    /// The queue has something pending.
    pub(super) fn offer(self: &Arc<Self>, queue: &Arc<ProcessQueue>) {
        if !queue.queued.swap(true, Ordering::AcqRel) {
            self.line_up(Arc::clone(queue));
        }
    }

    /// Puts a queue that is marked as queued at the end of the line.
    pub(super) fn line_up(self: &Arc<Self>, queue: Arc<ProcessQueue>) {
        let mut line = lock(&self.workers.line);
        line.queues.push_back(queue);
        self.hire(&mut line, 1);
    }

    /// Work was held up by a pause.
    pub(super) fn resume_workers(self: &Arc<Self>) {
        let mut line = lock(&self.workers.line);
        let waiting = line.queues.len();
        self.hire(&mut line, waiting);
    }

    fn hire(self: &Arc<Self>, line: &mut Line, wanted: usize) {
        if self.is_paused() {
            return;
        }
        let more = wanted.min(self.workers.limit.saturating_sub(line.active));
        for _ in 0..more {
            line.active += 1;
            self.tasks.spawn(work(Arc::clone(self)));
        }
    }

    /// The next queue, or the end of the worker.
    fn next_in_line(&self) -> Option<Arc<ProcessQueue>> {
        let mut line = lock(&self.workers.line);
        let next = if self.is_paused() {
            None
        } else {
            line.queues.pop_front()
        };
        if next.is_none() {
            line.active -= 1;
        }
        next
    }
}

async fn work(core: Arc<ConsumerCore>) {
    let mut batches = 0_usize;
    while let Some(queue) = core.next_in_line() {
        match &core.listener {
            ListenerKind::Concurrent(listener) => {
                core.serve_concurrent(listener.as_ref(), &queue).await;
            }
            ListenerKind::Orderly(listener) => core.serve_orderly(listener.as_ref(), &queue).await,
        }
        batches += 1;
        if batches.is_multiple_of(BATCHES_IN_A_ROW) {
            tokio::task::yield_now().await;
        }
    }
}
