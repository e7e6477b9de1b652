//! Payloads as handler arguments.

use std::any::Any;

use axum::Json;
use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::{FromMessage, Rejection};
use crate::Message;
use crate::convert;
use crate::handler::MessageContext;

/// The payload as text, exactly as it travelled: unlike a `String` argument, never unquoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

/// A `#[payload]` argument: text for `String`, the bytes as they are for `Bytes`, else read by serde.
///
/// # Errors
/// The payload is not what `T` needs.
pub fn payload_argument<T: DeserializeOwned + 'static>(
    cx: &MessageContext<'_>,
) -> Result<T, Rejection> {
    // Text and bytes have serde forms as well, but those would insist on quotes or a list of numbers.
    let mut slot: Option<T> = None;
    let any: &mut dyn Any = &mut slot;
    if let Some(text) = any.downcast_mut::<Option<String>>() {
        *text = Some(convert::decode_string(cx.message, cx.info)?);
    } else if let Some(bytes) = any.downcast_mut::<Option<Bytes>>() {
        *bytes = Some(cx.message.payload().clone());
    }
    match slot {
        Some(payload) => Ok(payload),
        None => Ok(convert::decode_json(cx.message, cx.info)?),
    }
}

impl<T: DeserializeOwned + Send> FromMessage for Json<T> {
    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        Ok(Self(convert::decode_json(cx.message, cx.info)?))
    }
}

impl FromMessage for serde_json::Value {
    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        payload_argument(cx)
    }
}

impl FromMessage for Text {
    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        Ok(Self(convert::decode_text(cx.message, cx.info)?))
    }
}

impl FromMessage for String {
    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        Ok(convert::decode_string(cx.message, cx.info)?)
    }
}

impl FromMessage for Bytes {
    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        Ok(cx.message.payload().clone())
    }
}

impl FromMessage for Vec<u8> {
    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        Ok(cx.message.payload().to_vec())
    }
}

impl<T: DeserializeOwned + Send + 'static> FromMessage for Message<T> {
    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        Ok(Self::from_parts(
            payload_argument(cx)?,
            cx.message.headers().clone(),
        ))
    }
}
