//! JSON as Java's Jackson reads it into maps: integers by size, decimals as `Double`.

use num_bigint::BigInt;
use serde_json::Value as Json;

use crate::value::Value;

/// Reads JSON text; `None` when it is none.
pub(crate) fn read(text: &str) -> Option<Value> {
    let first = text.trim_start().chars().next()?;
    // A text payload is asked for fields: only an object or a list has any.
    matches!(first, '{' | '[')
        .then(|| serde_json::from_str::<Json>(text).ok())
        .flatten()
        .map(|json| Value::from(&json))
}

impl From<&Json> for Value {
    /// Jackson's types: an integer is an `Integer` if it fits, else a `Long`, else a `BigInteger`; other numbers are
    /// `Double`.
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(long), _, _) => i32::try_from(long).map_or(Self::Long(long), Self::Int),
                (None, Some(wide), _) => BigInt::from(wide).into(),
                (None, None, double) => Self::Double(double.unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(elements) => Self::list(elements.iter().map(Self::from)),
            Json::Object(fields) => Self::map(
                fields
                    .iter()
                    .map(|(name, value)| (Self::text(name.as_str()), Self::from(value))),
            ),
        }
    }
}
