//! Keys, selectors and overrides of one output.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::*;
use crate::binder::memory::MemoryBinder;
use crate::config::LoadOptions;
use crate::handler::{QueueId, State};
use crate::registry::Handler;
use crate::{App, Message};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    id: i64,
    region: Option<String>,
}

const ORDER: Order = Order {
    id: 6,
    region: None,
};

fn output(expression: Option<&str>, count: Option<u32>) -> BindingConfig {
    let mut output = BindingConfig::new("output", "orders");
    output.producer.partition_key_expression = expression.map(str::to_owned);
    output.producer.partition_count = count;
    output
}

fn partition_of(
    expression: Option<&str>,
    count: Option<u32>,
    headers: &Headers,
) -> Result<u32, SendError> {
    Partitioning::new(&output(expression, count), PartitionCode::default(), 4)
        .unwrap()
        .partition(&ORDER, headers)
}

#[test]
fn a_key_is_taken_from_the_payload_or_from_a_header() {
    assert_eq!(
        partition_of(Some("payload['id']"), None, &Headers::new()).unwrap(),
        2
    );
    assert_eq!(
        partition_of(Some("payload.id"), Some(3), &Headers::new()).unwrap(),
        0
    );
    let headers: Headers = [("partitionKey", "order-1")].into_iter().collect();
    assert_eq!(
        partition_of(Some("headers['partitionKey']"), None, &headers).unwrap(),
        2
    );
}

#[test]
fn without_a_key_everything_goes_to_the_first_partition() {
    assert_eq!(partition_of(None, Some(1), &Headers::new()).unwrap(), 0);
}

#[test]
fn an_override_wins_over_the_key() {
    let headers: Headers = [(names::PARTITION_OVERRIDE, 3)].into_iter().collect();
    assert_eq!(partition_of(Some("payload.id"), None, &headers).unwrap(), 3);
}

#[test]
fn a_null_key_and_a_missing_field_are_errors_and_never_a_queue() {
    let null = partition_of(Some("payload.region"), None, &Headers::new());
    assert!(
        matches!(null, Err(SendError::PartitionKeyNull { .. })),
        "{null:?}"
    );
    let missing = partition_of(Some("payload.nothing"), None, &Headers::new());
    assert!(
        matches!(missing, Err(SendError::Expression { .. })),
        "{missing:?}"
    );
}

#[test]
fn more_partitions_than_queues_are_refused() {
    let refused = Partitioning::new(
        &output(Some("payload.id"), Some(5)),
        PartitionCode::default(),
        4,
    );
    assert!(
        matches!(
            refused,
            Err(BindError::PartitionCount {
                count: 5,
                queues: 4,
                ..
            })
        ),
        "{refused:?}"
    );
}

fn chosen(
    configure: impl FnOnce(&mut BindingConfig),
    code: PartitionCode,
    id: i64,
) -> Result<u32, SendError> {
    let mut output = output(None, None);
    configure(&mut output);
    let rule = Partitioning::new(&output, code, 4).unwrap();
    rule.partition(&Order { id, region: None }, &Headers::new())
}

#[test]
fn a_selector_expression_sees_the_key() {
    let by_expression = |selector: &str, id| {
        let configure = |output: &mut BindingConfig| {
            output.producer.partition_key_expression = Some("payload.id".to_owned());
            output.producer.partition_selector_expression = Some(selector.to_owned());
        };
        chosen(configure, PartitionCode::default(), id)
    };
    assert_eq!(by_expression("#root % 3", 8).unwrap(), 2);
    // Java: -7 as a Long hashes as 6, but the selector's own -7 is -3 by remainder and 3 without sign.
    assert_eq!(by_expression("intValue()", -7).unwrap(), 3);
    assert_eq!(by_expression("'1.9' == '' ? 0 : '3'", 1).unwrap(), 3);
    for wrong in ["null", "true", "nothing"] {
        let refused = by_expression(wrong, 1);
        let Err(SendError::Expression { expression, .. }) = &refused else {
            panic!("{refused:?}");
        };
        assert_eq!(expression, wrong);
    }
}

#[test]
fn code_takes_the_key_and_chooses_the_partition() {
    let code = |selector| PartitionCode {
        extractor: Some(KeyExtractor::new("half", |order: &Order, _| order.id / 2)),
        selector,
    };
    // 21 / 2 is 10, as a Long too.
    assert_eq!(chosen(|_| {}, code(None), 21).unwrap(), 2);
    let last = PartitionSelector::new("last", |key: &PartitionKey, count| {
        assert_eq!(*key, PartitionKey::Long(10));
        i32::try_from(count).unwrap() - 1
    });
    assert_eq!(chosen(|_| {}, code(Some(last)), 21).unwrap(), 3);
}

#[test]
fn an_extractor_of_another_payload_and_a_key_that_is_none_are_errors() {
    let of_text = KeyExtractor::new("ofText", |text: &String, _| text.clone());
    let none = KeyExtractor::new("none", |_: &Order, _| None::<String>);
    let with = |extractor| {
        let code = PartitionCode {
            extractor: Some(extractor),
            selector: None,
        };
        chosen(|_| {}, code, 1)
    };
    let wrong = with(of_text).unwrap_err();
    let cause = std::error::Error::source(&wrong).unwrap().to_string();
    assert!(
        cause.contains("String") && cause.contains("Order"),
        "{cause}"
    );
    assert!(
        matches!(with(none), Err(SendError::PartitionKeyNull { expression, .. }) if expression == "none")
    );
}

/// What arrives on `answers` behind a handler that answers from `input`, with the queue it came through.
async fn answered(output: &str, message: Message<Order>, answer: Handler) -> Vec<String> {
    async fn arrived(queue: QueueId, headers: Headers, seen: State<Seen>) {
        let header = headers.get(names::PARTITION).unwrap_or("-");
        seen.0.0.lock().unwrap().push(format!("{queue} {header}"));
    }
    let config = format!(
        "
spring.cloud.stream:
  default-binder: memory
  bindings:
    input: {{ destination: orders, group: group }}
    output: {{ destination: orders, producer: {{ partition-key-expression: \"'7'\" }} }}
    answers: {{ destination: answers, producer: {{ {output} }} }}
    arrived: {{ destination: answers, group: other }}
bindery.topics: {{ orders.queues: 16, answers.queues: 4 }}
"
    );
    let (broker, seen) = (MemoryBinder::new(), Seen::default());
    let app = App::builder()
        .options(LoadOptions::from_text(config))
        .without_inventory()
        .binder("memory", Arc::new(broker.clone()))
        .output("output")
        .partition_key_extractor(KeyExtractor::new("counted", |order: &Order, _| {
            CALLS.fetch_add(1, Ordering::Relaxed);
            order.id
        }))
        .state(seen.clone())
        .handler(answer)
        .handler(Handler::listen("arrived").to(arrived))
        .start()
        .await
        .unwrap();
    app.bridge().send("output", message).await.unwrap();
    broker.settled().await;
    app.shutdown().await.unwrap();
    seen.0.lock().unwrap().clone()
}

#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Answers with order 6, keyed by what the test looks for.
async fn answer() -> Message<Order> {
    Message::new(ORDER).header("tenant", "order-1")
}

fn answering() -> Handler {
    Handler::listen("input").send_to("answers").to(answer)
}

#[tokio::test(start_paused = true)]
async fn l24_the_key_is_taken_once_from_the_typed_payload_and_the_headers_the_handler_returned() {
    let received = || {
        Message::new(Order {
            id: 1,
            region: None,
        })
        .header("tenant", "order-2")
    };
    let by_header = r#"partition-key-expression: "headers['tenant']""#;
    // "order-1" hashes to 2 of 4, the received "order-2" would to 1.
    assert_eq!(answered(by_header, received(), answering()).await, ["2 2"]);
    let by_payload = r#"partition-key-expression: "payload['id']""#;
    assert_eq!(answered(by_payload, received(), answering()).await, ["2 2"]);
    let by_code = "partition-key-extractor-name: counted";
    let before = CALLS.load(Ordering::Relaxed);
    assert_eq!(answered(by_code, received(), answering()).await, ["2 2"]);
    assert_eq!(CALLS.load(Ordering::Relaxed) - before, 1, "once a message");
}

#[tokio::test(start_paused = true)]
async fn l24_a_received_partition_is_not_carried_over_and_an_override_of_the_handler_wins() {
    async fn overriding() -> Message<Order> {
        Message::new(ORDER).header(names::PARTITION_OVERRIDE, 3)
    }
    async fn forwarding(message: Message<Order>) -> Message<Order> {
        message
    }
    let keyed = r#"partition-key-expression: "payload['id']""#;
    let received = || Message::new(ORDER).header(names::PARTITION_OVERRIDE, 13);
    assert_eq!(answered(keyed, received(), answering()).await, ["2 2"]);
    let forward = Handler::listen("input").send_to("answers").to(forwarding);
    let unkeyed = answered("auto-startup: true", received(), forward).await;
    assert!(unkeyed[0].ends_with(" -"), "{unkeyed:?}");
    let own = Handler::listen("input").send_to("answers").to(overriding);
    assert_eq!(answered(keyed, received(), own).await, ["3 3"]);
}

#[test]
fn integers_of_json_without_types_hash_as_jackson_reads_them() {
    let of = |payload: serde_json::Value| {
        Partitioning::new(
            &output(Some("payload['order']['id']"), None),
            PartitionCode::default(),
            4,
        )
        .unwrap()
        .partition(&payload, &Headers::new())
        .unwrap()
    };
    // An Integer hashes as itself; the Long -7 would hash as 6 and go to 2.
    assert_eq!(of(serde_json::json!({ "order": { "id": -7 } })), 3);
    assert_eq!(of(serde_json::json!({ "order": { "id": 6 } })), 2);
    assert_eq!(of(serde_json::json!({ "order": { "id": i64::MIN } })), 0);
    assert_eq!(
        of(serde_json::json!({ "order": { "id": 4_294_967_297_i64 } })),
        0
    );
}
