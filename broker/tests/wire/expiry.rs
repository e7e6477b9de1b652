use std::time::Duration;

use bindery_broker::{BrokerConfig, store::Space};
use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::SendHeader,
    message::batch::{self, BatchElement},
};
use bytes::BytesMut;

use crate::support::{Fixture, Peer, START, send_request, until};

/// Small log files, on a volume of which so many percent are used.
fn volume(used: u8) -> (Space, impl FnOnce(&mut BrokerConfig)) {
    let space = Space::switchable();
    space.set_used(used);
    let of_broker = space.clone();
    let change = move |config: &mut BrokerConfig| {
        config.mapped_file_size_commit_log = 16 << 10;
        config.delete_commit_log_files_interval = 0;
        config.space = of_broker;
    };
    (space, change)
}

async fn end_of_log(peer: &Peer) -> String {
    let answer = peer
        .ok(Request::new(RequestCode::GET_BROKER_RUNTIME_INFO))
        .await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let at = text.find("commitLogMaxOffset").unwrap();
    text[at..].chars().take(40).collect()
}

#[tokio::test]
async fn a_pull_below_what_expired_is_moved_to_what_is_left() {
    let (space, change) = volume(10);
    let fixture = Fixture::with(change).await;
    let peer = fixture.peer().await;
    let body = "x".repeat(2000);
    for _ in 0..20 {
        peer.send("T", 0, &body, "").await;
    }
    assert_eq!(peer.pull("T", 0, 0).await.messages.len(), 20);
    space.set_used(86);
    until(|| async {
        fixture.clock.advance(Duration::from_secs(10));
        peer.pull("T", 0, 0).await.code == ResponseCode::PULL_OFFSET_MOVED
    })
    .await;
    let moved = peer.pull("T", 0, 0).await;
    assert_eq!(moved.status, "OFFSET_TOO_SMALL");
    assert!(moved.next > 0);
    let left = peer.pull("T", 0, moved.next).await;
    assert_eq!(left.code, ResponseCode::SUCCESS);
    assert_eq!(left.messages[0].queue_offset.0, moved.next);
    assert_eq!(left.next, 20);
}

#[tokio::test]
async fn a_volume_above_the_warning_level_refuses_sends_and_serves_pulls() {
    let (space, change) = volume(91);
    let fixture = Fixture::with(change).await;
    let peer = fixture.peer().await;
    let request = || send_request("T", 0, "x", "");
    let remark = peer
        .refused(request(), ResponseCode::SERVICE_NOT_AVAILABLE)
        .await;
    assert!(
        remark.contains("the broker's disk is full [CL:  0.91 CQ:  0.91 INDEX:  0.91]"),
        "{remark}"
    );
    assert_eq!(
        peer.pull("T", 0, 0).await.code,
        ResponseCode::PULL_NOT_FOUND
    );
    space.set_used(80);
    peer.ok(request()).await;
    assert_eq!(peer.pull("T", 0, 0).await.bodies(), ["x"]);
}

#[tokio::test]
async fn a_batch_with_one_element_too_long_with_the_brokers_additions_leaves_no_trace() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "before", "").await;
    let before = end_of_log(&peer).await;
    let long = format!("a\u{1}{}\u{2}", "b".repeat(32_760));
    assert!(long.len() <= 32_767, "the element alone is allowed");
    let mut body = BytesMut::new();
    for properties in [b"" as &[u8], long.as_bytes(), b""] {
        let element = BatchElement {
            flag: 0,
            body: b"element",
            properties,
        };
        batch::encode(&element, &mut body).unwrap();
    }
    let header = SendHeader {
        producer_group: "PG".into(),
        topic: "T".into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id: 0,
        born_timestamp: START,
        batch: Some(true),
        ..SendHeader::default()
    };
    let request = Request::new(RequestCode::SEND_BATCH_MESSAGE)
        .with(&header)
        .body(body.to_vec());
    peer.refused(request, ResponseCode::MESSAGE_ILLEGAL).await;
    assert_eq!(
        end_of_log(&peer).await,
        before,
        "nothing of it is in the log"
    );
    assert_eq!(
        peer.send("T", 0, "after", "").await.0,
        1,
        "nor in the queue"
    );
}
