//! `spring.cloud.stream.rocketmq.*`: both dialects of Spring Cloud Alibaba's binder (up to 2.2.6, and since 2.2.7).

use super::{
    Section,
    row::{
        BOOL, Choice, DAY, Kind, NAMES, Row, TEXT, TextRule, Unit, count, int, later, live, millis,
        text,
    },
};

pub(super) static SECTIONS: &[Section] = &[
    Section {
        bases: &["spring.cloud.stream.rocketmq.binder"],
        rows: BINDER,
    },
    Section {
        bases: &[
            "spring.cloud.stream.rocketmq.bindings.*.producer",
            "spring.cloud.stream.rocketmq.default.producer",
        ],
        rows: PRODUCER,
    },
    Section {
        bases: &[
            "spring.cloud.stream.rocketmq.bindings.*.consumer",
            "spring.cloud.stream.rocketmq.default.consumer",
        ],
        rows: CONSUMER,
    },
    Section {
        bases: &[
            "spring.cloud.stream.rocketmq.bindings.*.producer",
            "spring.cloud.stream.rocketmq.default.producer",
            "spring.cloud.stream.rocketmq.bindings.*.consumer",
            "spring.cloud.stream.rocketmq.default.consumer",
        ],
        rows: CLIENT,
    },
];

const NAME_SERVERS: Kind = Kind::List {
    separators: &[';', ','],
    rule: TextRule::Address,
};
const CHANNEL: Kind = Kind::Choice(&[live("LOCAL"), later("CLOUD")]);

static BINDER: &[Row] = &[
    Row::new(
        "name-server",
        NAME_SERVERS,
        "127.0.0.1:9876",
        "The cluster's name servers, separated by `;` or `,`.",
    )
    .also(&["/rocketmq.name-server"]),
    Row::new(
        "group",
        text(TextRule::Group),
        "",
        "The producer group of outputs that name none.",
    ),
    Row::new("access-key", TEXT, "", "Access control: the account.")
        .later()
        .secret(),
    Row::new("secret-key", TEXT, "", "Access control: its secret.")
        .later()
        .secret(),
    Row::new(
        "enable-msg-trace",
        BOOL,
        "false",
        "Write what happened to each message to a trace topic.",
    )
    .later(),
    Row::new("customized-trace-topic", TEXT, "", "Another trace topic.").later(),
    Row::new(
        "namespace",
        text(TextRule::Group),
        "",
        "Prefix `ns%` of topics and groups.",
    ),
    Row::new("namespace-v2", TEXT, "", "A namespace of the 5.x protocol.").later(),
    Row::new("unit-name", TEXT, "", "Part of the client's identity.").later(),
    Row::new("access-channel", CHANNEL, "LOCAL", "Where traces go.").later(),
    Row::new(
        "poll-name-server-interval",
        millis(10, DAY),
        "30s",
        "How often routes are asked for anew.",
    ),
    Row::new(
        "heartbeat-broker-interval",
        millis(10, DAY),
        "30s",
        "How often brokers hear from us.",
    ),
    Row::new(
        "persist-consumer-offset-interval",
        millis(10, DAY),
        "5s",
        "How often offsets are stored at the broker.",
    ),
    Row::new(
        "vip-channel-enabled",
        BOOL,
        "false",
        "Use the broker's port less two.",
    )
    .later(),
    Row::new("use-tls", BOOL, "false", "Encrypt connections.").later(),
    Row::new(
        "enabled",
        BOOL,
        "true",
        "False: bindings of this binder are errors.",
    ),
];

/// What Java lets each binding repeat of the binder's settings.
static CLIENT: &[Row] = &[
    Row::new(
        "name-server",
        NAME_SERVERS,
        "",
        "Another cluster for this binding.",
    )
    .later(),
    Row::new("access-key", TEXT, "", "Access control: the account.")
        .later()
        .secret(),
    Row::new("secret-key", TEXT, "", "Access control: its secret.")
        .later()
        .secret(),
    Row::new(
        "enable-msg-trace",
        BOOL,
        "false",
        "Write what happened to each message to a trace topic.",
    )
    .later(),
    Row::new("customized-trace-topic", TEXT, "", "Another trace topic.").later(),
    Row::new("namespace", TEXT, "", "Another namespace for this binding.").later(),
    Row::new("namespace-v2", TEXT, "", "A namespace of the 5.x protocol.").later(),
    Row::new("unit-name", TEXT, "", "Part of the client's identity.").later(),
    Row::new("access-channel", CHANNEL, "LOCAL", "Where traces go.").later(),
    Row::new(
        "poll-name-server-interval",
        millis(10, DAY),
        "30s",
        "How often routes are asked for anew.",
    )
    .later(),
    Row::new(
        "heartbeat-broker-interval",
        millis(10, DAY),
        "30s",
        "How often brokers hear from us.",
    )
    .later(),
    Row::new(
        "persist-consumer-offset-interval",
        millis(10, DAY),
        "5s",
        "How often offsets are stored at the broker.",
    )
    .later(),
    Row::new(
        "vip-channel-enabled",
        BOOL,
        "false",
        "Use the broker's port less two.",
    )
    .later(),
    Row::new("use-tls", BOOL, "false", "Encrypt connections.").later(),
];

static PRODUCER: &[Row] = &[
    Row::new(
        "enabled",
        BOOL,
        "true",
        "False: the binding is absent and sends fail.",
    ),
    Row::new(
        "group",
        text(TextRule::Group),
        "",
        "The producer group; else the binder's.",
    ),
    Row::new("sync", BOOL, "", "true: send-type Sync, false: Async."),
    Row::new(
        "send-type",
        Kind::Choice(&[live("Sync"), live("Async"), live("OneWay")]),
        "Sync",
        "Whether a send waits for the broker.",
    ),
    Row::new(
        "producer-type",
        Kind::Choice(&[live("Normal"), live("Orderly"), live("Trans")]),
        "Normal",
        "Normal; Orderly: a partition key decides the queue and failures never change it; Trans: transactional.",
    ),
    Row::new("transactional", BOOL, "", "true: producer-type Trans."),
    Row::new(
        "transaction-listener",
        TEXT,
        "",
        "The name of the #[transaction_listener] of a transactional output.",
    ),
    Row::new(
        "send-msg-timeout",
        millis(1, DAY),
        "3s",
        "Time of a send, retries included.",
    )
    .also(&["send-message-timeout"]),
    Row::new(
        "compress-msg-body-threshold",
        Kind::Size {
            bare: 1,
            min: 0,
            max: i32::MAX as i64,
        },
        "4096",
        "Bodies longer than this are compressed.",
    )
    .also(&["compress-message-body-threshold"]),
    Row::new(
        "retry-times-when-send-failed",
        int(0, 100),
        "2",
        "More tries of a synchronous send, on another broker.",
    ),
    Row::new(
        "retry-times-when-send-async-failed",
        int(0, 100),
        "2",
        "More tries of an asynchronous send, on another broker.",
    ),
    Row::new(
        "retry-another-broker",
        BOOL,
        "false",
        "Try another broker also when the message was not stored as asked.",
    )
    .also(&[
        "retry-next-server",
        "retry-another-broker-when-not-store-ok",
    ]),
    Row::new(
        "max-message-size",
        Kind::Size {
            bare: 1,
            min: 1,
            max: i32::MAX as i64,
        },
        "4MB",
        "The longest body the client sends.",
    ),
    Row::new(
        "message-queue-selector",
        TEXT,
        "",
        "Code that chooses the queue.",
    )
    .later(),
    Row::new(
        "send-call-back",
        TEXT,
        "",
        "Code that sees the result of each send.",
    )
    .later(),
    Row::new("error-message-strategy", TEXT, "", "Java only.")
        .refused("it never had an effect; use error-handler-definition"),
    Row::new("send-failure-channel", TEXT, "", "Java only.")
        .refused("it never had an effect; use error-handler-definition"),
    Row::new(
        "check-forbidden-hook",
        TEXT,
        "",
        "Code that may refuse a send.",
    )
    .later(),
    Row::new("send-message-hook", TEXT, "", "Code that sees each send.").later(),
];

/// The names of Java's queue allocation strategies.
const STRATEGIES: &[Choice] = &[
    live("averagely"),
    live("averagely-by-circle"),
    live("consistent-hash"),
    live("by-config"),
    live("machine-room"),
    later("machine-room-nearby"),
];

static CONSUMER: &[Row] = &[
    Row::new(
        "enabled",
        BOOL,
        "true",
        "False: the binding is shown as disabled and nothing is consumed.",
    ),
    Row::new(
        "broadcasting",
        BOOL,
        "",
        "true: message-model BROADCASTING, false: CLUSTERING.",
    ),
    Row::new(
        "message-model",
        Kind::Choice(&[live("CLUSTERING"), live("BROADCASTING")]),
        "CLUSTERING",
        "Whether members of the group share messages or each get all.",
    )
    .also(&["push.message-model"]),
    Row::new(
        "orderly",
        BOOL,
        "false",
        "Messages of a queue are handled one after the other; the queue is locked at the broker.",
    )
    .also(&["push.orderly"]),
    Row::new(
        "tags",
        text(TextRule::Tags),
        "",
        "Only messages with one of these tags: `A || B`.",
    ),
    Row::new(
        "sql",
        TEXT,
        "",
        "Only messages whose properties fulfil this condition.",
    )
    .later(),
    Row::new(
        "subscription",
        text(TextRule::Tags),
        "",
        "Tags as `A || B`, or `sql:` and a condition; everything without it.",
    )
    .also(&["push.subscription"]),
    Row::new(
        "consume-from-where",
        Kind::Choice(&[
            live("CONSUME_FROM_LAST_OFFSET"),
            live("CONSUME_FROM_FIRST_OFFSET"),
            live("CONSUME_FROM_TIMESTAMP"),
        ]),
        "CONSUME_FROM_LAST_OFFSET",
        "Where a group begins that has no offsets yet.",
    )
    .also(&["push.consume-from-where"]),
    Row::new(
        "consume-timestamp",
        text(TextRule::Timestamp),
        "",
        "Where CONSUME_FROM_TIMESTAMP begins: yyyyMMddHHmmss (local), RFC 3339, or milliseconds; else half an hour ago.",
    )
    .also(&["push.consume-timestamp"]),
    Row::new(
        "max-reconsume-times",
        int(-1, 10_000),
        "-1",
        "Redeliveries before the dead-letter topic; -1: 16, orderly: no end.",
    )
    .also(&["push.max-reconsume-times"]),
    Row::new(
        "delay-level-when-next-consume",
        int(-1, 18),
        "0",
        "-1: dead letter at once, 0: the broker's ladder, 1 to 18: always that level.",
    )
    .also(&["push.delay-level-when-next-consume"]),
    Row::new(
        "suspend-current-queue-time-millis",
        millis(10, 30_000),
        "1s",
        "Orderly: pause before a failed message is handled again.",
    )
    .also(&["push.suspend-current-queue-time-millis"]),
    Row::new(
        "consume-timeout",
        Kind::Duration {
            unit: Unit::Minutes,
            min: 1,
            max: 10 * DAY,
        },
        "15m",
        "A message in hand longer than this is sent back.",
    )
    .also(&["push.consume-timeout"]),
    Row::new(
        "consume-message-batch-max-size",
        int(1, 1024),
        "1",
        "Messages a handler takes at once.",
    )
    .also(&["push.consume-message-batch-max-size"])
    .later(),
    Row::new(
        "pull-interval",
        millis(0, 65_535),
        "0",
        "Pause between pulls.",
    )
    .also(&["push.pull-interval"]),
    Row::new(
        "pull-threshold-for-topic",
        int(-1, 6_553_500),
        "-1",
        "Messages in hand of a topic at which pulling pauses; -1: no limit.",
    )
    .also(&["push.pull-threshold-for-topic"]),
    Row::new(
        "pull-threshold-size-for-topic",
        int(-1, 102_400),
        "-1",
        "The same in MiB.",
    )
    .also(&["push.pull-threshold-size-for-topic"]),
    Row::new(
        "pull-threshold-for-queue",
        int(1, 65_535),
        "1000",
        "Messages in hand of a queue at which pulling pauses.",
    )
    .also(&["push.pull-threshold-for-queue"]),
    Row::new(
        "pull-threshold-size-for-queue",
        int(1, 1024),
        "100",
        "The same in MiB.",
    )
    .also(&["push.pull-threshold-size-for-queue"]),
    Row::new(
        "consume-max-span",
        int(1, 65_535),
        "2000",
        "Distance between oldest and newest message in hand of a queue at which pulling pauses.",
    )
    .also(&["push.consume-max-span"]),
    Row::new(
        "pull-batch-size",
        int(1, 1024),
        "32",
        "Messages a pull asks for.",
    )
    .also(&["push.pull-batch-size"]),
    Row::new(
        "pull-time-delay-mills-when-exception",
        millis(0, DAY),
        "1s",
        "Pause after a failed pull.",
    )
    .also(&["push.pull-time-delay-mills-when-exception"]),
    Row::new(
        "allocate-message-queue-strategy",
        Kind::Choice(STRATEGIES),
        "averagely",
        "How queues are divided among the members; the same in all of them.",
    )
    .also(&["push.allocate-message-queue-strategy"]),
    Row::new(
        "virtual-nodes",
        int(1, 10_000),
        "10",
        "consistent-hash: places a member on the ring; the same in all of them.",
    ),
    Row::new(
        "message-queues",
        NAMES,
        "",
        "by-config: the queues of this member, as `broker-a:0, broker-a:1`.",
    ),
    Row::new(
        "machine-rooms",
        NAMES,
        "",
        "machine-room: the rooms whose brokers (`room@name`) are consumed from.",
    ),
    Row::new(
        "trusted-packages",
        Kind::List {
            separators: &[','],
            rule: TextRule::Any,
        },
        "",
        "Java only.",
    )
    .ignored(),
    Row::new(
        "pull.poll-timeout-millis",
        millis(0, DAY),
        "5s",
        "Longest wait of a polled input.",
    )
    .also(&["pull-timeout"])
    .later(),
    Row::new("from-store", BOOL, "false", "Read the committed offset.").later(),
    Row::new(
        "pull.pull-threshold-for-all",
        count(1),
        "1000",
        "Messages in hand of a polled input.",
    )
    .later(),
    Row::new(
        "pull.consumer-timeout-millis-when-suspend",
        millis(0, DAY),
        "30s",
        "How long a polled input waits at the broker.",
    )
    .later(),
    Row::new(
        "pull.pull-thread-nums",
        int(1, 1024),
        "20",
        "Pulls at the same time of a polled input.",
    )
    .later(),
    Row::new(
        "pull.topic-metadata-check-interval-millis",
        millis(1, DAY),
        "30s",
        "How often a polled input looks for new queues.",
    )
    .later(),
    Row::new(
        "pull.err-acknowledge",
        TEXT,
        "",
        "What becomes of a failed message of a polled input.",
    )
    .later(),
    Row::new(
        "group",
        text(TextRule::Group),
        "",
        "Must be the binding's group, if it stands here at all.",
    ),
];
