//! A broker from start to stop.
//!
//! ```text
//! Broker::start: port ─▶ tables ─▶ store (recovered, started) ─▶ tasks ─▶ gate opens ─▶ registered ─▶ handle
//! Broker::shutdown: unregistered ─▶ connections closed ─▶ tasks ended ─▶ tables written ─▶ store closed cleanly
//! ```
use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use bindery_protocol::{
    frame::Frame,
    message::{DelayLevels, delay::DelayLevelError, id::UniqueIdGenerator, property},
};
use bindery_remoting::{Connection, Responder, Server, ServerOptions, Service};
use tokio::sync::oneshot;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    client::Clients,
    config::{BrokerConfig, FlushDiskType},
    hold::Holds,
    keep::{self, Kept},
    lock::QueueLocks,
    offset::Offsets,
    processor::{self, Exchange},
    refusal::Refusal,
    registration,
    schedule::{self, Schedule},
    state::{self, Bell, Core},
    stats::Stats,
    store::{FlushPolicy, Store, StoreConfig, StoreError},
    subscription::Groups,
    table::{Durability, TableError},
    topic::Topics,
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
        let core = match open(config, local).await {
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

/// Opens tables and store on a blocking thread: recovery may take long.
async fn open(config: BrokerConfig, local: SocketAddr) -> Result<Arc<Core>, BrokerError> {
    tokio::task::spawn_blocking(move || open_blocking(config, local)).await?
}

fn open_blocking(config: BrokerConfig, local: SocketAddr) -> Result<Arc<Core>, BrokerError> {
    let levels = DelayLevels::parse(&config.message_delay_level)?;
    let address = config.advertised(local);
    let ha_address = config.advertised_ha(local);
    let folder = config.store_path_root_dir.join("config");
    make_folder(&folder)?;
    let holds = Arc::new(Holds::new(config.pull_thread_pool_queue_capacity));
    let schedule = Arc::new(Schedule::open(&folder, levels.max())?);
    let bell = Arc::new(Bell {
        holds: holds.clone(),
        schedule: schedule.clone(),
    });
    // The store first: it alone notices that another process works in the folder.
    let store = Store::open(store_config(&config, levels.clone(), address)?, bell)?;
    let durability = match config.flush_disk_type {
        FlushDiskType::Sync => Durability::Power,
        FlushDiskType::Async => Durability::Process,
    };
    let topics = Topics::open(&folder, &config, durability)?;
    let groups = Groups::open(&folder, &config, durability)?;
    let offsets = Offsets::open(&folder, config.consumer_offset_update_version_step)?;
    store.start()?;
    let clock = config.clock.clone();
    Ok(Arc::new(Core {
        stamp: stamp(&config),
        stats: Stats::new(clock.now_millis()),
        ids: UniqueIdGenerator::new(address.ip()),
        clients: Clients::default(),
        locks: QueueLocks::default(),
        workers: state::workers(),
        unsettled: Arc::default(),
        tasks: TaskTracker::new(),
        stop: CancellationToken::new(),
        config,
        clock,
        address,
        ha_address,
        store,
        topics,
        groups,
        offsets,
        holds,
        schedule,
        levels,
    }))
}

fn make_folder(path: &Path) -> Result<(), BrokerError> {
    std::fs::create_dir_all(path).map_err(|source| BrokerError::Folder {
        path: path.to_owned(),
        source,
    })
}

fn store_config(
    config: &BrokerConfig,
    levels: DelayLevels,
    address: SocketAddr,
) -> Result<StoreConfig, BrokerError> {
    let mut store = StoreConfig::new(&config.store_path_root_dir, address);
    store.commit_log_dir = Some(config.commit_log_dir());
    store.commit_log_file_size = narrow(
        "mappedFileSizeCommitLog",
        config.mapped_file_size_commit_log,
    )?;
    store.consume_queue_file_size = narrow(
        "mappedFileSizeConsumeQueue",
        config.mapped_file_size_consume_queue,
    )?;
    store.max_hash_slot_num = config.max_hash_slot_num;
    store.max_index_num = config.max_index_num;
    store.message_index_enable = config.message_index_enable;
    store.max_message_size = config.max_message_size;
    store.flush = match config.flush_disk_type {
        FlushDiskType::Async => FlushPolicy::Async,
        FlushDiskType::Sync => FlushPolicy::Sync,
    };
    store.sync_flush_timeout = Duration::from_millis(config.sync_flush_timeout);
    store.max_transfer_bytes_in_memory = narrow(
        "maxTransferBytesOnMessageInMemory",
        config.max_transfer_bytes_on_message_in_memory,
    )?;
    store.max_transfer_count_in_memory = narrow(
        "maxTransferCountOnMessageInMemory",
        config.max_transfer_count_on_message_in_memory.into(),
    )?;
    store.max_transfer_bytes_on_disk = narrow(
        "maxTransferBytesOnMessageInDisk",
        config.max_transfer_bytes_on_message_in_disk,
    )?;
    store.max_transfer_count_on_disk = narrow(
        "maxTransferCountOnMessageInDisk",
        config.max_transfer_count_on_message_in_disk.into(),
    )?;
    store.access_message_in_memory_max_ratio = narrow(
        "accessMessageInMemoryMaxRatio",
        config.access_message_in_memory_max_ratio.into(),
    )?;
    store.max_filter_message_size = narrow(
        "maxFilterMessageSize",
        config.max_filter_message_size.into(),
    )?;
    store.check_crc_on_recover = config.check_crc_on_recover;
    store.delay_levels = levels;
    store.clock = config.clock.clone();
    Ok(store)
}

/// A number of the configuration as the store's type.
fn narrow<T: TryFrom<u64> + Bounded>(key: &'static str, value: u64) -> Result<T, BrokerError> {
    T::try_from(value).ok().ok_or(BrokerError::TooLarge {
        key,
        value,
        most: T::MOST,
    })
}

/// A type's largest value, for messages.
trait Bounded {
    const MOST: u64;
}

impl Bounded for u8 {
    const MOST: u64 = 255;
}

impl Bounded for u32 {
    const MOST: u64 = 4_294_967_295;
}

impl Bounded for usize {
    const MOST: u64 = u64::MAX;
}

/// The property text added to every stored message.
fn stamp(config: &BrokerConfig) -> Vec<u8> {
    let trace_on = if config.trace_on { "true" } else { "false" };
    let pairs = [
        (property::MSG_REGION, config.region_id.as_str()),
        (property::TRACE_ON, trace_on),
        (property::CLUSTER, config.broker_cluster_name.as_str()),
    ];
    pairs
        .iter()
        .flat_map(|(name, value)| [name.as_bytes(), &[1], value.as_bytes(), &[2]].concat())
        .collect()
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
    core.tasks.spawn(schedule::run(core.clone()));
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
