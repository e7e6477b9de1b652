//! Rules between keys that need no program: what excludes, needs or contradicts what.

use bindery_protocol::filter::SqlFilter;

use super::{
    build::Named,
    relaxed::nearest,
    report::{Diagnostic, DiagnosticKind},
    span::Span,
    timestamp::millis_since_1970,
    told::Told,
    transactions,
    typed::{
        AllocateStrategy, BindingConfig, Config, ConsumeFrom, MessageModel, ProducerType,
        RocketmqBinding, SendType, Subscription,
    },
};

/// The kinds of binders this program has.
const BINDERS: [&str; 2] = ["rocketmq", "memory"];
/// In-process attempts times deliveries above this surprise their author.
const MANY_EXECUTIONS: u64 = 20;

/// Checks `config`; `names` are the names of all documents.
pub(crate) fn check(config: &Config, names: &[Named], told: &Told, report: &mut Vec<Diagnostic>) {
    embedded(config, report);
    default_binder(config, report);
    for binding in config.bindings.values() {
        let rocketmq = config.rocketmq.binding(&binding.name);
        attempts(binding, report);
        binder(config, binding, report);
        synchronous(binding, rocketmq, report);
        if !told.explains(&binding.name, "partition-key-expression") {
            partitioned(binding, rocketmq, report);
        }
        transactions::rules(binding, rocketmq, told, report);
        input(binding, rocketmq, told, report);
        expressions(binding, report);
    }
    if !told.explains_bindings() {
        unknown_rocketmq_bindings(names, report);
    }
    groups(config, report);
    topics(config, report);
}

fn conflict(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(DiagnosticKind::Conflict, message)
}

/// An embedded cluster and the address of another one can't both be meant.
fn embedded(config: &Config, report: &mut Vec<Diagnostic>) {
    let Some(embedded) = &config.embedded else {
        return;
    };
    let Some(name_server) = config.rocketmq.binder.positions.of("name-server") else {
        return;
    };
    report.push(
        conflict("`name-server` and `bindery.embedded` are both given")
            .key("spring.cloud.stream.rocketmq.binder.name-server")
            .at(Some(name_server))
            .label("a cluster is named here")
            .related(
                embedded.positions.of("enabled"),
                "and one is started in this process here",
            )
            .note("remove one, or set BINDERY_EMBEDDED=false for this run"),
    );
}

fn default_binder(config: &Config, report: &mut Vec<Diagnostic>) {
    if let Some(name) = config
        .default_binder
        .as_deref()
        .filter(|name| !BINDERS.contains(name))
    {
        report.push(unknown_binder(name).key("spring.cloud.stream.default-binder"));
    }
}

fn unknown_binder(name: &str) -> Diagnostic {
    Diagnostic::error(
        DiagnosticKind::UnknownName,
        format!("there is no binder `{name}`"),
    )
    .suggest(nearest(name, BINDERS).map(str::to_owned))
    .note(format!("binders of this program: {}", BINDERS.join(", ")))
}

fn binder(config: &Config, binding: &BindingConfig, report: &mut Vec<Diagnostic>) {
    let at = binding.positions.of_or_section("binder");
    if let Some(name) = binding
        .binder
        .as_deref()
        .filter(|name| !BINDERS.contains(name))
    {
        report.push(unknown_binder(name).key("binder").at(at));
    } else if config.binder_of(binding) == "rocketmq" && !config.rocketmq.binder.enabled {
        let message = format!(
            "binding `{}` uses the rocketmq binder, which is switched off",
            binding.name
        );
        let off = config.rocketmq.binder.positions.of("enabled");
        report.push(
            conflict(message)
                .key("binder")
                .at(at)
                .related(off, "switched off here"),
        );
    }
}

fn attempts(binding: &BindingConfig, report: &mut Vec<Diagnostic>) {
    let back_off = &binding.consumer.back_off;
    if back_off.max < back_off.initial {
        let longest = binding.positions.of("consumer.back-off-max-interval");
        let first = binding.positions.of("consumer.back-off-initial-interval");
        let message = format!(
            "`back-off-max-interval` ({:?}) is below `back-off-initial-interval` ({:?})",
            back_off.max, back_off.initial
        );
        report.push(
            conflict(message)
                .key("back-off-max-interval")
                .at(longest.or(first)),
        );
    }
}

/// Order needs sends that wait.
fn synchronous(binding: &BindingConfig, rocketmq: &RocketmqBinding, report: &mut Vec<Diagnostic>) {
    let orderly = rocketmq.producer.producer_type == ProducerType::Orderly;
    if rocketmq.producer.send_type == SendType::Sync
        || !(orderly || binding.producer.is_partitioned())
    {
        return;
    }
    let positions = &rocketmq.positions;
    let what = if orderly {
        "an Orderly output"
    } else {
        "a partitioned output"
    };
    let message = format!("{what} keeps its order only with synchronous sends");
    report.push(
        conflict(message)
            .key("send-type")
            .at(positions
                .of("producer.send-type")
                .or(positions.of_or_section("producer.sync")))
            .suggest(Some("Sync".to_owned())),
    );
}

/// Order needs something that decides the queue, and several partitions do too.
fn partitioned(binding: &BindingConfig, rocketmq: &RocketmqBinding, report: &mut Vec<Diagnostic>) {
    let BindingConfig {
        name,
        producer,
        positions,
        ..
    } = binding;
    let orderly = rocketmq.producer.producer_type == ProducerType::Orderly;
    either_or(binding, report);
    if producer.has_partition_key() {
        return;
    }
    selector_without_key(binding, report);
    if orderly && producer.partition_count != Some(1) {
        report.push(
            conflict(format!("Orderly output `{name}` has nothing that decides the queue"))
                .key("producer-type")
                .at(rocketmq.positions.of_or_section("producer.producer-type"))
                .label("give producer.partition-key-expression, or producer.partition-count: 1 for one queue"),
        );
    } else if let Some(count) = producer.partition_count.filter(|count| *count > 1) {
        report.push(
            conflict(format!(
                "`partition-count: {count}` needs a partition-key-expression"
            ))
            .key("partition-count")
            .at(positions.of_or_section("producer.partition-count")),
        );
    }
}

/// An expression and code for the same thing: only one of them could count.
fn either_or(binding: &BindingConfig, report: &mut Vec<Diagnostic>) {
    for (expression, code) in [
        ("partition-key-expression", "partition-key-extractor-name"),
        ("partition-selector-expression", "partition-selector-name"),
    ] {
        let place = |key: &str| binding.positions.of(&format!("producer.{key}"));
        if let (Some(expressed), Some(coded)) = (place(expression), place(code)) {
            let message = format!("`{expression}` and `{code}` exclude each other; keep one");
            let diagnostic = conflict(message)
                .key(code)
                .at(Some(coded))
                .related(Some(expressed), format!("`{expression}` is given here"));
            // Defaults are seen again with every binding and told about once.
            if !report.contains(&diagnostic) {
                report.push(diagnostic);
            }
        }
    }
}

/// A selector chooses by the key.
fn selector_without_key(binding: &BindingConfig, report: &mut Vec<Diagnostic>) {
    for key in ["partition-selector-expression", "partition-selector-name"] {
        if let Some(span) = binding.positions.own(&format!("producer.{key}")) {
            report.push(
                conflict(format!("`{key}` needs a partition key to choose by"))
                    .key(key)
                    .at(Some(span))
                    .label("give producer.partition-key-expression as well"),
            );
        }
    }
}

/// Rules of consumers.
fn input(
    binding: &BindingConfig,
    rocketmq: &RocketmqBinding,
    told: &Told,
    report: &mut Vec<Diagnostic>,
) {
    if rocketmq.consumer.message_model == MessageModel::Broadcasting {
        broadcasting(rocketmq, report);
    }
    match &rocketmq.consumer.subscription {
        Subscription::All => {}
        Subscription::Tags(text) => subscription(text, rocketmq, report),
        Subscription::Sql(text) => condition(text, rocketmq, report),
    }
    start(rocketmq, report);
    allocation(rocketmq, told, &binding.name, report);
    let no_group = binding.group.is_none() && !told.explains(&binding.name, "group");
    if binding.consumer.partitioned && no_group {
        let message = format!("`partitioned` input `{}` needs a group", binding.name);
        let span = binding.positions.of("consumer.partitioned");
        report.push(conflict(message).key("partitioned").at(span));
    }
    executions(binding, rocketmq, report);
}

/// Each setting of an allocation strategy needs its strategy, and two strategies need their setting.
fn allocation(
    rocketmq: &RocketmqBinding,
    told: &Told,
    binding: &str,
    report: &mut Vec<Diagnostic>,
) {
    const KEY: &str = "allocate-message-queue-strategy";
    const DEFAULT_PLACES: usize = 10;
    let (consumer, positions) = (&rocketmq.consumer, &rocketmq.positions);
    for (key, word, strategy) in [
        (
            "virtual-nodes",
            "consistent-hash",
            AllocateStrategy::ConsistentHash,
        ),
        ("message-queues", "by-config", AllocateStrategy::ByConfig),
        (
            "machine-rooms",
            "machine-room",
            AllocateStrategy::MachineRoom,
        ),
    ] {
        let chosen = consumer.allocate_strategy == strategy;
        let place = positions.of(&format!("consumer.{key}"));
        // The default, written down, asks for nothing.
        let idle = key == "virtual-nodes" && consumer.virtual_nodes == DEFAULT_PLACES;
        if let (Some(span), false) = (place, chosen || idle)
            && !told.explains(binding, KEY)
        {
            let message = format!("`{key}` needs `{KEY}: {word}`");
            report.push(conflict(message).key(key).at(Some(span)));
        }
        let needed = strategy != AllocateStrategy::ConsistentHash;
        if chosen && needed && place.is_none() && !told.explains(binding, key) {
            report.push(
                Diagnostic::error(DiagnosticKind::Missing, format!("`{word}` needs `{key}`"))
                    .key(key)
                    .at(positions.of(&format!("consumer.{KEY}"))),
            );
        }
    }
    for queue in &consumer.message_queues {
        let id = queue
            .rsplit_once(':')
            .map(|(_, id)| id.trim().parse::<u16>());
        if !matches!(id, Some(Ok(_))) {
            let message = format!("`{queue}` is not a queue: write `broker-a:0`");
            report.push(
                Diagnostic::error(DiagnosticKind::WrongValue, message)
                    .key("message-queues")
                    .at(positions.of("consumer.message-queues")),
            );
        }
    }
}

/// A time needs the start point that asks for one, and should have been.
fn start(rocketmq: &RocketmqBinding, report: &mut Vec<Diagnostic>) {
    let Some(span) = rocketmq.positions.of("consumer.consume-timestamp") else {
        return;
    };
    match rocketmq.consumer.consume_from {
        ConsumeFrom::Timestamp(millis) if millis > millis_since_1970() => report.push(
            Diagnostic::warning(
                DiagnosticKind::Surprise,
                "`consume-timestamp` is in the future: older messages are skipped, and new ones are read from now on",
            )
            .key("consume-timestamp")
            .at(Some(span)),
        ),
        ConsumeFrom::Timestamp(_) => {}
        ConsumeFrom::LastOffset | ConsumeFrom::FirstOffset => report.push(
            conflict("`consume-timestamp` needs `consume-from-where: CONSUME_FROM_TIMESTAMP`")
                .key("consume-timestamp")
                .at(Some(span))
                .related(
                    rocketmq.positions.of("consumer.consume-from-where"),
                    "it is not chosen here",
                ),
        ),
    }
}

fn broadcasting(rocketmq: &RocketmqBinding, report: &mut Vec<Diagnostic>) {
    let positions = &rocketmq.positions;
    if rocketmq.consumer.orderly {
        let model = positions
            .of("consumer.broadcasting")
            .or(positions.of("consumer.message-model"));
        let message =
            "messages are ordered only within a group that shares them, not when broadcast";
        report.push(
            conflict(message)
                .key("orderly")
                .at(positions.of_or_section("consumer.orderly"))
                .related(model, "broadcast here"),
        );
    }
    if let Some(span) = positions.of("consumer.max-reconsume-times") {
        let message = "failed broadcast messages are dropped: `max-reconsume-times` has no effect";
        report.push(
            Diagnostic::warning(DiagnosticKind::Conflict, message)
                .key("max-reconsume-times")
                .at(Some(span)),
        );
    }
}

/// A condition is read here already: a broker would refuse it only when the application has started.
fn condition(text: &str, rocketmq: &RocketmqBinding, report: &mut Vec<Diagnostic>) {
    let Err(error) = SqlFilter::parse(text) else {
        return;
    };
    let positions = &rocketmq.positions;
    let span = positions
        .of("consumer.subscription")
        .or(positions.of("consumer.tags"));
    let message = format!("the condition cannot be read: {error}");
    report.push(
        Diagnostic::error(DiagnosticKind::WrongValue, message)
            .key("subscription")
            .at(span),
    );
}

/// Tags, not conditions; a bare condition would be one tag and match nothing.
fn subscription(text: &str, rocketmq: &RocketmqBinding, report: &mut Vec<Diagnostic>) {
    let positions = &rocketmq.positions;
    let span = positions
        .of("consumer.subscription")
        .or(positions.of("consumer.tags"));
    if text.contains(['=', '<', '>']) || text.to_uppercase().contains(" AND ") {
        let message = "this is a condition, and tags are expected here; it would match nothing";
        report.push(
            Diagnostic::error(DiagnosticKind::WrongValue, message)
                .key("subscription")
                .at(span)
                .label("tags are written `TagA || TagB`, conditions begin with `sql:`"),
        );
    } else if text
        .split("||")
        .any(|tag| tag.trim().is_empty() || tag.trim().contains(char::is_whitespace))
    {
        let message = "tags are separated by `||` and hold no blanks";
        report.push(
            Diagnostic::error(DiagnosticKind::WrongValue, message)
                .key("subscription")
                .at(span),
        );
    }
}

/// "Received three times although retry is off" is the most frequent surprise of the reference.
fn executions(binding: &BindingConfig, rocketmq: &RocketmqBinding, report: &mut Vec<Diagnostic>) {
    let consumer = &rocketmq.consumer;
    if binding.group.is_none()
        || consumer.orderly
        || consumer.message_model == MessageModel::Broadcasting
    {
        return;
    }
    let redeliveries = u64::try_from(consumer.max_reconsume_times).unwrap_or(16);
    let attempts = u64::from(binding.consumer.max_attempts);
    let total = attempts.saturating_mul(redeliveries + 1);
    if total > MANY_EXECUTIONS {
        let message = format!(
            "a message that always fails is handled {total} times by `{}`: {attempts} attempts × (1 + {redeliveries} redeliveries)",
            binding.name
        );
        let span = binding
            .positions
            .of("consumer.max-attempts")
            .or(binding.positions.section());
        report.push(
            Diagnostic::warning(DiagnosticKind::Surprise, message)
                .key("max-attempts")
                .at(span)
                .note("consumer.max-attempts: 1 leaves the repetition to the broker"),
        );
    }
}

fn expressions(binding: &BindingConfig, report: &mut Vec<Diagnostic>) {
    let producer = &binding.producer;
    for (key, text) in [
        (
            "partition-key-expression",
            &producer.partition_key_expression,
        ),
        (
            "partition-selector-expression",
            &producer.partition_selector_expression,
        ),
    ] {
        let Some(text) = text else { continue };
        if let Err(error) = bindery_expression::parse(text) {
            let span = binding.positions.of(&format!("producer.{key}"));
            let diagnostic = Diagnostic::error(DiagnosticKind::Expression, error.to_string())
                .key(key)
                .at(span
                    .map(|span| within(span, text, error.position()))
                    .as_ref());
            if !report.contains(&diagnostic) {
                report.push(diagnostic);
            }
        }
    }
}

/// The character of `text` at `position`, if the value is written as it reads; else the whole value.
fn within(span: &Span, text: &str, position: usize) -> Span {
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let Some(quotes @ (0 | 2)) = span.length().checked_sub(length) else {
        return span.clone();
    };
    let offset = u32::try_from(position)
        .unwrap_or(u32::MAX)
        .min(length.saturating_sub(1));
    if span.line() == 0 {
        return span.clone();
    }
    Span::new(
        span.source().clone(),
        span.line(),
        span.column() + quotes / 2 + offset,
        1,
    )
}

/// A binding that only the binder's section knows is a mistyped one.
fn unknown_rocketmq_bindings(names: &[Named], report: &mut Vec<Diagnostic>) {
    const STREAM: &str = "spring.cloud.stream.bindings";
    const ROCKETMQ: &str = "spring.cloud.stream.rocketmq.bindings";
    let known: Vec<&str> = names
        .iter()
        .filter(|named| named.section == STREAM)
        .map(|named| named.name.as_str())
        .collect();
    let is_known = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
    for named in names
        .iter()
        .filter(|named| named.section == ROCKETMQ && !is_known(&named.name))
    {
        let message = format!(
            "`{}` is not a binding: spring.cloud.stream.bindings doesn't have it",
            named.name
        );
        report.push(
            Diagnostic::error(DiagnosticKind::UnknownName, message)
                .key(format!("{ROCKETMQ}.{}", named.name))
                .at(Some(&named.span))
                .suggest(nearest(&named.name, known.iter().copied()).map(str::to_owned)),
        );
    }
}

/// Members of one group must want the same, or messages vanish; two inputs of one program are members too.
fn groups(config: &Config, report: &mut Vec<Diagnostic>) {
    let inputs: Vec<&BindingConfig> = config
        .bindings
        .values()
        .filter(|binding| binding.group.is_some())
        .collect();
    for (at, second) in inputs.iter().enumerate() {
        for first in inputs[..at]
            .iter()
            .filter(|first| first.group == second.group)
        {
            let group = second.group.as_deref().unwrap_or_default();
            let (one, other) = (
                config.rocketmq.binding(&first.name),
                config.rocketmq.binding(&second.name),
            );
            let shared = first
                .destinations()
                .find(|topic| second.destinations().any(|other| other == *topic));
            let message = if let Some(topic) = shared {
                format!(
                    "inputs `{}` and `{}` both consume `{topic}` in group `{group}`; use one input and `condition` at its handlers",
                    first.name, second.name
                )
            } else if differ(one, other) || first.destination != second.destination {
                format!(
                    "inputs `{}` and `{}` share group `{group}` and want different things; members of a group must be alike",
                    first.name, second.name
                )
            } else {
                continue;
            };
            report.push(
                conflict(message)
                    .key("group")
                    .at(second.positions.of_or_section("group"))
                    .related(first.positions.of_or_section("group"), "the other one"),
            );
        }
    }
}

fn differ(one: &RocketmqBinding, other: &RocketmqBinding) -> bool {
    let essence = |binding: &RocketmqBinding| -> (MessageModel, bool, ConsumeFrom, Subscription) {
        let consumer = &binding.consumer;
        (
            consumer.message_model,
            consumer.orderly,
            consumer.consume_from,
            consumer.subscription.clone(),
        )
    };
    essence(one) != essence(other)
}

fn topics(config: &Config, report: &mut Vec<Diagnostic>) {
    for (name, topic) in config
        .bindery
        .topics
        .iter()
        .filter(|(_, topic)| ![2, 4, 6].contains(&topic.perm))
    {
        let message = format!(
            "topic `{name}` has perm {}; 2 is write, 4 read, 6 both",
            topic.perm
        );
        report.push(
            Diagnostic::error(DiagnosticKind::WrongValue, message)
                .key("perm")
                .at(topic.positions.of_or_section("perm")),
        );
    }
}
