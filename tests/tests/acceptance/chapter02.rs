//! Chapters 2 and 3: a text with a tag arrives and is seen at the broker; a message is found by its key and by its id.

use std::time::Duration;

use bindery::Message;

use crate::seen::noting;
use crate::stage::{Stage, text};

const YAML: &str = include_str!("../../../examples/original/application-first.yaml");

/// The tag is among the headers under both prefixes; the broker's figures show the message.
pub(crate) async fn text_and_tag(stage: Stage) -> String {
    let seen = stage.seen();
    let app = stage
        .app(&[YAML])
        .output("output")
        .handler(noting("input", &seen))
        .start()
        .await
        .unwrap();
    app.bridge()
        .send(
            "output",
            Message::new("Hello RocketMQ!".to_owned()).tag("test"),
        )
        .await
        .unwrap();
    let calls = seen.wait(1).await;
    assert_eq!(calls[0].text, "Hello RocketMQ!");
    for name in ["ROCKET_TAGS", "rocketmq_TAGS"] {
        assert_eq!(calls[0].headers.get(name), Some("test"), "{name}");
    }
    assert_eq!(stage.count("test-topic").await, 1, "what a dashboard shows");
    app.shutdown().await.unwrap();
    "handled, tag under both prefixes, counted in the topic's figures".to_owned()
}

/// `messageKey` finds it, and so does its id.
pub(crate) async fn key_and_id(stage: Stage) -> String {
    let seen = stage.seen();
    let app = stage
        .app(&[YAML])
        .output("output")
        .handler(noting("input", &seen))
        .start()
        .await
        .unwrap();
    let message = Message::new("Hello RocketMQ!".to_owned())
        .tag("test02")
        .key("messageKey");
    let receipt = app.bridge().send("output", message).await.unwrap();
    app.bridge()
        .send("output", Message::new("another".to_owned()).key("otherKey"))
        .await
        .unwrap();
    let call = seen
        .wait(2)
        .await
        .into_iter()
        .find(|call| call.text == "Hello RocketMQ!")
        .unwrap();
    assert_eq!(call.headers.keys().collect::<Vec<_>>(), ["messageKey"]);
    assert_eq!(call.id, receipt.msg_id);

    let Some(client) = stage.client() else {
        let found = stage.by_key("test-topic", "messageKey").await;
        assert_eq!(found, ["Hello RocketMQ!"]);
        app.shutdown().await.unwrap();
        return "found by key among what is stored; ids by place in a log are the brokers' alone"
            .to_owned();
    };
    // The index follows the log at its own pace.
    let found = loop {
        let found = stage.by_key("test-topic", "messageKey").await;
        if !found.is_empty() {
            break found;
        }
        stage.quiet(Duration::from_millis(50)).await;
    };
    assert_eq!(found, ["Hello RocketMQ!"]);
    let viewed = client
        .admin()
        .view_message("test-topic", &receipt.offset_msg_id)
        .await
        .unwrap();
    assert_eq!(
        (text(viewed.body()), viewed.msg_id()),
        ("Hello RocketMQ!".to_owned(), receipt.msg_id.as_str())
    );
    app.shutdown().await.unwrap();
    "found by topic and key, and by id".to_owned()
}
