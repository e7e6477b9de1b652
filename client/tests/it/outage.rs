//! How much is said about a broker that is away, against the scripted cluster.
use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use bindery_client::{
    ConcurrentStatus, ConsumeFrom, FilterExpression, Listener, MessageExt, PushConsumer,
};
use bindery_remoting::{Clock, ManualClock};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::fake::Fake;

/// What the client logs, with its level.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(Level, String)>>>);

impl Diary {
    fn count(&self, level: Level, part: &str) -> usize {
        let events = self.0.lock().unwrap();
        let matching = events
            .iter()
            .filter(|(at, text)| *at == level && text.contains(part));
        matching.count()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Diary {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("bindery_client")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        let level = *event.metadata().level();
        self.0.lock().unwrap().push((level, line.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

async fn advance_until(clock: &ManualClock, what: &str, condition: impl Fn() -> bool) {
    for _ in 0..5_000 {
        if condition() {
            return;
        }
        clock.advance(Duration::from_millis(500));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("not in time: {what}");
}

#[tokio::test]
async fn c24_a_broker_that_is_away_is_told_once_and_so_is_its_return() {
    let diary = Diary::default();
    let _here = tracing::subscriber::set_default(diary.clone());
    let mut fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 4);
    let (clock, hands) = Clock::manual(1_000_000);
    let listener = Listener::concurrent(|_: Vec<MessageExt>| async { ConcurrentStatus::Success });
    fake.stop_broker("b").await;
    let consumer = PushConsumer::builder("g")
        .config(fake.config().clock(clock))
        .subscribe("t", FilterExpression::all())
        .consume_from(ConsumeFrom::First)
        .listener(listener)
        .start()
        .await
        .unwrap();
    for _ in 0..2 {
        diary.0.lock().unwrap().clear();
        fake.restart_broker("b").await;
        advance_until(&hands, "all eight queues", || {
            consumer.assignment().len() == 8 && diary.count(Level::INFO, "answers again") == 1
        })
        .await;
        assert_eq!(diary.count(Level::WARN, ""), 0, "{:?}", diary.0);
        diary.0.lock().unwrap().clear();
        fake.stop_broker("b").await;
        advance_until(&hands, "many heartbeats in vain", || {
            diary.count(Level::DEBUG, "heartbeat failed") >= 5
        })
        .await;
        assert_eq!(diary.count(Level::WARN, ""), 1, "{:?}", diary.0);
        assert_eq!(diary.count(Level::INFO, "answers again"), 0);
    }
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn queues_of_a_broker_that_is_away_do_not_all_say_so() {
    let diary = Diary::default();
    let _here = tracing::subscriber::set_default(diary.clone());
    let mut fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 4);
    fake.stop_broker("b").await;
    let (clock, hands) = Clock::manual(1_000_000);
    let listener = Listener::concurrent(|_: Vec<MessageExt>| async { ConcurrentStatus::Success });
    let consumer = PushConsumer::builder("g")
        .config(fake.config().clock(clock))
        .subscribe("t", FilterExpression::all())
        .listener(listener)
        .start()
        .await
        .unwrap();
    advance_until(&hands, "many attempts", || {
        diary.count(Level::DEBUG, "queue not acquired yet") >= 12
    })
    .await;
    assert_eq!(diary.count(Level::WARN, ""), 1, "{:?}", diary.0);
    consumer.shutdown().await;
    fake.stop().await;
}
