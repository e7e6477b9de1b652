//! Payloads to bytes and back, by content type.
//!
//! ```text
//! handler's value ──Payload::encode(content type)──▶ bytes + the content type they really have ──▶ binder
//! received bytes ──decode_json · decode_text · decode_string──▶ arguments
//! partition key, condition ──▶ KeyRoot (typed payload) · MessageRoot (JSON, parsed only if the expression reads it)
//! ```
//!
//! What a message's own `contentType` header says wins over the binding's `content-type`; without both it is
//! `application/json`.

mod content_type;
mod decode;
mod encode;
mod roots;
mod shape;

#[cfg(test)]
mod tests;

pub use content_type::{Charset, ContentType, ContentTypeError};
pub use decode::{DecodeError, decode_json, decode_string, decode_text};
pub use encode::{EncodeError, EncodeOptions, Encoded, Payload, Quoted};
pub use roots::{KeyRoot, MessageRoot, condition_holds, header_value};
