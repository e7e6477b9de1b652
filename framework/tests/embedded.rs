//! Applications over the embedded name server and broker: real sockets, a real store, several applications in a process.
#![cfg(feature = "embedded")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bindery::config::LoadOptions;
use bindery::error::BoxError;
use bindery::handler::{Outcome, Redelivery};
use bindery::prelude::*;
use bindery::registry::Handler;
use bindery::transaction::{MemoryTxStore, StoredListener};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// Ample for a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    id: i64,
    step: u32,
}

/// What handlers have seen, to be waited for.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<(Mutex<Vec<String>>, Notify)>);

impl Seen {
    fn add(&self, text: impl Into<String>) {
        self.0.0.lock().unwrap().push(text.into());
        self.0.1.notify_waiters();
    }

    fn all(&self) -> Vec<String> {
        self.0.0.lock().unwrap().clone()
    }

    /// Waits until at least `count` were seen.
    async fn wait(&self, count: usize) -> Vec<String> {
        let reached = async {
            loop {
                let changed = self.0.1.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let all = self.all();
                if all.len() >= count {
                    return all;
                }
                changed.await;
            }
        };
        let in_time = tokio::time::timeout(DEADLINE, reached).await.ok();
        in_time.unwrap_or_else(|| panic!("{count} expected, seen {:?}", self.all()))
    }
}

const BINDINGS: &str = "
spring.cloud.stream:
  default.consumer.max-attempts: 1
  bindings:
    output: { destination: orders }
    input: { destination: orders, group: group }
  rocketmq.default.consumer.consume-from-where: CONSUME_FROM_FIRST_OFFSET
bindery.topics.orders.queues: 4
";

/// An application with `output` and one handler of `input`; `more` is added to its configuration.
fn app(folder: &Path, more: &str, handler: Handler, seen: &Seen) -> AppBuilder {
    let file = folder.join(format!(
        "{}.yaml",
        std::thread::current()
            .name()
            .unwrap_or("app")
            .replace("::", "-")
    ));
    std::fs::write(&file, format!("{BINDINGS}\n---\n{more}\n")).unwrap();
    App::builder()
        .options(LoadOptions {
            locations: vec![file],
            ..LoadOptions::default()
        })
        .without_inventory()
        .output("output")
        .handler(handler)
        .state(seen.clone())
}

fn embedded(folder: &Path) -> String {
    format!(
        "bindery.embedded: {{ enabled: true, store-dir: '{}' }}",
        folder.join("store").display()
    )
}

async fn send(app: &AppHandle, message: impl Into<Message<Order>>) -> SendReceipt {
    app.bridge().send("output", message.into()).await.unwrap()
}

fn order(id: i64, step: u32) -> Order {
    Order { id, step }
}

async fn note(order: Json<Order>, seen: State<Seen>) {
    seen.add(format!("{}.{}", order.id, order.step));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_handled_with_tags_and_headers_and_the_store_is_left_clean() {
    async fn handle(order: Json<Order>, tag: Tags, headers: Headers, seen: State<Seen>) {
        seen.add(format!(
            "{} {} {}",
            order.id,
            tag.0,
            headers.get("ROCKET_MQ_TOPIC").unwrap_or("-")
        ));
    }
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    let tags = "spring.cloud.stream.rocketmq.bindings.input.consumer.subscription: a || c";
    let config = format!("{}\n{tags}", embedded(folder.path()));
    let app = app(
        folder.path(),
        &config,
        Handler::listen("input").to(handle),
        &seen,
    )
    .start()
    .await
    .unwrap();
    for (id, tag) in [(1, "a"), (2, "b"), (3, "c")] {
        let receipt = send(
            &app,
            Message::new(order(id, 0)).tag(tag).key(format!("k-{id}")),
        )
        .await;
        assert!(!receipt.msg_id.is_empty() && !receipt.offset_msg_id.is_empty());
    }
    let all: BTreeSet<String> = seen.wait(2).await.into_iter().collect();
    assert_eq!(
        all,
        BTreeSet::from(["1 a orders".to_owned(), "3 c orders".to_owned()])
    );
    app.shutdown().await.unwrap();
    assert!(
        folder.path().join("store/commitlog").exists()
            && !folder.path().join("store/abort").exists()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ordered_flow_keeps_one_queue_a_key_and_its_order_over_failures() {
    async fn handle(
        order: Json<Order>,
        queue: QueueId,
        tried: Redelivery,
        seen: State<Seen>,
    ) -> Outcome {
        if order.id == 3 && order.step == 1 && tried.broker == 0 {
            return Outcome::Retry;
        }
        seen.add(format!("{}.{} {}", order.id, order.step, queue));
        Outcome::Ack
    }
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    let ordered = "
spring.cloud.stream:
  bindings:
    input.consumer.concurrency: 8
    output.producer.partition-key-expression: payload['id']
  rocketmq.bindings:
    input.consumer: { orderly: true, suspend-current-queue-time-millis: 100 }
    output.producer.producer-type: Orderly";
    let config = format!("{}\n{ordered}", embedded(folder.path()));
    let app = app(
        folder.path(),
        &config,
        Handler::listen("input").to(handle),
        &seen,
    )
    .start()
    .await
    .unwrap();
    for step in 0..3 {
        for id in 0..8 {
            // Java's partition of a Long key: |id| % 4.
            assert_eq!(
                send(&app, order(id, step)).await.partition,
                Some(u32::try_from(id % 4).unwrap())
            );
        }
    }
    let all = seen.wait(24).await;
    for id in 0..8 {
        let own: Vec<&String> = all
            .iter()
            .filter(|line| line.starts_with(&format!("{id}.")))
            .collect();
        let expected: Vec<String> = (0..3)
            .map(|step| format!("{id}.{step} {}", id % 4))
            .collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
    app.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_message_is_handled_after_its_level_and_not_before() {
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    let config = embedded(folder.path());
    let app = app(
        folder.path(),
        &config,
        Handler::listen("input").to(note),
        &seen,
    )
    .start()
    .await
    .unwrap();
    let sent = Instant::now();
    send(&app, Message::new(order(1, 0)).delay_level(1)).await;
    seen.wait(1).await;
    let took = sent.elapsed();
    assert!(
        took >= Duration::from_millis(950) && took < Duration::from_secs(5),
        "took {took:?}"
    );
    app.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_always_fails_is_redelivered_and_then_a_dead_letter() {
    async fn handle(tried: Redelivery, id: MessageId, seen: State<Seen>) -> Outcome {
        seen.add(format!("{} {}", tried.broker, id.0));
        Outcome::Retry
    }
    async fn dead(order: Json<Order>, id: MessageId, seen: State<Seen>) {
        seen.add(format!("dead {} {}", order.id, id.0));
    }
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    let limits = "
spring.cloud.stream:
  bindings.dead: { destination: '%DLQ%group', group: dead }
  rocketmq.bindings.input.consumer: { max-reconsume-times: 2, delay-level-when-next-consume: 1 }";
    let config = format!("{}\n{limits}", embedded(folder.path()));
    let app = app(
        folder.path(),
        &config,
        Handler::listen("input").to(handle),
        &seen,
    )
    .handler(Handler::listen("dead").to(dead))
    .start()
    .await
    .unwrap();
    let id = send(&app, order(9, 0)).await.msg_id;
    let all = seen.wait(4).await;
    assert_eq!(
        all,
        [
            format!("0 {id}"),
            format!("1 {id}"),
            format!("2 {id}"),
            format!("dead 9 {id}")
        ]
    );
    app.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_message_of_an_ordered_queue_is_a_dead_letter_with_its_id_and_the_queue_goes_on()
{
    async fn handle(order: Json<Order>, seen: State<Seen>) -> Outcome {
        seen.add(format!("handled {}", order.id));
        if order.id == 1 {
            Outcome::Reject("not wanted".to_owned())
        } else {
            Outcome::Ack
        }
    }
    async fn dead(order: Json<Order>, id: MessageId, seen: State<Seen>) {
        seen.add(format!("dead {} {}", order.id, id.0));
    }
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    let ordered = "
spring.cloud.stream:
  bindings.dead: { destination: '%DLQ%group', group: dead }
  rocketmq.bindings.input.consumer.push.orderly: true";
    let config = format!("{}\n{ordered}", embedded(folder.path()));
    let app = app(
        folder.path(),
        &config,
        Handler::listen("input").to(handle),
        &seen,
    )
    .handler(Handler::listen("dead").to(dead))
    .start()
    .await
    .unwrap();
    let id = send(&app, order(1, 0)).await.msg_id;
    send(&app, order(2, 0)).await;
    let all: BTreeSet<String> = seen.wait(3).await.into_iter().collect();
    let expected = [
        "handled 1".to_owned(),
        "handled 2".to_owned(),
        format!("dead 1 {id}"),
    ];
    assert_eq!(all, BTreeSet::from(expected));
    app.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_group_goes_on_where_it_was() {
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    let config = embedded(folder.path());
    let first = app(
        folder.path(),
        &config,
        Handler::listen("input").to(note),
        &seen,
    )
    .start()
    .await
    .unwrap();
    for id in 0..10 {
        send(&first, order(id, 0)).await;
    }
    seen.wait(10).await;
    first.input("input").unwrap().pause().await;
    send(&first, order(10, 0)).await;
    first.shutdown().await.unwrap();

    let seen = Seen::default();
    let second = app(
        folder.path(),
        &config,
        Handler::listen("input").to(note),
        &seen,
    )
    .start()
    .await
    .unwrap();
    send(&second, order(11, 0)).await;
    let all: BTreeSet<String> = seen.wait(2).await.into_iter().collect();
    assert_eq!(
        all,
        BTreeSet::from(["10.0".to_owned(), "11.0".to_owned()]),
        "nothing is lost, nothing comes twice"
    );
    second.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_applications_share_the_queues_and_the_last_one_gets_all() {
    let (folder, seen_a, seen_b) = (
        tempfile::tempdir().unwrap(),
        Seen::default(),
        Seen::default(),
    );
    let config = embedded(folder.path());
    let a = app(
        folder.path(),
        &config,
        Handler::listen("input").to(note),
        &seen_a,
    )
    .start()
    .await
    .unwrap();
    let cluster = format!(
        "spring.cloud.stream.rocketmq.binder.name-server: {}",
        a.name_server().unwrap()
    );
    let other = tempfile::tempdir().unwrap();
    let b = app(
        other.path(),
        &cluster,
        Handler::listen("input").to(note),
        &seen_b,
    )
    .start()
    .await
    .unwrap();

    assigned(&a, 2).await;
    assigned(&b, 2).await;
    for id in 0..40 {
        send(&b, order(id, 0)).await;
    }
    let shared = async {
        while seen_a.all().len() + seen_b.all().len() < 40 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, shared).await.unwrap();
    assert!(!seen_a.all().is_empty() && !seen_b.all().is_empty());

    b.shutdown().await.unwrap();
    assigned(&a, 4).await;
    let before = seen_a.all().len();
    for id in 40..50 {
        send(&a, order(id, 0)).await;
    }
    let all: BTreeSet<String> = seen_a
        .wait(before + 10)
        .await
        .into_iter()
        .chain(seen_b.all())
        .collect();
    assert_eq!(all.len(), 50, "nothing is lost");
    a.shutdown().await.unwrap();
}

/// Waits until the application has so many of the four queues.
async fn assigned(app: &AppHandle, queues: usize) {
    let input = app.input("input").unwrap();
    let reached = async {
        loop {
            let own = input
                .assignment()
                .await
                .into_iter()
                .filter(|queue| queue.destination == "orders")
                .count();
            if own == queues {
                return;
            }
            // The client tells of no change here: look again soon, up to the deadline.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, reached).await.is_ok();
    assert!(
        in_time,
        "{queues} queues expected, has {:?}",
        input.assignment().await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_get_exactly_what_local_transactions_commit() {
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    let more = format!(
        "{}\nspring.cloud.stream.rocketmq.bindings.output.producer: {{ producerType: Trans, group: books, transactionListener: books }}",
        embedded(folder.path())
    );
    // Odd orders are rolled back.
    let books = StoredListener::new(MemoryTxStore::new(), |work, half, args| async move {
        let order: Order = serde_json::from_slice(half.payload())?;
        assert_eq!(args.as_text(), Some("binder"));
        let state = match order.id % 2 {
            0 => LocalState::Commit,
            _ => LocalState::Rollback,
        };
        Ok((work, state))
    });
    let handler = Handler::listen("input").to(note);
    let app = app(folder.path(), &more, handler, &seen)
        .transaction_listener("books", books)
        .start()
        .await
        .unwrap();
    let output = app.output::<Order>("output").unwrap();
    let mut ids = BTreeSet::new();
    for id in 0..10 {
        let receipt = output
            .send_in_transaction(order(id, 0), TxArgs::text("binder"))
            .await
            .unwrap();
        assert!(receipt.reported && receipt.failure.is_none(), "{receipt:?}");
        ids.insert(receipt.transaction_id);
    }
    let (_, value) = output
        .transaction(order(11, 0), |_| async {
            Ok::<_, std::io::Error>(TxOutcome::Commit("by the function"))
        })
        .await
        .unwrap();
    assert_eq!((ids.len(), value), (10, Some("by the function")));
    let mut got = seen.wait(6).await;
    got.sort();
    assert_eq!(got, ["0.0", "11.0", "2.0", "4.0", "6.0", "8.0"]);
    app.shutdown().await.unwrap();
}

/// Does not know at first; asked by the broker, it commits even orders and rolls back odd ones.
struct Later(Seen);

impl TransactionListener for Later {
    async fn execute_local(&self, half: &HalfMessage, _: &TxArgs) -> Result<LocalState, BoxError> {
        self.0.add(format!("begun {}", half.transaction_id()));
        Ok(LocalState::Unknown)
    }

    async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        let order: Order = serde_json::from_slice(half.payload())?;
        self.0.add(format!("asked {}", half.transaction_id()));
        Ok(match order.id % 2 {
            0 => LocalState::Commit,
            _ => LocalState::Rollback,
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_asks_the_listener_for_what_it_was_not_told() {
    let (folder, seen, later) = (
        tempfile::tempdir().unwrap(),
        Seen::default(),
        Seen::default(),
    );
    let more = format!(
        "{}
bindery.embedded.broker: {{ transactionTimeOut: 300, transactionCheckInterval: 300 }}
spring.cloud.stream.rocketmq.bindings.output.producer: {{ transactional: true, group: books, transactionListener: later }}",
        embedded(folder.path())
    );
    let app = app(
        folder.path(),
        &more,
        Handler::listen("input").to(note),
        &seen,
    )
    .transaction_listener("later", Later(later.clone()))
    .start()
    .await
    .unwrap();
    // A plain send is a transaction too.
    for id in 0..2 {
        send(&app, order(id, 0)).await;
    }
    let told = later.wait(4).await;
    let ids = |what: &str| -> BTreeSet<String> {
        told.iter()
            .filter_map(|line| line.strip_prefix(what))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(ids("begun "), ids("asked "));
    assert_eq!(seen.wait(1).await, ["0.0"]);
    app.shutdown().await.unwrap();
}
