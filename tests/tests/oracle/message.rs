//! What stands in a message's properties: tags and their hashes, the property text, ids.

use std::net::{IpAddr, SocketAddr};

use bindery_protocol::message::id::{UniqueId, file_name, offset_msg_id, parse_offset_msg_id};
use bindery_protocol::message::properties::delete;
use bindery_protocol::message::tag::tag_code;
use bindery_protocol::message::{PhysicalOffset, Properties, TagExpression};
use serde_json::{Value as Json, json};

use super::corpus::{Judged, Verdict, number, same, text};

const NO_ID: &str = "an id of another length or with other digits is an error";

pub(crate) fn tag_hash(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    let Some(expression) = input["subscription"].as_str() else {
        let code = input["tag"].as_str().map_or(0, tag_code);
        same("the code", Some(code), out["code"].as_i64())?;
        return Ok(Verdict::Passed);
    };
    let parsed = TagExpression::parse(expression);
    let Some(expected) = out["tags"].as_array() else {
        same("an error", parsed.is_err(), true)?;
        return Ok(Verdict::Passed);
    };
    match parsed.map_err(|error| error.to_string())? {
        TagExpression::All => same("the number of tags", 0, expected.len())?,
        filter @ TagExpression::Tags { .. } => {
            if let TagExpression::Tags { tags, codes } = &filter {
                same("the tags", &json!(tags), &out["tags"])?;
                same("the codes", &json!(codes), &out["codes"])?;
            }
            for tag in out["matches"].as_array().into_iter().flatten() {
                let code = tag_code(tag.as_str().unwrap_or_default());
                same("a match", filter.matches_code(code), true)?;
            }
        }
    }
    Ok(Verdict::Passed)
}

pub(crate) fn properties(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    let given = input["text"].as_str().unwrap_or_default();
    if let Some(name) = input["delete"].as_str() {
        same("the rest", &*delete(given, name), text(out, "text")?)?;
    } else if out.get("map").is_some() {
        same(
            "the pairs",
            sorted(&Properties::parse(given)),
            pairs(&out["map"]),
        )?;
    } else {
        let properties: Properties = pairs(&input["map"]).into_iter().collect();
        same("the text", &*properties.encode(), text(out, "text")?)?;
    }
    Ok(Verdict::Passed)
}

/// Pairs of name and value; one without a value is left out, as Java's encoder does.
pub(crate) fn pairs(list: &Json) -> Vec<(String, String)> {
    let pair = |pair: &Json| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned()));
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(pair)
        .collect()
}

pub(crate) fn sorted(properties: &Properties) -> Vec<(String, String)> {
    let owned = properties
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut pairs: Vec<_> = owned.collect();
    pairs.sort();
    pairs
}

pub(crate) fn message_id(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    if let Some(id) = input["uniq"].as_str() {
        unique_id(id, out)
    } else if let Some(id) = input["offsetMsgId"].as_str() {
        offset_id(id, out)
    } else if let Some(offset) = input["fileOffset"].as_i64() {
        same(
            "the file",
            &*file_name(PhysicalOffset(offset)),
            text(out, "file")?,
        )?;
        Ok(Verdict::Passed)
    } else {
        let host = SocketAddr::new(address(input, "address")?, number(&input["port"])?);
        let offset = PhysicalOffset(number(&input["offset"])?);
        same(
            "the id",
            &*offset_msg_id(host, offset),
            text(out, "offsetMsgId")?,
        )?;
        Ok(Verdict::Passed)
    }
}

fn address(json: &Json, field: &str) -> Result<IpAddr, String> {
    let text = text(json, field)?;
    text.parse().map_err(|error| format!("{text}: {error}"))
}

/// Whether it has the digits and one of the lengths of an id.
fn is_id(text: &str) -> bool {
    matches!(text.len(), 32 | 56) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn unique_id(id: &str, out: &Json) -> Judged {
    let read = match UniqueId::decode(id) {
        Ok(read) => read,
        Err(_) if !is_id(id) => return Ok(Verdict::Refused(NO_ID)),
        Err(error) => return Err(error.to_string()),
    };
    same("the address", read.ip, address(out, "ip")?)?;
    same(
        "the process",
        u64::from(read.pid),
        number::<u64>(&out["pid"])?,
    )?;
    same(
        "the time",
        u64::from(read.month_millis),
        number::<u64>(&out["monthMs"])?,
    )?;
    same("the id", read.encode(), id.to_uppercase())?;
    Ok(Verdict::Passed)
}

fn offset_id(id: &str, out: &Json) -> Judged {
    match parse_offset_msg_id(id) {
        Ok((host, offset)) => {
            same("the address", host.ip(), address(out, "address")?)?;
            same("the port", host.port(), number::<u16>(&out["port"])?)?;
            same("the offset", Some(offset.0), out["offset"].as_i64())?;
            Ok(Verdict::Passed)
        }
        Err(_) if out.get("error").is_some() => Ok(Verdict::Passed),
        Err(_) if !is_id(id) => Ok(Verdict::Refused(NO_ID)),
        Err(error) => Err(error.to_string()),
    }
}
