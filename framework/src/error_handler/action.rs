//! What an error handler decides.

use crate::error::BoxError;
use crate::handler::HandlerFailure;

/// What becomes of a message that could not be handled, in the word of an error handler.
///
/// Of a failed send the caller hears in any case; there `Rethrow` means that it is logged as well.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an action decides about the message only when the error handler returns it"]
pub enum ErrorAction {
    /// Done with: the message is acknowledged.
    Handled,
    /// As if there were no error handler: the message comes again, or becomes a dead letter.
    Rethrow,
    /// The message is sent to this output, with its headers and two about the failure (`x-exception-message`,
    /// `x-original-topic`), and then acknowledged. If it cannot be sent, that is a `Rethrow`.
    SendTo(String),
}

impl ErrorAction {
    /// [`ErrorAction::SendTo`] an output binding. One that only error handlers name has to be declared, by
    /// `spring.cloud.stream.output-bindings` or [`AppBuilder::output`](crate::AppBuilder::output).
    pub fn send_to(output: impl Into<String>) -> Self {
        Self::SendTo(output.into())
    }
}

/// What an error handler may return.
#[diagnostic::on_unimplemented(
    message = "an error handler cannot return `{Self}`",
    label = "not an error action",
    note = "return `ErrorAction`, `()` (the failure is dealt with), or a `Result` of these whose error is any error type"
)]
pub trait IntoErrorAction {
    /// The action.
    ///
    /// # Errors
    /// The error handler failed itself.
    fn into_error_action(self) -> Result<ErrorAction, HandlerFailure>;
}

impl IntoErrorAction for ErrorAction {
    fn into_error_action(self) -> Result<ErrorAction, HandlerFailure> {
        Ok(self)
    }
}

impl IntoErrorAction for () {
    fn into_error_action(self) -> Result<ErrorAction, HandlerFailure> {
        Ok(ErrorAction::Handled)
    }
}

impl<R: IntoErrorAction, E: Into<BoxError>> IntoErrorAction for Result<R, E> {
    fn into_error_action(self) -> Result<ErrorAction, HandlerFailure> {
        self.map_err(HandlerFailure::from_error)?
            .into_error_action()
    }
}
