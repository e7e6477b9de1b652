//! Chapter 10: what happens when brokers or handlers fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bindery::Message;
use bindery::error_handler::{ErrorHandler, Failure};

use crate::chapter04::order;
use crate::phantom::{Phantom, Tries};
use crate::seen::{Call, failing, noting};
use crate::stage::{BackEnd, Stage};

const SENDING: &str = "
spring:
  cloud:
    stream:
      bindings:
        output-order:
          content-type: application/json
          destination: test-topic3
      rocketmq:
        binder:
          name-server: 127.0.0.1:9876
          group: rocketmq-group
        bindings:
          output-order:
            producer:
              retryTimesWhenSendFailed: 3
              sendMsgTimeout: 5000
              retryTimesWhenSendAsyncFailed: 0
              retryAnotherBrokerWhenNotStoreOk: true
";

/// What `sendMsgTimeout` allows.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// For a machine that does other things too.
const SLACK: Duration = Duration::from_secs(3);

/// One of two brokers is down: never tried twice for one send. Both are: four tries, then an error, in time.
pub(crate) async fn broker_down(stage: Stage) -> String {
    let Some(server) = stage.name_server() else {
        return memory_down(stage, SENDING, 0).await;
    };
    let tries = Tries::default();
    let topic = stage.wire_name("test-topic3");
    let names = names();
    let app = stage
        .app(&[SENDING, "bindery.topics.test-topic3.queues: 4"])
        .output("output-order")
        .start()
        .await
        .unwrap();
    let down = Phantom::join(&server, &names[0], &topic, &tries).await;
    app.shutdown().await.unwrap();
    // Whoever starts now sees both.
    let app = stage
        .app(&[SENDING])
        .output("output-order")
        .start()
        .await
        .unwrap();
    let (mut sent, mut most, mut all) = (0, 0, 0);
    for id in 0..16 {
        tries.clear();
        app.bridge()
            .send("output-order", Message::new(order(id, "one up")))
            .await
            .unwrap();
        sent += 1;
        most = most.max(tries.all().len());
        all += tries.all().len();
    }
    app.shutdown().await.unwrap();
    assert!(all > 0, "the broker that is down was never tried");
    assert_eq!(
        most, 1,
        "never the failed broker twice while another exists"
    );
    down.leave().await;

    let lonely = SENDING.replace("test-topic3", "test-topic4");
    let topic = stage.wire_name("test-topic4");
    let downs = [
        Phantom::join(&server, &names[0], &topic, &tries).await,
        Phantom::join(&server, &names[1], &topic, &tries).await,
    ];
    tries.clear();
    let app = stage
        .app(&[&lonely])
        .output("output-order")
        .start()
        .await
        .unwrap();
    let began = stage.now();
    let failed = app
        .bridge()
        .send("output-order", Message::new(order(1, "none up")))
        .await;
    let took = stage.now() - began;
    let error = failed.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(took < SEND_TIMEOUT + SLACK, "{took:?}");
    let sequence = tries.all();
    assert!(sequence.len() <= 4 && sequence.len() >= 2, "{sequence:?}");
    assert!(
        sequence.windows(2).all(|pair| pair[0] != pair[1]),
        "one after the other: {sequence:?}"
    );
    app.shutdown().await.unwrap();
    for down in downs {
        down.leave().await;
    }
    format!(
        "{sent} sends with one of two brokers down, it was tried {all} times and at most once a send; both down: {} tries, error after {took:.2?}",
        sequence.len()
    )
}

/// `sync: false` and no retries: one try, and the future and the error handler have the error.
pub(crate) async fn broker_down_async(stage: Stage) -> String {
    let asynchronous = "spring.cloud.stream.rocketmq.bindings.output-order.producer.sync: false";
    let Some(server) = stage.name_server() else {
        return memory_down(stage, &format!("{SENDING}\n---\n{asynchronous}"), 1).await;
    };
    let tries = Tries::default();
    let topic = stage.wire_name("test-topic3");
    let names = names();
    let downs = [
        Phantom::join(&server, &names[0], &topic, &tries).await,
        Phantom::join(&server, &names[1], &topic, &tries).await,
    ];
    let told = Told::default();
    let app = stage
        .app(&[SENDING, asynchronous])
        .output("output-order")
        .error_handler(told.handler())
        .start()
        .await
        .unwrap();
    let began = stage.now();
    let message = Message::new(order(1, "none up"));
    let failed = app.bridge().send("output-order", message).await;
    let error = failed.unwrap_err();
    let took = stage.now() - began;
    assert!(took < SEND_TIMEOUT + SLACK, "{took:?}");
    let sequence = tries.all();
    assert_eq!(sequence.len(), 1, "{sequence:?}");
    app.shutdown().await.unwrap();
    assert_eq!(told.all(), [error.to_string()]);
    for down in downs {
        down.leave().await;
    }
    format!("one try, error in the future and the error handler after {took:.2?}: {error}")
}

/// Two brokers that no other run lists.
fn names() -> [String; 2] {
    let run: u32 = rand::random();
    [format!("down-{run:08x}-a"), format!("down-{run:08x}-b")]
}

/// What the error handler of the output was told.
#[derive(Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn handler(&self) -> ErrorHandler {
        let told = self.0.clone();
        ErrorHandler::on("output-order").to(move |failure: Failure| {
            told.lock().unwrap().push(failure.error().to_string());
            async {}
        })
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// In memory the broker that is down is the only one; the error handler is told of it so many times.
async fn memory_down(mut stage: Stage, yaml: &str, times: usize) -> String {
    let told = Told::default();
    let app = stage
        .app(&[yaml])
        .output("output-order")
        .error_handler(told.handler())
        .start()
        .await
        .unwrap();
    stage.fail_broker().await;
    let began = stage.now();
    let failed = app
        .bridge()
        .send("output-order", Message::new(order(1, "down")))
        .await;
    let took = stage.now() - began;
    let error = failed.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(took <= SEND_TIMEOUT, "{took:?}");
    app.shutdown().await.unwrap();
    assert_eq!(told.all(), vec![error.to_string(); times]);
    format!("the only broker down: error after {took:.2?}: {error}")
}

/// An input whose handler always fails, and one that gets its dead letters.
fn failing_yaml(consumer: &str) -> String {
    format!(
        "
spring:
  cloud:
    stream:
      bindings:
        input:
          content-type: application/json
          destination: test-topic3
          group: consumer-group
          consumer:
            max-attempts: 1
        output-order:
          content-type: application/json
          destination: test-topic3
        dead:
          destination: '%DLQ%consumer-group'
          group: dead-group
          consumer:
            max-attempts: 1
      rocketmq:
        binder:
          name-server: 127.0.0.1:9876
          # The topic of dead letters comes with the first of them.
          poll-name-server-interval: 1000
        bindings:
          input:
            consumer: {{ {consumer} }}
          dead:
            consumer:
              consumeFromWhere: CONSUME_FROM_FIRST_OFFSET
"
    )
}

/// Sends one message that always fails; gives back the calls and checks the one dead letter.
async fn until_dead(stage: &Stage, consumer: &str) -> Vec<Call> {
    let (seen, dead) = (stage.seen(), stage.seen());
    let app = stage
        .app(&[&failing_yaml(consumer)])
        .output("output-order")
        .handler(failing("input", &seen, |_| true))
        .handler(noting("dead", &dead))
        .start()
        .await
        .unwrap();
    let message = Message::new(order(1, "boom"))
        .tag("poison")
        .key("k-1")
        .header("origin", "series");
    let receipt = app.bridge().send("output-order", message).await.unwrap();
    let letters = dead.wait(1).await;
    stage.quiet(Duration::from_secs(2)).await;
    app.shutdown().await.unwrap();
    let calls = seen.all();
    let times: Vec<u32> = calls.iter().map(|call| call.redelivery).collect();
    assert_eq!(
        times,
        (0..).take(calls.len()).collect::<Vec<u32>>(),
        "counted one by one"
    );
    assert!(
        calls.iter().all(|call| call.id == receipt.msg_id),
        "the id stays"
    );
    assert_eq!(dead.all().len(), 1, "one dead letter");
    let letter = &letters[0];
    assert_eq!(
        (&letter.text, &letter.id),
        (&calls[0].text, &receipt.msg_id)
    );
    assert_eq!(letter.headers.tags(), Some("poison"));
    assert_eq!(letter.headers.keys().collect::<Vec<_>>(), ["k-1"]);
    assert_eq!(letter.headers.get("origin"), Some("series"));
    calls
}

/// Level 1 instead of the ladder, so that real time allows sixteen of them.
const QUICKLY: &str = "delayLevelWhenNextConsume: 1";

async fn redeliveries(stage: Stage, consumer: &str, expected: usize) -> String {
    let calls = until_dead(&stage, consumer).await;
    assert_eq!(calls.len(), 1 + expected);
    format!(
        "{expected} redeliveries ({consumer}), id constant, then one dead letter with its tag, key and header"
    )
}

pub(crate) async fn redeliveries_default(stage: Stage) -> String {
    redeliveries(stage, QUICKLY, 16).await
}

pub(crate) async fn redeliveries_two(stage: Stage) -> String {
    redeliveries(stage, &format!("maxReconsumeTimes: 2, {QUICKLY}"), 2).await
}

pub(crate) async fn redeliveries_none(stage: Stage) -> String {
    redeliveries(stage, &format!("maxReconsumeTimes: 0, {QUICKLY}"), 0).await
}

pub(crate) async fn redeliveries_minus_one(stage: Stage) -> String {
    redeliveries(stage, &format!("maxReconsumeTimes: -1, {QUICKLY}"), 16).await
}

/// Apache's table from level 3 on, in seconds: what the sixteen redeliveries wait for.
const LADDER: [u64; 16] = [
    10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
];
/// The same number of levels for real time, first the two that the ladder leaves out.
const SHORT_TABLE: &str = "1s 5s 1s 2s 1s 3s 1s 2s 1s 2s 1s 2s 1s 2s 1s 2s 1s 2s";
const SHORT_LADDER: [u64; 16] = [1, 2, 1, 3, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2];

/// `delayLevelWhenNextConsume: 0`: the pauses follow the ladder.
pub(crate) async fn ladder(stage: Stage) -> String {
    let (calls, ladder, ran) = match stage.back_end() {
        BackEnd::Memory => {
            let calls = until_dead(&stage, "delayLevelWhenNextConsume: 0").await;
            (calls, LADDER.to_vec(), "all 16 steps on virtual time")
        }
        BackEnd::Embedded => {
            let table = format!("messageDelayLevel: '{SHORT_TABLE}'");
            let stage = Stage::with(BackEnd::Embedded, &table).await;
            let calls = until_dead(&stage, "delayLevelWhenNextConsume: 0").await;
            (
                calls,
                SHORT_LADDER.to_vec(),
                "all 16 steps of a table of seconds",
            )
        }
        BackEnd::Apache => {
            let calls =
                until_dead(&stage, "delayLevelWhenNextConsume: 0, maxReconsumeTimes: 2").await;
            (
                calls,
                LADDER[..2].to_vec(),
                "the first 2 steps at real time",
            )
        }
    };
    let pauses = pauses(&calls);
    assert_eq!(pauses.len(), ladder.len());
    for (pause, step) in pauses.iter().zip(&ladder) {
        near(*pause, Duration::from_secs(*step));
    }
    let total: Duration = pauses.iter().sum();
    format!("{ran}, {total:.1?} in all")
}

fn pauses(calls: &[Call]) -> Vec<Duration> {
    calls
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect()
}

/// Not sooner, and not much later.
fn near(pause: Duration, wanted: Duration) {
    assert!(
        pause + Duration::from_millis(100) >= wanted && pause < wanted + SLACK,
        "{pause:?} instead of {wanted:?}"
    );
}

/// `delayLevelWhenNextConsume: -1`: no second time.
pub(crate) async fn dead_letter_at_once(stage: Stage) -> String {
    let calls = until_dead(&stage, "delayLevelWhenNextConsume: -1").await;
    assert_eq!(calls.len(), 1);
    "handled once, then a dead letter".to_owned()
}

/// `delayLevelWhenNextConsume: 3`: ten seconds each time.
pub(crate) async fn fixed_delay(stage: Stage) -> String {
    let calls = until_dead(&stage, "delayLevelWhenNextConsume: 3, maxReconsumeTimes: 2").await;
    let pauses = pauses(&calls);
    assert_eq!(pauses.len(), 2);
    for pause in &pauses {
        near(*pause, Duration::from_secs(10));
    }
    format!("pauses {pauses:.1?}")
}

/// `suspendCurrentQueueTimeMillis: 2000`: two seconds between attempts, and what comes behind waits.
pub(crate) async fn suspend(stage: Stage) -> String {
    const YAML: &str = include_str!("../../../examples/original/application-ordered.yaml");
    const SUSPEND: &str = "
bindery.topics.test-topic.queues: 4
spring.cloud.stream.bindings.input.consumer.max-attempts: 1
spring:
  cloud:
    stream:
      rocketmq:
        bindings:
          input:
            consumer:
              suspendCurrentQueueTimeMillis: 2000
";
    let seen = stage.seen();
    let handler = failing("input", &seen, |call| {
        call.desc() == "created" && call.redelivery < 2
    });
    let app = stage
        .app(&[YAML, SUSPEND])
        .output("output-order")
        .handler(handler)
        .start()
        .await
        .unwrap();
    for step in ["created", "paid", "shipped"] {
        app.bridge()
            .send("output-order", Message::new(order(7, step)))
            .await
            .unwrap();
    }
    let calls = seen.wait(5).await;
    app.shutdown().await.unwrap();
    let steps: Vec<String> = calls.iter().map(Call::desc).collect();
    assert_eq!(steps, ["created", "created", "created", "paid", "shipped"]);
    let pauses = pauses(&calls[..3]);
    for pause in &pauses {
        near(*pause, Duration::from_secs(2));
    }
    format!("attempts {pauses:.1?} apart, the rest in order behind them")
}
