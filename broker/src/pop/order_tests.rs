#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
use super::*;

const TRY: Option<&str> = Some("a");

fn orders() -> (tempfile::TempDir, Orders) {
    let dir = tempfile::tempdir().unwrap();
    let orders = Orders::open(dir.path()).unwrap();
    (dir, orders)
}

/// Hands `offsets` out at `pop_time` for 1000 ms; what the answer says of earlier hand-outs.
fn hand_out(orders: &Orders, attempt_id: Option<&str>, pop_time: i64, offsets: &[i64]) -> String {
    let mut counts = String::new();
    let out = HandedOut {
        topic: "T",
        group: "g",
        queue_id: 2,
        attempt_id,
        pop_time,
        invisible_time: 1000,
        offsets,
    };
    orders.handed_out(&out, &mut counts, pop_time);
    counts
}

fn closed(orders: &Orders, attempt_id: Option<&str>, now: i64) -> Option<i64> {
    orders.closed_until("T", "g", 2, attempt_id, 1000, now)
}

#[test]
fn a_queue_is_closed_until_all_is_done_or_visible_again() {
    let (_dir, orders) = orders();
    assert_eq!(closed(&orders, None, 0), None);
    assert_eq!(hand_out(&orders, TRY, 10, &[5, 7]), "0 2 0");
    assert_eq!(closed(&orders, None, 10), Some(1010));
    assert_eq!(
        closed(&orders, TRY, 10),
        None,
        "the same try may come again"
    );
    assert_eq!(closed(&orders, None, 1010), None);
    assert_eq!(orders.done("T", "g", 2, 7, 10), Done::Upto(5));
    assert_eq!(closed(&orders, None, 10), Some(1010));
    assert_eq!(orders.done("T", "g", 2, 5, 10), Done::Upto(8));
    assert_eq!(closed(&orders, None, 10), None);
}

#[test]
fn what_was_not_handed_out_then_is_not_done() {
    let (_dir, orders) = orders();
    assert_eq!(orders.done("T", "g", 2, 4, 10), Done::Upto(5));
    hand_out(&orders, TRY, 10, &[5, 7]);
    assert_eq!(orders.done("T", "g", 2, 6, 10), Done::Unknown);
    assert_eq!(orders.done("T", "g", 2, 5, 9), Done::Stale);
}

#[test]
fn a_postponed_message_closes_its_queue_for_longer() {
    let (_dir, orders) = orders();
    hand_out(&orders, TRY, 10, &[5, 7]);
    orders.postpone("T", "g", 2, 7, 10, 3000);
    orders.postpone("T", "g", 2, 8, 10, 9000);
    assert_eq!(closed(&orders, None, 1010), Some(3000));
    orders.clear("T", "g", 2);
    assert_eq!(closed(&orders, None, 1010), None);
}

#[test]
fn messages_handed_out_again_are_counted_but_not_for_the_same_try() {
    let (_dir, orders) = orders();
    hand_out(&orders, TRY, 10, &[5, 7]);
    assert_eq!(hand_out(&orders, TRY, 11, &[5, 7]), "0 2 0");
    assert_eq!(
        hand_out(&orders, Some("b"), 20, &[5, 7]),
        "0 qo2%5 1;0 qo2%7 1;0 2 1"
    );
    assert_eq!(hand_out(&orders, None, 30, &[7, 9]), "0 qo2%7 2;0 2 0");
}

#[test]
fn orders_are_there_after_a_restart_unless_their_topic_is_gone() {
    let (dir, orders) = orders();
    hand_out(&orders, TRY, 10, &[5, 7]);
    orders.persist(10, |_, _| Some(4)).unwrap();
    let again = Orders::open(dir.path()).unwrap();
    assert_eq!(closed(&again, None, 10), Some(1010));
    hand_out(&again, TRY, 20, &[5]);
    again.persist(20, |_, _| None).unwrap();
    let again = Orders::open(dir.path()).unwrap();
    assert_eq!(closed(&again, None, 20), None);
}

#[test]
fn a_file_of_the_original_is_read() {
    let (dir, _) = orders();
    let text = r#"{"table":{"T@g":{2:{"a":"x","cm":1,"i":1000,"l":10,"o":[5,2],"oc":{7:1},"ot":{7:4000},"popTime":10}}}}"#;
    std::fs::write(dir.path().join(FILE), text).unwrap();
    let orders = Orders::open(dir.path()).unwrap();
    assert_eq!(closed(&orders, None, 10), Some(4000));
    assert_eq!(orders.done("T", "g", 2, 7, 10), Done::Upto(8));
}
