//! What a consumer's start waits for, against the scripted cluster.
use std::{
    cell::Cell,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bindery_client::{
    ClientConfig, ConcurrentStatus, ConsumeFrom, FilterExpression, Listener, MessageExt,
    MessageQueue, PushConsumer, PushConsumerBuilder,
};
use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Reply,
};
use bindery_remoting::Clock;

use crate::fake::{Fake, until};

/// Less than a start that waits in vain takes.
const AT_ONCE: Duration = Duration::from_secs(2);

type Log = Arc<Mutex<Vec<String>>>;

fn from_last(config: ClientConfig, log: &Log) -> PushConsumerBuilder {
    let log = Arc::clone(log);
    PushConsumer::builder("g")
        .config(config)
        .subscribe("t", FilterExpression::all())
        .consume_from(ConsumeFrom::Last)
        .listener(Listener::concurrent(move |batch: Vec<MessageExt>| {
            let bodies = batch
                .iter()
                .map(|message| String::from_utf8_lossy(message.body()).into_owned());
            log.lock().unwrap().extend(bodies);
            async { ConcurrentStatus::Success }
        }))
}

fn queue(id: i32) -> MessageQueue {
    MessageQueue::new("t", "a", id)
}

fn refuse_ends(fake: &Fake) {
    fake.rule(|_, frame| {
        (frame.request_code() == RequestCode::GET_MAX_OFFSET)
            .then(|| Reply::code(ResponseCode::SYSTEM_BUSY))
    });
}

#[tokio::test]
async fn a_new_group_gets_what_is_sent_right_after_its_start() {
    let fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 4);
    fake.topic("%RETRY%g", 1);
    fake.store("t", "a", 0, "before");
    let log = Log::default();
    let consumer = from_last(fake.config(), &log).start().await.unwrap();
    // Nothing is awaited in between: whatever is not decided by now comes too late.
    for (broker, id) in ["a", "b"]
        .into_iter()
        .flat_map(|broker| (0..4).map(move |id| (broker, id)))
    {
        let begin = i64::from(broker == "a" && id == 0);
        let saved = fake.offset("g", &MessageQueue::new("t", broker, id));
        assert_eq!(saved, Some(begin), "{broker} {id}");
        fake.store("t", broker, id, "after");
    }
    until("eight messages", || log.lock().unwrap().len() == 8).await;
    assert!(log.lock().unwrap().iter().all(|body| body == "after"));
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_start_sees_a_broker_through_that_is_busy_at_first() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    refuse_ends(&fake);
    let (clock, hands) = Clock::manual(1_000_000);
    let log = Log::default();
    let started = Cell::new(false);
    let starting = async {
        let consumer = from_last(fake.config().clock(clock), &log).start().await;
        started.set(true);
        consumer
    };
    let better = async {
        until("a refusal", || fake.count(RequestCode::GET_MAX_OFFSET) == 1).await;
        assert!(!started.get(), "it waits for the second try");
        fake.forget_rules();
        while fake.count(RequestCode::GET_MAX_OFFSET) == 1 {
            hands.advance(Duration::from_millis(100));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (consumer, ()) = tokio::join!(starting, better);
    fake.store("t", "a", 0, "after");
    until("the message", || *log.lock().unwrap() == ["after"]).await;
    consumer.unwrap().shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_start_does_not_wait_for_ever_and_does_not_fail() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    refuse_ends(&fake);
    let (clock, _hands) = Clock::manual(1_000_000);
    let log = Log::default();
    let starting = from_last(fake.config().clock(clock), &log).start();
    let consumer = tokio::time::timeout(Duration::from_secs(10), starting)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(consumer.assignment(), []);
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_start_waits_neither_for_a_topic_nor_for_a_broker_that_is_not_there() {
    let mut fake = Fake::start(&["a", "b"]).await;
    fake.stop_broker("b").await;
    let log = Log::default();
    let started = Instant::now();
    let (clock, _hands) = Clock::manual(1_000_000);
    let consumer = from_last(fake.config().clock(clock.clone()), &log)
        .start()
        .await
        .unwrap();
    consumer.shutdown().await;
    fake.topic("t", 1);
    let consumer = from_last(fake.config().clock(clock.clone()), &log)
        .start()
        .await
        .unwrap();
    assert_eq!(
        consumer.assignment(),
        [queue(0)],
        "that of the other broker"
    );
    consumer.shutdown().await;
    fake.stop_broker("a").await;
    let consumer = from_last(fake.config().clock(clock), &log)
        .start()
        .await
        .unwrap();
    assert_eq!(consumer.assignment(), []);
    consumer.shutdown().await;
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    fake.stop().await;
}

#[tokio::test]
async fn a_start_does_not_wait_for_queues_that_another_member_may_have() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 2);
    let log = Log::default();
    let first = from_last(fake.config(), &log).start().await.unwrap();
    assert_eq!(first.assignment(), [queue(0), queue(1)]);
    let (clock, _hands) = Clock::manual(1_000_000);
    let started = Instant::now();
    // Its clock stands still, so it never takes a queue over.
    let second = from_last(fake.config().clock(clock), &log)
        .start()
        .await
        .unwrap();
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    assert_eq!(second.assignment(), []);
    second.shutdown().await;
    first.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_group_without_members_is_reset_at_its_start_and_one_with_members_is_not() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 2);
    for id in [0, 1] {
        fake.store("t", "a", id, "old");
    }
    let saved = || [0, 1].map(|id| fake.offset("g", &queue(id)));
    let log = Log::default();
    let plain = from_last(fake.config(), &log).start().await.unwrap();
    plain.shutdown().await;
    assert_eq!(saved(), [Some(1), Some(1)]);

    let resetting = |log: &Log| {
        from_last(fake.config(), log)
            .consume_from(ConsumeFrom::First)
            .reset_on_start(true)
    };
    let first = resetting(&log).start().await.unwrap();
    until("both again", || log.lock().unwrap().len() == 2).await;
    let other = Log::default();
    let second = resetting(&other).start().await.unwrap();
    until("a queue for each", || {
        first.assignment().len() == 1 && second.assignment().len() == 1
    })
    .await;
    first.shutdown().await;
    until("both queues", || second.assignment().len() == 2).await;
    for id in [0, 1] {
        fake.store("t", "a", id, "new");
    }
    until("the new ones", || other.lock().unwrap().len() == 2).await;
    assert_eq!(*other.lock().unwrap(), ["new", "new"]);
    second.shutdown().await;
    fake.stop().await;
}
