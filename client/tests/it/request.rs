//! Request and reply, with a server that hands on what the test says.
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bindery_client::{
    ClientError, Message, MessageExt, MessageIllegal, Producer, consumer::Origin,
};
use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply, Request},
    headers::{PushReplyHeader, SendHeader},
    message::{
        PhysicalOffset, Properties, QueueOffset, StoredMessage, SysFlag,
        compress::{self, Compression},
    },
};

use crate::fake::{Fake, until};

const PATIENCE: Duration = Duration::from_secs(30);

async fn producer(fake: &Fake) -> Producer {
    Producer::builder("pg")
        .config(fake.config())
        .start()
        .await
        .unwrap()
}

/// Keeps the sends of one kind.
fn watch(fake: &Fake, code: RequestCode) -> Arc<Mutex<Vec<(String, Properties)>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    fake.rule(move |broker, frame| {
        if frame.request_code() == code {
            kept.lock()
                .unwrap()
                .push((broker.to_owned(), properties(frame)));
        }
        None
    });
    seen
}

fn properties(frame: &Frame) -> Properties {
    let header: SendHeader<'_> = frame.header().unwrap();
    Properties::parse(&header.properties.unwrap())
}

fn pushed(correlation_id: &str, sys_flag: i32, body: Vec<u8>) -> Request {
    let header = PushReplyHeader {
        topic: "C_REPLY_TOPIC".into(),
        born_host: "127.0.0.1:1".into(),
        store_host: "not an address".into(),
        sys_flag,
        properties: Some(
            format!("MSG_TYPE\u{1}reply\u{2}CORRELATION_ID\u{1}{correlation_id}\u{2}").into(),
        ),
        ..PushReplyHeader::default()
    };
    Request::new(RequestCode::PUSH_REPLY_MESSAGE_TO_CLIENT)
        .with(&header)
        .body(body)
}

/// A request as a consumer got it, from broker `b`.
fn request_of(properties: &str) -> MessageExt {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    let stored = StoredMessage {
        topic: "t".into(),
        queue_id: 0,
        flag: 0,
        queue_offset: QueueOffset(0),
        physical_offset: PhysicalOffset(0),
        sys_flag: SysFlag(0),
        born_timestamp: 0,
        born_host: nowhere,
        store_timestamp: 0,
        store_host: nowhere,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: "q".into(),
        body_crc: 0,
        properties: Properties::parse(properties),
    };
    let origin = Origin {
        broker_name: "b",
        min_offset: 0,
        max_offset: 1,
        namespace: None,
    };
    MessageExt::received(stored, &origin).unwrap()
}

const REQUEST: &str =
    "CLUSTER\u{1}C\u{2}CORRELATION_ID\u{1}c\u{2}REPLY_TO_CLIENT\u{1}r\u{2}TTL\u{1}3000\u{2}";

#[tokio::test]
async fn a_request_ends_with_the_reply_that_has_its_correlation_id() {
    let fake = Fake::start(&["a", "b"]).await;
    fake.topic("t", 1);
    fake.topic("C_REPLY_TOPIC", 1);
    let sent = watch(&fake, RequestCode::SEND_MESSAGE_V2);
    let producer = producer(&fake).await;
    let requester = producer.clone();
    let request =
        tokio::spawn(async move { requester.request(Message::new("t", "q"), PATIENCE).await });
    until("the request is sent", || !sent.lock().unwrap().is_empty()).await;
    let asked = sent.lock().unwrap()[0].1.clone();
    assert_eq!(asked.get("REPLY_TO_CLIENT"), Some(producer.client().id()));
    assert_eq!(asked.get("TTL"), Some("30000"));
    // The reply may come over any broker of the cluster, so all have been greeted.
    let from = [fake.producers("a", "pg"), fake.producers("b", "pg")].map(|mut all| all.remove(0));
    let id = asked.get("CORRELATION_ID").unwrap();
    let body = compress::deflate(Compression::Zlib, 5, b"the answer").unwrap();
    let flag = SysFlag::default().with_compression(Compression::Zlib).0;
    for (connection, id) in [(&from[0], "another"), (&from[1], id), (&from[0], id)] {
        let push = pushed(id, flag, body.clone());
        let taken = connection.call(push, PATIENCE).await.unwrap();
        assert_eq!(taken.response_code(), ResponseCode::SUCCESS, "{id}");
    }
    let reply = request.await.unwrap().unwrap();
    assert_eq!(&reply.body()[..], b"the answer");
    assert!(reply.property("ARRIVE_TIME").is_some());
    assert_eq!(reply.broker_name(), "b");
    let broken = from[0]
        .call(pushed("x", flag, b"no zlib".to_vec()), PATIENCE)
        .await
        .unwrap();
    assert_eq!(broken.response_code(), ResponseCode::SYSTEM_ERROR);
    producer.shutdown().await;
    fake.stop().await;
}

#[tokio::test]
async fn l21_a_request_without_reply_ends_with_the_time_the_send_or_the_client() {
    let fake = Fake::start(&["a"]).await;
    fake.topic("t", 1);
    fake.topic("C_REPLY_TOPIC", 1);
    let producer = producer(&fake).await;
    let short = Duration::from_millis(50);
    let error = producer
        .request(Message::new("t", "q"), short)
        .await
        .unwrap_err();
    assert_eq!(error.response_code(), 10_006);
    assert_eq!(
        error.to_string(),
        "send request message to <t> OK, but wait reply message timeout, 50 ms."
    );
    let requester = producer.clone();
    let sent = watch(&fake, RequestCode::SEND_MESSAGE_V2);
    let waiting =
        tokio::spawn(async move { requester.request(Message::new("t", "q"), PATIENCE).await });
    until("the request is sent", || !sent.lock().unwrap().is_empty()).await;
    fake.rule(|_, frame| {
        (frame.request_code() == RequestCode::SEND_MESSAGE_V2)
            .then(|| Reply::code(ResponseCode::MESSAGE_ILLEGAL))
    });
    let error = producer
        .request(Message::new("t", "q"), PATIENCE)
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::SendFailed { .. }), "{error}");
    producer.client().shutdown().await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::ShutDown { .. }), "{error}");
    fake.stop().await;
}

#[tokio::test]
async fn a_reply_goes_to_the_broker_of_its_request_first_and_to_each_broker_once() {
    let fake = Fake::start(&["a", "b", "c"]).await;
    fake.topic("C_REPLY_TOPIC", 3);
    let sent = watch(&fake, RequestCode::SEND_REPLY_MESSAGE_V2);
    let producer = producer(&fake).await;
    let request = request_of(REQUEST);
    assert!(request.is_request());
    let mut reply = request.reply("the answer").unwrap();
    reply.message = reply.message.tags("done");
    producer.send_reply(reply.clone()).await.unwrap();
    let (broker, properties) = sent.lock().unwrap().remove(0);
    assert_eq!(broker, "b");
    for (name, value) in [
        ("MSG_TYPE", "reply"),
        ("CORRELATION_ID", "c"),
        ("REPLY_TO_CLIENT", "r"),
        ("TTL", "3000"),
        ("TAGS", "done"),
    ] {
        assert_eq!(properties.get(name), Some(value), "{name}");
    }
    fake.rule(|_, frame| {
        (frame.request_code() == RequestCode::SEND_REPLY_MESSAGE_V2)
            .then(|| Reply::error(ResponseCode::SYSTEM_ERROR, "channel of <r> not found."))
    });
    let error = producer.send_reply(reply).await.unwrap_err();
    assert_eq!(error.response_code(), 1);
    let tried: Vec<_> = sent
        .lock()
        .unwrap()
        .iter()
        .map(|(broker, _)| broker.clone())
        .collect();
    assert_eq!(tried, ["b", "a", "c"], "stored once by each");
    producer.shutdown().await;
    fake.stop().await;
}

#[test]
fn l21_what_is_no_request_has_no_reply() {
    for missing in ["CLUSTER", "CORRELATION_ID", "REPLY_TO_CLIENT"] {
        let message = request_of(&REQUEST.replace(missing, "X"));
        let error = message.reply("x").unwrap_err();
        assert_eq!(error, MessageIllegal::NotARequest { property: missing });
        assert_eq!(error.response_code(), 10_007);
    }
}
