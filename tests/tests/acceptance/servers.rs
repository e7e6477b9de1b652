//! The servers behind a back end: none, our own in this process, or somebody else's cluster.

use std::net::SocketAddr;

use bindery::binder::memory::MemoryBinder;
use bindery_broker::{Broker, BrokerConfig, NameServer, NameServerConfig};

use crate::stage::BackEnd;

/// What the apps of a back end meet.
pub(crate) struct Servers {
    kind: Kind,
}

enum Kind {
    Memory,
    Ours(Box<Ours>),
    Apache(String),
}

struct Ours {
    runtime: tokio::runtime::Runtime,
    name_server: NameServer,
    broker: Broker,
    _store: tempfile::TempDir,
}

impl Servers {
    /// Nothing when nobody asks for this back end.
    pub(crate) fn start(back_end: BackEnd) -> Option<Self> {
        let kind = match back_end {
            BackEnd::Memory => Kind::Memory,
            BackEnd::Embedded => Kind::Ours(Box::new(Ours::start(&[]))),
            BackEnd::Apache => Kind::Apache(std::env::var("BINDERY_NAMESRV").ok()?),
        };
        Some(Self { kind })
    }

    /// Where the name server listens.
    pub(crate) fn name_server(&self) -> Option<String> {
        match &self.kind {
            Kind::Memory => None,
            Kind::Ours(ours) => Some(ours.name_server.local_addr().to_string()),
            Kind::Apache(address) => Some(address.clone()),
        }
    }

    /// The broker in memory of one row.
    pub(crate) fn memory(&self) -> Option<MemoryBinder> {
        matches!(self.kind, Kind::Memory).then(MemoryBinder::new)
    }

    pub(crate) fn stop(self) {
        if let Kind::Ours(ours) = self.kind {
            ours.stop();
        }
    }
}

/// A broker of our own with these settings beside the usual ones, on a name server of its own.
pub(crate) struct OwnBroker(Ours);

impl OwnBroker {
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        Self(Ours::start(settings))
    }

    pub(crate) fn name_server(&self) -> String {
        self.0.name_server.local_addr().to_string()
    }

    pub(crate) fn stop(self) {
        self.0.stop();
    }
}

impl Ours {
    fn start(settings: &[(&str, &str)]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let store = tempfile::tempdir().unwrap();
        let (name_server, broker) = runtime.block_on(async {
            let name_server = NameServer::start(NameServerConfig {
                listen: any_port,
                ..NameServerConfig::default()
            })
            .await
            .unwrap();
            let mut config = BrokerConfig {
                listen: any_port,
                namesrv_addr: name_server.local_addr().to_string(),
                store_path_root_dir: store.path().to_owned(),
                ..BrokerConfig::default()
            };
            // An undecided transaction is asked about after a second instead of half a minute.
            let quick = [
                ("transactionTimeOut", "1000"),
                ("transactionCheckInterval", "1000"),
            ];
            for (key, value) in quick.iter().chain(settings) {
                config.set(key, value).unwrap();
            }
            (name_server, Broker::start(config).await.unwrap())
        });
        Self {
            runtime,
            name_server,
            broker,
            _store: store,
        }
    }

    fn stop(self) {
        let Self {
            runtime,
            name_server,
            broker,
            _store,
        } = self;
        runtime.block_on(async {
            broker.shutdown().await.unwrap();
            name_server.shutdown().await;
        });
    }
}
