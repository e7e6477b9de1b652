//! Rules of transactional outputs: what they need beside `producer-type: Trans`, and that the program has their listener.
//!
//! ```text
//! RocketmqProducer ─▶ rules ─▶ listener, group, no partition key, sends that wait
//! Usage ───────────▶ usage ─▶ the listener exists · its name is not taken twice · its group has one listener
//! ```

use super::{
    check::Usage,
    relaxed::nearest,
    report::{Diagnostic, DiagnosticKind},
    span::Span,
    told::Told,
    typed::{BindingConfig, Config, ProducerType, RocketmqBinding, SendType},
};

const ROCKETMQ: &str = "spring.cloud.stream.rocketmq.bindings";

/// Rules that need no program.
pub(super) fn rules(
    binding: &BindingConfig,
    rocketmq: &RocketmqBinding,
    told: &Told,
    report: &mut Vec<Diagnostic>,
) {
    let (producer, positions) = (&rocketmq.producer, &rocketmq.positions);
    if !is_transactional(binding, rocketmq) {
        if producer.producer_type != ProducerType::Trans
            && let Some(span) = positions.own("producer.transaction-listener")
            && !told.explains(&binding.name, "producer-type")
        {
            report.push(
                error(
                    DiagnosticKind::Conflict,
                    binding,
                    "transaction-listener",
                    "`transaction-listener` needs `producer-type: Trans`",
                )
                .at(Some(span))
                .label("without it the output sends without transaction"),
            );
        }
        return;
    }
    let name = &binding.name;
    if producer.transaction_listener.is_none() && !told.explains(name, "transaction-listener") {
        let message = format!("transactional output `{name}` names no transaction listener");
        report.push(
            error(
                DiagnosticKind::Missing,
                binding,
                "transaction-listener",
                message,
            )
            .at(place(rocketmq))
            .label(
                "add `transactionListener: NAME`, the name of a #[transaction_listener(\"NAME\")]",
            ),
        );
    }
    if positions.of("producer.group").is_none() && !told.explains(name, "group") {
        let message = format!("transactional output `{name}` has no producer group of its own");
        report.push(
            error(DiagnosticKind::Missing, binding, "group", message)
                .at(place(rocketmq))
                .label(format!(
                    "add `group: {name}-group`, say: brokers ask the group how a transaction ended"
                )),
        );
    }
    sending(binding, rocketmq, report);
}

/// A transaction waits for the broker and takes any queue.
fn sending(binding: &BindingConfig, rocketmq: &RocketmqBinding, report: &mut Vec<Diagnostic>) {
    if binding.producer.is_partitioned() {
        let positions = &binding.positions;
        let span = positions
            .of("producer.partition-key-expression")
            .or(positions.of("producer.partition-key-extractor-name"))
            .or(positions.of_or_section("producer.partition-count"));
        let message = "a transactional output takes no partition key: its messages go to any queue";
        report.push(
            error(
                DiagnosticKind::Conflict,
                binding,
                "partition-key-expression",
                message,
            )
            .at(span)
            .related(place(rocketmq), "transactional by this"),
        );
    } else if rocketmq.producer.send_type != SendType::Sync {
        let positions = &rocketmq.positions;
        let span = positions
            .of("producer.send-type")
            .or(positions.of_or_section("producer.sync"));
        report.push(
            error(
                DiagnosticKind::Conflict,
                binding,
                "send-type",
                "a transactional output waits for the broker",
            )
            .at(span)
            .suggest(Some("Sync".to_owned())),
        );
    }
}

/// Rules between transactional outputs and the program.
pub(super) fn usage(config: &Config, usage: &Usage, told: &Told, report: &mut Vec<Diagnostic>) {
    duplicates(usage, report);
    for binding in config.bindings.values() {
        let rocketmq = config.rocketmq.binding(&binding.name);
        if !is_transactional(binding, rocketmq) {
            continue;
        }
        if let Some(listener) = &rocketmq.producer.transaction_listener
            && !told.explains(&binding.name, "transaction-listener")
        {
            known(binding, rocketmq, listener, usage, report);
        }
        group(config, binding, usage, report);
    }
}

fn known(
    binding: &BindingConfig,
    rocketmq: &RocketmqBinding,
    listener: &str,
    usage: &Usage,
    report: &mut Vec<Diagnostic>,
) {
    let names: Vec<&str> = usage
        .transaction_listeners
        .iter()
        .map(|declared| declared.name.as_str())
        .collect();
    if names.contains(&listener) {
        return;
    }
    let message = format!(
        "output `{}`: the program has no transaction listener `{listener}`",
        binding.name
    );
    let note = if names.is_empty() {
        format!(
            "it has none: put #[transaction_listener(\"{listener}\")] on an `impl TransactionListener for ..`"
        )
    } else {
        format!(
            "transaction listeners of this program: {}",
            names.join(", ")
        )
    };
    report.push(
        error(
            DiagnosticKind::UnknownName,
            binding,
            "transaction-listener",
            message,
        )
        .at(rocketmq
            .positions
            .of_or_section("producer.transaction-listener"))
        .suggest(nearest(listener, names).map(str::to_owned))
        .note(note),
    );
}

/// Which of two listeners of one name is meant can't be known.
fn duplicates(usage: &Usage, report: &mut Vec<Diagnostic>) {
    let listeners = &usage.transaction_listeners;
    for (at, second) in listeners.iter().enumerate() {
        let Some(first) = listeners[..at]
            .iter()
            .find(|first| first.name == second.name)
        else {
            continue;
        };
        let message = format!("two transaction listeners are called `{}`", second.name);
        report.push(
            Diagnostic::error(DiagnosticKind::Conflict, message)
                .key("transaction-listener")
                .at(Some(&second.span()))
                .related(Some(&first.span()), format!("the other one: {}", first.by)),
        );
    }
}

/// Brokers ask a group, not an output: its outputs have one listener, or none.
fn group(config: &Config, binding: &BindingConfig, usage: &Usage, report: &mut Vec<Diagnostic>) {
    let own = config.rocketmq.binding(&binding.name);
    let Some(group) = &own.producer.group else {
        return;
    };
    for declared in &usage.outputs {
        let Some(other) = config
            .bindings
            .values()
            .find(|other| other.name.eq_ignore_ascii_case(&declared.name))
        else {
            continue;
        };
        let rocketmq = config.rocketmq.binding(&other.name);
        let transactional = is_transactional(other, rocketmq);
        let alike = transactional
            && rocketmq.producer.transaction_listener == own.producer.transaction_listener;
        // Of two transactional outputs the later one by name tells.
        let told_by_other = transactional && other.name > binding.name;
        if rocketmq.producer.group.as_ref() != Some(group) || alike || told_by_other {
            continue;
        }
        let message = format!(
            "outputs `{}` and `{}` share producer group `{group}`, but not the transaction listener that answers for it",
            other.name, binding.name
        );
        let diagnostic = error(DiagnosticKind::Conflict, binding, "group", message)
            .at(own.positions.of("producer.group"))
            .related(rocketmq.positions.of("producer.group"), "the other one");
        if !report.contains(&diagnostic) {
            report.push(diagnostic);
        }
    }
}

/// An input takes no notice of a default that is meant for outputs.
fn is_transactional(binding: &BindingConfig, rocketmq: &RocketmqBinding) -> bool {
    let positions = &rocketmq.positions;
    let own = positions
        .own("producer.producer-type")
        .or(positions.own("producer.transactional"));
    rocketmq.producer.producer_type == ProducerType::Trans
        && (binding.group.is_none() || own.is_some())
}

/// What makes the output transactional.
fn place(rocketmq: &RocketmqBinding) -> Option<&Span> {
    let positions = &rocketmq.positions;
    positions
        .of("producer.producer-type")
        .or(positions.of_or_section("producer.transactional"))
}

fn error(
    kind: DiagnosticKind,
    binding: &BindingConfig,
    key: &str,
    message: impl Into<String>,
) -> Diagnostic {
    Diagnostic::error(kind, message).key(format!("{ROCKETMQ}.{}.producer.{key}", binding.name))
}
