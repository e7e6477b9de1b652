//! What a test does with one part of the application: messages in, messages out, time, transactions.

use std::collections::BTreeMap;
use std::time::Duration;

use super::app::{PATIENCE, TestApp, lock};
use super::back_end::Server;
use super::calls::TxCall;
use super::received::Received;
use crate::binder::memory::MemoryBinder;
use crate::binding::{IntoMessage, SendError, SendReceipt};
use crate::pipeline::Chain;
use crate::transaction::LocalState;

/// How long a test waits for the questions of a broker, which come every 30 s there.
const QUESTION_PATIENCE: Duration = Duration::from_secs(90);

/// Where a test puts messages in, see [`TestApp::input`].
#[derive(Debug)]
pub struct TestInput<'a> {
    app: &'a TestApp,
    name: String,
}

impl<'a> TestInput<'a> {
    pub(super) fn new(app: &'a TestApp, name: &str) -> Self {
        Self {
            app,
            name: name.to_owned(),
        }
    }
}

impl TestInput<'_> {
    /// Sends a payload, or a [`Message`](crate::Message) with headers, encoded by the binding's content type. If an output
    /// with a partition key has the same destination, its key chooses the queue here too.
    ///
    /// # Panics
    /// When it is not stored.
    pub async fn send(&self, message: impl IntoMessage) -> SendReceipt {
        match self.try_send(message).await {
            Ok(receipt) => receipt,
            Err(error) => panic!("not sent to `{}`: {}", self.name, Chain(&error)),
        }
    }

    /// [`send`](Self::send), where it may fail.
    ///
    /// # Errors
    /// [`SendError`]: the message is not known to be stored.
    pub async fn try_send(&self, message: impl IntoMessage) -> Result<SendReceipt, SendError> {
        let (payload, headers) = message.into_message().into_parts();
        let output = self.app.output_to(&self.name).await?;
        output.send(&payload, headers).await
    }
}

/// Where a test takes messages out, see [`TestApp::output`].
///
/// ```
/// use std::time::Duration;
///
/// # bindery::testing::entry::example("spring.cloud.stream.bindings: { doc-out: { destination: orders } }", |t| async move {
/// t.app().bridge().send("doc-out", "tea").await.unwrap();
/// let output = t.output("doc-out");
/// assert_eq!(output.receive(Duration::ZERO).await.unwrap().text(), "tea");
/// assert!(output.receive(Duration::from_secs(5)).await.is_none());
/// # });
/// ```
#[derive(Debug)]
pub struct TestOutput<'a> {
    app: &'a TestApp,
    topic: String,
}

impl<'a> TestOutput<'a> {
    pub(super) fn new(app: &'a TestApp, topic: String) -> Self {
        Self { app, topic }
    }
}

impl TestOutput<'_> {
    /// The next message of the destination that was not received here yet, in the order of storing, from its oldest on.
    /// Waits up to `timeout`, in memory of virtual time; with zero it still waits for handlers that run.
    ///
    /// # Panics
    /// When a handler does not come to an end.
    pub async fn receive(&self, timeout: Duration) -> Option<Received> {
        match &self.app.server {
            Server::Memory(memory) => {
                let deadline = memory.pace().after(timeout);
                loop {
                    if let Some(found) = self.next_in_memory(memory) {
                        return Some(found);
                    }
                    let stepped = tokio::time::timeout(PATIENCE, memory.step(deadline)).await;
                    match stepped {
                        Ok(true) => {}
                        Ok(false) => return self.next_in_memory(memory),
                        Err(tokio::time::error::Elapsed { .. }) => {
                            panic!("waited {PATIENCE:?} for handlers: {}", memory.under_way())
                        }
                    }
                }
            }
            Server::Real(_) => {
                let tap = self.app.tap(&self.topic).await;
                let found = async {
                    loop {
                        let changed = self.app.log.pace().changed();
                        if let Some(found) = tap.next() {
                            return found;
                        }
                        changed.await;
                    }
                };
                tokio::time::timeout(timeout, found).await.ok()
            }
        }
    }

    fn next_in_memory(&self, memory: &MemoryBinder) -> Option<Received> {
        let mut seen = lock(&self.app.taps.seen);
        let seen = seen.entry(self.topic.clone()).or_default();
        let mut stored = memory.in_order(&self.topic).into_iter();
        let (number, message) = stored.find(|(number, _)| number > seen)?;
        *seen = number;
        Some(Received::new(message))
    }
}

/// The time of a test, see [`TestApp::clock`].
///
/// ```
/// use std::time::Duration;
///
/// use bindery::prelude::*;
///
/// #[stream_listener("doc-late")]
/// async fn on_late(order: String) {}
///
/// # bindery::testing::entry::example("spring.cloud.stream.bindings: { doc-late: { destination: orders, group: g } }", |t| async move {
/// t.input("doc-late").send(Message::new("tea").delay_level(5)).await;
/// t.clock().advance(Duration::from_secs(59)).await;
/// assert!(t.calls("on_late").is_empty());
/// t.clock().advance(Duration::from_secs(1)).await;
/// assert_eq!(t.calls("on_late").len(), 1);
/// # });
/// ```
#[derive(Debug)]
pub struct TestClock<'a> {
    app: &'a TestApp,
}

impl<'a> TestClock<'a> {
    pub(super) fn new(app: &'a TestApp) -> Self {
        Self { app }
    }
}

impl TestClock<'_> {
    /// Milliseconds since 1970 UTC.
    #[must_use]
    pub fn now_millis(&self) -> i64 {
        self.app.log.pace().now_millis()
    }

    /// Lets time pass, with everything that is due on the way: delays, redeliveries, questions about transactions. On a
    /// real broker it cannot be moved: there this sleeps.
    ///
    /// # Panics
    /// When a handler does not come to an end.
    pub async fn advance(&self, by: Duration) {
        match &self.app.server {
            Server::Memory(memory) => {
                let target = memory.pace().after(by);
                let done = tokio::time::timeout(PATIENCE, memory.run_until(target)).await;
                assert!(
                    done.is_ok(),
                    "waited {PATIENCE:?} for handlers: {}",
                    memory.under_way()
                );
            }
            Server::Real(_) => tokio::time::sleep(by).await,
        }
    }
}

/// The questions to transaction listeners, see [`TestApp::tx`].
#[derive(Debug)]
pub struct TestTransactions<'a> {
    app: &'a TestApp,
}

impl<'a> TestTransactions<'a> {
    pub(super) fn new(app: &'a TestApp) -> Self {
        Self { app }
    }
}

impl TestTransactions<'_> {
    /// Lets the broker ask about every transaction whose outcome it does not know, once; in memory at once, whatever the
    /// time. On a real broker this waits for its question. How many have no outcome even then.
    ///
    /// # Panics
    /// When the questions don't come.
    pub async fn check(&self) -> usize {
        match &self.app.server {
            Server::Memory(memory) => {
                let asked = tokio::time::timeout(PATIENCE, memory.ask_for_outcomes()).await;
                asked.unwrap_or_else(|_| panic!("a listener does not answer within {PATIENCE:?}"))
            }
            Server::Real(_) => {
                let before = self.checked().len();
                let open = self.open();
                let missing = async || {
                    let checked = self.checked();
                    let new = &checked[before.min(checked.len())..];
                    let unasked = open
                        .iter()
                        .filter(|id| !new.iter().any(|call| call.transaction_id() == *id))
                        .count();
                    (unasked > 0).then(|| format!("{unasked} transactions were not asked about"))
                };
                self.app
                    .until_within(QUESTION_PATIENCE, "the broker asks", missing)
                    .await;
                self.open().len()
            }
        }
    }

    /// Transactions whose last answer was no outcome.
    fn open(&self) -> Vec<String> {
        let mut open: BTreeMap<String, bool> = BTreeMap::new();
        for call in self.executed().into_iter().chain(self.checked()) {
            let known = matches!(call.answer(), Ok(LocalState::Commit | LocalState::Rollback));
            open.insert(call.transaction_id().to_owned(), !known);
        }
        let open = open.into_iter().filter(|(_, open)| *open);
        open.map(|(id, _)| id).collect()
    }

    /// The local transactions that listeners ran, in order.
    #[must_use]
    pub fn executed(&self) -> Vec<TxCall> {
        self.app.log.executed()
    }

    /// The broker's questions that listeners answered, in order.
    #[must_use]
    pub fn checked(&self) -> Vec<TxCall> {
        self.app.log.checked()
    }
}
