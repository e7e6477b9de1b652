//! Chapter 1: the quickstart, a producer and then a consumer.

use std::collections::BTreeSet;

use crate::seen::noting;
use crate::stage::Stage;

const COUNT: usize = 100;

const YAML: &str = "
spring:
  cloud:
    stream:
      bindings:
        input:
          destination: test-topic
          group: test-group
        output:
          destination: test-topic
      rocketmq:
        binder:
          name-server: 127.0.0.1:9876
        bindings:
          input:
            consumer:
              consumeFromWhere: CONSUME_FROM_FIRST_OFFSET
";

/// Every send is acknowledged with an id; who comes later gets each message once.
pub(crate) async fn quickstart(stage: Stage) -> String {
    let producer = stage.app(&[YAML]).output("output").start().await.unwrap();
    let (mut sent, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for number in 0..COUNT {
        let text = format!("Hello RocketMQ {number}");
        // A receipt is SEND_OK: every other status is an error.
        let receipt = producer
            .bridge()
            .send("output", bindery::Message::new(text.clone()).tag("TagA"))
            .await
            .unwrap();
        sent.insert(text);
        assert!(ids.insert(receipt.msg_id), "an id of its own");
    }
    producer.shutdown().await.unwrap();

    let seen = stage.seen();
    let consumer = stage
        .app(&[YAML])
        .output("output")
        .handler(noting("input", &seen))
        .start()
        .await
        .unwrap();
    let calls = seen.wait(COUNT).await;
    consumer.shutdown().await.unwrap();
    let calls = if calls.len() == seen.all().len() {
        calls
    } else {
        seen.all()
    };
    assert_eq!(calls.len(), COUNT, "each once");
    assert_eq!(
        calls
            .iter()
            .map(|call| call.text.clone())
            .collect::<BTreeSet<_>>(),
        sent
    );
    assert_eq!(
        calls
            .iter()
            .map(|call| call.id.clone())
            .collect::<BTreeSet<_>>(),
        ids
    );
    format!("{COUNT} sends acknowledged with an id, each handled once")
}
