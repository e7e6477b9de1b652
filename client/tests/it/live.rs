//! A tour of everything users do, on a real cluster. Without `BINDERY_NAMESRV` each test says so and passes.
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bindery_client::{
    Client, ClientConfig, ConcurrentContext, ConcurrentListener, ConcurrentStatus, ConsumeFrom,
    FilterExpression, Listener, Message, MessageExt, MessageModel, OrderlyStatus, Producer,
    PushConsumer, PushConsumerBuilder, SendStatus, TopicSettings,
};

/// Two rounds of transaction checks take a minute where nothing is configured.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client and names of its own.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) topic: String,
    pub(crate) group: String,
}

impl Stage {
    pub(crate) async fn new(name: &str, queues: i32) -> Option<Self> {
        let Ok(name_servers) = std::env::var("BINDERY_NAMESRV") else {
            println!("skipped: BINDERY_NAMESRV is not set");
            return None;
        };
        let client = Client::start(ClientConfig::new(&name_servers)).unwrap();
        let id: u32 = rand::random();
        let (topic, group) = (
            format!("bct-{name}-{id:08x}"),
            format!("bcg-{name}-{id:08x}"),
        );
        if queues > 0 {
            client
                .admin()
                .create_topic(&topic, TopicSettings::queues(queues))
                .await
                .unwrap();
        }
        Some(Self {
            client,
            topic,
            group,
        })
    }

    pub(crate) async fn producer(&self) -> Producer {
        Producer::builder(format!("{}-p", self.group))
            .client(&self.client)
            .start()
            .await
            .unwrap()
    }

    pub(crate) fn consumer(&self) -> PushConsumerBuilder {
        PushConsumer::builder(&self.group)
            .client(&self.client)
            .subscribe(&self.topic, FilterExpression::all())
            .consume_from(ConsumeFrom::First)
    }

    /// A member of the group on a client of its own.
    pub(crate) fn member(&self) -> PushConsumerBuilder {
        self.consumer().config(ClientConfig::new(
            &self.client.config().name_servers.join(";"),
        ))
    }

    pub(crate) async fn end(self) {
        self.client.shutdown().await;
        let cleaner = Client::start(self.client.config().clone()).unwrap();
        cleaner.admin().delete_topic(&self.topic).await.unwrap();
        cleaner.shutdown().await;
    }
}

/// What listeners saw.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(pub(crate) Arc<Mutex<Vec<MessageExt>>>);

impl Seen {
    pub(crate) fn listener(&self) -> Listener {
        let seen = self.clone();
        Listener::concurrent(move |batch: Vec<MessageExt>| {
            seen.0.lock().unwrap().extend(batch);
            async { ConcurrentStatus::Success }
        })
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|message| String::from_utf8_lossy(message.body()).into_owned())
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) -> Duration {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    started.elapsed()
}

#[tokio::test]
async fn a_request_is_replied_to() {
    let Some(stage) = Stage::new("request", 4).await else {
        return;
    };
    let producer = stage.producer().await;
    let replier = producer.clone();
    let consumer = stage
        .consumer()
        .listener(Listener::concurrent(move |batch: Vec<MessageExt>| {
            let replier = replier.clone();
            async move {
                for message in batch {
                    let text = String::from_utf8_lossy(message.body()).to_uppercase();
                    let reply = message.reply(text).unwrap();
                    replier.send_reply(reply).await.unwrap();
                }
                ConcurrentStatus::Success
            }
        }))
        .start()
        .await
        .unwrap();
    let requests = (0..20).map(|n| {
        let (producer, topic) = (producer.clone(), stage.topic.clone());
        tokio::spawn(async move {
            let request = Message::new(topic, format!("request {n}"));
            let reply = producer.request(request, PATIENCE).await.unwrap();
            assert_eq!(&reply.body()[..], format!("REQUEST {n}").as_bytes());
        })
    });
    for request in requests.collect::<Vec<_>>() {
        request.await.unwrap();
    }
    consumer.shutdown().await;
    producer.shutdown().await;
    stage.end().await;
}

fn numbered(topic: &str, numbers: std::ops::Range<usize>) -> Vec<Message> {
    numbers
        .map(|number| Message::new(topic, format!("m{number:04}")).keys([format!("k{number}")]))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_send_is_stored() {
    let Some(stage) = Stage::new("send", 4).await else {
        return;
    };
    let producer = stage.producer().await;
    let queues = producer.publish_queues(&stage.topic).await.unwrap();
    assert!(queues.len() >= 4 && queues.is_sorted());
    for message in numbered(&stage.topic, 0..8) {
        let sent = producer.send(message).await.unwrap();
        assert_eq!(sent.status, SendStatus::Ok);
        assert!(
            sent.msg_id.len() == 32 || sent.msg_id.len() == 56,
            "{sent:?}"
        );
    }
    for queue in &queues {
        let bounds = stage.client.admin().bounds(queue).await.unwrap();
        assert_eq!(
            bounds.max,
            i64::try_from(8 / queues.len()).unwrap(),
            "round robin is exact"
        );
    }
    let to = &queues[1];
    let sent = producer
        .send_to_queue(Message::new(&stage.topic, "to queue").tags("T"), to)
        .await
        .unwrap();
    assert_eq!(sent.queue, *to);
    let found = stage
        .client
        .admin()
        .view_message(&stage.topic, &sent.offset_msg_id)
        .await
        .unwrap();
    assert_eq!(
        (found.msg_id(), found.tags(), &found.body()[..]),
        (&*sent.msg_id, Some("T"), &b"to queue"[..])
    );
    let ordered = producer
        .send_ordered(Message::new(&stage.topic, "ordered"), |queues, _| {
            queues.len() - 1
        })
        .await
        .unwrap();
    assert_eq!(ordered.queue, queues[queues.len() - 1]);
    let batch = producer
        .send_batch(numbered(&stage.topic, 100..110))
        .await
        .unwrap();
    assert_eq!(
        (
            batch.msg_id.split(',').count(),
            batch.offset_msg_id.split(',').count()
        ),
        (10, 10)
    );
    producer
        .send_oneway(Message::new(&stage.topic, "oneway"))
        .await
        .unwrap();
    let pending: Vec<_> = numbered(&stage.topic, 200..300)
        .into_iter()
        .map(|message| producer.send_async(message).unwrap())
        .collect();
    for sent in pending {
        sent.await.unwrap();
    }
    let total = 8 + 1 + 1 + 10 + 1 + 100;
    let mut sum = 0;
    for _ in 0..100 {
        sum = 0;
        for queue in &queues {
            sum += stage.client.admin().bounds(queue).await.unwrap().max;
        }
        if sum == total {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(sum, total, "the oneway message included");
    let found = stage
        .client
        .admin()
        .query_by_key(&stage.topic, "k3", 32, 0, i64::MAX)
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_comes_into_being_by_sending_to_it_and_is_consumed() {
    let Some(stage) = Stage::new("auto", 0).await else {
        return;
    };
    let seen = Seen::default();
    // The topic does not exist at the start; LAST must not skip what is sent after it.
    let consumer = stage
        .consumer()
        .consume_from(ConsumeFrom::Last)
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    let producer = stage.producer().await;
    for message in numbered(&stage.topic, 0..20) {
        producer.send(message).await.unwrap();
    }
    let took = until("20 messages of a new topic", || seen.len() == 20).await;
    println!("new topic consumed after {took:?}");
    consumer.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c29_the_first_message_comes_within_a_second_of_the_start() {
    let Some(stage) = Stage::new("first", 4).await else {
        return;
    };
    let producer = stage.producer().await;
    for message in numbered(&stage.topic, 0..40) {
        producer.send(message).await.unwrap();
    }
    let seen = Seen::default();
    let started = Instant::now();
    let consumer = stage
        .consumer()
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    until("40 messages", || seen.len() == 40).await;
    let took = started.elapsed();
    println!("40 waiting messages handled {took:?} after the start began");
    assert!(took < Duration::from_secs(2), "{took:?}");
    let sent_at = Instant::now();
    producer
        .send(Message::new(&stage.topic, "fresh"))
        .await
        .unwrap();
    until("a fresh message", || seen.len() == 41).await;
    println!("send to handler: {:?}", sent_at.elapsed());
    consumer.shutdown().await;
    assert_eq!(
        stage
            .client
            .admin()
            .lag(&stage.group, &stage.topic)
            .await
            .unwrap(),
        0,
        "all positions saved at the shutdown"
    );
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c06_last_skips_what_was_sent_before_the_group() {
    let Some(stage) = Stage::new("last", 2).await else {
        return;
    };
    let producer = stage.producer().await;
    for message in numbered(&stage.topic, 0..10) {
        producer.send(message).await.unwrap();
    }
    let seen = Seen::default();
    let consumer = stage
        .consumer()
        .consume_from(ConsumeFrom::Last)
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    until("both queues", || {
        consumer
            .assignment()
            .iter()
            .filter(|queue| queue.topic == stage.topic)
            .count()
            == 2
    })
    .await;
    producer
        .send(Message::new(&stage.topic, "new"))
        .await
        .unwrap();
    until("the new message", || seen.len() == 1).await;
    assert_eq!(seen.bodies(), ["new"]);
    consumer.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_filter_exactly() {
    let Some(stage) = Stage::new("tags", 2).await else {
        return;
    };
    let producer = stage.producer().await;
    // "Aa" and "BB" have one hash.
    for (number, tag) in ["Aa", "BB", "A", "B", "Aa"].into_iter().enumerate() {
        producer
            .send(Message::new(&stage.topic, format!("{tag}{number}")).tags(tag))
            .await
            .unwrap();
    }
    let seen = Seen::default();
    let consumer = stage
        .consumer()
        .subscribe(&stage.topic, FilterExpression::tags("Aa || B"))
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    until("three messages", || seen.len() == 3).await;
    let got: BTreeSet<_> = seen.bodies().into_iter().collect();
    assert_eq!(
        got,
        BTreeSet::from(["Aa0".to_owned(), "Aa4".to_owned(), "B3".to_owned()])
    );
    consumer.shutdown().await;
    assert_eq!(
        stage
            .client
            .admin()
            .lag(&stage.group, &stage.topic)
            .await
            .unwrap(),
        0,
        "what the filter left out counts as done"
    );
    stage.end().await;
}

/// Fails everything with a delay of one second.
struct Failing {
    times: Arc<Mutex<Vec<(i32, Instant)>>>,
}

impl ConcurrentListener for Failing {
    async fn consume(
        &self,
        batch: Vec<MessageExt>,
        context: &ConcurrentContext,
    ) -> ConcurrentStatus {
        context.set_delay_level(1);
        let now = Instant::now();
        self.times
            .lock()
            .unwrap()
            .extend(batch.iter().map(|message| (message.reconsume_times(), now)));
        ConcurrentStatus::ReconsumeLater
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c22_a_failing_message_is_retried_and_dead_lettered() {
    let Some(stage) = Stage::new("fail", 1).await else {
        return;
    };
    let producer = stage.producer().await;
    let sent = producer
        .send(Message::new(&stage.topic, "poison").property("colour", "red"))
        .await
        .unwrap();
    let times = Arc::new(Mutex::new(Vec::new()));
    let listener = Listener::concurrent(Failing {
        times: Arc::clone(&times),
    });
    let consumer = stage
        .consumer()
        .max_reconsume_times(Some(2))
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("three deliveries", || times.lock().unwrap().len() == 3).await;
    let deliveries = times.lock().unwrap().clone();
    let pauses: Vec<_> = deliveries
        .windows(2)
        .map(|pair| pair[1].1 - pair[0].1)
        .collect();
    println!("retries after {pauses:?}");
    assert_eq!(
        deliveries
            .iter()
            .map(|(count, _)| *count)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
    let dead = Seen::default();
    let graveyard = PushConsumer::builder(format!("{}-dead", stage.group))
        .client(&stage.client)
        .subscribe(format!("%DLQ%{}", stage.group), FilterExpression::all())
        .consume_from(ConsumeFrom::First)
        .listener(dead.listener())
        .start()
        .await
        .unwrap();
    until("the dead letter", || dead.len() == 1).await;
    let letter = dead.0.lock().unwrap()[0].clone();
    assert_eq!(letter.msg_id(), sent.msg_id);
    assert_eq!(letter.property("colour"), Some("red"));
    assert_eq!(letter.property("RETRY_TOPIC"), Some(&*stage.topic));
    graveyard.shutdown().await;
    consumer.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orderly_queues_keep_their_order_over_failures() {
    let Some(stage) = Stage::new("order", 3).await else {
        return;
    };
    let producer = stage.producer().await;
    for number in 0..30 {
        let message = Message::new(&stage.topic, format!("{}-{:02}", number % 3, number / 3));
        producer
            .send_ordered(message, |queues, _| number % queues.len().min(3))
            .await
            .unwrap();
    }
    let seen: Arc<Mutex<HashMap<i32, Vec<String>>>> = Arc::default();
    let failed = Arc::new(AtomicUsize::new(0));
    let (seen_by, failed_by) = (Arc::clone(&seen), Arc::clone(&failed));
    let listener = Listener::orderly(move |batch: Vec<MessageExt>| {
        let message = &batch[0];
        let body = String::from_utf8_lossy(message.body()).into_owned();
        let fail = body == "1-04" && message.reconsume_times() < 2;
        if fail {
            failed_by.fetch_add(1, Ordering::Relaxed);
        } else {
            seen_by
                .lock()
                .unwrap()
                .entry(message.queue_id())
                .or_default()
                .push(body);
        }
        async move {
            if fail {
                OrderlyStatus::Suspend(Some(Duration::from_millis(50)))
            } else {
                OrderlyStatus::Success
            }
        }
    });
    let consumer = stage.consumer().listener(listener).start().await.unwrap();
    until("30 messages", || {
        seen.lock().unwrap().values().map(Vec::len).sum::<usize>() == 30
    })
    .await;
    assert!(
        seen.lock().unwrap().values().all(|queue| queue.is_sorted()),
        "{seen:?}"
    );
    assert_eq!(failed.load(Ordering::Relaxed), 2);
    consumer.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c22_an_orderly_message_that_fails_too_often_is_dead_lettered_and_the_queue_goes_on() {
    let Some(stage) = Stage::new("odlq", 1).await else {
        return;
    };
    let producer = stage.producer().await;
    let queue = producer
        .publish_queues(&stage.topic)
        .await
        .unwrap()
        .swap_remove(0);
    for body in ["good", "poison", "after"] {
        producer
            .send_to_queue(Message::new(&stage.topic, body), &queue)
            .await
            .unwrap();
    }
    let calls: Arc<Mutex<Vec<(String, i32)>>> = Arc::default();
    let calls_by = Arc::clone(&calls);
    let listener = Listener::orderly(move |batch: Vec<MessageExt>| {
        let body = String::from_utf8_lossy(batch[0].body()).into_owned();
        let fail = body == "poison";
        calls_by
            .lock()
            .unwrap()
            .push((body, batch[0].reconsume_times()));
        async move {
            if fail {
                OrderlyStatus::Suspend(None)
            } else {
                OrderlyStatus::Success
            }
        }
    });
    let consumer = stage
        .consumer()
        .max_reconsume_times(Some(2))
        .suspend_current_queue(Duration::from_millis(20))
        .listener(listener)
        .start()
        .await
        .unwrap();
    until("five calls", || calls.lock().unwrap().len() == 5).await;
    let expected = [
        ("good", 0),
        ("poison", 0),
        ("poison", 1),
        ("poison", 2),
        ("after", 0),
    ];
    assert_eq!(
        *calls.lock().unwrap(),
        expected.map(|(body, times)| (body.to_owned(), times))
    );
    let dead = Seen::default();
    let graveyard = PushConsumer::builder(format!("{}-dead", stage.group))
        .client(&stage.client)
        .subscribe(format!("%DLQ%{}", stage.group), FilterExpression::all())
        .consume_from(ConsumeFrom::First)
        .listener(dead.listener())
        .start()
        .await
        .unwrap();
    until("the dead letter", || dead.len() == 1).await;
    assert_eq!(dead.bodies(), ["poison"]);
    graveyard.shutdown().await;
    consumer.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_share_the_queues_and_take_over_at_once() {
    let Some(stage) = Stage::new("share", 8).await else {
        return;
    };
    let producer = stage.producer().await;
    let counts: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let listener = || {
        let counts = Arc::clone(&counts);
        Listener::concurrent(move |batch: Vec<MessageExt>| {
            for message in &batch {
                *counts
                    .lock()
                    .unwrap()
                    .entry(String::from_utf8_lossy(message.body()).into_owned())
                    .or_default() += 1;
            }
            async {
                tokio::time::sleep(Duration::from_millis(2)).await;
                ConcurrentStatus::Success
            }
        })
    };
    let mine = |consumer: &PushConsumer| {
        consumer
            .assignment()
            .iter()
            .filter(|queue| queue.topic == stage.topic)
            .count()
    };
    let first = stage.member().listener(listener()).start().await.unwrap();
    until("eight queues", || mine(&first) == 8).await;
    let sending = tokio::spawn({
        let (producer, topic) = (producer.clone(), stage.topic.clone());
        async move {
            for message in numbered(&topic, 0..2000) {
                producer.send(message).await.unwrap();
            }
        }
    });
    let joined = Instant::now();
    let second = stage.member().listener(listener()).start().await.unwrap();
    until("four queues each", || {
        mine(&first) == 4 && mine(&second) == 4
    })
    .await;
    println!("second member had its half after {:?}", joined.elapsed());
    second.shutdown().await;
    let left = until("eight queues again", || mine(&first) == 8).await;
    println!("first member had all queues {left:?} after the second left");
    assert!(left < Duration::from_secs(5));
    sending.await.unwrap();
    until("2000 messages", || counts.lock().unwrap().len() == 2000).await;
    let doubles = counts
        .lock()
        .unwrap()
        .values()
        .filter(|count| **count > 1)
        .count();
    println!("{doubles} of 2000 handled twice");
    assert!(
        doubles <= 20,
        "at most what was in the handlers of the member that gave queues up"
    );
    first.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_queue_is_handed_over_without_a_gap_or_a_double() {
    let Some(stage) = Stage::new("ohand", 4).await else {
        return;
    };
    let producer = stage.producer().await;
    let log: Arc<Mutex<Vec<(i32, String)>>> = Arc::default();
    let running: Arc<Mutex<HashMap<i32, usize>>> = Arc::default();
    let clashes = Arc::new(AtomicUsize::new(0));
    let listener = || {
        let (log, running, clashes) =
            (Arc::clone(&log), Arc::clone(&running), Arc::clone(&clashes));
        Listener::orderly(move |batch: Vec<MessageExt>| {
            let (log, running, clashes) =
                (Arc::clone(&log), Arc::clone(&running), Arc::clone(&clashes));
            async move {
                let queue = batch[0].queue_id();
                {
                    let mut running = running.lock().unwrap();
                    let count = running.entry(queue).or_default();
                    *count += 1;
                    if *count > 1 {
                        clashes.fetch_add(1, Ordering::Relaxed);
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                log.lock()
                    .unwrap()
                    .push((queue, String::from_utf8_lossy(batch[0].body()).into_owned()));
                *running.lock().unwrap().get_mut(&queue).unwrap() -= 1;
                OrderlyStatus::Success
            }
        })
    };
    for number in 0..400 {
        let message = Message::new(&stage.topic, format!("m{number:04}"));
        producer
            .send_ordered(message, |queues, _| number % queues.len())
            .await
            .unwrap();
    }
    let first = stage.member().listener(listener()).start().await.unwrap();
    until("some messages", || log.lock().unwrap().len() > 40).await;
    let joined = Instant::now();
    let second = stage.member().listener(listener()).start().await.unwrap();
    let count = |consumer: &PushConsumer| {
        consumer
            .assignment()
            .iter()
            .filter(|queue| queue.topic == stage.topic)
            .count()
    };
    until("half of the queues", || count(&second) == 2).await;
    println!("orderly hand-over took {:?}", joined.elapsed());
    until("100 messages", || log.lock().unwrap().len() > 200).await;
    first.shutdown().await;
    until("400 messages", || log.lock().unwrap().len() >= 400).await;
    let log = log.lock().unwrap().clone();
    assert_eq!(log.len(), 400, "none twice");
    for queue in 0..4 {
        assert!(
            log.iter()
                .filter(|(id, _)| *id == queue)
                .is_sorted_by_key(|(_, body)| body.clone()),
            "queue {queue} in order"
        );
    }
    assert_eq!(clashes.load(Ordering::Relaxed), 0, "never two at a time");
    second.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delayed_large_and_broadcast_messages_arrive() {
    let Some(stage) = Stage::new("misc", 2).await else {
        return;
    };
    let producer = stage.producer().await;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut members = Vec::new();
    for folder in &folders {
        let seen = Seen::default();
        let mut config = stage.client.config().clone();
        config.offset_dir = Some(folder.path().to_owned());
        let builder = stage
            .member()
            .config(config)
            .message_model(MessageModel::Broadcasting);
        members.push((
            builder.listener(seen.listener()).start().await.unwrap(),
            seen,
        ));
    }
    let sent_at = Instant::now();
    producer
        .send(Message::new(&stage.topic, "later").delay_level(1))
        .await
        .unwrap();
    let large = "0123456789".repeat(100_000);
    producer
        .send(Message::new(&stage.topic, large.clone()))
        .await
        .unwrap();
    for (_, seen) in &members {
        until("both messages", || seen.len() == 2).await;
    }
    println!("delayed by {:?}", sent_at.elapsed());
    assert!(sent_at.elapsed() >= Duration::from_millis(990));
    for (consumer, seen) in members {
        let bodies = seen.bodies();
        assert!(bodies[0] == large && bodies[1] == "later");
        consumer.shutdown().await;
    }
    for folder in &folders {
        let files: Vec<_> = walk(folder.path());
        assert!(
            files.iter().any(|file| file.ends_with("offsets.json")),
            "{files:?}"
        );
    }
    stage.end().await;
}

fn walk(folder: &std::path::Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            files.extend(walk(&entry.path()));
        } else {
            files.push(entry.path().display().to_string());
        }
    }
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_group_is_moved_back() {
    let Some(stage) = Stage::new("reset", 2).await else {
        return;
    };
    let producer = stage.producer().await;
    for message in numbered(&stage.topic, 0..10) {
        producer.send(message).await.unwrap();
    }
    let seen = Seen::default();
    let consumer = stage
        .consumer()
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    until("ten messages", || seen.len() == 10).await;
    let moved = stage
        .client
        .admin()
        .reset_offset(&stage.group, &stage.topic, 0)
        .await
        .unwrap();
    assert_eq!(moved.values().copied().collect::<Vec<_>>(), [0, 0]);
    // The reset shows with the next pull: a message ends those that wait.
    for queue in producer.publish_queues(&stage.topic).await.unwrap() {
        producer
            .send_to_queue(Message::new(&stage.topic, "nudge"), &queue)
            .await
            .unwrap();
    }
    let took = until("ten messages again", || seen.len() >= 22).await;
    println!("moved back within {took:?}");
    consumer.shutdown().await;
    assert_eq!(
        stage
            .client
            .admin()
            .lag(&stage.group, &stage.topic)
            .await
            .unwrap(),
        0
    );
    stage.end().await;
}
