//! `spring.cloud.stream.rocketmq.*`: a binding's own keys, below them `default.*`, below them the binder's.

use crate::config::{
    report::{Diagnostic, DiagnosticKind},
    typed::{
        AllocateStrategy, BinderConfig, Config, ConsumeFrom, MessageModel, Positions, ProducerType,
        RocketmqBinding, RocketmqConsumer, RocketmqProducer, SendType, Subscription,
    },
    typing::Values,
};

use super::Reader;

const BINDER: &str = "spring.cloud.stream.rocketmq.binder";
const BINDINGS: &str = "spring.cloud.stream.rocketmq.bindings";
const DEFAULT: &str = "spring.cloud.stream.rocketmq.default";

pub(super) fn read(values: &Values, config: &mut Config, report: &mut Vec<Diagnostic>) {
    binder(values, &mut config.rocketmq.binder);
    let group = config.rocketmq.binder.group.clone();
    config.rocketmq.default = binding(values, None, group.as_ref(), report);
    let names: Vec<String> = config.bindings.keys().cloned().collect();
    for name in names {
        let mut read = binding(values, Some(&name), group.as_ref(), report);
        if let Some(span) = config
            .bindings
            .get(&name)
            .and_then(|binding| binding.positions.section())
        {
            read.positions.set_section(span.clone());
        }
        config.rocketmq.bindings.insert(name, read);
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
    read.choice(
        "producer-type",
        &[
            ("Normal", ProducerType::Normal),
            ("Orderly", ProducerType::Orderly),
        ],
        &mut into.producer_type,
    );
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
    ];
    read.choice("consume-from-where", &points, &mut into.consume_from);
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
    ];
    read.choice(
        "allocate-message-queue-strategy",
        &strategies,
        &mut into.allocate_strategy,
    );
    // Kept for the check against the binding's own group.
    read.optional_text("group");
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
    let sync = read.optional_bool("sync").map(|sync| {
        if sync {
            SendType::Sync
        } else {
            SendType::Async
        }
    });
    let types = [
        ("Sync", SendType::Sync),
        ("Async", SendType::Async),
        ("OneWay", SendType::OneWay),
    ];
    let send_type = read.optional_choice("send-type", &types);

    let mut read = Reader::new(values, positions)
        .prefixed("consumer.")
        .below(place, name, "consumer");
    let model = |all| {
        if all {
            MessageModel::Broadcasting
        } else {
            MessageModel::Clustering
        }
    };
    let broadcasting = read.optional_bool("broadcasting").map(model);
    let models = [
        ("CLUSTERING", MessageModel::Clustering),
        ("BROADCASTING", MessageModel::Broadcasting),
    ];
    let message_model = read.optional_choice("message-model", &models);
    let tags = read.optional_text("tags").map(subscription);
    let subscribed = read.optional_text("subscription").map(subscription);

    let conflicts = [
        (
            agree(sync, send_type, &mut producer.send_type),
            "producer.sync",
            "producer.send-type",
        ),
        (
            agree(broadcasting, message_model, &mut consumer.message_model),
            "consumer.broadcasting",
            "consumer.message-model",
        ),
        (
            agree(tags, subscribed, &mut consumer.subscription),
            "consumer.tags",
            "consumer.subscription",
        ),
    ];
    // The defaults are read again for every binding and told about once, as themselves.
    for (_, first, second) in conflicts
        .iter()
        .filter(|(agrees, ..)| !agrees && (name.is_some() || place == DEFAULT))
    {
        let diagnostic = conflict(positions, first, second);
        if !report.contains(&diagnostic) {
            report.push(diagnostic);
        }
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
    if text.trim() == "*" {
        Subscription::All
    } else {
        Subscription::Tags(text)
    }
}
