#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
use bindery_protocol::message::{NewMessage, PhysicalOffset, QueueOffset, SysFlag, record};

use super::*;

const HOST: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 10911);

/// One message of the revive queue.
fn message(offset: i64, tag: &str, body: &impl serde::Serialize) -> Vec<u8> {
    let body = serde_json::to_vec(body).unwrap();
    let properties = format!("TAGS\u{1}{tag}\u{2}");
    let message = NewMessage {
        topic: "rmq_sys_REVIVE_LOG_C",
        queue_id: 0,
        flag: 0,
        sys_flag: SysFlag(0),
        born_timestamp: 0,
        born_host: HOST,
        store_host: HOST,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: &body,
        properties: properties.as_bytes(),
    };
    let mut bytes = Vec::new();
    record::encode(&message, &mut bytes).unwrap();
    record::patch(&mut bytes, QueueOffset(offset), PhysicalOffset(0), 0);
    bytes
}

fn hand_out(book: &mut Book, at: i64, start: i64, invisible: i64) {
    let checkpoint = Checkpoint {
        group: "g".into(),
        topic: "T".into(),
        start_offset: start,
        differences: Some(vec![0, 1]),
        count: 2,
        ..Checkpoint::default()
    }
    .hidden(100, invisible);
    let bytes = message(at, CHECKPOINT_TAG, &checkpoint);
    book.read(&RecordView::parse(&bytes).unwrap(), 0);
}

fn ack(book: &mut Book, at: i64, start: i64, offset: i64) {
    let ack = Ack {
        group: "g".into(),
        topic: "T".into(),
        start_offset: start,
        pop_time: 100,
        offset,
        ..Ack::default()
    };
    let bytes = message(at, ACK_TAG, &ack);
    book.read(&RecordView::parse(&bytes).unwrap(), 0);
}

fn open(checkpoint: Option<Checkpoint>) -> Vec<i64> {
    checkpoint.unwrap().open().collect()
}

#[test]
fn what_is_not_done_in_time_is_due() {
    let mut book = Book::new(None, 1000);
    hand_out(&mut book, 0, 10, 500);
    hand_out(&mut book, 1, 20, 100);
    ack(&mut book, 2, 10, 11);
    assert_eq!(book.next_look(), Some(200 + GRACE));
    assert_eq!(book.committed(), -1);
    assert!(book.take_due(199 + GRACE).is_none());
    assert_eq!(open(book.take_due(200 + GRACE)), [20, 21]);
    assert_eq!(book.committed(), -1, "the first is pending still");
    assert_eq!(open(book.take_due(600 + GRACE)), [10]);
    assert_eq!((book.committed(), book.next_look()), (2, None));
    assert_eq!(Book::new(Some(2), 0).cursor(), 3);
}

#[test]
fn an_ack_may_come_before_its_hand_out() {
    let mut book = Book::new(None, 1000);
    ack(&mut book, 0, 10, 11);
    ack(&mut book, 1, 20, 21);
    assert_eq!(book.committed(), -1);
    hand_out(&mut book, 2, 10, 500);
    assert_eq!(book.committed(), 0, "an ack is waiting still");
    book.tidy(1000);
    assert_eq!(book.committed(), 1);
    assert_eq!(open(book.take_due(600 + GRACE)), [10]);
}

#[test]
fn a_hand_out_delivered_twice_stays_as_it_is() {
    let mut book = Book::new(None, 1000);
    hand_out(&mut book, 0, 10, 500);
    ack(&mut book, 1, 10, 10);
    hand_out(&mut book, 2, 10, 500);
    assert_eq!(open(book.take_due(i64::MAX)), [11]);
    assert!(book.take_due(i64::MAX).is_none());
}

#[test]
fn what_could_not_be_brought_back_is_looked_at_again() {
    let mut book = Book::new(None, 1000);
    hand_out(&mut book, 0, 10, 500);
    let taken = book.take_due(i64::MAX).unwrap();
    book.put_back(taken, 9000);
    ack(&mut book, 1, 10, 10);
    assert_eq!((book.committed(), book.next_look()), (-1, Some(9000)));
    assert!(book.take_due(8999).is_none());
    assert_eq!(open(book.take_due(9000)), [11]);
    assert_eq!(book.committed(), 1);
}

#[test]
fn what_there_was_no_room_for_is_read_again_with_its_acks() {
    let mut book = Book::new(None, 1000);
    book.room = 1;
    hand_out(&mut book, 0, 10, 100);
    hand_out(&mut book, 1, 20, 100);
    ack(&mut book, 2, 10, 10);
    ack(&mut book, 3, 20, 20);
    assert!(!book.tidy(0));
    assert_eq!(open(book.take_due(i64::MAX)), [11]);
    assert_eq!(book.committed(), 0);
    assert!(book.tidy(0));
    assert_eq!(book.cursor(), 1);
    hand_out(&mut book, 1, 20, 100);
    ack(&mut book, 2, 10, 10);
    ack(&mut book, 3, 20, 20);
    assert_eq!(open(book.take_due(i64::MAX)), [21]);
}

#[test]
fn hand_outs_that_go_by_one_name_both_come_again() {
    let mut book = Book::new(None, 1000);
    hand_out(&mut book, 0, 10, 500);
    hand_out(&mut book, 1, 10, 900);
    ack(&mut book, 2, 10, 10);
    assert_eq!(open(book.take_due(600 + GRACE)), [10, 11]);
    assert_eq!(open(book.take_due(1000 + GRACE)), [11]);
    assert_eq!(book.committed(), 2);
}
