//! The error of a handler that says itself what should become of the message.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use super::Verdict;
use crate::error::BoxError;

/// An error with a verdict. Any error converts into it with the verdict [`Verdict::Retry`], so that `?` works.
///
/// A handler may as well return its own error type: `Result<(), E>` is accepted for every `E` that converts into
/// `Box<dyn Error + Send + Sync>`. This type is for handlers that decide per error.
///
/// ```
/// # use bindery::handler::HandlerError;
/// fn check(amount: i64) -> Result<(), HandlerError> {
///     if amount < 0 {
///         return Err(HandlerError::reject("a negative amount never gets better"));
///     }
///     "17".parse::<i64>()?; // any error: the message is tried again
///     Ok(())
/// }
/// # assert!(check(-1).is_err() && check(1).is_ok());
/// ```
// Not an `Error` itself: the blanket conversion below would otherwise collide with `From<T> for T`.
#[derive(Debug)]
pub struct HandlerError {
    pub(super) verdict: Verdict,
    pub(super) source: BoxError,
}

impl HandlerError {
    /// The message is tried again, in this process and then by the broker.
    pub fn retry(error: impl Into<BoxError>) -> Self {
        Self {
            verdict: Verdict::Retry,
            source: error.into(),
        }
    }

    /// The message comes back after about this time.
    pub fn retry_after(delay: Duration, error: impl Into<BoxError>) -> Self {
        Self {
            verdict: Verdict::RetryAfter(delay),
            source: error.into(),
        }
    }

    /// The message is given up at once and becomes a dead letter.
    pub fn reject(error: impl Into<BoxError>) -> Self {
        Self {
            verdict: Verdict::Reject,
            source: error.into(),
        }
    }

    /// The message counts as handled; the error is logged and counted.
    pub fn skip(error: impl Into<BoxError>) -> Self {
        Self {
            verdict: Verdict::Skip,
            source: error.into(),
        }
    }

    /// An orderly input's queue waits this long before the message is tried again.
    pub fn suspend(pause: Duration, error: impl Into<BoxError>) -> Self {
        Self {
            verdict: Verdict::Suspend(pause),
            source: error.into(),
        }
    }

    /// What should become of the message.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl From<HandlerError> for BoxError {
    fn from(error: HandlerError) -> Self {
        Box::new(Carrier(error))
    }
}

/// Carries a [`HandlerError`] through `Box<dyn Error>`, so that one bound takes every kind of error.
#[derive(Debug)]
pub(super) struct Carrier(pub(super) HandlerError);

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Carrier {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.source()
    }
}
