//! One document of a file: its values, when it counts, and what it imports.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    layer::{Collector, Entry, Layer, Raw},
    node::{Key, Node, NodeValue, Scalar},
    placeholder::{self, PlaceholderError},
    profile::ProfileExpression,
    report::{Diagnostic, DiagnosticKind},
    schema::Schema,
    span::{Source, Span},
};

/// One document of one file.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) layer: Layer,
    /// `None`: it always counts.
    pub(crate) condition: Option<ProfileExpression>,
    /// Texts of `spring.config.import` with their places.
    pub(crate) imports: Vec<(String, Span)>,
}

/// Reads one parsed document.
pub(crate) fn of_node(
    schema: &Schema,
    node: &Node,
    report: &mut Vec<Diagnostic>,
    unowned: &mut BTreeSet<String>,
) -> Document {
    let mut collector = Collector::new(schema, report, unowned);
    collector.document(node);
    let layer = collector.finish();
    let condition = condition(&layer, report);
    let imports = layer
        .entry("spring.config.import")
        .map(texts)
        .unwrap_or_default();
    Document {
        layer,
        condition,
        imports,
    }
}

/// The layer of a config tree: key, text and path of each file.
pub(crate) fn of_tree(
    schema: &Schema,
    files: &[(String, String, PathBuf)],
    report: &mut Vec<Diagnostic>,
    unowned: &mut BTreeSet<String>,
) -> Layer {
    let mut collector = Collector::new(schema, report, unowned);
    for (key, text, path) in files {
        // The source has no text: a mounted secret must not show up in a report.
        let span = Span::whole(Source::file(path.display().to_string(), ""));
        let value = Node {
            span: span.clone(),
            value: NodeValue::Scalar(Scalar::text(text)),
        };
        collector.pair(
            &Key {
                text: key.clone(),
                span,
                merged: false,
            },
            &value,
        );
    }
    collector.finish()
}

/// The items of a value with their places; a text is split at commas.
pub(crate) fn texts(entry: &Entry) -> Vec<(String, Span)> {
    match &entry.raw {
        Raw::Scalar(scalar) => {
            let items = scalar
                .text
                .split(',')
                .map(str::trim)
                .filter(|text| !text.is_empty());
            items
                .map(|text| (text.to_owned(), entry.span.clone()))
                .collect()
        }
        Raw::List(items) => items
            .iter()
            .map(|(scalar, span)| (scalar.text.trim().to_owned(), span.clone()))
            .collect(),
    }
}

fn condition(layer: &Layer, report: &mut Vec<Diagnostic>) -> Option<ProfileExpression> {
    let legacy = layer.entry("spring.profiles");
    if let Some(entry) = legacy {
        report.push(
            Diagnostic::warning(
                DiagnosticKind::Deprecated,
                "`spring.profiles` is the old spelling of `spring.config.activate.on-profile`",
            )
            .key(&entry.spelled)
            .at(Some(&entry.key_span))
            .suggest(Some("spring.config.activate.on-profile".to_owned())),
        );
    }
    let entry = layer
        .entry("spring.config.activate.on-profile")
        .or(legacy)?;
    let texts = texts(entry);
    match ProfileExpression::any_of(texts.iter().map(|(text, _)| text.as_str())) {
        Ok(condition) => condition,
        Err(malformed) => {
            let message = format!("not a profile expression: {}", malformed.0);
            report.push(
                Diagnostic::error(DiagnosticKind::WrongValue, message)
                    .key(&entry.spelled)
                    .at(Some(&entry.span)),
            );
            // It counts never: an unreadable condition must not switch anything on.
            Some(ProfileExpression::Any(Vec::new()))
        }
    }
}

/// A document that counts only with a profile can't say which profiles are active.
pub(crate) fn forbid_profile_keys(layer: &Layer, report: &mut Vec<Diagnostic>) {
    for key in [
        "spring.profiles.active",
        "spring.profiles.include",
        "spring.profiles.default",
        "spring.profiles.group",
    ] {
        for entry in layer
            .entries
            .iter()
            .filter(|entry| entry.path.join(".").starts_with(key))
        {
            let message =
                format!("`{key}` cannot stand in a document that counts only with a profile");
            report.push(
                Diagnostic::error(DiagnosticKind::Conflict, message)
                    .key(&entry.spelled)
                    .at(Some(&entry.key_span)),
            );
        }
    }
}

/// One item of `spring.config.import`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: PathBuf,
    /// `optional:` stands before it.
    pub(crate) optional: bool,
    /// `configtree:`: a folder with one file a key.
    pub(crate) tree: bool,
}

impl Import {
    /// Reads `text`, written in the file `from`. Placeholders see the environment only: which files exist must not
    /// depend on their contents.
    pub(crate) fn read(
        text: &str,
        from: &Path,
        env: &[(String, String)],
    ) -> Result<Self, (DiagnosticKind, String)> {
        let lookup = |name: &str| {
            env.iter()
                .find(|(variable, _)| variable == name)
                .map(|(_, value)| value.clone())
        };
        let text = placeholder::resolve(text, &lookup).map_err(|error| {
            let message = match error {
                PlaceholderError::Unresolved { name, .. } => {
                    format!("`${{{name}}}` is not in the environment; imports see nothing else")
                }
                _ => format!("`{text}` cannot be resolved"),
            };
            (DiagnosticKind::Placeholder, message)
        })?;
        let (optional, location) = match text.trim().strip_prefix("optional:") {
            Some(location) => (true, location),
            None => (false, text.trim()),
        };
        let relative = |path: &str| from.parent().unwrap_or(Path::new("")).join(path);
        if let Some(folder) = location.strip_prefix("configtree:") {
            return Ok(Self {
                path: relative(folder),
                optional,
                tree: true,
            });
        }
        let name = location.strip_prefix("file:").unwrap_or(location);
        match name.split_once(':').filter(|(scheme, _)| scheme.len() > 1) {
            Some((scheme, _)) => {
                let message =
                    format!("cannot import from `{scheme}:`; a file or `configtree:` is supported");
                Err((DiagnosticKind::Unsupported, message))
            }
            None => Ok(Self {
                path: relative(name),
                optional,
                tree: false,
            }),
        }
    }
}
