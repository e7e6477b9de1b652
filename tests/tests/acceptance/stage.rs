//! What a row plays on: the original's YAML, as it is printed, on one of the back ends.
//!
//! ```text
//! TestApp (no bindings) = the broker of the row ◀── beside ── applications, each with YAML and handlers of its own
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bindery::error_handler::ErrorHandler;
use bindery::prelude::*;
use bindery::registry::Handler;
use bindery::testing::{TestApp, TestAppBuilder};
use bindery_client::Client;

use crate::seen::{At, Seen};

/// Where a row runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackEnd {
    /// The binder `memory`, in virtual time.
    Memory,
    /// Our broker in this process.
    Embedded,
    /// The cluster that `BINDERY_NAMESRV` names.
    Apache,
}

/// Short times for what rows wait for; a cluster has its own.
const BROKER: &str =
    "bindery.embedded.broker: { transactionTimeOut: 1000, transactionCheckInterval: 1000";

impl BackEnd {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Embedded, Self::Apache];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Embedded => "embedded",
            Self::Apache => "apache",
        }
    }

    /// Whether anybody wants it.
    pub(crate) fn is_asked_for(self) -> bool {
        self != Self::Apache || bindery::testing::BackEnd::cluster().is_some()
    }

    fn of_tests(self) -> bindery::testing::BackEnd {
        match self {
            Self::Memory => bindery::testing::BackEnd::Memory,
            Self::Embedded => bindery::testing::BackEnd::Embedded,
            Self::Apache => bindery::testing::BackEnd::Cluster,
        }
    }
}

impl fmt::Display for BackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The broker of one row.
pub(crate) struct Stage {
    back_end: BackEnd,
    host: Arc<TestApp>,
}

impl Stage {
    pub(crate) async fn new(back_end: BackEnd) -> Self {
        Self::with(back_end, "").await
    }

    /// With more of the broker's own keys, `key: value, …`; a cluster has its own.
    pub(crate) async fn with(back_end: BackEnd, keys: &str) -> Self {
        let separator = if keys.is_empty() { "" } else { ", " };
        let host = TestApp::builder()
            .config(format!("{BROKER}{separator}{keys} }}"))
            .without_inventory()
            .back_end(back_end.of_tests())
            .start()
            .await
            .unwrap();
        Self {
            back_end,
            host: Arc::new(host),
        }
    }

    pub(crate) fn back_end(&self) -> BackEnd {
        self.back_end
    }

    /// A list of calls in this broker's time.
    pub(crate) fn seen(&self) -> Seen {
        Seen::new(Arc::clone(&self.host), self.back_end == BackEnd::Memory)
    }

    pub(crate) fn now(&self) -> At {
        At(self.host.clock().now_millis())
    }

    /// An application with this YAML, several documents of which the later ones win, and no handler yet.
    pub(crate) fn app(&self, documents: &[&str]) -> Playing<'_> {
        Playing {
            host: &self.host,
            builder: TestApp::builder()
                .config(documents.join("\n---\n"))
                .without_inventory(),
        }
    }

    /// Where brokers are listed; nothing in memory.
    pub(crate) fn name_server(&self) -> Option<String> {
        let client = self.host.client()?;
        client.config().name_servers.first().cloned()
    }

    /// A topic as it is called at the broker.
    pub(crate) fn wire_name(&self, topic: &str) -> String {
        let client = self.host.client();
        match client.and_then(|client| client.config().namespace.as_deref()) {
            Some(namespace) => format!("{namespace}%{topic}"),
            None => topic.to_owned(),
        }
    }

    /// A client of the broker; none in memory.
    pub(crate) fn client(&self) -> Option<&Client> {
        self.host.client()
    }

    /// Texts of the messages of `topic` that the broker finds by this key.
    pub(crate) async fn by_key(&self, topic: &str, key: &str) -> Vec<String> {
        let Some(client) = self.client() else {
            let stored = self.host.stored(topic).await.into_iter();
            return stored
                .filter(|message| message.keys().contains(&key))
                .map(|message| message.text())
                .collect();
        };
        let admin = client.admin();
        let found = admin.query_by_key(topic, key, 32, 0, i64::MAX).await;
        let found = found.unwrap();
        found.iter().map(|message| text(message.body())).collect()
    }

    /// Messages in all queues of `topic`.
    pub(crate) async fn count(&self, topic: &str) -> i64 {
        let Some(client) = self.client() else {
            return i64::try_from(self.host.stored(topic).await.len()).unwrap();
        };
        let stats = client.admin().topic_stats(topic).await.unwrap();
        let queues = stats.offset_table.0.values();
        queues
            .map(|queue| queue.max_offset - queue.min_offset)
            .sum()
    }

    /// In memory the questions about transactions come when time is moved to them; brokers ask by themselves.
    pub(crate) async fn check_backs(&self) {
        if self.back_end == BackEnd::Memory {
            self.host.tx().check().await;
        }
    }

    /// Takes the only broker down.
    pub(crate) async fn fail_broker(&mut self) {
        let host = Arc::get_mut(&mut self.host).expect("nobody else looks at the broker");
        host.fail_broker().await;
    }

    /// Time in which something must not happen.
    pub(crate) async fn quiet(&self, time: Duration) {
        self.host.clock().advance(time).await;
    }

    /// Waits for the next whole second; how `consumeTimestamp` writes it, and in milliseconds since 1970.
    pub(crate) async fn next_second(&self) -> (String, i64) {
        let left = 1000 - self.now().0 % 1000;
        self.quiet(Duration::from_millis(u64::try_from(left).unwrap()))
            .await;
        let at = jiff::Timestamp::from_second(self.now().0 / 1000).unwrap();
        let local = at.to_zoned(jiff::tz::TimeZone::system());
        (
            local.strftime("%Y%m%d%H%M%S").to_string(),
            at.as_millisecond(),
        )
    }
}

/// An application that is being described.
pub(crate) struct Playing<'a> {
    host: &'a TestApp,
    builder: TestAppBuilder,
}

impl Playing<'_> {
    pub(crate) fn output(mut self, binding: &str) -> Self {
        self.builder = self.builder.output(binding);
        self
    }

    pub(crate) fn handler(mut self, handler: Handler) -> Self {
        self.builder = self.builder.handler(handler);
        self
    }

    pub(crate) fn transaction_listener(
        mut self,
        name: &str,
        listener: impl TransactionListener,
    ) -> Self {
        self.builder = self.builder.transaction_listener(name, listener);
        self
    }

    pub(crate) fn error_handler(mut self, handler: ErrorHandler) -> Self {
        self.builder = self.builder.error_handler(handler);
        self
    }

    pub(crate) async fn start(self) -> bindery::Result<AppHandle> {
        self.host.beside(self.builder).await
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
