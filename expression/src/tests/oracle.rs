//! The recorded answers of Spring's expressions and of Java's hash codes.
//!
//! Each test prints `NAME: N passed, N failed, N refused`; refused are constructs outside our grammar, which must be
//! errors that name the construct.

use std::collections::HashMap;
use std::fs;

use serde_json::Value as Json;

use crate::{
    BigDecimal, BigInt, EvalError, ParseError, ParseProblem, PartitionCount, Value,
    default_selector, parse, partition,
};

fn corpus(name: &str) -> (Json, Vec<Json>) {
    let path = format!(
        "{}/../tests/golden/oracle/{name}.jsonl",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap());
    (lines.next().unwrap(), lines.collect())
}

/// A typed value of the corpora; `None` when a Rust text can't hold it.
fn typed(json: &Json) -> Option<Value> {
    let v = &json["v"];
    let int = || v.as_i64().unwrap();
    let text = || v.as_str().map(str::to_owned);
    let all = |v: &Json| {
        v.as_array()
            .unwrap()
            .iter()
            .map(typed)
            .collect::<Option<Vec<_>>>()
    };
    Some(match json["t"].as_str().unwrap() {
        "null" => Value::Null,
        "boolean" => Value::Bool(v.as_bool().unwrap()),
        "byte" => Value::Byte(int().try_into().unwrap()),
        "short" => Value::Short(int().try_into().unwrap()),
        "int" => Value::Int(int().try_into().unwrap()),
        "long" => Value::Long(int()),
        "float" => Value::Float(java_number(&text()?).parse().unwrap()),
        "double" => Value::Double(java_number(&text()?).parse().unwrap()),
        "char" => Value::Char(text()?.encode_utf16().next()?),
        "string" => Value::text(text()?),
        "bigdecimal" => text()?.parse::<BigDecimal>().unwrap().into(),
        "biginteger" => text()?.parse::<BigInt>().unwrap().into(),
        "uuid" => Value::Uuid(u128::from_str_radix(&text()?.replace('-', ""), 16).unwrap()),
        "bytes" => {
            let hex = text()?;
            Value::Bytes(
                (0..hex.len())
                    .step_by(2)
                    .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
                    .collect(),
            )
        }
        "enum" => Value::Enum(text()?.into()),
        "list" => Value::List(all(v)?.into()),
        "array" => Value::Array(all(v)?.into()),
        "set" => Value::Set(all(v)?.into()),
        "map" => {
            let entries = v
                .as_array()
                .unwrap()
                .iter()
                .map(|pair| Some((typed(&pair[0])?, typed(&pair[1])?)));
            Value::map(entries.collect::<Option<Vec<_>>>()?)
        }
        "pojo" => {
            // Where an answer names only the class there is nothing to compare.
            let fields = v.as_object()?;
            let fields = fields
                .iter()
                .map(|(name, value)| Some((name.as_str().into(), typed(value)?)));
            Value::record(
                json["class"].as_str().unwrap(),
                fields.collect::<Option<Vec<_>>>()?,
            )
        }
        _ => return None,
    })
}

fn java_number(text: &str) -> String {
    text.replace("Infinity", "inf")
}

fn root(json: &Json) -> Value {
    match json.get("message") {
        Some(message) => {
            let part = |name: &str| (name.into(), typed(&message[name]).unwrap());
            Value::record("Message", [part("payload"), part("headers")])
        }
        None => typed(&json["key"]).unwrap(),
    }
}

/// Why an answer may differ from Java's.
fn deliberate(expression: &str, out: &Json) -> Option<&'static str> {
    let code = out["code"].as_str().unwrap_or_default();
    let reason = match expression {
        "payload.counts.three"
        | "payload.customer.zip"
        | "payload.missing"
        | "headers.missing ?: 'x'"
        | "headers.lt"
        | "missing"
        | "payload.x-y"
        | "headers.x-y"
        | "payload.missing?.x"
        | "payload.missing ?: 'x'"
            if code == "EL1008E" =>
        {
            "a missing header or map key is null"
        }
        "payload.getId()" | "payload.getMissing()" if code == "EL1004E" => {
            "getX() on a map reads the key x"
        }
        "payload.ten * 2" | "payload.str * 0" | "payload.str * -1" => {
            "a text times a number is an error"
        }
        "'a' matches 'a++'" | "'ab' matches 'a(?=b)b'" | "'aXb' matches 'a\\Xb'" => {
            "not matched in linear time"
        }
        "payload.status == 'PAID'"
        | "'PAID' == payload.status"
        | "payload.grade == 'B'"
        | "payload.c == 'A'"
        | "payload.status != 'PAID'"
        | "payload.grade != 'B'"
        | "payload.c != 'A'" => "an enum or character equals its text",
        "payload.id ?: " | "a ?:" | "?: a" | "headers['x'] ?:: 'y'" => {
            "a missing operand of `?:` is an error"
        }
        "payload.substring(2,3)" => "a Rust text can't hold half of a surrogate pair",
        "false or payload.missing" => "ours points at the missing field, Java's at the operand",
        _ => return None,
    };
    Some(reason)
}

enum Answer {
    Value(Value),
    Parse(ParseError),
    Eval(EvalError),
}

fn answer(expression: &str, using: &str, root: &Value) -> Answer {
    let parsed = match parse(expression) {
        Ok(parsed) => parsed,
        Err(error) => return Answer::Parse(error),
    };
    let result = match using {
        "condition" => parsed.condition(root).map(Value::Bool),
        "selector" => parsed
            .selection(root)
            .map(|selected| selected.map_or(Value::Null, Value::Int)),
        _ => parsed.eval(root),
    };
    result.map_or_else(Answer::Eval, Answer::Value)
}

/// What is wrong with an answer; nothing when it is Java's.
fn mismatch(case: &Json, answer: &Answer) -> Option<String> {
    let (expression, out) = (case["in"]["expr"].as_str().unwrap(), &case["out"]);
    match (out["error"].as_str(), answer) {
        (None, Answer::Value(value)) => wrong_value(case, value),
        (None, Answer::Parse(error)) => Some(format!("refused: {error}")),
        (None, Answer::Eval(error)) => Some(format!("failed: {error}")),
        (Some(_), Answer::Value(value)) => Some(format!("gave {value:?}")),
        (Some("parse"), Answer::Eval(error)) => Some(format!("failed only in evaluation: {error}")),
        // A pattern is a literal, so that a wrong one is known when the expression is parsed.
        (Some("eval"), Answer::Parse(error))
            if !matches!(error.problem(), ParseProblem::Pattern { .. }) =>
        {
            Some(format!("refused: {error}"))
        }
        (Some(_), Answer::Parse(error))
            if matches!(error.problem(), ParseProblem::Unsupported { .. }) =>
        {
            None
        }
        (Some(_), Answer::Parse(error)) => {
            wrong_error(expression, out, error.code(), error.position())
        }
        (Some(_), Answer::Eval(error)) => {
            wrong_error(expression, out, error.code(), error.position())
        }
    }
}

fn wrong_value(case: &Json, value: &Value) -> Option<String> {
    let out = &case["out"];
    let null_is_false = case["in"]["use"] == "condition" && out["ok"]["t"] == "null";
    let expected = if null_is_false {
        Value::Bool(false)
    } else {
        typed(&out["ok"])?
    };
    if *value != expected {
        return Some(format!("gave {value:?}, not {expected:?}"));
    }
    if let (Some(text), false) = (
        out["text"].as_str(),
        matches!(value, Value::Float(_) | Value::Double(_)),
    ) && value.to_string() != text
    {
        return Some(format!("prints {value}, not {text}"));
    }
    let hash = out["hash"].as_i64()?;
    let ours = value.java_hash().map(i64::from);
    (ours != Ok(hash)).then(|| format!("hashes to {ours:?}, not {hash}"))
}

fn wrong_error(
    expression: &str,
    out: &Json,
    code: Option<&str>,
    position: usize,
) -> Option<String> {
    let expected = out["code"].as_str()?;
    if code != Some(expected) {
        return Some(format!("code {code:?}, not {expected}"));
    }
    // Java has no position for these (it says 0): ours point at the step or operator.
    if matches!(expected, "EL1007E" | "EL1013E" | "EL1030E") {
        return None;
    }
    let counts_from_one = usize::from(expected == "EL1082E");
    let utf16 = expression
        .chars()
        .take(position)
        .map(char::len_utf16)
        .sum::<usize>()
        + counts_from_one;
    let java = usize::try_from(out["pos"].as_u64()?).unwrap();
    (utf16 != java).then(|| format!("position {utf16}, not {java}, for {expected}"))
}

/// The word of a construct that must show up in the message.
fn names_construct(construct: &str, message: &str) -> bool {
    let word = construct.split(' ').next_back().unwrap_or(construct);
    let word = match construct {
        "#variable" => "#variable",
        "matches with a computed pattern" => "computed",
        "leading index" => "leading index",
        "@bean" => "@bean",
        "T()" => "T(",
        _ => word,
    };
    message.contains(word)
}

#[test]
fn expressions_give_the_answers_of_spring() {
    let (header, cases) = corpus("expressions");
    let roots: HashMap<&str, Value> = header["roots"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, json)| (name.as_str(), root(json)))
        .collect();
    let (mut passed, mut refused, mut failures) = (0, 0, Vec::new());
    for case in &cases {
        let (expression, using) = (
            case["in"]["expr"].as_str().unwrap(),
            case["in"]["use"].as_str().unwrap(),
        );
        let answer = answer(
            expression,
            using,
            &roots[case["in"]["root"].as_str().unwrap()],
        );
        let problem = match case["out"]["unsupported"].as_array() {
            Some(constructs) => {
                let message = match &answer {
                    Answer::Value(value) => format!("gave {value:?}"),
                    Answer::Parse(error) => error.to_string(),
                    Answer::Eval(error) => error.to_string(),
                };
                let named = constructs
                    .iter()
                    .any(|construct| names_construct(construct.as_str().unwrap(), &message));
                refused += usize::from(named && !matches!(answer, Answer::Value(_)));
                (!named || matches!(answer, Answer::Value(_))).then_some(message)
            }
            None => match mismatch(case, &answer) {
                Some(_) if deliberate(expression, &case["out"]).is_some() => None,
                problem => problem,
            },
        };
        match problem {
            Some(problem) => failures.push(format!(
                "{} `{expression}` ({}): {problem}",
                case["id"], case["in"]["root"]
            )),
            None => passed += 1,
        }
    }
    println!(
        "expressions: {} passed, {} failed, {refused} refused",
        passed - refused,
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn partitions_and_hashes_are_java_s() {
    let (_, cases) = corpus("partition");
    let (mut passed, mut refused, mut failures) = (0, 0, Vec::new());
    for case in &cases {
        let (input, out) = (&case["in"], &case["out"]);
        let key = match input["json"].as_str() {
            Some(text) => serde_json::from_str::<Json>(text)
                .ok()
                .map(|json| Value::from(&json)),
            None => input.get("key").and_then(typed),
        };
        // Our JSON reader knows no integers beyond 64 bits and no integer -0: they are doubles. A typed payload
        // (`u128`) is not read from JSON, so that this concerns untyped JSON payloads only.
        let beyond_reader = ["-9223372036854775809", "99999999999999999999", "-0"];
        let key = key.filter(|_| {
            !input["json"]
                .as_str()
                .is_some_and(|json| beyond_reader.contains(&json))
        });
        // Counts below one and half surrogate pairs can't be written down here; identity hashes have no expectation.
        let Some(key) = key else {
            refused += 1;
            continue;
        };
        let selected = match input["selector"].as_str() {
            Some(selector) => match parse(selector) {
                Ok(selector) => selector.selection(&key).ok().flatten(),
                Err(error) => {
                    assert!(
                        matches!(error.problem(), ParseProblem::Unsupported { .. }),
                        "{error}"
                    );
                    refused += 1;
                    continue;
                }
            },
            None => default_selector(&key).ok(),
        };
        let hash = out["hash"]
            .as_i64()
            .is_none_or(|hash| key.java_hash().map(i64::from) == Ok(hash));
        let value = out
            .get("value")
            .is_none_or(|value| typed(value).as_ref() == Some(&key));
        let partitions = out["partition"]
            .as_object()
            .unwrap()
            .iter()
            .all(|(count, expected)| {
                let count = PartitionCount::new(count.parse().unwrap()).unwrap();
                selected.map(|selected| u64::from(partition(selected, count))) == expected.as_u64()
            });
        if hash && value && partitions {
            passed += 1;
        } else {
            failures.push(format!("{case}: {key:?}"));
        }
    }
    println!(
        "partition: {passed} passed, {} failed, {refused} refused",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
