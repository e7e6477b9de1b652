//! The typed values of the corpora as values of our expressions.

use bindery_expression::{BigDecimal, BigInt, Value};
use serde_json::Value as Json;

use super::corpus;

/// Why a typed value can't be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unwritable {
    /// A text with half of a surrogate pair.
    HalfCharacter,
    /// An object of which only the class is recorded.
    Opaque,
}

type Read = Result<Value, Unwritable>;

/// Reads a typed value (`{"t": kind, "v": value}`).
pub(crate) fn value(json: &Json) -> Read {
    let v = &json["v"];
    let text = || v.as_str().ok_or(unwritable(json));
    Ok(match json["t"].as_str().unwrap_or_default() {
        "null" => Value::Null,
        "boolean" => Value::Bool(v.as_bool().ok_or(Unwritable::Opaque)?),
        "byte" => Value::Byte(int(v)?),
        "short" => Value::Short(int(v)?),
        "int" => Value::Int(int(v)?),
        "long" => Value::Long(int(v)?),
        "float" => Value::Float(parsed(&java_number(text()?))?),
        "double" => Value::Double(parsed(&java_number(text()?))?),
        "char" => Value::Char(text()?.encode_utf16().next().ok_or(Unwritable::Opaque)?),
        "string" => Value::text(text()?),
        "bigdecimal" => parsed::<BigDecimal>(text()?)?.into(),
        "biginteger" => parsed::<BigInt>(text()?)?.into(),
        "uuid" => Value::Uuid(
            u128::from_str_radix(&text()?.replace('-', ""), 16).map_err(|_| Unwritable::Opaque)?,
        ),
        "bytes" => Value::Bytes(
            corpus::bytes(text()?)
                .map_err(|_| Unwritable::Opaque)?
                .into(),
        ),
        "enum" => Value::Enum(text()?.into()),
        "list" => Value::List(all(v)?.into()),
        "array" => Value::Array(all(v)?.into()),
        "set" => Value::Set(all(v)?.into()),
        "map" => Value::map(pairs(v)?),
        "pojo" => record(json)?,
        _ => return Err(Unwritable::Opaque),
    })
}

/// The root of an evaluation: a message, or the key that a selector is asked about.
pub(crate) fn root(json: &Json) -> Read {
    let Some(message) = json.get("message") else {
        return value(&json["key"]);
    };
    let payload = ("payload".into(), value(&message["payload"])?);
    let headers = ("headers".into(), value(&message["headers"])?);
    Ok(Value::record("Message", [payload, headers]))
}

fn unwritable(json: &Json) -> Unwritable {
    match json.get("utf16") {
        Some(_) => Unwritable::HalfCharacter,
        None => Unwritable::Opaque,
    }
}

fn int<T: TryFrom<i64>>(json: &Json) -> Result<T, Unwritable> {
    corpus::number(json).map_err(|_| Unwritable::Opaque)
}

fn parsed<T: std::str::FromStr>(text: &str) -> Result<T, Unwritable> {
    text.parse().map_err(|_| Unwritable::Opaque)
}

/// Java's text of a floating-point number as Rust reads it.
fn java_number(text: &str) -> String {
    text.replace("Infinity", "inf")
}

fn all(json: &Json) -> Result<Vec<Value>, Unwritable> {
    json.as_array().into_iter().flatten().map(value).collect()
}

fn pairs(json: &Json) -> Result<Vec<(Value, Value)>, Unwritable> {
    json.as_array()
        .into_iter()
        .flatten()
        .map(|pair| Ok((value(&pair[0])?, value(&pair[1])?)))
        .collect()
}

fn record(json: &Json) -> Read {
    let fields = json["v"].as_object().ok_or(Unwritable::Opaque)?;
    let fields = fields
        .iter()
        .map(|(name, field)| Ok((name.as_str().into(), value(field)?)))
        .collect::<Result<Vec<_>, _>>()?;
    let class = json["class"].as_str().unwrap_or_default();
    Ok(Value::record(class, fields))
}
