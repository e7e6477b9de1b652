//! The three servers: start, say so in one line, wait for a signal, stop cleanly.
use std::{
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use bindery_broker::{Broker, BrokerConfig, NameServer, NameServerConfig, config::ConfigError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    CliError,
    args::{BrokerArgs, NamesrvArgs, UpArgs},
};

/// A name server and a broker that registers with it.
pub(crate) async fn up(args: UpArgs) -> Result<(), CliError> {
    let mut config = broker_config(args.config.as_deref(), args.broker_listen, args.store)?;
    let signals = Signals::catch()?;
    let namesrv = NameServer::start(NameServerConfig {
        listen: args.namesrv_listen,
        ..NameServerConfig::default()
    })
    .await?;
    config.namesrv_addr = reachable(namesrv.local_addr()).to_string();
    let store = config.store_path_root_dir.clone();
    let broker = Broker::start(config).await?;
    println!(
        "bindery is ready: name server {}, broker {}, store {}",
        namesrv.local_addr(),
        broker.local_addr(),
        store.display()
    );
    let stop = async {
        broker.shutdown().await?;
        namesrv.shutdown().await;
        Ok(())
    };
    signals.then(stop).await
}

/// A name server alone.
pub(crate) async fn namesrv(args: NamesrvArgs) -> Result<(), CliError> {
    let mut config = match &args.config {
        Some(file) => NameServerConfig::read(file)?,
        None => NameServerConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 9876)),
            ..NameServerConfig::default()
        },
    };
    if let Some(listen) = args.listen {
        config.listen = listen;
    }
    if args.print_config {
        return print(&config.describe());
    }
    let signals = Signals::catch()?;
    let namesrv = NameServer::start(config).await?;
    println!("bindery is ready: name server {}", namesrv.local_addr());
    let stop = async {
        namesrv.shutdown().await;
        Ok(())
    };
    signals.then(stop).await
}

/// A broker alone.
pub(crate) async fn broker(args: BrokerArgs) -> Result<(), CliError> {
    let mut config = broker_config(args.config.as_deref(), args.listen, args.store)?;
    if let Some(name_servers) = args.name_servers {
        config.namesrv_addr = name_servers;
    }
    if args.print_config {
        return print(&config.describe());
    }
    let signals = Signals::catch()?;
    let (name, store) = (
        config.broker_name.clone(),
        config.store_path_root_dir.clone(),
    );
    let broker = Broker::start(config).await?;
    println!(
        "bindery is ready: broker {name} {}, store {}",
        broker.local_addr(),
        store.display()
    );
    signals.then(async { Ok(broker.shutdown().await?) }).await
}

/// Prints a text; whoever stopped reading it (`| head`) has seen enough.
fn print(text: &str) -> Result<(), CliError> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(CliError::Print(error)),
        _ => Ok(()),
    }
}

/// Loopback and a folder here; over that the file; over that the command line.
fn broker_config(
    file: Option<&Path>,
    listen: Option<SocketAddr>,
    store: Option<PathBuf>,
) -> Result<BrokerConfig, ConfigError> {
    let mut config = BrokerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 10911)),
        store_path_root_dir: "bindery-store".into(),
        ..BrokerConfig::default()
    };
    if let Some(file) = file {
        config.read_over(file)?;
    }
    if let Some(listen) = listen {
        config.listen = listen;
    }
    if let Some(store) = store {
        config.store_path_root_dir = store;
    }
    Ok(config)
}

/// The address under which this process reaches its own listener, also when that one listens on all addresses.
fn reachable(bound: SocketAddr) -> SocketAddr {
    match bound {
        SocketAddr::V4(addr) if addr.ip().is_unspecified() => {
            SocketAddr::from(([127, 0, 0, 1], addr.port()))
        }
        SocketAddr::V6(addr) if addr.ip().is_unspecified() => {
            SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, addr.port()))
        }
        addr => addr,
    }
}

/// SIGINT and SIGTERM, caught from the moment this exists.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn catch() -> Result<Self, CliError> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(CliError::Signal)?,
            terminate: signal(SignalKind::terminate()).map_err(CliError::Signal)?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for the first signal, then stops; a second one while that lasts ends the process at once.
    async fn then(
        mut self,
        stop: impl Future<Output = Result<(), CliError>>,
    ) -> Result<(), CliError> {
        self.next().await;
        tokio::select! {
            done = stop => done,
            () = self.next() => std::process::exit(130),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn the_command_line_wins_over_the_file_and_the_file_over_the_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("broker.conf");
        std::fs::write(&file, "listenPort=20911\nbrokerName=broker-b\n").unwrap();
        let config = broker_config(Some(&file), None, None).unwrap();
        assert_eq!(config.listen, "127.0.0.1:20911".parse().unwrap());
        assert_eq!(config.store_path_root_dir, PathBuf::from("bindery-store"));
        let config =
            broker_config(Some(&file), Some("127.0.0.1:0".parse().unwrap()), None).unwrap();
        assert_eq!(
            (config.listen.port(), config.broker_name.as_str()),
            (0, "broker-b")
        );
    }

    #[test]
    fn all_mistakes_of_a_file_are_told_with_their_lines() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("broker.conf");
        std::fs::write(
            &file,
            "brokerNmae=a\n# fine\nbrokerName=b\nlistenPort=many\n",
        )
        .unwrap();
        let error = broker_config(Some(&file), None, None)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("broker.conf: line 1, column 1") && error.contains("`brokerName`"),
            "{error}"
        );
        assert!(
            error.contains("line 4, column 1") && error.contains("listenPort"),
            "{error}"
        );
    }
}
