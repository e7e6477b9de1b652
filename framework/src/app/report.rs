//! What is said when an application has started: what it is bound to, and how long it took.

use std::time::Duration;

use super::handle::Running;
use super::program::Program;
use crate::binder::{Audience, Order};
use crate::binding::InputBinding;
use crate::config::Config;

/// Executions of one poisonous message above which it is worth a warning.
const MANY_EXECUTIONS: u32 = 20;

/// Redeliveries of a group that sets no limit (`DEFAULT_MAX_RETRY_TIMES` of Apache RocketMQ).
const BROKER_REDELIVERIES: u32 = 16;

/// The lines of the report.
#[derive(Debug)]
pub(super) struct StartReport {
    lines: Vec<String>,
    warnings: Vec<String>,
    summary: String,
}

impl StartReport {
    pub(super) fn new(config: &Config, program: &Program, running: &Running) -> Self {
        let mut lines: Vec<String> = running
            .bindings
            .inputs()
            .map(|input| input_line(config, program, input))
            .collect();
        lines.extend(running.bindings.outputs().map(|output| {
            format!(
                "output {} -> {}{}",
                output.name(),
                output.parts.destination,
                output.parts.partitioned()
            )
        }));
        let warnings = running
            .bindings
            .inputs()
            .filter_map(|input| many_executions(config, input))
            .collect();
        let web = running
            .web
            .as_ref()
            .map(|web| format!(", web on http://{}", web.address()));
        let summary = format!(
            "{}: {} handlers, {} inputs, {} outputs{}",
            config.application_name,
            program.handlers.len(),
            running.bindings.inputs().count(),
            running.bindings.outputs().count(),
            web.unwrap_or_default(),
        );
        Self {
            lines,
            warnings,
            summary,
        }
    }

    pub(super) fn print(&self, took: Duration) {
        self.lines.iter().for_each(|line| tracing::info!("{line}"));
        self.warnings
            .iter()
            .for_each(|warning| tracing::warn!("{warning}"));
        tracing::info!("{}, started in {} ms", self.summary, took.as_millis());
    }
}

fn input_line(config: &Config, program: &Program, input: &InputBinding) -> String {
    let spec = &input.spec;
    let handlers: Vec<&str> = program
        .listeners(&spec.binding)
        .map(crate::registry::Handler::name)
        .collect();
    let how = match (spec.order, spec.audience) {
        (Order::PerQueue, _) => "ordered",
        (Order::Concurrent, Audience::Shared) => "concurrent",
        (Order::Concurrent, Audience::Everyone) => "broadcast",
    };
    let attempts = config
        .bindings
        .get(&spec.binding)
        .map_or(1, |binding| binding.consumer.max_attempts);
    format!(
        "input {} <- {} as {} ({how}, {} at a time, {attempts} attempts a delivery) -> {}",
        spec.binding,
        spec.destinations.join(", "),
        spec.group,
        spec.concurrency,
        if handlers.is_empty() {
            "no handler".to_owned()
        } else {
            handlers.join(", ")
        },
    )
}

/// Attempts in the process and redeliveries by the broker multiply, which surprises.
fn many_executions(config: &Config, input: &InputBinding) -> Option<String> {
    let spec = &input.spec;
    let attempts = config.bindings.get(&spec.binding)?.consumer.max_attempts;
    if spec.order == Order::PerQueue && spec.redelivery.limit.is_none() {
        return None;
    }
    let redeliveries = spec.redelivery.limit.unwrap_or(BROKER_REDELIVERIES);
    let executions = attempts.saturating_mul(redeliveries.saturating_add(1));
    (executions > MANY_EXECUTIONS).then(|| {
        format!(
            "input {}: a message that always fails is tried {executions} times ({attempts} attempts x {redeliveries} redeliveries + 1); \
             set consumer.max-attempts or max-reconsume-times",
            spec.binding
        )
    })
}
