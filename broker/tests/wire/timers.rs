//! Messages for a point of time: when they come, what they carry, and that no stop loses them.
use std::{path::Path, time::Duration};

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::{RecallHeader, RecallReply, SendReply},
    message::RecallHandle,
};

use crate::support::{Fixture, Peer, START, send_request, until};

const SECOND: Duration = Duration::from_secs(1);

fn after(seconds: i64) -> String {
    format!("TIMER_DELAY_SEC\u{1}{seconds}\u{2}")
}

fn at(time: i64) -> String {
    format!("TIMER_DELIVER_MS\u{1}{time}\u{2}")
}

/// The seven numbers of `timercheck`.
async fn marks(peer: &Peer) -> Vec<i64> {
    let answer = peer
        .ok(Request::new(RequestCode::GET_TIMER_CHECK_POINT))
        .await;
    let numbers = answer.body.chunks_exact(8);
    let numbers = numbers.map(|number| i64::from_be_bytes(number.try_into().unwrap()));
    numbers.collect()
}

/// Waits until the timer has taken so many messages from its queue.
async fn enqueued(peer: &Peer, count: i64) {
    until(|| async { marks(peer).await[3] >= count }).await;
}

/// Waits until the slots before `time` are delivered.
async fn delivered(peer: &Peer, time: i64) {
    until(|| async { marks(peer).await[0] >= time }).await;
}

async fn bodies(peer: &Peer, topic: &str, queue_id: i32) -> Vec<String> {
    peer.pull(topic, queue_id, 0).await.bodies()
}

async fn send(peer: &Peer, body: &str, properties: &str) -> Option<String> {
    let answer = peer.ok(send_request("T", 1, body, properties)).await;
    let reply: SendReply<'_> = answer.header().unwrap();
    assert_eq!(reply.queue_id, 1, "the answer names the queue asked for");
    reply.recall_handle.map(Into::into)
}

/// Moves time on by so many seconds, one at a time.
async fn seconds(fixture: &Fixture, peer: &Peer, count: i64) {
    for _ in 0..count {
        let before = marks(peer).await[0];
        fixture.clock.advance(SECOND);
        delivered(peer, before + 1000).await;
    }
}

#[tokio::test]
async fn a_message_comes_at_its_time_and_not_before() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let handle = send(&peer, "later", &after(5)).await.unwrap();
    let handle = RecallHandle::parse(&handle).unwrap();
    assert_eq!(handle.timestamp, (START + 4001).to_string());
    enqueued(&peer, 1).await;
    fixture.clock.advance(Duration::from_millis(4999));
    delivered(&peer, START + 4000).await;
    assert!(bodies(&peer, "T", 1).await.is_empty());
    fixture.clock.advance(Duration::from_millis(1));
    until(|| async { !bodies(&peer, "T", 1).await.is_empty() }).await;

    let pulled = peer.pull("T", 1, 0).await;
    let properties = &pulled.messages[0].properties;
    for (name, value) in [
        ("TIMER_OUT_MS", START + 4000),
        ("TIMER_ENQUEUE_MS", START),
        ("TIMER_DEQUEUE_MS", START + 5000),
        ("REAL_QID", 1),
        ("TIMER_DELAY_SEC", 5),
    ] {
        assert_eq!(properties.get(name), Some(&*value.to_string()), "{name}");
    }
    assert_eq!(properties.get("REAL_TOPIC"), Some("T"));
    assert_eq!(properties.get("UNIQ_KEY"), Some(&*handle.message_id));
}

#[tokio::test]
async fn what_is_due_is_an_ordinary_message() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    assert_eq!(send(&peer, "past", &at(START)).await, None);
    assert_eq!(send(&peer, "now", "TIMER_DELAY_MS\u{1}0\u{2}").await, None);
    // A message that was timed before is not timed again.
    let again = format!("{}TIMER_OUT_MS\u{1}5\u{2}", after(60));
    assert_eq!(send(&peer, "timed", &again).await, None);
    // A level counts more than a time.
    assert_eq!(
        send(&peer, "level", &format!("DELAY\u{1}1\u{2}{}", after(9))).await,
        None
    );
    assert_eq!(bodies(&peer, "T", 1).await, ["past", "now", "timed"]);
    fixture.clock.advance(SECOND);
    until(|| async { bodies(&peer, "T", 1).await.len() == 4 }).await;
}

#[tokio::test]
async fn messages_of_one_second_come_in_the_order_in_which_they_were_sent() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let count = 300;
    for number in 0..count {
        send(
            &peer,
            &number.to_string(),
            &after(if number % 3 == 0 { 2 } else { 1 }),
        )
        .await;
    }
    enqueued(&peer, count).await;
    fixture.clock.advance(2 * SECOND);
    delivered(&peer, START + 2000).await;
    let mut seen = Vec::new();
    while i64::try_from(seen.len()).unwrap() < count {
        let next = i64::try_from(seen.len()).unwrap();
        seen.extend(peer.pull("T", 1, next).await.bodies());
    }
    let (second, first): (Vec<i64>, Vec<i64>) = (0..count).partition(|number| number % 3 == 0);
    let expected: Vec<String> = first.iter().chain(&second).map(i64::to_string).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn wishes_that_can_not_be_granted_are_refused() {
    let fixture = Fixture::with(|config| config.timer_congest_num_each_slot = 1).await;
    let peer = fixture.peer().await;
    for properties in [
        after(259_201),
        at(START + 259_200_001),
        "TIMER_DELAY_MS\u{1}soon\u{2}".to_owned(),
        "TIMER_DEL_UNIQKEY\u{1}T+a\u{2}TIMER_DELAY_SEC\u{1}0\u{2}".to_owned(),
        format!("TRAN_MSG\u{1}true\u{2}{}", after(259_201)),
    ] {
        let request = send_request("T", 1, "x", &properties);
        let remark = peer.refused(request, ResponseCode::MESSAGE_ILLEGAL).await;
        assert!(
            remark.contains("bigger than the max delay 259200000ms"),
            "{remark}"
        );
    }
    let long = format!("{}a\u{1}{}\u{2}", after(1), "b".repeat(32_600));
    peer.refused(
        send_request("T", 1, "x", &long),
        ResponseCode::MESSAGE_ILLEGAL,
    )
    .await;

    for count in 1..=2 {
        send(&peer, "x", &after(5)).await;
        enqueued(&peer, count).await;
    }
    let request = send_request("T", 1, "x", &after(5));
    let remark = peer.refused(request, ResponseCode::SYSTEM_ERROR).await;
    assert!(
        remark.contains("under flow control, max num limit is 2"),
        "{remark}"
    );
    send(&peer, "another second", &after(6)).await;
}

#[tokio::test]
async fn a_broker_without_a_wheel_says_so() {
    let fixture = Fixture::with(|config| config.timer_wheel_enable = false).await;
    let peer = fixture.peer().await;
    let request = send_request("T", 1, "x", &after(1));
    let remark = peer.refused(request, ResponseCode::SYSTEM_ERROR).await;
    assert_eq!(
        remark,
        "accurate timer message is not enabled, timerWheelEnable is false"
    );
    for code in [
        RequestCode::GET_TIMER_CHECK_POINT,
        RequestCode::GET_TIMER_METRICS,
    ] {
        peer.refused(Request::new(code), ResponseCode::SYSTEM_ERROR)
            .await;
    }
}

#[tokio::test]
async fn a_message_beyond_the_window_goes_round_until_its_time() {
    let fixture = Fixture::with(|config| config.timer_roll_window_slot = 4).await;
    let peer = fixture.peer().await;
    send(&peer, "far", &after(12)).await;
    enqueued(&peer, 1).await;
    for _ in 0..11 {
        seconds(&fixture, &peer, 1).await;
        assert!(bodies(&peer, "T", 1).await.is_empty());
    }
    seconds(&fixture, &peer, 1).await;
    let pulled = peer.pull("T", 1, 0).await;
    assert_eq!(pulled.bodies(), ["far"]);
    let rolls = pulled.messages[0].properties.get("TIMER_ROLL_TIMES");
    assert!(
        rolls.is_some_and(|rolls| rolls.parse::<i32>().unwrap() >= 2),
        "{rolls:?}"
    );
}

/// What is done to the files between two runs.
type Damage = fn(&Path);

fn remove(name: &'static str) -> impl Fn(&Path) {
    move |store| {
        let path = store.join(name);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[tokio::test]
async fn pending_messages_survive_every_stop_and_every_lost_file() {
    let damages: [(&str, Damage); 6] = [
        ("clean", |_| {}),
        ("no wheel", |store| remove("timerwheel")(store)),
        ("no log", |store| remove("timerlog")(store)),
        ("no wheel, no log", |store| {
            remove("timerwheel")(store);
            remove("timerlog")(store);
        }),
        ("no marks", |store| remove("config/timercheck")(store)),
        ("torn log", |store| {
            let file = store.join("timerlog/00000000000000000000");
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[60..].fill(0);
            std::fs::write(file, bytes).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let fixture = Fixture::with(|config| config.mapped_file_size_timer_log = 10_000).await;
        let peer = fixture.peer().await;
        for (body, delay) in [("early", 1), ("a", 5), ("b", 5), ("c", 9)] {
            send(&peer, body, &after(delay)).await;
        }
        enqueued(&peer, 4).await;
        seconds(&fixture, &peer, 1).await;
        assert_eq!(bodies(&peer, "T", 1).await, ["early"]);

        let fixture = fixture
            .restart_with(|config| damage(&config.store_path_root_dir))
            .await;
        let peer = fixture.peer().await;
        fixture.clock.advance(10 * SECOND);
        delivered(&peer, START + 9000).await;
        until(|| async { bodies(&peer, "T", 1).await.len() >= 4 }).await;
        let mut seen = bodies(&peer, "T", 1).await;
        if name == "no marks" {
            // Nothing else says which slots were delivered.
            seen.dedup();
        }
        assert_eq!(seen, ["early", "a", "b", "c"], "{name}");
    }
}

#[tokio::test]
async fn a_killed_broker_delivers_what_was_pending_once() {
    let mut fixture = Fixture::start().await;
    let mut sent = 0;
    for round in 0..4 {
        let peer = fixture.peer().await;
        for number in 0..40 {
            send(&peer, &format!("{round} {number}"), &after(20 + number % 5)).await;
            sent += 1;
        }
        if round % 2 == 0 {
            enqueued(&peer, sent).await;
        }
        fixture = fixture.drop_and_start().await;
    }
    let peer = fixture.peer().await;
    enqueued(&peer, sent).await;
    fixture.clock.advance(30 * SECOND);
    delivered(&peer, START + 30_000).await;
    let mut seen = Vec::new();
    loop {
        let next = i64::try_from(seen.len()).unwrap();
        let part = peer.pull("T", 1, next).await.bodies();
        if part.is_empty() {
            break;
        }
        seen.extend(part);
    }
    seen.sort_unstable();
    let mut expected: Vec<String> = (0..4)
        .flat_map(|round| (0..40).map(move |number| format!("{round} {number}")))
        .collect();
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_stop_in_which_a_time_passes_delays_a_message_and_no_more() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    send(&peer, "missed", &after(5)).await;
    enqueued(&peer, 1).await;
    fixture.clock.advance(Duration::from_millis(2300));
    let fixture = fixture.drop_and_start().await;
    fixture.clock.advance(100 * SECOND);
    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    until(|| async { !bodies(&peer, "T", 1).await.is_empty() }).await;
    assert_eq!(bodies(&peer, "T", 1).await, ["missed"]);
}

#[tokio::test]
async fn the_timer_counts_what_waits_by_topic() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let counts = async |peer: &Peer| {
        let answer = peer.ok(Request::new(RequestCode::GET_TIMER_METRICS)).await;
        let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        json["timingCount"]["T"]["count"].as_i64()
    };
    assert_eq!(counts(&peer).await, None);
    for delay in [1, 5, 5] {
        send(&peer, "x", &after(delay)).await;
    }
    enqueued(&peer, 3).await;
    assert_eq!(counts(&peer).await, Some(3));
    seconds(&fixture, &peer, 1).await;
    assert_eq!(counts(&peer).await, Some(2));
    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    assert_eq!(counts(&peer).await, Some(2));
    let info = peer
        .ok(Request::new(RequestCode::GET_BROKER_RUNTIME_INFO))
        .await;
    let info = String::from_utf8_lossy(&info.body).into_owned();
    assert!(info.contains("\"timerCongestNum\":\"2\""), "{info}");
}

fn recall_request(topic: &str, handle: &str) -> Request {
    let header = RecallHeader {
        producer_group: Some("PG".into()),
        topic: topic.into(),
        recall_handle: handle.into(),
    };
    Request::new(RequestCode::RECALL_MESSAGE).with(&header)
}

#[tokio::test]
async fn a_message_taken_back_never_comes() {
    let fixture = Fixture::with(|config| config.recall_message_enable = true).await;
    let peer = fixture.peer().await;
    let mut handles = Vec::new();
    for body in ["a", "b", "c"] {
        handles.push(send(&peer, body, &after(5)).await.unwrap());
    }
    let answer = peer.ok(recall_request("T", &handles[1])).await;
    let reply: RecallReply<'_> = answer.header().unwrap();
    let handle = RecallHandle::parse(&handles[1]).unwrap();
    assert_eq!(reply.msg_id, handle.message_id);
    assert_eq!(answer.ext("MSG_REGION").as_deref(), Some("DefaultRegion"));
    enqueued(&peer, 4).await;
    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    fixture.clock.advance(5 * SECOND);
    delivered(&peer, START + 5000).await;
    assert_eq!(bodies(&peer, "T", 1).await, ["a", "c"]);
    assert!(
        bodies(&peer, "T", 0).await.is_empty(),
        "the cancelling message stays inside"
    );
    let answer = peer.ok(Request::new(RequestCode::GET_TIMER_METRICS)).await;
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(json["timingCount"]["T"]["count"], 0);
}

#[tokio::test]
async fn recalls_are_refused_as_apache_does() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let good = send(&peer, "x", &after(5)).await.unwrap();
    let remark = peer
        .refused(recall_request("T", &good), ResponseCode::NO_PERMISSION)
        .await;
    assert_eq!(remark, "recall failed, operation is forbidden");

    let fixture = fixture
        .restart_with(|config| config.recall_message_enable = true)
        .await;
    let peer = fixture.peer().await;
    peer.send("Other", 0, "x", "").await;
    let handle = |change: fn(&mut RecallHandle)| {
        let mut handle = RecallHandle::parse(&good).unwrap();
        change(&mut handle);
        handle.encode()
    };
    for (topic, handle, code, remark) in [
        (
            "None",
            good.clone(),
            ResponseCode::TOPIC_NOT_EXIST,
            "recall failed, the topic[None] not exist",
        ),
        (
            "T",
            "%".to_owned(),
            ResponseCode::ILLEGAL_OPERATION,
            "recall handle is invalid",
        ),
        (
            "Other",
            good.clone(),
            ResponseCode::ILLEGAL_OPERATION,
            "recall failed, topic not match",
        ),
        (
            "T",
            handle(|handle| handle.broker_name = "other".into()),
            ResponseCode::ILLEGAL_OPERATION,
            "recall failed, broker service not available",
        ),
        (
            "T",
            handle(|handle| handle.timestamp = START.to_string()),
            ResponseCode::ILLEGAL_OPERATION,
            "recall failed, timestamp invalid",
        ),
        (
            "T",
            handle(|handle| handle.timestamp = "soon".into()),
            ResponseCode::ILLEGAL_OPERATION,
            "recall failed, timestamp invalid",
        ),
    ] {
        assert_eq!(
            peer.refused(recall_request(topic, &handle), code).await,
            remark
        );
    }
}

#[tokio::test]
async fn a_producer_of_another_topic_cancels_nothing() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let handle = send(&peer, "kept", &after(5)).await.unwrap();
    let id = RecallHandle::parse(&handle).unwrap().message_id;
    let cancel = format!("TIMER_DEL_UNIQKEY\u{1}T+{id}\u{2}{}", after(5));
    peer.ok(send_request("Other", 0, "x", &cancel)).await;
    enqueued(&peer, 2).await;
    fixture.clock.advance(5 * SECOND);
    until(|| async { bodies(&peer, "T", 1).await == ["kept"] }).await;
}

#[tokio::test]
async fn a_message_sent_to_the_timers_own_topic_blocks_nobody() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("rmq_sys_wheel_timer", 0, "no time", "").await;
    send(&peer, "good", &after(1)).await;
    enqueued(&peer, 2).await;
    fixture.clock.advance(SECOND);
    until(|| async { bodies(&peer, "T", 1).await == ["good"] }).await;
}
