//! Code that configuration refers to by name: the program must have it, and only once.
//!
//! ```text
//! Config (partition-key-extractor-name, …) ─┐
//! Usage (what attributes registered) ───────┴─▶ unknown name, with the nearest one · name taken twice ──▶ Diagnostic …
//! ```

use super::{
    check::{DeclaredBinding, Usage},
    relaxed::nearest,
    report::{Diagnostic, DiagnosticKind},
    told::Told,
    typed::{BindingConfig, Config},
};
use crate::error_handler::is_of;

/// One key that names code.
struct Kind {
    /// Relative to the binding; its last part names the code.
    key: &'static str,
    what: &'static str,
    /// What puts such code of a name into the program.
    attribute: fn(&str) -> String,
    /// Whether a name stands for one piece of code only.
    unique: bool,
    declared: fn(&Usage) -> &[DeclaredBinding],
    asked: fn(&BindingConfig) -> Option<&str>,
}

const KINDS: &[Kind] = &[
    Kind {
        key: "error-handler-definition",
        what: "error handler",
        attribute: |name| format!("#[error_handler(name = \"{name}\")]"),
        unique: false,
        declared: |usage| &usage.error_handler_names,
        asked: |binding| binding.error_handler.as_deref(),
    },
    Kind {
        key: "producer.partition-key-extractor-name",
        what: "partition key extractor",
        attribute: |name| format!("#[partition_key_extractor(\"{name}\")]"),
        unique: true,
        declared: |usage| &usage.key_extractors,
        asked: |binding| binding.producer.partition_key_extractor.as_deref(),
    },
    Kind {
        key: "producer.partition-selector-name",
        what: "partition selector",
        attribute: |name| format!("#[partition_selector(\"{name}\")]"),
        unique: true,
        declared: |usage| &usage.partition_selectors,
        asked: |binding| binding.producer.partition_selector.as_deref(),
    },
];

pub(super) fn usage(config: &Config, usage: &Usage, told: &Told, report: &mut Vec<Diagnostic>) {
    for kind in KINDS {
        if kind.unique {
            duplicates(kind, usage, report);
        }
        for binding in config.bindings.values() {
            if let Some(name) = (kind.asked)(binding)
                && !told.explains(&binding.name, kind.last_key())
            {
                known(kind, binding, name, usage, report);
            }
        }
    }
}

impl Kind {
    fn last_key(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }
}

fn known(
    kind: &Kind,
    binding: &BindingConfig,
    name: &str,
    usage: &Usage,
    report: &mut Vec<Diagnostic>,
) {
    let declared = (kind.declared)(usage);
    let names: Vec<&str> = declared.iter().map(|one| one.name.as_str()).collect();
    if names.contains(&name) {
        return;
    }
    let what = kind.what;
    let note = if names.is_empty() {
        format!("it has none: put {} on a function", (kind.attribute)(name))
    } else {
        format!("{what}s of this program: {}", names.join(", "))
    };
    let message = format!("the program has no {what} `{name}`");
    let diagnostic = Diagnostic::error(DiagnosticKind::UnknownName, message)
        .key(kind.last_key())
        .at(binding.positions.of_or_section(kind.key))
        .suggest(nearest(name, names).map(str::to_owned))
        .note(note);
    // A default is seen again with every binding and told about once.
    if !report.contains(&diagnostic) {
        report.push(diagnostic);
    }
}

/// Error handlers that are for no binding there is: they would never be called.
pub(super) fn error_handlers(config: &Config, usage: &Usage, report: &mut Vec<Diagnostic>) {
    for declared in &usage.error_handlers {
        if config
            .bindings
            .values()
            .any(|binding| is_of(&declared.name, binding))
        {
            continue;
        }
        let known = config.bindings.keys().map(String::as_str);
        let message = format!(
            "{} is for `{}`, which is no binding",
            declared.by, declared.name
        );
        report.push(
            Diagnostic::error(DiagnosticKind::UnknownName, message)
                .key("error-handler")
                .at(Some(&declared.span()))
                .suggest(nearest(&declared.name, known).map(str::to_owned))
                .note("name a binding, or an error channel: `<destination>.<group>.errors`, `<destination>.errors`"),
        );
    }
}

/// Which of two of one name is meant can't be known.
fn duplicates(kind: &Kind, usage: &Usage, report: &mut Vec<Diagnostic>) {
    let declared = (kind.declared)(usage);
    for (at, second) in declared.iter().enumerate() {
        let Some(first) = declared[..at].iter().find(|one| one.name == second.name) else {
            continue;
        };
        let message = format!("two {}s are called `{}`", kind.what, second.name);
        report.push(
            Diagnostic::error(DiagnosticKind::Conflict, message)
                .key(kind.last_key())
                .at(Some(&second.span()))
                .related(Some(&first.span()), format!("the other one: {}", first.by)),
        );
    }
}
