//! JSON bodies with this crate's errors.
use bindery_protocol::bodies;
use serde::{Serialize, de::DeserializeOwned};

use crate::ClientError;

/// Reads a body. `what` names it in the error.
pub(crate) fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, ClientError> {
    bodies::from_slice(bytes).map_err(|source| ClientError::Decode {
        what: what.to_owned(),
        source: Box::new(source),
    })
}

/// Writes a body. `what` names it in the error.
pub(crate) fn encode<T: Serialize>(what: &'static str, value: &T) -> Result<Vec<u8>, ClientError> {
    bodies::to_vec(value).map_err(|source| ClientError::Encode {
        what,
        source: Box::new(source),
    })
}
