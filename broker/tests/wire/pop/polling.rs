use bindery_protocol::headers::{
    NotificationHeader, NotificationReply, PollingInfoHeader, PollingInfoReply,
};

use super::*;
use crate::support::{PATIENCE, START};

fn waiting(change: impl FnOnce(&mut PopHeader<'static>)) -> Request {
    let mut header = pop_header("T", START);
    header.poll_time = 5000;
    change(&mut header);
    pop_request(&header)
}

fn spawn(peer: &Peer, request: Request) -> tokio::task::JoinHandle<Frame> {
    let connection = peer.connection.clone();
    tokio::spawn(async move { connection.call(request, PATIENCE * 3).await.unwrap() })
}

async fn waiting_pops(peer: &Peer, queue_id: i32) -> i32 {
    let request = Request::new(RequestCode::POLLING_INFO).with(&PollingInfoHeader {
        consumer_group: "g".into(),
        topic: "T".into(),
        queue_id,
    });
    let answer = peer.ok(request).await;
    answer.header::<PollingInfoReply>().unwrap().polling_num
}

/// A topic without messages.
async fn empty_topic(peer: &Peer) {
    peer.send("T", 0, "first", "").await;
    let popped = pop(peer).await;
    ack(peer, &popped.handle("first")).await;
}

#[tokio::test]
async fn a_message_wakes_one_of_those_that_wait() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    empty_topic(&peer).await;
    let any = spawn(&peer, waiting(|_| {}));
    until(|| async { waiting_pops(&peer, -1).await == 1 }).await;
    let of_three = spawn(&peer, waiting(|header| header.queue_id = 3));
    until(|| async { waiting_pops(&peer, 3).await == 1 }).await;
    peer.send("T", 1, "x", "").await;
    let popped = Popped::of(&any.await.unwrap());
    assert_eq!(popped.bodies(), ["x"]);
    assert_eq!(
        (waiting_pops(&peer, -1).await, waiting_pops(&peer, 3).await),
        (0, 1)
    );
    peer.send("T", 3, "y", "").await;
    assert_eq!(Popped::of(&of_three.await.unwrap()).bodies(), ["y"]);
}

#[tokio::test]
async fn what_comes_back_wakes_those_that_wait_for_its_topic() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "x", "").await;
    assert_eq!(pop(&peer).await.messages.len(), 1);
    let again = spawn(&peer, waiting(|header| header.poll_time = 60_000));
    until(|| async { waiting_pops(&peer, -1).await == 1 }).await;
    time_passes(&fixture).await;
    assert_eq!(Popped::of(&again.await.unwrap()).bodies(), ["x"]);
}

#[tokio::test]
async fn a_pop_ends_at_its_time_and_not_before() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    empty_topic(&peer).await;
    let popping = spawn(&peer, waiting(|_| {}));
    until(|| async { waiting_pops(&peer, -1).await == 1 }).await;
    fixture.clock.advance(Duration::from_millis(4949));
    assert_eq!(waiting_pops(&peer, -1).await, 1);
    fixture.clock.advance(Duration::from_millis(1));
    let over = Popped::of(&popping.await.unwrap());
    assert_eq!(over.code, ResponseCode::POLLING_TIMEOUT);
    assert_eq!(over.remark, "NO_MESSAGE_IN_QUEUE");
}

#[tokio::test]
async fn only_so_many_may_wait() {
    let fixture = Fixture::with(|config| config.pop_polling_size = 1).await;
    let peer = fixture.peer().await;
    empty_topic(&peer).await;
    let first = spawn(&peer, waiting(|_| {}));
    until(|| async { waiting_pops(&peer, -1).await == 1 }).await;
    let second = Popped::of(&peer.call(waiting(|_| {})).await);
    assert_eq!(second.code, ResponseCode::POLLING_FULL);
    peer.send("T", 0, "x", "").await;
    assert_eq!(Popped::of(&first.await.unwrap()).bodies(), ["x"]);
}

#[tokio::test]
async fn a_filter_is_not_woken_for_what_it_does_not_want() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    empty_topic(&peer).await;
    let picky = spawn(&peer, waiting(|header| header.exp = Some("x".into())));
    until(|| async { waiting_pops(&peer, -1).await == 1 }).await;
    peer.send("T", 0, "no", "TAGS\u{1}y\u{2}").await;
    assert_eq!(waiting_pops(&peer, -1).await, 1);
    peer.send("T", 0, "yes", "TAGS\u{1}x\u{2}").await;
    assert_eq!(Popped::of(&picky.await.unwrap()).bodies(), ["yes"]);
}

#[tokio::test]
async fn a_connection_that_ends_leaves_no_pop_behind() {
    let fixture = Fixture::start().await;
    let (peer, leaving) = (fixture.peer().await, fixture.peer().await);
    empty_topic(&peer).await;
    let connection = leaving.connection.clone();
    let popping = tokio::spawn(async move { connection.call(waiting(|_| {}), PATIENCE).await });
    until(|| async { waiting_pops(&peer, -1).await == 1 }).await;
    leaving.connection.close();
    assert!(popping.await.unwrap().is_err());
    until(|| async { waiting_pops(&peer, -1).await == 0 }).await;
    peer.send("T", 0, "x", "").await;
    assert_eq!(pop(&peer).await.bodies(), ["x"], "nobody else has it");
}

fn notification(poll_time: i64) -> Request {
    Request::new(RequestCode::NOTIFICATION).with(&NotificationHeader {
        consumer_group: "g".into(),
        topic: "T".into(),
        queue_id: -1,
        poll_time,
        born_time: START,
        order: false,
        attempt_id: None,
    })
}

#[tokio::test]
async fn a_notification_tells_when_there_is_something_to_pop() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    empty_topic(&peer).await;
    let has = |answer: &Frame| {
        assert_eq!(
            answer.head.remark.as_deref(),
            Some("not set any response code")
        );
        answer.header::<NotificationReply>().unwrap().has_msg
    };
    assert!(!has(&peer.ok(notification(0)).await));
    let waiting = spawn(&peer, notification(5000));
    let over = spawn(&peer, notification(1000));
    fixture.clock.wait_for_sleepers(1).await;
    fixture.clock.advance(Duration::from_millis(950));
    assert!(!has(&over.await.unwrap()));
    peer.send("T", 2, "x", "").await;
    assert!(has(&waiting.await.unwrap()));
    assert!(has(&peer.ok(notification(0)).await), "it took nothing");
    assert_eq!(pop(&peer).await.bodies(), ["x"]);
}
