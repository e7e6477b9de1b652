//! From a delivered message to what becomes of it.
//!
//! ```text
//! message ─▶ conditions ─▶ each matching listener: call ─┬─ Ok ─▶ replies sent ─▶ done
//!               │ none       ▲                           └─ Err ─▶ pause, next attempt … then a verdict
//!               ▼            └── attempts inside the process ──────┘
//!          on_unmatched                                  all listeners done ─▶ Settlement ─▶ binder
//! ```
//!
//! Replies are sent before the message is acknowledged: a reply may be sent twice, never lost.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::binder::{Deliver, Settlement};
use crate::binding::OutputBinding;
use crate::config::BackOff;
use crate::convert::condition_holds;
use crate::error::BoxError;
use crate::error_handler::{self, ErrorHandlers, Failure};
use crate::handler::{AppContext, Cause, Delivery, HandlerFailure, MessageContext, Reply, Verdict};
use crate::headers::names;
use crate::message::Message;
use crate::pace::Pace;
use crate::registry::{Handler, OnUnmatched};

/// The way of the messages of one input.
pub(crate) struct Pipeline {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) attempts: Attempts,
    /// Told of a failure before the broker is.
    pub(crate) errors: ErrorHandlers,
    pub(crate) content_type: Arc<str>,
    pub(crate) app: Arc<AppContext>,
    /// Cancelled when the application stops: pauses between attempts end at once.
    pub(crate) stop: CancellationToken,
    /// The time of pauses between attempts.
    pub(crate) pace: Pace,
}

/// A handler with the outputs its answers go to.
pub(crate) struct Listener {
    pub(crate) handler: Handler,
    pub(crate) outputs: Vec<Arc<OutputBinding>>,
}

/// The attempts inside the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempts {
    /// Attempts in all, at least 1.
    pub(crate) max: u32,
    /// Whether an error without a verdict of its own is worth another attempt.
    pub(crate) retry_by_default: bool,
    /// Pauses between them.
    pub(crate) back_off: BackOff,
}

/// Why a listener is done with a message without having handled it.
enum Unhandled {
    Failed(HandlerFailure),
    Stopping,
}

#[async_trait]
impl Deliver for Pipeline {
    async fn deliver(&self, mut message: Message) -> Settlement {
        let mut delivery = message.headers().delivery().cloned().unwrap_or_default();
        delivery.content_type = Arc::clone(&self.content_type);
        let matching = match self.matching(&message) {
            Ok(matching) => matching,
            Err((listener, error)) => {
                tracing::error!(binding = %delivery.binding, handler = listener.handler.name(), msg_id = %delivery.message_id,
                    error = %Chain(&*error), "condition cannot be computed");
                let failure = HandlerFailure {
                    verdict: Verdict::Reject,
                    cause: Cause::Error(error),
                };
                return self.failed(listener, &message, &delivery, failure).await;
            }
        };
        if matching.is_empty() {
            return self.unmatched(&delivery);
        }
        let mut settlement = Settlement::Ack;
        for listener in matching {
            let own = match self.attempt(listener, &mut message, &mut delivery).await {
                Ok(()) => Settlement::Ack,
                Err(Unhandled::Stopping) => return Settlement::Return,
                Err(Unhandled::Failed(failure)) => {
                    self.failed(listener, &message, &delivery, failure).await
                }
            };
            settlement = worse(settlement, own);
        }
        settlement
    }
}

impl Pipeline {
    fn matching(&self, message: &Message) -> Result<Vec<&Listener>, (&Listener, BoxError)> {
        let mut matching = Vec::with_capacity(self.listeners.len());
        for listener in &self.listeners {
            let holds = match listener.handler.condition() {
                Ok(None) => Ok(true),
                Ok(Some(condition)) => condition_holds(condition, message).map_err(BoxError::from),
                Err(unparsed) => Err(BoxError::from(unparsed.clone())),
            };
            match holds {
                Ok(true) => matching.push(listener),
                Ok(false) => {}
                Err(error) => return Err((listener, error)),
            }
        }
        Ok(matching)
    }

    /// The strictest wish among the input's listeners holds.
    fn unmatched(&self, delivery: &Delivery) -> Settlement {
        let says = |wish| {
            self.listeners
                .iter()
                .any(|listener| listener.handler.on_unmatched() == wish)
        };
        if says(OnUnmatched::Fail) {
            tracing::warn!(binding = %delivery.binding, msg_id = %delivery.message_id, "no condition matches; comes again");
            return Settlement::Retry(None);
        }
        if says(OnUnmatched::Warn) {
            tracing::warn!(binding = %delivery.binding, msg_id = %delivery.message_id, "no condition matches; acknowledged");
        }
        Settlement::Ack
    }

    async fn attempt(
        &self,
        listener: &Listener,
        message: &mut Message,
        delivery: &mut Delivery,
    ) -> Result<(), Unhandled> {
        let mut attempt = 1;
        loop {
            delivery.attempt = attempt;
            message
                .headers_mut()
                .insert(names::DELIVERY_ATTEMPT, attempt);
            let Err(failure) = self.once(listener, message, delivery).await else {
                return Ok(());
            };
            let again = failure.verdict == Verdict::Retry && self.attempts.retry_by_default;
            if !again || attempt >= self.attempts.max {
                return Err(Unhandled::Failed(failure));
            }
            let pause = self.attempts.back_off.pause(attempt);
            tracing::debug!(binding = %delivery.binding, handler = listener.handler.name(), msg_id = %delivery.message_id,
                attempt, ?pause, error = %Chain(&failure), "attempt failed");
            self.pause(pause).await?;
            attempt += 1;
        }
    }

    /// What becomes of a message that a listener failed on for the last time in this delivery.
    async fn failed(
        &self,
        listener: &Listener,
        message: &Message,
        delivery: &Delivery,
        failure: HandlerFailure,
    ) -> Settlement {
        // What is skipped on purpose is no failure.
        if failure.verdict == Verdict::Skip || self.errors.is_empty() {
            return settle(listener, delivery, &failure);
        }
        let failure = Arc::new(failure);
        let told = Failure::of_input(message, delivery, self.attempts.max, &failure);
        match self.errors.handle(&told, delivery, &self.app).await {
            error_handler::Outcome::NoHandler | error_handler::Outcome::Rethrown => {
                settle(listener, delivery, &failure)
            }
            error_handler::Outcome::Handled => {
                tracing::debug!(binding = %delivery.binding, handler = listener.handler.name(), msg_id = %delivery.message_id,
                    error = %Chain(&*failure), "failure dealt with by the error handler");
                Settlement::Ack
            }
        }
    }

    async fn pause(&self, pause: Duration) -> Result<(), Unhandled> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Unhandled::Stopping),
            () = self.pace.pause(pause) => Ok(()),
        }
    }

    async fn once(
        &self,
        listener: &Listener,
        message: &Message,
        delivery: &Delivery,
    ) -> Result<(), HandlerFailure> {
        let context = MessageContext {
            message,
            info: delivery,
            app: &self.app,
        };
        for reply in listener.handler.call(context).await? {
            listener.send(reply, message).await?;
        }
        Ok(())
    }
}

impl Listener {
    async fn send(&self, reply: Reply, received: &Message) -> Result<(), HandlerFailure> {
        let Reply {
            output,
            payload,
            mut headers,
        } = reply;
        // The macro and the builder give a reply one of the outputs they list.
        let Some(output) = self.outputs.get(output) else {
            return Err(HandlerFailure::from_error(format!(
                "the handler has no output {output}"
            )));
        };
        if self.handler.copy_headers() {
            let own_type = headers.get(names::CONTENT_TYPE).is_some();
            headers.copy_absent_from(received.headers());
            if !own_type {
                // The received payload's type says nothing about the answer's; the output's own does.
                headers.remove(names::CONTENT_TYPE);
            }
        }
        output
            .send(&*payload, headers)
            .await
            .map(drop)
            .map_err(HandlerFailure::from_error)
    }
}

fn settle(listener: &Listener, delivery: &Delivery, failure: &HandlerFailure) -> Settlement {
    let (settlement, fate) = match failure.verdict {
        Verdict::Retry if is_last(delivery) => (Settlement::Retry(None), "dead letter"),
        Verdict::Retry => (Settlement::Retry(None), "comes again"),
        Verdict::RetryAfter(delay) | Verdict::Suspend(delay) => {
            (Settlement::Retry(Some(delay)), "comes again")
        }
        Verdict::Reject => (Settlement::Reject, "dead letter"),
        Verdict::Skip => (Settlement::Ack, "skipped"),
    };
    tracing::warn!(binding = %delivery.binding, handler = listener.handler.name(), topic = %delivery.topic,
        queue_id = delivery.queue_id, queue_offset = delivery.queue_offset, msg_id = %delivery.message_id, attempts = delivery.attempt,
        reconsume_times = delivery.reconsume_times, fate, error = %Chain(failure), "message not handled");
    settlement
}

/// Whether the broker gives up after this delivery.
fn is_last(delivery: &Delivery) -> bool {
    delivery
        .max_reconsume_times
        .is_some_and(|max| delivery.reconsume_times >= max)
}

/// A message that one listener wants again comes again for all of them; it is dead only when none wants it again.
fn worse(a: Settlement, b: Settlement) -> Settlement {
    match (a, b) {
        (Settlement::Return, _) | (_, Settlement::Return) => Settlement::Return,
        (Settlement::Retry(a), Settlement::Retry(b)) => Settlement::Retry(a.max(b)),
        (retry @ Settlement::Retry(_), _) | (_, retry @ Settlement::Retry(_)) => retry,
        (Settlement::Reject, _) | (_, Settlement::Reject) => Settlement::Reject,
        (Settlement::Ack, Settlement::Ack) => Settlement::Ack,
    }
}

/// An error with its causes, in one line.
pub(crate) struct Chain<'a>(pub(crate) &'a (dyn std::error::Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        for cause in std::iter::successors(self.0.source(), |cause| cause.source()) {
            let text = cause.to_string();
            // Errors that show their cause themselves would say it twice.
            if !said.contains(&text) {
                write!(f, ": {text}")?;
            }
            said = text;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
