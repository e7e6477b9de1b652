//! Chapter 6: a delayed message.

use std::time::Duration;

use bindery::Message;

use crate::chapter04::order;
use crate::seen::{Call, noting};
use crate::stage::{BackEnd, Stage};

const YAML: &str = include_str!("../../../examples/original/application-delay.yaml");

/// Level 2.
const DELAY: Duration = Duration::from_secs(5);
/// What the series allows.
const TOLERANCE: Duration = Duration::from_secs(1);

pub(crate) async fn delayed_sync(stage: Stage) -> String {
    delayed(stage, "{}").await
}

pub(crate) async fn delayed_async(stage: Stage) -> String {
    delayed(
        stage,
        "spring.cloud.stream.rocketmq.bindings.output-order.producer.sync: false",
    )
    .await
}

/// Five seconds after the send, with its tag and its own property; one without delay overtakes it.
async fn delayed(stage: Stage, more: &str) -> String {
    let seen = stage.seen();
    let app = stage
        .app(&[YAML, more])
        .output("output-order")
        .handler(noting("input", &seen))
        .start()
        .await
        .unwrap();
    let sent = stage.now();
    let message = Message::new(order(1, "test"))
        .delay_level(2)
        .tag("test03")
        .header("origin", "series");
    app.bridge().send("output-order", message).await.unwrap();
    app.bridge()
        .send("output-order", Message::new(order(2, "at once")))
        .await
        .unwrap();
    let calls = seen.wait(2).await;
    app.shutdown().await.unwrap();
    assert_eq!(calls.iter().map(Call::order).collect::<Vec<_>>(), [2, 1]);
    let late = &calls[1];
    assert_eq!(late.text, r#"{"id":1,"desc":"test"}"#);
    assert_eq!(late.headers.tags(), Some("test03"));
    assert_eq!(late.headers.get("origin"), Some("series"));
    let took = late.at - sent;
    assert!(took >= DELAY, "{took:?}");
    // On a machine that does other things too, the broker's own clock says when it was delivered.
    if stage.back_end() == BackEnd::Memory {
        assert!(took < DELAY + TOLERANCE, "{took:?}");
    } else {
        let delivery = late.headers.delivery().unwrap();
        let stored = Duration::from_millis(
            u64::try_from(delivery.store_millis - delivery.born_millis).unwrap(),
        );
        assert!(
            stored >= DELAY.saturating_sub(Duration::from_millis(50)) && stored < DELAY + TOLERANCE,
            "{stored:?}"
        );
    }
    format!("handled {took:.2?} after the send, tag and property kept")
}
