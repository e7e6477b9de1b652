//! From a typed payload to the bytes of a message.
//!
//! ```text
//! bytes ─────────────────▶ as they are, under any content type
//! text ── JSON ──────────▶ raw (quoted with `json-strings: true` or in a `Json`), text/* in its charset, else as text/plain
//! numbers, booleans ─────▶ JSON or text
//! everything else ───────▶ JSON only
//! ```

use std::any::{Any, type_name};

use bindery_expression::{EvalError, Expression, Value};
use bytes::Bytes;
use serde::Serialize;

use super::content_type::{Charset, ContentType};
use super::roots::{JsonRoot, KeyRoot};
use super::shape::{Shape, shape};
use crate::headers::Headers;

/// How an output encodes, beside its content type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Quote a text payload under a JSON content type, as functional Java consumers expect it; off by default, as the
    /// annotation model sends it.
    pub json_strings: bool,
}

/// An encoded payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The body of the message.
    pub bytes: Bytes,
    /// What the body is: the content type asked for, or `text/plain` for a text under a type that is neither text nor
    /// JSON.
    pub content_type: ContentType,
}

/// Why a payload has no encoding.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// JSON cannot hold the value (a map whose keys are no texts, an error of its own `Serialize`).
    #[error("`{type_name}` cannot be written as JSON: {source}")]
    Json {
        /// The payload's type.
        type_name: &'static str,
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
    /// No codec writes such a value under this content type.
    #[error(
        "no codec writes `{type_name}` as `{content_type}`; use `application/json`, or send a text or bytes"
    )]
    NoCodec {
        /// The payload's type.
        type_name: &'static str,
        /// The output's content type.
        content_type: ContentType,
    },
    /// The charset is unknown or lacks a character of the text.
    #[error("the text cannot be written as `{content_type}`: {reason}")]
    Charset {
        /// The output's content type.
        content_type: ContentType,
        /// What is wrong.
        reason: &'static str,
    },
}

/// A payload that can be sent: anything serde can write.
pub trait Payload: Send + Sync {
    /// The payload as the body of a message with this content type.
    ///
    /// # Errors
    /// [`EncodeError`]; the same payload and content type fail every time.
    fn encode(
        &self,
        content_type: &ContentType,
        options: EncodeOptions,
    ) -> Result<Encoded, EncodeError>;

    /// The value of an expression over this payload and the headers, with the types the payload has: an `i64` field is
    /// a `Long`, so that its hash is the one a Java producer computes.
    ///
    /// # Errors
    /// [`EvalError`] with the position in the expression.
    fn evaluate(&self, expression: &Expression, headers: &Headers) -> Result<Value, EvalError>;

    /// The payload itself, for code that takes one type of payload.
    fn as_any(&self) -> &dyn Any;

    /// The name of the payload's type, for messages.
    fn type_name(&self) -> &'static str;
}

impl<T: Serialize + Send + Sync + 'static> Payload for T {
    fn encode(
        &self,
        content_type: &ContentType,
        options: EncodeOptions,
    ) -> Result<Encoded, EncodeError> {
        match shape(self) {
            Shape::Bytes(bytes) => Ok(encoded(bytes, content_type)),
            Shape::Text(_) if content_type.is_json() && options.json_strings => {
                json(self, content_type)
            }
            Shape::Text(text) => encode_text(text, content_type),
            _ if content_type.is_json() => json(self, content_type),
            Shape::Scalar(text) if content_type.is_text() => encode_text(text, content_type),
            Shape::Scalar(_) | Shape::Structure => Err(EncodeError::NoCodec {
                type_name: type_name::<T>(),
                content_type: content_type.clone(),
            }),
        }
    }

    fn evaluate(&self, expression: &Expression, headers: &Headers) -> Result<Value, EvalError> {
        let payload: &dyn Any = self;
        match payload.downcast_ref::<serde_json::Value>() {
            // Its numbers have no types of their own: they get those that Jackson gives them.
            Some(json) => expression.eval(&JsonRoot::new(json, headers)),
            None => expression.eval(&KeyRoot::new(self, headers)),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &'static str {
        type_name::<T>()
    }
}

/// A payload that is JSON whatever it is: a text in it is quoted. What a handler's `Json<T>` becomes.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<T>(pub T);

impl<T: Serialize + Send + Sync + 'static> Payload for Quoted<T> {
    fn encode(&self, content_type: &ContentType, _: EncodeOptions) -> Result<Encoded, EncodeError> {
        let content_type = if content_type.is_json() {
            content_type.clone()
        } else {
            ContentType::json()
        };
        json(&self.0, &content_type)
    }

    fn evaluate(&self, expression: &Expression, headers: &Headers) -> Result<Value, EvalError> {
        self.0.evaluate(expression, headers)
    }

    fn as_any(&self) -> &dyn Any {
        &self.0
    }

    fn type_name(&self) -> &'static str {
        type_name::<T>()
    }
}

fn json<T: Serialize>(value: &T, content_type: &ContentType) -> Result<Encoded, EncodeError> {
    match serde_json::to_vec(value) {
        Ok(bytes) => Ok(encoded(bytes, content_type)),
        Err(source) => Err(EncodeError::Json {
            type_name: type_name::<T>(),
            source,
        }),
    }
}

fn encode_text(text: String, content_type: &ContentType) -> Result<Encoded, EncodeError> {
    if !content_type.is_text() {
        let label = if content_type.is_json() {
            content_type
        } else {
            &ContentType::text()
        };
        return Ok(encoded(text.into_bytes(), label));
    }
    let refused = |reason| EncodeError::Charset {
        content_type: content_type.clone(),
        reason,
    };
    let bytes = match content_type
        .charset()
        .ok_or_else(|| refused("the charset is not supported"))?
    {
        Charset::Utf8 => text.into_bytes(),
        Charset::Ascii if text.is_ascii() => text.into_bytes(),
        Charset::Ascii => return Err(refused("US-ASCII lacks a character of it")),
        Charset::Latin1 => {
            let bytes: Option<Vec<u8>> = text
                .chars()
                .map(|c| u8::try_from(u32::from(c)).ok())
                .collect();
            bytes.ok_or_else(|| refused("ISO-8859-1 lacks a character of it"))?
        }
    };
    Ok(encoded(bytes, content_type))
}

fn encoded(bytes: Vec<u8>, content_type: &ContentType) -> Encoded {
    Encoded {
        bytes: bytes.into(),
        content_type: content_type.clone(),
    }
}
