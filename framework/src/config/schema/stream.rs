//! `spring.cloud.stream.*` without the binders' own parts.

use super::{
    Section,
    row::{
        BOOL, DAY, Kind, NAMES, Row, SEMICOLON_NAMES, TEXT, TextRule, Unit, count, int, later,
        live, millis, text,
    },
};

pub(super) static SECTIONS: &[Section] = &[
    Section {
        bases: &["spring.cloud.stream"],
        rows: APPLICATION,
    },
    Section {
        bases: &["spring.cloud.stream.bindings.*"],
        rows: DESTINATION,
    },
    Section {
        bases: &[
            "spring.cloud.stream.bindings.*",
            "spring.cloud.stream.default",
        ],
        rows: BINDING,
    },
    Section {
        bases: &[
            "spring.cloud.stream.bindings.*.consumer",
            "spring.cloud.stream.default.consumer",
        ],
        rows: CONSUMER,
    },
    Section {
        bases: &[
            "spring.cloud.stream.bindings.*.producer",
            "spring.cloud.stream.default.producer",
        ],
        rows: PRODUCER,
    },
    Section {
        bases: &["spring.cloud.function"],
        rows: FUNCTION,
    },
];

const HEADER_MODE: Kind = Kind::Choice(&[live("headers"), later("none"), later("embeddedHeaders")]);

static APPLICATION: &[Row] = &[
    Row::new(
        "default-binder",
        TEXT,
        "",
        "The binder of bindings that name none; `rocketmq` without it.",
    ),
    Row::new(
        "output-bindings",
        SEMICOLON_NAMES,
        "",
        "Outputs that are used although no handler or source struct names them.",
    )
    .also(&["source"]),
    Row::new(
        "input-bindings",
        SEMICOLON_NAMES,
        "",
        "Inputs without a handler.",
    )
    .later(),
    Row::new("function.definition", TEXT, "", "Which functions to bind.").later(),
    Row::new(
        "function.autodetect",
        BOOL,
        "true",
        "Bind the only function by itself.",
    )
    .later(),
    Row::new(
        "function.bindings.*",
        TEXT,
        "",
        "A friendly name for an implicit binding such as f-in-0.",
    )
    .later(),
    Row::new("function.batch-mode", BOOL, "false", "Handlers take lists.").later(),
    Row::new("function.reactive.*", BOOL, "", "Java only.").ignored(),
    Row::new("binders.*.type", TEXT, "", "The kind of a named binder.").later(),
    Row::new(
        "binders.*.environment.**",
        TEXT,
        "",
        "Settings only this binder sees.",
    )
    .later(),
    Row::new(
        "binders.*.inherit-environment",
        BOOL,
        "true",
        "Whether it also sees the application's settings.",
    )
    .later(),
    Row::new(
        "binders.*.default-candidate",
        BOOL,
        "true",
        "Whether it may be the default binder.",
    )
    .later(),
    Row::new(
        "dynamic-destinations",
        NAMES,
        "",
        "Names that may be bound at run time.",
    )
    .later(),
    Row::new(
        "dynamic-destination-cache-size",
        count(1),
        "10",
        "Bindings made at run time that are kept.",
    )
    .later(),
    Row::new(
        "binding-retry-interval",
        Kind::Duration {
            unit: Unit::Seconds,
            min: 0,
            max: DAY,
        },
        "30s",
        "Longest pause between attempts to bind while the broker is away; 0: the first failure ends the start.",
    ),
    Row::new(
        "instance-count",
        count(1),
        "1",
        "Instances of the application, for static assignment.",
    )
    .later(),
    Row::new("instance-index", count(0), "0", "This instance.").later(),
    Row::new(
        "instance-index-list",
        NAMES,
        "",
        "Several instances in one.",
    )
    .later(),
    Row::new(
        "override-cloud-connectors",
        BOOL,
        "",
        "A relic of Cloud Foundry.",
    )
    .ignored(),
    Row::new(
        "pollable-source",
        SEMICOLON_NAMES,
        "",
        "Inputs that are polled.",
    )
    .later(),
    Row::new("metrics.**", TEXT, "", "Metrics as messages.").later(),
    Row::new("kafka.**", TEXT, "", "Settings of the Kafka binder.").foreign(),
    Row::new(
        "kafka-streams.**",
        TEXT,
        "",
        "Settings of the Kafka Streams binder.",
    )
    .foreign(),
    Row::new("rabbit.**", TEXT, "", "Settings of the RabbitMQ binder.").foreign(),
    Row::new("pulsar.**", TEXT, "", "Settings of the Pulsar binder.").foreign(),
    Row::new("kinesis.**", TEXT, "", "Settings of the Kinesis binder.").foreign(),
    Row::new("gcp.**", TEXT, "", "Settings of the Pub/Sub binder.").foreign(),
    Row::new("solace.**", TEXT, "", "Settings of the Solace binder.").foreign(),
    Row::new(
        "eventhubs.**",
        TEXT,
        "",
        "Settings of the Event Hubs binder.",
    )
    .foreign(),
];

static DESTINATION: &[Row] = &[Row::new(
    "destination",
    text(TextRule::Topics),
    "",
    "The topic; an input may list several, separated by commas.",
)];

static BINDING: &[Row] = &[
    Row::new(
        "group",
        text(TextRule::Group),
        "",
        "The consumer group of an input; its members share the messages.",
    ),
    Row::new(
        "content-type",
        text(TextRule::Mime),
        "application/json",
        "The content type of messages that carry none.",
    ),
    Row::new("binder", TEXT, "", "Which binder serves this binding."),
    Row::new(
        "error-handler-definition",
        TEXT,
        "",
        "The #[error_handler] of this binding's failures, by its name, in place of all others.",
    ),
];

static CONSUMER: &[Row] = &[
    Row::new(
        "auto-startup",
        BOOL,
        "true",
        "Start with the application; false leaves the binding stopped.",
    ),
    Row::new(
        "concurrency",
        int(1, 1024),
        "1",
        "Handler invocations at the same time; orderly inputs: at most one a queue.",
    ),
    Row::new(
        "partitioned",
        BOOL,
        "false",
        "Asserts that the input has a group; RocketMQ shares queues by itself.",
    ),
    Row::new(
        "instance-count",
        int(-1, 1024),
        "-1",
        "Instances, for static assignment.",
    )
    .later(),
    Row::new("instance-index", int(-1, 1023), "-1", "This instance.").later(),
    Row::new(
        "instance-index-list",
        NAMES,
        "",
        "Several instances in one.",
    )
    .later(),
    Row::new(
        "max-attempts",
        int(1, 1000),
        "3",
        "Tries inside the process, the first included; 1: none but that.",
    ),
    Row::new(
        "back-off-initial-interval",
        millis(1, DAY),
        "1s",
        "The pause before the second try.",
    ),
    Row::new(
        "back-off-multiplier",
        Kind::Float { min: 1.0 },
        "2.0",
        "How the pause grows from try to try.",
    ),
    Row::new(
        "back-off-max-interval",
        millis(1, DAY),
        "10s",
        "The longest pause between tries.",
    ),
    Row::new(
        "default-retryable",
        BOOL,
        "true",
        "Whether errors of no class of their own are tried again.",
    ),
    Row::new(
        "retryable-exceptions.**",
        BOOL,
        "",
        "Whether errors with this code are tried again.",
    )
    .later(),
    Row::new("retry-template-name", TEXT, "", "A named retry policy.").later(),
    Row::new("header-mode", HEADER_MODE, "headers", "How headers travel.").later(),
    Row::new(
        "use-native-decoding",
        BOOL,
        "false",
        "Hand the bytes to the handler as they are.",
    )
    .later(),
    Row::new(
        "multiplex",
        BOOL,
        "true",
        "One consumer for all destinations of the input.",
    )
    .later(),
    Row::new(
        "batch-mode",
        BOOL,
        "false",
        "The handler takes a list of messages.",
    )
    .later(),
];

static PRODUCER: &[Row] = &[
    Row::new(
        "auto-startup",
        BOOL,
        "true",
        "Connect at start; false: at the first send.",
    )
    .later(),
    Row::new(
        "partition-key-expression",
        text(TextRule::Expression),
        "",
        "What decides the queue: an expression over payload and headers.",
    ),
    Row::new(
        "partition-key-extractor-name",
        TEXT,
        "",
        "In place of the expression: the name of a #[partition_key_extractor].",
    ),
    Row::new(
        "partition-selector-expression",
        text(TextRule::Expression),
        "",
        "The partition as an expression over the key, before the remainder by the count; without it the key's hash.",
    ),
    Row::new(
        "partition-selector-name",
        TEXT,
        "",
        "In place of that expression: the name of a #[partition_selector].",
    ),
    Row::new(
        "partition-count",
        int(1, 1024),
        "",
        "Number of partitions; without it the topic's queues. 1 without a key: everything to queue 0.",
    ),
    Row::new(
        "required-groups",
        NAMES,
        "",
        "Groups whose subscription must exist before messages flow.",
    )
    .later(),
    Row::new("header-mode", HEADER_MODE, "headers", "How headers travel.").later(),
    Row::new(
        "use-native-encoding",
        BOOL,
        "false",
        "The payload is bytes already.",
    )
    .later(),
    Row::new(
        "error-channel-enabled",
        BOOL,
        "false",
        "Failed sends go to the error handler too; asynchronous ones always do.",
    ),
    Row::new(
        "poller.fixed-delay",
        millis(0, DAY),
        "1s",
        "How often a source is asked.",
    )
    .later(),
    Row::new(
        "poller.max-messages-per-poll",
        count(1),
        "1",
        "Messages a time.",
    )
    .later(),
    Row::new("poller.cron", TEXT, "", "When a source is asked.").later(),
    Row::new(
        "poller.initial-delay",
        millis(0, DAY),
        "0",
        "Pause before the first time.",
    )
    .later(),
    Row::new(
        "dynamic-partition-updates-enabled",
        BOOL,
        "false",
        "Follow the topic's number of queues.",
    )
    .later(),
];

static FUNCTION: &[Row] = &[
    Row::new("definition", TEXT, "", "Which functions to bind.").later(),
    Row::new(
        "routing-expression",
        TEXT,
        "",
        "Which function takes a message.",
    )
    .later(),
];
