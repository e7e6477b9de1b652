//! Checks that need the program: which handlers and source structs exist, and which bindings they name.
//!
//! ```text
//! Config ─┐
//! Usage  ─┴─▶ bindings nothing uses · names nothing configures · keys on the wrong side ──▶ Diagnostic …
//! ```

use std::sync::Arc;

use super::{
    Loaded,
    build::Named,
    extensions,
    relaxed::nearest,
    report::{Diagnostic, DiagnosticKind},
    span::{Source, Span},
    told::Told,
    transactions,
    typed::{BindingConfig, Config},
};

/// Where the program names a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredBinding {
    /// The binding's name.
    pub name: String,
    /// What names it, for messages: "handler `on_order`", "source struct `MySource`, field `order`".
    pub by: String,
    /// Source file of the program.
    pub file: String,
    /// Line in that file, from 1.
    pub line: u32,
}

impl DeclaredBinding {
    pub(super) fn span(&self) -> Span {
        Span::new(Arc::clone(&Source::file(&self.file, "")), self.line, 1, 1)
    }
}

/// What the program declares.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Inputs: listeners and input fields of source structs.
    pub inputs: Vec<DeclaredBinding>,
    /// Outputs: `send_to` targets, output fields of source structs.
    pub outputs: Vec<DeclaredBinding>,
    /// Transaction listeners, by the name that `transaction-listener` uses.
    pub transaction_listeners: Vec<DeclaredBinding>,
    /// Error handlers, by the binding or error channel they are for.
    pub error_handlers: Vec<DeclaredBinding>,
    /// Error handlers, by the name that `error-handler-definition` uses.
    pub error_handler_names: Vec<DeclaredBinding>,
    /// Partition key extractors, by the name that `partition-key-extractor-name` uses.
    pub key_extractors: Vec<DeclaredBinding>,
    /// Partition selectors, by the name that `partition-selector-name` uses.
    pub partition_selectors: Vec<DeclaredBinding>,
}

impl Usage {
    fn all(&self) -> impl Iterator<Item = &DeclaredBinding> {
        self.inputs.iter().chain(&self.outputs)
    }

    /// The names, each once.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.all().map(|declared| declared.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    pub(crate) fn declares(&self, name: &str) -> bool {
        self.all().any(|declared| same(&declared.name, name))
    }
}

/// Compares the configuration with the program: bindings nothing uses, names nothing configures, rules between keys that
/// depend on the direction of a binding.
///
/// [`Config::load_for`] does this by itself and reports what it finds together with everything else; this is for a
/// configuration that was loaded before the program was known.
#[must_use]
pub fn check_usage(loaded: &Loaded, usage: &Usage) -> Vec<Diagnostic> {
    usage_report(&loaded.config, &loaded.names, usage, &Told::default())
}

const BINDINGS: &str = "spring.cloud.stream.bindings";

/// Adds the bindings that the program declares and no source mentions, with their names as topics, if that is wanted.
pub(crate) fn add_declared(config: &mut Config, usage: &Usage) {
    if !config.bindery.destination_from_name {
        return;
    }
    for declared in usage.all() {
        if config
            .bindings
            .keys()
            .any(|known| same(known, &declared.name))
        {
            continue;
        }
        let mut binding = config.binding_defaults.clone();
        binding.name.clone_from(&declared.name);
        binding.destination.clone_from(&declared.name);
        binding.positions.inherit();
        binding.positions.set_section(declared.span());
        config.bindings.insert(declared.name.clone(), binding);
    }
}

pub(crate) fn usage_report(
    config: &Config,
    names: &[Named],
    usage: &Usage,
    told: &Told,
) -> Vec<Diagnostic> {
    let mut report = Vec::new();
    let bindings: Vec<&Named> = names
        .iter()
        .filter(|named| named.section == BINDINGS)
        .collect();
    let mistyped = unused(config, &bindings, usage, &mut report);
    if !told.explains_bindings() {
        undeclared(config, &bindings, usage, &mistyped, &mut report);
    }
    for binding in config.bindings.values() {
        let is_input = usage
            .inputs
            .iter()
            .any(|declared| same(&declared.name, &binding.name));
        let is_output = usage
            .outputs
            .iter()
            .any(|declared| same(&declared.name, &binding.name))
            || config.output_bindings.contains(&binding.name);
        let needs_group = is_input && binding.group.is_none();
        if needs_group && !told.explains(&binding.name, "group") {
            report.push(no_group(binding, usage));
        }
        sides(binding, is_input, is_output, &mut report);
    }
    transactions::usage(config, usage, told, &mut report);
    extensions::usage(config, usage, told, &mut report);
    if !told.explains_bindings() {
        extensions::error_handlers(config, usage, &mut report);
    }
    report
}

/// Spring looks binding names up without regard to case.
fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Bindings that nothing uses. Answers which names of the program they probably meant, so that one mistake is told once.
fn unused(
    config: &Config,
    named: &[&Named],
    usage: &Usage,
    report: &mut Vec<Diagnostic>,
) -> Vec<String> {
    let mut meant = Vec::new();
    let declared = usage.names();
    for named in named {
        let name = &named.name;
        if usage.declares(name)
            || config
                .output_bindings
                .iter()
                .any(|output| same(output, name))
        {
            continue;
        }
        let near = nearest(name, declared.iter().copied());
        // A name that stands in the file with its right spelling too is a slip in one document only. What is like nothing
        // here and belongs to a profile that is not active may have its user there.
        if (config.bindery.allow_unused || !named.active) && near.is_none() {
            continue;
        }
        let what = direction(config, name);
        let message = format!(
            "{what} `{name}` is configured but no handler, source struct or bridge uses it"
        );
        let mut diagnostic = Diagnostic::error(DiagnosticKind::UnusedBinding, message)
            .key(format!("{BINDINGS}.{name}"))
            .at(Some(&named.span))
            .suggest(near.map(str::to_owned));
        if let Some(near) = near {
            meant.push(near.to_owned());
            for declared in usage.all().filter(|declared| declared.name == near).take(1) {
                diagnostic = diagnostic.related(
                    Some(&declared.span()),
                    format!("`{near}` is used by {}", declared.by),
                );
            }
        }
        report.push(diagnostic.note(declared_names(usage)));
    }
    meant
}

fn direction(config: &Config, name: &str) -> &'static str {
    match config.bindings.get(name) {
        Some(binding) if binding.group.is_some() => "input",
        _ => "binding",
    }
}

fn declared_names(usage: &Usage) -> String {
    let list = |declared: &[DeclaredBinding]| {
        let mut names: Vec<&str> = declared
            .iter()
            .map(|declared| declared.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    format!(
        "declared inputs: {}; declared outputs: {}",
        list(&usage.inputs),
        list(&usage.outputs)
    )
}

/// Names of the program that the configuration doesn't have.
fn undeclared(
    config: &Config,
    named: &[&Named],
    usage: &Usage,
    mistyped: &[String],
    report: &mut Vec<Diagnostic>,
) {
    if config.bindery.destination_from_name {
        return;
    }
    let mut told = Vec::new();
    for declared in usage.all() {
        let name = declared.name.as_str();
        let active = named
            .iter()
            .any(|named| named.active && same(&named.name, name));
        if active || mistyped.iter().any(|meant| meant == name) || told.contains(&name) {
            continue;
        }
        told.push(name);
        let known = named
            .iter()
            .filter(|named| !usage.declares(&named.name))
            .map(|named| named.name.as_str());
        let side = if usage.inputs.iter().any(|input| input.name == name) {
            "input"
        } else {
            "output"
        };
        let message = format!("{side} `{name}` of {} is not configured", declared.by);
        let mut diagnostic = Diagnostic::error(DiagnosticKind::Missing, message)
            .key(format!("{BINDINGS}.{name}"))
            .at(Some(&declared.span()))
            .suggest(nearest(name, known).map(str::to_owned))
            .note(format!(
                "give it a destination: {BINDINGS}.{name}.destination"
            ));
        if let Some(elsewhere) = named.iter().find(|named| same(&named.name, name)) {
            diagnostic = diagnostic.related(
                Some(&elsewhere.span),
                "it stands in a document whose profile is not active",
            );
        }
        report.push(diagnostic);
    }
}

/// Keys that belong to the other side of a binding.
fn sides(binding: &BindingConfig, is_input: bool, is_output: bool, report: &mut Vec<Diagnostic>) {
    if is_output && !is_input {
        only_output(binding, report);
    }
    for (side, used, other) in [
        ("consumer", is_input, "output"),
        ("producer", is_output, "input"),
    ] {
        if used || !(is_input || is_output) {
            continue;
        }
        if let Some((key, span)) = binding.positions.first_own(&format!("{side}.")) {
            let message = format!(
                "`{}` is an {other} only; `{key}` has no effect",
                binding.name
            );
            report.push(wrong_side(binding, key, message, Some(span)));
        }
    }
}

fn wrong_side(
    binding: &BindingConfig,
    key: &str,
    message: String,
    span: Option<&Span>,
) -> Diagnostic {
    Diagnostic::error(DiagnosticKind::Conflict, message)
        .key(format!("{BINDINGS}.{}.{key}", binding.name))
        .at(span)
}

fn no_group(binding: &BindingConfig, usage: &Usage) -> Diagnostic {
    let name = &binding.name;
    let diagnostic = Diagnostic::error(
        DiagnosticKind::Missing,
        format!("input `{name}` has no group"),
    )
    .key(format!("{BINDINGS}.{name}.group"))
    .at(binding.positions.section())
    .label(format!(
        "add `group: {name}-group`, say: instances with one group share the messages"
    ));
    match usage
        .inputs
        .iter()
        .find(|declared| same(&declared.name, name))
    {
        Some(declared) => {
            diagnostic.related(Some(&declared.span()), format!("used by {}", declared.by))
        }
        None => diagnostic,
    }
}

fn only_output(binding: &BindingConfig, report: &mut Vec<Diagnostic>) {
    let (name, positions) = (&binding.name, &binding.positions);
    if let Some(span) = positions.own("group") {
        let right = format!("rocketmq.bindings.{name}.producer.group");
        let message = format!("`{name}` is an output and has no consumer group");
        report.push(
            wrong_side(binding, "group", message, Some(span))
                .suggest(Some(format!("spring.cloud.stream.{right}")))
                .label(format!("the producer group is {right}")),
        );
    }
    if binding.destinations().count() > 1 {
        let message = format!("output `{name}` has several destinations; a message goes to one");
        report.push(wrong_side(
            binding,
            "destination",
            message,
            positions.of("destination"),
        ));
    }
}
