//! Names of topics and groups: which are valid, which are the system's, and how namespaces are put on and taken off.

use bindery_protocol::names::{
    NameError, bare, check_group, check_topic, dlq_topic, is_dlq_topic, is_retry_topic,
    is_send_forbidden, is_system_group, is_system_topic, is_wrapped, namespace_of,
    pop_retry_topic_v1, pop_retry_topic_v2, retry_topic, unwrap, unwrap_any, wrap,
};
use serde_json::Value as Json;

use super::corpus::{Judged, Verdict, same};

const NO_NAME: &str = "a name can't be null";

pub(crate) fn names(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    let Some(name) = input["name"].as_str() else {
        return Ok(Verdict::Refused(NO_NAME));
    };
    let (topic, group) = (check_topic(name), check_group(name));
    same(
        "the broker's check",
        kind(&topic),
        told(&out["broker"]["remark"]),
    )?;
    same(
        "the client's check of a topic",
        topic.is_ok(),
        out["topic"] == "ok",
    )?;
    same(
        "the check of a group",
        kind(&group),
        told(&out["group"]["message"]),
    )?;
    if let Err(error) = &topic {
        // The broker's remark is seen by clients of all languages.
        same(
            "the remark",
            Some(&*error.to_string()),
            out["broker"]["remark"].as_str(),
        )?;
    }
    same(
        "a system topic",
        is_system_topic(name),
        out["system"] == true,
    )?;
    same(
        "not to be sent to",
        is_send_forbidden(name),
        out["sendForbidden"] == true,
    )?;
    same(
        "a system group",
        is_system_group(name),
        out["sysGroup"] == true,
    )?;
    Ok(Verdict::Passed)
}

fn kind(outcome: &Result<(), NameError>) -> &'static str {
    match outcome {
        Ok(()) => "ok",
        Err(NameError::Blank { .. }) => "blank",
        Err(NameError::IllegalCharacter { .. }) => "illegal",
        Err(NameError::TooLong { .. }) => "long",
        Err(_) => "another",
    }
}

/// The kind that Java's text tells of.
fn told(message: &Json) -> &'static str {
    match message.as_str().unwrap_or_default() {
        text if text.contains("longer") => "long",
        text if text.contains("illegal") => "illegal",
        text if text.contains("blank") => "blank",
        _ => "ok",
    }
}

pub(crate) fn namespace(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    let Some(resource) = input["resource"].as_str() else {
        return Ok(Verdict::Refused(NO_NAME));
    };
    if out.get("bare").is_some() {
        return plain(resource, out);
    }
    let namespace = input["namespace"].as_str().unwrap_or_default();
    let wrapped = wrap(namespace, resource);
    for (what, ours) in [
        ("wrap", &wrapped),
        ("retry", &retry_topic(&wrapped)),
        ("unwrap", &unwrap(namespace, resource)),
        ("unwrapAny", &unwrap_any(resource)),
    ] {
        same(what, Some(&**ours), out[what].as_str())?;
    }
    same(
        "already",
        is_wrapped(namespace, resource),
        out["already"] == true,
    )?;
    Ok(Verdict::Passed)
}

/// What follows from a name without a namespace to put on.
fn plain(resource: &str, out: &Json) -> Judged {
    for (what, ours) in [
        ("bare", bare(resource)),
        ("namespace", namespace_of(resource)),
        ("retryTopic", &retry_topic(resource)),
        ("dlqTopic", &dlq_topic(resource)),
        ("pop1", &pop_retry_topic_v1(resource, "orders")),
        ("pop2", &pop_retry_topic_v2(resource, "orders")),
    ] {
        same(what, Some(ours), out[what].as_str().or(Some("")))?;
    }
    same("isRetry", is_retry_topic(resource), out["isRetry"] == true)?;
    same("isDlq", is_dlq_topic(resource), out["isDlq"] == true)?;
    Ok(Verdict::Passed)
}
