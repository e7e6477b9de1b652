//! Where consumption begins on a real cluster, moving it, and conditions over properties.
use std::time::Duration;

use bindery_client::{ClientError, ConsumeFrom, FilterExpression, Message, MessageExt};

use crate::live::{Seen, Stage, until};

/// Store times of messages that are some milliseconds apart, by body.
async fn spread(stage: &Stage, count: usize) -> Vec<(String, i64)> {
    let producer = stage.producer().await;
    for number in 0..count {
        producer
            .send(Message::new(&stage.topic, format!("m{number:02}")))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    producer.shutdown().await;
    let seen = Seen::default();
    let reader = stage
        .member()
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    until("all", || seen.len() == count).await;
    reader.shutdown().await;
    let mut times: Vec<_> = seen.0.lock().unwrap().iter().map(stored_at).collect();
    times.sort();
    times
}

fn stored_at(message: &MessageExt) -> (String, i64) {
    let body = String::from_utf8_lossy(message.body()).into_owned();
    (body, message.store_timestamp())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_group_begins_at_the_very_millisecond_on_a_young_topic() {
    let Some(stage) = Stage::new("time", 2).await else {
        return;
    };
    let times = spread(&stage, 20).await;
    for (offset, name) in [(0, "at"), (1, "after")] {
        let at = times[10].1 + offset;
        let expected: Vec<_> = times
            .iter()
            .filter(|(_, time)| *time >= at)
            .map(|(body, _)| body.clone())
            .collect();
        let seen = Seen::default();
        let consumer = bindery_client::PushConsumer::builder(format!("{}-{name}", stage.group))
            .client(&stage.client)
            .subscribe(&stage.topic, FilterExpression::all())
            .consume_from(ConsumeFrom::Timestamp(at))
            .listener(seen.listener())
            .start()
            .await
            .unwrap();
        until("the messages from then on", || seen.len() >= expected.len()).await;
        let mut bodies = seen.bodies();
        bodies.sort();
        assert_eq!(bodies, expected);
        consumer.shutdown().await;
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_group_gets_all_that_is_sent_right_after_its_start() {
    let Some(stage) = Stage::new("last", 4).await else {
        return;
    };
    let producer = stage.producer().await;
    producer
        .send(Message::new(&stage.topic, "before"))
        .await
        .unwrap();
    for round in 0..10 {
        let seen = Seen::default();
        let consumer = bindery_client::PushConsumer::builder(format!("{}-{round}", stage.group))
            .client(&stage.client)
            .subscribe(&stage.topic, FilterExpression::all())
            .consume_from(ConsumeFrom::Last)
            .listener(seen.listener())
            .start()
            .await
            .unwrap();
        for number in 0..8 {
            producer
                .send(Message::new(&stage.topic, format!("m{number}")))
                .await
                .unwrap();
        }
        until("all eight", || seen.len() >= 8).await;
        let mut bodies = seen.bodies();
        bodies.sort();
        let expected: Vec<_> = (0..8).map(|number| format!("m{number}")).collect();
        assert_eq!(bodies, expected, "round {round}");
        consumer.shutdown().await;
    }
    producer.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_exists_is_moved_to_a_time_and_to_an_offset() {
    let Some(stage) = Stage::new("seek", 2).await else {
        return;
    };
    let times = spread(&stage, 20).await;
    let seen = Seen::default();
    let consumer = stage
        .member()
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    until("both queues", || consumer.assignment().len() >= 2).await;
    let at = times[15].1;
    let moved = consumer.seek_to_time(&stage.topic, at).await.unwrap();
    assert_eq!(moved.len(), 2);
    let took = until("five again", || seen.len() >= 5).await;
    println!("moved within {took:?}");
    assert!(
        took < Duration::from_secs(3),
        "no waiting for a long poll to end"
    );
    let mut bodies = seen.bodies();
    bodies.sort();
    bodies.dedup();
    let expected: Vec<_> = times[15..].iter().map(|(body, _)| body.clone()).collect();
    assert_eq!(bodies, expected);
    for queue in consumer.assignment() {
        if queue.topic == stage.topic {
            consumer.seek(&queue, 0).await.unwrap();
            let outside = consumer.seek(&queue, 1_000).await.unwrap_err();
            assert!(matches!(outside, ClientError::OffsetOutside { .. }));
        }
    }
    until("all again", || seen.len() >= 25).await;
    consumer.shutdown().await;
    let lag = stage.client.admin().lag(&stage.group, &stage.topic).await;
    assert_eq!(lag.unwrap(), 0);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c27_a_condition_over_properties_filters_at_the_broker() {
    let Some(stage) = Stage::new("sql", 2).await else {
        return;
    };
    let seen = Seen::default();
    let filtered = |condition: &str| {
        stage
            .consumer()
            .subscribe(&stage.topic, FilterExpression::sql(condition))
            .listener(seen.listener())
    };
    let error = filtered("color in (").start().await.unwrap_err();
    assert_eq!(error.response_code(), 23, "{error}");
    let consumer = match filtered("color in ('red', 'blue') and price > 3")
        .start()
        .await
    {
        Ok(consumer) => consumer,
        Err(error) => {
            assert_eq!(error.response_code(), 1, "{error}");
            println!("skipped: the cluster does not filter by properties: {error}");
            return stage.end().await;
        }
    };
    let producer = stage.producer().await;
    for (color, price) in [("red", "4"), ("red", "3"), ("green", "9"), ("blue", "5")] {
        let message = Message::new(&stage.topic, format!("{color}{price}"));
        let message = message.property("color", color).property("price", price);
        producer.send(message).await.unwrap();
    }
    until("two", || seen.len() >= 2).await;
    let mut bodies = seen.bodies();
    bodies.sort();
    assert_eq!(bodies, ["blue5", "red4"]);
    consumer.shutdown().await;
    let lag = stage.client.admin().lag(&stage.group, &stage.topic).await;
    assert_eq!(lag.unwrap(), 0, "what the filter leaves out is done too");
    stage.end().await;
}
