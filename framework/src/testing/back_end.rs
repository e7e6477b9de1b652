//! What an application under test runs on.
//!
//! ```text
//! Memory   ─▶ MemoryBinder in virtual time, one a test
//! Embedded ─▶ name server and broker of this process on free ports, store in a folder of its own
//! Cluster  ─▶ the name servers in BINDERY_NAMESRV; topics and groups in a namespace of the test's own
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bindery_client::{Client, ClientConfig};

use super::watch::{Watch, Watched};
use crate::binder::memory::MemoryBinder;
use crate::binder::rocketmq::{RocketmqBinder, RocketmqOptions};
use crate::binder::{Binder, BinderError};
use crate::config::{EmbeddedConfig, Loaded};
use crate::embedded::Embedded;
use crate::error::{Error, Result};
use crate::pace::Pace;

/// The environment variable that names a cluster for tests: `host:port`, several separated by `;`.
pub(super) const CLUSTER: &str = "BINDERY_NAMESRV";

/// Positions are written this often in tests, so that waiting for them is short.
const PERSIST_INTERVAL: Duration = Duration::from_millis(500);

/// What a test runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackEnd {
    /// A broker inside the process, in virtual time. Starts in no time; pauses and delays take none.
    #[default]
    Memory,
    /// The included name server and broker on free loopback ports, in real time.
    Embedded,
    /// The cluster whose name servers the environment variable `BINDERY_NAMESRV` names, in real time.
    Cluster,
}

impl BackEnd {
    /// [`Cluster`](Self::Cluster), if one is asked for by `BINDERY_NAMESRV`.
    #[must_use]
    pub fn cluster() -> Option<Self> {
        std::env::var_os(CLUSTER).map(|_| Self::Cluster)
    }

    /// All that can be run on here: with `BINDERY_NAMESRV` three, else two.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let always = [Self::Memory, Self::Embedded];
        always.into_iter().chain(Self::cluster()).collect()
    }

    /// Whether time is the machine's and can't be moved.
    #[must_use]
    pub fn is_real(self) -> bool {
        self != Self::Memory
    }
}

impl fmt::Display for BackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Embedded => "embedded",
            Self::Cluster => "cluster",
        })
    }
}

/// The broker of one test, running.
pub(super) enum Server {
    Memory(MemoryBinder),
    Real(Box<Real>),
}

/// A broker behind sockets.
pub(super) struct Real {
    pub(super) client: Client,
    pub(super) watch: Watch,
    embedded: Option<(Embedded, tempfile::TempDir)>,
    name_server: String,
    namespace: Option<String>,
}

impl Server {
    pub(super) async fn start(kind: BackEnd, loaded: &Loaded, begins: Option<i64>) -> Result<Self> {
        match kind {
            BackEnd::Memory => {
                let begins = begins.unwrap_or_else(|| Pace::system().now_millis());
                let memory = MemoryBinder::in_time(Pace::virtual_from(begins));
                for (key, value) in loaded.broker_keys() {
                    memory.set(&key, &value).map_err(|expected| {
                        Error::user(format!("`bindery.embedded.broker.{key}`: `{value}` is not accepted, expected {expected}"))
                    })?;
                }
                Ok(Self::Memory(memory))
            }
            BackEnd::Embedded => Ok(Self::Real(Box::new(Real::embedded(loaded).await?))),
            BackEnd::Cluster => Ok(Self::Real(Box::new(Real::cluster()?))),
        }
    }

    pub(super) fn pace(&self) -> Pace {
        match self {
            Self::Memory(memory) => memory.pace().clone(),
            Self::Real(real) => real.watch.pace().clone(),
        }
    }

    /// A binder for one application, or for the test's own sends and looks.
    pub(super) fn binder(&self, loaded: &Loaded) -> Result<Arc<dyn Binder>, BinderError> {
        match self {
            Self::Memory(memory) => Ok(Arc::new(
                memory.with_settings(loaded.config.rocketmq.clone()),
            )),
            Self::Real(real) => real.binder(loaded),
        }
    }

    pub(super) async fn stop(self) -> Result<()> {
        let Self::Real(real) = self else {
            return Ok(());
        };
        real.client.shutdown().await;
        match real.embedded {
            Some((embedded, _folder)) => embedded.stop().await,
            None => Ok(()),
        }
    }
}

impl Real {
    async fn embedded(loaded: &Loaded) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|source| Error::System {
            what: "a folder for the broker's store",
            source,
        })?;
        let embedded = Embedded::start(&EmbeddedConfig {
            store_dir: folder.path().join("store"),
            broker: loaded.broker_keys(),
            ..EmbeddedConfig::default()
        })
        .await?;
        let name_server = embedded.name_server();
        Self::at(name_server, None, Some((embedded, folder)))
    }

    fn cluster() -> Result<Self> {
        let name_server = std::env::var(CLUSTER)
            .map_err(|_| Error::user(format!("set {CLUSTER}=host:port to run on a cluster")))?;
        // Every test has names of its own on a cluster that many use.
        let unique =
            Pace::system().now_millis().unsigned_abs() ^ u64::from(std::process::id()) << 44;
        let number = NUMBERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Self::at(name_server, Some(format!("test{unique:x}x{number}")), None)
    }

    fn at(
        name_server: String,
        namespace: Option<String>,
        embedded: Option<(Embedded, tempfile::TempDir)>,
    ) -> Result<Self> {
        let mut config = ClientConfig::new(&name_server);
        config.namespace.clone_from(&namespace);
        let client = Client::start(config).map_err(Error::user)?;
        Ok(Self {
            watch: Watch::new(Pace::system()),
            client,
            embedded,
            name_server,
            namespace,
        })
    }

    fn binder(&self, loaded: &Loaded) -> Result<Arc<dyn Binder>, BinderError> {
        let mut config = loaded.config.rocketmq.clone();
        config.binder.persist_consumer_offset_interval = PERSIST_INTERVAL;
        if self.namespace.is_some() {
            config.binder.namespace.clone_from(&self.namespace);
        }
        let inner = RocketmqBinder::start(RocketmqOptions {
            config,
            name_servers: self.name_server.split(';').map(str::to_owned).collect(),
            application: loaded.config.application_name.clone(),
            start_like_java: loaded.config.bindery.start_like_java,
            offset_dir: self
                .embedded
                .as_ref()
                .map(|(_, folder)| folder.path().join("offsets")),
        })?;
        Ok(Arc::new(Watched::new(inner, self.watch.clone())))
    }

    /// Stops the broker as a crash of its machine would look to clients.
    pub(super) async fn fail(&mut self) -> Result<()> {
        match &mut self.embedded {
            Some((embedded, _)) => embedded.stop_broker().await,
            None => Err(Error::user("a test can't stop the brokers of a cluster")),
        }
    }

    /// Starts it again on the same port and store.
    pub(super) async fn restore(&mut self) -> Result<()> {
        match &mut self.embedded {
            Some((embedded, _)) => embedded.start_broker().await,
            None => Err(Error::user("a test can't start the brokers of a cluster")),
        }
    }
}

static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
