//! The table of keys the broker acts on: field, type, default, Apache's name for it.
//!
//! Everything else Apache `RocketMQ` 5.3.3 knows is listed in `other_keys.txt`, accepted, kept and returned.
use std::{net::SocketAddr, path::PathBuf};

use bindery_protocol::bodies::RequestMode;
use bindery_remoting::Clock;

use super::{BrokerRole, FlushDiskType, Hours, Percent, defaults, value::Value};
use crate::{listing::ConfigKey, store::Space};

macro_rules! keys {
    ($( $(#[doc = $doc:literal])* $field:ident: $ty:ty = $default:expr, $key:literal; )*) => {
        /// The configuration of one broker: Apache's keys that this broker acts on, and what a program sets directly.
        ///
        /// [`BrokerConfig::default`] is fit for tests: any free port on loopback, a folder of its own under the
        /// system's temporary folder, no name server.
        #[derive(Debug, Clone)]
        pub struct BrokerConfig {
            $( $(#[doc = $doc])* #[doc = concat!("\n\nKey `", $key, "`.")] pub $field: $ty, )*
            /// Where to listen; port 0 takes any free one. Keys `bindAddress` and `listenPort`.
            pub listen: SocketAddr,
            /// Time source of everything that waits; default the system's.
            pub clock: Clock,
            /// For tests of a full volume.
            pub space: Space,
            /// File in which changes by request (25) are kept; none (default): they last until the stop.
            pub file: Option<PathBuf>,
            /// Keys of Apache `RocketMQ` that were set but that this broker does not act on, kept to be returned.
            pub other: std::collections::BTreeMap<String, String>,
        }

        impl Default for BrokerConfig {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                    listen: SocketAddr::from(([127, 0, 0, 1], 0)),
                    clock: Clock::system(),
                    space: Space::default(),
                    file: None,
                    other: std::collections::BTreeMap::new(),
                }
            }
        }

        /// Apache's names of the keys with a field of their own, in the table's order.
        pub(super) const TYPED: &[&str] = &[$($key),*];

        impl BrokerConfig {
            /// Sets the field of `key`: `None` when it has none, otherwise what was expected if the text does not fit.
            pub(super) fn set_typed(&mut self, key: &str, text: &str) -> Option<Result<(), &'static str>> {
                match key {
                    $( $key => Some(match <$ty as Value>::parse(text) {
                        Some(value) => { self.$field = value; Ok(()) }
                        None => Err(<$ty as Value>::EXPECTED),
                    }), )*
                    _ => None,
                }
            }

            /// All keys with a field and what they mean, in the table's order.
            pub(super) fn documented() -> Vec<ConfigKey> {
                vec![$( ConfigKey::obeyed($key, &[$($doc),*]) ),*]
            }

            /// All keys with a field, as (Apache's name, text).
            pub(super) fn typed(&self) -> Vec<(&'static str, String)> {
                vec![$( ($key, Value::render(&self.$field)) ),*]
            }
        }
    };
}

keys! {
    /// Cluster this broker belongs to; default `DefaultCluster`.
    broker_cluster_name: String = "DefaultCluster".into(), "brokerClusterName";
    /// Name of the master and its slaves together; default the host's name.
    broker_name: String = defaults::host_name(), "brokerName";
    /// 0 for a master; default 0.
    broker_id: u64 = 0, "brokerId";
    /// Name servers, `host:port` separated by semicolons; default none (environment `NAMESRV_ADDR` is the CLI's matter).
    namesrv_addr: String = String::new(), "namesrvAddr";
    /// Address given to clients; empty (default) takes the listening address, or an address of this host when that is 0.0.0.0.
    broker_ip1: String = String::new(), "brokerIP1";
    /// Address given to slaves; empty (default) takes `brokerIP1`.
    broker_ip2: String = String::new(), "brokerIP2";
    /// Permission of the whole broker: 2 write, 4 read; default 6.
    broker_permission: i32 = 6, "brokerPermission";
    /// Queues of the template topic TBW102 and upper bound for topics made by a send; default 8.
    default_topic_queue_nums: i32 = 8, "defaultTopicQueueNums";
    /// Whether a send makes an unknown topic; default true.
    auto_create_topic_enable: bool = true, "autoCreateTopicEnable";
    /// Whether the topic named like the cluster may be written and read; default true.
    cluster_topic_enable: bool = true, "clusterTopicEnable";
    /// Whether the topic named like the broker may be written and read; default true.
    broker_topic_enable: bool = true, "brokerTopicEnable";
    /// Whether an unknown consumer group is made on first use; default true.
    auto_create_subscription_group: bool = true, "autoCreateSubscriptionGroup";
    /// Whether the topic for message traces is made at start; default false.
    trace_topic_enable: bool = false, "traceTopicEnable";
    /// Name of the topic for message traces; default `RMQ_SYS_TRACE_TOPIC`.
    msg_trace_topic_name: String = "RMQ_SYS_TRACE_TOPIC".into(), "msgTraceTopicName";
    /// Returned with every send as `TRACE_ON`; default true.
    trace_on: bool = true, "traceOn";
    /// Returned with every send as `MSG_REGION`; default `DefaultRegion`.
    region_id: String = "DefaultRegion".into(), "regionId";
    /// Milliseconds from the first change of consumer offsets to their file; default 5000.
    flush_consumer_offset_interval: u64 = 5000, "flushConsumerOffsetInterval";
    /// Milliseconds from the first change of delay offsets to their file; default 10000.
    flush_delay_offset_interval: u64 = 10_000, "flushDelayOffsetInterval";
    /// Deliveries after which the version of that file rises by one; default 200.
    delay_offset_update_version_step: u64 = 200, "delayOffsetUpdateVersionStep";
    /// Whether a pull that finds nothing may wait as long as it asks for; default true.
    long_polling_enable: bool = true, "longPollingEnable";
    /// Milliseconds such a pull waits when long polling is off; default 1000.
    short_polling_time_mills: u64 = 1000, "shortPollingTimeMills";
    /// Most pulls that may wait at a time; one more is answered at once with what was found; default 100000.
    pull_thread_pool_queue_capacity: usize = 100_000, "pullThreadPoolQueueCapacity";
    /// Sends that may wait for the disk under `SYNC_FLUSH`; one more is answered "busy"; default 10000.
    send_thread_pool_queue_capacity: usize = 10_000, "sendThreadPoolQueueCapacity";
    /// Replies that may wait for their requester to take them; one more is answered "busy"; default 10000.
    reply_thread_pool_queue_capacity: usize = 10_000, "replyThreadPoolQueueCapacity";
    /// Whether replies are stored as well as handed to their requester; default true.
    store_reply_message_enable: bool = true, "storeReplyMessageEnable";
    /// Most messages of one pull, whatever is asked for; default 160.
    pull_batch_max_message_count: i32 = 160, "pullBatchMaxMessageCount";
    /// Whether members of a group are told when it changes; default true.
    notify_consumer_ids_changed_enable: bool = true, "notifyConsumerIdsChangedEnable";
    /// Sends before this time (milliseconds since 1970) are refused; default 0.
    start_accept_send_request_time_stamp: i64 = 0, "startAcceptSendRequestTimeStamp";
    /// Whether lite pull consumers are served; default true.
    lite_pull_message_enable: bool = true, "litePullMessageEnable";
    /// Milliseconds between two registrations, held between 10 s and 60 s; default 30000.
    register_name_server_period: u64 = 30_000, "registerNameServerPeriod";
    /// Milliseconds a name server has to answer; default 24000.
    register_broker_timeout_mills: u64 = 24_000, "registerBrokerTimeoutMills";
    /// Milliseconds after which a silent client is taken out of its groups; default 120000.
    channel_expired_timeout: u64 = 120_000, "channelExpiredTimeout";
    /// Seconds after which a silent connection is closed; default 120.
    server_channel_max_idle_time_seconds: u64 = 120, "serverChannelMaxIdleTimeSeconds";
    /// Commits after which the version of the offset file rises by one; default 500.
    consumer_offset_update_version_step: u64 = 500, "consumerOffsetUpdateVersionStep";
    /// Whether a reset of offsets (222) waits in the broker for the next pull, consumers online or not; otherwise online
    /// consumers are told, as brokers of version 4 do; default true.
    use_server_side_reset_offset: bool = true, "useServerSideResetOffset";
    /// Whether messages may be sent for a point of time; default true.
    timer_wheel_enable: bool = true, "timerWheelEnable";
    /// Milliseconds of one slot of the timer wheel, at most an hour; default 1000. A change empties and rebuilds the wheel at the next start.
    timer_precision_ms: u32 = 1000, "timerPrecisionMs";
    /// Seconds ahead that a timer message may be sent for; default 259200 (three days).
    timer_max_delay_sec: u32 = 259_200, "timerMaxDelaySec";
    /// Slots of the wheel that one step of a timer message may span; later ones take several. Default 172800; less than 2 or
    /// more than 604740 counts as 604740.
    timer_roll_window_slot: i64 = 172_800, "timerRollWindowSlot";
    /// Messages of one slot above which senders are refused, some at first, from twice as many on all; default 2147483647.
    timer_congest_num_each_slot: u32 = 2_147_483_647, "timerCongestNumEachSlot";
    /// Bytes of one file of the timer log; default 104857600.
    mapped_file_size_timer_log: u32 = 104_857_600, "mappedFileSizeTimerLog";
    /// Milliseconds from the first change of timer files to the disk; default 1000.
    timer_flush_interval_ms: u64 = 1000, "timerFlushIntervalMs";
    /// Whether timer messages are left in their queue instead of going into the wheel; default false.
    timer_stop_enqueue: bool = false, "timerStopEnqueue";
    /// Whether timer messages are left in the wheel when they are due; default false.
    timer_stop_dequeue: bool = false, "timerStopDequeue";
    /// Whether timer messages may be taken back before they are due; default false.
    recall_message_enable: bool = false, "recallMessageEnable";
    /// Whether that goes on while `brokerPermission` forbids sending; default true.
    allow_recall_when_broker_not_writeable: bool = true, "allowRecallWhenBrokerNotWriteable";
    /// Queues of the topic in which POP keeps its state; default 8.
    revive_queue_num: i32 = 8, "reviveQueueNum";
    /// Most pops that wait for one topic, group and queue; one more is answered 209; default 1024.
    pop_polling_size: usize = 1024, "popPollingSize";
    /// Most different topics, groups and queues that pops wait for; one more is answered 209; default 100000.
    pop_polling_map_size: usize = 100_000, "popPollingMapSize";
    /// Most pops that wait at a time; one more is answered 209; default 100000.
    max_pop_polling_size: usize = 100_000, "maxPopPollingSize";
    /// Every so many messages of a queue wake a waiting pop whatever its filter; 0 for never; default 800.
    pop_long_polling_force_notify_interval: u64 = 800, "popLongPollingForceNotifyInterval";
    /// Percent of pops that look into the retry topic first, the others last; default 20.
    pop_from_retry_probability: i32 = 20, "popFromRetryProbability";
    /// Whether popped messages come back through `%RETRY%group+topic` instead of `%RETRY%group_topic`; default false.
    enable_retry_topic_v2: bool = false, "enableRetryTopicV2";
    /// Whether pops then read `%RETRY%group_topic` as well; default true.
    retrieve_message_from_pop_retry_topic_v1: bool = true, "retrieveMessageFromPopRetryTopicV1";
    /// Whether popped messages that came back show their retry topic instead of their own; default false.
    pop_response_return_actual_retry_topic: bool = false, "popResponseReturnActualRetryTopic";
    /// Whether a popping group that wants the newest messages gets all of a topic that is in memory still; default true.
    init_pop_offset_by_check_msg_in_mem: bool = true, "initPopOffsetByCheckMsgInMem";
    /// Whether a queue is no longer popped while `popInflightMessageThreshold` of its messages are out; default false.
    enable_pop_message_threshold: bool = false, "enablePopMessageThreshold";
    /// Messages of a queue that may be out at a time under `enablePopMessageThreshold`; default 10000.
    pop_inflight_message_threshold: u64 = 10_000, "popInflightMessageThreshold";
    /// Whether hand-outs are kept in memory first, and never written when they are acknowledged soon; default false.
    enable_pop_buffer_merge: bool = false, "enablePopBufferMerge";
    /// Milliseconds a hand-out stays in memory; default 10000.
    pop_ck_stay_buffer_time: i64 = 10_000, "popCkStayBufferTime";
    /// Milliseconds before its messages come again at which a hand-out leaves memory; default 3000.
    pop_ck_stay_buffer_time_out: i64 = 3000, "popCkStayBufferTimeOut";
    /// Most hand-outs in memory; the others are written; default 200000.
    pop_ck_max_buffer_size: usize = 200_000, "popCkMaxBufferSize";
    /// Most hand-outs of one queue in memory; the others are written; default 20000.
    pop_ck_offset_max_queue_size: usize = 20_000, "popCkOffsetMaxQueueSize";
    /// Whether acks of a hand-out that leaves memory are written as one message; default false.
    enable_pop_batch_ack: bool = false, "enablePopBatchAck";
    /// Milliseconds between two looks at what came into the revive topic; default 1000.
    revive_interval: u64 = 1000, "reviveInterval";
    /// Milliseconds an ack waits in memory for the hand-out it belongs to; default 180000.
    revive_ack_wait_ms: u64 = 180_000, "reviveAckWaitMs";
    /// Whether a popped message that could not come back 17 times is given up; default false.
    skip_when_ck_re_put_reach_max_times: bool = false, "skipWhenCKRePutReachMaxTimes";
    /// How a group gets messages for which nothing was set (401): `PULL` or `POP`; default `PULL`.
    default_message_request_mode: RequestMode = RequestMode::Pull, "defaultMessageRequestMode";
    /// With how many members a popping member shares its queues when nothing was set; 0 and less with all; default −1.
    default_pop_share_queue_num: i32 = -1, "defaultPopShareQueueNum";
    /// Whether the broker shares queues out when a consumer asks (400); otherwise each gets all; default true.
    server_load_balancer_enable: bool = true, "serverLoadBalancerEnable";
    /// Milliseconds for which routes of topics are kept that were asked for to share queues out; default 30000.
    load_balance_poll_name_server_interval: u64 = 30_000, "loadBalancePollNameServerInterval";
    /// What this broker is to others of its name; default `ASYNC_MASTER`.
    broker_role: BrokerRole = BrokerRole::AsyncMaster, "brokerRole";
    /// Port for slaves; 0 (default) takes the listening port + 1.
    ha_listen_port: u16 = 0, "haListenPort";
    /// Folder of everything stored; default `store` in the home folder, for the command `bindery-store` where it is called.
    store_path_root_dir: PathBuf = defaults::scratch_store(), "storePathRootDir";
    /// Folder of the commit log; empty (default) takes `commitlog` in the root folder.
    store_path_commit_log: PathBuf = PathBuf::new(), "storePathCommitLog";
    /// When a send is answered; default `ASYNC_FLUSH`.
    flush_disk_type: FlushDiskType = FlushDiskType::Async, "flushDiskType";
    /// Milliseconds a send waits for its flush under `SYNC_FLUSH`; default 5000.
    sync_flush_timeout: u64 = 5000, "syncFlushTimeout";
    /// Bytes of one commit-log file; default 1 GiB.
    mapped_file_size_commit_log: u64 = 1 << 30, "mappedFileSizeCommitLog";
    /// Bytes of one consume-queue file; default 6000000, rounded up to whole entries.
    mapped_file_size_consume_queue: u64 = 6_000_000, "mappedFileSizeConsumeQueue";
    /// Bytes of one batch-consume-queue file; default 13800000, rounded up to whole entries.
    mapper_file_size_batch_consume_queue: u64 = 13_800_000, "mapperFileSizeBatchConsumeQueue";
    /// Whether there are light queues, named `%LMQ%…`; they need `enableMultiDispatch` too. Default false.
    enable_lmq: bool = false, "enableLmq";
    /// Whether messages are put into the light queues that their property `INNER_MULTI_DISPATCH` names; needs `enableLmq`.
    /// Default false.
    enable_multi_dispatch: bool = false, "enableMultiDispatch";
    /// Most light queues; default 20000.
    max_lmq_consume_queue_num: usize = 20_000, "maxLmqConsumeQueueNum";
    /// Largest message body in bytes; default 4 MiB.
    max_message_size: usize = 4 * 1024 * 1024, "maxMessageSize";
    /// Whether messages are indexed by key; default true.
    message_index_enable: bool = true, "messageIndexEnable";
    /// Hash slots of one index file; default 5000000.
    max_hash_slot_num: u32 = 5_000_000, "maxHashSlotNum";
    /// Entries of one index file; default 20000000.
    max_index_num: u32 = 20_000_000, "maxIndexNum";
    /// Bytes of one pull answer for messages still in memory; default 262144.
    max_transfer_bytes_on_message_in_memory: u64 = 262_144, "maxTransferBytesOnMessageInMemory";
    /// Messages of one pull answer for messages still in memory; default 32.
    max_transfer_count_on_message_in_memory: u32 = 32, "maxTransferCountOnMessageInMemory";
    /// Bytes of one pull answer for messages read from disk; default 65536.
    max_transfer_bytes_on_message_in_disk: u64 = 65_536, "maxTransferBytesOnMessageInDisk";
    /// Messages of one pull answer for messages read from disk; default 8.
    max_transfer_count_on_message_in_disk: u32 = 8, "maxTransferCountOnMessageInDisk";
    /// Percent of the machine's memory in which the newest messages are taken to be; default 40.
    access_message_in_memory_max_ratio: u32 = 40, "accessMessageInMemoryMaxRatio";
    /// Bytes of queue entries one pull looks through; default 16000.
    max_filter_message_size: u32 = 16_000, "maxFilterMessageSize";
    /// Most messages of a query by unique key; default 32.
    default_query_max_num: i32 = 32, "defaultQueryMaxNum";
    /// Delays of levels 1, 2, …: numbers with s, m, h or d, separated by blanks; default 18 levels from 1s to 2h.
    message_delay_level: String = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h".into(), "messageDelayLevel";
    /// Whether half messages are refused; default false.
    reject_transaction_message: bool = false, "rejectTransactionMessage";
    /// Milliseconds before an undecided half message is checked first; default 6000.
    transaction_time_out: u64 = 6000, "transactionTimeOut";
    /// Milliseconds between two rounds of checks; default 30000.
    transaction_check_interval: u64 = 30_000, "transactionCheckInterval";
    /// Checks after which an undecided half message is given up; default 15.
    transaction_check_max: u32 = 15, "transactionCheckMax";
    /// Bytes at which verdicts on half messages are written at once; default 4096.
    transaction_op_msg_max_size: usize = 4096, "transactionOpMsgMaxSize";
    /// Milliseconds between two writes of fewer verdicts; default 3000.
    transaction_op_batch_interval: u64 = 3000, "transactionOpBatchInterval";
    /// Hours after its last change in which a commit-log file is kept; an undecided half message as old as that is given
    /// up. Default 72.
    file_reserved_time: u64 = 72, "fileReservedTime";
    /// Local hours of the day in which expired files are deleted, separated by semicolons; default 04.
    delete_when: Hours = Hours(vec![4]), "deleteWhen";
    /// Milliseconds between two looks for expired files while there are several; default 10000.
    clean_resource_interval: u64 = 10_000, "cleanResourceInterval";
    /// Percent of the volume in use above which expired files are deleted at any hour; default 75.
    disk_max_used_space_ratio: Percent = Percent(75), "diskMaxUsedSpaceRatio";
    /// Percent of the volume in use above which the oldest files are deleted although they are not expired; default 85.
    disk_space_clean_forcibly_ratio: Percent = Percent(85), "diskSpaceCleanForciblyRatio";
    /// Percent of the volume in use above which no messages are taken (code 14); default 90.
    disk_space_warning_level_ratio: Percent = Percent(90), "diskSpaceWarningLevelRatio";
    /// Whether files that are not expired may be deleted at all; default true.
    clean_file_forcibly_enable: bool = true, "cleanFileForciblyEnable";
    /// Most commit-log files deleted in one round; default 10.
    delete_file_batch_max: usize = 10, "deleteFileBatchMax";
    /// Milliseconds between two deletions of commit-log files; default 100.
    delete_commit_log_files_interval: u64 = 100, "deleteCommitLogFilesInterval";
    /// Milliseconds for which a file that could not be deleted is left alone; default 120000.
    redelete_hanged_file_interval: u64 = 120_000, "redeleteHangedFileInterval";
    /// Milliseconds from a message to its flush under `ASYNC_FLUSH`; default 500.
    flush_interval_commit_log: u64 = 500, "flushIntervalCommitLog";
    /// Whether that interval is always waited for; with `false` and `wakeFlushWhenPutMessage=true` a message is flushed as
    /// soon as `flushCommitLogLeastPages` are there. Default true.
    flush_commit_log_timed: bool = true, "flushCommitLogTimed";
    /// Whether a message wakes the flush, see `flushCommitLogTimed`; default false.
    wake_flush_when_put_message: bool = false, "wakeFlushWhenPutMessage";
    /// Pages of 4 KiB below which an interval passes without a flush; default 4.
    flush_commit_log_least_pages: u32 = 4, "flushCommitLogLeastPages";
    /// Milliseconds after which whatever is there is flushed; default 10000.
    flush_commit_log_thorough_interval: u64 = 10_000, "flushCommitLogThoroughInterval";
    /// Milliseconds between two writes of consume queues; what a crash takes of them is dispatched again. Default 1000.
    flush_interval_consume_queue: u64 = 1000, "flushIntervalConsumeQueue";
    /// Milliseconds after which consume queues and checkpoint are flushed although messages keep coming; default 60000.
    flush_consume_queue_thorough_interval: u64 = 60_000, "flushConsumeQueueThoroughInterval";
    /// Milliseconds after which an append that has not ended makes the broker refuse sends (code 2); default 1000.
    os_page_cache_busy_time_out_mills: u64 = 1000, "osPageCacheBusyTimeOutMills";
    /// Whether an unclean start scans back to what the index may lack too; default false.
    message_index_safe: bool = false, "messageIndexSafe";
    /// Most messages of a query by key; default 64.
    max_msgs_num_batch: usize = 64, "maxMsgsNumBatch";
    /// Whether subscriptions may filter by SQL92 conditions; default true (Apache's is false).
    enable_property_filter: bool = true, "enablePropertyFilter";
    /// Whether recovery checks the CRC of bodies; default true.
    check_crc_on_recover: bool = true, "checkCRCOnRecover";
    /// Bytes of answers, and of what the broker asks of clients, that may wait to be read, over all connections; default
    /// 256 MiB. Above half of it connections that don't read get less and are closed after 10 s; when it is used up, pulls
    /// and queries are answered "busy". A key of this broker alone.
    max_unread_bytes: usize = 256 * 1024 * 1024, "maxUnreadBytes";
    /// Whether administration is served to other hosts than this one although access control is off; default false.
    /// A key of this broker alone.
    admin_from_other_hosts: bool = false, "adminFromOtherHosts";
}
