//! Messages as the roots of expressions.
//!
//! ```text
//! sending:   KeyRoot(typed payload, headers)   payload.id ──▶ one field, by the payload's own Serialize
//! receiving: MessageRoot(message)              payload.id ──▶ JSON, parsed when first asked for
//! ```

use std::cell::OnceCell;
use std::fmt;

use bindery_expression::{EvalError, Expression, Followed, Root, RootError, SerdeRoot, Value};
use serde::Serialize;

use crate::Message;
use crate::headers::{HeaderKind, HeaderValue, Headers};

/// A message that is being sent: its typed payload, not yet encoded, and its headers.
#[derive(Debug)]
pub struct KeyRoot<'a, T: ?Sized> {
    payload: &'a T,
    headers: &'a Headers,
}

impl<'a, T: Serialize + ?Sized> KeyRoot<'a, T> {
    /// The root of this payload with these headers.
    pub fn new(payload: &'a T, headers: &'a Headers) -> Self {
        Self { payload, headers }
    }
}

impl<T: Serialize + ?Sized> Root for KeyRoot<'_, T> {
    fn whole(&self) -> Result<Value, RootError> {
        Ok(message_value(
            SerdeRoot(self.payload).whole()?,
            self.headers,
        ))
    }

    fn follow(&self, path: &[&str]) -> Result<Followed, RootError> {
        follow(
            path,
            self.headers,
            |rest| SerdeRoot(self.payload).follow(rest),
            || self.whole(),
        )
    }
}

/// A message that is being sent whose payload is JSON without types: an integer is an `Integer` if it fits, else a `Long`, as
/// Jackson reads it, so that a negative one hashes as Java's does.
#[derive(Debug)]
pub(super) struct JsonRoot<'a> {
    payload: &'a serde_json::Value,
    headers: &'a Headers,
}

impl<'a> JsonRoot<'a> {
    pub(super) fn new(payload: &'a serde_json::Value, headers: &'a Headers) -> Self {
        Self { payload, headers }
    }
}

impl Root for JsonRoot<'_> {
    fn whole(&self) -> Result<Value, RootError> {
        Ok(message_value(Value::from(self.payload), self.headers))
    }

    fn follow(&self, path: &[&str]) -> Result<Followed, RootError> {
        let payload = |rest: &[&str]| {
            // Only what the path ends at is converted.
            let mut value = self.payload;
            let mut steps = 0;
            for name in rest {
                let Some(inner) = value.as_object().and_then(|fields| fields.get(*name)) else {
                    break;
                };
                value = inner;
                steps += 1;
            }
            Root::follow(&Value::from(value), &rest[steps..]).map(|followed| Followed {
                steps: followed.steps + steps,
                ..followed
            })
        };
        follow(path, self.headers, payload, || self.whole())
    }
}

/// A received message. The payload is JSON if it can be read as JSON, else text if it is UTF-8, else bytes; it is read
/// only if the expression asks for it, once.
pub struct MessageRoot<'a> {
    message: &'a Message,
    payload: OnceCell<Value>,
}

impl<'a> MessageRoot<'a> {
    /// The root of this message. Several expressions may be asked about one root.
    #[must_use]
    pub fn new(message: &'a Message) -> Self {
        Self {
            message,
            payload: OnceCell::new(),
        }
    }

    fn payload(&self) -> &Value {
        self.payload.get_or_init(|| {
            let bytes = self.message.payload();
            if let Ok(json) = serde_json::from_slice::<serde_json::Value>(bytes) {
                return Value::from(&json);
            }
            std::str::from_utf8(bytes).map_or_else(|_| Value::Bytes((**bytes).into()), Value::from)
        })
    }
}

impl fmt::Debug for MessageRoot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageRoot")
            .field("headers", self.message.headers())
            .finish_non_exhaustive()
    }
}

impl Root for MessageRoot<'_> {
    fn whole(&self) -> Result<Value, RootError> {
        Ok(message_value(
            self.payload().clone(),
            self.message.headers(),
        ))
    }

    fn follow(&self, path: &[&str]) -> Result<Followed, RootError> {
        follow(
            path,
            self.message.headers(),
            |rest| Root::follow(self.payload(), rest),
            || self.whole(),
        )
    }
}

/// Whether a condition holds for a received message; null and the empty text count as false.
///
/// # Errors
/// The condition fails or gives no boolean.
pub fn condition_holds(condition: &Expression, message: &Message) -> Result<bool, EvalError> {
    condition.condition(&MessageRoot::new(message))
}

fn follow(
    path: &[&str],
    headers: &Headers,
    payload: impl FnOnce(&[&str]) -> Result<Followed, RootError>,
    whole: impl FnOnce() -> Result<Value, RootError>,
) -> Result<Followed, RootError> {
    match path {
        ["payload", rest @ ..] => {
            let followed = payload(rest)?;
            Ok(Followed {
                steps: followed.steps + 1,
                ..followed
            })
        }
        // A header that is not there is null, like the key of a map.
        ["headers", name, ..] => Ok(Followed {
            value: headers.value(name).map_or(Value::Null, header_value),
            steps: 2,
        }),
        ["headers"] => Ok(Followed {
            value: headers_value(headers),
            steps: 1,
        }),
        _ => Ok(Followed {
            value: whole()?,
            steps: 0,
        }),
    }
}

/// A header's value with the type it was set with.
#[must_use]
pub fn header_value(header: &HeaderValue) -> Value {
    match header.kind() {
        HeaderKind::Text => Value::from(header.as_str()),
        HeaderKind::Int(value) => Value::Int(value),
        HeaderKind::Long(value) => Value::Long(value),
        HeaderKind::Double(value) => Value::Double(value),
        HeaderKind::Bool(value) => Value::Bool(value),
    }
}

fn headers_value(headers: &Headers) -> Value {
    let set = headers
        .iter()
        .map(|(name, value)| (Value::from(name), header_value(value)));
    let facts = headers
        .facts()
        .map(|(name, value)| (Value::from(name), header_value(value)));
    Value::map(set.chain(facts))
}

fn message_value(payload: Value, headers: &Headers) -> Value {
    Value::record(
        "Message",
        [
            ("payload".into(), payload),
            ("headers".into(), headers_value(headers)),
        ],
    )
}
