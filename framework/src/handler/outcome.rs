//! From what a handler returns to what becomes of the message.
//!
//! ```text
//! () ─────────────┐
//! Outcome ────────┼─IntoOutcome─▶ Ok(()) = acknowledged · Err(HandlerFailure { verdict, cause })
//! Result<_, E> ───┘
//! ```

use std::time::Duration;

use super::HandlerError;
use super::error::Carrier;
use super::extract::Rejection;
use crate::error::BoxError;

/// What a handler may answer instead of an error, when it decides about redelivery itself.
///
/// ```
/// use bindery::prelude::*;
///
/// #[stream_listener("doc-outcome")]
/// async fn on_order(order: String) -> Outcome {
///     match order.as_str() {
///         "spam" => Outcome::Reject("not ordered".to_owned()),
///         _ => Outcome::Ack,
///     }
/// }
///
/// # bindery::testing::entry::example("spring.cloud.stream.bindings: { doc-outcome: { destination: orders, group: doc-outcome } }", |t| async move {
/// t.input("doc-outcome").send("spam").await;
/// t.input("doc-outcome").send("tea").await;
/// t.settle().await;
/// assert_eq!(t.calls("on_order").len(), 2);
/// assert_eq!(t.dlq("doc-outcome").await[0].text(), "spam");
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an outcome decides about the message only when the handler returns it"]
pub enum Outcome {
    /// Handled.
    Ack,
    /// Try again, in this process and then by the broker.
    Retry,
    /// Try again after about this time; brokers know levels and take the next one up.
    RetryAfter(Duration),
    /// Give up at once: the message becomes a dead letter, with this reason in the log.
    Reject(String),
    /// Counts as handled, but is logged and counted as skipped.
    Skip,
    /// An orderly input's queue waits this long before the message is tried again.
    Suspend(Duration),
}

/// What should become of a message that was not handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Try again, in this process and then by the broker.
    Retry,
    /// Try again after about this time.
    RetryAfter(Duration),
    /// Dead letter at once.
    Reject,
    /// Acknowledge, and count as skipped.
    Skip,
    /// Hold the queue for this long and try again (orderly inputs; elsewhere like [`Verdict::RetryAfter`]).
    Suspend(Duration),
}

/// A message that was not handled: what should become of it, and why.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct HandlerFailure {
    /// What should become of the message.
    pub verdict: Verdict,
    /// Why.
    #[source]
    pub cause: Cause,
}

/// Why a message was not handled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// An argument of the handler could not be made from the message.
    #[error("{handler}: argument {argument}: {rejection}")]
    Rejected {
        /// The handler's name.
        handler: &'static str,
        /// The argument, counted from 1.
        argument: usize,
        /// Why not.
        #[source]
        rejection: Box<Rejection>,
    },
    /// The handler returned an error.
    #[error("{0}")]
    Error(#[source] BoxError),
    /// The handler answered with this [`Outcome`].
    #[error("the handler answered {0:?}")]
    Answered(Outcome),
    /// The handler panicked.
    #[error("the handler panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
}

impl HandlerFailure {
    /// The failure of an error that a handler returned: with its own verdict if it is a [`HandlerError`], else to be
    /// tried again.
    pub fn from_error(error: impl Into<BoxError>) -> Self {
        match error.into().downcast::<Carrier>() {
            Ok(carrier) => {
                let HandlerError { verdict, source } = carrier.0;
                Self {
                    verdict,
                    cause: Cause::Error(source),
                }
            }
            Err(other) => Self {
                verdict: Verdict::Retry,
                cause: Cause::Error(other),
            },
        }
    }

    /// The failure of an argument that could not be made.
    #[must_use]
    pub fn rejected(handler: &'static str, argument: usize, rejection: Rejection) -> Self {
        // The same bytes give the same result: no attempt could succeed. What the application lacks may come back.
        let verdict = if rejection.is_permanent() {
            Verdict::Reject
        } else {
            Verdict::Retry
        };
        Self {
            verdict,
            cause: Cause::Rejected {
                handler,
                argument,
                rejection: Box::new(rejection),
            },
        }
    }

    /// The failure of a handler that panicked.
    #[must_use]
    pub fn panicked(message: String) -> Self {
        Self {
            verdict: Verdict::Retry,
            cause: Cause::Panicked { message },
        }
    }
}

/// What a handler without `#[send_to]` may return.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "not an outcome",
    note = "return `()`, `Outcome`, or a `Result` of these whose error is any error type",
    note = "to send the value on, name where: `#[send_to(\"binding\")]` below `#[stream_listener(..)]`"
)]
pub trait IntoOutcome {
    /// `Ok` acknowledges the message.
    ///
    /// # Errors
    /// The [`HandlerFailure`] that the value stands for.
    fn into_outcome(self) -> Result<(), HandlerFailure>;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Result<(), HandlerFailure> {
        Ok(())
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Result<(), HandlerFailure> {
        let verdict = match &self {
            Self::Ack => return Ok(()),
            Self::Retry => Verdict::Retry,
            Self::RetryAfter(delay) => Verdict::RetryAfter(*delay),
            Self::Reject(_) => Verdict::Reject,
            Self::Skip => Verdict::Skip,
            Self::Suspend(pause) => Verdict::Suspend(*pause),
        };
        Err(HandlerFailure {
            verdict,
            cause: Cause::Answered(self),
        })
    }
}

impl<R: IntoOutcome, E: Into<BoxError>> IntoOutcome for Result<R, E> {
    fn into_outcome(self) -> Result<(), HandlerFailure> {
        self.map_err(HandlerFailure::from_error)?.into_outcome()
    }
}
