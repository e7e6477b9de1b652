//! The in-process broker by itself: selection, audiences, starts, delay.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::*;
use crate::binder::{Audience, Order, Place, Redelivery, Resume, Selection, Settlement, StartAt};
use crate::binding::SendReceipt;

/// Notes the payloads and acknowledges.
#[derive(Debug, Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn sorted(&self) -> Vec<String> {
        let mut notes = self.0.lock().unwrap().clone();
        notes.sort();
        notes
    }
}

#[async_trait]
impl Deliver for Notes {
    async fn deliver(&self, message: Message) -> Settlement {
        let text = String::from_utf8(message.payload().to_vec()).unwrap();
        self.0.lock().unwrap().push(text);
        Settlement::Ack
    }
}

fn spec(group: &str) -> ConsumerSpec {
    ConsumerSpec {
        binding: "input".to_owned(),
        destinations: vec!["topic".to_owned()],
        group: group.to_owned(),
        concurrency: 2,
        order: Order::Concurrent,
        audience: Audience::Shared,
        selection: Selection::All,
        start: StartAt::First,
        resume: Resume::Positions,
        redelivery: Redelivery {
            limit: None,
            delay_level: 0,
            suspend: Duration::from_secs(1),
        },
        grace: Duration::from_secs(1),
    }
}

async fn send(binder: &MemoryBinder, text: &'static str, tag: &str) -> SendReceipt {
    let spec = ProducerSpec {
        binding: "output".to_owned(),
        destination: "topic".to_owned(),
        ordered: false,
        transaction: None,
    };
    let producer = binder.bind_producer(spec).await.unwrap();
    let message = Message::new(Bytes::from_static(text.as_bytes())).tag(tag);
    producer.send(&message, Place::Any).await.unwrap()
}

async fn consume(binder: &MemoryBinder, spec: ConsumerSpec) -> (Notes, Arc<dyn ConsumerBinding>) {
    let notes = Notes::default();
    let consumer = binder
        .bind_consumer(spec, Arc::new(notes.clone()))
        .await
        .unwrap();
    (notes, consumer)
}

#[tokio::test]
async fn members_of_a_group_share_and_groups_do_not() {
    let binder = MemoryBinder::in_time(Pace::virtual_from(0));
    let (one, _one) = consume(&binder, spec("shared")).await;
    let (two, _two) = consume(&binder, spec("shared")).await;
    let (other, _other) = consume(&binder, spec("other")).await;
    for text in ["a", "b", "c", "d"] {
        send(&binder, text, "").await;
    }
    binder.settled().await;
    let mut shared = [one.sorted(), two.sorted()].concat();
    shared.sort();
    assert_eq!(shared, ["a", "b", "c", "d"]);
    assert_eq!(other.sorted(), ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn broadcasting_members_get_everything() {
    let binder = MemoryBinder::in_time(Pace::virtual_from(0));
    let everyone = ConsumerSpec {
        audience: Audience::Everyone,
        ..spec("all")
    };
    let (one, _one) = consume(&binder, everyone.clone()).await;
    let (two, _two) = consume(&binder, everyone).await;
    send(&binder, "a", "").await;
    binder.settled().await;
    assert_eq!(
        (one.sorted(), two.sorted()),
        (vec!["a".to_owned()], vec!["a".to_owned()])
    );
}

#[tokio::test]
async fn tags_select() {
    let binder = MemoryBinder::in_time(Pace::virtual_from(0));
    let tagged = ConsumerSpec {
        selection: Selection::Tags("x || z".to_owned()),
        ..spec("tagged")
    };
    let (notes, _consumer) = consume(&binder, tagged).await;
    for (text, tag) in [("a", "x"), ("b", "y"), ("c", "z"), ("d", "")] {
        send(&binder, text, tag).await;
    }
    binder.settled().await;
    assert_eq!(notes.sorted(), ["a", "c"]);
}

#[tokio::test]
async fn a_new_group_starts_where_it_asks_and_goes_on_after_a_stop() {
    let binder = MemoryBinder::in_time(Pace::virtual_from(0));
    send(&binder, "old", "").await;
    let (first, _consumer) = consume(&binder, spec("first")).await;
    let (last, consumer) = consume(
        &binder,
        ConsumerSpec {
            start: StartAt::Last,
            ..spec("last")
        },
    )
    .await;
    send(&binder, "new", "").await;
    binder.settled().await;
    assert_eq!(
        (first.sorted(), last.sorted()),
        (
            vec!["new".to_owned(), "old".to_owned()],
            vec!["new".to_owned()]
        )
    );
    consumer.stop().await.unwrap();
    send(&binder, "newest", "").await;
    let (again, _again) = consume(
        &binder,
        ConsumerSpec {
            start: StartAt::First,
            ..spec("last")
        },
    )
    .await;
    binder.settled().await;
    assert_eq!(again.sorted(), ["newest"]);
}

#[tokio::test]
async fn a_delayed_message_waits_for_its_level() {
    let binder = MemoryBinder::in_time(Pace::virtual_from(0));
    let (notes, _consumer) = consume(&binder, spec("group")).await;
    let spec = ProducerSpec {
        binding: "output".to_owned(),
        destination: "topic".to_owned(),
        ordered: false,
        transaction: None,
    };
    let producer = binder.bind_producer(spec).await.unwrap();
    producer
        .send(
            &Message::new(Bytes::from_static(b"late")).delay_level(2),
            Place::Any,
        )
        .await
        .unwrap();
    binder.settled().await;
    assert_eq!(notes.sorted(), ["late"]);
    assert_eq!(binder.pace().now_millis(), 5_000);

    let text = |text: &'static str| Message::new(Bytes::from_static(text.as_bytes()));
    for message in [
        text("at").deliver_at(95_000),
        text("after").deliver_after(Duration::from_secs(60)),
        text("past").deliver_at(5_000),
    ] {
        producer.send(&message, Place::Any).await.unwrap();
    }
    binder.settled().await;
    assert_eq!(notes.sorted(), ["after", "at", "late", "past"]);
    assert_eq!(binder.pace().now_millis(), 95_000);
}

#[tokio::test]
async fn a_condition_selects_and_a_wrong_one_is_an_error_at_start() {
    let binder = MemoryBinder::in_time(Pace::virtual_from(0));
    let sql = |condition: &str| ConsumerSpec {
        selection: Selection::Sql(condition.to_owned()),
        ..spec("group")
    };
    let (notes, _consumer) = consume(&binder, sql("TAGS IN ('x', 'z')")).await;
    for (text, tag) in [("a", "x"), ("b", "y"), ("c", "z")] {
        send(&binder, text, tag).await;
    }
    binder.settled().await;
    assert_eq!(notes.sorted(), ["a", "c"]);
    let refused = binder
        .bind_consumer(sql("TAGS IN (x)"), Arc::new(Notes::default()))
        .await;
    assert!(matches!(refused, Err(BinderError::Broker { .. })));
}
