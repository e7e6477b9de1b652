//! Chapter 9: going back in time.

use std::collections::BTreeSet;
use std::time::Duration;

use bindery::Message;

use crate::chapter04::order;
use crate::seen::{Call, noting};
use crate::stage::Stage;

const YAML: &str = include_str!("../../../examples/original/application-backtracking.yaml");

/// No fixed port, and so many queues.
const AROUND: &str = "
server.port: 0
bindery.topics.test-topic3.queues: 4
";

/// Only what was stored since the time; then from where the group is; then from the time again, when that is asked for.
pub(crate) async fn start_by_time(stage: Stage) -> String {
    let producer = stage
        .app(&[YAML, AROUND])
        .output("output-order")
        .start()
        .await
        .unwrap();
    let send = async |ids: std::ops::Range<i64>| {
        for id in ids {
            producer
                .bridge()
                .send("output-order", Message::new(order(id, "test")))
                .await
                .unwrap();
        }
    };
    send(0..8).await;
    let (written, millis) = stage.next_second().await;
    send(8..16).await;
    let since = format!(
        "spring.cloud.stream.rocketmq.bindings.input-backtracking.consumer.consumeTimestamp: {written}"
    );
    let first = run(&stage, &[&since], 8).await;
    assert_eq!(ids(&first), (8..16).collect(), "since {written}");
    assert!(
        first
            .iter()
            .all(|call| call.headers.delivery().unwrap().store_millis >= millis),
        "stored at or after the time"
    );
    let queues: BTreeSet<i32> = first.iter().map(|call| call.queue).collect();
    assert_eq!(queues.len(), 4, "in every queue: {queues:?}");

    send(16..17).await;
    let second = run(&stage, &[&since], 1).await;
    assert_eq!(ids(&second), [16].into(), "from where the group was");

    let again = run(
        &stage,
        &[&since, "bindery.consumer.reset-offsets-on-start: true"],
        9,
    )
    .await;
    assert_eq!(ids(&again), (8..17).collect(), "from the time again");
    producer.shutdown().await.unwrap();
    "8 of 16 since the second in every queue; restarted: only the new one; reset: 9 since the second".to_owned()
}

fn ids(calls: &[Call]) -> BTreeSet<i64> {
    let ids: BTreeSet<i64> = calls.iter().map(Call::order).collect();
    assert_eq!(ids.len(), calls.len(), "each once");
    ids
}

/// An application that is stopped when it has handled so many, and some time more.
async fn run(stage: &Stage, more: &[&str], count: usize) -> Vec<Call> {
    let seen = stage.seen();
    let documents: Vec<&str> = [YAML, AROUND]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    let app = stage
        .app(&documents)
        .output("output-order")
        .handler(noting("input-backtracking", &seen))
        .start()
        .await
        .unwrap();
    seen.wait(count).await;
    stage.quiet(Duration::from_millis(500)).await;
    app.shutdown().await.unwrap();
    seen.all()
}
