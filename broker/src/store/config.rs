//! Settings of the store: the part of Apache's `MessageStoreConfig` that it obeys, with the same defaults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bindery_remoting::Clock;

use super::clean::Expiry;
use super::error::StoreError;
use super::levels::LiveLevels;
use super::space::Space;

/// When a stored message counts as safe (`flushDiskType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlushPolicy {
    /// `ASYNC_FLUSH`: as soon as it is in the page cache; the disk follows. Survives the process, not the machine.
    #[default]
    Async,
    /// `SYNC_FLUSH`: when it is on disk.
    Sync,
}

/// What the flush under `ASYNC_FLUSH` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlushPace {
    /// The whole interval.
    #[default]
    Interval,
    /// The interval, or enough pages before it is over (`flushCommitLogTimed=false` with `wakeFlushWhenPutMessage=true`).
    Pages,
}

/// Settings of a store. Field names are Apache's keys in snake case unless the documentation names the key.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// `storePathRootDir`.
    pub root: PathBuf,
    /// `storePathCommitLog`; `None` = `ROOT/commitlog`.
    pub commit_log_dir: Option<PathBuf>,
    /// Address that goes into every record and message id (`brokerIP1` and `listenPort`).
    pub store_host: SocketAddr,
    /// `mappedFileSizeCommitLog`, bytes, below 2 GiB. Default 1 GiB.
    pub commit_log_file_size: u32,
    /// `mappedFileSizeConsumeQueue`, bytes; rounded up to a multiple of 20. Default 6,000,000.
    pub consume_queue_file_size: u32,
    /// `mapperFileSizeBatchConsumeQueue`, bytes; rounded up to a multiple of 46. Default 13,800,000.
    pub batch_queue_file_size: u32,
    /// Most light queues (`maxLmqConsumeQueueNum`); `None` (default) unless `enableLmq` and `enableMultiDispatch` are set.
    pub light_queues: Option<usize>,
    /// `maxHashSlotNum` of an index file. Default 5,000,000.
    pub max_hash_slot_num: u32,
    /// `maxIndexNum` of an index file. Default 20,000,000.
    pub max_index_num: u32,
    /// `messageIndexEnable`. Default true.
    pub message_index_enable: bool,
    /// `messageIndexSafe`: after an unclean stop, scan back to what the index may lack too. Default false.
    pub message_index_safe: bool,
    /// `maxMessageSize`, bytes of a body. Default 4 MiB.
    pub max_message_size: usize,
    /// `flushDiskType`.
    pub flush: FlushPolicy,
    /// `flushIntervalCommitLog`. Default 500 ms.
    pub flush_interval_commit_log: Duration,
    /// What the flush under `ASYNC_FLUSH` waits for.
    pub flush_pace: FlushPace,
    /// `flushCommitLogLeastPages`, pages of 4 KiB. Default 4.
    pub flush_commit_log_least_pages: u32,
    /// `flushCommitLogThoroughInterval`. Default 10 s.
    pub flush_commit_log_thorough_interval: Duration,
    /// `flushIntervalConsumeQueue`. Default 1 s.
    pub flush_interval_consume_queue: Duration,
    /// `flushConsumeQueueThoroughInterval`. Default 60 s.
    pub flush_consume_queue_thorough_interval: Duration,
    /// `syncFlushTimeout`. Default 5 s.
    pub sync_flush_timeout: Duration,
    /// `osPageCacheBusyTimeOutMills`. Default 1 s.
    pub os_page_cache_busy_timeout: Duration,
    /// `maxTransferBytesOnMessageInMemory`. Default 262,144.
    pub max_transfer_bytes_in_memory: usize,
    /// `maxTransferCountOnMessageInMemory`. Default 32.
    pub max_transfer_count_in_memory: usize,
    /// `maxTransferBytesOnMessageInDisk`. Default 65,536.
    pub max_transfer_bytes_on_disk: usize,
    /// `maxTransferCountOnMessageInDisk`. Default 8.
    pub max_transfer_count_on_disk: usize,
    /// `accessMessageInMemoryMaxRatio`, percent of the machine's memory. Default 40.
    pub access_message_in_memory_max_ratio: u8,
    /// `maxFilterMessageSize`, bytes of consume-queue entries looked at per read. Default 16,000 (800 entries).
    pub max_filter_message_size: usize,
    /// `maxMsgsNumBatch`: most hits of a query by key. Default 64.
    pub max_msgs_num_batch: usize,
    /// `checkCRCOnRecover`. Default true.
    pub check_crc_on_recover: bool,
    /// When and what to delete.
    pub expiry: Expiry,
    /// `messageDelayLevel`.
    pub delay_levels: LiveLevels,
    /// How many consume-queue files are held open at most. Not a key of Apache's. Default 256.
    pub open_queue_files: usize,
    /// The time source.
    pub clock: Clock,
    /// For tests of a full volume.
    pub space: Space,
}

impl StoreConfig {
    /// Apache's defaults for the folder `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, store_host: SocketAddr) -> Self {
        Self {
            root: root.into(),
            commit_log_dir: None,
            store_host,
            commit_log_file_size: 1 << 30,
            consume_queue_file_size: 6_000_000,
            batch_queue_file_size: 13_800_000,
            light_queues: None,
            max_hash_slot_num: 5_000_000,
            max_index_num: 20_000_000,
            message_index_enable: true,
            message_index_safe: false,
            max_message_size: 4 << 20,
            flush: FlushPolicy::Async,
            flush_interval_commit_log: Duration::from_millis(500),
            flush_pace: FlushPace::default(),
            flush_commit_log_least_pages: 4,
            flush_commit_log_thorough_interval: Duration::from_secs(10),
            flush_interval_consume_queue: Duration::from_secs(1),
            flush_consume_queue_thorough_interval: Duration::from_secs(60),
            sync_flush_timeout: Duration::from_secs(5),
            os_page_cache_busy_timeout: Duration::from_secs(1),
            max_transfer_bytes_in_memory: 262_144,
            max_transfer_count_in_memory: 32,
            max_transfer_bytes_on_disk: 65_536,
            max_transfer_count_on_disk: 8,
            access_message_in_memory_max_ratio: 40,
            max_filter_message_size: 16_000,
            max_msgs_num_batch: 64,
            check_crc_on_recover: true,
            expiry: Expiry::default(),
            delay_levels: LiveLevels::default(),
            open_queue_files: 256,
            clock: Clock::system(),
            space: Space::default(),
        }
    }

    /// Where the commit log lies.
    #[must_use]
    pub fn commit_log_path(&self) -> PathBuf {
        self.commit_log_dir
            .clone()
            .unwrap_or_else(|| self.root.join("commitlog"))
    }

    /// Size of a consume-queue file in bytes: a multiple of 20.
    #[must_use]
    pub fn queue_file_size(&self) -> u32 {
        self.consume_queue_file_size.div_ceil(20).saturating_mul(20)
    }

    /// Size of a batch-consume-queue file in bytes: a multiple of 46.
    #[must_use]
    pub fn batch_file_size(&self) -> u32 {
        self.batch_queue_file_size.div_ceil(46).saturating_mul(46)
    }

    /// # Errors
    /// [`StoreError::Setting`] for sizes that no file can have.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let sizes = [
            (
                "mappedFileSizeCommitLog",
                i64::from(self.commit_log_file_size),
                1024,
                i64::from(i32::MAX),
            ),
            (
                "mappedFileSizeConsumeQueue",
                i64::from(self.consume_queue_file_size),
                20,
                i64::from(i32::MAX) - 20,
            ),
            (
                "mapperFileSizeBatchConsumeQueue",
                i64::from(self.batch_queue_file_size),
                46,
                i64::from(i32::MAX) - 46,
            ),
            (
                "maxHashSlotNum",
                i64::from(self.max_hash_slot_num),
                1,
                100_000_000,
            ),
            ("maxIndexNum", i64::from(self.max_index_num), 2, 100_000_000),
        ];
        for (key, value, low, high) in sizes {
            if value < low || value > high {
                return Err(StoreError::Setting { key, value });
            }
        }
        Ok(())
    }
}
