//! Receiving against the scripted cluster.
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bindery_client::{
    Client, ClientConfig, ClientError, ConcurrentContext, ConcurrentListener, ConcurrentStatus,
    ConsumeFrom, FilterExpression, Listener, MessageExt, MessageQueue, OrderlyStatus, PushConsumer,
    PushConsumerBuilder,
};
use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Reply,
    headers::PullHeader,
};
use bindery_remoting::{Clock, ManualClock};
use tokio::sync::Semaphore;

use crate::fake::{Fake, numbers, until};

fn consumer(fake: &Fake) -> PushConsumerBuilder {
    on(fake.config())
}

fn on(config: ClientConfig) -> PushConsumerBuilder {
    PushConsumer::builder("g")
        .config(config)
        .subscribe("t", FilterExpression::all())
        .consume_from(ConsumeFrom::First)
        .shutdown_grace(Duration::from_secs(5))
}

fn queue(id: i32) -> MessageQueue {
    MessageQueue::new("t", "a", id)
}

fn text(message: &MessageExt) -> String {
    String::from_utf8_lossy(message.body()).into_owned()
}

/// Bodies in the order of their handling.
type Log = Arc<Mutex<Vec<String>>>;

fn logging(log: &Log) -> Listener {
    let log = Arc::clone(log);
    Listener::concurrent(move |batch: Vec<MessageExt>| {
        log.lock().unwrap().extend(batch.iter().map(text));
        async { ConcurrentStatus::Success }
    })
}

/// Moves the clock step by step until something has happened.
async fn advance_until(clock: &ManualClock, step: Duration, condition: impl Fn() -> bool) {
    for _ in 0..5_000 {
        if condition() {
            return;
        }
        clock.advance(step);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("not in time");
}

#[tokio::test]
async fn messages_arrive_and_their_positions_are_saved_at_the_end() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 2);
    (0..10).for_each(|number| fake.store("t", "a", number % 2, &format!("m{number}")));
    let log = Log::default();
    let consumer = consumer(&fake)
        .listener(logging(&log))
        .start()
        .await
        .unwrap();
    until("ten messages", || log.lock().unwrap().len() == 10).await;
    fake.store("t", "a", 0, "later");
    until("the later one", || log.lock().unwrap().len() == 11).await;
    assert_eq!(consumer.assignment(), [queue(0), queue(1)]);
    consumer.shutdown().await;
    assert_eq!(
        (fake.offset("g", &queue(0)), fake.offset("g", &queue(1))),
        (Some(6), Some(5))
    );
    fake.stop().await;
}

#[tokio::test]
async fn a_start_position_found_by_rule_is_saved_before_the_first_pull() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    (0..3).for_each(|_| fake.store("t", "a", 0, "old"));
    let log = Log::default();
    let consumer = consumer(&fake)
        .consume_from(ConsumeFrom::Last)
        .listener(logging(&log))
        .start()
        .await
        .unwrap();
    until("a pull", || fake.count(RequestCode::PULL_MESSAGE) == 1).await;
    assert_eq!(
        fake.offset("g", &queue(0)),
        Some(3),
        "an heir must not apply LAST again"
    );
    fake.store("t", "a", 0, "new");
    until("the new message", || !log.lock().unwrap().is_empty()).await;
    assert_eq!(*log.lock().unwrap(), ["new"]);
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_topic_that_appears_after_the_start_is_read_from_its_beginning() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("other", 1);
    let log = Log::default();
    let builder = consumer(&fake)
        .subscribe("other", FilterExpression::all())
        .consume_from(ConsumeFrom::Last);
    let consumer = builder.listener(logging(&log)).start().await.unwrap();
    fake.store("t", "a", 0, "first");
    fake.topic("t", 1);
    until("the first message", || !log.lock().unwrap().is_empty()).await;
    consumer.shutdown().await;
    fake.stop().await;
}

/// Handlers wait for a permit each; the one of body `slow` waits for its own.
struct Gate {
    slow: Semaphore,
    done: AtomicUsize,
}

#[tokio::test]
async fn c03_the_position_never_passes_an_unfinished_message() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    for number in 0..20 {
        fake.store("t", "a", 0, if number == 5 { "slow" } else { "quick" });
    }
    let gate = Arc::new(Gate {
        slow: Semaphore::new(0),
        done: AtomicUsize::new(0),
    });
    let at_gate = Arc::clone(&gate);
    let listener = Listener::concurrent(move |batch: Vec<MessageExt>| {
        let gate = Arc::clone(&at_gate);
        async move {
            if text(&batch[0]) == "slow" {
                gate.slow.acquire().await.unwrap().forget();
            }
            gate.done.fetch_add(1, Ordering::Relaxed);
            ConcurrentStatus::Success
        }
    });
    let mut config = fake.config();
    config.persist_offset_interval = Duration::from_millis(1);
    let consumer = on(config).listener(listener).start().await.unwrap();
    until("nineteen", || gate.done.load(Ordering::Relaxed) == 19).await;
    until("position 5", || fake.offset("g", &queue(0)) == Some(5)).await;
    assert_eq!(
        consumer
            .offsets()
            .iter()
            .find(|at| at.queue == queue(0))
            .unwrap()
            .unfinished,
        1
    );
    gate.slow.add_permits(1);
    until("position 20", || fake.offset("g", &queue(0)) == Some(20)).await;
    consumer.shutdown().await;
    let commits = fake.state.lock().unwrap().commits.clone();
    assert!(
        commits
            .iter()
            .filter(|(at, _)| *at == queue(0))
            .is_sorted_by_key(|(_, offset)| *offset),
        "{commits:?}"
    );
    fake.stop().await;
}

/// Fails what is called `bad`.
struct Picky {
    level: i32,
    calls: Arc<AtomicUsize>,
}

impl ConcurrentListener for Picky {
    async fn consume(
        &self,
        batch: Vec<MessageExt>,
        context: &ConcurrentContext,
    ) -> ConcurrentStatus {
        self.calls.fetch_add(1, Ordering::Relaxed);
        context.set_delay_level(self.level);
        match batch.iter().position(|message| text(message) == "bad") {
            Some(0) => ConcurrentStatus::ReconsumeLater,
            Some(done) => {
                context.set_done(done);
                ConcurrentStatus::Success
            }
            None => ConcurrentStatus::Success,
        }
    }
}

#[tokio::test]
async fn failed_messages_are_sent_back_with_the_level_of_the_context() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    for body in ["good", "good", "bad", "good"] {
        fake.store("t", "a", 0, body);
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let listener = Listener::concurrent(Picky {
        level: 4,
        calls: Arc::clone(&calls),
    });
    let consumer = consumer(&fake)
        .batch_size(4)
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("two sent back", || {
        fake.state.lock().unwrap().sent_back.len() == 2
    })
    .await;
    assert_eq!(
        fake.state.lock().unwrap().sent_back,
        [(2, 4), (3, 4)],
        "all from the first that is not done"
    );
    consumer.shutdown().await;
    assert_eq!(fake.offset("g", &queue(0)), Some(4));
    fake.stop().await;
}

#[tokio::test]
async fn c12_a_message_that_nobody_takes_back_stays_unfinished_and_is_tried_again_here() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.topic("%RETRY%g", 1);
    fake.store("t", "a", 0, "bad");
    let refused =
        |code| code == RequestCode::CONSUMER_SEND_MSG_BACK || code == RequestCode::SEND_MESSAGE_V2;
    fake.rule(move |_, frame| {
        refused(frame.request_code()).then(|| Reply::code(ResponseCode::SYSTEM_ERROR))
    });
    let (clock, hands) = Clock::manual(1_000_000);
    let calls = Arc::new(AtomicUsize::new(0));
    let listener = Listener::concurrent(Picky {
        level: 2,
        calls: Arc::clone(&calls),
    });
    let consumer = on(fake.config().clock(clock))
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("three attempts at the retry topic", || {
        fake.count(RequestCode::SEND_MESSAGE_V2) == 3
    })
    .await;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(fake.offset("g", &queue(0)), Some(0), "not done");
    fake.forget_rules();
    advance_until(&hands, Duration::from_millis(500), || {
        calls.load(Ordering::Relaxed) == 2
    })
    .await;
    until("sent back at last", || {
        fake.state.lock().unwrap().sent_back == [(0, 2)]
    })
    .await;
    consumer.shutdown().await;
    assert_eq!(fake.offset("g", &queue(0)), Some(1));
    fake.stop().await;
}

#[tokio::test]
async fn c12_the_retry_topic_takes_what_the_broker_refuses_to_take_back() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.topic("%RETRY%g", 1);
    fake.store("t", "a", 0, "bad");
    fake.rule(|_, frame| {
        (frame.request_code() == RequestCode::CONSUMER_SEND_MSG_BACK)
            .then(|| Reply::code(ResponseCode::SYSTEM_ERROR))
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seen_by = Arc::clone(&seen);
    let listener = Listener::concurrent(move |batch: Vec<MessageExt>| {
        let message = &batch[0];
        let again = message.reconsume_times() > 0;
        let delay = message.property("DELAY").map(str::to_owned);
        seen_by.lock().unwrap().push((
            message.topic().to_owned(),
            message.reconsume_times(),
            delay,
        ));
        async move {
            if again {
                ConcurrentStatus::Success
            } else {
                ConcurrentStatus::ReconsumeLater
            }
        }
    });
    let consumer = consumer(&fake)
        .delay_level_when_next_consume(2)
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("the second delivery", || seen.lock().unwrap().len() == 2).await;
    let expected = [
        ("t".to_owned(), 0, None),
        ("t".to_owned(), 1, Some("2".to_owned())),
    ];
    assert_eq!(
        *seen.lock().unwrap(),
        expected,
        "the topic is restored, the chosen level kept"
    );
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_panicking_handler_is_a_failed_one() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.store("t", "a", 0, "x");
    let listener = Listener::concurrent(|_: Vec<MessageExt>| async { panic!("scripted") });
    let consumer = consumer(&fake).listener(listener).start().await.unwrap();
    until("sent back", || {
        fake.state.lock().unwrap().sent_back.len() == 1
    })
    .await;
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn c13_a_handler_that_runs_too_long_has_its_message_sent_back_once() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.store("t", "a", 0, "slow");
    let (clock, hands) = Clock::manual(1_000_000);
    let gate = Arc::new(Semaphore::new(0));
    let ended = Arc::new(AtomicUsize::new(0));
    let (at_gate, ends) = (Arc::clone(&gate), Arc::clone(&ended));
    let listener = Listener::concurrent(move |_: Vec<MessageExt>| {
        let (gate, ended) = (Arc::clone(&at_gate), Arc::clone(&ends));
        async move {
            gate.acquire().await.unwrap().forget();
            ended.fetch_add(1, Ordering::Relaxed);
            ConcurrentStatus::ReconsumeLater
        }
    });
    let consumer = on(fake.config().clock(clock))
        .consume_timeout(Duration::from_secs(60))
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("the pull", || {
        consumer.offsets().iter().any(|at| at.unfinished == 1)
    })
    .await;
    advance_until(&hands, Duration::from_secs(1), || {
        !fake.state.lock().unwrap().sent_back.is_empty()
    })
    .await;
    until("the position", || {
        consumer.offsets().iter().any(|at| at.committed == Some(1))
    })
    .await;
    gate.add_permits(1);
    until("the late end", || ended.load(Ordering::Relaxed) == 1).await;
    consumer.shutdown().await;
    assert_eq!(
        fake.state.lock().unwrap().sent_back,
        [(0, 3)],
        "its late result is ignored"
    );
    fake.stop().await;
}

#[tokio::test]
async fn pulling_waits_when_too_much_is_unfinished() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    (0..40).for_each(|number| fake.store("t", "a", 0, &format!("m{number}")));
    let gate = Arc::new(Semaphore::new(0));
    let at_gate = Arc::clone(&gate);
    let listener = Listener::concurrent(move |_: Vec<MessageExt>| {
        let gate = Arc::clone(&at_gate);
        async move {
            gate.acquire().await.unwrap().forget();
            ConcurrentStatus::Success
        }
    });
    let builder = consumer(&fake)
        .pull_batch_size(4)
        .max_cached_messages(10)
        .concurrency(2);
    let consumer = builder.listener(listener).start().await.unwrap();
    let unfinished = || {
        consumer
            .offsets()
            .iter()
            .map(|at| at.unfinished)
            .sum::<usize>()
    };
    until("a full cache", || unfinished() == 12).await;
    let pulls = fake.count(RequestCode::PULL_MESSAGE);
    assert_eq!(pulls, 3, "three pulls of four fill a cache of ten");
    gate.add_permits(40);
    until("all", || {
        consumer.offsets().iter().any(|at| at.committed == Some(40))
    })
    .await;
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_paused_consumer_starts_nothing_and_keeps_its_queues() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    let log = Log::default();
    let consumer = consumer(&fake)
        .listener(logging(&log))
        .start()
        .await
        .unwrap();
    until("a pull", || fake.count(RequestCode::PULL_MESSAGE) == 1).await;
    consumer.pause();
    fake.store("t", "a", 0, "one");
    fake.store("t", "a", 0, "two");
    // What the pull in flight brings is kept.
    until("one message pulled", || {
        consumer.offsets().iter().any(|at| at.unfinished == 1)
    })
    .await;
    assert_eq!(consumer.assignment(), [queue(0)]);
    assert!(log.lock().unwrap().is_empty() && consumer.is_paused());
    consumer.resume();
    until("both", || log.lock().unwrap().len() == 2).await;
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_correction_by_the_broker_moves_the_position_there() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    (0..6).for_each(|number| fake.store("t", "a", 0, &format!("m{number}")));
    fake.state
        .lock()
        .unwrap()
        .offsets
        .insert(("g".to_owned(), queue(0)), 2);
    let corrected = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&corrected);
    fake.rule(move |_, frame| {
        let header: PullHeader<'_> = frame
            .header()
            .ok()
            .filter(|_| frame.request_code() == RequestCode::PULL_MESSAGE)?;
        // Offsets below 4 were deleted.
        (header.queue_offset < 4).then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            Reply::code(ResponseCode::PULL_OFFSET_MOVED).with(&numbers(4, 6))
        })
    });
    let log = Log::default();
    let consumer = consumer(&fake)
        .listener(logging(&log))
        .start()
        .await
        .unwrap();
    until("two messages", || log.lock().unwrap().len() == 2).await;
    let mut got = log.lock().unwrap().clone();
    got.sort();
    assert_eq!(got, ["m4", "m5"]);
    consumer.shutdown().await;
    assert_eq!(
        (
            fake.offset("g", &queue(0)),
            corrected.load(Ordering::Relaxed)
        ),
        (Some(6), 1)
    );
    fake.stop().await;
}

#[tokio::test]
async fn c29_a_broker_that_forgot_the_subscription_gets_a_heartbeat_at_once() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.store("t", "a", 0, "x");
    let refusals = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refusals);
    fake.rule(move |_, frame| {
        let pull = frame.request_code() == RequestCode::PULL_MESSAGE;
        (pull && count.fetch_add(1, Ordering::Relaxed) == 0)
            .then(|| Reply::code(ResponseCode::SUBSCRIPTION_NOT_LATEST))
    });
    let log = Log::default();
    let consumer = consumer(&fake)
        .listener(logging(&log))
        .start()
        .await
        .unwrap();
    until("the message", || log.lock().unwrap().len() == 1).await;
    assert!(fake.count(RequestCode::HEART_BEAT) >= 2);
    consumer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn c01_queues_are_shared_and_inherited_without_a_double() {
    let fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 4);
    let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let listener = || {
        let counts = Arc::clone(&counts);
        Listener::concurrent(move |batch: Vec<MessageExt>| {
            *counts.lock().unwrap().entry(text(&batch[0])).or_default() += 1;
            async {
                tokio::task::yield_now().await;
                ConcurrentStatus::Success
            }
        })
    };
    let first = consumer(&fake).listener(listener()).start().await.unwrap();
    until("eight queues", || first.assignment().len() == 8).await;
    let store = |numbers: std::ops::Range<usize>| {
        for number in numbers {
            let broker = if number % 2 == 0 { "a" } else { "b" };
            fake.store(
                "t",
                broker,
                i32::try_from(number / 2 % 4).unwrap(),
                &format!("m{number}"),
            );
        }
    };
    store(0..400);
    let second = consumer(&fake).listener(listener()).start().await.unwrap();
    until("four each", || {
        first.assignment().len() == 4 && second.assignment().len() == 4
    })
    .await;
    let all: BTreeSet<_> = first
        .assignment()
        .into_iter()
        .chain(second.assignment())
        .collect();
    assert_eq!(all.len(), 8);
    store(400..800);
    second.shutdown().await;
    until("all again", || first.assignment().len() == 8).await;
    store(800..1000);
    until("a thousand", || counts.lock().unwrap().len() == 1000).await;
    first.shutdown().await;
    let twice = counts
        .lock()
        .unwrap()
        .values()
        .filter(|count| **count > 1)
        .count();
    assert!(
        twice <= 20,
        "at most what was in handlers at a hand-over, not {twice}"
    );
    fake.stop().await;
}

#[tokio::test]
async fn c04_a_slow_handler_of_the_old_owner_does_not_move_the_position_back() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    for number in 0..5 {
        fake.store("t", "a", 0, &format!("m{number}"));
    }
    let gate = Arc::new(Semaphore::new(0));
    let done = Arc::new(AtomicUsize::new(0));
    let (at_gate, counted) = (Arc::clone(&gate), Arc::clone(&done));
    let listener = Listener::concurrent(move |batch: Vec<MessageExt>| {
        let (gate, done) = (Arc::clone(&at_gate), Arc::clone(&counted));
        async move {
            if text(&batch[0]) == "m2" {
                gate.acquire().await.unwrap().forget();
            }
            done.fetch_add(1, Ordering::Relaxed);
            ConcurrentStatus::Success
        }
    });
    let first = on(fake.config().instance_name("b"))
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("all but one", || done.load(Ordering::Relaxed) == 4).await;
    let log = Log::default();
    let heir = on(fake.config().instance_name("a"))
        .listener(logging(&log))
        .start()
        .await
        .unwrap();
    until("the heir begins with the unfinished one", || {
        log.lock().unwrap().len() == 3
    })
    .await;
    fake.store("t", "a", 0, "m5");
    until("the heir goes on", || log.lock().unwrap().len() == 4).await;
    gate.add_permits(1);
    until("the late end", || done.load(Ordering::Relaxed) == 5).await;
    first.shutdown().await;
    heir.shutdown().await;
    let commits = fake.state.lock().unwrap().commits.clone();
    let commits: Vec<_> = commits
        .iter()
        .filter(|(at, _)| *at == queue(0))
        .map(|(_, offset)| *offset)
        .collect();
    assert!(
        commits.is_sorted() && commits.last() == Some(&6),
        "{commits:?}"
    );
    fake.stop().await;
}

#[tokio::test]
async fn after_a_broken_connection_a_higher_position_of_others_counts() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.store("t", "a", 0, "m0");
    let log = Log::default();
    let consumer = consumer(&fake)
        .listener(logging(&log))
        .start()
        .await
        .unwrap();
    until("the first message", || log.lock().unwrap().len() == 1).await;
    fake.cut(|state| {
        state.commits.clear();
        state.offsets.insert(("g".to_owned(), queue(0)), 3);
    });
    for number in 1..4 {
        fake.store("t", "a", 0, &format!("m{number}"));
    }
    until("it goes on", || log.lock().unwrap().len() == 2).await;
    consumer.shutdown().await;
    assert_eq!(*log.lock().unwrap(), ["m0", "m3"]);
    let commits = fake.state.lock().unwrap().commits.clone();
    assert!(
        commits
            .iter()
            .filter(|(at, _)| *at == queue(0))
            .all(|(_, offset)| *offset >= 3),
        "{commits:?}"
    );
    fake.stop().await;
}

#[tokio::test]
async fn c11_a_group_is_used_once_per_client() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    let client = Client::start(fake.config()).unwrap();
    let log = Log::default();
    let first = consumer(&fake)
        .client(&client)
        .listener(logging(&log))
        .start()
        .await
        .unwrap();
    let second = consumer(&fake)
        .client(&client)
        .listener(logging(&log))
        .start()
        .await;
    assert!(
        matches!(
            second,
            Err(ClientError::DuplicateGroup {
                kind: "consumer",
                ..
            })
        ),
        "{second:?}"
    );
    first.shutdown().await;
    let third = consumer(&fake)
        .client(&client)
        .listener(logging(&log))
        .start()
        .await
        .unwrap();
    drop(third);
    until("the dropped one has left", || {
        fake.count(RequestCode::UNREGISTER_CLIENT) == 2
    })
    .await;
    client.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn an_orderly_queue_that_another_member_has_locked_is_not_touched() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.store("t", "a", 0, "x");
    fake.state
        .lock()
        .unwrap()
        .locks
        .insert(queue(0), "somebody".to_owned());
    let (clock, hands) = Clock::manual(1_000_000);
    let log = Log::default();
    let consumer = on(fake.config().clock(clock))
        .listener(orderly(&log))
        .start()
        .await
        .unwrap();
    until("two refusals", || {
        fake.count(RequestCode::LOCK_BATCH_MQ) >= 1
    })
    .await;
    assert!(consumer.assignment().is_empty());
    assert_eq!(fake.count(RequestCode::PULL_MESSAGE), 0);
    fake.state.lock().unwrap().locks.clear();
    advance_until(&hands, Duration::from_millis(100), || {
        log.lock().unwrap().len() == 1
    })
    .await;
    consumer.shutdown().await;
    assert!(
        fake.state.lock().unwrap().locks.is_empty(),
        "unlocked at the end"
    );
    fake.stop().await;
}

fn orderly(log: &Log) -> Listener {
    let log = Arc::clone(log);
    Listener::orderly(move |batch: Vec<MessageExt>| {
        log.lock().unwrap().extend(batch.iter().map(text));
        async { OrderlyStatus::Success }
    })
}

#[tokio::test]
async fn c08_a_lost_lock_stops_the_queue_and_what_still_runs_commits_nothing() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    (0..5).for_each(|number| fake.store("t", "a", 0, &format!("m{number}")));
    let (clock, hands) = Clock::manual(1_000_000);
    let log = Log::default();
    let gate = Arc::new(Semaphore::new(2));
    let (at_gate, logged) = (Arc::clone(&gate), Arc::clone(&log));
    let listener = Listener::orderly(move |batch: Vec<MessageExt>| {
        let (gate, log) = (Arc::clone(&at_gate), Arc::clone(&logged));
        async move {
            log.lock().unwrap().push(text(&batch[0]));
            gate.acquire().await.unwrap().forget();
            OrderlyStatus::Success
        }
    });
    let mut config = fake.config().clock(clock);
    config.persist_offset_interval = Duration::from_secs(3600);
    let consumer = on(config).listener(listener).start().await.unwrap();
    until("the third message", || log.lock().unwrap().len() == 3).await;
    // Another member takes the queue, works on and commits; then our renewal fails.
    {
        let mut state = fake.state.lock().unwrap();
        state.locks.insert(queue(0), "somebody".to_owned());
        state.offsets.insert(("g".to_owned(), queue(0)), 4);
        state.commits.clear();
    }
    let lost = || {
        consumer
            .offsets()
            .iter()
            .all(|at| at.queue != queue(0) || at.committed.is_none())
    };
    advance_until(&hands, Duration::from_secs(1), lost).await;
    gate.add_permits(10);
    fake.state.lock().unwrap().locks.clear();
    advance_until(&hands, Duration::from_millis(100), || {
        log.lock().unwrap().len() == 4
    })
    .await;
    assert_eq!(
        *log.lock().unwrap(),
        ["m0", "m1", "m2", "m4"],
        "goes on where the other one stopped"
    );
    consumer.shutdown().await;
    let commits = fake.state.lock().unwrap().commits.clone();
    assert!(
        commits
            .iter()
            .filter(|(at, _)| *at == queue(0))
            .all(|(_, offset)| *offset >= 4),
        "{commits:?}"
    );
    fake.stop().await;
}

#[tokio::test]
async fn c08_an_orderly_queue_is_handed_over_when_the_running_handler_has_ended() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    (0..4).for_each(|number| fake.store("t", "a", 0, &format!("m{number}")));
    let gate = Arc::new(Semaphore::new(1));
    let log = Log::default();
    let (at_gate, logged) = (Arc::clone(&gate), Arc::clone(&log));
    let listener = Listener::orderly(move |batch: Vec<MessageExt>| {
        let (gate, log) = (Arc::clone(&at_gate), Arc::clone(&logged));
        async move {
            log.lock().unwrap().push(text(&batch[0]));
            gate.acquire().await.unwrap().forget();
            OrderlyStatus::Success
        }
    });
    // The heir's name comes first, so the only queue is its own as soon as it is there.
    let first = on(fake.config().instance_name("b"))
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("m1 runs", || log.lock().unwrap().len() == 2).await;
    let heir_log = Log::default();
    let heir = on(fake.config().instance_name("a"))
        .listener(orderly(&heir_log))
        .start()
        .await
        .unwrap();
    until("the heir is refused the lock", || {
        fake.count(RequestCode::LOCK_BATCH_MQ) >= 2
    })
    .await;
    assert!(heir_log.lock().unwrap().is_empty());
    gate.add_permits(1);
    until("the heir goes on", || heir_log.lock().unwrap().len() == 2).await;
    assert_eq!(*log.lock().unwrap(), ["m0", "m1"]);
    assert_eq!(*heir_log.lock().unwrap(), ["m2", "m3"]);
    first.shutdown().await;
    heir.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_suspended_orderly_queue_tries_again_in_place() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    for body in ["m0", "m1", "m2"] {
        fake.store("t", "a", 0, body);
    }
    let (clock, hands) = Clock::manual(1_000_000);
    let log: Arc<Mutex<Vec<(String, i32)>>> = Arc::default();
    let logged = Arc::clone(&log);
    let listener = Listener::orderly(move |batch: Vec<MessageExt>| {
        let (body, times) = (text(&batch[0]), batch[0].reconsume_times());
        logged.lock().unwrap().push((body.clone(), times));
        async move {
            if body == "m1" {
                OrderlyStatus::Suspend(None)
            } else {
                OrderlyStatus::Success
            }
        }
    });
    let builder = on(fake.config().clock(clock)).max_reconsume_times(Some(2));
    let consumer = builder.listener(listener).start().await.unwrap();
    until("the first failure", || log.lock().unwrap().len() == 2).await;
    advance_until(&hands, Duration::from_millis(100), || {
        log.lock().unwrap().len() == 5
    })
    .await;
    let expected = [("m0", 0), ("m1", 0), ("m1", 1), ("m1", 2), ("m2", 0)];
    assert_eq!(
        *log.lock().unwrap(),
        expected.map(|(body, times)| (body.to_owned(), times))
    );
    assert_eq!(
        fake.state.lock().unwrap().sent_back,
        [(1, -1)],
        "a dead letter, stored before the queue went on"
    );
    consumer.shutdown().await;
    assert_eq!(fake.offset("g", &queue(0)), Some(3));
    fake.stop().await;
}

/// Takes back what it got after three batches, and commits after six.
struct Ledger(Log);
impl bindery_client::OrderlyListener for Ledger {
    async fn consume(
        &self,
        batch: Vec<MessageExt>,
        context: &bindery_client::OrderlyContext,
    ) -> OrderlyStatus {
        context.set_auto_commit(false);
        let mut log = self.0.lock().unwrap();
        log.push(text(&batch[0]));
        match log.len() {
            3 => OrderlyStatus::Rollback,
            6 => OrderlyStatus::Commit,
            _ => OrderlyStatus::Success,
        }
    }
}

#[tokio::test]
async fn rolled_back_batches_come_again_in_order() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    for body in ["m0", "m1", "m2"] {
        fake.store("t", "a", 0, body);
    }
    let (clock, hands) = Clock::manual(1_000_000);
    let log = Log::default();
    let listener = Listener::orderly(Ledger(Arc::clone(&log)));
    let consumer = on(fake.config().clock(clock))
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("three", || log.lock().unwrap().len() == 3).await;
    assert_eq!(
        consumer
            .offsets()
            .iter()
            .find(|at| at.queue == queue(0))
            .unwrap()
            .committed,
        Some(0)
    );
    advance_until(&hands, Duration::from_millis(100), || {
        log.lock().unwrap().len() == 6
    })
    .await;
    assert_eq!(*log.lock().unwrap(), ["m0", "m1", "m2", "m0", "m1", "m2"]);
    consumer.shutdown().await;
    assert_eq!(fake.offset("g", &queue(0)), Some(3));
    fake.stop().await;
}
