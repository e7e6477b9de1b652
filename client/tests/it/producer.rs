//! Sending against the scripted cluster.
use std::{collections::BTreeSet, time::Duration};

use bindery_client::{ClientError, Message, MessageIllegal, Producer, SendStatus};
use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Reply,
    headers::{RecallHeader, RecallReply, SendHeader, SendReply},
    message::{Properties, RecallHandle},
};

use crate::fake::{Fake, until};

async fn producer(fake: &Fake) -> Producer {
    Producer::builder("pg")
        .config(fake.config())
        .start()
        .await
        .unwrap()
}

fn sends(fake: &Fake) -> Vec<(String, i32)> {
    let state = fake.state.lock().unwrap();
    let sends = state
        .requests
        .iter()
        .filter(|(code, ..)| *code == RequestCode::SEND_MESSAGE_V2);
    sends
        .map(|(_, broker, queue)| (broker.clone(), queue.unwrap()))
        .collect()
}

fn answer_sends(fake: &Fake, broker: &'static str, code: ResponseCode) {
    fake.rule(move |asked, frame| {
        let refuse = asked == broker && frame.request_code() == RequestCode::SEND_MESSAGE_V2;
        refuse.then(|| Reply::error(code, "scripted"))
    });
}

#[tokio::test]
async fn a_message_goes_elsewhere_when_a_broker_refuses_for_now() {
    let fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 2);
    answer_sends(&fake, "a", ResponseCode::SERVICE_NOT_AVAILABLE);
    let producer = producer(&fake).await;
    for _ in 0..4 {
        let sent = producer.send(Message::new("t", "x")).await.unwrap();
        assert_eq!(sent.queue.broker_name, "b");
    }
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn an_answer_that_will_not_change_is_not_tried_again() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 2);
    answer_sends(&fake, "a", ResponseCode::MESSAGE_ILLEGAL);
    let producer = producer(&fake).await;
    let error = producer.send(Message::new("t", "x")).await.unwrap_err();
    assert_eq!((error.response_code(), error.is_retryable()), (13, false));
    assert_eq!(sends(&fake).len(), 1);
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn three_attempts_are_made_and_reported() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 4);
    answer_sends(&fake, "a", ResponseCode::SYSTEM_BUSY);
    let producer = producer(&fake).await;
    let error = producer.send(Message::new("t", "x")).await.unwrap_err();
    let ClientError::SendFailed {
        attempts,
        brokers,
        source,
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (*attempts, brokers.len(), source.response_code()),
        (3, 3, 2)
    );
    let queues: BTreeSet<i32> = sends(&fake).into_iter().map(|(_, queue)| queue).collect();
    assert_eq!(queues.len(), 3, "each attempt takes the next queue");
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn the_timeout_covers_all_attempts() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    // A rule without an answer: the request hangs.
    let silent = Fake::start(&["a"]).await;
    let config = fake.config();
    let producer = Producer::builder("pg")
        .config(config)
        .send_timeout(Duration::from_millis(100))
        .start()
        .await
        .unwrap();
    producer.publish_queues("t").await.unwrap();
    hang(&fake);
    let started = std::time::Instant::now();
    let error = producer.send(Message::new("t", "x")).await.unwrap_err();
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(error.response_code(), 10_002);
    producer.shutdown().await;
    silent.stop().await;
    fake.stop().await;
}

/// Sends are answered only much later than any test waits.
fn hang(fake: &Fake) {
    fake.rule(|_, frame| {
        if frame.request_code() == RequestCode::SEND_MESSAGE_V2 {
            std::thread::sleep(Duration::from_millis(300));
        }
        None
    });
}

#[tokio::test]
async fn a_chosen_queue_is_kept_whatever_happens() {
    let fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 2);
    let producer = producer(&fake).await;
    let queues = producer.publish_queues("t").await.unwrap();
    let names: Vec<_> = queues.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["t@a:0", "t@a:1", "t@b:0", "t@b:1"]);
    answer_sends(&fake, "b", ResponseCode::SYSTEM_ERROR);
    let error = producer
        .send_ordered(Message::new("t", "x"), |_, _| 2)
        .await
        .unwrap_err();
    assert_eq!(error.response_code(), 1);
    assert_eq!(
        sends(&fake),
        [("b".to_owned(), 0)],
        "code 1 may have stored it: a second copy would break the order"
    );
    fake.forget_rules();
    answer_sends(&fake, "b", ResponseCode::SYSTEM_BUSY);
    assert!(
        producer
            .send_to_queue(Message::new("t", "x"), &queues[3])
            .await
            .is_err()
    );
    assert_eq!(
        sends(&fake)[1..],
        vec![("b".to_owned(), 1); 3],
        "busy certainly stored nothing"
    );
    let error = producer
        .send_ordered(Message::new("t", "x"), |_, _| 4)
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        ClientError::MessageIllegal(MessageIllegal::QueueIndex { index: 4, count: 4 })
    ));
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_message_stored_less_safely_is_a_result_and_not_an_error() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.rule(|_, frame| {
        let send = frame.request_code() == RequestCode::SEND_MESSAGE_V2;
        send.then(|| {
            let reply = bindery_protocol::headers::SendReply {
                msg_id: "ID".into(),
                ..Default::default()
            };
            Reply::code(ResponseCode::FLUSH_DISK_TIMEOUT).with(&reply)
        })
    });
    let producer = producer(&fake).await;
    let sent = producer.send(Message::new("t", "x")).await.unwrap();
    assert_eq!(
        (sent.status, sends(&fake).len()),
        (SendStatus::FlushDiskTimeout, 1)
    );
    assert_eq!(sent.region, "DefaultRegion");
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_topic_that_does_not_exist_takes_the_default_route() {
    let fake = Fake::start(&["a"]).await;
    let producer = producer(&fake).await;
    let error = producer.send(Message::new("new", "x")).await.unwrap_err();
    assert_eq!(error.response_code(), 10_005, "{error}");
    fake.topic("TBW102", 8);
    assert_eq!(producer.publish_queues("new").await.unwrap().len(), 4);
    producer.send(Message::new("new", "x")).await.unwrap();
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn c19_without_name_servers_the_error_says_so() {
    let none = Producer::builder("pg")
        .name_servers("")
        .start()
        .await
        .unwrap_err();
    assert_eq!(none.response_code(), 10_004);
    // A port that nobody listens on: one that was just given back.
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let producer = Producer::builder("pg")
        .name_servers(&gone.to_string())
        .start()
        .await
        .unwrap();
    let error = producer.send(Message::new("t", "x")).await.unwrap_err();
    assert_eq!(error.response_code(), 10_001, "{error}");
    producer.shutdown().await;
    assert!(matches!(
        producer.send(Message::new("t", "x")).await,
        Err(ClientError::ShutDown { .. })
    ));
}

#[tokio::test]
async fn c19_a_dead_name_server_costs_no_send() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for _ in 0..4 {
        let both = format!("{gone};{}", fake.config().name_servers[0]);
        let producer = Producer::builder("pg")
            .name_servers(&both)
            .start()
            .await
            .unwrap();
        producer.send(Message::new("t", "x")).await.unwrap();
        producer.shutdown().await;
    }
    fake.stop().await;
}

#[tokio::test]
async fn every_header_field_is_what_java_sends() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("ns%t", 1);
    let seen = std::sync::Arc::new(std::sync::Mutex::new(None));
    let seen_by = std::sync::Arc::clone(&seen);
    fake.rule(move |_, frame| {
        if frame.request_code() == RequestCode::SEND_MESSAGE_V2 {
            let header: SendHeader<'_> = frame.header().unwrap();
            *seen_by.lock().unwrap() = Some((header.into_owned(), frame.body.clone()));
        }
        None
    });
    let producer = Producer::builder("pg")
        .config(fake.config().namespace("ns"))
        .start()
        .await
        .unwrap();
    let message = Message::new("t", vec![b'a'; 5000])
        .tags("T")
        .keys(["k1", "k2"])
        .property("p", "v")
        .flag(7)
        .delay_level(3);
    let sent = producer.send(message).await.unwrap();
    assert_eq!(
        sent.queue.topic, "t",
        "the user's name, without the namespace"
    );
    let (header, body) = seen.lock().unwrap().take().unwrap();
    assert_eq!(
        (
            &*header.producer_group,
            &*header.topic,
            &*header.default_topic
        ),
        ("ns%pg", "ns%t", "TBW102")
    );
    assert_eq!(
        (
            header.default_topic_queue_nums,
            header.flag,
            header.sys_flag
        ),
        (4, 7, 0x301)
    );
    assert_eq!(
        (header.batch, header.unit_mode, header.reconsume_times),
        (Some(false), Some(false), Some(0))
    );
    assert!(body.len() < 5000);
    let properties = Properties::parse(&header.properties.unwrap());
    let expected = [
        ("WAIT", "true"),
        ("TAGS", "T"),
        ("KEYS", "k1 k2"),
        ("p", "v"),
        ("DELAY", "3"),
        ("UNIQ_KEY", &*sent.msg_id),
    ];
    assert!(
        expected
            .iter()
            .all(|(name, value)| properties.get(name) == Some(value)),
        "{properties:?}"
    );
    assert_eq!(properties.get("INSTANCE_ID"), Some("ns"));
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn asynchronous_sends_are_bounded_and_finished_by_the_shutdown() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 2);
    let producer = Producer::builder("pg")
        .config(fake.config())
        .max_in_flight(2)
        .start()
        .await
        .unwrap();
    let first = producer.send_async(Message::new("t", "1")).unwrap();
    drop(producer.send_async(Message::new("t", "2")).unwrap());
    let refused = producer.send_async(Message::new("t", "3")).err();
    assert!(
        matches!(refused, Some(ClientError::TooManyInFlight { limit: 2 })),
        "{refused:?}"
    );
    first.await.unwrap();
    producer.shutdown().await;
    assert_eq!(sends(&fake).len(), 2, "the dropped one too");
    fake.stop().await;
}

#[tokio::test]
async fn a_broker_hears_a_heartbeat_before_anything_else() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    let producer = producer(&fake).await;
    producer.send(Message::new("t", "x")).await.unwrap();
    producer.shutdown().await;
    until("the farewell", || {
        fake.count(RequestCode::UNREGISTER_CLIENT) == 1
    })
    .await;
    let codes: Vec<_> = fake
        .state
        .lock()
        .unwrap()
        .requests
        .iter()
        .map(|(code, ..)| *code)
        .collect();
    assert_eq!(
        codes,
        [
            RequestCode::HEART_BEAT,
            RequestCode::SEND_MESSAGE_V2,
            RequestCode::UNREGISTER_CLIENT
        ]
    );
    fake.stop().await;
}

#[tokio::test]
async fn c15_with_one_of_two_brokers_down_every_send_arrives_in_every_way() {
    let mut fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 2);
    let producer = producer(&fake).await;
    for _ in 0..4 {
        producer.send(Message::new("t", "x")).await.unwrap();
    }
    fake.stop_broker("a").await;
    for _ in 0..16 {
        let sent = producer.send(Message::new("t", "x")).await.unwrap();
        assert_eq!(sent.queue.broker_name, "b");
    }
    let waiting: Vec<_> = (0..64)
        .map(|_| producer.send_async(Message::new("t", "x")).unwrap())
        .collect();
    for sent in futures_util::future::join_all(waiting).await {
        assert_eq!(sent.unwrap().queue.broker_name, "b");
    }
    let batch = vec![Message::new("t", "x"), Message::new("t", "y")];
    assert_eq!(
        producer.send_batch(batch).await.unwrap().queue.broker_name,
        "b"
    );
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn without_retries_a_dead_broker_is_the_callers_to_see() {
    let mut fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 1);
    fake.stop_broker("a").await;
    let producer = Producer::builder("pg")
        .config(fake.config())
        .retries(0)
        .async_retries(1)
        .start()
        .await
        .unwrap();
    let mut failed = 0;
    for _ in 0..8 {
        if let Err(error) = producer.send(Message::new("t", "x")).await {
            assert_eq!(error.response_code(), 10_001, "{error}");
            assert!(matches!(error, ClientError::SendFailed { attempts: 1, .. }));
            failed += 1;
        }
    }
    assert_eq!(failed, 4, "its queues are in turn as often as the others");
    for _ in 0..8 {
        let sent = producer.send_async(Message::new("t", "x")).unwrap().await;
        assert_eq!(sent.unwrap().queue.broker_name, "b");
    }
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn an_asynchronous_send_without_retries_makes_one_attempt() {
    let mut fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    let producer = Producer::builder("pg")
        .config(fake.config())
        .retries(5)
        .async_retries(0)
        .start()
        .await
        .unwrap();
    producer.send(Message::new("t", "x")).await.unwrap();
    fake.stop_broker("a").await;
    let error = producer.send_async(Message::new("t", "x")).unwrap().await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, ClientError::SendFailed { attempts: 1, .. }),
        "{error}"
    );
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_silent_name_server_costs_no_more_than_the_sends_time() {
    // Accepts connections and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let mut config = bindery_client::ClientConfig::new(&address);
    config.call_timeout = Duration::from_secs(60);
    let producer = Producer::builder("pg")
        .config(config)
        .send_timeout(Duration::from_millis(200))
        .start()
        .await
        .unwrap();
    let started = std::time::Instant::now();
    let error = producer.send(Message::new("t", "x")).await.unwrap_err();
    assert_eq!(error.response_code(), 10_002, "{error}");
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
    drop(silent);
}

#[tokio::test]
async fn c24_a_dead_broker_is_left_out_for_a_while_when_that_is_wanted() {
    let mut fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 1);
    fake.stop_broker("a").await;
    let producer = Producer::builder("pg")
        .config(fake.config())
        .retries(0)
        .avoid_faulty_brokers(true)
        .start()
        .await
        .unwrap();
    let mut failed = 0;
    for _ in 0..8 {
        failed += usize::from(producer.send(Message::new("t", "x")).await.is_err());
    }
    assert_eq!(failed, 1, "the first to meet it is the last");
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn with_all_brokers_down_three_attempts_are_reported() {
    let mut fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 1);
    let producer = producer(&fake).await;
    producer.send(Message::new("t", "x")).await.unwrap();
    fake.stop_broker("a").await;
    fake.stop_broker("b").await;
    let error = producer.send(Message::new("t", "x")).await.unwrap_err();
    let ClientError::SendFailed {
        attempts, brokers, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((*attempts, error.response_code()), (3, 10_001));
    assert!(
        brokers[0] != brokers[1] && brokers[1] != brokers[2],
        "{brokers:?}"
    );
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_message_stored_less_safely_goes_to_another_broker_when_that_is_wanted() {
    let fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 1);
    let unsafe_at = |broker: &'static str| {
        fake.rule(move |asked, frame| {
            let send = asked == broker && frame.request_code() == RequestCode::SEND_MESSAGE_V2;
            send.then(|| {
                let reply = bindery_protocol::headers::SendReply {
                    msg_id: "ID".into(),
                    ..Default::default()
                };
                Reply::code(ResponseCode::FLUSH_SLAVE_TIMEOUT).with(&reply)
            })
        });
    };
    unsafe_at("a");
    let producer = Producer::builder("pg")
        .config(fake.config())
        .retry_when_not_stored_ok(true)
        .start()
        .await
        .unwrap();
    for _ in 0..4 {
        let sent = producer.send(Message::new("t", "x")).await.unwrap();
        assert_eq!(
            (sent.status, &*sent.queue.broker_name),
            (SendStatus::Ok, "b")
        );
    }
    unsafe_at("b");
    let before = sends(&fake).len();
    let sent = producer.send(Message::new("t", "x")).await.unwrap();
    assert_eq!(sent.status, SendStatus::FlushSlaveTimeout);
    assert_eq!(sends(&fake).len() - before, 3);
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c15_a_broker_that_stops_amid_asynchronous_sends_costs_none_of_them() {
    let mut fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 4);
    let producer = producer(&fake).await;
    let send = |number: usize| {
        let body = format!("m{number}");
        producer.send_async(Message::new("t", body)).unwrap()
    };
    let mut waiting: Vec<_> = (0..1000).map(send).collect();
    until("a start", || sends(&fake).len() > 200).await;
    fake.stop_broker("a").await;
    waiting.extend((1000..2000).map(send));
    let mut ids = BTreeSet::new();
    for sent in waiting {
        ids.insert(sent.await.unwrap().msg_id);
    }
    assert_eq!(ids.len(), 2000, "each ends once, with an id of its own");
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_message_for_later_is_taken_back_at_the_broker_that_has_it() {
    let fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 1);
    let handle = RecallHandle {
        topic: "t".into(),
        broker_name: "b".into(),
        timestamp: "1700000004001".into(),
        message_id: "ID".into(),
    }
    .encode();
    let answered = handle.clone();
    fake.rule(move |broker, frame| match frame.request_code() {
        RequestCode::SEND_MESSAGE_V2 => {
            let header: SendHeader<'_> = frame.header().unwrap();
            let properties = Properties::parse(header.properties.as_deref().unwrap());
            assert_eq!(properties.get("TIMER_DELAY_MS"), Some("90500"));
            assert_eq!(properties.get("DELAY"), None);
            let reply = SendReply {
                msg_id: "0".into(),
                recall_handle: Some(answered.as_str().into()),
                ..SendReply::default()
            };
            Some(Reply::ok().with(&reply))
        }
        RequestCode::RECALL_MESSAGE => {
            let header: RecallHeader<'_> = frame.header().unwrap();
            assert_eq!((broker, &*header.topic), ("b", "t"));
            assert_eq!(header.recall_handle, answered);
            let reply = RecallReply {
                msg_id: "ID".into(),
                region_id: None,
            };
            Some(Reply::ok().with(&reply))
        }
        _ => None,
    });
    let producer = producer(&fake).await;
    let message = Message::new("t", "x").delay_level(3);
    let sent = producer
        .send(message.deliver_after(Duration::from_millis(90_500)))
        .await
        .unwrap();
    assert_eq!(sent.recall_handle.as_deref(), Some(&*handle));
    assert_eq!(producer.recall(&handle).await.unwrap(), "ID");

    let error = producer.recall("no handle").await.unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::MessageIllegal(MessageIllegal::RecallHandle(_))
        ),
        "{error}"
    );
    fake.forget_rules();
    fake.rule(|_, frame| {
        let recall = frame.request_code() == RequestCode::RECALL_MESSAGE;
        recall.then(|| {
            Reply::error(
                ResponseCode::ILLEGAL_OPERATION,
                "recall failed, timestamp invalid",
            )
        })
    });
    let error = producer.recall(&handle).await.unwrap_err();
    assert_eq!(error.response_code(), 604);
    producer.shutdown().await;
    fake.stop().await;
}
