//! The same bodies on the included broker, or on the cluster that `BINDERY_NAMESRV` names.

use std::time::Duration;

use bindery::prelude::*;
use bindery::testing::TestApp;

use crate::handlers::{TxSource, order};

#[bindery::test(config = "
spring.cloud.stream:
  default.consumer.max-attempts: 1
  bindings.input: { destination: test-topic, group: consumer-group }
  rocketmq.bindings.input.consumer: { delayLevelWhenNextConsume: 1, maxReconsumeTimes: 1 }
")]
async fn a_message_comes_again_and_is_dead_on_a_real_broker(t: TestApp) {
    let t = t.with_real_broker().await;
    let sent = t
        .input("input")
        .send(Message::new(order(1, "boom")).tag("x"))
        .await;
    t.input("input").send(order(2, "fine")).await;
    t.settle().await;
    assert_eq!(t.calls("receive").len(), 3);
    let dead = t.dlq("consumer-group").await;
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (dead[0].msg_id(), dead[0].tag()),
        (sent.msg_id.as_str(), Some("x"))
    );
    assert_eq!(t.stored("test-topic").await.len(), 2);
    let first = t
        .output("test-topic")
        .receive(Duration::from_secs(10))
        .await;
    assert!(first.is_some());
    t.shutdown().await;
}

fn transaction(builder: bindery::testing::TestAppBuilder) -> bindery::testing::TestAppBuilder {
    builder.config(
        "
spring.cloud.stream:
  bindings:
    input-transaction: { destination: TransactionTopic, group: tg }
    output-transaction: { destination: TransactionTopic }
  rocketmq.bindings.output-transaction.producer:
    { producerType: Trans, group: pg, transactionListener: myTransactionListener }
bindery.embedded.broker: { transactionTimeOut: 500, transactionCheckInterval: 500 }
",
    )
}

#[bindery::test(setup = "transaction")]
async fn a_real_broker_asks_about_an_open_transaction(t: TestApp) {
    let t = t.with_real_broker().await;
    let source = t.app().bound::<TxSource>().unwrap();
    let message = Message::new("open".to_owned()).header("test", 1);
    source
        .tx
        .send_in_transaction(message, TxArgs::none())
        .await
        .unwrap();
    assert_eq!(t.tx().check().await, 0);
    let calls = t.wait_for_calls("decided", 1).await;
    assert_eq!(calls[0].text(), "open");
    t.shutdown().await;
}
