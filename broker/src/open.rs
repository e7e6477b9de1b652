//! Opening what a broker keeps: its tables, and the store with the settings of the configuration.
//!
//! ```text
//! BrokerConfig ─▶ StoreConfig ─▶ Store (locked, recovered) ─▶ tables of config/ ─▶ store started ─▶ Core
//! ```
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use bindery_protocol::message::{DelayLevels, id::UniqueIdGenerator, property};
use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    client::Clients,
    config::{BrokerConfig, FlushDiskType, Live},
    hold::Holds,
    lock::QueueLocks,
    offset::{OffsetFile, Offsets},
    pop::{self, Door, Pop},
    routes::Routes,
    schedule::Schedule,
    server::BrokerError,
    state::{self, Bell, Core},
    stats::Stats,
    store::{Expiry, FlushPace, FlushPolicy, LiveLevels, Store, StoreConfig},
    subscription::Groups,
    table::Durability,
    timer,
    topic::Topics,
    transaction,
};

/// Opens tables and store on a blocking thread: recovery may take long.
pub(crate) async fn open(
    config: BrokerConfig,
    local: SocketAddr,
) -> Result<Arc<Core>, BrokerError> {
    tokio::task::spawn_blocking(move || open_blocking(config, local)).await?
}

fn open_blocking(config: BrokerConfig, local: SocketAddr) -> Result<Arc<Core>, BrokerError> {
    let levels = LiveLevels::from(DelayLevels::parse(&config.message_delay_level)?);
    let address = config.advertised(local);
    let ha_address = config.advertised_ha(local);
    let folder = config.store_path_root_dir.join("config");
    make_folder(&folder)?;
    let holds = Arc::new(Holds::new(config.pull_thread_pool_queue_capacity));
    let schedule = Arc::new(Schedule::open(
        &folder,
        config.delay_offset_update_version_step,
    )?);
    let arrived = Arc::new(timer::Arrived::default());
    let door = Arc::new(Door::new(&config));
    let bell = Arc::new(Bell {
        holds: holds.clone(),
        schedule: schedule.clone(),
        timer: arrived.clone(),
        door: door.clone(),
    });
    // The store first: it alone notices that another process works in the folder.
    let store = Store::open(store_config(&config, levels.clone(), address)?, bell)?;
    let durability = match config.flush_disk_type {
        FlushDiskType::Sync => Durability::Power,
        FlushDiskType::Async => Durability::Process,
    };
    let topics = Topics::open(&folder, &config, durability)?;
    let groups = Groups::open(&folder, &config, durability)?;
    let file = if config.enable_lmq {
        OffsetFile::Light
    } else {
        OffsetFile::Plain
    };
    let offsets = Offsets::open(&folder, file, config.consumer_offset_update_version_step)?;
    let popping = Pop::open(&folder, &config, door)?;
    store.start()?;
    pop::recover(&store, &offsets, &config);
    let timer = if config.timer_wheel_enable {
        Some(Arc::new(timer::open(&config, &store, arrived)?))
    } else {
        None
    };
    let transactions = transaction::recover(&store, &offsets, &config);
    let clock = config.clock.clone();
    Ok(Arc::new(Core {
        stamp: stamp(&config),
        stats: Stats::new(clock.now_millis()),
        ids: UniqueIdGenerator::new(address.ip()),
        clients: Clients::default(),
        locks: QueueLocks::default(),
        workers: state::workers(),
        replies: state::slots(config.reply_thread_pool_queue_capacity),
        unsettled: Arc::default(),
        changes: Live::new(config.clone(), clock.now_millis()),
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
        timer,
        transactions,
        pop: popping,
        routes: Routes::default(),
        levels,
        cleaning: Notify::new(),
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
    levels: LiveLevels,
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
    store.batch_queue_file_size = narrow(
        "mapperFileSizeBatchConsumeQueue",
        config.mapper_file_size_batch_consume_queue,
    )?;
    store.light_queues = light_queues(config)?;
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
    store.flush_interval_commit_log = millis(config.flush_interval_commit_log);
    if !config.flush_commit_log_timed && config.wake_flush_when_put_message {
        store.flush_pace = FlushPace::Pages;
    }
    store.flush_commit_log_least_pages = config.flush_commit_log_least_pages;
    store.flush_commit_log_thorough_interval = millis(config.flush_commit_log_thorough_interval);
    store.flush_interval_consume_queue = millis(config.flush_interval_consume_queue);
    store.flush_consume_queue_thorough_interval =
        millis(config.flush_consume_queue_thorough_interval);
    store.os_page_cache_busy_timeout = millis(config.os_page_cache_busy_time_out_mills);
    store.message_index_safe = config.message_index_safe;
    store.max_msgs_num_batch = config.max_msgs_num_batch;
    store.expiry = expiry(config);
    store.delay_levels = levels;
    store.space = config.space.clone();
    store.clock = config.clock.clone();
    Ok(store)
}

/// The most light queues; none unless both switches are on. One alone would do less than it says.
fn light_queues(config: &BrokerConfig) -> Result<Option<usize>, BrokerError> {
    let alone = |key, needs| Err(BrokerError::Alone { key, needs });
    match (config.enable_lmq, config.enable_multi_dispatch) {
        (true, true) => Ok(Some(config.max_lmq_consume_queue_num)),
        (false, false) => Ok(None),
        (true, false) => alone("enableLmq", "enableMultiDispatch"),
        (false, true) => alone("enableMultiDispatch", "enableLmq"),
    }
}

/// The rules of expiry that the configuration gives.
pub(crate) fn expiry(config: &BrokerConfig) -> Expiry {
    Expiry {
        reserved: Duration::from_secs(config.file_reserved_time.saturating_mul(3600)),
        hours: config.delete_when.0.clone(),
        max_used: config.disk_max_used_space_ratio.0,
        forcibly_above: config.disk_space_clean_forcibly_ratio.0,
        refuse_above: config.disk_space_warning_level_ratio.0,
        forcibly: config.clean_file_forcibly_enable,
        batch: config.delete_file_batch_max,
        pause: millis(config.delete_commit_log_files_interval),
        retry: millis(config.redelete_hanged_file_interval),
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
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
