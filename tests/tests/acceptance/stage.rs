//! What a row plays on: the original's YAML with names of the row's own, on one of the back ends.
//!
//! ```text
//! YAML as the series prints it ─▶ topics and groups get a suffix ─▶ binder by configuration alone ─▶ AppBuilder
//! ```

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bindery::binder::memory::MemoryBinder;
use bindery::config::LoadOptions;
use bindery::prelude::*;
use bindery_client::{Client, ClientConfig};
use std::sync::Arc;

use crate::servers::Servers;

/// Where a row runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackEnd {
    /// The binder `memory`.
    Memory,
    /// Our broker in this process.
    Embedded,
    /// The cluster that `BINDERY_NAMESRV` names.
    Apache,
}

impl BackEnd {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Embedded, Self::Apache];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Embedded => "embedded",
            Self::Apache => "apache",
        }
    }

    /// In memory nothing waits for a socket: the clock jumps to the next timer whenever all is idle.
    pub(crate) fn runtime(self) -> tokio::runtime::Runtime {
        let mut builder = match self {
            Self::Memory => {
                let mut builder = tokio::runtime::Builder::new_current_thread();
                builder.start_paused(true);
                builder
            }
            Self::Embedded | Self::Apache => tokio::runtime::Builder::new_multi_thread(),
        };
        builder.worker_threads(2).enable_all().build().unwrap()
    }
}

impl fmt::Display for BackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A row's own corner of a back end.
pub(crate) struct Stage {
    back_end: BackEnd,
    run: String,
    name_server: Option<String>,
    memory: Option<MemoryBinder>,
    folder: tempfile::TempDir,
    files: AtomicUsize,
}

impl Stage {
    pub(crate) fn new(back_end: BackEnd, servers: &Servers, row: &str) -> Self {
        Self {
            back_end,
            run: format!("{row}-{:06x}", rand::random::<u32>() & 0x00ff_ffff),
            name_server: servers.name_server(),
            memory: servers.memory(),
            folder: tempfile::tempdir().unwrap(),
            files: AtomicUsize::new(0),
        }
    }

    pub(crate) fn back_end(&self) -> BackEnd {
        self.back_end
    }

    pub(crate) fn name_server(&self) -> Option<&str> {
        self.name_server.as_deref()
    }

    /// The same row on another name server.
    pub(crate) fn on(mut self, name_server: String) -> Self {
        self.name_server = Some(name_server);
        self
    }

    /// The text with topics and groups that no other row and no other run has.
    pub(crate) fn own(&self, text: &str) -> String {
        let run = &self.run;
        text.replace("test-topic", &format!("test-topic-{run}"))
            .replace("TransactionTopic", &format!("TransactionTopic-{run}"))
            .replace("-group", &format!("-group-{run}"))
    }

    /// An application with this YAML, several documents of which the later ones win, and no handler yet.
    pub(crate) fn app(&self, documents: &[&str]) -> AppBuilder {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let file = self.folder.path().join(format!("app-{number}.yaml"));
        std::fs::write(&file, self.own(&documents.join("\n---\n"))).unwrap();
        let app = App::builder()
            .options(LoadOptions {
                locations: vec![file],
                ..LoadOptions::default()
            })
            .without_inventory();
        match (&self.memory, &self.name_server) {
            (Some(memory), _) => app
                .set("spring.cloud.stream.default-binder", "memory")
                .binder("memory", Arc::new(memory.clone())),
            (None, Some(server)) => {
                app.set("spring.cloud.stream.rocketmq.binder.name-server", server)
            }
            (None, None) => app,
        }
    }

    /// Texts of the messages of `topic` (as the YAML writes it) that carry this key.
    pub(crate) async fn by_key(&self, topic: &str, key: &str) -> Vec<String> {
        let topic = self.own(topic);
        if let Some(memory) = &self.memory {
            let stored = memory.stored(&topic).into_iter();
            return stored
                .filter(|message| message.headers().keys().any(|own| own == key))
                .map(|message| text(message.payload()))
                .collect();
        }
        let client = self.client();
        let found = client
            .admin()
            .query_by_key(&topic, key, 32, 0, i64::MAX)
            .await
            .unwrap();
        client.shutdown().await;
        found.iter().map(|message| text(message.body())).collect()
    }

    /// Messages in all queues of `topic` (as the YAML writes it).
    pub(crate) async fn count(&self, topic: &str) -> i64 {
        let topic = self.own(topic);
        if let Some(memory) = &self.memory {
            return i64::try_from(memory.stored(&topic).len()).unwrap();
        }
        let client = self.client();
        let stats = client.admin().topic_stats(&topic).await.unwrap();
        client.shutdown().await;
        let queues = stats.offset_table.0.values();
        queues
            .map(|queue| queue.max_offset - queue.min_offset)
            .sum()
    }

    /// The memory binder asks when it is told to; brokers ask by themselves.
    pub(crate) async fn check_backs(&self) {
        if let Some(memory) = &self.memory {
            memory.ask_for_outcomes().await;
        }
    }

    /// Waits for the next whole second; how `consumeTimestamp` writes it, and in milliseconds since 1970.
    pub(crate) async fn next_second(&self) -> (String, i64) {
        let second = jiff::Timestamp::now().as_second() + 1;
        let at = jiff::Timestamp::from_second(second).unwrap();
        while jiff::Timestamp::now() < at {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let local = at.to_zoned(jiff::tz::TimeZone::system());
        (
            local.strftime("%Y%m%d%H%M%S").to_string(),
            at.as_millisecond(),
        )
    }

    /// A client of the name server.
    pub(crate) fn client(&self) -> Client {
        let server = self
            .name_server
            .as_deref()
            .expect("a back end with servers");
        Client::start(ClientConfig::new(server)).unwrap()
    }

    /// Real time in which something must not happen; the clock in memory jumps over it.
    pub(crate) async fn quiet(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
