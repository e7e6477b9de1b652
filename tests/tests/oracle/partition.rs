//! Java's hash codes, and the partitions that follow from them.

use bindery_expression::{ParseProblem, PartitionCount, Value, default_selector, parse, partition};
use serde_json::Value as Json;

use super::corpus::{Judged, Verdict, number, same};
use super::typed::{self, Unwritable};

const IDENTITY: &str = "the hash is that of an object's identity, another one in each process";
const HALF: &str = "a Rust text can't hold half of a surrogate pair";
const BEYOND_READER: &str =
    "the JSON reader has no integers beyond 64 bits and no integer -0: they are doubles";
const NO_COUNT: &str = "a partition count below 1 can't be set";
const UNSUPPORTED: &str = "a selector outside the language";

pub(crate) fn judge(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    if out.get("unstable").is_some() {
        return Ok(Verdict::Refused(IDENTITY));
    }
    if let Some(keys) = input["keys"].as_array() {
        return counted(keys, &input["count"], &out["partition"]);
    }
    let judged = match input["json"].as_str() {
        Some(text) => {
            let json: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
            one(&Value::from(&json), input, out)
        }
        None => match typed::value(&input["key"]) {
            Ok(key) => one(&key, input, out),
            Err(Unwritable::HalfCharacter) => Ok(Verdict::Refused(HALF)),
            Err(Unwritable::Opaque) => Err("the key can't be read".to_owned()),
        },
    };
    match (judged, input["json"].as_str()) {
        (Err(_), Some(text)) if is_beyond_reader(text) => Ok(Verdict::Refused(BEYOND_READER)),
        (judged, _) => judged,
    }
}

/// Whether the text holds an integer that our JSON reader reads as a double.
fn is_beyond_reader(json: &str) -> bool {
    json.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '+' | '.'))
        .filter(|token| {
            token
                .trim_start_matches('-')
                .bytes()
                .all(|b| b.is_ascii_digit())
        })
        .any(|token| token == "-0" || (!token.is_empty() && token.parse::<i64>().is_err()))
}

/// One key, with several counts.
fn one(key: &Value, input: &Json, out: &Json) -> Judged {
    if let Some(hash) = out["hash"].as_i64() {
        same("the hash", key.java_hash().map(i64::from).ok(), Some(hash))?;
    }
    if let Some(value) = out.get("value") {
        same("the value", Some(key), typed::value(value).ok().as_ref())?;
    }
    let selected = match input["selector"].as_str() {
        None => default_selector(key).ok(),
        Some(selector) => match parse(selector) {
            Ok(selector) => selector.selection(key).ok().flatten(),
            Err(error) if matches!(error.problem(), ParseProblem::Unsupported { .. }) => {
                return Ok(Verdict::Refused(UNSUPPORTED));
            }
            Err(error) => return Err(error.to_string()),
        },
    };
    for (count, expected) in out["partition"].as_object().into_iter().flatten() {
        let count: u32 = count.parse().map_err(|_| format!("count {count}"))?;
        let count = PartitionCount::new(count).ok_or("a count of 0")?;
        let ours = selected.map(|selected| u64::from(partition(selected, count)));
        // What is not a number is the exception that Java threw: we must have no selection.
        same("the partition", ours, expected.as_u64())?;
    }
    Ok(Verdict::Passed)
}

/// Several keys with one count.
fn counted(keys: &[Json], count: &Json, expected: &Json) -> Judged {
    let Some(count) = number(count).ok().and_then(PartitionCount::new) else {
        return Ok(Verdict::Refused(NO_COUNT));
    };
    for (at, key) in keys.iter().enumerate() {
        let key = typed::value(key).map_err(|problem| format!("key {at}: {problem:?}"))?;
        let selected = default_selector(&key).map_err(|error| error.to_string())?;
        let ours = u64::from(partition(selected, count));
        same("the partition", Some(ours), expected[at].as_u64())?;
    }
    Ok(Verdict::Passed)
}
