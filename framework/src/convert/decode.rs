//! From the bytes of a received message to what a handler's argument asks for.

use std::any::type_name;

use serde::de::DeserializeOwned;

use super::content_type::{Charset, ContentType, ContentTypeError};
use crate::Message;
use crate::handler::Delivery;

/// Why a payload cannot be read as asked. The same bytes fail every time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The payload is no JSON, or not of the argument's type.
    #[error("the payload is no `{type_name}`{}: {source}", at_path(path))]
    Json {
        /// The argument's type.
        type_name: &'static str,
        /// Where in the JSON, for instance `lines[1].price`; empty for the whole.
        path: String,
        /// Cause, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// The bytes are not text in their charset.
    #[error("the payload is no text in UTF-8, from byte {valid_up_to} on")]
    NotUtf8 {
        /// How many bytes are valid.
        valid_up_to: usize,
        /// Cause.
        #[source]
        source: std::str::Utf8Error,
    },
    /// The text has a charset that is not supported.
    #[error(
        "the payload's charset is not supported: `{content_type}`; UTF-8, US-ASCII and ISO-8859-1 are"
    )]
    Charset {
        /// The message's content type.
        content_type: ContentType,
    },
    /// The message says what it is in a form that is no content type.
    #[error("the message's content type is unreadable")]
    ContentType(#[from] ContentTypeError),
    /// The payload is a serialized Java object.
    #[error("the payload is a serialized Java object (`{content_type}`), which only Java can read")]
    JavaObject {
        /// The message's content type.
        content_type: ContentType,
    },
    /// The binding is strict and the message is labelled as something else.
    #[error(
        "the message is labelled `{content_type}`, the argument takes JSON and the binding is strict"
    )]
    NotJson {
        /// The message's content type.
        content_type: ContentType,
    },
}

fn at_path(path: &str) -> String {
    if path.is_empty() || path == "." {
        String::new()
    } else {
        format!(" at `{path}`")
    }
}

/// Reads the payload as JSON. A label other than JSON is ignored, as many producers mislabel, unless the binding is
/// strict.
///
/// # Errors
/// [`DecodeError`] with the path, line and column.
pub fn decode_json<T: DeserializeOwned>(
    message: &Message,
    delivery: &Delivery,
) -> Result<T, DecodeError> {
    let content_type = content_type(message, delivery)?;
    if content_type.is_java_object() {
        return Err(DecodeError::JavaObject { content_type });
    }
    if delivery.strict_content_type && !content_type.is_json() {
        return Err(DecodeError::NotJson { content_type });
    }
    let bytes = message.payload();
    serde_json::from_slice(bytes).map_err(|plain| json_error::<T>(bytes, plain))
}

/// Reads once more, slower, to learn where in the JSON it fails.
fn json_error<T: DeserializeOwned>(bytes: &[u8], plain: serde_json::Error) -> DecodeError {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(_) => DecodeError::Json {
            type_name: type_name::<T>(),
            path: String::new(),
            source: plain,
        },
        Err(error) => {
            let path = error.path().to_string();
            DecodeError::Json {
                type_name: type_name::<T>(),
                path,
                source: error.into_inner(),
            }
        }
    }
}

/// Reads the payload as text, exactly as it travelled.
///
/// # Errors
/// [`DecodeError`] when the bytes are no text.
pub fn decode_text(message: &Message, delivery: &Delivery) -> Result<String, DecodeError> {
    text_of(message, &content_type(message, delivery)?)
}

/// Reads the payload as text; one JSON string under a JSON content type loses its quotes. So both of Java's ways to
/// send a text under `application/json` are read: raw (annotation model) and quoted (functional model).
///
/// # Errors
/// [`DecodeError`] when the bytes are no text.
pub fn decode_string(message: &Message, delivery: &Delivery) -> Result<String, DecodeError> {
    let content_type = content_type(message, delivery)?;
    let text = text_of(message, &content_type)?;
    let quoted = content_type.is_json() && text.trim_ascii_start().starts_with('"');
    // What starts with a quote but is no JSON string is a raw text that starts with a quote.
    Ok(if quoted {
        serde_json::from_str(&text).unwrap_or(text)
    } else {
        text
    })
}

fn text_of(message: &Message, content_type: &ContentType) -> Result<String, DecodeError> {
    let bytes = message.payload();
    if content_type.is_java_object() {
        return Err(DecodeError::JavaObject {
            content_type: content_type.clone(),
        });
    }
    match content_type.charset() {
        None => Err(DecodeError::Charset {
            content_type: content_type.clone(),
        }),
        Some(Charset::Latin1) => Ok(bytes.iter().copied().map(char::from).collect()),
        Some(Charset::Utf8 | Charset::Ascii) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(source) => Err(DecodeError::NotUtf8 {
                valid_up_to: source.valid_up_to(),
                source,
            }),
        },
    }
}

fn content_type(message: &Message, delivery: &Delivery) -> Result<ContentType, ContentTypeError> {
    match message.headers().content_type() {
        Some(text) => text.parse(),
        None if delivery.content_type.is_empty() => Ok(ContentType::default()),
        None => delivery.content_type.parse(),
    }
}
