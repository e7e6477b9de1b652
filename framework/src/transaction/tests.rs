//! Transactional outputs over the in-process binder.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::*;
use crate::binder::memory::MemoryBinder;
use crate::binding::SendError;
use crate::config::LoadOptions;
use crate::pace::Pace;
use crate::{App, AppHandle, Output};

const BINDINGS: &str = "
spring.cloud.stream:
  default-binder: memory
  default.content-type: text/plain
  bindings:
    output: { destination: orders }
    plain: { destination: orders }
  rocketmq.bindings.output.producer: { producerType: Trans, group: g, transactionListener: books }
";

struct Bench {
    broker: MemoryBinder,
    app: AppHandle,
}

impl Bench {
    async fn start(listener: impl TransactionListener) -> Self {
        let broker = MemoryBinder::in_time(Pace::virtual_from(0));
        let app = App::builder()
            .options(LoadOptions::from_text(BINDINGS))
            .without_inventory()
            .memory(broker.clone())
            .output("output")
            .output("plain")
            .transaction_listener("books", listener)
            .start()
            .await
            .unwrap();
        Self { broker, app }
    }

    fn output(&self, name: &str) -> Output<String> {
        self.app.output(name).unwrap()
    }

    fn stored(&self) -> Vec<String> {
        let text = |message: Message| String::from_utf8(message.into_payload().to_vec()).unwrap();
        self.broker.stored("orders").into_iter().map(text).collect()
    }
}

/// Decides by the argument: `commit`, `rollback`, `fail`, `panic`, else unknown. Asked, it commits from the second time on.
#[derive(Default)]
struct ByArgument {
    asked: AtomicU32,
}

impl TransactionListener for ByArgument {
    async fn execute_local(
        &self,
        half: &HalfMessage,
        args: &TxArgs,
    ) -> Result<LocalState, BoxError> {
        assert!(!half.transaction_id().is_empty());
        assert_eq!(half.headers().get("TRANSACTIONAL_ARGS"), None);
        match args.as_text() {
            Some("commit") => Ok(LocalState::Commit),
            Some("rollback") => Ok(LocalState::Rollback),
            Some("fail") => Err("no book".into()),
            Some("panic") => panic!("no book"),
            _ => Ok(LocalState::Unknown),
        }
    }

    async fn check_local(&self, _: &HalfMessage) -> Result<LocalState, BoxError> {
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            0 => Err("not now".into()),
            _ => Ok(LocalState::Commit),
        }
    }
}

#[tokio::test]
async fn committed_messages_are_stored_and_rolled_back_ones_are_not() {
    let bench = Bench::start(ByArgument::default()).await;
    let output = bench.output("output");
    for (text, state) in [
        ("commit", LocalState::Commit),
        ("rollback", LocalState::Rollback),
    ] {
        let receipt = output
            .send_in_transaction(text, TxArgs::text(text))
            .await
            .unwrap();
        assert_eq!((receipt.state, receipt.failure.is_none()), (state, true));
    }
    assert_eq!(bench.stored(), ["commit"]);
    assert_eq!(bench.broker.ask_for_outcomes().await, 0);
}

#[tokio::test]
async fn a_plain_send_takes_its_argument_from_the_header_which_does_not_travel() {
    let bench = Bench::start(ByArgument::default()).await;
    let output = bench.output("output");
    for argument in ["rollback", "commit"] {
        let message = Message::new(argument.to_owned()).header("USER_TRANSACTIONAL_ARGS", argument);
        output.send(message).await.unwrap();
    }
    assert_eq!(bench.stored(), ["commit"]);
    let stored = bench.broker.stored("orders");
    assert_eq!(stored[0].headers().get("TRANSACTIONAL_ARGS"), None);
}

#[tokio::test]
async fn errors_and_panics_are_unknown_and_the_listener_is_asked_until_it_knows() {
    let bench = Bench::start(ByArgument::default()).await;
    let output = bench.output("output");
    let mut failures = Vec::new();
    for argument in ["fail", "panic", "?"] {
        let receipt = output
            .send_in_transaction(argument, TxArgs::text(argument))
            .await
            .unwrap();
        assert_eq!(receipt.state, LocalState::Unknown);
        failures.push(receipt.failure.map(|failure| failure.to_string()));
    }
    assert_eq!(
        failures,
        [
            Some("the local transaction failed".to_owned()),
            Some("the local transaction panicked".to_owned()),
            None
        ]
    );
    assert_eq!(bench.stored(), [""; 0]);
    assert_eq!(bench.broker.ask_for_outcomes().await, 1);
    assert_eq!(bench.broker.ask_for_outcomes().await, 0);
    let mut stored = bench.stored();
    stored.sort();
    assert_eq!(stored, ["?", "fail", "panic"]);
}

#[tokio::test]
async fn a_function_decides_and_its_value_comes_back() {
    let bench = Bench::start(ByArgument::default()).await;
    let output = bench.output("output");
    let (receipt, number) = output
        .transaction("yes", |half| async move {
            Ok::<_, Infallible>(TxOutcome::Commit(half.payload().len()))
        })
        .await
        .unwrap();
    assert_eq!((receipt.state, number), (LocalState::Commit, Some(3)));
    let (receipt, why) = output
        .transaction("no", |_| async {
            Ok::<_, Infallible>(TxOutcome::Rollback("sold out"))
        })
        .await
        .unwrap();
    assert_eq!(
        (receipt.state, why),
        (LocalState::Rollback, Some("sold out"))
    );
    let (receipt, nothing) = output
        .transaction("?", |_| async { Err::<TxOutcome<()>, _>("no book") })
        .await
        .unwrap();
    assert_eq!((receipt.state, nothing), (LocalState::Unknown, None));
    assert_eq!(bench.stored(), ["yes"]);
}

#[tokio::test]
async fn a_plain_output_has_no_transactions_and_a_transaction_no_delay() {
    let bench = Bench::start(ByArgument::default()).await;
    let plain = bench.output("plain");
    let refused = plain.send_in_transaction("x", TxArgs::none()).await;
    assert!(matches!(refused, Err(SendError::WrongProducerType { .. })));
    let delayed = Message::new("x".to_owned()).delay_level(1);
    let refused = bench.output("output").send(delayed).await;
    assert!(matches!(refused, Err(SendError::Header { .. })));
    assert_eq!(bench.broker.ask_for_outcomes().await, 0);
}

#[tokio::test]
async fn a_store_keeps_work_and_outcome_together() {
    let (store, booked) = (MemoryTxStore::new(), Arc::new(AtomicU32::new(0)));
    let local = {
        let booked = Arc::clone(&booked);
        move |mut work: MemoryWork, half: HalfMessage, args: TxArgs| {
            let booked = Arc::clone(&booked);
            async move {
                work.on_commit(move || {
                    booked.fetch_add(1, Ordering::Relaxed);
                });
                match args.as_text() {
                    Some("commit") => Ok((work, LocalState::Commit)),
                    Some("rollback") => Ok((work, LocalState::Rollback)),
                    _ => Err(format!("no book for {}", half.transaction_id()).into()),
                }
            }
        }
    };
    let bench = Bench::start(StoredListener::new(store.clone(), local)).await;
    let mut outcomes = Vec::new();
    for argument in ["commit", "rollback", "fail"] {
        let receipt = bench
            .output("output")
            .send_in_transaction(argument, TxArgs::text(argument))
            .await
            .unwrap();
        outcomes.push(store.outcome(&receipt.transaction_id).await.unwrap());
    }
    assert_eq!(
        outcomes,
        [Some(LocalState::Commit), Some(LocalState::Rollback), None]
    );
    assert_eq!(booked.load(Ordering::Relaxed), 1);
    assert_eq!(bench.broker.ask_for_outcomes().await, 1);
    assert_eq!(store.expire(Duration::from_secs(3600)).await.unwrap(), 0);
    assert_eq!(store.expire(Duration::ZERO).await.unwrap(), 2);
}

#[tokio::test]
async fn a_restarted_application_answers_for_the_one_before() {
    let bench = Bench::start(ByArgument::default()).await;
    let output = bench.output("output");
    output.send("left open").await.unwrap();
    bench.app.shutdown().await.unwrap();
    let _restarted = App::builder()
        .options(LoadOptions::from_text(BINDINGS))
        .without_inventory()
        .memory(bench.broker.clone())
        .output("output")
        .output("plain")
        .transaction_listener(
            "books",
            ByArgument {
                asked: AtomicU32::new(1),
            },
        )
        .start()
        .await
        .unwrap();
    assert_eq!(bench.broker.ask_for_outcomes().await, 0);
    assert_eq!(bench.stored(), ["left open"]);
}
