//! Chapters 4 and 5: one key, one queue, in order; and all keys in one queue.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bindery::Message;
use bindery::prelude::*;
use bindery::registry::Handler;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::Barrier;

use crate::seen::{Call, failing, noting};
use crate::stage::Stage;

const YAML: &str = include_str!("../../../examples/original/application-ordered.yaml");

/// Queues that exist before the first send; workers enough for all of them.
const AROUND: &str = "
bindery.topics.test-topic.queues: 4
spring.cloud.stream.bindings.input.consumer: { concurrency: 4, max-attempts: 1 }
";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: i64,
    pub(crate) desc: String,
}

pub(crate) fn order(id: i64, desc: impl Into<String>) -> Order {
    Order {
        id,
        desc: desc.into(),
    }
}

/// Checks that the calls of each order came in the order of sending and from one queue.
fn ordered(calls: &[Call], steps: &[&str]) -> BTreeMap<i64, i32> {
    let mut by_order: BTreeMap<i64, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        by_order.entry(call.order()).or_default().push(call);
    }
    by_order
        .into_iter()
        .map(|(id, calls)| {
            assert_eq!(
                calls.iter().map(|call| call.desc()).collect::<Vec<_>>(),
                steps,
                "order {id}"
            );
            let queues: BTreeSet<i32> = calls.iter().map(|call| call.queue).collect();
            assert_eq!(queues.len(), 1, "order {id} in {queues:?}");
            (id, queues.into_iter().next().unwrap())
        })
        .collect()
}

const STEPS: [&str; 3] = ["created", "paid", "shipped"];

/// `payload['id']`: three sends with one id are handled in order by one worker at a time, other ids at the same time.
pub(crate) async fn one_key_one_queue(stage: Stage) -> String {
    let (seen, both) = (stage.seen(), Arc::new(Barrier::new(2)));
    let noted = seen.clone();
    let handler = Handler::listen("input").to(move |message: Message| {
        let (seen, both) = (noted.clone(), Arc::clone(&both));
        async move {
            let call = seen.note(&message);
            // Two ids of different queues wait for each other: done only if they are handled at the same time.
            let meets = call.desc() == "created" && [1, 2].contains(&call.order());
            if meets {
                both.wait().await;
            }
        }
    });
    let app = stage
        .app(&[YAML, AROUND])
        .output("output-order")
        .handler(handler)
        .start()
        .await
        .unwrap();
    for step in STEPS {
        for id in 1..=8 {
            app.bridge()
                .send("output-order", Message::new(order(id, step)))
                .await
                .unwrap();
        }
    }
    let queues = ordered(&seen.wait(24).await, &STEPS);
    app.shutdown().await.unwrap();
    // Java's rule: the hash of a Long, modulo four.
    assert!(
        queues.iter().all(|(id, queue)| i64::from(*queue) == id % 4),
        "{queues:?}"
    );
    "8 ids of 3 steps: each in one queue and in order, two ids handled at the same time".to_owned()
}

/// `headers['partitionKey']` with the header set gives the same.
pub(crate) async fn key_from_header(stage: Stage) -> String {
    let yaml = YAML.replace("payload['id']", "headers['partitionKey']");
    assert_ne!(yaml, YAML);
    let seen = stage.seen();
    let app = stage
        .app(&[&yaml, AROUND])
        .output("output-order")
        .handler(noting("input", &seen))
        .start()
        .await
        .unwrap();
    let none = app
        .bridge()
        .send("output-order", Message::new(order(1, "keyless")))
        .await;
    assert!(
        matches!(none, Err(SendError::PartitionKeyNull { .. })),
        "{none:?}"
    );
    for step in STEPS {
        for id in 1..=8_i64 {
            app.bridge()
                .send(
                    "output-order",
                    Message::new(order(id, step)).header("partitionKey", id),
                )
                .await
                .unwrap();
        }
    }
    let queues = ordered(&seen.wait(24).await, &STEPS);
    app.shutdown().await.unwrap();
    assert!(
        queues.iter().all(|(id, queue)| i64::from(*queue) == id % 4),
        "{queues:?}"
    );
    "8 ids of 3 steps by header: each in one queue and in order; without the header an error"
        .to_owned()
}

/// `partitionCount: 1`: one queue for all, in total order; a failure there holds that queue and no other.
pub(crate) async fn one_partition(stage: Stage) -> String {
    const GLOBAL: &str = "
spring:
  cloud:
    stream:
      bindings:
        output-order:
          producer:
            partitionCount: 1
        output-beside:
          destination: test-topic
          producer:
            partition-key-expression: payload['id']
";
    let seen = stage.seen();
    let handler = failing("input", &seen, |call| {
        call.order() == 3 && call.redelivery < 2
    });
    let app = stage
        .app(&[YAML, AROUND, GLOBAL])
        .output("output-order")
        .output("output-beside")
        .handler(handler)
        .start()
        .await
        .unwrap();
    for id in 0..20 {
        let receipt = app
            .bridge()
            .send("output-order", Message::new(order(id, "all")))
            .await
            .unwrap();
        assert_eq!(receipt.queue_id, 0);
    }
    app.bridge()
        .send("output-beside", Message::new(order(102, "beside")))
        .await
        .unwrap();
    let calls = seen.wait(23).await;
    app.shutdown().await.unwrap();
    let (beside, all): (Vec<Call>, Vec<Call>) =
        calls.into_iter().partition(|call| call.desc() == "beside");
    assert_eq!(beside[0].queue, 2);
    let ids: Vec<i64> = all.iter().map(Call::order).collect();
    let expected: Vec<i64> = [0, 1, 2, 3, 3].into_iter().chain(3..20).collect();
    assert_eq!(ids, expected, "total order, later messages wait");
    let pauses: Vec<Duration> = all[3..6]
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    for pause in &pauses {
        // A message of another queue does not wait as long.
        assert!(*pause >= Duration::from_millis(950), "{pauses:?}");
    }
    assert!(beside[0].at < all[5].at, "the other queue went on");
    format!(
        "20 messages in queue 0 in total order, the failing one retried after {pauses:.1?}, another queue went on"
    )
}
