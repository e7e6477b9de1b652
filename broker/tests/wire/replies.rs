//! Replies (324, 325) on their way to requesters (326).
use std::sync::{Arc, Mutex};

use bindery_protocol::{
    bodies::{self, HeartbeatData, ProducerData},
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply, Request},
    headers::{PushReplyHeader, SendHeader, SendReply},
};
use bindery_remoting::{ConnectOptions, Connection, Responder, Service};

use crate::support::{Fixture, PATIENCE, START, until};

const REPLY_TOPIC: &str = "DefaultCluster_REPLY_TOPIC";
const TO_ME: &str = "MSG_TYPE\u{1}reply\u{2}REPLY_TO_CLIENT\u{1}me\u{2}CORRELATION_ID\u{1}c\u{2}";

/// A requester: keeps what is pushed to it and answers with its code, or never.
struct Requester {
    code: Option<ResponseCode>,
    pushed: Mutex<Vec<Frame>>,
    unanswered: Mutex<Vec<Responder>>,
}

impl Service for Requester {
    fn request(&self, _: &Connection, frame: Frame, responder: Responder) {
        self.pushed.lock().unwrap().push(frame);
        match self.code {
            Some(code) => responder.send(Reply::code(code)),
            None => self.unanswered.lock().unwrap().push(responder),
        }
    }
}

impl Requester {
    async fn connect(fixture: &Fixture, code: Option<ResponseCode>) -> (Connection, Arc<Self>) {
        let requester = Arc::new(Self {
            code,
            pushed: Mutex::default(),
            unanswered: Mutex::default(),
        });
        let address = fixture.broker.local_addr().to_string();
        let options = ConnectOptions::default();
        let connection = Connection::connect(&address, options, requester.clone())
            .await
            .unwrap();
        let data = HeartbeatData {
            client_id: "me".into(),
            producer_data_set: vec![ProducerData {
                group_name: "requesters".into(),
            }],
            ..HeartbeatData::default()
        };
        let heartbeat = Request::new(RequestCode::HEART_BEAT).body(bodies::to_vec(&data).unwrap());
        let answer = connection.call(heartbeat, PATIENCE).await.unwrap();
        assert_eq!(answer.response_code(), ResponseCode::SUCCESS);
        (connection, requester)
    }

    fn count(&self) -> usize {
        self.pushed.lock().unwrap().len()
    }
}

fn header(properties: &str) -> SendHeader<'_> {
    SendHeader {
        producer_group: "repliers".into(),
        topic: REPLY_TOPIC.into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        born_timestamp: START,
        flag: 5,
        properties: Some(properties.into()),
        ..SendHeader::default()
    }
}

fn reply(properties: &str) -> Request {
    Request::new(RequestCode::SEND_REPLY_MESSAGE_V2)
        .with(&header(properties))
        .body("the answer".as_bytes().to_vec())
}

#[tokio::test]
async fn a_reply_reaches_its_requester_and_is_stored() {
    let fixture = Fixture::start().await;
    let (_connection, requester) = Requester::connect(&fixture, Some(ResponseCode::SUCCESS)).await;
    let replier = fixture.peer().await;
    let answer = replier.ok(reply(TO_ME)).await;
    assert_eq!(answer.ext("TRACE_ON").as_deref(), Some("true"));
    let place: SendReply<'_> = answer.header().unwrap();

    let pushed = requester.pushed.lock().unwrap().remove(0);
    assert_eq!(
        pushed.request_code(),
        RequestCode::PUSH_REPLY_MESSAGE_TO_CLIENT
    );
    let header: PushReplyHeader<'_> = pushed.header().unwrap();
    assert_eq!(
        (&*header.topic, &*header.producer_group, header.flag),
        (REPLY_TOPIC, "repliers", 5)
    );
    assert_eq!(header.store_timestamp, START);
    assert_eq!(header.born_host, replier.connection.local().to_string());
    assert_eq!(header.store_host, fixture.broker.address().to_string());
    let properties = header.properties.unwrap();
    for pair in [
        "CORRELATION_ID\u{1}c\u{2}".to_owned(),
        "MSG_REGION\u{1}DefaultRegion\u{2}".to_owned(),
        format!("PUSH_REPLY_TIME\u{1}{START}\u{2}"),
    ] {
        assert!(properties.contains(&pair), "{properties:?}");
    }
    assert_eq!(&*pushed.body, b"the answer");

    let stored = replier.pull(REPLY_TOPIC, 0, 0).await;
    assert_eq!(stored.bodies(), ["the answer"]);
    assert_eq!(stored.messages[0].offset_msg_id(), place.msg_id);
    assert_eq!(stored.messages[0].properties.get("PUSH_REPLY_TIME"), None);
    assert_eq!(stored.messages[0].properties.get("CLUSTER"), None);
}

#[tokio::test]
async fn the_spelled_out_form_is_served_too_and_storing_can_be_switched_off() {
    let fixture = Fixture::with(|config| config.store_reply_message_enable = false).await;
    let (_connection, requester) = Requester::connect(&fixture, Some(ResponseCode::SUCCESS)).await;
    let replier = fixture.peer().await;
    let mut request =
        Request::new(RequestCode::SEND_REPLY_MESSAGE).body("the answer".as_bytes().to_vec());
    header(TO_ME).write_v1(&mut request.ext);
    let answer = replier.ok(request).await;
    let place: SendReply<'_> = answer.header().unwrap();
    assert_eq!((&*place.msg_id, place.queue_offset), ("0", 0));
    assert_eq!(requester.count(), 1);
    assert_eq!(replier.pull(REPLY_TOPIC, 0, 0).await.bodies(), [""; 0]);
}

#[tokio::test]
async fn a_reply_nobody_takes_is_refused_in_apaches_words_and_stored_all_the_same() {
    let fixture = Fixture::start().await;
    let (_connection, requester) =
        Requester::connect(&fixture, Some(ResponseCode::SYSTEM_ERROR)).await;
    let replier = fixture.peer().await;
    for (offset, (properties, remark)) in (0..).zip([
        (
            "A\u{1}b\u{2}".to_owned(),
            "reply message properties[REPLY_TO_CLIENT] is null",
        ),
        (
            TO_ME.replace("me", "you"),
            "push reply message fail, channel of <you> not found.",
        ),
        (TO_ME.to_owned(), "push reply message to mefail."),
    ]) {
        let answer = replier.call(reply(&properties)).await;
        assert_eq!(answer.response_code(), ResponseCode::SYSTEM_ERROR);
        assert_eq!(answer.head.remark.as_deref(), Some(remark));
        let place: SendReply<'_> = answer.header().unwrap();
        assert_eq!(place.queue_offset, offset, "{remark}");
    }
    assert_eq!(requester.count(), 1);
    assert_eq!(replier.pull(REPLY_TOPIC, 0, 0).await.messages.len(), 3);
    let remark = replier
        .refused(
            Request::new(RequestCode::SEND_REPLY_MESSAGE_V2).with(&header(TO_ME)),
            ResponseCode::MESSAGE_ILLEGAL,
        )
        .await;
    assert_eq!(remark, "the message has no body");
}

#[tokio::test]
async fn a_requester_is_found_while_one_of_its_connections_is_left() {
    let fixture = Fixture::start().await;
    let (_first, first) = Requester::connect(&fixture, Some(ResponseCode::SUCCESS)).await;
    let (second, newer) = Requester::connect(&fixture, Some(ResponseCode::SUCCESS)).await;
    let replier = fixture.peer().await;
    replier.ok(reply(TO_ME)).await;
    assert_eq!((first.count(), newer.count()), (0, 1));
    second.close();
    second.closed().await;
    // Apache's broker forgets the client altogether here.
    until(|| async { replier.call(reply(TO_ME)).await.response_code() == ResponseCode::SUCCESS })
        .await;
    assert!(first.count() > 0);
}

#[tokio::test]
async fn replies_beyond_the_room_for_waiting_ones_are_refused_as_busy() {
    let fixture = Fixture::with(|config| config.reply_thread_pool_queue_capacity = 1).await;
    let (connection, requester) = Requester::connect(&fixture, None).await;
    let replier = fixture.peer().await;
    let waiting = replier.connection.clone();
    let first = tokio::spawn(async move { waiting.call(reply(TO_ME), PATIENCE).await });
    until(|| async { requester.count() == 1 }).await;
    let remark = replier
        .refused(reply(TO_ME), ResponseCode::SYSTEM_BUSY)
        .await;
    assert!(remark.starts_with("[OVERLOAD]"), "{remark}");
    connection.close();
    let answer = first.await.unwrap().unwrap();
    assert_eq!(
        answer.head.remark.as_deref(),
        Some("push reply message to mefail.")
    );
}
