//! The pipeline over the in-process binder, in virtual time: pauses and delay levels take none.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::binder::memory::MemoryBinder;
use crate::config::LoadOptions;
use crate::handler::{HandlerError, Outcome, Redelivery, State};
use crate::pace::Pace;
use crate::registry::Handler;
use crate::{App, AppHandle, Headers, Message};

/// What the handlers of a test have seen, in order.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn add(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    id: i64,
    step: u32,
}

const BINDINGS: &str = "
spring.cloud.stream:
  default-binder: memory
  default.consumer.max-attempts: 1
  bindings:
    input: { destination: orders, group: group }
    output: { destination: orders }
    answers: { destination: answers }
bindery.config.allow-unused: true
bindery.topics.orders.queues: 4
";

struct Bench {
    broker: MemoryBinder,
    seen: Seen,
    app: AppHandle,
}

impl Bench {
    /// An application with `input` and `output` on topic `orders`, and `answers` for replies; `more` is added to its
    /// configuration.
    async fn start(more: &str, handlers: Vec<Handler>) -> Self {
        let (broker, seen) = (
            MemoryBinder::in_time(Pace::virtual_from(0)),
            Seen::default(),
        );
        let builder = App::builder()
            .options(LoadOptions::from_text(format!("{BINDINGS}\n---\n{more}\n")))
            .without_inventory()
            .memory(broker.clone())
            .output("output")
            .output("answers")
            .state(seen.clone());
        let app = handlers
            .into_iter()
            .fold(builder, crate::AppBuilder::handler)
            .start()
            .await
            .unwrap();
        Self { broker, seen, app }
    }

    async fn send(&self, message: impl Into<Message<Order>>) {
        self.app
            .bridge()
            .send("output", message.into())
            .await
            .unwrap();
    }

    /// Waits until nothing is left to do and stops; what the handlers have seen.
    async fn finish(self) -> Vec<String> {
        self.broker.settled().await;
        self.app.shutdown().await.unwrap();
        self.seen.all()
    }
}

fn order(id: i64, step: u32) -> Order {
    Order { id, step }
}

#[tokio::test]
async fn a_handler_gets_payload_and_headers() {
    async fn handle(order: axum::Json<Order>, headers: Headers, seen: State<Seen>) {
        seen.add(format!(
            "{} {}",
            order.id,
            headers.get("ROCKET_TAGS").unwrap_or("-")
        ));
    }
    let bench = Bench::start("", vec![Handler::listen("input").to(handle)]).await;
    bench.send(Message::new(order(7, 0)).tag("paid")).await;
    assert_eq!(bench.finish().await, ["7 paid"]);
}

#[tokio::test]
async fn attempts_in_the_process_pause_longer_each_time() {
    async fn handle(redelivery: Redelivery, seen: State<Seen>) -> Result<(), HandlerError> {
        seen.add(format!("{}.{}", redelivery.broker, redelivery.in_process));
        if redelivery.in_process < 3 {
            Err(HandlerError::retry("not yet"))
        } else {
            Ok(())
        }
    }
    let attempts = "spring.cloud.stream.bindings.input.consumer.max-attempts: 3";
    let bench = Bench::start(attempts, vec![Handler::listen("input").to(handle)]).await;
    bench.send(order(1, 0)).await;
    bench.broker.settled().await;
    assert_eq!(
        bench.broker.pace().now_millis(),
        3_000,
        "1 s + 2 s of pauses"
    );
    assert_eq!(bench.finish().await, ["0.1", "0.2", "0.3"]);
}

#[tokio::test]
async fn a_message_that_always_fails_comes_again_and_is_then_dead() {
    async fn handle(redelivery: Redelivery, seen: State<Seen>) -> Result<(), HandlerError> {
        seen.add(redelivery.broker.to_string());
        Err(HandlerError::retry("never"))
    }
    let twice = "spring.cloud.stream.rocketmq.bindings.input.consumer.max-reconsume-times: 2";
    let bench = Bench::start(twice, vec![Handler::listen("input").to(handle)]).await;
    let broker = bench.broker.clone();
    bench.send(order(1, 0)).await;
    assert_eq!(bench.finish().await, ["0", "1", "2"]);
    assert_eq!(broker.dead_letters("group").len(), 1);
}

#[tokio::test]
async fn l25_an_undecodable_payload_is_dead_at_once_and_never_handled() {
    async fn handle(_: axum::Json<Order>, seen: State<Seen>) {
        seen.add("handled");
    }
    let bench = Bench::start("", vec![Handler::listen("input").to(handle)]).await;
    let broker = bench.broker.clone();
    bench
        .app
        .bridge()
        .send("output", Message::new("no json".to_owned()))
        .await
        .unwrap();
    assert!(bench.finish().await.is_empty());
    assert_eq!(broker.dead_letters("group").len(), 1);
}

#[tokio::test]
async fn l27_a_panic_is_a_failure_and_the_input_goes_on() {
    async fn handle(order: axum::Json<Order>, redelivery: Redelivery, seen: State<Seen>) {
        seen.add(format!("{}.{}", order.id, redelivery.broker));
        assert!(
            order.id != 1 || redelivery.broker > 0,
            "the first delivery of order 1 panics"
        );
    }
    let bench = Bench::start("", vec![Handler::listen("input").to(handle)]).await;
    bench.send(order(1, 0)).await;
    bench.send(order(2, 0)).await;
    let mut seen = bench.finish().await;
    seen.sort();
    assert_eq!(seen, ["1.0", "1.1", "2.0"]);
}

#[tokio::test]
async fn conditions_choose_the_listener() {
    async fn dog(seen: State<Seen>) {
        seen.add("dog");
    }
    async fn old(seen: State<Seen>) {
        seen.add("old");
    }
    let handlers = vec![
        Handler::listen("input")
            .condition("headers['type'] == 'dog'")
            .to(dog),
        Handler::listen("input")
            .condition("payload.id > 10")
            .to(old),
    ];
    let bench = Bench::start("", handlers).await;
    bench
        .send(Message::new(order(1, 0)).header("type", "dog"))
        .await;
    bench.broker.settled().await;
    bench
        .send(Message::new(order(11, 0)).header("type", "dog"))
        .await;
    bench.broker.settled().await;
    bench
        .send(Message::new(order(2, 0)).header("type", "cat"))
        .await;
    assert_eq!(bench.finish().await, ["dog", "dog", "old"]);
}

#[tokio::test]
async fn an_answer_takes_over_the_headers_and_is_sent_before_the_ack() {
    async fn answer(order: axum::Json<Order>) -> Message<Order> {
        Message::new(Order {
            id: order.id,
            step: order.step + 1,
        })
        .tag("answered")
    }
    let bench = Bench::start(
        "",
        vec![Handler::listen("input").send_to("answers").to(answer)],
    )
    .await;
    let broker = bench.broker.clone();
    bench
        .send(
            Message::new(order(1, 0))
                .header("trace", "t-1")
                .tag("asked")
                .delay_level(1),
        )
        .await;
    bench.finish().await;
    let answers = broker.stored("answers");
    assert_eq!(answers.len(), 1);
    assert_eq!(&answers[0].payload()[..], br#"{"id":1,"step":1}"#);
    assert_eq!(answers[0].headers().get("trace"), Some("t-1"));
    assert_eq!(answers[0].headers().tags(), Some("answered"));
}

#[tokio::test]
async fn an_ordered_input_holds_the_queue_until_the_message_is_handled() {
    async fn handle(
        order: axum::Json<Order>,
        redelivery: Redelivery,
        seen: State<Seen>,
    ) -> Outcome {
        seen.add(format!("{}.{}", order.step, redelivery.broker));
        if order.step == 1 && redelivery.broker < 2 {
            Outcome::Retry
        } else {
            Outcome::Ack
        }
    }
    let ordered = "
spring.cloud.stream:
  bindings:
    input.consumer.concurrency: 4
    output.producer.partition-key-expression: payload['id']
  rocketmq.bindings.input.consumer.orderly: true";
    let bench = Bench::start(ordered, vec![Handler::listen("input").to(handle)]).await;
    for step in 0..3 {
        bench.send(order(5, step)).await;
    }
    assert_eq!(bench.finish().await, ["0.0", "1.0", "1.1", "1.2", "2.0"]);
}

#[tokio::test]
async fn messages_of_one_key_go_to_the_queue_that_java_would_choose() {
    let keyed =
        "spring.cloud.stream.bindings.output.producer.partition-key-expression: payload['id']";
    let bench = Bench::start(keyed, Vec::new()).await;
    let mut queues = Vec::new();
    for id in [1, 2, 3, 4, 5, 6, 7, 8, -7] {
        queues.push(
            bench
                .app
                .bridge()
                .send("output", Message::new(order(id, 0)))
                .await
                .unwrap()
                .queue_id,
        );
    }
    // Observed with the Java binder for a Long key and four queues.
    assert_eq!(queues, [1, 2, 3, 0, 1, 2, 3, 0, 2]);
    bench.app.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_rejected_message_is_dead_and_a_skipped_one_is_not() {
    async fn handle(order: axum::Json<Order>) -> Outcome {
        if order.id == 1 {
            Outcome::Reject("never".to_owned())
        } else {
            Outcome::Skip
        }
    }
    let bench = Bench::start("", vec![Handler::listen("input").to(handle)]).await;
    let broker = bench.broker.clone();
    bench.send(order(1, 0)).await;
    bench.send(order(2, 0)).await;
    bench.finish().await;
    assert_eq!(broker.dead_letters("group").len(), 1);
}

#[tokio::test]
async fn stopping_gives_back_a_message_that_waits_for_its_next_attempt() {
    async fn handle(seen: State<Seen>) -> Outcome {
        seen.add("tried");
        Outcome::Retry
    }
    let attempts = "
spring.cloud.stream.bindings.input.consumer:
  max-attempts: 2
  back-off-initial-interval: 3600000
  back-off-max-interval: 3600000";
    let bench = Bench::start(attempts, vec![Handler::listen("input").to(handle)]).await;
    let seen = bench.seen.clone();
    bench.send(order(1, 0)).await;
    tokio::time::timeout(Duration::from_secs(60), async {
        while seen.all().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    bench.app.shutdown().await.unwrap();
    let now = bench.broker.pace().now_millis();
    assert_eq!(now, 0, "the pause of an hour ended with the application");
    assert_eq!(seen.all(), ["tried"]);
    assert!(bench.broker.dead_letters("group").is_empty());
}

#[tokio::test]
async fn a_paused_input_takes_nothing_until_it_is_resumed() {
    async fn handle(seen: State<Seen>) {
        seen.add("handled");
    }
    let bench = Bench::start("", vec![Handler::listen("input").to(handle)]).await;
    let input = bench.app.input("input").unwrap();
    input.pause().await;
    bench.send(order(1, 0)).await;
    bench.broker.settled().await;
    assert!(bench.seen.all().is_empty());
    input.resume().await;
    assert_eq!(bench.finish().await, ["handled"]);
}

#[tokio::test]
async fn missing_state_is_told_with_the_handlers_that_need_it() {
    async fn handle(_: State<u64>) {}
    let started = App::builder()
        .options(LoadOptions::from_text(format!("{BINDINGS}\n")))
        .without_inventory()
        .handler(Handler::listen("input").name("needs_number").to(handle))
        .start()
        .await;
    let told = started.map(drop).unwrap_err().to_string();
    assert!(
        told.contains("u64") && told.contains("needs_number"),
        "{told}"
    );
}
