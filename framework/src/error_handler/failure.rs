//! The failure an error handler is told about, and how its arguments are made.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::binding::SendError;
use crate::handler::{
    Cause, Delivery, FromMessage, HandlerFailure, MessageContext, Redelivery, Rejection,
    Requirement,
};
use crate::message::Message;
use crate::registry::Direction;

/// A message that could not be handled or sent, and why. Cheap to clone.
#[derive(Clone)]
pub struct Failure {
    inner: Arc<Failed>,
}

struct Failed {
    binding: Arc<str>,
    message: Message,
    redelivery: Redelivery,
    attempts: u32,
    reason: Reason,
}

#[derive(Clone)]
enum Reason {
    Handling(Arc<HandlerFailure>),
    Sending(Arc<SendError>),
}

impl Failure {
    /// Of a message that an input received; every delivery makes up to `attempts_a_delivery` attempts.
    pub(crate) fn of_input(
        message: &Message,
        delivery: &Delivery,
        attempts_a_delivery: u32,
        failure: &Arc<HandlerFailure>,
    ) -> Self {
        let earlier = delivery.reconsume_times.saturating_mul(attempts_a_delivery);
        Self {
            inner: Arc::new(Failed {
                binding: Arc::clone(&delivery.binding),
                message: message.clone(),
                redelivery: Redelivery {
                    in_process: delivery.attempt.max(1),
                    broker: delivery.reconsume_times,
                    max: delivery.max_reconsume_times,
                },
                attempts: earlier.saturating_add(delivery.attempt.max(1)),
                reason: Reason::Handling(Arc::clone(failure)),
            }),
        }
    }

    /// Of a message that an output could not send.
    pub(crate) fn of_output(binding: &str, message: Message, error: Arc<SendError>) -> Self {
        Self {
            inner: Arc::new(Failed {
                binding: binding.into(),
                message,
                redelivery: Redelivery {
                    in_process: 1,
                    broker: 0,
                    max: None,
                },
                attempts: 1,
                reason: Reason::Sending(error),
            }),
        }
    }

    /// The binding.
    #[must_use]
    pub fn binding(&self) -> &str {
        &self.inner.binding
    }

    /// Whether the message was received or was to be sent.
    #[must_use]
    pub fn direction(&self) -> Direction {
        match self.inner.reason {
            Reason::Handling(_) => Direction::Input,
            Reason::Sending(_) => Direction::Output,
        }
    }

    /// The message, its payload encoded.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.inner.message
    }

    /// What the handler returned as its error, the panic, the argument that could not be made; or the [`SendError`].
    #[must_use]
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        match &self.inner.reason {
            Reason::Handling(failure) => match &failure.cause {
                Cause::Error(error) => &**error,
                other => other,
            },
            Reason::Sending(error) => &**error,
        }
    }

    /// How often the message has been tried in all, earlier deliveries counted with their attempts; at least 1. A send counts
    /// as one, whatever its own retries.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.inner.attempts
    }

    /// The attempts of this delivery, and the broker's redeliveries.
    #[must_use]
    pub fn redelivery(&self) -> Redelivery {
        self.inner.redelivery
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("binding", &self.inner.binding)
            .field("direction", &self.direction())
            .field("attempts", &self.inner.attempts)
            .field("error", &self.error())
            .finish_non_exhaustive()
    }
}

/// Everything an argument of an error handler can be made from.
#[derive(Clone, Copy, Debug)]
pub struct FailureContext<'a> {
    /// The failure.
    pub failure: &'a Failure,
    /// The message, and the application.
    pub message: MessageContext<'a>,
}

/// An error handler's argument: [`Failure`], or any argument of a handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of an error handler",
    label = "neither `Failure` nor extractable from a message",
    note = "take `Failure`, or what a handler may take: `Message`, `Headers`, `Json<T>`, `State<T>`, `Bound<S>`, `StreamBridge`, …"
)]
pub trait FromFailure: Sized + Send {
    /// What the application must have for this argument; checked before anything is bound.
    const REQUIRED: &'static [Requirement] = &[];

    /// Makes the argument.
    ///
    /// # Errors
    /// A [`Rejection`] when it cannot be made; the error handler is not called then.
    fn from_failure(
        cx: &FailureContext<'_>,
    ) -> impl Future<Output = Result<Self, Rejection>> + Send;
}

impl FromFailure for Failure {
    async fn from_failure(cx: &FailureContext<'_>) -> Result<Self, Rejection> {
        Ok(cx.failure.clone())
    }
}

impl<T: FromMessage> FromFailure for T {
    const REQUIRED: &'static [Requirement] = T::REQUIRES;

    fn from_failure(
        cx: &FailureContext<'_>,
    ) -> impl Future<Output = Result<Self, Rejection>> + Send {
        T::from_message(&cx.message)
    }
}
