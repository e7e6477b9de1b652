//! The name server: routes of all brokers that register with it.
//!
//! ```text
//! broker ── register (103), heartbeat (904), unregister (104) ──▶ route.rs ─┐
//! operator ── keys and values, permissions, configuration ──▶ kv.rs, config.rs ─┤
//!                                                                           ▼
//! client ── route of a topic (105), clusters (106), topics (206 …) ◀── lookup.rs
//! housekeeping: brokers without a sign of life are unregistered
//! ```
//! Name servers know nothing of each other: brokers register with each of them, clients ask any.
mod brokers;
mod config;
mod files;
mod housekeeping;
mod kv;
mod lookup;
mod operators;
mod processor;
mod refusal;
mod route;
#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use bindery_remoting::{Server, ServerOptions};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub use config::NameServerConfig;

use self::{files::Files, processor::Processor};
use crate::{
    properties::{Mistake, PropertiesError},
    store::StoreError,
};

/// A running name server. Dropped without [`NameServer::shutdown`], it stops without waiting.
#[derive(Debug)]
pub struct NameServer {
    server: Server,
    stop: DropGuard,
    tasks: TaskTracker,
}

/// Why a name server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameServerError {
    /// The address can't be listened on.
    #[error("cannot listen on {addr}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The configuration file can't be read.
    #[error("no configuration")]
    Properties(#[from] PropertiesError),
    /// The configuration file is wrong in one or more places.
    #[error("{}: {}", path.display(), listed(mistakes))]
    Config {
        /// The file.
        path: PathBuf,
        /// All that is wrong with it.
        mistakes: Vec<Mistake>,
    },
    /// The key-value table of the last run can't be read.
    #[error("cannot read the key-value table")]
    KeyValues(#[source] StoreError),
}

impl NameServer {
    /// Starts listening; port 0 takes any free port, and several may run in one process.
    ///
    /// # Errors
    /// When the address is taken or the key-value file can't be read.
    pub async fn start(config: NameServerConfig) -> Result<Self, NameServerError> {
        let (listen, clock) = (config.listen, config.clock.clone());
        let idle = Duration::from_secs(config.max_idle_seconds);
        let files = Files::new(config.kv_config_path.clone());
        let kv = files.load_kv().map_err(NameServerError::KeyValues)?;
        let tasks = TaskTracker::new();
        let processor = Arc::new(Processor::new(config, kv, files, tasks.clone()));
        let options = ServerOptions {
            idle,
            ..ServerOptions::new(clock.clone())
        };
        let server = Server::bind(listen, options, Arc::clone(&processor) as _)
            .await
            .map_err(|source| NameServerError::Bind {
                addr: listen,
                source,
            })?;
        let stop = CancellationToken::new();
        let house = housekeeping::keep_house(processor, clock);
        tasks.spawn(stop.clone().run_until_cancelled_owned(house));
        tracing::info!(addr = %server.local_addr(), "name server listens");
        Ok(Self {
            server,
            stop: stop.drop_guard(),
            tasks,
        })
    }

    /// The address it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Closes all connections and waits for all tasks, files being written included.
    pub async fn shutdown(self) {
        let Self {
            server,
            stop,
            tasks,
        } = self;
        drop(stop);
        server.shutdown().await;
        tasks.close();
        tasks.wait().await;
    }
}

fn listed(mistakes: &[Mistake]) -> String {
    let texts: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    texts.join("\n  ")
}
