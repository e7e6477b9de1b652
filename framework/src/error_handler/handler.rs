//! An error handler as an application holds it, and the explicit way to describe one.
//!
//! ```text
//! #[error_handler] ──inventory──▶ ErrorHandlerDescriptor ──From──▶ ErrorHandler ◀──to(function)── ErrorHandler::on("input")
//! ```

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use super::run::is_of;
use super::{ErrorAction, Failure, FailureContext, FromFailure, IntoErrorAction};
use crate::config::{BindingConfig, DeclaredBinding};
use crate::handler::{BoxFuture, HandlerFailure, Requirement};
use crate::registry::{ErrorHandlerDescriptor, ErrorTarget};

/// What became of a call of an error handler.
pub type ErrorHandlerResult = Result<ErrorAction, HandlerFailure>;

/// A call of an error handler, as the macros write it.
pub type ErrorCallFn = for<'a> fn(FailureContext<'a>) -> BoxFuture<'a, ErrorHandlerResult>;

/// Whether an error is of the type a handler is for.
type Matches = fn(&(dyn Error + 'static)) -> bool;

/// An error handler of an application. A handle: cloning shares the function.
#[derive(Clone)]
pub struct ErrorHandler {
    name: Cow<'static, str>,
    file: Cow<'static, str>,
    line: u32,
    target: Target,
    matches: Option<Matches>,
    requires: Vec<Requirement>,
    call: Arc<dyn ErasedErrorHandler>,
}

/// Which failures are meant for a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Those of bindings that have no handler of their own.
    Default,
    /// Those of this binding, or of the binding whose error channel this is.
    Binding(Cow<'static, str>),
    /// Those of bindings whose `error-handler-definition` is the handler's name.
    Named,
}

pub(crate) trait ErasedErrorHandler: Send + Sync {
    fn call<'a>(&'a self, cx: FailureContext<'a>) -> BoxFuture<'a, ErrorHandlerResult>;
}

impl<F> ErasedErrorHandler for F
where
    F: for<'a> Fn(FailureContext<'a>) -> BoxFuture<'a, ErrorHandlerResult> + Send + Sync,
{
    fn call<'a>(&'a self, cx: FailureContext<'a>) -> BoxFuture<'a, ErrorHandlerResult> {
        self(cx)
    }
}

impl ErrorHandler {
    /// Starts the description of a handler for the failures of one binding, or of the binding with this error channel
    /// (`<destination>.<group>.errors` of an input, `<destination>.errors` of an output). Its place is the caller's.
    ///
    /// ```
    /// # use bindery::prelude::*;
    /// use bindery::error_handler::ErrorHandler;
    ///
    /// async fn on_fail(failure: Failure) -> ErrorAction {
    ///     if failure.attempts() < 10 { ErrorAction::Rethrow } else { ErrorAction::send_to("parking") }
    /// }
    /// let handler = ErrorHandler::on("input").to(on_fail);
    /// ```
    #[track_caller]
    pub fn on(binding: impl Into<Cow<'static, str>>) -> OnError {
        OnError::new(Target::Binding(binding.into()))
    }

    /// Starts the description of a handler for the failures of bindings that have none of their own.
    #[track_caller]
    pub fn by_default() -> OnError {
        OnError::new(Target::Default)
    }

    /// Starts the description of a handler for the bindings whose `error-handler-definition` is this name.
    #[track_caller]
    pub fn named(name: impl Into<Cow<'static, str>>) -> OnError {
        OnError {
            name: Some(name.into()),
            ..OnError::new(Target::Named)
        }
    }

    /// The name, which `error-handler-definition` may use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Whether there are bindings whose failures may be meant for it.
    pub(crate) fn concerns(&self, bindings: &[BindingConfig]) -> bool {
        match &self.target {
            Target::Default => true,
            Target::Binding(target) => bindings.iter().any(|binding| is_of(target, binding)),
            Target::Named => bindings
                .iter()
                .any(|binding| binding.error_handler.as_deref() == Some(&*self.name)),
        }
    }

    pub(crate) fn requirements(&self) -> &[Requirement] {
        &self.requires
    }

    /// Whether the failure's error, or one that caused it, is of the type the handler is for.
    pub(crate) fn is_for(&self, failure: &Failure) -> bool {
        let Some(matches) = self.matches else {
            return true;
        };
        let mut next: Option<&(dyn Error + 'static)> = Some(failure.error());
        while let Some(error) = next {
            if matches(error) {
                return true;
            }
            next = error.source();
        }
        false
    }

    pub(crate) fn call<'a>(&'a self, cx: FailureContext<'a>) -> BoxFuture<'a, ErrorHandlerResult> {
        self.call.call(cx)
    }

    /// The handler as something the program declares under `name`.
    pub(crate) fn declared(&self, name: &str) -> DeclaredBinding {
        DeclaredBinding {
            name: name.to_owned(),
            by: format!("error handler `{}`", self.name),
            file: self.file.to_string(),
            line: self.line,
        }
    }
}

impl From<&'static ErrorHandlerDescriptor> for ErrorHandler {
    fn from(descriptor: &'static ErrorHandlerDescriptor) -> Self {
        let (name, target) = match descriptor.target {
            ErrorTarget::Default => (descriptor.name, Target::Default),
            ErrorTarget::Binding(binding) => (descriptor.name, Target::Binding(binding.into())),
            ErrorTarget::Named(name) => (name, Target::Named),
        };
        Self {
            name: name.into(),
            file: descriptor.file.into(),
            line: descriptor.line,
            target,
            matches: descriptor.matches,
            requires: descriptor.requires.concat(),
            call: Arc::new(descriptor.call),
        }
    }
}

impl fmt::Debug for ErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorHandler")
            .field("name", &self.name)
            .field("line", &self.line)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// An error handler that is being described; see [`ErrorHandler::on`].
#[derive(Debug)]
#[must_use = "finish with `to`"]
pub struct OnError {
    target: Target,
    name: Option<Cow<'static, str>>,
    matches: Option<Matches>,
    file: &'static str,
    line: u32,
}

impl OnError {
    #[track_caller]
    fn new(target: Target) -> Self {
        let caller = std::panic::Location::caller();
        Self {
            target,
            name: None,
            matches: None,
            file: caller.file(),
            line: caller.line(),
        }
    }

    /// Takes only failures whose error is, or was caused by, an `E`.
    pub fn only<E: Error + 'static>(mut self) -> Self {
        self.matches = Some(<dyn Error + 'static>::is::<E>);
        self
    }

    /// Finishes with the function to call.
    pub fn to<F, A>(self, function: F) -> ErrorHandler
    where
        F: CallableOnFailure<A>,
        A: 'static,
    {
        let path = std::any::type_name::<F>();
        let (_, function_name) = path.rsplit_once("::").unwrap_or(("", path));
        ErrorHandler {
            name: self.name.unwrap_or(Cow::Borrowed(function_name)),
            file: self.file.into(),
            line: self.line,
            target: self.target,
            matches: self.matches,
            requires: F::requirements(),
            call: Arc::new(Explicit(function, PhantomData)),
        }
    }
}

struct Explicit<F, A>(F, PhantomData<fn(A)>);

impl<F: CallableOnFailure<A>, A: 'static> ErasedErrorHandler for Explicit<F, A> {
    fn call<'a>(&'a self, cx: FailureContext<'a>) -> BoxFuture<'a, ErrorHandlerResult> {
        self.0.run(cx)
    }
}

/// An async function that takes failures, for [`OnError::to`]. Implemented for up to six arguments that are all
/// [`FromFailure`].
pub trait CallableOnFailure<Arguments>: Send + Sync + 'static {
    /// What the application must have.
    fn requirements() -> Vec<Requirement>;
    /// Extracts the arguments and runs the function.
    fn run<'a>(&'a self, cx: FailureContext<'a>) -> BoxFuture<'a, ErrorHandlerResult>;
}

macro_rules! callable {
    ($($argument:ident $number:literal),*) => {
        impl<F, Fut, $($argument),*> CallableOnFailure<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send,
            Fut::Output: IntoErrorAction,
            $($argument: FromFailure,)*
        {
            fn requirements() -> Vec<Requirement> {
                let lists: &[&[Requirement]] = &[$($argument::REQUIRED),*];
                lists.concat()
            }

            #[allow(non_snake_case, unused_variables, reason = "one name a type parameter; no argument, no use of cx")]
            fn run<'a>(&'a self, cx: FailureContext<'a>) -> BoxFuture<'a, ErrorHandlerResult> {
                Box::pin(async move {
                    $(let $argument = match $argument::from_failure(&cx).await {
                        Ok(argument) => argument,
                        Err(rejection) => return Err(HandlerFailure::rejected(std::any::type_name::<F>(), $number, rejection)),
                    };)*
                    self($($argument),*).await.into_error_action()
                })
            }
        }
    };
}

callable!();
callable!(A 1);
callable!(A 1, B 2);
callable!(A 1, B 2, C 3);
callable!(A 1, B 2, C 3, D 4);
callable!(A 1, B 2, C 3, D 4, E 5);
callable!(A 1, B 2, C 3, D 4, E 5, G 6);
