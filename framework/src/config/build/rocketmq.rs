//! `spring.cloud.stream.rocketmq.*`: a binding's own keys, below them `default.*`, below them the binder's.

use crate::config::{
    report::{Diagnostic, DiagnosticKind},
    timestamp::{consume_timestamp, without_timestamp},
    typed::{
        AllocateStrategy, BinderConfig, BindingConfig, Config, ConsumeFrom, MessageModel,
        Positions, ProducerType, RocketmqBinding, RocketmqConsumer, RocketmqProducer, SendType,
        Subscription,
    },
    typing::Values,
};

use super::Reader;

const BINDER: &str = "spring.cloud.stream.rocketmq.binder";
const BINDINGS: &str = "spring.cloud.stream.rocketmq.bindings";
const DEFAULT: &str = "spring.cloud.stream.rocketmq.default";
/// The word of `consume-from-where` that `consume-timestamp` belongs to.
const TIMESTAMP: &str = "CONSUME_FROM_TIMESTAMP";

pub(super) fn read(values: &Values, config: &mut Config, report: &mut Vec<Diagnostic>) {
    binder(values, &mut config.rocketmq.binder);
    let group = config.rocketmq.binder.group.clone();
    config.rocketmq.default = binding(values, None, group.as_ref(), report);
    let names: Vec<String> = config.bindings.keys().cloned().collect();
    for name in names {
        let mut read = binding(values, Some(&name), group.as_ref(), report);
        if let Some(binding) = config.bindings.get(&name) {
            if let Some(span) = binding.positions.section() {
                read.positions.set_section(span.clone());
            }
            consumer_group(values, binding, &mut read.positions, report);
        }
        config.rocketmq.bindings.insert(name, read);
    }
}

/// The consumer group stands at the binding; here it may only be repeated.
fn consumer_group(
    values: &Values,
    binding: &BindingConfig,
    positions: &mut Positions,
    report: &mut Vec<Diagnostic>,
) {
    let group = reader(
        values,
        positions,
        Some(&binding.name),
        "consumer",
        "consumer.",
    )
    .optional_text("group");
    if group.is_some() && group != binding.group {
        let own = format!("spring.cloud.stream.bindings.{}.group", binding.name);
        report.push(
            Diagnostic::error(
                DiagnosticKind::Conflict,
                "the group of an input is that of its binding",
            )
            .key("group")
            .at(positions.of("consumer.group"))
            .label(format!("set {own}"))
            .suggest(Some(own)),
        );
    }
}

fn binder(values: &Values, into: &mut BinderConfig) {
    let mut read = Reader::new(values, &mut into.positions).below(BINDER, None, "");
    read.bool("enabled", &mut into.enabled);
    read.list("name-server", &mut into.name_servers);
    into.group = read.optional_text("group");
    into.namespace = read.optional_text("namespace");
    read.duration(
        "poll-name-server-interval",
        &mut into.poll_name_server_interval,
    );
    read.duration(
        "heartbeat-broker-interval",
        &mut into.heartbeat_broker_interval,
    );
    read.duration(
        "persist-consumer-offset-interval",
        &mut into.persist_consumer_offset_interval,
    );
}

fn binding(
    values: &Values,
    name: Option<&str>,
    group: Option<&String>,
    report: &mut Vec<Diagnostic>,
) -> RocketmqBinding {
    let mut read = RocketmqBinding::default();
    producer(values, name, &mut read.producer, &mut read.positions);
    if read.producer.group.is_none() {
        read.producer.group = group.cloned();
    }
    consumer(values, name, &mut read.consumer, &mut read.positions);
    // Two spellings of one setting are compared within one section: a binding's own spelling overrides the default's.
    for (place, own) in [(DEFAULT, None), (BINDINGS, name)] {
        if place == DEFAULT || own.is_some() {
            paired(values, place, own, &mut read, report);
        }
    }
    read
}

fn reader<'a>(
    values: &'a Values,
    positions: &'a mut Positions,
    name: Option<&str>,
    below: &str,
    prefix: &'static str,
) -> Reader<'a> {
    let reader = Reader::new(values, positions).prefixed(prefix);
    let reader = if name.is_some() {
        reader.below(BINDINGS, name, below)
    } else {
        reader
    };
    reader.below(DEFAULT, None, below)
}

fn producer(
    values: &Values,
    name: Option<&str>,
    into: &mut RocketmqProducer,
    positions: &mut Positions,
) {
    let mut read = reader(values, positions, name, "producer", "producer.");
    read.bool("enabled", &mut into.enabled);
    into.group = read.optional_text("group");
    into.transaction_listener = read.optional_text("transaction-listener");
    read.duration("send-msg-timeout", &mut into.send_msg_timeout);
    read.number(
        "compress-msg-body-threshold",
        &mut into.compress_msg_body_threshold,
    );
    read.number(
        "retry-times-when-send-failed",
        &mut into.retry_times_when_send_failed,
    );
    read.number(
        "retry-times-when-send-async-failed",
        &mut into.retry_times_when_send_async_failed,
    );
    read.bool("retry-another-broker", &mut into.retry_another_broker);
    read.number("max-message-size", &mut into.max_message_size);
}

fn consumer(
    values: &Values,
    name: Option<&str>,
    into: &mut RocketmqConsumer,
    positions: &mut Positions,
) {
    let mut read = reader(values, positions, name, "consumer", "consumer.");
    read.bool("enabled", &mut into.enabled);
    read.bool("orderly", &mut into.orderly);
    let points = [
        ("CONSUME_FROM_LAST_OFFSET", ConsumeFrom::LastOffset),
        ("CONSUME_FROM_FIRST_OFFSET", ConsumeFrom::FirstOffset),
        (TIMESTAMP, ConsumeFrom::Timestamp(without_timestamp())),
    ];
    read.choice("consume-from-where", &points, &mut into.consume_from);
    // What is no time was reported with its type.
    let time = read.optional_text("consume-timestamp");
    let time = time.and_then(|time| consume_timestamp(time.trim(), None).ok());
    if let (ConsumeFrom::Timestamp(millis), Some(time)) = (&mut into.consume_from, time) {
        *millis = time;
    }
    read.number("max-reconsume-times", &mut into.max_reconsume_times);
    read.number(
        "delay-level-when-next-consume",
        &mut into.delay_level_when_next_consume,
    );
    read.duration(
        "suspend-current-queue-time-millis",
        &mut into.suspend_current_queue_time,
    );
    read.duration("consume-timeout", &mut into.consume_timeout);
    read.duration("pull-interval", &mut into.pull_interval);
    read.number("pull-batch-size", &mut into.pull_batch_size);
    read.number(
        "pull-threshold-for-queue",
        &mut into.pull_threshold_for_queue,
    );
    read.number(
        "pull-threshold-size-for-queue",
        &mut into.pull_threshold_size_for_queue_mib,
    );
    // -1 doesn't fit the field and so means no limit, as it should.
    into.pull_threshold_for_topic = read.optional_number("pull-threshold-for-topic");
    into.pull_threshold_size_for_topic_mib = read.optional_number("pull-threshold-size-for-topic");
    read.number("consume-max-span", &mut into.consume_max_span);
    read.duration(
        "pull-time-delay-mills-when-exception",
        &mut into.pull_delay_when_exception,
    );
    let strategies = [
        ("averagely", AllocateStrategy::Averagely),
        ("averagely-by-circle", AllocateStrategy::AveragelyByCircle),
        ("consistent-hash", AllocateStrategy::ConsistentHash),
        ("by-config", AllocateStrategy::ByConfig),
        ("machine-room", AllocateStrategy::MachineRoom),
    ];
    read.choice(
        "allocate-message-queue-strategy",
        &strategies,
        &mut into.allocate_strategy,
    );
    read.number("virtual-nodes", &mut into.virtual_nodes);
    read.list("message-queues", &mut into.message_queues);
    read.list("machine-rooms", &mut into.machine_rooms);
}

/// Settings that both dialects have, under different names.
fn paired(
    values: &Values,
    place: &str,
    name: Option<&str>,
    into: &mut RocketmqBinding,
    report: &mut Vec<Diagnostic>,
) {
    let RocketmqBinding {
        producer,
        consumer,
        positions,
    } = into;
    let mut read = Reader::new(values, positions)
        .prefixed("producer.")
        .below(place, name, "producer");
    let send = agree(
        read.optional_bool("sync").map(|sync| {
            if sync {
                SendType::Sync
            } else {
                SendType::Async
            }
        }),
        read.optional_choice("send-type", &SEND_TYPES),
        &mut producer.send_type,
    );
    let word = read.optional_choice("producer-type", &PRODUCER_TYPES);
    let flag = read.optional_bool("transactional");
    let kind = agree(
        flag.and_then(|on| transactional(on, word)),
        word,
        &mut producer.producer_type,
    );
    let mut read = Reader::new(values, positions)
        .prefixed("consumer.")
        .below(place, name, "consumer");
    let model = agree(
        read.optional_bool("broadcasting").map(message_model),
        read.optional_choice("message-model", &MESSAGE_MODELS),
        &mut consumer.message_model,
    );
    let tags = agree(
        read.optional_text("tags").map(subscription),
        read.optional_text("subscription").map(subscription),
        &mut consumer.subscription,
    );
    for (agrees, first, second) in [
        (send, "producer.sync", "producer.send-type"),
        (kind, "producer.transactional", "producer.producer-type"),
        (model, "consumer.broadcasting", "consumer.message-model"),
        (tags, "consumer.tags", "consumer.subscription"),
    ] {
        let diagnostic = conflict(positions, first, second);
        // The defaults are read again for every binding and told about once.
        if !agrees && !report.contains(&diagnostic) {
            report.push(diagnostic);
        }
    }
}

const SEND_TYPES: [(&str, SendType); 3] = [
    ("Sync", SendType::Sync),
    ("Async", SendType::Async),
    ("OneWay", SendType::OneWay),
];

const PRODUCER_TYPES: [(&str, ProducerType); 3] = [
    ("Normal", ProducerType::Normal),
    ("Orderly", ProducerType::Orderly),
    ("Trans", ProducerType::Trans),
];

/// What `transactional` says beside a `producer-type`: false only excludes `Trans`.
fn transactional(on: bool, word: Option<ProducerType>) -> Option<ProducerType> {
    match (on, word) {
        (true, _) => Some(ProducerType::Trans),
        (false, Some(ProducerType::Normal | ProducerType::Orderly)) => None,
        (false, Some(ProducerType::Trans) | None) => Some(ProducerType::Normal),
    }
}

const MESSAGE_MODELS: [(&str, MessageModel); 2] = [
    ("CLUSTERING", MessageModel::Clustering),
    ("BROADCASTING", MessageModel::Broadcasting),
];

fn message_model(broadcasting: bool) -> MessageModel {
    if broadcasting {
        MessageModel::Broadcasting
    } else {
        MessageModel::Clustering
    }
}

/// Takes whichever is given; false when both are and differ.
fn agree<T: PartialEq>(first: Option<T>, second: Option<T>, into: &mut T) -> bool {
    let agrees = match (&first, &second) {
        (Some(first), Some(second)) => first == second,
        _ => true,
    };
    if let Some(value) = second.or(first) {
        *into = value;
    }
    agrees
}

fn conflict(positions: &Positions, first: &str, second: &str) -> Diagnostic {
    let short = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let (first_name, second_name) = (short(first), short(second));
    let message = format!(
        "`{first_name}` and `{second_name}` are one setting and contradict each other; keep one"
    );
    Diagnostic::error(DiagnosticKind::Conflict, message)
        .key(second_name)
        .at(positions.of(second))
        .related(positions.of(first), format!("`{first_name}` is given here"))
}

/// `*` and nothing are everything.
fn subscription(text: String) -> Subscription {
    let trimmed = text.trim();
    if trimmed == "*" {
        Subscription::All
    } else if let Some(condition) = trimmed.strip_prefix("sql:") {
        Subscription::Sql(condition.trim().to_owned())
    } else {
        Subscription::Tags(text)
    }
}
