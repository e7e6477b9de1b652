//! A name server and a broker inside the process: the same ones that `bindery up` runs, spoken to over sockets.
//!
//! ```text
//! bindery.embedded ─▶ NameServer (loopback) ◀── registers ── Broker (loopback, store-dir)
//!                          ▲ routes                             ▲ messages
//!                          └───────────── binder `rocketmq` ────┘
//! ```

#[cfg(not(feature = "embedded"))]
pub(crate) use missing::Embedded;
#[cfg(feature = "embedded")]
pub(crate) use running::Embedded;

#[cfg(feature = "embedded")]
mod running {
    use std::fmt;
    use std::net::{IpAddr, SocketAddr};

    use bindery_broker::properties::Problem;
    use bindery_broker::{Broker, BrokerConfig, NameServer, NameServerConfig};

    use crate::config::EmbeddedConfig;
    use crate::error::{BoxError, Error, Result};

    /// The broker's name unless `bindery.embedded.broker.brokerName` says otherwise. Not the host's: a store that is
    /// moved to another host keeps its name.
    const BROKER_NAME: &str = "embedded";

    /// A broker in a program shares its volume with everything else of a developer's machine, where a tenth of free space is
    /// much: only what is nearly full refuses messages, unless `bindery.embedded.broker.*` says otherwise.
    const VOLUME: [(&str, &str); 2] = [
        ("diskSpaceWarningLevelRatio", "98"),
        ("diskSpaceCleanForciblyRatio", "97"),
    ];

    /// Both servers, running.
    #[derive(Debug)]
    pub(crate) struct Embedded {
        name_server: NameServer,
        /// `None` while it is made to be down.
        broker: Option<Broker>,
        settings: BrokerConfig,
    }

    impl Embedded {
        /// Starts the name server, then the broker; both accept connections when this returns.
        pub(crate) async fn start(config: &EmbeddedConfig) -> Result<Self> {
            let host: IpAddr = config
                .host
                .parse()
                .map_err(|source| failed("host", source))?;
            let name_server = NameServer::start(NameServerConfig {
                listen: SocketAddr::new(host, config.namesrv_port),
                ..NameServerConfig::default()
            })
            .await
            .map_err(|source| failed("name server", source))?;
            let started = match broker_config(config, host, name_server.local_addr()) {
                Ok(settings) => Broker::start(settings.clone())
                    .await
                    .map(|broker| (settings, broker))
                    .map_err(|source| failed("broker", source)),
                Err(error) => Err(error),
            };
            match started {
                Ok((mut settings, broker)) => {
                    // Started again it is found where it was.
                    settings.listen = broker.local_addr();
                    tracing::info!(name_server = %name_server.local_addr(), broker = %broker.local_addr(),
                        store = %config.store_dir.display(), "embedded broker started");
                    Ok(Self {
                        name_server,
                        broker: Some(broker),
                        settings,
                    })
                }
                Err(error) => {
                    name_server.shutdown().await;
                    Err(error)
                }
            }
        }

        /// `host:port` of the name server.
        pub(crate) fn name_server(&self) -> String {
            self.name_server.local_addr().to_string()
        }

        /// Stops the broker alone; without effect while it is stopped.
        pub(crate) async fn stop_broker(&mut self) -> Result<()> {
            match self.broker.take() {
                Some(broker) => broker
                    .shutdown()
                    .await
                    .map_err(|source| failed("broker", source)),
                None => Ok(()),
            }
        }

        /// Starts the broker again, on the same port and store; without effect while it runs.
        pub(crate) async fn start_broker(&mut self) -> Result<()> {
            if self.broker.is_none() {
                let started = Broker::start(self.settings.clone()).await;
                self.broker = Some(started.map_err(|source| failed("broker", source))?);
            }
            Ok(())
        }

        /// Stops both and leaves a clean store.
        pub(crate) async fn stop(mut self) -> Result<()> {
            let stopped = self.stop_broker().await;
            self.name_server.shutdown().await;
            stopped
        }
    }

    fn broker_config(
        config: &EmbeddedConfig,
        host: IpAddr,
        name_server: SocketAddr,
    ) -> Result<BrokerConfig> {
        let mut broker = BrokerConfig {
            listen: SocketAddr::new(host, config.broker_port),
            store_path_root_dir: config.store_dir.clone(),
            namesrv_addr: name_server.to_string(),
            broker_name: BROKER_NAME.to_owned(),
            ..BrokerConfig::default()
        };
        let given = config
            .broker
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        for (key, value) in VOLUME.into_iter().chain(given) {
            if let Err(problem) = broker.set(key, value) {
                let key = key.to_owned();
                return Err(failed(
                    "broker's configuration",
                    BrokerKeyError { key, problem },
                ));
            }
        }
        Ok(broker)
    }

    /// A key under `bindery.embedded.broker` that the broker does not take.
    #[derive(Debug)]
    struct BrokerKeyError {
        key: String,
        problem: Problem,
    }

    impl fmt::Display for BrokerKeyError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "`bindery.embedded.broker.{}`: ", self.key)?;
            match &self.problem {
                Problem::Unknown {
                    suggestion: Some(near),
                } => {
                    write!(f, "no such key; did you mean `{near}`?")
                }
                Problem::Unknown { suggestion: None } => f.write_str("no such key"),
                Problem::Invalid { value, expected } => {
                    write!(f, "`{value}` is not accepted, expected {expected}")
                }
                other => write!(f, "{other:?}"),
            }
        }
    }

    impl std::error::Error for BrokerKeyError {}

    fn failed(part: &'static str, source: impl Into<BoxError>) -> Error {
        Error::Embedded {
            part,
            source: source.into(),
        }
    }
}

#[cfg(not(feature = "embedded"))]
mod missing {
    use crate::config::EmbeddedConfig;
    use crate::error::{Error, Result};

    /// Nothing: the program was built without the feature `embedded`.
    #[derive(Debug)]
    pub(crate) enum Embedded {}

    impl Embedded {
        #[expect(
            clippy::unused_async,
            reason = "the same signature as with the feature"
        )]
        pub(crate) async fn start(_config: &EmbeddedConfig) -> Result<Self> {
            Err(Error::EmbeddedMissing)
        }

        pub(crate) fn name_server(&self) -> String {
            match *self {}
        }

        #[expect(
            clippy::unused_async,
            reason = "the same signature as with the feature"
        )]
        pub(crate) async fn stop_broker(&mut self) -> Result<()> {
            match *self {}
        }

        #[expect(
            clippy::unused_async,
            reason = "the same signature as with the feature"
        )]
        pub(crate) async fn start_broker(&mut self) -> Result<()> {
            match *self {}
        }

        #[expect(
            clippy::unused_async,
            reason = "the same signature as with the feature"
        )]
        pub(crate) async fn stop(self) -> Result<()> {
            match self {}
        }
    }
}
