use std::time::Duration;

use bindery_protocol::{
    codes::RequestCode,
    frame::Request,
    headers::{OffsetReply, QueryOffsetHeader, UpdateOffsetHeader},
};

use crate::support::{Fixture, until};

#[tokio::test]
async fn messages_topics_and_offsets_are_there_after_a_restart() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "*").await;
    for body in ["a", "b", "c"] {
        peer.send("T", 2, body, "").await;
    }
    let commit = UpdateOffsetHeader {
        consumer_group: "g".into(),
        topic: "T".into(),
        queue_id: 2,
        commit_offset: 2,
    };
    peer.ok(Request::new(RequestCode::UPDATE_CONSUMER_OFFSET).with(&commit))
        .await;

    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    assert_eq!(peer.pull("T", 2, 0).await.bodies(), ["a", "b", "c"]);
    let query = QueryOffsetHeader {
        consumer_group: "g".into(),
        topic: "T".into(),
        queue_id: 2,
        set_zero_if_not_found: Some(false),
    };
    let answer = peer
        .ok(Request::new(RequestCode::QUERY_CONSUMER_OFFSET).with(&query))
        .await;
    assert_eq!(answer.header::<OffsetReply>().unwrap().offset, 2);
    assert_eq!(peer.send("T", 2, "d", "").await.0, 3);
}

#[tokio::test]
async fn a_delayed_message_is_delivered_once_although_the_broker_was_restarted() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "first", "DELAY\u{1}1\u{2}").await;
    fixture.clock.advance(Duration::from_secs(1));
    until(|| async { peer.pull("T", 0, 0).await.messages.len() == 1 }).await;
    peer.send("T", 0, "second", "DELAY\u{1}1\u{2}").await;

    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    fixture.clock.advance(Duration::from_secs(1));
    until(|| async { peer.pull("T", 0, 0).await.messages.len() == 2 }).await;
    assert_eq!(peer.pull("T", 0, 0).await.bodies(), ["first", "second"]);
}

#[tokio::test]
async fn what_was_acknowledged_is_there_although_the_broker_was_dropped() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 3, "x", "").await;
    let fixture = fixture.drop_and_start().await;
    let peer = fixture.peer().await;
    assert_eq!(
        peer.pull("T", 3, 0).await.bodies(),
        ["x"],
        "the topic was made by that send"
    );
}

#[tokio::test]
async fn several_brokers_live_in_one_process() {
    let (one, two) = (Fixture::start().await, Fixture::start().await);
    let (to_one, to_two) = (one.peer().await, two.peer().await);
    to_one.send("T", 0, "one", "").await;
    to_two.send("T", 0, "two", "").await;
    assert_eq!(to_one.pull("T", 0, 0).await.bodies(), ["one"]);
    assert_eq!(to_two.pull("T", 0, 0).await.bodies(), ["two"]);
    one.broker.shutdown().await.unwrap();
    to_two.send("T", 0, "still there", "").await;
    two.broker.shutdown().await.unwrap();
}
