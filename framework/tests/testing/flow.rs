//! Ways of messages: redelivery, order, delay, transactions, sharing, failures.

use std::time::Duration;

use bindery::binder::StartAt;
use bindery::prelude::*;
use bindery::testing::{CallResult, TestApp};

use crate::handlers::{MySource, TxSource, order};

const SECOND: i64 = 1_000;

#[bindery::test(config = "
spring.cloud.stream.bindings.input: { destination: test-topic, group: consumer-group, consumer.max-attempts: 3 }
")]
async fn a_message_that_always_fails_is_tried_51_times_on_the_ladder_and_is_dead(t: TestApp) {
    let sent = t
        .input("input")
        .send(Message::new(order(1, "boom")).tag("x").key("k1"))
        .await;
    t.settle().await;
    let calls = t.calls("receive");
    assert_eq!(calls.len(), 3 * 17);
    assert!(calls.iter().all(|call| call.msg_id() == sent.msg_id));
    let first_attempts = calls.iter().filter(|call| call.attempt() == 1);
    let gaps: Vec<i64> = first_attempts
        .clone()
        .zip(first_attempts.skip(1))
        .map(|(one, next)| (next.at_millis() - one.at_millis()) / SECOND - 3)
        .collect();
    assert_eq!(
        gaps,
        [
            10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200
        ]
    );
    let dead = t.dlq("consumer-group").await;
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (dead[0].msg_id(), dead[0].tag(), dead[0].keys()),
        (sent.msg_id.as_str(), Some("x"), vec!["k1"])
    );
    assert_eq!(dead[0].topic(), "test-topic");
    assert!(
        t.output("output-order")
            .receive(Duration::ZERO)
            .await
            .is_none()
    );
}

#[bindery::test(
    config = "
spring.cloud.stream:
  default.consumer.max-attempts: 1
  bindings.input: { destination: t, group: g }
",
    set = "spring.cloud.stream.rocketmq.bindings.input.consumer.delayLevelWhenNextConsume = -1"
)]
async fn level_minus_one_is_dead_at_once(t: TestApp) {
    t.input("input").send(order(1, "boom")).await;
    t.settle().await;
    assert_eq!((t.calls("input").len(), t.dlq("g").await.len()), (1, 1));
    assert!(matches!(
        t.calls("receive")[0].result(),
        CallResult::Failed { .. }
    ));
}

#[bindery::test(config = "
spring.cloud.stream:
  default.consumer.max-attempts: 1
  bindings.third-time: { destination: t, group: g }
  rocketmq.bindings.third-time.consumer: { orderly: true, suspendCurrentQueueTimeMillis: 2000 }
bindery.topics.t.queues: 1
")]
async fn an_ordered_queue_waits_for_its_first_message(t: TestApp) {
    for text in ["a", "b"] {
        t.input("third-time").send(text).await;
    }
    let began = t.clock().now_millis();
    t.settle().await;
    let seen: Vec<_> = t
        .calls("third-time")
        .iter()
        .map(|call| (call.text(), call.redeliveries(), call.at_millis() - began))
        .collect();
    let text = str::to_owned;
    assert_eq!(
        seen,
        [
            (text("a"), 0, 0),
            (text("a"), 1, 2 * SECOND),
            (text("a"), 2, 4 * SECOND),
            (text("b"), 0, 4 * SECOND),
            (text("b"), 1, 6 * SECOND),
            (text("b"), 2, 8 * SECOND),
        ]
    );
}

#[bindery::test(config = "
spring.cloud.stream:
  bindings:
    input: { destination: steps, group: g }
    output-order: { destination: steps, producer.partition-key-expression: \"payload['id']\" }
  rocketmq.bindings:
    output-order.producer: { producerType: Orderly, sync: true }
    input.consumer.orderly: true
bindery.topics.steps.queues: 4
")]
async fn messages_of_one_key_keep_their_queue_and_order(t: TestApp) {
    let source = t.app().bound::<MySource>().unwrap();
    let mut queues = Vec::new();
    for desc in ["create", "pay", "ship"] {
        for id in [1_i64, -7] {
            queues.push((
                id,
                source.order.send(order(id, desc)).await.unwrap().queue_id,
            ));
        }
    }
    // What the test puts in goes by the same key.
    queues.push((1, t.input("input").send(order(1, "archive")).await.queue_id));
    t.settle().await;
    queues.sort_unstable();
    queues.dedup();
    assert_eq!(queues, [(-7, 2), (1, 1)]);
    let steps = t
        .calls("receive")
        .into_iter()
        .filter(|call| call.queue_id() == 1);
    let steps: Vec<String> = steps
        .map(|call| call.json::<crate::handlers::Order>().desc)
        .collect();
    assert_eq!(steps, ["create", "pay", "ship", "archive"]);
}

#[bindery::test(config = "
spring.cloud.stream.bindings:
  input: { destination: t, group: g }
  output-order: { destination: t }
")]
async fn a_delayed_message_comes_after_its_level(t: TestApp) {
    let source = t.app().bound::<MySource>().unwrap();
    let began = t.clock().now_millis();
    let late = Message::new(order(1, "late"))
        .delay_level(2)
        .tag("test03")
        .header("no", 7);
    source.order.send(late).await.unwrap();
    t.clock().advance(Duration::from_millis(4_999)).await;
    assert!(t.calls("receive").is_empty());
    t.settle().await;
    let calls = t.calls("receive");
    assert_eq!(calls[0].at_millis() - began, 5 * SECOND);
    assert_eq!(
        (calls[0].tag(), calls[0].header("no")),
        (Some("test03"), Some("7"))
    );
}

const TRANSACTION: &str = "
spring.cloud.stream:
  bindings:
    input-transaction: { destination: TransactionTopic, group: tg }
    output-transaction: { destination: TransactionTopic }
  rocketmq.bindings.output-transaction.producer:
    { producerType: Trans, group: pg, transactionListener: myTransactionListener }
";

fn transaction(builder: bindery::testing::TestAppBuilder) -> bindery::testing::TestAppBuilder {
    builder.config(TRANSACTION)
}

async fn send_tx(t: &TestApp, test: &str, never: bool) -> TxReceipt {
    let message = Message::new(format!("tx {test}")).header("test", test);
    let message = if never {
        message.header("never", 1)
    } else {
        message
    };
    let source = t.app().bound::<TxSource>().unwrap();
    let sent = source
        .tx
        .send_in_transaction(message, TxArgs::text("binder"))
        .await;
    sent.unwrap()
}

#[bindery::test(setup = "transaction")]
async fn transactions_commit_roll_back_and_are_asked_about(t: TestApp) {
    for test in ["1", "2", "3"] {
        send_tx(&t, test, false).await;
    }
    t.settle().await;
    let seen = |t: &TestApp| -> Vec<String> {
        t.calls("decided").iter().map(|call| call.text()).collect()
    };
    assert_eq!(seen(&t), ["tx 3"], "1 is not decided, 2 is rolled back");
    assert!(
        t.tx()
            .executed()
            .iter()
            .all(|call| call.args() == Some("binder"))
    );
    assert_eq!(t.tx().check().await, 0);
    t.settle().await;
    assert_eq!(seen(&t), ["tx 3", "tx 1"]);
    assert_eq!(t.tx().checked().len(), 1);
}

#[bindery::test(setup = "transaction")]
async fn questions_come_in_time_and_end_with_giving_up(t: TestApp) {
    send_tx(&t, "1", true).await;
    let began = t.clock().now_millis();
    t.clock().advance(Duration::from_secs(3600)).await;
    let asked = t.tx().checked();
    assert_eq!(asked.len(), 15);
    assert_eq!(asked[0].at_millis() - began, 6 * SECOND);
    assert_eq!(asked[14].at_millis() - began, (6 + 14 * 30) * SECOND);
    assert!(t.calls("decided").is_empty());
    assert_eq!(t.stored("TRANS_CHECK_MAX_TIME_TOPIC").await.len(), 1);
}

#[bindery::test(setup = "transaction")]
async fn a_restarted_application_answers_for_what_was_left_open(mut t: TestApp) {
    send_tx(&t, "1", false).await;
    t.restart().await;
    t.clock().advance(Duration::from_secs(6)).await;
    assert_eq!(t.calls("decided").len(), 1);
}

#[bindery::test(config = "
spring.cloud.stream.bindings:
  input: { destination: t, group: g }
  output-order: { destination: t }
spring.cloud.stream.rocketmq.bindings.output-order.producer: { retryTimesWhenSendFailed: 3, sendMsgTimeout: 5000 }
")]
async fn a_send_to_a_broker_that_is_down_is_tried_four_times(mut t: TestApp) {
    let output: Output<crate::handlers::Order> = t.app().output("output-order").unwrap();
    t.fail_broker().await;
    let failed = output.send(order(1, "x")).await;
    assert!(matches!(failed, Err(SendError::Connect(_))), "{failed:?}");
    assert_eq!(t.send_attempts(), Some(4));

    t.silence_broker();
    let began = t.clock().now_millis();
    let failed = output.send(order(1, "x")).await;
    assert!(
        matches!(failed, Err(SendError::Timeout { .. })),
        "{failed:?}"
    );
    assert_eq!(t.clock().now_millis() - began, 5 * SECOND);

    t.restore_broker().await;
    output.send(order(1, "y")).await.unwrap();
    t.settle().await;
    assert_eq!(t.calls("receive").len(), 1);
}

#[bindery::test(config = "
spring.cloud.stream.bindings:
  input: { destination: t, group: g }
  cache: { destination: t, group: everybody }
spring.cloud.stream.rocketmq.bindings.cache.consumer.broadcasting: true
bindery.topics.t.queues: 5
")]
async fn instances_share_queues_by_average_and_broadcasts_go_to_all(t: TestApp) {
    let queues = async |app: &AppHandle, input: &str| {
        let assigned = app.input(input).unwrap().assignment().await.into_iter();
        assigned
            .filter(|queue| queue.destination == "t")
            .map(|queue| queue.queue_id)
            .collect::<Vec<_>>()
    };
    let other = t.another().await;
    assert_eq!(queues(t.app(), "input").await, [0, 1, 2]);
    assert_eq!(queues(other.app(), "input").await, [3, 4]);
    assert_eq!(queues(other.app(), "cache").await, [0, 1, 2, 3, 4]);
    for id in 0..10 {
        t.input("input").send(order(id, "x")).await;
    }
    t.settle().await;
    assert_eq!(
        (t.calls("receive").len(), t.calls("cached").len()),
        (10, 20)
    );
    other.leave().await;
    assert_eq!(queues(t.app(), "input").await, [0, 1, 2, 3, 4]);
    t.rebalance().await;
}

#[bindery::test(config = "
spring.cloud.stream.bindings.input: { destination: t, group: g }
spring.cloud.stream.rocketmq.bindings.input.consumer.consumeFromWhere: CONSUME_FROM_FIRST_OFFSET
")]
async fn positions_survive_a_restart_and_can_be_moved(mut t: TestApp) {
    t.input("t").send(order(1, "one")).await;
    t.settle().await;
    t.restart().await;
    t.clock().advance(Duration::from_secs(60)).await;
    let between = t.clock().now_millis();
    t.input("t").send(order(2, "two")).await;
    t.settle().await;
    assert_eq!(t.calls("receive").len(), 2, "not again after the restart");
    t.reset("g", "t", StartAt::First).await;
    t.settle().await;
    assert_eq!(t.calls("receive").len(), 4);
    t.reset("g", "t", StartAt::Timestamp(between)).await;
    t.settle().await;
    assert_eq!(t.calls("receive").len(), 5);
}

#[bindery::test(config = "
spring.cloud.stream.bindings.dogs: { destination: pets, group: g }
spring.cloud.stream.rocketmq.bindings.dogs.consumer.subscription: a || b
")]
async fn tags_select_at_the_broker_and_conditions_at_the_handler(t: TestApp) {
    for (text, tag, kind) in [("1", "a", "dog"), ("2", "b", "cat"), ("3", "c", "dog")] {
        let message = Message::new(text).tag(tag).header("type", kind);
        t.input("dogs").send(message).await;
    }
    t.settle().await;
    let calls = t.calls("dog");
    assert_eq!((calls.len(), calls[0].text().as_str()), (1, "1"));
    assert_eq!(t.stored("dogs").await.len(), 3);
}

#[bindery::test(config = "
spring.cloud.stream.bindings.cache: { destination: t, group: g }
spring.cloud.stream.rocketmq.bindings.cache.consumer.subscription: \"sql:color = 'red' AND price > 3\"
")]
async fn a_condition_over_headers_selects_at_the_broker(t: TestApp) {
    for (color, price) in [("red", 5), ("red", 3), ("blue", 5)] {
        let message = Message::new(format!("{color} {price}"));
        let message = message.header("color", color).header("price", price);
        t.input("cache").send(message).await;
    }
    t.settle().await;
    let seen: Vec<String> = t.calls("cached").iter().map(|call| call.text()).collect();
    assert_eq!(seen, ["red 5"]);
}

#[bindery::test(config = "
spring.cloud.stream.bindings:
  input: { destination: t, group: g }
  output-order: { destination: out }
")]
async fn the_actuator_shows_the_bindings(t: TestApp) {
    let (status, bindings) = t.actuator("/bindings").await;
    assert_eq!((status, bindings.as_array().map(Vec::len)), (200, Some(2)));
    let (status, _) = t.actuator("/bindings/nobody").await;
    assert_eq!(status, 404);
    assert_eq!(t.actuator("/health").await.0, 200);
}
