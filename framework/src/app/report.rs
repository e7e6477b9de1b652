//! What is said when an application has started: what it is bound to, and how long it took.

use std::time::Duration;

use super::handle::Running;
use super::program::Program;
use crate::binder::{Audience, Order};
use crate::binding::InputBinding;
use crate::config::Config;

/// The lines of the report.
#[derive(Debug)]
pub(super) struct StartReport {
    lines: Vec<String>,
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
                output.parts.traits()
            )
        }));
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
        Self { lines, summary }
    }

    pub(super) fn print(&self, took: Duration) {
        self.lines.iter().for_each(|line| tracing::info!("{line}"));
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
