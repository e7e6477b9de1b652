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

/// One key that names code.
struct Kind {
    /// Relative to the binding; its last part names the code.
    key: &'static str,
    what: &'static str,
    /// What puts such code into the program.
    attribute: &'static str,
    declared: fn(&Usage) -> &[DeclaredBinding],
    asked: fn(&BindingConfig) -> Option<&str>,
}

const KINDS: &[Kind] = &[
    Kind {
        key: "producer.partition-key-extractor-name",
        what: "partition key extractor",
        attribute: "partition_key_extractor",
        declared: |usage| &usage.key_extractors,
        asked: |binding| binding.producer.partition_key_extractor.as_deref(),
    },
    Kind {
        key: "producer.partition-selector-name",
        what: "partition selector",
        attribute: "partition_selector",
        declared: |usage| &usage.partition_selectors,
        asked: |binding| binding.producer.partition_selector.as_deref(),
    },
];

pub(super) fn usage(config: &Config, usage: &Usage, told: &Told, report: &mut Vec<Diagnostic>) {
    for kind in KINDS {
        duplicates(kind, usage, report);
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
    let Kind {
        what, attribute, ..
    } = kind;
    let note = if names.is_empty() {
        format!("it has none: put #[{attribute}(\"{name}\")] on a function")
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
