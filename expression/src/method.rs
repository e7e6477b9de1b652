//! The methods that expressions may call. There are these and no others: no reflection.

use crate::convert;
use crate::error::EvalProblem;
use crate::text::{utf16_index_of, utf16_length, utf16_slice};
use crate::value::{Value, uncapitalized};

/// Calls a method of a value that is not null.
pub(crate) fn call(target: &Value, name: &str, arguments: &[Value]) -> Result<Value, EvalProblem> {
    if let Some(result) = of_any(target, name, arguments) {
        return result;
    }
    let result = match target {
        Value::Text(text) => of_text(text, name, arguments)?,
        Value::List(elements) => of_list(elements, name, arguments),
        Value::Set(elements) => of_collection(elements.len(), name, arguments),
        Value::Map(entries) => of_collection(entries.len(), name, arguments)
            .or_else(|| getter(target, name, arguments)),
        Value::Record(_) => getter(target, name, arguments),
        Value::Enum(constant) => {
            matches!((name, arguments), ("name", [])).then(|| Value::text(constant.clone()))
        }
        _ => of_number(target, name, arguments),
    };
    result.ok_or_else(|| unknown(target, name, arguments))
}

pub(crate) fn unknown(target: &Value, name: &str, arguments: &[Value]) -> EvalProblem {
    EvalProblem::NoMethod {
        name: name.to_owned(),
        arguments: types(arguments),
        on: target.type_name(),
    }
}

pub(crate) fn types(arguments: &[Value]) -> String {
    arguments
        .iter()
        .map(Value::type_name)
        .collect::<Vec<_>>()
        .join(", ")
}

fn of_any(target: &Value, name: &str, arguments: &[Value]) -> Option<Result<Value, EvalProblem>> {
    Some(match (name, arguments) {
        ("hashCode", []) => target
            .java_hash()
            .map(Value::Int)
            .map_err(EvalProblem::from),
        ("toString", []) => Ok(Value::text(target.to_string())),
        ("equals", [other]) => Ok(Value::Bool(target == other)),
        _ => return None,
    })
}

fn of_number(target: &Value, name: &str, arguments: &[Value]) -> Option<Value> {
    match (name, arguments) {
        ("intValue", []) => convert::int_value(target).map(Value::Int),
        ("longValue", []) => convert::long_value(target).map(Value::Long),
        _ => None,
    }
}

fn of_collection(size: usize, name: &str, arguments: &[Value]) -> Option<Value> {
    match (name, arguments) {
        ("size", []) => Some(count(size)),
        ("isEmpty", []) => Some(Value::Bool(size == 0)),
        _ => None,
    }
}

/// `contains` and `indexOf` compare by `equals`: an `Integer` is not in a list of `Long`.
fn of_list(elements: &[Value], name: &str, arguments: &[Value]) -> Option<Value> {
    match (name, arguments) {
        ("contains", [wanted]) => Some(Value::Bool(elements.contains(wanted))),
        ("indexOf", [wanted]) => Some(
            match elements.iter().position(|element| element == wanted) {
                Some(index) => count(index),
                None => Value::Int(-1),
            },
        ),
        _ => of_collection(elements.len(), name, arguments),
    }
}

/// `getX()` (and `isX()` for booleans) reads the field `x`; of a map its key, where Java has no such method.
fn getter(target: &Value, name: &str, arguments: &[Value]) -> Option<Value> {
    if !arguments.is_empty() {
        return None;
    }
    let property = |prefix: &str| {
        name.strip_prefix(prefix)
            .filter(|rest| rest.starts_with(char::is_uppercase))
    };
    if let Some(property) = property("get") {
        return target
            .field(&uncapitalized(property))
            .or_else(|| target.field(property))
            .cloned();
    }
    let field = target.field(&uncapitalized(property("is")?));
    field
        .filter(|value| matches!(value, Value::Bool(_)))
        .cloned()
}

fn of_text(text: &str, name: &str, arguments: &[Value]) -> Result<Option<Value>, EvalProblem> {
    Ok(Some(match (name, arguments) {
        ("length", []) => count(utf16_length(text)),
        ("isEmpty", []) => Value::Bool(text.is_empty()),
        ("isBlank", []) => Value::Bool(text.chars().all(char::is_whitespace)),
        ("toUpperCase", []) => Value::text(text.to_uppercase()),
        ("toLowerCase", []) => Value::text(text.to_lowercase()),
        // Java trims everything up to the blank, and nothing above it.
        ("trim", []) => Value::text(text.trim_matches(|c| c <= ' ')),
        ("charAt", [index]) => {
            return index_argument(index).map_or(Ok(None), |index| char_at(text, index).map(Some));
        }
        ("substring", [start]) => {
            let end = i64::try_from(utf16_length(text)).unwrap_or(i64::MAX);
            return index_argument(start)
                .map_or(Ok(None), |start| substring(text, start, end).map(Some));
        }
        ("substring", [start, end]) => match (index_argument(start), index_argument(end)) {
            (Some(start), Some(end)) => substring(text, start, end)?,
            _ => return Ok(None),
        },
        (_, [argument]) => {
            return Ok(
                text_argument(argument).and_then(|argument| with_text(text, name, &argument))
            );
        }
        _ => return Ok(None),
    }))
}

fn with_text(text: &str, name: &str, argument: &str) -> Option<Value> {
    Some(match name {
        "startsWith" => Value::Bool(text.starts_with(argument)),
        "endsWith" => Value::Bool(text.ends_with(argument)),
        "contains" => Value::Bool(text.contains(argument)),
        "indexOf" => utf16_index_of(text, argument).map_or(Value::Int(-1), count),
        _ => return None,
    })
}

fn text_argument(argument: &Value) -> Option<String> {
    (!argument.is_null()).then(|| convert::to_appended_text(argument))
}

/// An argument that Java declares as `int`.
fn index_argument(argument: &Value) -> Option<i64> {
    convert::to_int(argument).ok().flatten().map(i64::from)
}

fn count(value: usize) -> Value {
    Value::Int(i32::try_from(value).unwrap_or(i32::MAX))
}

fn char_at(text: &str, index: i64) -> Result<Value, EvalProblem> {
    let unit = usize::try_from(index)
        .ok()
        .and_then(|index| text.encode_utf16().nth(index));
    unit.map(Value::Char).ok_or(EvalProblem::OutsideText {
        index,
        length: utf16_length(text),
    })
}

/// The part of a text between two positions in UTF-16 units.
pub(crate) fn substring(text: &str, start: i64, end: i64) -> Result<Value, EvalProblem> {
    let length = utf16_length(text);
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(from), Ok(to)) if from <= to && to <= length => utf16_slice(text, from, to)
            .map(Value::text)
            .ok_or(EvalProblem::HalfCharacter),
        _ => {
            let inside = usize::try_from(start).is_ok_and(|start| start <= length);
            Err(EvalProblem::OutsideText {
                index: if inside { end } else { start },
                length,
            })
        }
    }
}
