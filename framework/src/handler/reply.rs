//! Values that a handler answers with, on their way to the bindings that `#[send_to]` names.
//!
//! ```text
//! Result ─▶ Option ─▶ tuple (one element an output) ─▶ Message · Json · Vec · T: Serialize ─▶ Reply { output, payload, headers }
//! ```
//!
//! A reply keeps its typed payload: the output's partition-key expression is evaluated on it, and the output's content
//! type decides how it is encoded.

use std::fmt;

use axum::Json;
use bytes::Bytes;
use serde::Serialize;

use super::outcome::HandlerFailure;
use crate::Message;
use crate::convert::{Payload, Quoted};
use crate::error::BoxError;
use crate::headers::Headers;

/// One message to be sent as the answer of a handler.
pub struct Reply {
    /// Which of the handler's outputs it goes to, counted from 0.
    pub output: usize,
    /// The payload, not yet encoded.
    pub payload: Box<dyn Payload>,
    /// The headers that the handler set.
    pub headers: Headers,
}

impl Reply {
    fn new(output: usize, payload: impl Payload + 'static) -> Self {
        Self {
            output,
            payload: Box::new(payload),
            headers: Headers::new(),
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("output", &self.output)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// What a handler with one output may return as it is. In a `#[send_to]` handler any `T: Serialize` is accepted beside.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent as the answer of a handler",
    note = "return `Json<T>`, `Message<T>`, `String`, `Bytes`, or an `Option`, `Vec` or `Result` of these"
)]
pub trait IntoReplies {
    /// The messages to send to this output; none for `None`.
    ///
    /// # Errors
    /// The [`HandlerFailure`] of an `Err`.
    fn into_replies(self, output: usize) -> Result<Vec<Reply>, HandlerFailure>;
}

impl<T: Serialize + Send + Sync + 'static> IntoReplies for Json<T> {
    fn into_replies(self, output: usize) -> Result<Vec<Reply>, HandlerFailure> {
        Ok(vec![Reply::new(output, Quoted(self.0))])
    }
}

impl<T: Serialize + Send + Sync + 'static> IntoReplies for Message<T> {
    fn into_replies(self, output: usize) -> Result<Vec<Reply>, HandlerFailure> {
        let (payload, headers) = self.into_parts();
        Ok(vec![Reply {
            output,
            payload: Box::new(payload),
            headers,
        }])
    }
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl IntoReplies for $type {
            fn into_replies(self, output: usize) -> Result<Vec<Reply>, HandlerFailure> {
                Ok(vec![Reply::new(output, self)])
            }
        }
    )*};
}
plain!(String, &'static str, Bytes, serde_json::Value);

impl<R: IntoReplies> IntoReplies for Option<R> {
    fn into_replies(self, output: usize) -> Result<Vec<Reply>, HandlerFailure> {
        self.map_or_else(|| Ok(Vec::new()), |reply| reply.into_replies(output))
    }
}

impl<R: IntoReplies> IntoReplies for Vec<R> {
    fn into_replies(self, output: usize) -> Result<Vec<Reply>, HandlerFailure> {
        let mut replies = Vec::with_capacity(self.len());
        for reply in self {
            replies.append(&mut reply.into_replies(output)?);
        }
        Ok(replies)
    }
}

impl<R: IntoReplies, E: Into<BoxError>> IntoReplies for Result<R, E> {
    fn into_replies(self, output: usize) -> Result<Vec<Reply>, HandlerFailure> {
        self.map_err(HandlerFailure::from_error)?
            .into_replies(output)
    }
}

/// A value that `#[send_to]` can send: anything serde can write.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent to a binding",
    label = "not serializable",
    note = "return a type that implements `serde::Serialize` (and is `Send + Sync + 'static`), `Message<T>`, `Json<T>`, `String`, `Bytes`, or an `Option`, `Vec`, `Result` or (for several outputs) tuple of these"
)]
pub trait ReplyValue {
    /// The reply with this payload.
    fn into_reply(self, output: usize) -> Reply;
}

impl<T: Serialize + Send + Sync + 'static> ReplyValue for T {
    fn into_reply(self, output: usize) -> Reply {
        Reply::new(output, self)
    }
}

/// How an expansion of `#[send_to]` finds out what its handler returned.
///
/// `T: Serialize` overlaps with `Result`, `Option`, `Vec` and `Message`, which serde can write as well, and the macro
/// sees tokens, not types. So each step asks the concrete type by method resolution: the candidate on `&Probe<T>`
/// is found before the one on `&&Probe<T>`.
pub mod probe {
    use std::marker::PhantomData;

    use super::{HandlerFailure, IntoReplies, Reply, ReplyValue};
    use crate::error::BoxError;

    /// Carries a type without a value.
    #[derive(Debug)]
    pub struct Probe<T>(PhantomData<T>);

    /// The probe of a value's type.
    #[must_use]
    pub fn of<T>(_: &T) -> Probe<T> {
        Probe(PhantomData)
    }

    macro_rules! step {
        ($(#[$doc:meta])* $specific:ident $general:ident $method:ident: $tag:ident [$($generics:tt)*] $type:ty; else $other:ident) => {
            $(#[$doc])*
            pub trait $specific {
                /// The tag of the specific case.
                fn $method(&self) -> $tag {
                    $tag
                }
            }
            impl<$($generics)*> $specific for Probe<$type> {}

            $(#[$doc])*
            pub trait $general {
                /// The tag of the general case.
                fn $method(&self) -> $other {
                    $other
                }
            }
            impl<T> $general for &Probe<T> {}

            /// The tag of the specific case.
            #[derive(Clone, Copy, Debug)]
            pub struct $tag;

            /// The tag of the general case.
            #[derive(Clone, Copy, Debug)]
            pub struct $other;
        };
    }

    step! {
        /// First step: is it a `Result`?
        ResultProbe NoResultProbe result_step: IsResult [T, E] Result<T, E>; else NoResult
    }
    step! {
        /// Second step: is it an `Option`?
        OptionProbe NoOptionProbe option_step: IsOption [T] Option<T>; else NoOption
    }
    step! {
        /// Third step: does it know itself what it sends?
        RepliesProbe NoRepliesProbe replies_step: IsReplies [T: IntoReplies] T; else NoReplies
    }
    step! {
        /// Fourth step: are these several payloads?
        ListProbe NoListProbe list_step: IsList [T] Vec<T>; else NoList
    }

    impl IsResult {
        /// The value, or the failure of the error.
        ///
        /// # Errors
        /// The error as a failure.
        pub fn value<T, E: Into<BoxError>>(
            self,
            result: Result<T, E>,
        ) -> Result<T, HandlerFailure> {
            result.map_err(HandlerFailure::from_error)
        }
    }

    impl NoResult {
        /// The value itself.
        ///
        /// # Errors
        /// None.
        pub fn value<T>(self, value: T) -> Result<T, HandlerFailure> {
            Ok(value)
        }
    }

    impl IsOption {
        /// The option itself.
        pub fn value<T>(self, option: Option<T>) -> Option<T> {
            option
        }
    }

    impl NoOption {
        /// The value, present.
        pub fn value<T>(self, value: T) -> Option<T> {
            Some(value)
        }
    }

    impl IsReplies {
        /// The replies of the value.
        ///
        /// # Errors
        /// The failure the value stands for.
        pub fn replies<L, T: IntoReplies>(
            self,
            _: L,
            value: T,
            output: usize,
        ) -> Result<Vec<Reply>, HandlerFailure> {
            value.into_replies(output)
        }
    }

    impl NoReplies {
        /// The replies of a plain value or of a list of them.
        ///
        /// # Errors
        /// None.
        pub fn replies<L: Spread<T>, T>(
            self,
            list: L,
            value: T,
            output: usize,
        ) -> Result<Vec<Reply>, HandlerFailure> {
            Ok(list.spread(value, output))
        }
    }

    /// Makes one or several replies of a value.
    pub trait Spread<T> {
        /// The replies.
        fn spread(self, value: T, output: usize) -> Vec<Reply>;
    }

    impl<T: ReplyValue> Spread<Vec<T>> for IsList {
        fn spread(self, values: Vec<T>, output: usize) -> Vec<Reply> {
            values
                .into_iter()
                .map(|value| value.into_reply(output))
                .collect()
        }
    }

    impl<T: ReplyValue> Spread<T> for NoList {
        fn spread(self, value: T, output: usize) -> Vec<Reply> {
            vec![value.into_reply(output)]
        }
    }
}
