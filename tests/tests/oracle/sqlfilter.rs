//! SQL92 conditions over message properties.

use bindery_protocol::filter::{SqlErrorKind, SqlFilter, SqlProblem, Truth};
use bindery_protocol::message::Properties;
use serde_json::Value as Json;

use super::corpus::{Judged, Verdict, same, text};

const TRAILING: &str = "text behind a complete expression is an error, not ignored";
const TOO_DEEP: &str = "nesting is limited by a number, not by the size of a stack";
const HEX_FLOAT: &str = "a property is never read as a hexadecimal floating-point number";

pub(crate) fn judge(header: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    let parsed = SqlFilter::parse(text(input, "expr")?);
    if let Some(expected) = out["compile"].as_str() {
        return refusal(parsed.err().as_ref(), expected, out);
    }
    let filter = match parsed {
        Ok(filter) => filter,
        Err(error) => {
            return match error.problem {
                SqlProblem::Trailing { .. } => Ok(Verdict::Refused(TRAILING)),
                SqlProblem::TooDeep { .. } => Ok(Verdict::Refused(TOO_DEEP)),
                _ => Err(error.to_string()),
            };
        }
    };
    let set = &header["propertySets"][text(input, "props")?];
    let pairs = set.as_object().into_iter().flatten();
    let properties: Properties = pairs
        .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect();
    let judged = applied(&filter, &properties, out);
    match judged {
        Err(_) if has_hex_float(&filter, &properties) => Ok(Verdict::Refused(HEX_FLOAT)),
        judged => judged,
    }
}

/// An expression that Java refuses.
fn refusal(
    error: Option<&bindery_protocol::filter::SqlError>,
    expected: &str,
    out: &Json,
) -> Judged {
    let error = error.ok_or("accepted")?;
    let kind = match error.kind() {
        SqlErrorKind::Syntax => "syntax",
        SqlErrorKind::Semantic => "semantic",
    };
    same("the kind of error", kind, expected)?;
    if let (Some(line), Some(column)) = (out["line"].as_u64(), out["column"].as_u64()) {
        let place = (error.line as u64, error.column as u64);
        same("the place", place, (line, column))?;
    }
    Ok(Verdict::Passed)
}

fn applied(filter: &SqlFilter, properties: &Properties, out: &Json) -> Judged {
    let ours = match filter.evaluate(properties) {
        Ok(Truth::True) => "TRUE",
        Ok(Truth::False) => "FALSE",
        Ok(Truth::Unknown) => "NULL",
        Err(_) => "an error",
    };
    let expected = match out.get("error") {
        Some(_) => "an error",
        None => text(out, "value")?,
    };
    same("the value", ours, expected)?;
    same(
        "delivered",
        filter.matches(properties),
        out["delivered"] == true,
    )?;
    Ok(Verdict::Passed)
}

fn has_hex_float(filter: &SqlFilter, properties: &Properties) -> bool {
    properties.iter().any(|(name, value)| {
        let digits = value.trim().trim_start_matches(['+', '-']).to_lowercase();
        digits.starts_with("0x") && digits.contains('p') && filter.as_str().contains(name)
    })
}
