//! Tests of the codecs and of messages as roots of expressions.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use bindery_expression::Value;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::*;
use crate::Message;
use crate::handler::Delivery;

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Order {
    id: i64,
    lines: Vec<u8>,
}

fn type_of(text: &str) -> ContentType {
    text.parse().unwrap()
}

fn encode(payload: &dyn Payload, content_type: &str) -> (Bytes, String) {
    let encoded = payload
        .encode(&type_of(content_type), EncodeOptions::default())
        .unwrap();
    (encoded.bytes, encoded.content_type.to_string())
}

fn received(body: impl Into<Bytes>, content_type: &str) -> Message {
    Message::new(body.into()).content_type(content_type)
}

#[test]
fn text_travels_raw_under_json_and_is_quoted_on_request() {
    let text = "Hello RocketMQ!".to_owned();
    assert_eq!(
        encode(&text, "application/json"),
        (Bytes::from("Hello RocketMQ!"), "application/json".into())
    );
    let options = EncodeOptions { json_strings: true };
    assert_eq!(
        text.encode(&ContentType::json(), options).unwrap().bytes,
        "\"Hello RocketMQ!\""
    );
    assert_eq!(
        encode(&Quoted(text), "application/json").0,
        "\"Hello RocketMQ!\""
    );
}

#[test]
fn both_of_java_s_text_forms_are_read() {
    let read = |body: &'static str, content_type| {
        decode_string(&received(body, content_type), &Delivery::default()).unwrap()
    };
    assert_eq!(
        read("Hello RocketMQ!", "application/json"),
        "Hello RocketMQ!"
    );
    assert_eq!(
        read("\"Hello RocketMQ!\"", "application/json"),
        "Hello RocketMQ!"
    );
    assert_eq!(
        read("\"quoted\" and more", "application/json"),
        "\"quoted\" and more"
    );
    assert_eq!(read("\"quoted\"", "text/plain"), "\"quoted\"");
    let message = received("\"quoted\"", "application/json");
    assert_eq!(
        decode_text(&message, &Delivery::default()).unwrap(),
        "\"quoted\""
    );
}

#[test]
fn l25_bytes_travel_as_they_are_and_text_elsewhere_is_labelled_as_text() {
    assert_eq!(
        encode(&Bytes::from_static(b"\x00\xff"), "application/x-own").0,
        Bytes::from_static(b"\x00\xff")
    );
    assert_eq!(
        encode(&"a".to_owned(), "application/octet-stream"),
        (Bytes::from("a"), "text/plain".into())
    );
    assert_eq!(encode(&7, "text/plain").0, "7");
    let order = Order {
        id: 1,
        lines: vec![],
    };
    let error = order
        .encode(&type_of("text/plain"), EncodeOptions::default())
        .unwrap_err();
    assert!(matches!(error, EncodeError::NoCodec { .. }), "{error}");
}

#[test]
fn charsets_are_kept_or_refused() {
    let latin = "text/plain; charset=ISO-8859-1";
    assert_eq!(
        encode(&"é".to_owned(), latin).0,
        Bytes::from_static(b"\xe9")
    );
    assert_eq!(
        decode_text(&received(&b"\xe9"[..], latin), &Delivery::default()).unwrap(),
        "é"
    );
    let error = decode_text(
        &received("x", "text/plain;charset=UTF-16"),
        &Delivery::default(),
    )
    .unwrap_err();
    assert!(matches!(error, DecodeError::Charset { .. }), "{error}");
    let error =
        decode_text(&received(&b"a\xff"[..], "text/plain"), &Delivery::default()).unwrap_err();
    assert!(
        matches!(error, DecodeError::NotUtf8 { valid_up_to: 1, .. }),
        "{error}"
    );
}

#[test]
fn a_mislabelled_json_is_read_unless_the_binding_is_strict() {
    let message = received("{\"id\":1,\"lines\":[]}", "text/plain");
    let order: Order = decode_json(&message, &Delivery::default()).unwrap();
    assert_eq!(order.id, 1);
    let strict = Delivery {
        strict_content_type: true,
        ..Delivery::default()
    };
    let error = decode_json::<Order>(&message, &strict).unwrap_err();
    assert!(matches!(error, DecodeError::NotJson { .. }), "{error}");
}

#[test]
fn a_decode_error_names_path_line_and_column() {
    let message = received("{\"id\":1,\n\"lines\":[1,\"x\"]}", "application/json");
    let error = decode_json::<Order>(&message, &Delivery::default()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("at `lines[1]`") && text.contains("line 2"),
        "{text}"
    );
}

#[test]
fn java_objects_are_refused_by_name() {
    let message = received("x", "application/x-java-serialized-object");
    let error = decode_string(&message, &Delivery::default()).unwrap_err();
    assert!(matches!(error, DecodeError::JavaObject { .. }), "{error}");
}

#[test]
fn content_types_are_compared_by_essence() {
    assert!(type_of("Application/Vnd.order+JSON; v=1").is_json());
    assert!(type_of("\"text/plain\"").is_text());
    assert_eq!(
        "json".parse::<ContentType>().unwrap_err().to_string(),
        "`json` is no content type: expected `type/subtype`, for instance `application/json`"
    );
}

#[test]
fn keys_keep_the_type_of_the_payload_s_field_and_of_the_header() {
    let order = Order {
        id: -7,
        lines: vec![1],
    };
    let message = Message::new(()).header("key", 5).header("text", "a");
    let of = |text: &str| {
        order
            .evaluate(&bindery_expression::parse(text).unwrap(), message.headers())
            .unwrap()
    };
    assert_eq!(of("payload['id']"), Value::Long(-7));
    assert_eq!(of("payload.id"), Value::Long(-7));
    assert_eq!(of("headers['key']"), Value::Int(5));
    assert_eq!(of("headers.text.length()"), Value::Int(1));
    assert_eq!(of("headers['missing'] ?: 'none'"), Value::from("none"));
    assert_eq!(of("payload.lines[0]"), Value::Int(1));
}

#[test]
fn conditions_read_json_by_jackson_s_rule_and_text_as_text() {
    let holds = |body: &'static str, condition: &str| {
        let expression = bindery_expression::parse(condition).unwrap();
        condition_holds(
            &expression,
            &received(body, "application/json").header("type", "dog"),
        )
    };
    assert!(
        holds(
            "{\"age\":4}",
            "headers['type'] == 'dog' and payload.age > 3"
        )
        .unwrap()
    );
    assert!(holds("not json", "payload == 'not json'").unwrap());
    assert!(!holds("{}", "payload.missing").unwrap());
    assert!(holds("{}", "headers.type == 'dog' or payload.x.y").unwrap());
    assert_eq!(
        holds("{}", "payload.x.y").unwrap_err().code(),
        Some("EL1007E")
    );
}
