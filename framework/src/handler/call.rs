//! Calling a handler that is known only by its name: extraction, the call, the conversion of its result, and a guard
//! against panics, in one boxed future per message.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::MessageContext;
use super::extract::{FromMessage, Requirement};
use super::outcome::{HandlerFailure, IntoOutcome};
use super::reply::{IntoReplies, Reply};

/// A future behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What became of a call: what is to be sent (empty for most handlers), or why the message was not handled.
pub type HandlerResult = Result<Vec<Reply>, HandlerFailure>;

/// A handler whose argument types are forgotten.
pub trait ErasedHandler: Send + Sync {
    /// Extracts the arguments, runs the handler, converts its result. A panic in it is a [`HandlerFailure`], not a panic here.
    fn call<'a>(&'a self, cx: MessageContext<'a>) -> BoxFuture<'a, HandlerResult>;
}

impl<F> ErasedHandler for F
where
    F: for<'a> Fn(MessageContext<'a>) -> BoxFuture<'a, HandlerResult> + Send + Sync,
{
    fn call<'a>(&'a self, cx: MessageContext<'a>) -> BoxFuture<'a, HandlerResult> {
        // The part before the first await runs here already, inside the guard.
        match catch_unwind(AssertUnwindSafe(|| self(cx))) {
            Ok(future) => catching(future),
            Err(panic) => Box::pin(std::future::ready(Err(HandlerFailure::panicked(
                panic_message(&*panic),
            )))),
        }
    }
}

/// Turns a panic of the future into a failure.
pub(crate) fn catching(future: BoxFuture<'_, HandlerResult>) -> BoxFuture<'_, HandlerResult> {
    Box::pin(Guarded(future))
}

struct Guarded<'a>(BoxFuture<'a, HandlerResult>);

impl Future for Guarded<'_> {
    type Output = HandlerResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<HandlerResult> {
        // Whatever the handler shared stays behind locks and atomics of its own; the future itself is not polled again.
        catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))).unwrap_or_else(|panic| {
            Poll::Ready(Err(HandlerFailure::panicked(panic_message(&*panic))))
        })
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".to_owned(),
    }
}

/// An async function that handles messages without an answer, for [`Handler::listen`](crate::registry::Handler::listen).
/// Implemented for up to twelve arguments that are all [`FromMessage`].
pub trait Callable<Arguments>: Send + Sync + 'static {
    /// What the application must have.
    fn requirements() -> Vec<Requirement>;
    /// Extracts the arguments and runs the function.
    fn run<'a>(&'a self, cx: MessageContext<'a>) -> BoxFuture<'a, HandlerResult>;
}

/// An async function whose value is sent on, for `Handler::listen(..).send_to(..)`.
pub trait CallableWithReply<Arguments>: Send + Sync + 'static {
    /// What the application must have.
    fn requirements() -> Vec<Requirement>;
    /// Extracts the arguments and runs the function.
    fn run<'a>(&'a self, cx: MessageContext<'a>) -> BoxFuture<'a, HandlerResult>;
}

macro_rules! callable {
    ($($argument:ident $number:literal),*) => {
        callable!(@one Callable IntoOutcome, |result| result.into_outcome().map(|()| Vec::new()), $($argument $number),*);
        callable!(@one CallableWithReply IntoReplies, |result| result.into_replies(0), $($argument $number),*);
    };
    (@one $trait:ident $bound:ident, |$result:ident| $convert:expr, $($argument:ident $number:literal),*) => {
        impl<F, Fut, $($argument),*> $trait<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut + Send + Sync + 'static,
            Fut: Future + Send,
            Fut::Output: $bound,
            $($argument: FromMessage,)*
        {
            fn requirements() -> Vec<Requirement> {
                let lists: &[&[Requirement]] = &[$($argument::REQUIRES),*];
                lists.concat()
            }

            #[allow(non_snake_case, unused_variables, reason = "one name a type parameter; no argument, no use of cx")]
            fn run<'a>(&'a self, cx: MessageContext<'a>) -> BoxFuture<'a, HandlerResult> {
                Box::pin(async move {
                    $(let $argument = match $argument::from_message(&cx).await {
                        Ok(argument) => argument,
                        Err(rejection) => return Err(HandlerFailure::rejected(std::any::type_name::<F>(), $number, rejection)),
                    };)*
                    let $result = self($($argument),*).await;
                    $convert
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
callable!(A 1, B 2, C 3, D 4, E 5, G 6, H 7);
callable!(A 1, B 2, C 3, D 4, E 5, G 6, H 7, I 8);
callable!(A 1, B 2, C 3, D 4, E 5, G 6, H 7, I 8, J 9);
callable!(A 1, B 2, C 3, D 4, E 5, G 6, H 7, I 8, J 9, K 10);
callable!(A 1, B 2, C 3, D 4, E 5, G 6, H 7, I 8, J 9, K 10, L 11);
callable!(A 1, B 2, C 3, D 4, E 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
