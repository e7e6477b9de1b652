//! A broker from start to stop.
//!
//! ```text
//! Broker::start: port ─▶ tables ─▶ store (recovered, started) ─▶ tasks ─▶ gate opens ─▶ registered ─▶ handle
//! Broker::shutdown: unregistered ─▶ connections closed ─▶ tasks ended ─▶ tables written ─▶ store closed cleanly
//! ```
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bindery_protocol::{frame::Frame, message::delay::DelayLevelError};
use bindery_remoting::{Budget, Connection, Responder, Server, ServerOptions, Service};
use tokio::sync::oneshot;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    cleaning,
    config::BrokerConfig,
    keep::{self, Kept},
    open, pop,
    processor::{self, Exchange},
    refusal::Refusal,
    registration, schedule,
    state::Core,
    store::StoreError,
    table::TableError,
    timer, transaction,
};

/// Longest wait of a start for the name servers' first answers.
const FIRST_REGISTRATION: Duration = Duration::from_secs(5);

/// Why a broker can't start or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The port can't be had.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// `messageDelayLevel` can't be read.
    #[error("messageDelayLevel is not usable")]
    DelayLevels(#[from] DelayLevelError),
    /// A number of the configuration is beyond what the store can use.
    #[error("`{key}` is {value}, at most {most} is possible")]
    TooLarge {
        /// The key.
        key: &'static str,
        /// As set.
        value: u64,
        /// Largest possible value.
        most: u64,
    },
    /// A switch that means nothing without another.
    #[error("`{key}=true` needs `{needs}=true`")]
    Alone {
        /// The key that is set.
        key: &'static str,
        /// The key that is not.
        needs: &'static str,
    },
    /// A folder can't be made.
    #[error("cannot make the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// A table of topics, groups or offsets can't be read.
    #[error("cannot open the broker's tables")]
    Table(#[from] TableError),
    /// The store can't be opened or closed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// A thread of the broker died.
    #[error("a thread of the broker died")]
    Thread(#[from] tokio::task::JoinError),
}

/// A running broker.
///
/// Several may live in one process. Dropping the handle stops its tasks but leaves the store as a kill would; call
/// [`Broker::shutdown`].
#[derive(Debug)]
pub struct Broker {
    core: Arc<Core>,
    local: SocketAddr,
    servers: Vec<Server>,
    leave: CancellationToken,
    links: TaskTracker,
}

impl Broker {
    /// Starts a broker: opens and recovers its store, listens, registers with its name servers. A name server that does
    /// not answer within 5 s is waited for in the background.
    ///
    /// # Errors
    /// [`BrokerError`]; nothing is left running then.
    pub async fn start(config: BrokerConfig) -> Result<Self, BrokerError> {
        let gate = Arc::new(Gate::default());
        let options = ServerOptions {
            idle: Duration::from_secs(config.server_channel_max_idle_time_seconds),
            budget: Budget::new(config.max_unread_bytes),
            ..ServerOptions::new(config.clock.clone())
        };
        let listen = config.listen;
        let server = Server::bind(listen, options.clone(), gate.clone())
            .await
            .map_err(|source| BrokerError::Listen {
                addr: listen,
                source,
            })?;
        let local = server.local_addr();
        let core = match open::open(config, local).await {
            Ok(core) => core,
            Err(error) => {
                server.shutdown().await;
                return Err(error);
            }
        };
        let mut servers = vec![server];
        servers.extend(second_server(&core, listen, options, gate.clone()).await);
        run_tasks(&core);
        gate.open(core.clone());
        let broker = Self {
            core,
            local,
            servers,
            leave: CancellationToken::new(),
            links: TaskTracker::new(),
        };
        broker.register().await;
        tracing::info!(
            broker = broker.core.config.broker_name,
            address = %broker.core.address,
            store = %broker.core.config.store_path_root_dir.display(),
            "broker started"
        );
        Ok(broker)
    }

    /// The address it listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The address it gives to clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.core.address
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.config.broker_name
    }

    /// Puts another table of delay levels (`messageDelayLevel`, such as `1s 5s 1m`) in force. Messages that wait are due by the
    /// new one; those of levels it no longer has, a second after they were stored.
    ///
    /// # Errors
    /// [`BrokerError::DelayLevels`] when the text is no table; the old one stays.
    pub fn set_delay_levels(&self, table: &str) -> Result<(), BrokerError> {
        Ok(schedule::retable(&self.core, table)?)
    }

    /// Starts a task for each name server and waits for their first tries.
    async fn register(&self) {
        let mut firsts = Vec::new();
        for server in self.core.config.name_servers() {
            let (first, done) = oneshot::channel();
            firsts.push(done);
            self.links.spawn(registration::keep(
                self.core.clone(),
                server,
                self.leave.clone(),
                first,
            ));
        }
        self.links.close();
        let all = async {
            for first in firsts {
                if first.await.is_err() {
                    tracing::error!("a registration ended before its first try");
                }
            }
        };
        // Real time, as the network's own timeouts: a clock moved by hand would never end this wait.
        tokio::select! {
            () = all => {}
            () = tokio::time::sleep(FIRST_REGISTRATION) => {
                tracing::warn!("not all name servers have answered yet, the broker goes on without them");
            }
        }
    }

    /// Stops: takes leave of the name servers, closes all connections, writes every table and closes the store cleanly.
    ///
    /// # Errors
    /// [`BrokerError`] when the store could not be closed cleanly; the broker is stopped nevertheless.
    pub async fn shutdown(mut self) -> Result<(), BrokerError> {
        self.leave.cancel();
        self.links.wait().await;
        for server in self.servers.drain(..) {
            server.shutdown().await;
        }
        let core = self.core.clone();
        core.stop.cancel();
        core.tasks.close();
        core.tasks.wait().await;
        for kept in Kept::ALL {
            kept.write(&core).await;
        }
        let closing = core.clone();
        tokio::task::spawn_blocking(move || closing.store.shutdown()).await??;
        tracing::info!(broker = core.config.broker_name, "broker stopped");
        Ok(())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.leave.cancel();
        self.core.stop.cancel();
    }
}

/// Clients with `vipChannelEnabled` use the port two below for all but pulls. It is a convenience: a taken one is no
/// reason not to start.
async fn second_server(
    core: &Core,
    listen: SocketAddr,
    options: ServerOptions,
    gate: Arc<Gate>,
) -> Option<Server> {
    let port = listen.port().checked_sub(2).filter(|port| *port > 0)?;
    let addr = SocketAddr::new(listen.ip(), port);
    match Server::bind(addr, options, gate).await {
        Ok(server) => Some(server),
        Err(error) => {
            tracing::warn!(%addr, %error, broker = core.config.broker_name, "second port not available, going on without it");
            None
        }
    }
}

fn run_tasks(core: &Arc<Core>) {
    let again = core.clone();
    core.tasks.spawn(core.holds.clone().run(
        core.clock.clone(),
        core.stop.clone(),
        move |held, wake| {
            processor::pull::again(&again, held, wake);
        },
    ));
    let again = core.clone();
    core.tasks.spawn(core.pop.door.pops.clone().run(
        core.clock.clone(),
        core.stop.clone(),
        move |held| processor::pop::again(&again, held),
    ));
    let again = core.clone();
    core.tasks.spawn(core.pop.door.notifications.clone().run(
        core.clock.clone(),
        core.stop.clone(),
        move |held| processor::notification::again(&again, held),
    ));
    core.tasks.spawn(pop::buffer::run(core.clone()));
    core.tasks.spawn(pop::revive::run(core.clone()));
    core.tasks.spawn(schedule::run(core.clone()));
    if let Some(timer) = &core.timer {
        core.tasks.spawn(timer::run(core.clone(), timer.clone()));
    }
    core.tasks.spawn(transaction::run(core.clone()));
    core.tasks.spawn(cleaning::run(core.clone()));
    core.tasks.spawn(processor::client::expire(core.clone()));
    for kept in Kept::ALL {
        core.tasks.spawn(keep::run(core.clone(), kept));
    }
}

/// Stands between the listening port, which is taken first, and the broker, which may still be recovering.
#[derive(Default)]
struct Gate {
    core: OnceLock<Arc<Core>>,
}

impl Gate {
    fn open(&self, core: Arc<Core>) {
        // Called once, by the start that made the gate.
        _ = self.core.set(core);
    }
}

impl Service for Gate {
    fn request(&self, connection: &Connection, frame: Frame, responder: Responder) {
        match self.core.get() {
            Some(core) => {
                processor::dispatch(
                    core,
                    Exchange {
                        connection: connection.clone(),
                        frame,
                        responder,
                    },
                );
            }
            None => responder.send(Refusal::NotServing.reply()),
        }
    }

    fn disconnected(&self, connection: &Connection) {
        if let Some(core) = self.core.get() {
            processor::client::gone(core, connection.id());
        }
    }
}
