//! `StreamBridge`: sending to an output whose name is known only at run time.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Serialize;

use super::bindings::Bindings;
use super::error::SendError;
use super::output::{OutputBinding, Prepared};
use super::receipt::SendReceipt;
use crate::handler::{FromMessage, MessageContext, Rejection};
use crate::message::Message;
use crate::transaction::{TxArgs, TxReceipt};
use crate::web::{MissingFromApp, app_context};

/// Sends to any configured output by its name. Cheap to clone, and needs no lock.
///
/// ```
/// use bindery::prelude::*;
///
/// # bindery::testing::entry::example("spring.cloud.stream.bindings: { doc-north: { destination: north } }", |t| async move {
/// let bridge: StreamBridge = t.app().bridge();
/// bridge.send("doc-north", "tea").await.unwrap();
/// assert_eq!(t.stored("north").await.len(), 1);
///
/// let unknown = bridge.send("doc-norht", "tea").await.unwrap_err();
/// assert!(unknown.to_string().contains("did you mean `doc-north`?"));
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct StreamBridge {
    bindings: Bindings,
}

impl StreamBridge {
    pub(crate) fn new(bindings: Bindings) -> Self {
        Self { bindings }
    }

    /// Finds the output, and encodes and places the message: what is done before anything waits.
    fn prepare(
        &self,
        binding: &str,
        message: impl IntoMessage,
    ) -> Result<(Arc<OutputBinding>, Prepared), SendError> {
        let (payload, headers) = message.into_message().into_parts();
        let output = self.bindings.output_to_send(binding)?;
        let prepared = output.prepare(&payload, headers)?;
        Ok((output, prepared))
    }

    /// Sends one message through the output `binding`, with that output's content type and partition key.
    ///
    /// # Errors
    /// [`SendError::UnknownBinding`] for a name that is no output (nothing is created by accident), else as
    /// [`Output::send`](super::Output::send).
    pub fn send(
        &self,
        binding: &str,
        message: impl IntoMessage,
    ) -> impl Future<Output = Result<SendReceipt, SendError>> + Send {
        let prepared = self.prepare(binding, message);
        async move {
            let (output, prepared) = prepared?;
            output.send_prepared(prepared).await
        }
    }

    /// Hands one message over and returns at once, see [`Output::post`](super::Output::post).
    ///
    /// # Errors
    /// [`SendError::UnknownBinding`] for a name that is no output, else as [`Output::post`](super::Output::post).
    pub fn post(&self, binding: &str, message: impl IntoMessage) -> Result<(), SendError> {
        let (output, prepared) = self.prepare(binding, message)?;
        output.start(prepared).map(drop)
    }

    /// Sends one message in a transaction, see [`Output::send_in_transaction`](super::Output::send_in_transaction).
    ///
    /// # Errors
    /// [`SendError::UnknownBinding`] for a name that is no output, else as
    /// [`Output::send_in_transaction`](super::Output::send_in_transaction).
    pub fn send_in_transaction(
        &self,
        binding: &str,
        message: impl IntoMessage,
        args: TxArgs,
    ) -> impl Future<Output = Result<TxReceipt, SendError>> + Send {
        let prepared = self.prepare(binding, message);
        async move {
            let (output, prepared) = prepared?;
            output.send_prepared_in_transaction(&prepared, args).await
        }
    }
}

/// What [`StreamBridge::send`] takes: a payload, or a [`Message`] with headers. Unlike [`Output`](super::Output) the
/// bridge does not fix the payload's type, so the type has to follow from the argument.
pub trait IntoMessage {
    /// The payload.
    type Payload: Serialize + Send + Sync + 'static;

    /// The message.
    fn into_message(self) -> Message<Self::Payload>;
}

impl<T: Serialize + Send + Sync + 'static> IntoMessage for T {
    type Payload = T;

    fn into_message(self) -> Message<T> {
        Message::new(self)
    }
}

impl<T: Serialize + Send + Sync + 'static> IntoMessage for Message<T> {
    type Payload = T;

    fn into_message(self) -> Self {
        self
    }
}

impl FromMessage for StreamBridge {
    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        let bindings = cx.app.extension::<Bindings>().ok_or(Rejection::Missing {
            type_name: "StreamBridge",
        })?;
        Ok(Self::new((*bindings).clone()))
    }
}

impl<R: Send + Sync> FromRequestParts<R> for StreamBridge {
    type Rejection = MissingFromApp;

    async fn from_request_parts(parts: &mut Parts, _state: &R) -> Result<Self, MissingFromApp> {
        let bindings = app_context(parts).and_then(|app| app.extension::<Bindings>());
        bindings
            .map(|bindings| Self::new((*bindings).clone()))
            .ok_or(MissingFromApp {
                type_name: "StreamBridge",
            })
    }
}
