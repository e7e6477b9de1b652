//! One batch of a concurrent consumer: handler, then done, sent back, or tried again here.
//!
//! ```text
//! take ─▶ handler ─┬─ done ─────────────────────────────▶ finish: position moves to the lowest unfinished
//!                  ├─ failed ─▶ send back (36) ─ stored ─▶ finish
//!                  │               └─ not stored ─▶ send to %RETRY% ─ stored ─▶ finish
//!                  │                                   └─ not stored ─▶ again here in 5 s
//!                  └─ too long ─▶ sent back, its late result is ignored
//! ```
//! The position moves on only after the message is stored somewhere, so none is lost (client lesson L12).
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;

use super::{
    MessageExt, MessageModel,
    core::ConsumerCore,
    listener::{ConcurrentContext, ConcurrentStatus, ErasedConcurrent},
    process_queue::{Batch, ProcessQueue},
};

/// Pause before a message that could not be sent back is tried again here.
const LOCAL_RETRY: Duration = Duration::from_secs(5);
/// Delay level of a message whose handler took too long.
const EXPIRED_LEVEL: i32 = 3;

/// How a handler ended.
enum Ended {
    With(ConcurrentStatus),
    TooLate,
    Killed,
}

impl ConsumerCore {
    pub(super) async fn serve_concurrent(
        self: &Arc<Self>,
        listener: &dyn ErasedConcurrent,
        queue: &Arc<ProcessQueue>,
    ) {
        // Left before the look: what is pulled from now on lines the queue up again.
        queue.leave_line();
        let Some((batch, more)) = queue.take(self.settings.batch_size, self.now()) else {
            return;
        };
        if more {
            self.offer(queue);
        }
        self.run_concurrent(listener, queue, batch).await;
        queue.left_handler();
    }

    async fn run_concurrent(
        self: &Arc<Self>,
        listener: &dyn ErasedConcurrent,
        queue: &Arc<ProcessQueue>,
        batch: Batch,
    ) {
        let context = ConcurrentContext::new(queue.mq.clone());
        context.set_delay_level(self.settings.delay_level);
        let messages = batch.messages.clone();
        let handler = AssertUnwindSafe(listener.consume(messages, &context)).catch_unwind();
        let mut handler = std::pin::pin!(handler);
        let ended = tokio::select! {
            biased;
            result = &mut handler => Ended::With(result.unwrap_or(ConcurrentStatus::ReconsumeLater)),
            () = self.kill.cancelled() => Ended::Killed,
            () = self.client.config.clock.sleep(self.settings.consume_timeout) => Ended::TooLate,
        };
        match ended {
            Ended::With(status) => {
                let done = match status {
                    ConcurrentStatus::Success => context.done().min(batch.messages.len()),
                    ConcurrentStatus::ReconsumeLater => 0,
                };
                self.conclude(queue, batch, done, context.delay_level())
                    .await;
            }
            Ended::TooLate => {
                tracing::warn!(queue = ?queue.mq, limit = ?self.settings.consume_timeout, "handler runs too long: messages sent back");
                self.conclude(queue, batch, 0, EXPIRED_LEVEL).await;
                // It keeps its place among the running ones until it ends, or more would run than allowed.
                tokio::select! {
                    _late = &mut handler => {}
                    () = self.kill.cancelled() => {}
                }
            }
            Ended::Killed => {}
        }
    }

    /// The first `done` messages succeeded, the others failed.
    async fn conclude(
        self: &Arc<Self>,
        queue: &Arc<ProcessQueue>,
        batch: Batch,
        done: usize,
        level: i32,
    ) {
        if !queue.is_current(batch.epoch) {
            return;
        }
        let Batch {
            epoch,
            mut messages,
        } = batch;
        let failed = messages.split_off(done);
        let mut finished: Vec<i64> = messages.iter().map(MessageExt::queue_offset).collect();
        let mut again = Vec::new();
        for message in failed {
            if self.settings.model == MessageModel::Broadcasting {
                tracing::warn!(
                    msg_id = message.msg_id(),
                    topic = message.topic(),
                    "failed message dropped: broadcasting has no retries"
                );
                finished.push(message.queue_offset());
                continue;
            }
            match self
                .send_back(&message, level, self.settings.concurrent_retries())
                .await
            {
                Ok(()) => finished.push(message.queue_offset()),
                Err(error) => {
                    tracing::warn!(msg_id = message.msg_id(), %error, "failed message not sent back, tried again here");
                    again.push(message.failed_once_more());
                }
            }
        }
        if queue.finish(epoch, finished) {
            self.unsaved.notify_one();
        }
        if !again.is_empty() {
            self.again_later(queue, epoch, again);
        }
    }

    fn again_later(
        self: &Arc<Self>,
        queue: &Arc<ProcessQueue>,
        epoch: u64,
        messages: Vec<MessageExt>,
    ) {
        let (core, queue) = (Arc::clone(self), Arc::clone(queue));
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                // Given up: the position stays below these messages, the next owner gets them.
                () = queue.leave.cancelled() => {}
                () = core.client.config.clock.sleep(LOCAL_RETRY) => {
                    if queue.put_back(epoch, messages) {
                        core.offer(&queue);
                    }
                }
            }
        });
    }
}
