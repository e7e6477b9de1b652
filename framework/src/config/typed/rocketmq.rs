//! `spring.cloud.stream.rocketmq.*`: what only the `RocketMQ` binder understands.

use std::{collections::BTreeMap, time::Duration};

use super::Positions;

/// `spring.cloud.stream.rocketmq`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RocketmqConfig {
    /// `binder.*`.
    pub binder: BinderConfig,
    /// `bindings.*`, with `default.*` and inherited binder settings merged in. Every binding of
    /// [`Config::bindings`](super::Config::bindings) has an entry, also when the file has none.
    pub bindings: BTreeMap<String, RocketmqBinding>,
    /// `default.*`: what a binding that is created at run time starts from.
    pub default: RocketmqBinding,
}

impl RocketmqConfig {
    /// The settings of `binding`, or the defaults for a binding the file does not know.
    #[must_use]
    pub fn binding(&self, binding: &str) -> &RocketmqBinding {
        self.bindings.get(binding).unwrap_or(&self.default)
    }
}

/// `spring.cloud.stream.rocketmq.binder`: the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinderConfig {
    /// `enabled` (default true); false: bindings of this binder are errors.
    pub enabled: bool,
    /// `name-server`: `host:port` addresses, written as a list or separated by `;` or `,`; default `127.0.0.1:9876`.
    /// Meaningless when [`Config::embedded`](super::Config::embedded) is present.
    pub name_servers: Vec<String>,
    /// `group`: producer group of outputs that name none.
    pub group: Option<String>,
    /// `namespace`: prefix `ns%` of topics and groups.
    pub namespace: Option<String>,
    /// `poll-name-server-interval` (ms, default 30000): how often routes are asked for anew.
    pub poll_name_server_interval: Duration,
    /// `heartbeat-broker-interval` (ms, default 30000).
    pub heartbeat_broker_interval: Duration,
    /// `persist-consumer-offset-interval` (ms, default 5000).
    pub persist_consumer_offset_interval: Duration,
    /// Where the keys stand.
    pub positions: Positions,
}

impl Default for BinderConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            name_servers: vec!["127.0.0.1:9876".to_owned()],
            group: None,
            namespace: None,
            poll_name_server_interval: Duration::from_secs(30),
            heartbeat_broker_interval: Duration::from_secs(30),
            persist_consumer_offset_interval: Duration::from_secs(5),
            positions: Positions::default(),
        }
    }
}

/// `spring.cloud.stream.rocketmq.bindings.<name>`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RocketmqBinding {
    /// `consumer.*`.
    pub consumer: RocketmqConsumer,
    /// `producer.*`.
    pub producer: RocketmqProducer,
    /// Where the keys stand; dotted: `consumer.orderly`.
    pub positions: Positions,
}

/// How a send waits for the broker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SendType {
    /// The caller gets the broker's answer.
    #[default]
    Sync,
    /// The send goes on when its caller has stopped waiting.
    Async,
    /// No answer is asked for.
    OneWay,
}

/// The kinds of producers, of which an output has exactly one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProducerType {
    /// Any queue.
    #[default]
    Normal,
    /// The queue is chosen by the partition key and never changed on failure; sends are synchronous.
    Orderly,
    /// Consumers get a message exactly if its local transaction is committed.
    Trans,
}

/// `rocketmq.bindings.<name>.producer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RocketmqProducer {
    /// `enabled` (default true); false: sends answer "binding disabled".
    pub enabled: bool,
    /// `group`: own, else the binder's; `None`: the run time names one after the application.
    pub group: Option<String>,
    /// `producer-type` (or `transactional`); default `Normal`.
    pub producer_type: ProducerType,
    /// `transaction-listener`: the name of the listener of a `Trans` output.
    pub transaction_listener: Option<String>,
    /// `send-type` (or `sync`); default `Sync`.
    pub send_type: SendType,
    /// `send-msg-timeout` (ms, default 3000): total time of a send, retries included.
    pub send_msg_timeout: Duration,
    /// `compress-msg-body-threshold` (bytes, default 4096): bodies longer than this are compressed.
    pub compress_msg_body_threshold: usize,
    /// `retry-times-when-send-failed` (default 2): extra tries of a synchronous send; forced to 0 on partitioned sends.
    pub retry_times_when_send_failed: u32,
    /// `retry-times-when-send-async-failed` (default 2): extra tries of an asynchronous send, on another broker.
    pub retry_times_when_send_async_failed: u32,
    /// `retry-another-broker` (and its aliases; default false): also when the status is not `SEND_OK`.
    pub retry_another_broker: bool,
    /// `max-message-size` (bytes, default 4 MiB): the client's own limit for a body.
    pub max_message_size: usize,
}

impl Default for RocketmqProducer {
    fn default() -> Self {
        Self {
            enabled: true,
            group: None,
            producer_type: ProducerType::Normal,
            transaction_listener: None,
            send_type: SendType::Sync,
            send_msg_timeout: Duration::from_secs(3),
            compress_msg_body_threshold: 4096,
            retry_times_when_send_failed: 2,
            retry_times_when_send_async_failed: 2,
            retry_another_broker: false,
            max_message_size: 4 * 1024 * 1024,
        }
    }
}

/// How the members of a consumer group share messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MessageModel {
    /// Each message goes to one member.
    #[default]
    Clustering,
    /// Each message goes to every member.
    Broadcasting,
}

/// Where a group that has no offsets yet begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConsumeFrom {
    /// At the end of each queue.
    #[default]
    LastOffset,
    /// At the oldest message.
    FirstOffset,
    /// At the first message stored at or after this time (milliseconds since 1970, UTC).
    Timestamp(u64),
}

/// Which messages of its topics an input receives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Subscription {
    /// Every message.
    #[default]
    All,
    /// Tags, as `RocketMQ` writes them: `TagA || TagB`.
    Tags(String),
    /// A SQL92 condition over the message's headers; the file writes `sql:` before it.
    Sql(String),
}

/// How the queues of a topic are divided among the members of a group; the same in every member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AllocateStrategy {
    /// Contiguous shares of nearly equal size.
    #[default]
    Averagely,
    /// One queue to each member in turn.
    AveragelyByCircle,
    /// A consistent-hash ring of members.
    ConsistentHash,
    /// A fixed list of queues.
    ByConfig,
    /// Queues of brokers in chosen machine rooms.
    MachineRoom,
}

/// `rocketmq.bindings.<name>.consumer`; the nested spellings `push.*` are the same keys.
#[derive(Debug, Clone, PartialEq)]
pub struct RocketmqConsumer {
    /// `enabled` (default true); false: the binding is shown as disabled and no client is made.
    pub enabled: bool,
    /// `message-model` (or `broadcasting`); default clustering.
    pub message_model: MessageModel,
    /// `orderly` (default false): queues are locked at the broker and handled one message at a time.
    pub orderly: bool,
    /// `subscription` (or `tags`); default everything.
    pub subscription: Subscription,
    /// `consume-from-where` and `consume-timestamp`; default the end.
    pub consume_from: ConsumeFrom,
    /// `max-reconsume-times` (default -1): redeliveries before the dead-letter topic; -1: 16 concurrent, unlimited orderly.
    pub max_reconsume_times: i32,
    /// `delay-level-when-next-consume` (-1..=18, default 0): -1 dead letter at once, 0 the broker's ladder, else that level.
    pub delay_level_when_next_consume: i32,
    /// `suspend-current-queue-time-millis` (10..=30000 ms, default 1000): orderly pause before the same message again.
    pub suspend_current_queue_time: Duration,
    /// `consume-timeout` (minutes, default 15): a message that is in hand longer is sent back.
    pub consume_timeout: Duration,
    /// `pull-interval` (ms, default 0): pause between pulls.
    pub pull_interval: Duration,
    /// `pull-batch-size` (1..=1024, default 32): messages a pull asks for.
    pub pull_batch_size: u32,
    /// `pull-threshold-for-queue` (default 1000): messages in hand of one queue at which pulling pauses.
    pub pull_threshold_for_queue: u32,
    /// `pull-threshold-size-for-queue` (MiB, default 100): the same in bytes.
    pub pull_threshold_size_for_queue_mib: u32,
    /// `pull-threshold-for-topic` (default -1: no limit): messages in hand of one topic.
    pub pull_threshold_for_topic: Option<u32>,
    /// `pull-threshold-size-for-topic` (MiB, default -1: no limit).
    pub pull_threshold_size_for_topic_mib: Option<u32>,
    /// `consume-max-span` (default 2000): distance between oldest and newest message in hand of one queue.
    pub consume_max_span: u32,
    /// `pull-time-delay-mills-when-exception` (ms, default 1000): pause after a failed pull.
    pub pull_delay_when_exception: Duration,
    /// `allocate-message-queue-strategy`; default averagely.
    pub allocate_strategy: AllocateStrategy,
    /// `virtual-nodes` (1..=10000, default 10): places a member on the ring of [`AllocateStrategy::ConsistentHash`].
    pub virtual_nodes: usize,
    /// `message-queues`: `broker:id` of each queue of [`AllocateStrategy::ByConfig`].
    pub message_queues: Vec<String>,
    /// `machine-rooms`: those of [`AllocateStrategy::MachineRoom`].
    pub machine_rooms: Vec<String>,
}

impl Default for RocketmqConsumer {
    fn default() -> Self {
        Self {
            enabled: true,
            message_model: MessageModel::Clustering,
            orderly: false,
            subscription: Subscription::All,
            consume_from: ConsumeFrom::LastOffset,
            max_reconsume_times: -1,
            delay_level_when_next_consume: 0,
            suspend_current_queue_time: Duration::from_secs(1),
            consume_timeout: Duration::from_secs(15 * 60),
            pull_interval: Duration::ZERO,
            pull_batch_size: 32,
            pull_threshold_for_queue: 1000,
            pull_threshold_size_for_queue_mib: 100,
            pull_threshold_for_topic: None,
            pull_threshold_size_for_topic_mib: None,
            consume_max_span: 2000,
            pull_delay_when_exception: Duration::from_secs(1),
            allocate_strategy: AllocateStrategy::Averagely,
            virtual_nodes: 10,
            message_queues: Vec::new(),
            machine_rooms: Vec::new(),
        }
    }
}
