//! Tests of extraction, outcomes, replies and panics, without a binder.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::*;
use crate::convert::{ContentType, EncodeOptions};
use crate::registry::Handler;
use crate::{Headers, Message};

#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Order {
    id: i64,
}

fn delivery() -> Delivery {
    Delivery {
        binding: "input".into(),
        group: "group".into(),
        topic: "orders".into(),
        message_id: "AC11".into(),
        queue_id: 3,
        queue_offset: 17,
        born_millis: 1_700_000_000_000,
        reconsume_times: 2,
        attempt: 1,
        max_reconsume_times: Some(16),
        ..Delivery::default()
    }
}

async fn call(handler: &Handler, body: &'static str, app: &AppContext) -> HandlerResult {
    let info = delivery();
    let properties = [("TAGS", "paid"), ("KEYS", "a b"), ("no", "42")];
    let message = Message::received(Bytes::from(body), properties, Arc::new(info.clone()));
    handler
        .call(MessageContext {
            message: &message,
            info: &info,
            app,
        })
        .await
}

async fn outcome(handler: Handler, body: &'static str) -> HandlerResult {
    call(&handler, body, &AppContext::new()).await
}

#[tokio::test]
async fn arguments_stand_in_any_order() {
    async fn listener(
        headers: Headers,
        Json(order): Json<Order>,
        text: String,
        whole: Message,
        typed: Message<Order>,
    ) {
        assert_eq!(order, Order { id: 1 });
        assert_eq!(text, "{\"id\":1}");
        assert_eq!(whole.payload(), &text);
        assert_eq!(typed.payload(), &order);
        assert_eq!(headers.get("ROCKET_TAGS"), Some("paid"));
    }
    outcome(Handler::listen("input").to(listener), "{\"id\":1}")
        .await
        .unwrap();
}

#[tokio::test]
async fn facts_of_the_delivery_are_arguments() {
    #[expect(clippy::too_many_arguments, reason = "one of each")]
    async fn listener(
        Tags(tags): Tags,
        Keys(keys): Keys,
        id: MessageId,
        queue: QueueId,
        offset: QueueOffset,
        topic: Topic,
        BornTime(born): BornTime,
        tried: Redelivery,
        binding: BindingName,
    ) {
        assert_eq!(
            (tags.as_str(), keys.len(), id.0.as_str()),
            ("paid", 2, "AC11")
        );
        assert_eq!(
            (queue, offset, topic.0.as_str()),
            (QueueId(3), QueueOffset(17), "orders")
        );
        assert_eq!(
            born,
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
        );
        assert_eq!(
            tried,
            Redelivery {
                in_process: 1,
                broker: 2,
                max: Some(16)
            }
        );
        assert_eq!(binding.0, "input");
    }
    outcome(Handler::listen("input").to(listener), "")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_payload_of_the_wrong_shape_is_rejected_for_good_and_says_where() {
    async fn listener(_: Json<Order>) {}
    let failure = outcome(Handler::listen("input").to(listener), "{\"id\":\"x\"}")
        .await
        .unwrap_err();
    assert_eq!(failure.verdict, Verdict::Reject);
    let text = failure.to_string();
    assert!(
        text.contains("argument 1") && text.contains("at `id`") && text.contains("line 1 column 9"),
        "{text}"
    );
}

#[tokio::test]
async fn missing_state_is_known_before_and_can_come_back() {
    async fn listener(State(limit): State<u32>) {
        assert_eq!(limit, 7);
    }
    let handler = Handler::listen("input").to(listener);
    assert_eq!(format!("{:?}", handler.requirements()), "[State<u32>]");
    let failure = call(&handler, "", &AppContext::new()).await.unwrap_err();
    assert_eq!(failure.verdict, Verdict::Retry);
    let mut app = AppContext::new();
    app.insert(7_u32);
    call(&handler, "", &app).await.unwrap();
}

#[tokio::test]
async fn an_outcome_is_the_verdict() {
    async fn later() -> Outcome {
        Outcome::RetryAfter(Duration::from_secs(1))
    }
    async fn acknowledged() -> Result<Outcome, std::fmt::Error> {
        Ok(Outcome::Ack)
    }
    let failure = outcome(Handler::listen("input").to(later), "")
        .await
        .unwrap_err();
    assert_eq!(failure.verdict, Verdict::RetryAfter(Duration::from_secs(1)));
    assert!(
        outcome(Handler::listen("input").to(acknowledged), "")
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn any_error_is_retried_and_a_handler_error_decides_itself() {
    async fn foreign() -> Result<(), HandlerError> {
        "x".parse::<u32>()?;
        Ok(())
    }
    async fn decided() -> Result<(), HandlerError> {
        Err(HandlerError::reject("never"))
    }
    async fn own() -> Result<(), std::num::ParseIntError> {
        "x".parse::<u32>().map(drop)
    }
    for (handler, verdict) in [
        (Handler::listen("input").to(foreign), Verdict::Retry),
        (Handler::listen("input").to(decided), Verdict::Reject),
        (Handler::listen("input").to(own), Verdict::Retry),
    ] {
        let failure = outcome(handler, "").await.unwrap_err();
        assert_eq!(failure.verdict, verdict);
        assert!(matches!(failure.cause, Cause::Error(_)), "{failure}");
    }
}

#[tokio::test]
async fn a_panic_is_a_failure() {
    async fn listener() {
        panic!("boom {}", 1);
    }
    let failure = outcome(Handler::listen("input").to(listener), "")
        .await
        .unwrap_err();
    assert_eq!(
        (failure.verdict.clone(), failure.to_string().as_str()),
        (Verdict::Retry, "the handler panicked: boom 1")
    );
}

#[tokio::test]
async fn a_reply_keeps_its_payload_until_the_output_is_known() {
    async fn listener(order: Json<Order>) -> Option<Message<Order>> {
        Some(Message::new(order.0).tag("next"))
    }
    let handler = Handler::listen("input").send_to("out").to(listener);
    assert_eq!(handler.send_to().collect::<Vec<_>>(), ["out"]);
    let replies = outcome(handler, "{\"id\":-7}").await.unwrap();
    let [reply] = replies.as_slice() else {
        panic!("{replies:?}")
    };
    assert_eq!((reply.output, reply.headers.tags()), (0, Some("next")));
    let key = bindery_expression::parse("payload['id']").unwrap();
    assert_eq!(
        reply.payload.evaluate(&key, &reply.headers).unwrap(),
        bindery_expression::Value::Long(-7)
    );
    let encoded = reply
        .payload
        .encode(&ContentType::json(), EncodeOptions::default())
        .unwrap();
    assert_eq!(encoded.bytes, "{\"id\":-7}");
}

#[tokio::test]
async fn none_and_an_empty_list_send_nothing() {
    async fn none() -> Result<Option<String>, std::fmt::Error> {
        Ok(None)
    }
    async fn empty() -> Vec<String> {
        Vec::new()
    }
    assert!(
        outcome(Handler::listen("i").send_to("o").to(none), "")
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        outcome(Handler::listen("i").send_to("o").to(empty), "")
            .await
            .unwrap()
            .is_empty()
    );
}

#[test]
fn an_explicit_handler_knows_its_place_and_its_condition() {
    async fn listener() {}
    let handler = Handler::listen("input")
        .condition("payload.id >")
        .to(listener);
    assert!(
        handler.file().ends_with("handler/tests.rs"),
        "{}",
        handler.file()
    );
    assert_eq!(handler.name(), "listener");
    assert_eq!(handler.condition().unwrap_err().position(), 11);
}
