//! Keys, conditions and selectors as Spring's expressions answer them.

use bindery_expression::{EvalError, EvalProblem, ParseError, ParseProblem, Value, parse};
use serde_json::Value as Json;

use super::corpus::{Judged, Verdict, text};
use super::typed::{self, Unwritable};

const OUTSIDE: &str = "a construct outside the language, which the error names";
const MISSING_KEY: &str = "a missing header or map key is null";
const GETTER: &str = "`getX()` on a map reads the key x";
const TEXT_NUMBER: &str = "a text times a number, or a character minus one, is an error";
const LINEAR: &str = "a pattern that can't be matched in linear time, or only in Java, is an error";
const NAMES: &str = "an enum or a character equals its text";
const OPERAND: &str = "a missing operand of `?:` is an error";
const HALF: &str = "a Rust text can't hold half of a surrogate pair";
const LIMITS: &str = "depth and length are limited";
const INNERMOST: &str = "the error is placed at the field, not at the operand it is in";

pub(crate) fn judge(header: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    let asked = Asked {
        expression: text(input, "expr")?,
        usage: text(input, "use")?,
        root: typed::root(&header["roots"][text(input, "root")?])
            .map_err(|problem| format!("the root: {problem:?}"))?,
    };
    let answer = asked.answer();
    if let Some(constructs) = out["unsupported"].as_array() {
        return outside(constructs, &answer);
    }
    match mismatch(&asked, out, &answer) {
        None => Ok(Verdict::Passed),
        Some(problem) => difference(&asked, out, &answer)
            .map(Verdict::Refused)
            .ok_or(problem),
    }
}

struct Asked<'a> {
    expression: &'a str,
    usage: &'a str,
    root: Value,
}

enum Answer {
    Value(Value),
    Parse(ParseError),
    Eval(EvalError),
}

impl Asked<'_> {
    fn answer(&self) -> Answer {
        let parsed = match parse(self.expression) {
            Ok(parsed) => parsed,
            Err(error) => return Answer::Parse(error),
        };
        let result = match self.usage {
            "condition" => parsed.condition(&self.root).map(Value::Bool),
            "selector" => parsed
                .selection(&self.root)
                .map(|selected| selected.map_or(Value::Null, Value::Int)),
            _ => parsed.eval(&self.root),
        };
        result.map_or_else(Answer::Eval, Answer::Value)
    }

    /// What a name at this place (UTF-16 units) is asked of: the path before it, or the root.
    fn owner(&self, position: u64) -> Option<Value> {
        let units: Vec<u16> = self.expression.encode_utf16().collect();
        let before = units.get(..usize::try_from(position).ok()?)?;
        let before = String::from_utf16(before).ok()?;
        let in_path = |c: char| c.is_alphanumeric() || "_$.?'\"[]#".contains(c);
        let path = before.trim_end_matches(['.', '?']);
        let path = &path[path.rfind(|c| !in_path(c)).map_or(0, |at| at + 1)..];
        if path.is_empty() {
            return Some(self.root.clone());
        }
        parse(path).ok()?.eval(&self.root).ok()
    }

    /// Whether an enum or a character may take part in a comparison with a text.
    fn compares_names(&self) -> bool {
        let words = self.expression.to_lowercase();
        let equality = ["==", "!=", " eq ", " ne ", ".equals("];
        equality.iter().any(|operator| words.contains(operator))
            && (holds_name(&self.root) || words.contains("charat") || words.contains('['))
    }
}

fn holds_name(value: &Value) -> bool {
    match value {
        Value::Enum(_) | Value::Char(_) => true,
        Value::List(all) | Value::Array(all) | Value::Set(all) => all.iter().any(holds_name),
        Value::Map(pairs) => pairs.iter().any(|(_, value)| holds_name(value)),
        Value::Record(record) => record.fields.iter().any(|(_, value)| holds_name(value)),
        _ => false,
    }
}

/// A construct that only Spring has: whatever its answer, ours is an error that names it.
fn outside(constructs: &[Json], answer: &Answer) -> Judged {
    let message = match answer {
        Answer::Value(value) => return Err(format!("gave {value:?}")),
        Answer::Parse(error) => error.to_string(),
        Answer::Eval(error) => error.to_string(),
    };
    let mut constructs = constructs.iter().filter_map(Json::as_str);
    if constructs.any(|construct| message.contains(word_of(construct))) {
        Ok(Verdict::Refused(OUTSIDE))
    } else {
        Err(format!("the error names no construct: {message}"))
    }
}

/// The word of a construct that must show up in the message.
fn word_of(construct: &str) -> &str {
    match construct {
        "#variable" | "leading index" => construct,
        "matches with a computed pattern" => "computed",
        "@bean" => "@bean",
        "T()" => "T(",
        _ => construct.split(' ').next_back().unwrap_or(construct),
    }
}

/// What is wrong with an answer; nothing when it is Java's.
fn mismatch(asked: &Asked<'_>, out: &Json, answer: &Answer) -> Option<String> {
    match (out["error"].as_str(), answer) {
        (None, Answer::Value(value)) => wrong_value(asked, out, value),
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
        // Java too finds a mistake in it; ours names the construct, whatever else is wrong with it.
        (Some("parse"), Answer::Parse(error))
            if matches!(error.problem(), ParseProblem::Unsupported { .. }) =>
        {
            None
        }
        (Some(_), Answer::Parse(error)) => {
            wrong_error(asked.expression, out, error.code(), error.position())
        }
        (Some(_), Answer::Eval(error)) => {
            wrong_error(asked.expression, out, error.code(), error.position())
        }
    }
}

fn wrong_value(asked: &Asked<'_>, out: &Json, value: &Value) -> Option<String> {
    let null_is_false = asked.usage == "condition" && out["ok"]["t"] == "null";
    let expected = match typed::value(&out["ok"]) {
        _ if null_is_false => Value::Bool(false),
        Ok(expected) => expected,
        // Where an answer names only the class there is nothing to compare.
        Err(Unwritable::Opaque) => return None,
        Err(Unwritable::HalfCharacter) => return Some(format!("gave {value:?}")),
    };
    if let (Value::Text(ours), Value::Text(expected)) = (value, &expected)
        && same_number(ours, expected)
    {
        // Java 17 prints some numbers with a digit too many.
        return None;
    }
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

/// Two texts of one floating-point number.
fn same_number(ours: &str, java: &str) -> bool {
    let both = |text: &str| {
        text.contains(['.', 'E'])
            .then(|| text.parse().ok())
            .flatten()
    };
    ours != java
        && matches!((both(ours), both(java)), (Some::<f32>(a), Some::<f32>(b)) if a.to_bits() == b.to_bits())
}

fn wrong_error(
    expression: &str,
    out: &Json,
    code: Option<&str>,
    position: usize,
) -> Option<String> {
    // What Java reports as a bare exception is a typed error here.
    let expected = out["code"].as_str()?;
    if code != Some(expected) {
        return Some(format!("code {code:?}, not {expected}"));
    }
    // Java has no position for these (it says 0): ours point at the step or operator.
    if matches!(expected, "EL1007E" | "EL1013E" | "EL1030E") {
        return None;
    }
    let units = expression.chars().take(position).map(char::len_utf16);
    let ours = units.sum::<usize>() + usize::from(expected == "EL1082E");
    let java = out["pos"].as_u64()?;
    (ours as u64 != java).then(|| format!("position {ours}, not {java}, for {expected}"))
}

/// Why an answer differs from Java's on purpose.
fn difference(asked: &Asked<'_>, out: &Json, answer: &Answer) -> Option<&'static str> {
    let (code, fails) = (out["code"].as_str(), out["error"].as_str().is_some());
    match answer {
        Answer::Parse(error) => match error.problem() {
            ParseProblem::Pattern { .. } if !fails => Some(LINEAR),
            ParseProblem::TooDeep { .. } | ParseProblem::TooLong { .. } => Some(LIMITS),
            _ if asked.expression.contains("?:") => Some(OPERAND),
            _ => None,
        },
        _ if code == Some("EL1008E") && asked.is_missing_key(out) => Some(MISSING_KEY),
        Answer::Eval(error) => match error.problem() {
            EvalProblem::HalfCharacter if !fails => Some(HALF),
            EvalProblem::Operator {
                operator: "*" | "-",
                ..
            } => Some(TEXT_NUMBER),
            // Only the place can differ.
            _ if code.is_some() && code == error.code() && asked.has_logic() => Some(INNERMOST),
            _ => None,
        },
        Answer::Value(_) if code == Some("EL1004E") && asked.expression.contains("get") => {
            Some(GETTER)
        }
        Answer::Value(_) if !fails && asked.compares_names() => Some(NAMES),
        Answer::Value(_) => None,
    }
}

impl Asked<'_> {
    fn is_missing_key(&self, out: &Json) -> bool {
        let owner = out["pos"].as_u64().and_then(|at| self.owner(at));
        matches!(owner, Some(Value::Map(_)))
    }

    fn has_logic(&self) -> bool {
        let words = self.expression.to_lowercase();
        let operators = ["or ", "and ", "not ", "||", "&&", "!"];
        operators.iter().any(|operator| words.contains(operator))
    }
}
