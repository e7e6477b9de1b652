//! The state of a running broker, shared by everything that serves requests.
//!
//! ```text
//! connection ─▶ dispatch ─▶ processor(&Core, …) ─▶ topics · groups · offsets · clients · locks · holds · store
//! ```
use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use arc_swap::Guard;
use bindery_protocol::message::{QueueOffset, id::UniqueIdGenerator};
use bindery_remoting::Clock;
use tokio::sync::{Notify, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    client::Clients,
    config::{BrokerConfig, FlushDiskType, Live},
    hold::Holds,
    lock::QueueLocks,
    offset::Offsets,
    pop::{Door, Pop},
    processor::pull::HeldPull,
    routes::Routes,
    schedule::Schedule,
    stats::Stats,
    store::{Arrivals, LiveLevels, Store},
    subscription::Groups,
    timer::{Arrived, Timer},
    topic::Topics,
    transaction::Transactions,
};

/// Requests that may block on the disk at a time; one more is answered "busy".
const WORKERS: usize = 64;

/// Everything a request may need.
pub(crate) struct Core {
    /// The configuration the broker started with.
    pub(crate) config: BrokerConfig,
    /// The configuration as requests have changed it: [`Core::live`].
    pub(crate) changes: Live,
    pub(crate) clock: Clock,
    /// Address clients know this broker by, and which it writes into records.
    pub(crate) address: SocketAddr,
    /// Address slaves know this broker by.
    pub(crate) ha_address: SocketAddr,
    pub(crate) store: Store,
    pub(crate) topics: Topics,
    pub(crate) groups: Groups,
    pub(crate) offsets: Offsets,
    pub(crate) clients: Clients,
    pub(crate) locks: QueueLocks,
    pub(crate) holds: Arc<Holds<HeldPull>>,
    pub(crate) schedule: Arc<Schedule>,
    /// Timer messages, unless they are switched off.
    pub(crate) timer: Option<Arc<Timer>>,
    pub(crate) transactions: Transactions,
    pub(crate) pop: Pop,
    pub(crate) routes: Routes,
    pub(crate) levels: LiveLevels,
    pub(crate) stats: Stats,
    pub(crate) ids: UniqueIdGenerator,
    /// Property text appended to every stored message: region, trace switch, cluster.
    pub(crate) stamp: Vec<u8>,
    /// Slots for requests that run on blocking threads.
    pub(crate) workers: Arc<Semaphore>,
    /// Slots for replies that wait for their requester.
    pub(crate) replies: Arc<Semaphore>,
    /// Sends that are in the log and wait for the disk.
    pub(crate) unsettled: Arc<AtomicUsize>,
    /// Has the next round of expiry come at once.
    pub(crate) cleaning: Notify,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("broker", &self.config.broker_name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Core {
    /// The configuration now: for keys that may change while the broker runs (`LIVE` in `config/change.rs`). Not to be
    /// held for long.
    pub(crate) fn live(&self) -> Guard<Arc<BrokerConfig>> {
        self.changes.load()
    }

    /// Milliseconds since 1970 of the broker's clock.
    pub(crate) fn now(&self) -> i64 {
        self.clock.now_millis()
    }

    /// Whether a send has to wait for the disk.
    pub(crate) fn flushes_synchronously(&self) -> bool {
        self.config.flush_disk_type == FlushDiskType::Sync
    }

    /// Whether no further send is taken: an append is stuck in the page cache, or too many wait for the disk.
    pub(crate) fn overloaded(&self) -> bool {
        self.unsettled.load(Ordering::Relaxed) >= self.live().send_thread_pool_queue_capacity
            || self.store.is_page_cache_busy()
    }

    /// A number below `bound`, for queues that nobody chose; 0 when there is no choice.
    pub(crate) fn random_queue(bound: i32) -> i32 {
        if bound <= 1 {
            0
        } else {
            rand::random_range(0..bound)
        }
    }
}

/// Slots for requests that run on blocking threads.
pub(crate) fn workers() -> Arc<Semaphore> {
    slots(WORKERS)
}

/// So many slots, or as many as can be counted.
pub(crate) fn slots(count: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)))
}

/// An IPv4 address that came as IPv6 is IPv4 again: records hold it in four bytes then.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(ip.into(), address.port()),
            None => address,
        },
        IpAddr::V4(_) => address,
    }
}

/// Takes the store's arrivals to those that wait for them.
pub(crate) struct Bell {
    pub(crate) holds: Arc<Holds<HeldPull>>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) timer: Arc<Arrived>,
    pub(crate) door: Arc<Door>,
}

impl Arrivals for Bell {
    fn arrived(
        &self,
        topic: &str,
        queue_id: i32,
        after: QueueOffset,
        tags_code: i64,
        _store_timestamp: i64,
        properties: &[u8],
    ) {
        self.holds
            .arrived(topic, queue_id, after.0, tags_code, properties);
        self.schedule.arrived(topic, queue_id);
        self.timer.arrived(topic);
        self.door
            .arrived(topic, queue_id, after, tags_code, properties);
    }
}
