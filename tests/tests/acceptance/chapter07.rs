//! Chapter 7: a message that consumers get exactly if a local transaction commits.

use std::time::Duration;

use bindery::Message;
use bindery::error::BoxError;
use bindery::prelude::*;
use tokio::sync::watch;

use crate::seen::noting;
use crate::stage::{BackEnd, Stage};

const YAML: &str = include_str!("../../../examples/original/application-transaction.yaml");

/// The series' listener, and what it was asked.
#[derive(Clone)]
struct MyTransactionListener {
    executed: watch::Sender<Vec<(String, Option<String>)>>,
    checked: watch::Sender<Vec<String>>,
    /// A local transaction that never ends by itself.
    hangs: bool,
}

impl MyTransactionListener {
    fn new(hangs: bool) -> Self {
        Self {
            executed: watch::channel(Vec::new()).0,
            checked: watch::channel(Vec::new()).0,
            hangs,
        }
    }
}

impl TransactionListener for MyTransactionListener {
    async fn execute_local(
        &self,
        half: &HalfMessage,
        args: &TxArgs,
    ) -> Result<LocalState, BoxError> {
        let test = half.headers().get("test").unwrap_or("none").to_owned();
        let state = match test.as_str() {
            "1" => LocalState::Unknown,
            "2" => LocalState::Rollback,
            _ => LocalState::Commit,
        };
        let args = args.as_text().map(str::to_owned);
        self.executed
            .send_modify(|executed| executed.push((test, args)));
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Ok(state)
    }

    async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        let test = half.headers().get("test").unwrap_or("none").to_owned();
        self.checked.send_modify(|checked| checked.push(test));
        Ok(LocalState::Commit)
    }
}

fn transaction(test: &str) -> Message<String> {
    Message::new(format!("transaction {test}"))
        .content_type("application/json")
        .header("test", test)
        .header("USER_TRANSACTIONAL_ARGS", "binder")
}

/// 1 is delivered after the broker has asked, 2 never, 3 at once; the listener sees the argument.
pub(crate) async fn outcomes(stage: Stage) -> String {
    let (seen, listener) = (stage.seen(), MyTransactionListener::new(false));
    let app = stage
        .app(&[YAML])
        .output("output-transaction")
        .transaction_listener("myTransactionListener", listener.clone())
        .handler(noting("input-transaction", &seen))
        .start()
        .await
        .unwrap();
    for test in ["1", "2", "3"] {
        app.bridge()
            .send("output-transaction", transaction(test))
            .await
            .unwrap();
    }
    assert_eq!(seen.wait(1).await[0].text, "transaction 3", "at once");
    assert_eq!(
        stage.count("TransactionTopic").await,
        1,
        "only halves of the others"
    );
    stage.check_backs().await;
    let calls = seen.wait(2).await;
    assert_eq!(calls[1].text, "transaction 1");
    app.bridge()
        .send("output-transaction", transaction("4"))
        .await
        .unwrap();
    seen.wait(3).await;
    // Longer than the time after which an undecided one is asked about, 6 s unless configured.
    let asked_by_then = match stage.back_end() {
        BackEnd::Apache => Duration::from_secs(9),
        BackEnd::Memory | BackEnd::Embedded => Duration::from_secs(3),
    };
    stage.quiet(asked_by_then).await;
    stage.check_backs().await;
    app.shutdown().await.unwrap();
    assert_eq!(
        seen.texts(),
        ["transaction 3", "transaction 1", "transaction 4"],
        "2 never"
    );
    let binder = |test: &str| (test.to_owned(), Some("binder".to_owned()));
    assert_eq!(
        *listener.executed.borrow(),
        ["1", "2", "3", "4"].map(binder)
    );
    assert!(
        listener.checked.borrow().iter().all(|test| test == "1"),
        "{:?}",
        listener.checked
    );
    format!(
        "3 at once, 1 after {} question(s), 2 never; args seen",
        listener.checked.borrow().len()
    )
}

/// Stopped between half and decision: another instance of the group is asked and answers.
pub(crate) async fn another_instance_answers(stage: Stage) -> String {
    let quick = "bindery.shutdown.grace: 1s";
    let first = MyTransactionListener::new(true);
    let app = stage
        .app(&[YAML, quick])
        .output("output-transaction")
        .transaction_listener("myTransactionListener", first.clone())
        .start()
        .await
        .unwrap();
    let sending = tokio::spawn({
        let bridge = app.bridge();
        async move { bridge.send("output-transaction", transaction("3")).await }
    });
    let mut executed = first.executed.subscribe();
    executed
        .wait_for(|executed| !executed.is_empty())
        .await
        .unwrap();
    sending.abort();
    assert!(
        sending.await.is_err_and(|ended| ended.is_cancelled()),
        "between half and decision"
    );
    app.shutdown().await.unwrap();

    let (seen, second) = (stage.seen(), MyTransactionListener::new(false));
    let app = stage
        .app(&[YAML, quick])
        .output("output-transaction")
        .transaction_listener("myTransactionListener", second.clone())
        .handler(noting("input-transaction", &seen))
        .start()
        .await
        .unwrap();
    stage.check_backs().await;
    assert_eq!(seen.wait(1).await[0].text, "transaction 3");
    app.shutdown().await.unwrap();
    assert!(second.executed.borrow().is_empty(), "not executed again");
    assert_eq!(seen.texts().len(), 1, "once");
    "stopped before its decision; a second instance was asked, answered, and it was delivered once"
        .to_owned()
}
