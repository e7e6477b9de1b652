use std::time::Duration;

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::SendBackHeader,
    message::id,
};

use crate::support::{Fixture, Peer, Pulled, pull_request, send_request, until};

/// Starts a pull that may wait and gives back once the broker has it.
async fn waiting_pull(peer: &Peer, request: Request) -> tokio::task::JoinHandle<Pulled> {
    let connection = peer.connection.clone();
    let pull = tokio::spawn(async move {
        Pulled::of(
            &connection
                .call(request, Duration::from_secs(30))
                .await
                .unwrap(),
        )
    });
    // Frames of one connection are served in order: the answer to a later one says that the pull is waiting.
    tokio::task::yield_now().await;
    held(peer, 1).await;
    pull
}

/// Waits until so many pulls wait in the broker.
async fn held(peer: &Peer, count: usize) {
    let wanted = format!("\"pullHeld\":\"{count}\"");
    until(|| async {
        let info = peer
            .ok(Request::new(RequestCode::GET_BROKER_RUNTIME_INFO))
            .await;
        String::from_utf8_lossy(&info.body).contains(&wanted)
    })
    .await;
}

#[tokio::test]
async fn a_waiting_pull_is_answered_by_the_next_message() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "old", "").await;
    let pull = waiting_pull(&peer, pull_request("g", "T", 0, 1, 2 | 4, 15_000)).await;
    peer.send("T", 1, "other queue", "").await;
    peer.send("T", 0, "new", "").await;
    let pulled = pull.await.unwrap();
    assert_eq!((pulled.bodies(), pulled.next), (vec!["new".to_owned()], 2));
}

#[tokio::test]
async fn a_waiting_pull_ends_when_its_time_is_over() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "old", "").await;
    let pull = waiting_pull(&peer, pull_request("g", "T", 0, 1, 2 | 4, 15_000)).await;
    fixture.clock.advance(Duration::from_millis(14_999));
    held(&peer, 1).await;
    fixture.clock.advance(Duration::from_millis(1));
    let pulled = pull.await.unwrap();
    assert_eq!(
        (pulled.code, pulled.next),
        (ResponseCode::PULL_NOT_FOUND, 1)
    );
    assert_eq!(pulled.status, "OFFSET_OVERFLOW_ONE");
}

#[tokio::test]
async fn no_pull_waits_for_longer_than_a_minute_nor_for_a_client_that_went() {
    let fixture = Fixture::start().await;
    let (peer, other) = (fixture.peer().await, fixture.peer().await);
    peer.send("T", 0, "old", "").await;
    let pull = waiting_pull(&peer, pull_request("g", "T", 0, 1, 2 | 4, i64::MAX)).await;
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(pull.await.unwrap().code, ResponseCode::PULL_NOT_FOUND);

    // Nobody waits for the answer of this one: its connection is closed by the test.
    let connection = peer.connection.clone();
    let pull = tokio::spawn(async move {
        let request = pull_request("g", "T", 0, 1, 2 | 4, 15_000);
        connection.call(request, Duration::from_secs(30)).await
    });
    held(&other, 1).await;
    peer.connection.close();
    held(&other, 0).await;
    assert!(pull.await.unwrap().is_err());
}

#[tokio::test]
async fn a_message_of_another_tag_does_not_end_the_wait() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "old", "").await;
    peer.consume("g", "c1", "T", "B").await;
    let pull = waiting_pull(&peer, pull_request("g", "T", 0, 1, 2, 15_000)).await;
    peer.send("T", 0, "a", "TAGS\u{1}A\u{2}").await;
    held(&peer, 1).await;
    peer.send("T", 0, "b", "TAGS\u{1}B\u{2}").await;
    assert_eq!(pull.await.unwrap().bodies(), ["b"]);
}

#[tokio::test]
async fn a_deleted_topic_ends_the_wait() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "old", "").await;
    let pull = waiting_pull(&peer, pull_request("g", "T", 0, 1, 2 | 4, 15_000)).await;
    let mut delete = Request::new(RequestCode::DELETE_TOPIC_IN_BROKER);
    delete.ext.put("topic", "T");
    peer.ok(delete).await;
    assert_eq!(pull.await.unwrap().code, ResponseCode::TOPIC_NOT_EXIST);
}

#[tokio::test]
async fn pulls_are_answered_by_place_as_apache_does() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for body in ["a", "b"] {
        peer.send("T", 0, body, "").await;
    }
    for (queue, offset, code, next) in [
        (0, 0, ResponseCode::SUCCESS, 2),
        (0, 2, ResponseCode::PULL_NOT_FOUND, 2),
        (0, 9, ResponseCode::PULL_OFFSET_MOVED, 2),
        (1, 0, ResponseCode::PULL_NOT_FOUND, 0),
        (1, 5, ResponseCode::PULL_OFFSET_MOVED, 0),
    ] {
        let pulled = peer.pull("T", queue, offset).await;
        assert_eq!(
            (pulled.code, pulled.next),
            (code, next),
            "queue {queue} offset {offset}: {}",
            pulled.status
        );
    }
    for (request, code) in [
        (
            pull_request("g", "Nope", 0, 0, 4, 0),
            ResponseCode::TOPIC_NOT_EXIST,
        ),
        (
            pull_request("g", "T", 4, 0, 4, 0),
            ResponseCode::INVALID_PARAMETER,
        ),
        (
            pull_request("g", "T", 0, 0, 0, 0),
            ResponseCode::SUBSCRIPTION_NOT_EXIST,
        ),
    ] {
        peer.refused(request, code).await;
    }
}

#[tokio::test]
async fn a_delayed_message_comes_exactly_when_it_is_due() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 1, "later", "DELAY\u{1}2\u{2}TAGS\u{1}A\u{2}")
        .await;
    assert_eq!(peer.pull("T", 1, 0).await.status, "NO_MATCHED_LOGIC_QUEUE");
    fixture.clock.advance(Duration::from_millis(4_999));
    held(&peer, 0).await;
    assert!(peer.pull("T", 1, 0).await.messages.is_empty());
    fixture.clock.advance(Duration::from_millis(1));
    until(|| async { !peer.pull("T", 1, 0).await.messages.is_empty() }).await;
    let pulled = peer.pull("T", 1, 0).await;
    let message = &pulled.messages[0];
    assert_eq!(pulled.bodies(), ["later"]);
    for (name, value) in [
        ("TAGS", "A"),
        ("DELAY", "2"),
        ("REAL_TOPIC", "T"),
        ("REAL_QID", "1"),
    ] {
        assert_eq!(message.properties.get(name), Some(value), "{name}");
    }
}

#[tokio::test]
async fn a_level_above_the_highest_is_lowered_to_it() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "far", "DELAY\u{1}99\u{2}").await;
    let pulled = peer.pull("SCHEDULE_TOPIC_XXXX", 17, 0).await;
    assert_eq!(pulled.messages[0].properties.get("DELAY"), Some("18"));
}

#[tokio::test]
async fn a_delayed_message_that_can_never_be_stored_does_not_stop_those_behind_it() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let large = "b".repeat(1001);
    peer.send("T", 0, &large, "DELAY\u{1}1\u{2}").await;
    peer.send("T", 0, "small", "DELAY\u{1}1\u{2}").await;
    let fixture = fixture
        .restart_with(|config| config.max_message_size = 1000)
        .await;
    let peer = fixture.peer().await;
    fixture.clock.advance(Duration::from_secs(1));
    until(|| async { !peer.pull("T", 0, 0).await.messages.is_empty() }).await;
    assert_eq!(peer.pull("T", 0, 0).await.bodies(), ["small"]);
}

async fn send_back(peer: &Peer, message_id: &str, level: i32, limit: i32) {
    peer.ok(send_back_request("g", message_id, level, limit))
        .await;
}

fn send_back_request(group: &str, message_id: &str, level: i32, limit: i32) -> Request {
    let (_, offset) = id::parse_offset_msg_id(message_id).unwrap();
    let header = SendBackHeader {
        offset: offset.0,
        group: group.to_owned().into(),
        delay_level: level,
        origin_msg_id: None,
        origin_topic: Some("T".into()),
        unit_mode: false,
        max_reconsume_times: Some(limit),
    };
    Request::new(RequestCode::CONSUMER_SEND_MSG_BACK).with(&header)
}

#[tokio::test]
async fn a_group_whose_retry_topic_would_be_too_long_is_refused_and_nothing_made() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let (_, id) = peer.send("T", 0, "x", "").await;
    let topics = || async {
        let all = peer
            .ok(Request::new(RequestCode::GET_ALL_TOPIC_CONFIG))
            .await;
        String::from_utf8_lossy(&all.body).contains("%RETRY%")
    };
    for length in [249, 255] {
        let group = "g".repeat(length);
        let remark = peer
            .refused(
                send_back_request(&group, &id, 1, 16),
                ResponseCode::INVALID_PARAMETER,
            )
            .await;
        assert!(remark.contains("at most 248 are possible"), "{remark}");
        let pull = pull_request(&group, "T", 0, 0, 4, 0);
        peer.refused(pull, ResponseCode::INVALID_PARAMETER).await;
    }
    assert!(!topics().await);

    let longest = "g".repeat(248);
    peer.ok(send_back_request(&longest, &id, 1, 16)).await;
    fixture.clock.advance(Duration::from_secs(1));
    let retry = format!("%RETRY%{longest}");
    until(|| async { !peer.pull(&retry, 0, 0).await.messages.is_empty() }).await;
}

#[tokio::test]
async fn a_message_given_back_comes_again_and_at_last_is_a_dead_letter() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "*").await;
    let (_, id) = peer
        .send(
            "T",
            0,
            "poison",
            "UNIQ_KEY\u{1}ID\u{2}TAGS\u{1}A\u{2}KEYS\u{1}k\u{2}",
        )
        .await;
    send_back(&peer, &id, 0, 1).await;
    assert!(
        peer.pull("%RETRY%g", 0, 0).await.messages.is_empty(),
        "level 3 waits for 10 s"
    );
    fixture.clock.advance(Duration::from_secs(10));
    until(|| async { !peer.pull("%RETRY%g", 0, 0).await.messages.is_empty() }).await;
    let retried = peer.pull("%RETRY%g", 0, 0).await.messages.remove(0);
    assert_eq!(retried.reconsume_times, 1);
    for (name, value) in [
        ("UNIQ_KEY", "ID"),
        ("TAGS", "A"),
        ("RETRY_TOPIC", "T"),
        ("ORIGIN_MESSAGE_ID", id.as_str()),
        ("DELAY", "3"),
        ("WAIT", "false"),
    ] {
        assert_eq!(retried.properties.get(name), Some(value), "{name}");
    }

    send_back(&peer, &retried.offset_msg_id(), 0, 1).await;
    let dead = peer.pull("%DLQ%g", 0, 0).await.messages.remove(0);
    assert_eq!(dead.reconsume_times, 2);
    for (name, value) in [
        ("UNIQ_KEY", "ID"),
        ("RETRY_TOPIC", "T"),
        ("ORIGIN_MESSAGE_ID", id.as_str()),
        ("DELAY", "0"),
    ] {
        assert_eq!(dead.properties.get(name), Some(value), "{name}");
    }
    fixture.clock.advance(Duration::from_secs(7200));
    // The connection was idle for longer than is allowed.
    let peer = fixture.peer().await;
    held(&peer, 0).await;
    assert_eq!(
        peer.pull("%RETRY%g", 0, 1).await.code,
        ResponseCode::PULL_NOT_FOUND,
        "it does not come again"
    );
}

#[tokio::test]
async fn a_negative_level_buries_at_once_and_a_missing_message_is_said() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let (_, id) = peer.send("T", 0, "x", "").await;
    send_back(&peer, &id, -1, 16).await;
    assert_eq!(peer.pull("%DLQ%g", 0, 0).await.bodies(), ["x"]);
    let header = SendBackHeader {
        offset: 1 << 40,
        group: "g".into(),
        delay_level: 0,
        origin_msg_id: None,
        origin_topic: None,
        unit_mode: false,
        max_reconsume_times: None,
    };
    let request = Request::new(RequestCode::CONSUMER_SEND_MSG_BACK).with(&header);
    let remark = peer.refused(request, ResponseCode::SYSTEM_ERROR).await;
    assert_eq!(
        remark,
        format!("look message by offset failed, {}", 1_i64 << 40)
    );
}

#[tokio::test]
async fn a_count_of_retries_at_its_end_stays_there() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for (queue_offset, retries, limit) in [(0, i32::MAX, 16), (1, i32::MAX - 1, i32::MAX)] {
        let mut request = send_request("T", 0, "x", "");
        request.ext.put_integer("j", retries);
        peer.ok(request).await;
        let sent = peer.pull("T", 0, queue_offset).await.messages.remove(0);
        send_back(&peer, &sent.offset_msg_id(), 0, limit).await;
    }
    let dead = peer.pull("%DLQ%g", 0, 0).await.messages.remove(0);
    assert_eq!(dead.reconsume_times, i32::MAX);
    let delayed = peer.pull("SCHEDULE_TOPIC_XXXX", 17, 0).await;
    assert_eq!(delayed.messages[0].reconsume_times, i32::MAX);
}

#[tokio::test]
async fn a_retry_sent_too_often_by_the_client_itself_is_a_dead_letter() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let mut request = send_request("%RETRY%g", 0, "x", "DELAY\u{1}4\u{2}");
    request.ext.put("j", "17");
    peer.ok(request).await;
    let dead = peer.pull("%DLQ%g", 0, 0).await;
    assert_eq!(dead.bodies(), ["x"]);
    assert_eq!(dead.messages[0].properties.get("DELAY"), Some("-1"));
}
