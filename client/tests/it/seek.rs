//! Where consumption begins, and moving it, against the scripted cluster.
use std::sync::{Arc, Mutex};

use bindery_client::{
    ClientError, ConcurrentStatus, ConsumeFrom, FilterExpression, Listener, MessageExt,
    MessageModel, MessageQueue, OrderlyStatus, PushConsumer, PushConsumerBuilder,
};
use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Reply,
    headers::QueryOffsetHeader,
};

use crate::fake::{Fake, until};

type Log = Arc<Mutex<Vec<String>>>;

fn consumer(fake: &Fake, log: &Log) -> PushConsumerBuilder {
    let log = Arc::clone(log);
    let listener = Listener::concurrent(move |batch: Vec<MessageExt>| {
        let bodies = batch
            .iter()
            .map(|message| String::from_utf8_lossy(message.body()).into_owned());
        log.lock().unwrap().extend(bodies);
        async { ConcurrentStatus::Success }
    });
    PushConsumer::builder("g")
        .config(fake.config())
        .subscribe("t", FilterExpression::all())
        .concurrency(1)
        .listener(listener)
}

/// One message a millisecond, from 1000 on.
fn store(fake: &Fake, count: i64) {
    for number in 0..count {
        fake.state.lock().unwrap().now = 1000 + number;
        fake.store("t", "a", 0, &format!("m{number}"));
    }
}

fn queue() -> MessageQueue {
    MessageQueue::new("t", "a", 0)
}

#[tokio::test]
async fn a_time_begins_with_its_very_millisecond() {
    for (at, first) in [(1003, "m3"), (0, "m0"), (1004, "m4")] {
        let fake = Fake::start(&["a"]).await;
        fake.topic("t", 1);
        store(&fake, 5);
        let log = Log::default();
        let consumer = consumer(&fake, &log)
            .consume_from(ConsumeFrom::Timestamp(at))
            .start()
            .await
            .unwrap();
        until("the last message", || {
            log.lock().unwrap().last().is_some_and(|last| last == "m4")
        })
        .await;
        assert_eq!(log.lock().unwrap()[0], first);
        consumer.shutdown().await;
        fake.stop().await;
    }
}

/// Answers the question for a position as Apache's brokers do for a young topic: 0, unless told not to.
fn young_topic(fake: &Fake) {
    fake.rule(|_, frame| {
        if frame.request_code() != RequestCode::QUERY_CONSUMER_OFFSET {
            return None;
        }
        let header: QueryOffsetHeader<'_> = frame.header().unwrap();
        Some(if header.set_zero_if_not_found == Some(false) {
            Reply::code(ResponseCode::QUERY_NOT_FOUND)
        } else {
            Reply::ok().with(&bindery_protocol::headers::OffsetReply { offset: 0 })
        })
    });
}

#[tokio::test]
async fn c06_last_and_time_mean_what_they_say_on_young_topics_unless_java_is_wanted() {
    for (from, java, first) in [
        (ConsumeFrom::Last, false, "new"),
        (ConsumeFrom::Timestamp(1002), false, "m2"),
        (ConsumeFrom::Last, true, "m0"),
        (ConsumeFrom::Timestamp(1002), true, "m0"),
    ] {
        let fake = Fake::start(&["a"]).await;
        fake.topic("t", 1);
        store(&fake, 3);
        young_topic(&fake);
        let log = Log::default();
        let consumer = consumer(&fake, &log)
            .consume_from(from)
            .start_like_java(java)
            .start()
            .await
            .unwrap();
        until("a pull", || fake.count(RequestCode::PULL_MESSAGE) > 0).await;
        fake.store("t", "a", 0, "new");
        until("the new message", || {
            log.lock().unwrap().last().is_some_and(|last| last == "new")
        })
        .await;
        assert_eq!(log.lock().unwrap()[0], first, "{from:?} {java}");
        consumer.shutdown().await;
        fake.stop().await;
    }
}

#[tokio::test]
async fn a_time_to_come_holds_for_a_queue_that_appears_too() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("other", 1);
    let log = Log::default();
    let consumer = consumer(&fake, &log)
        .subscribe("other", FilterExpression::all())
        .consume_from(ConsumeFrom::Timestamp(1002))
        .start()
        .await
        .unwrap();
    store(&fake, 4);
    fake.topic("t", 1);
    until("the last message", || {
        log.lock().unwrap().last().is_some_and(|last| last == "m3")
    })
    .await;
    assert_eq!(*log.lock().unwrap(), ["m2", "m3"]);
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn c04_a_running_consumer_goes_back_to_a_time_at_once() {
    for model in [MessageModel::Clustering, MessageModel::Broadcasting] {
        let folder = tempfile::tempdir().unwrap();
        let fake = Fake::start(&["a"]).await;
        fake.topic("t", 1);
        store(&fake, 5);
        let log = Log::default();
        let mut config = fake.config();
        config.offset_dir = Some(folder.path().to_owned());
        let consumer = consumer(&fake, &log)
            .config(config)
            .message_model(model)
            .consume_from(ConsumeFrom::First)
            .start()
            .await
            .unwrap();
        until("all", || log.lock().unwrap().len() == 5).await;
        let moved = consumer.seek_to_time("t", 1003).await.unwrap();
        assert_eq!(moved.into_iter().collect::<Vec<_>>(), [(queue(), 3)]);
        // Although nobody ends the pull that waits at the broker.
        until("two again", || log.lock().unwrap().len() == 7).await;
        assert_eq!(log.lock().unwrap()[5..], ["m3", "m4"]);
        assert_eq!(
            fake.count(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET),
            usize::from(model == MessageModel::Clustering)
        );
        consumer.shutdown().await;
        let expected = (model == MessageModel::Clustering).then_some(5);
        assert_eq!(fake.offset("g", &queue()), expected);
        fake.stop().await;
    }
}

#[tokio::test]
async fn an_orderly_consumer_goes_back_and_keeps_its_lock_and_order() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    store(&fake, 50);
    let log = Log::default();
    let noted = Arc::clone(&log);
    let listener = Listener::orderly(move |batch: Vec<MessageExt>| {
        let body = String::from_utf8_lossy(batch[0].body()).into_owned();
        noted.lock().unwrap().push(body);
        async { OrderlyStatus::Success }
    });
    let consumer = consumer(&fake, &Log::default())
        .consume_from(ConsumeFrom::First)
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("all", || log.lock().unwrap().len() == 50).await;
    consumer.seek_to_time("t", 1010).await.unwrap();
    until("forty again", || log.lock().unwrap().len() == 90).await;
    let expected: Vec<_> = (0..50)
        .chain(10..50)
        .map(|number| format!("m{number}"))
        .collect();
    assert_eq!(*log.lock().unwrap(), expected);
    assert_eq!(fake.state.lock().unwrap().locks.len(), 1);
    consumer.shutdown().await;
    assert_eq!(fake.offset("g", &queue()), Some(50));
    fake.stop().await;
}

#[tokio::test]
async fn a_queue_moves_only_within_its_bounds_and_where_it_is_ours() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    store(&fake, 5);
    let log = Log::default();
    let consumer = consumer(&fake, &log)
        .consume_from(ConsumeFrom::First)
        .start()
        .await
        .unwrap();
    until("all", || log.lock().unwrap().len() == 5).await;
    consumer.seek(&queue(), 4).await.unwrap();
    until("one again", || log.lock().unwrap().len() == 6).await;
    assert_eq!(log.lock().unwrap()[5], "m4");
    let outside = consumer.seek(&queue(), 6).await.unwrap_err();
    assert!(matches!(
        outside,
        ClientError::OffsetOutside {
            offset: 6,
            min: 0,
            max: 5
        }
    ));
    let elsewhere = MessageQueue::new("t", "a", 7);
    let other = consumer.seek(&elsewhere, 0).await.unwrap_err();
    assert!(matches!(other, ClientError::NotAssigned { .. }));
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_refused_condition_ends_the_start_before_any_heartbeat() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.rule(|_, frame| {
        (frame.request_code() == RequestCode::CHECK_CLIENT_CONFIG)
            .then(|| Reply::error(ResponseCode::SUBSCRIPTION_PARSE_FAILED, "scripted"))
    });
    let log = Log::default();
    let with =
        |condition: &str| consumer(&fake, &log).subscribe("t", FilterExpression::sql(condition));
    let error = with("a >").start().await.unwrap_err();
    assert_eq!(error.response_code(), 23, "{error}");
    assert_eq!(fake.count(RequestCode::HEART_BEAT), 0);
    fake.forget_rules();
    let consumer = with("a > 1").start().await.unwrap();
    let codes: Vec<_> = fake
        .state
        .lock()
        .unwrap()
        .requests
        .iter()
        .map(|(code, ..)| *code)
        .collect();
    assert_eq!(
        codes[1..3],
        [RequestCode::CHECK_CLIENT_CONFIG, RequestCode::HEART_BEAT]
    );
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_bad_condition_on_a_topic_that_is_not_there_yet_ends_the_start_too() {
    let fake = Fake::start(&["a"]).await;
    let log = Log::default();
    let with =
        |condition: &str| consumer(&fake, &log).subscribe("t", FilterExpression::sql(condition));
    let error = with("a >").start().await.unwrap_err();
    assert!(matches!(error, ClientError::Config { .. }), "{error}");
    with("a > 1").start().await.unwrap().shutdown().await;
    fake.stop().await;
}
