use std::time::Duration;

use bindery_protocol::{
    bodies::{
        self, ConsumerData, HeartbeatData, LockBatchBody, LockBatchReply, MessageQueue,
        ProducerData,
    },
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Request, encode_request_head},
    headers::{
        ConsumerGroupHeader, OffsetReply, QueryOffsetHeader, UnregisterClientHeader,
        UpdateOffsetHeader,
    },
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Fixture, Peer, pull_request, send_request, until};

async fn members(peer: &Peer, group: &str) -> Vec<String> {
    let header = ConsumerGroupHeader {
        consumer_group: group.into(),
    };
    let answer = peer
        .call(Request::new(RequestCode::GET_CONSUMER_LIST_BY_GROUP).with(&header))
        .await;
    if answer.response_code() != ResponseCode::SUCCESS {
        return Vec::new();
    }
    let mut ids = bodies::from_slice::<bodies::ConsumerIds>(&answer.body)
        .unwrap()
        .consumer_id_list;
    ids.sort();
    ids
}

/// One request behind the header of a proxy; the answer's code and remark.
async fn through_a_proxy(fixture: &Fixture, header: &[u8], request: &Request) -> (i32, String) {
    let mut stream = TcpStream::connect(fixture.broker.local_addr())
        .await
        .unwrap();
    let mut bytes = BytesMut::from(header);
    encode_request_head(&mut bytes, request, 1, false);
    bytes.extend_from_slice(&request.body);
    stream.write_all(&bytes).await.unwrap();
    let mut answer = BytesMut::new();
    loop {
        if let Some(frame) = Frame::decode(&mut answer, 1 << 24).unwrap() {
            return (frame.head.code, frame.head.remark.unwrap_or_default());
        }
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_proxy_on_this_host_does_not_make_its_clients_operators() {
    let fixture = Fixture::start().await;
    let config = Request::new(RequestCode::GET_BROKER_CONFIG);
    let afar = b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 10911\r\n";
    let (code, remark) = through_a_proxy(&fixture, afar, &config).await;
    assert_eq!(code, 16, "{remark}");
    assert!(remark.contains("203.0.113.7:4711"), "{remark}");
    let near = b"PROXY TCP4 127.0.0.1 127.0.0.1 4711 10911\r\n";
    assert_eq!(through_a_proxy(&fixture, near, &config).await.0, 0);
    // As in Apache's broker messages keep the address of the connection, and remarks tell that of the client.
    let peer = fixture.peer().await;
    let sent = through_a_proxy(&fixture, afar, &send_request("T", 0, "x", "")).await;
    assert_eq!(sent.0, 0);
    let born = peer.pull("T", 0, 0).await.messages[0].born_host;
    assert!(born.ip().is_loopback(), "{born}");
    let (code, remark) = through_a_proxy(&fixture, afar, &send_request("T", 77, "x", "")).await;
    assert_eq!(code, 29);
    assert!(remark.ends_with("Producer: 203.0.113.7:4711"), "{remark}");
}

#[tokio::test]
async fn members_are_told_when_one_joins_leaves_or_is_lost() {
    let fixture = Fixture::start().await;
    let (first, second, third) = (
        fixture.peer().await,
        fixture.peer().await,
        fixture.peer().await,
    );
    first.consume("g", "c1", "T", "*").await;
    assert_eq!(
        first.asked(1).await[0],
        (RequestCode::NOTIFY_CONSUMER_IDS_CHANGED, "g".to_owned())
    );
    second.consume("g", "c2", "T", "*").await;
    first.asked(2).await;
    third.consume("g", "c3", "T", "*").await;
    first.asked(3).await;
    assert_eq!(members(&first, "g").await, ["c1", "c2", "c3"]);
    second.consume("g", "c2", "T", "*").await;
    assert_eq!(
        first.asked(3).await.len(),
        3,
        "a mere sign of life is no change"
    );

    let leave = UnregisterClientHeader {
        client_id: "c2".into(),
        producer_group: None,
        consumer_group: Some("g".into()),
    };
    second
        .ok(Request::new(RequestCode::UNREGISTER_CLIENT).with(&leave))
        .await;
    first.asked(4).await;
    third.connection.close();
    first.asked(5).await;
    assert_eq!(members(&first, "g").await, ["c1"]);
}

#[tokio::test]
async fn a_client_silent_for_two_minutes_is_taken_out() {
    let fixture = Fixture::start().await;
    let (silent, alive) = (fixture.peer().await, fixture.peer().await);
    silent.consume("g", "silent", "T", "*").await;
    alive.consume("g", "alive", "T", "*").await;
    for _ in 0..14 {
        fixture.clock.advance(Duration::from_secs(10));
        alive.consume("g", "alive", "T", "*").await;
    }
    until(|| async { members(&alive, "g").await == ["alive"] }).await;
}

#[tokio::test]
async fn a_heartbeat_makes_the_group_and_its_retry_topic() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "*").await;
    let mut request = Request::new(RequestCode::GET_TOPIC_CONFIG);
    request.ext.put("topic", "%RETRY%g");
    let config: bodies::TopicConfig = bodies::from_slice(&peer.ok(request).await.body).unwrap();
    assert_eq!((config.write_queue_nums, config.perm), (1, 6));
}

#[tokio::test]
async fn a_heartbeat_with_an_impossible_name_is_refused_as_a_whole() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let heartbeat = |client: &str, consumers: &[&str], producers: &[&str]| {
        let data = HeartbeatData {
            client_id: client.into(),
            consumer_data_set: consumers
                .iter()
                .map(|group| ConsumerData {
                    group_name: (*group).into(),
                    ..ConsumerData::default()
                })
                .collect(),
            producer_data_set: producers
                .iter()
                .map(|group| ProducerData {
                    group_name: (*group).into(),
                })
                .collect(),
            ..HeartbeatData::default()
        };
        Request::new(RequestCode::HEART_BEAT).body(bodies::to_vec(&data).unwrap())
    };
    let too_long = "g".repeat(249);
    for (consumers, producers) in [
        (&["good", "no good"][..], &["fine"][..]),
        (&["good", &too_long], &["fine"]),
        (&["good"], &["fine", "no good"]),
        (&["good"], &["fine", ""]),
    ] {
        peer.refused(
            heartbeat("c", consumers, producers),
            ResponseCode::INVALID_PARAMETER,
        )
        .await;
    }
    let remark = peer
        .refused(
            heartbeat("", &["good"], &["fine"]),
            ResponseCode::SYSTEM_ERROR,
        )
        .await;
    assert!(remark.contains("`clientID`"), "{remark}");
    assert!(members(&peer, "good").await.is_empty());
    let mut request = Request::new(RequestCode::GET_PRODUCER_CONNECTION_LIST);
    request.ext.put("producerGroup", "fine");
    peer.refused(request, ResponseCode::SYSTEM_ERROR).await;

    peer.ok(heartbeat("c", &["good"], &["fine", &"p".repeat(255)]))
        .await;
    assert_eq!(members(&peer, "good").await, ["c"]);
}

fn lock(client_id: &str) -> Request {
    let body = LockBatchBody {
        client_id: client_id.into(),
        consumer_group: "g".into(),
        mq_set: vec![MessageQueue {
            broker_name: "broker-t".into(),
            queue_id: 0,
            topic: "T".into(),
        }],
        ..LockBatchBody::default()
    };
    Request::new(RequestCode::LOCK_BATCH_MQ).body(bodies::to_vec(&body).unwrap())
}

#[tokio::test]
async fn a_queue_lock_lasts_a_minute_without_renewal() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let granted = |client: &'static str| {
        let peer = &peer;
        async move {
            let answer = peer.ok(lock(client)).await;
            bodies::from_slice::<LockBatchReply>(&answer.body)
                .unwrap()
                .lock_ok_mq_set
                .len()
        }
    };
    assert_eq!(granted("a").await, 1);
    assert_eq!(granted("b").await, 0);
    fixture.clock.advance(Duration::from_millis(59_999));
    assert_eq!(granted("b").await, 0);
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(granted("b").await, 1);
    assert_eq!(granted("a").await, 0);
}

fn query(group: &str, queue_id: i32, zero: Option<bool>) -> Request {
    let header = QueryOffsetHeader {
        consumer_group: group.to_owned().into(),
        topic: "T".into(),
        queue_id,
        set_zero_if_not_found: zero,
    };
    Request::new(RequestCode::QUERY_CONSUMER_OFFSET).with(&header)
}

#[tokio::test]
async fn committed_offsets_are_answered_and_missing_ones_by_the_age_of_the_queue() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "*").await;
    peer.send("T", 0, "x", "").await;
    let young = peer.ok(query("g", 0, None)).await;
    assert_eq!(young.header::<OffsetReply>().unwrap().offset, 0);
    peer.refused(query("g", 0, Some(false)), ResponseCode::QUERY_NOT_FOUND)
        .await;
    peer.refused(query("g", 1, None), ResponseCode::QUERY_NOT_FOUND)
        .await;

    let commit = |group: &str, topic: &str, offset| {
        let header = UpdateOffsetHeader {
            consumer_group: group.to_owned().into(),
            topic: topic.to_owned().into(),
            queue_id: 0,
            commit_offset: offset,
        };
        Request::new(RequestCode::UPDATE_CONSUMER_OFFSET).with(&header)
    };
    peer.ok(commit("g", "T", 1)).await;
    assert_eq!(
        peer.ok(query("g", 0, Some(false)))
            .await
            .header::<OffsetReply>()
            .unwrap()
            .offset,
        1
    );
    peer.refused(
        commit("stranger", "T", 1),
        ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
    )
    .await;
    peer.refused(commit("g", "Nope", 1), ResponseCode::TOPIC_NOT_EXIST)
        .await;
    peer.refused(commit("g", "T", -1), ResponseCode::INVALID_PARAMETER)
        .await;
    for queue_id in [-1, 4, i32::MAX] {
        let mut outside = commit("g", "T", 1);
        outside.ext.put_integer("queueId", queue_id);
        peer.refused(outside, ResponseCode::INVALID_PARAMETER).await;
    }

    peer.call(pull_request("g", "T", 0, 0, 1 | 4, 0)).await;
    assert_eq!(
        peer.ok(query("g", 0, None))
            .await
            .header::<OffsetReply>()
            .unwrap()
            .offset,
        0,
        "a pull commits too"
    );
}
