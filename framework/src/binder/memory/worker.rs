//! The consumer of the in-process broker: a fixed number of workers that take, deliver and settle.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::board::{Board, Next, Taken};
use crate::binder::{
    AssignedQueue, BinderError, ConsumerBinding, ConsumerSpec, Deliver, Order, Settlement, levels,
};
use crate::handler::Delivery;
use crate::message::Message;

/// The workers of one input.
pub(super) struct MemoryConsumer {
    board: Arc<Board>,
    seat: String,
    grace: Duration,
    paused: watch::Sender<bool>,
    stop: CancellationToken,
    workers: TaskTracker,
}

impl MemoryConsumer {
    pub(super) fn start(
        board: Arc<Board>,
        seat: String,
        spec: ConsumerSpec,
        sink: &Arc<dyn Deliver>,
    ) -> Self {
        let (paused, _) = watch::channel(false);
        let stop = CancellationToken::new();
        let workers = TaskTracker::new();
        let grace = spec.grace;
        let spec = Arc::new(spec);
        for _ in 0..spec.concurrency.max(1) {
            let worker = Worker {
                board: Arc::clone(&board),
                seat: seat.clone(),
                spec: Arc::clone(&spec),
                sink: Arc::clone(sink),
                paused: paused.subscribe(),
                stop: stop.clone(),
            };
            workers.spawn(worker.run());
        }
        workers.close();
        Self {
            board,
            seat,
            grace,
            paused,
            stop,
            workers,
        }
    }
}

#[async_trait]
impl ConsumerBinding for MemoryConsumer {
    async fn pause(&self) {
        self.paused.send_replace(true);
    }

    async fn resume(&self) {
        self.paused.send_replace(false);
    }

    async fn assignment(&self) -> Vec<AssignedQueue> {
        self.board.assignment(&self.seat)
    }

    async fn stop(&self) -> Result<(), BinderError> {
        self.stop.cancel();
        // Workers that outlive the grace end with their handler; their message counts as running until then.
        if timeout(self.grace, self.workers.wait()).await.is_err() {
            tracing::warn!(group = %self.seat, "handlers still run after the grace period");
        }
        self.board.leave(&self.seat);
        Ok(())
    }
}

struct Worker {
    board: Arc<Board>,
    seat: String,
    spec: Arc<ConsumerSpec>,
    sink: Arc<dyn Deliver>,
    paused: watch::Receiver<bool>,
    stop: CancellationToken,
}

impl Worker {
    async fn run(mut self) {
        let stop = self.stop.clone();
        loop {
            let taken = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                taken = self.next() => taken,
            };
            let verdict = self.deliver(&taken).await;
            self.settle(&taken, verdict);
        }
    }

    /// Waits for the next message. Cancel safe: a message is only taken when it is returned.
    async fn next(&mut self) -> Taken {
        let board = Arc::clone(&self.board);
        loop {
            // Fails only when the consumer is gone, and then the worker is being stopped.
            if self.paused.wait_for(|paused| !paused).await.is_err() {
                std::future::pending::<()>().await;
            }
            let changed = board.changed();
            tokio::pin!(changed);
            match board.take(&self.seat, self.spec.order) {
                Next::Message(taken) => return taken,
                Next::At(at) => tokio::select! {
                    () = &mut changed => {}
                    () = sleep_until(at) => {}
                },
                Next::Idle => changed.await,
            }
        }
    }

    fn delivery(&self, taken: &Taken) -> Delivery {
        let stored = &taken.stored;
        Delivery {
            binding: self.spec.binding.as_str().into(),
            group: self.spec.group.as_str().into(),
            topic: Arc::clone(&stored.topic),
            queue_id: i32::try_from(stored.queue).unwrap_or(i32::MAX),
            queue_offset: i64::try_from(stored.offset).unwrap_or(i64::MAX),
            message_id: Arc::clone(&stored.msg_id),
            born_millis: stored.at_millis,
            store_millis: stored.at_millis,
            reconsume_times: taken.reconsume_times,
            max_reconsume_times: self.spec.redelivery.limit,
            ..Delivery::default()
        }
    }

    async fn deliver(&self, taken: &Taken) -> Settlement {
        let delivery = self.delivery(taken);
        let properties: Vec<(String, String)> = taken
            .stored
            .headers
            .iter()
            .map(|(name, value)| (name.to_owned(), value.as_str().to_owned()))
            .collect();
        let message = Message::received(taken.stored.body.clone(), properties, Arc::new(delivery));
        self.sink.deliver(message).await
    }

    fn settle(&self, taken: &Taken, verdict: Settlement) {
        let (board, seat, spec) = (&self.board, &self.seat, &self.spec);
        match verdict {
            Settlement::Ack => board.ack(seat, taken),
            Settlement::Reject => board.bury(seat, &spec.group, taken),
            Settlement::Return => board.give_back(seat, taken, spec.order),
            Settlement::Retry(None)
                if spec.order == Order::Concurrent && spec.redelivery.delay_level < 0 =>
            {
                board.bury(seat, &spec.group, taken);
            }
            Settlement::Retry(after) => {
                let delay = after.unwrap_or_else(|| match spec.order {
                    Order::Concurrent => {
                        levels::redelivery(spec.redelivery.delay_level, taken.reconsume_times)
                    }
                    Order::PerQueue => spec.redelivery.suspend,
                });
                board.again(
                    seat,
                    &spec.group,
                    taken,
                    delay,
                    spec.redelivery.limit,
                    spec.order,
                );
            }
        }
    }
}
