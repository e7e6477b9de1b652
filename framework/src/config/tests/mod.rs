//! Tests of the whole way from text to report.
#![allow(clippy::unwrap_used, reason = "tests")]

mod mistakes;
mod original;
mod partitions;
mod rules;
mod sources;
mod transactions;
mod values;

use super::{
    Config, ConfigErrors, ConsumeFrom, DeclaredBinding, Diagnostic, LoadOptions, Loaded, SendType,
    Usage, consume_timestamp,
};

/// A program with inputs and outputs of these names.
fn program(inputs: &[&str], outputs: &[&str]) -> Usage {
    let declared = |names: &[&str]| {
        let one = |(name, line): (&&str, u32)| DeclaredBinding {
            name: (*name).to_owned(),
            by: format!("handler `on_{name}`"),
            file: "src/main.rs".to_owned(),
            line,
        };
        names.iter().zip(10..).map(one).collect()
    };
    Usage {
        inputs: declared(inputs),
        outputs: declared(outputs),
        ..Usage::default()
    }
}

fn load(yaml: &str) -> Result<Loaded, ConfigErrors> {
    Config::load(LoadOptions::from_text(yaml))
}

fn loaded(yaml: &str) -> Loaded {
    load(yaml).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What is said about `yaml`, errors or warnings: `severity kind line:column message [-> suggestion]`.
fn told(options: LoadOptions, usage: Option<&Usage>) -> Vec<String> {
    let result = match usage {
        Some(usage) => Config::load_for(options, usage),
        None => Config::load(options),
    };
    let report = match &result {
        Ok(loaded) => &loaded.warnings[..],
        Err(errors) => errors.diagnostics(),
    };
    report.iter().map(line).collect()
}

fn line(diagnostic: &Diagnostic) -> String {
    let place = diagnostic.span.as_ref().map(|span| match span.line() {
        0 => format!("{span} "),
        line => format!(
            "{}:{line}:{} ",
            span.source().name().trim_start_matches("application.yaml"),
            span.column()
        )
        .trim_start_matches(':')
        .to_owned(),
    });
    let suggestion = diagnostic
        .suggestion
        .as_ref()
        .map(|suggestion| format!(" -> {suggestion}"));
    format!(
        "{} {} {}{}{}",
        diagnostic.severity.as_str(),
        diagnostic.kind.as_str(),
        place.unwrap_or_default(),
        diagnostic.message,
        suggestion.unwrap_or_default()
    )
}

fn told_of(yaml: &str) -> Vec<String> {
    told(LoadOptions::from_text(yaml), None)
}
