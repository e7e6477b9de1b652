use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::{CreateTopicHeader, SendHeader, SendReply},
    message::batch,
};
use bytes::BytesMut;

use crate::support::{Fixture, START, send_request};

#[tokio::test]
async fn a_sent_message_is_pulled_with_its_properties_and_those_of_the_broker() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let (offset, id) = peer
        .send("T", 1, "hello", "TAGS\u{1}A\u{2}UNIQ_KEY\u{1}ID1\u{2}")
        .await;
    assert_eq!(offset, 0);
    let pulled = peer.pull("T", 1, 0).await;
    assert_eq!(
        (pulled.code, pulled.status.as_str(), pulled.next),
        (ResponseCode::SUCCESS, "FOUND", 1)
    );
    let message = &pulled.messages[0];
    assert_eq!(pulled.bodies(), ["hello"]);
    assert_eq!(message.offset_msg_id(), id);
    assert_eq!(
        (
            message.topic.as_str(),
            message.queue_id,
            message.born_timestamp
        ),
        ("T", 1, START)
    );
    for (name, value) in [
        ("TAGS", "A"),
        ("UNIQ_KEY", "ID1"),
        ("MSG_REGION", "DefaultRegion"),
        ("TRACE_ON", "true"),
        ("CLUSTER", "DefaultCluster"),
    ] {
        assert_eq!(message.properties.get(name), Some(value), "{name}");
    }
    fixture.broker.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_message_without_a_unique_key_gets_one() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let answer = peer.ok(send_request("T", 0, "x", "")).await;
    let reply: SendReply<'_> = answer.header().unwrap();
    let made = reply.transaction_id.unwrap().into_owned();
    assert_eq!(
        peer.pull("T", 0, 0).await.messages[0]
            .properties
            .get("UNIQ_KEY"),
        Some(made.as_str())
    );
}

#[tokio::test]
async fn refusals_come_with_apaches_codes_and_still_tell_region_and_trace() {
    let fixture = Fixture::with(|config| config.reject_transaction_message = true).await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "x", "").await;
    for (request, code) in [
        (
            send_request("no good", 0, "x", ""),
            ResponseCode::INVALID_PARAMETER,
        ),
        (
            send_request(&"t".repeat(128), 0, "x", ""),
            ResponseCode::INVALID_PARAMETER,
        ),
        (
            send_request("T", 77, "x", ""),
            ResponseCode::INVALID_PARAMETER,
        ),
        (send_request("T", 0, "", ""), ResponseCode::MESSAGE_ILLEGAL),
        (
            send_request("SCHEDULE_TOPIC_XXXX", 0, "x", ""),
            ResponseCode::NO_PERMISSION,
        ),
        (
            send_request("T", 0, "x", "TRAN_MSG\u{1}true\u{2}"),
            ResponseCode::NO_PERMISSION,
        ),
        (
            send_request("T", 0, "x", "TIMER_DELAY_SEC\u{1}259201\u{2}"),
            ResponseCode::MESSAGE_ILLEGAL,
        ),
        (
            send_request("T", 0, "x", &format!("a\u{1}{}\u{2}", "b".repeat(32_767))),
            ResponseCode::MESSAGE_ILLEGAL,
        ),
    ] {
        let answer = peer.call(request).await;
        assert_eq!(answer.response_code(), code, "{:?}", answer.head.remark);
        assert_eq!(answer.ext("MSG_REGION").as_deref(), Some("DefaultRegion"));
        assert_eq!(answer.ext("TRACE_ON").as_deref(), Some("true"));
    }
    assert_eq!(
        peer.send("T", 0, "y", "").await.0,
        1,
        "a refused message costs no offset"
    );
}

#[tokio::test]
async fn an_unknown_topic_is_made_unless_that_is_off() {
    let fixture = Fixture::with(|config| config.auto_create_topic_enable = false).await;
    let peer = fixture.peer().await;
    let remark = peer
        .refused(send_request("T", 0, "x", ""), ResponseCode::TOPIC_NOT_EXIST)
        .await;
    assert!(
        remark.starts_with("topic[T] not exist, apply first please!"),
        "{remark}"
    );
    let header = CreateTopicHeader {
        topic: "T".into(),
        default_topic: "TBW102".into(),
        read_queue_nums: 2,
        write_queue_nums: 2,
        perm: 6,
        topic_filter_type: "SINGLE_TAG".into(),
        topic_sys_flag: None,
        order: false,
        attributes: None,
        force: false,
    };
    peer.ok(Request::new(RequestCode::UPDATE_AND_CREATE_TOPIC).with(&header))
        .await;
    peer.send("T", 1, "x", "").await;
}

#[tokio::test]
async fn a_negative_queue_id_leaves_the_choice_to_the_broker() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let answer = peer.ok(send_request("T", -1, "x", "")).await;
    let reply: SendReply<'_> = answer.header().unwrap();
    assert!((0..4).contains(&reply.queue_id));
    let mut request = send_request("U", -1, "x", "");
    request.ext.put("d", "0");
    let answer = peer.ok(request).await;
    assert_eq!(answer.header::<SendReply<'_>>().unwrap().queue_id, 0);
    assert_eq!(peer.pull("U", 0, 0).await.bodies(), ["x"]);
}

#[tokio::test]
async fn a_topic_without_queues_to_write_to_takes_nothing() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "x", "").await;
    let fixture = fixture
        .restart_with(|config| {
            let file = config.store_path_root_dir.join("config/topics.json");
            let text = std::fs::read_to_string(&file).unwrap();
            let place = text.find(r#""topicName": "T","#).unwrap();
            let (before, of_topic) = text.split_at(place);
            let closed = of_topic.replacen(r#""writeQueueNums": 4"#, r#""writeQueueNums": 0"#, 1);
            std::fs::write(file, format!("{before}{closed}")).unwrap();
        })
        .await;
    let peer = fixture.peer().await;
    let remark = peer
        .refused(
            send_request("T", -1, "y", ""),
            ResponseCode::INVALID_PARAMETER,
        )
        .await;
    assert!(remark.contains("writeQueueNums=0"), "{remark}");
    assert_eq!(peer.pull("T", 0, 0).await.bodies(), ["x"]);
}

#[tokio::test]
async fn a_batch_is_stored_as_single_messages_with_consecutive_offsets() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let mut body = BytesMut::new();
    for (text, properties) in [("a", "TAGS\u{1}A\u{2}"), ("b", "TAGS\u{1}B"), ("c", "")] {
        let element = batch::BatchElement {
            flag: 3,
            body: text.as_bytes(),
            properties: properties.as_bytes(),
        };
        batch::encode(&element, &mut body).unwrap();
    }
    let header = SendHeader {
        producer_group: "PG".into(),
        topic: "T".into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id: 2,
        born_timestamp: START,
        properties: Some("UNIQ_KEY\u{1}WHOLE\u{2}".into()),
        batch: Some(true),
        ..SendHeader::default()
    };
    let request = Request::new(RequestCode::SEND_BATCH_MESSAGE)
        .with(&header)
        .body(body.freeze());
    let answer = peer.ok(request.clone()).await;
    let reply: SendReply<'_> = answer.header().unwrap();
    let ids: Vec<String> = reply.msg_id.split(',').map(str::to_owned).collect();
    let pulled = peer.pull("T", 2, 0).await;
    assert_eq!(pulled.bodies(), ["a", "b", "c"]);
    assert_eq!(
        pulled
            .messages
            .iter()
            .map(bindery_protocol::message::StoredMessage::offset_msg_id)
            .collect::<Vec<_>>(),
        ids
    );
    assert_eq!(pulled.messages[1].properties.get("TAGS"), Some("B"));
    assert!(
        pulled.messages.iter().all(
            |message| message.properties.get("UNIQ_KEY") == Some("WHOLE") && message.flag == 3
        )
    );

    for (sys_flag, properties) in [
        (4, ""),
        (8, ""),
        (12, ""),
        (0, "DELAY\u{1}3\u{2}"),
        (0, "TIMER_DELAY_MS\u{1}1000\u{2}"),
        (0, "TIMER_DELIVER_MS\u{1}1000\u{2}DELAY\u{1}1\u{2}"),
    ] {
        let header = SendHeader {
            sys_flag,
            properties: Some(properties.into()),
            ..header.clone()
        };
        for code in [
            RequestCode::SEND_BATCH_MESSAGE,
            RequestCode::SEND_MESSAGE_V2,
        ] {
            let request = Request::new(code).with(&header).body(request.body.clone());
            let remark = peer.refused(request, ResponseCode::MESSAGE_ILLEGAL).await;
            assert!(
                remark.starts_with("a batch holds ordinary messages only"),
                "{remark}"
            );
        }
    }

    let cut = Request {
        body: request.body.slice(..request.body.len() - 1),
        ..request
    };
    peer.refused(cut, ResponseCode::MESSAGE_ILLEGAL).await;
    assert_eq!(
        peer.send("T", 2, "d", "").await.0,
        3,
        "nothing of a damaged batch was stored"
    );
}

#[tokio::test]
async fn a_bad_header_is_answered_and_the_connection_goes_on() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let remark = peer
        .refused(
            Request::new(RequestCode::SEND_MESSAGE_V2),
            ResponseCode::SYSTEM_ERROR,
        )
        .await;
    assert!(remark.contains("producerGroup"), "{remark}");
    let mut request = Request::new(RequestCode::GET_MAX_OFFSET);
    request.ext.put("topic", "T");
    request.ext.put("queueId", "2147483648");
    let remark = peer.refused(request, ResponseCode::SYSTEM_ERROR).await;
    assert!(remark.contains("queueId"), "{remark}");
    let remark = peer
        .refused(
            Request::new(RequestCode(9999)),
            ResponseCode::REQUEST_CODE_NOT_SUPPORTED,
        )
        .await;
    assert_eq!(remark, " request type 9999 not supported");
    peer.refused(
        Request::new(RequestCode::HEART_BEAT).body("{".as_bytes().to_vec()),
        ResponseCode::SYSTEM_ERROR,
    )
    .await;
    peer.send("T", 0, "x", "").await;
}

#[tokio::test]
async fn oneway_messages_are_stored_without_an_answer() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.connection
        .oneway(send_request("T", 0, "x", ""))
        .unwrap();
    // The next answer on the connection comes after the oneway request was served.
    peer.send("T", 0, "y", "").await;
    assert_eq!(peer.pull("T", 0, 0).await.bodies(), ["x", "y"]);
}

#[tokio::test]
async fn a_synchronous_flush_answers_when_the_disk_has_it() {
    let fixture =
        Fixture::with(|config| config.flush_disk_type = bindery_broker::FlushDiskType::Sync).await;
    let peer = fixture.peer().await;
    for expected in 0..20 {
        assert_eq!(peer.send("T", 0, "x", "").await.0, expected);
    }
    assert_eq!(peer.pull("T", 0, 0).await.messages.len(), 20);
    fixture.broker.shutdown().await.unwrap();
}
