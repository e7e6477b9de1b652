//! The consumer of the in-process broker: a fixed number of workers that take, deliver and settle.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bindery_protocol::filter::FilterExpression;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::board::{Board, Next, Seat, Taken};
use crate::binder::{AssignedQueue, BinderError, ConsumerBinding, ConsumerSpec, Deliver};
use crate::handler::Delivery;
use bindery_client::Allocation;

/// The workers of one input.
pub(super) struct MemoryConsumer {
    board: Arc<Board>,
    seat: Seat,
    group: String,
    grace: Duration,
    stop: CancellationToken,
    workers: TaskTracker,
}

impl MemoryConsumer {
    pub(super) fn start(
        board: &Arc<Board>,
        spec: ConsumerSpec,
        filter: &FilterExpression,
        strategy: Allocation,
        sink: &Arc<dyn Deliver>,
    ) -> Self {
        let seat = board.join(&spec, filter, strategy);
        let (stop, workers) = (CancellationToken::new(), TaskTracker::new());
        let (grace, group) = (spec.grace, spec.group.clone());
        let spec = Arc::new(spec);
        for _ in 0..spec.concurrency.max(1) {
            let worker = Worker {
                board: Arc::clone(board),
                seat: seat.clone(),
                spec: Arc::clone(&spec),
                sink: Arc::clone(sink),
                stop: stop.clone(),
            };
            workers.spawn(worker.run());
        }
        workers.close();
        Self {
            board: Arc::clone(board),
            seat,
            group,
            grace,
            stop,
            workers,
        }
    }
}

#[async_trait]
impl ConsumerBinding for MemoryConsumer {
    async fn pause(&self) {
        self.board.pause(&self.seat, true);
    }

    async fn resume(&self) {
        self.board.pause(&self.seat, false);
    }

    async fn assignment(&self) -> Vec<AssignedQueue> {
        self.board.assignment(&self.seat)
    }

    async fn stop(&self) -> Result<(), BinderError> {
        self.stop.cancel();
        // Workers that outlive the grace end with their handler; their message counts as running until then.
        if timeout(self.grace, self.workers.wait()).await.is_err() {
            tracing::warn!(
                group = self.group,
                "handlers still run after the grace period"
            );
        }
        self.board.leave(&self.seat);
        Ok(())
    }
}

impl Drop for MemoryConsumer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Worker {
    board: Arc<Board>,
    seat: Seat,
    spec: Arc<ConsumerSpec>,
    sink: Arc<dyn Deliver>,
    stop: CancellationToken,
}

impl Worker {
    async fn run(self) {
        loop {
            let taken = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                taken = self.next() => taken,
            };
            let message = taken.stored.received(self.facts(&taken));
            let settlement = self.sink.deliver(message).await;
            self.board
                .settle(&self.seat, &self.spec, &taken, settlement);
        }
    }

    /// Waits for the next message. Cancel safe: a message is only taken when it is returned.
    async fn next(&self) -> Box<Taken> {
        loop {
            let changed = self.board.pace.changed();
            match self.board.take(&self.seat) {
                Next::Message(taken) => return taken,
                Next::At(at) => tokio::select! {
                    () = changed => {}
                    () = self.board.pace.sleep_until(at) => {}
                },
                Next::Idle => changed.await,
            }
        }
    }

    /// What the input adds to the facts of the message.
    fn facts(&self, taken: &Taken) -> Delivery {
        Delivery {
            binding: self.spec.binding.as_str().into(),
            group: self.spec.group.as_str().into(),
            reconsume_times: taken.reconsume_times,
            max_reconsume_times: self.spec.redelivery.limit,
            ..Delivery::default()
        }
    }
}
