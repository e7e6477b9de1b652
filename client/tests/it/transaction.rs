//! Transactions against the scripted cluster.
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bindery_client::{
    BoxError, ClientError, HalfMessage, LocalFailure, LocalState, Message, MessageExt,
    MessageIllegal, Producer, SendStatus, TransactionArgs, TransactionListener,
    TransactionProducer, TransactionProducerBuilder,
};
use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Reply,
    headers::{SendHeader, SendReply},
    message::Properties,
};
use tokio::sync::Semaphore;

use crate::fake::{Fake, until};

/// Does what the message says, and notes what it was asked.
#[derive(Clone, Default)]
struct Script {
    log: Arc<Mutex<Vec<String>>>,
    /// When there is one, checks wait for a permit.
    gate: Option<Arc<Semaphore>>,
}

impl Script {
    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

fn outcome(text: &[u8]) -> Result<LocalState, BoxError> {
    match text {
        b"commit" => Ok(LocalState::Commit),
        b"rollback" => Ok(LocalState::Rollback),
        b"fail" => Err("no database".into()),
        b"panic" => panic!("as the message says"),
        _ => Ok(LocalState::Unknown),
    }
}

impl TransactionListener for Script {
    async fn execute_local(
        &self,
        half: &HalfMessage,
        args: &TransactionArgs,
    ) -> Result<LocalState, BoxError> {
        let args = args.downcast_ref::<&str>().copied().unwrap_or("-");
        let message = half.message();
        assert_eq!(
            message.properties().get("UNIQ_KEY"),
            Some(half.transaction_id())
        );
        self.log.lock().unwrap().push(format!("local {args}"));
        outcome(message.body())
    }

    async fn check_local(&self, message: &MessageExt) -> Result<LocalState, BoxError> {
        let id = message.transaction_id().unwrap().to_owned();
        if let Some(gate) = &self.gate {
            gate.acquire().await?.forget();
        }
        self.log.lock().unwrap().push(format!("check {id}"));
        outcome(id.as_bytes())
    }
}

fn builder(fake: &Fake, script: &Script) -> TransactionProducerBuilder {
    Producer::builder("pg")
        .config(fake.config())
        .topics(["t"])
        .transactional(script.clone())
}

async fn start(fake: &Fake, script: &Script) -> TransactionProducer {
    builder(fake, script).start().await.unwrap()
}

/// `commitOrRollback` of every verdict, and whether it was to be answered.
fn verdicts(fake: &Fake) -> Vec<(i32, bool)> {
    let state = fake.state.lock().unwrap();
    let verdicts = state.ended.iter();
    verdicts
        .map(|(_, header, answered)| (header.commit_or_rollback, *answered))
        .collect()
}

#[tokio::test]
async fn each_outcome_is_told_to_the_broker_that_has_the_half_message() {
    let fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 1);
    let script = Script::default();
    let producer = start(&fake, &script).await;
    let cases = [
        ("commit", LocalState::Commit, 8, None),
        ("rollback", LocalState::Rollback, 12, None),
        ("unknown", LocalState::Unknown, 0, None),
        (
            "fail",
            LocalState::Unknown,
            0,
            Some("the local transaction failed"),
        ),
        (
            "panic",
            LocalState::Unknown,
            0,
            Some("the local transaction panicked"),
        ),
    ];
    for (number, (body, state, code, failure)) in cases.into_iter().enumerate() {
        let args = TransactionArgs::new("args");
        let sent = producer
            .send_in_transaction(Message::new("t", body), args)
            .await
            .unwrap();
        let cause = sent.failure.as_deref().map(ToString::to_string);
        assert_eq!(
            (sent.state, cause.as_deref(), sent.reported),
            (state, failure, true)
        );
        until("the verdict", || verdicts(&fake).len() == number + 1).await;
        let (broker, header, answered) = fake.state.lock().unwrap().ended[number].clone();
        assert_eq!(
            (&broker, header.commit_or_rollback, answered),
            (&sent.sent.queue.broker_name, code, false)
        );
        assert_eq!(
            (&*header.producer_group, header.topic.as_deref()),
            ("pg", Some("t"))
        );
        assert_eq!(header.tran_state_table_offset, sent.sent.queue_offset);
        assert_eq!(
            header.commit_log_offset, sent.sent.queue_offset,
            "from the broker's id"
        );
        assert_eq!(
            (
                &*header.msg_id,
                header.transaction_id.as_deref(),
                header.from_transaction_check
            ),
            (&*sent.transaction_id, Some(&*sent.transaction_id), false)
        );
    }
    assert_eq!(script.log(), ["local args"; 5]);
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_half_message_is_marked_and_belongs_to_its_group() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("ns%t", 1);
    let seen = Arc::new(Mutex::new(None));
    let seen_by = Arc::clone(&seen);
    fake.rule(move |_, frame| {
        if frame.request_code() == RequestCode::SEND_MESSAGE_V2 {
            let header: SendHeader<'_> = frame.header().unwrap();
            *seen_by.lock().unwrap() = Some(header.into_owned());
        }
        None
    });
    let producer = Producer::builder("pg")
        .config(fake.config().namespace("ns"))
        .transactional(Script::default())
        .start()
        .await
        .unwrap();
    let message =
        Message::new("t", vec![b'x'; 5000]).property("CHECK_IMMUNITY_TIME_IN_SECONDS", "9");
    let (sent, value) = producer
        .transaction(message, |half| async move {
            let properties = half.message().properties();
            assert_eq!(
                properties.get("__transactionId__"),
                Some(half.transaction_id())
            );
            (LocalState::Commit, half.message().body().len())
        })
        .await
        .unwrap();
    assert_eq!((sent.state, value), (LocalState::Commit, Some(5000)));
    let header: SendHeader<'_> = seen.lock().unwrap().take().unwrap();
    assert_eq!(header.sys_flag, 0x305, "compressed, prepared");
    let properties = Properties::parse(&header.properties.unwrap());
    for (name, value) in [
        ("TRAN_MSG", "true"),
        ("PGROUP", "ns%pg"),
        ("UNIQ_KEY", &sent.transaction_id),
        ("CHECK_IMMUNITY_TIME_IN_SECONDS", "9"),
    ] {
        assert_eq!(properties.get(name), Some(value));
    }
    until("the verdict", || verdicts(&fake) == [(8, false)]).await;
    let (_, verdict, _) = fake.state.lock().unwrap().ended[0].clone();
    assert_eq!(
        (&*verdict.producer_group, verdict.topic.as_deref()),
        ("ns%pg", Some("ns%t"))
    );
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn the_closure_form_answers_the_callers_value_unless_it_panics() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    let producer = start(&fake, &Script::default()).await;
    let message = || Message::new("t", "x");
    let (sent, value) = producer
        .transaction(message(), |_| async { (LocalState::Rollback, "why") })
        .await
        .unwrap();
    assert_eq!((sent.state, value), (LocalState::Rollback, Some("why")));
    let (sent, value) = producer
        .transaction(message(), |half| async move {
            assert_eq!(half.message().topic(), "other");
            (LocalState::Commit, 1)
        })
        .await
        .unwrap();
    assert_eq!((sent.state, value), (LocalState::Unknown, None));
    assert!(matches!(
        sent.failure.as_deref(),
        Some(LocalFailure::Panicked)
    ));
    until("both verdicts", || {
        verdicts(&fake) == [(12, false), (0, false)]
    })
    .await;
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn a_half_message_stored_less_safely_is_rolled_back_unheard() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.rule(|_, frame| {
        (frame.request_code() == RequestCode::SEND_MESSAGE_V2).then(|| {
            let reply = SendReply {
                msg_id: format!("{:032X}", 77).into(),
                ..SendReply::default()
            };
            Reply::code(ResponseCode::SLAVE_NOT_AVAILABLE).with(&reply)
        })
    });
    let script = Script::default();
    let producer = start(&fake, &script).await;
    let sent = producer
        .send_in_transaction(Message::new("t", "commit"), TransactionArgs::none())
        .await
        .unwrap();
    assert_eq!(sent.state, LocalState::Rollback);
    assert!(matches!(
        sent.failure.as_deref(),
        Some(LocalFailure::NotStored(SendStatus::SlaveNotAvailable))
    ));
    until("the verdict", || verdicts(&fake) == [(12, false)]).await;
    assert!(script.log().is_empty());
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn without_a_half_message_there_is_no_local_transaction() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.rule(|_, frame| {
        (frame.request_code() == RequestCode::SEND_MESSAGE_V2)
            .then(|| Reply::code(ResponseCode::NO_PERMISSION))
    });
    let script = Script::default();
    let producer = start(&fake, &script).await;
    let send = |message| producer.send_in_transaction(message, TransactionArgs::none());
    let error = send(Message::new("t", "commit")).await.unwrap_err();
    assert_eq!(error.response_code(), 16);
    let error = send(Message::new("t", "commit").delay_level(2))
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        ClientError::MessageIllegal(MessageIllegal::TransactionKind { what: "a delay" })
    ));
    producer.shutdown().await;
    let error = send(Message::new("t", "commit")).await.unwrap_err();
    assert!(matches!(error, ClientError::ShutDown { .. }));
    assert!(script.log().is_empty() && verdicts(&fake).is_empty());
    fake.stop().await;
}

#[tokio::test]
async fn an_awaited_verdict_is_tried_again_and_a_lost_one_is_reported() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    let refused = Arc::new(Mutex::new(2));
    let left = Arc::clone(&refused);
    fake.rule(move |_, frame| {
        let mut left = left.lock().unwrap();
        if frame.request_code() != RequestCode::END_TRANSACTION || *left == 0 {
            return None;
        }
        *left -= 1;
        Some(Reply::code(ResponseCode::SYSTEM_BUSY))
    });
    let script = Script::default();
    let producer = builder(&fake, &script)
        .await_end(true)
        .start()
        .await
        .unwrap();
    let ending = |body: &'static str| {
        producer.send_in_transaction(Message::new("t", body), TransactionArgs::none())
    };
    assert!(ending("commit").await.unwrap().reported);
    assert_eq!(verdicts(&fake), [(8, true)], "the third attempt");
    *refused.lock().unwrap() = 3;
    let sent = ending("commit").await.unwrap();
    assert_eq!((sent.state, sent.reported), (LocalState::Commit, false));
    // Brokers do not answer this one.
    assert!(ending("unknown").await.unwrap().reported);
    until("the last verdict", || {
        verdicts(&fake) == [(8, true), (0, false)]
    })
    .await;
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn c20_a_producer_that_has_sent_nothing_is_asked_by_every_broker() {
    let fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 1);
    let script = Script::default();
    let producer = start(&fake, &script).await;
    let cases = [("commit", 8), ("rollback", 12), ("fail", 0), ("panic", 0)];
    for (place, (id, _)) in (0_i64..).zip(cases) {
        let broker = if place % 2 == 0 { "a" } else { "b" };
        assert_eq!(fake.ask_about(broker, "pg", id, place), 1);
    }
    until("four verdicts", || verdicts(&fake).len() == 4).await;
    let ended = fake.state.lock().unwrap().ended.clone();
    for (place, (id, code)) in (0_i64..).zip(cases) {
        let (broker, header, answered) = ended
            .iter()
            .find(|(_, header, _)| header.msg_id == id)
            .unwrap();
        assert_eq!(broker, if place % 2 == 0 { "a" } else { "b" });
        assert_eq!(
            (header.commit_or_rollback, header.from_transaction_check),
            (code, true)
        );
        assert_eq!(
            (header.tran_state_table_offset, header.commit_log_offset),
            (place, place * 100)
        );
        assert_eq!(
            (
                &*header.producer_group,
                header.topic.as_deref(),
                header.transaction_id.as_deref()
            ),
            ("pg", Some("RMQ_SYS_TRANS_HALF_TOPIC"), Some(id))
        );
        assert!(!answered, "one way");
    }
    producer.shutdown().await;
    assert_eq!(fake.ask_about("a", "pg", "commit", 9), 0, "it has left");
    fake.stop().await;
}

#[tokio::test]
async fn a_broker_that_appears_later_hears_of_the_producer_without_a_send() {
    let fake = Fake::start(&["a"]).await;
    let script = Script::default();
    let mut config = fake.config();
    config.poll_name_server_interval = Duration::from_millis(10);
    let producer = Producer::builder("pg")
        .config(config)
        .topics(["t"])
        .transactional(script)
        .start()
        .await
        .unwrap();
    assert_eq!(fake.count(RequestCode::HEART_BEAT), 0);
    fake.topic("t", 1);
    until("the heartbeat", || fake.count(RequestCode::HEART_BEAT) == 1).await;
    assert_eq!(fake.ask_about("a", "pg", "commit", 0), 1);
    until("the verdict", || verdicts(&fake) == [(8, false)]).await;
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn checks_beyond_the_limit_are_dropped_and_waiting_ones_end_with_the_producer() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    let gate = Arc::new(Semaphore::new(0));
    let script = Script {
        gate: Some(Arc::clone(&gate)),
        ..Script::default()
    };
    let producer = builder(&fake, &script)
        .check_workers(1)
        .check_queue(2)
        .start()
        .await
        .unwrap();
    for place in 0..5 {
        fake.ask_about("a", "pg", "commit", place);
    }
    // Questions are read in the order they were sent: an answered request behind them says that all were read.
    producer
        .producer()
        .send(Message::new("t", "marker"))
        .await
        .unwrap();
    gate.add_permits(1);
    until("one verdict", || verdicts(&fake).len() == 1).await;
    let stopping = producer.clone();
    let stop = tokio::spawn(async move { stopping.shutdown().await });
    until("the stop", || {
        // The one that waited for the worker is dropped, the one that runs is waited for.
        gate.add_permits(1);
        stop.is_finished()
    })
    .await;
    let checks = script.log().len();
    assert!((1..=3).contains(&checks), "{checks}");
    assert_eq!(verdicts(&fake).len(), checks);
    fake.stop().await;
}

#[tokio::test]
async fn a_check_of_an_unknown_group_is_left_to_others() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    let plain = Producer::builder("pg")
        .config(fake.config())
        .topics(["t"])
        .start()
        .await
        .unwrap();
    assert_eq!(fake.ask_about("a", "pg", "commit", 0), 1);
    plain.send(Message::new("t", "marker")).await.unwrap();
    assert!(verdicts(&fake).is_empty());
    plain.shutdown().await;
    fake.stop().await;
}
