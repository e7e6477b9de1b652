use super::*;
use crate::support::{PATIENCE, START};

fn in_order(attempt: &'static str) -> impl FnOnce(&mut PopHeader<'static>) {
    move |header| {
        header.order = true;
        header.attempt_id = Some(attempt.into());
        header.max_msg_nums = 2;
    }
}

async fn two(peer: &Peer) {
    for body in ["a", "b", "c"] {
        peer.send("T", 1, body, "").await;
    }
}

#[tokio::test]
async fn a_queue_is_closed_until_all_that_was_handed_out_is_done() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    two(&peer).await;
    let popped = pop_with(&peer, in_order("one")).await;
    assert_eq!(popped.bodies(), ["a", "b"]);
    assert_eq!(popped.reply.revive_qid, 999);
    assert_eq!(popped.reply.order_count_info.as_deref(), Some("0 1 0"));
    assert!(pop_with(&peer, in_order("two")).await.messages.is_empty());
    let same = pop_with(&peer, in_order("one")).await;
    assert_eq!(same.bodies(), ["a", "b"], "the answer may have been lost");
    ack(&peer, &same.handle("a")).await;
    assert!(pop_with(&peer, in_order("two")).await.messages.is_empty());
    ack(&peer, &same.handle("b")).await;
    assert_eq!(pop_with(&peer, in_order("two")).await.bodies(), ["c"]);
    // Done is done, whoever says it again.
    ack(&peer, &same.handle("a")).await;
}

#[tokio::test]
async fn what_is_not_done_in_time_comes_again_first_and_counted() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    two(&peer).await;
    let popped = pop_with(&peer, in_order("one")).await;
    ack(&peer, &popped.handle("a")).await;
    fixture
        .clock
        .advance(Duration::from_millis(HIDDEN.unsigned_abs()));
    let again = pop_with(&peer, in_order("two")).await;
    assert_eq!(again.bodies(), ["b", "c"]);
    assert_eq!(
        again.reply.order_count_info.as_deref(),
        Some("0 qo1%1 1;0 1 0")
    );
}

#[tokio::test]
async fn a_message_is_given_another_time_in_order() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    two(&peer).await;
    let popped = pop_with(&peer, in_order("one")).await;
    ack(&peer, &popped.handle("b")).await;
    let answer = peer.ok(change_request(&popped.handle("a"), 1000)).await;
    let reply: bindery_protocol::headers::ChangeInvisibleTimeReply = answer.header().unwrap();
    assert_eq!(reply.pop_time, Some(popped.reply.pop_time));
    assert_eq!(
        (reply.invisible_time, reply.revive_qid),
        (Some(1000), Some(999))
    );
    fixture.clock.advance(Duration::from_millis(999));
    assert!(pop_with(&peer, in_order("two")).await.messages.is_empty());
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(pop_with(&peer, in_order("two")).await.bodies(), ["a", "b"]);
}

#[tokio::test]
async fn those_that_wait_in_order_get_the_queue_when_it_is_free() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    two(&peer).await;
    let wait = || {
        let mut header = pop_header("T", START);
        in_order("two")(&mut header);
        header.poll_time = 60_000;
        let connection = peer.connection.clone();
        let request = pop_request(&header);
        tokio::spawn(async move { connection.call(request, PATIENCE * 3).await.unwrap() })
    };
    let popped = pop_with(&peer, in_order("one")).await;
    let by_time = wait();
    fixture.clock.wait_for_sleepers(1).await;
    fixture
        .clock
        .advance(Duration::from_millis(HIDDEN.unsigned_abs()));
    let again = Popped::of(&by_time.await.unwrap());
    assert_eq!(again.bodies(), ["a", "b"]);
    assert_eq!(popped.bodies(), again.bodies());
}

#[tokio::test]
async fn order_holds_over_a_restart() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    two(&peer).await;
    let popped = pop_with(&peer, in_order("one")).await;
    ack(&peer, &popped.handle("a")).await;
    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    assert!(pop_with(&peer, in_order("two")).await.messages.is_empty());
    ack(&peer, &popped.handle("b")).await;
    assert_eq!(pop_with(&peer, in_order("two")).await.bodies(), ["c"]);
    let odd = Handle {
        receipt: format!("0 {} 10000 999 0 broker-t 1 0", START + 5),
        queue_id: 1,
        offset: 3,
        retry: RetryMark::Normal,
    };
    peer.ok(ack_request(&odd)).await;
}
