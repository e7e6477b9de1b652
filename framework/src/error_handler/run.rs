//! The error handlers of one binding, and what they decide together.

use super::handler::Target;
use super::{ErrorAction, ErrorHandler, Failure, FailureContext};
use crate::binding::{Bindings, SendError};
use crate::config::BindingConfig;
use crate::handler::{AppContext, Delivery, MessageContext};
use crate::headers::Headers;
use crate::pipeline::Chain;
use crate::registry::Direction;
use crate::transaction::caught;

/// The header that says why a message was sent on by an error handler; Spring Cloud Stream's name.
const REASON: &str = "x-exception-message";
/// The header that says where such a message came from.
const ORIGIN: &str = "x-original-topic";
/// Characters of the reason: all headers of a message have to fit 32,767 bytes.
const MAX_REASON: usize = 1000;

/// The error handlers of one binding.
#[derive(Debug, Clone, Default)]
pub(crate) struct ErrorHandlers {
    own: Vec<ErrorHandler>,
    /// For failures that none of its own is for.
    fallback: Vec<ErrorHandler>,
}

impl ErrorHandlers {
    /// Those among `all` that are for this binding: the ones its `error-handler-definition` names and no other, else its
    /// own, and the default ones behind them.
    pub(crate) fn of(all: &[ErrorHandler], binding: &BindingConfig, direction: Direction) -> Self {
        if let Some(definition) = &binding.error_handler {
            let named = all.iter().filter(|handler| handler.name() == definition);
            return Self {
                own: named.cloned().collect(),
                fallback: Vec::new(),
            };
        }
        let channels = channels(binding, direction);
        let is_own = |handler: &&ErrorHandler| match handler.target() {
            Target::Binding(target) => {
                target.eq_ignore_ascii_case(&binding.name)
                    || channels.iter().any(|channel| *channel == **target)
            }
            Target::Default | Target::Named => false,
        };
        let is_default = |handler: &&ErrorHandler| *handler.target() == Target::Default;
        Self {
            own: all.iter().filter(is_own).cloned().collect(),
            fallback: all.iter().filter(is_default).cloned().collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.fallback.is_empty()
    }

    /// Lets every handler that is for this failure see it, and does what they say: one that does not want the message
    /// acknowledged decides against all others. Without a handler, and after a failed one, that is a `Rethrow`.
    pub(crate) async fn handle(
        &self,
        failure: &Failure,
        delivery: &Delivery,
        app: &AppContext,
    ) -> Outcome {
        let mut chosen = for_failure(&self.own, failure);
        if chosen.is_empty() {
            chosen = for_failure(&self.fallback, failure);
        }
        if chosen.is_empty() {
            return Outcome::NoHandler;
        }
        let cx = FailureContext {
            failure,
            message: MessageContext {
                message: failure.message(),
                info: delivery,
                app,
            },
        };
        let mut outcome = Outcome::Handled;
        for handler in chosen {
            if !done(handler, cx).await {
                outcome = Outcome::Rethrown;
            }
        }
        outcome
    }
}

/// What the handlers of a binding made of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There is none for it.
    NoHandler,
    /// It is done with.
    Handled,
    /// It goes on as without handlers.
    Rethrown,
}

fn for_failure<'a>(handlers: &'a [ErrorHandler], failure: &Failure) -> Vec<&'a ErrorHandler> {
    handlers
        .iter()
        .filter(|handler| handler.is_for(failure))
        .collect()
}

/// The names under which Spring Cloud Stream 3 publishes the failures of a binding.
pub(super) fn channels(binding: &BindingConfig, direction: Direction) -> Vec<String> {
    let destinations = binding.destinations();
    match (direction, &binding.group) {
        (Direction::Input, Some(group)) => destinations
            .map(|destination| format!("{destination}.{group}.errors"))
            .collect(),
        (Direction::Input, None) => Vec::new(),
        (Direction::Output, _) => destinations
            .map(|destination| format!("{destination}.errors"))
            .collect(),
    }
}

/// Whether a handler's target is this binding, by its name or one of its channels.
pub(crate) fn is_of(target: &str, binding: &BindingConfig) -> bool {
    target.eq_ignore_ascii_case(&binding.name)
        || [Direction::Input, Direction::Output]
            .into_iter()
            .flat_map(|direction| channels(binding, direction))
            .any(|channel| channel == target)
}

/// Runs one handler and its action; whether the failure is done with.
async fn done(handler: &ErrorHandler, cx: FailureContext<'_>) -> bool {
    let (binding, name) = (cx.failure.binding(), handler.name());
    let action = match caught(handler.call(cx)).await {
        Some(Ok(action)) => action,
        Some(Err(error)) => {
            tracing::error!(binding, handler = name, error = %Chain(&error), "error handler failed");
            return false;
        }
        None => {
            tracing::error!(binding, handler = name, "error handler panicked");
            return false;
        }
    };
    match action {
        ErrorAction::Handled => true,
        ErrorAction::Rethrow => false,
        ErrorAction::SendTo(output) => match send_on(&output, cx).await {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(binding, handler = name, output, error = %Chain(&error), "failed message not sent on");
                false
            }
        },
    }
}

async fn send_on(output: &str, cx: FailureContext<'_>) -> Result<(), SendError> {
    let unknown = || SendError::UnknownBinding {
        name: output.to_owned(),
        did_you_mean: None,
    };
    let bindings = cx.message.app.extension::<Bindings>().ok_or_else(unknown)?;
    let output = bindings.output_to_send(output)?;
    let message = cx.failure.message();
    let reason: String = Chain(cx.failure.error())
        .to_string()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_REASON)
        .collect();
    let mut headers = Headers::new();
    headers.insert(REASON, reason);
    headers.insert(ORIGIN, cx.message.info.topic.to_string());
    headers.copy_absent_from(message.headers());
    let prepared = output.prepare(message.payload(), headers)?;
    // Unreported: error handlers of that output might send it back here.
    output.send_unreported(&prepared).await.map(drop)
}
