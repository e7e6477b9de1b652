//! Tests of the headers: spellings, types, and what may be sent.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{sync::Arc, time::Duration};

use super::*;
use crate::Message;

fn delivery() -> Arc<Delivery> {
    Arc::new(Delivery {
        topic: "orders".into(),
        queue_id: 3,
        reconsume_times: 2,
        ..Delivery::default()
    })
}

#[test]
fn both_prefixes_and_the_bare_name_are_one_header() {
    let headers = Headers::received([("TAGS", "paid"), ("type", "order")], delivery());
    for name in ["TAGS", "ROCKET_TAGS", "rocketmq_TAGS"] {
        assert_eq!(headers.get(name), Some("paid"), "{name}");
    }
    assert_eq!(headers.get("Type"), None, "names are case-sensitive");
}

#[test]
fn facts_are_readable_under_both_prefixes_and_not_under_the_bare_name() {
    let headers = Headers::received([("TOPIC", "the sender's own")], delivery());
    assert_eq!(headers.get("ROCKET_MQ_TOPIC"), Some("orders"));
    assert_eq!(headers.get("rocketmq_TOPIC"), Some("orders"));
    assert_eq!(headers.get("rocketmq_RECONSUME_TIMES"), Some("2"));
    assert_eq!(&headers["ROCKET_MQ_QUEUE_ID"], "3");
    assert_eq!(headers.get("TOPIC"), Some("the sender's own"));
}

#[test]
fn a_received_message_can_be_sent_on() {
    let headers = Headers::received(
        [("KEYS", "k"), ("id", "4"), ("timestamp", "5"), ("a", "b")],
        delivery(),
    );
    let out = headers.outgoing().unwrap();
    assert_eq!((out.keys, out.properties), (Some("k"), vec![("a", "b")]));
}

#[test]
fn typed_setters_and_raw_headers_say_the_same() {
    let typed = Message::new(()).tag("t").keys(["a", "b"]).delay_level(2);
    let raw = Message::new(())
        .header("ROCKET_TAGS", "t")
        .header("KEYS", "a b")
        .header("DELAY", "2");
    assert_eq!(
        typed.headers().outgoing().unwrap(),
        raw.headers().outgoing().unwrap()
    );
    assert_eq!(typed.headers().outgoing().unwrap().delay_level, Some(2));
}

#[test]
fn a_blank_in_a_key_is_told_at_the_send() {
    let message = Message::new(()).key("a b").key("c");
    assert_eq!(
        message.headers().outgoing(),
        Err(HeaderError::BlankInKey { key: "a b".into() })
    );
}

#[test]
fn reserved_names_are_refused_with_what_to_use_instead() {
    let error = Message::new(())
        .header("UNIQ_KEY", "x")
        .headers()
        .outgoing()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the header `UNIQ_KEY` is reserved; use `Message::key` for a key of your own"
    );
    let error = Message::new(())
        .header("ROCKET_MQ_TOPIC", "x")
        .headers()
        .outgoing()
        .unwrap_err();
    assert!(matches!(error, HeaderError::Reserved { .. }), "{error}");
}

#[test]
fn a_time_is_asked_for_in_four_ways() {
    let second = Duration::from_secs(1);
    for (name, expected) in [
        ("TIMER_DELAY_SEC", Timing::After(90 * second)),
        ("TIMER_DELAY_MS", Timing::After(second * 9 / 100)),
        ("TIMER_DELIVER_MS", Timing::At(90)),
        ("__STARTDELIVERTIME", Timing::At(90)),
    ] {
        let message = Message::new(()).header(name, "90");
        let headers = message.headers().outgoing().unwrap();
        assert_eq!(
            (headers.timing, headers.properties),
            (Some(expected), vec![]),
            "{name}"
        );
        let message = Message::new(()).header(name, "-1");
        let error = message.headers().outgoing().unwrap_err();
        assert!(matches!(error, HeaderError::InvalidTime { .. }), "{error}");
        // A received message does not show it: sent on, it would be delayed again.
        assert!(names::reserved(name).is_some(), "{name}");
    }
    let typed = Message::new(()).delay_level(2).deliver_after(90 * second);
    let headers = typed.headers().outgoing().unwrap();
    assert_eq!(
        (headers.delay_level, headers.timing),
        (None, Some(Timing::After(90 * second)))
    );
    let level = typed.delay_level(2);
    assert_eq!(level.headers().outgoing().unwrap().timing, None);
}

#[test]
fn a_delay_outside_the_table_and_a_separator_are_refused() {
    let error = Message::new(())
        .delay_level(19)
        .headers()
        .outgoing()
        .unwrap_err();
    assert_eq!(
        error,
        HeaderError::InvalidDelay {
            given: "19".into(),
            max: 18
        }
    );
    let error = Message::new(())
        .header("a", "b\u{1}c")
        .headers()
        .outgoing()
        .unwrap_err();
    assert_eq!(error, HeaderError::Separator { name: "a".into() });
    let error = Message::new(())
        .header("a", "b".repeat(40_000))
        .headers()
        .outgoing()
        .unwrap_err();
    assert!(matches!(error, HeaderError::TooLong { .. }), "{error}");
}

#[test]
fn types_of_the_older_binder_are_read() {
    let types = r#"{"n":"java.lang.Integer","s":"java.lang.String"}"#;
    let headers = Headers::received(
        [
            ("n", "7"),
            ("s", "\"x\""),
            ("spring_json_header_types", types),
        ],
        delivery(),
    );
    assert_eq!(headers.value("n").unwrap().kind(), HeaderKind::Int(7));
    assert_eq!(headers.get("s"), Some("x"));
    assert_eq!(headers.get("spring_json_header_types"), None);
}

#[test]
fn an_answer_takes_over_what_is_absent_but_no_delay_and_no_facts() {
    let inbound = Headers::received(
        [
            ("TAGS", "in"),
            ("DELAY", "3"),
            ("a", "1"),
            ("scst_partition", "2"),
        ],
        delivery(),
    );
    let mut answer = Headers::new();
    answer.insert("a", "2");
    answer.copy_absent_from(&inbound);
    let copied: Vec<_> = answer
        .iter()
        .map(|(name, value)| (name, value.as_str()))
        .collect();
    assert_eq!(copied, [("a", "2"), ("TAGS", "in")]);
}

#[test]
fn l26_names_travel_as_given_and_a_blank_value_is_left_out() {
    let headers: Headers = [
        ("orderId", "7"),
        ("KEYS", "k"),
        ("TAGS", "t"),
        ("blank", " "),
    ]
    .into_iter()
    .collect();
    let out = headers.outgoing().unwrap();
    assert_eq!(out.properties, [("orderId", "7")]);
    assert_eq!((out.keys, out.tags), (Some("k"), Some("t")));
}
