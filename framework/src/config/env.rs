//! Environment variables and the command line as layers.
//!
//! ```text
//! SPRING_CLOUD_STREAM_BINDINGS_ORDERSIN_GROUP ──tokens along the Schema, known names──▶ spring.cloud.stream.bindings.orders-in.group
//! --spring.cloud.stream.bindings.orders-in.group=g ──the same walk as a file's key──▶ the same
//! ```
//! A variable's name has lost dashes and capitals, so it is matched against what exists: the schema's names, and for
//! bindings the names of files and program. The longest match wins; no match under a prefix that is ours is an error.

use std::collections::BTreeSet;

use super::{
    layer::{Collector, Entry, Layer, Raw},
    node::{Key, Node, NodeValue, Scalar},
    relaxed::{nearest, squash},
    report::{Diagnostic, DiagnosticKind},
    schema::{Kind, Place, RowId, Schema},
    span::{Source, SourceKind, Span},
};

/// Variables that begin like ours and are read by programs directly.
const PROCESS_VARIABLES: [&str; 2] = ["BINDERY_NAMESRV", "BINDERY_ORACLE"];
/// The variable that holds a whole document as JSON.
pub(crate) const APPLICATION_JSON: &str = "SPRING_APPLICATION_JSON";

/// Names the user chose, by the path of the section they stand in.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownNames {
    names: BTreeSet<(Vec<String>, String)>,
}

impl KnownNames {
    pub(crate) fn add(&mut self, section: &[String], name: &str) {
        self.names.insert((section.to_vec(), name.to_owned()));
    }

    pub(crate) fn add_layer(&mut self, layer: &Layer) {
        for (path, _) in &layer.names {
            if let Some((name, section)) = path.split_last() {
                self.add(section, name);
            }
        }
    }

    /// Names at `section`. The binder's own `bindings` speak of the same bindings as the stream's.
    pub(crate) fn at<'a>(&'a self, section: &'a [String]) -> impl Iterator<Item = &'a str> {
        let is_bindings = section.last().is_some_and(|last| last == "bindings");
        self.names
            .iter()
            .filter(move |(at, _)| {
                at == section || (is_bindings && at.last().is_some_and(|last| last == "bindings"))
            })
            .map(|(_, name)| name.as_str())
    }
}

/// The layer of the environment.
pub(crate) fn environment(
    schema: &Schema,
    variables: &[(String, String)],
    known: &KnownNames,
    report: &mut Vec<Diagnostic>,
) -> Layer {
    let mut unknown = Vec::new();
    let mut unowned = BTreeSet::new();
    let mut collector = Collector::new(schema, report, &mut unowned);
    for (name, value) in variables
        .iter()
        .filter(|(name, _)| name != APPLICATION_JSON)
    {
        let source = Source::named(SourceKind::Environment, name);
        let span = Span::whole(source);
        if name.contains('.') {
            // A shell can't set it, a container can: it is a key as it stands.
            collector.pair(
                &Key {
                    text: name.clone(),
                    span: span.clone(),
                    merged: false,
                },
                &scalar(value, &span),
            );
            continue;
        }
        let tokens: Vec<String> = name
            .split('_')
            .filter(|token| !token.is_empty())
            .map(str::to_lowercase)
            .collect();
        let mut search = Search {
            schema,
            tokens: &tokens,
            known,
            best: None,
            deepest: (0, Vec::new(), schema.root()),
        };
        search.from(schema.root(), 0, &mut Vec::new(), &mut Vec::new());
        match search.best {
            Some(found) => {
                let path = schema.canonical(found.row, &found.captures, &found.rest);
                let raw = Raw::Scalar(Scalar::text(value));
                let entry = Entry {
                    path,
                    row: Some(found.row),
                    spelled: name.clone(),
                    key_span: span.clone(),
                    span,
                    raw,
                };
                collector.put(entry, found.index);
            }
            None => unknown.extend(search.unmatched(name, &span)),
        }
    }
    let layer = collector.finish();
    report.append(&mut unknown);
    layer
}

/// `SPRING_APPLICATION_JSON` as a document.
pub(crate) fn application_json(
    variables: &[(String, String)],
    report: &mut Vec<Diagnostic>,
) -> Option<Node> {
    let (name, text) = variables
        .iter()
        .find(|(name, _)| name == APPLICATION_JSON)?;
    let span = Span::whole(Source::named(SourceKind::Environment, name));
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(object)) => {
            Some(json_node(&serde_json::Value::Object(object), &span))
        }
        Ok(_) => {
            let message = format!("{APPLICATION_JSON} must hold an object");
            report.push(Diagnostic::error(DiagnosticKind::Syntax, message).at(Some(&span)));
            None
        }
        Err(error) => {
            let message = format!("{APPLICATION_JSON} is not JSON: {error}");
            report.push(Diagnostic::error(DiagnosticKind::Syntax, message).at(Some(&span)));
            None
        }
    }
}

fn json_node(value: &serde_json::Value, span: &Span) -> Node {
    let value = match value {
        serde_json::Value::Null => NodeValue::Scalar(Scalar {
            text: String::new(),
            plain: true,
            null: true,
        }),
        serde_json::Value::String(text) => NodeValue::Scalar(Scalar::text(text)),
        serde_json::Value::Array(items) => {
            NodeValue::Sequence(items.iter().map(|item| json_node(item, span)).collect())
        }
        serde_json::Value::Object(object) => NodeValue::Mapping(
            object
                .iter()
                .map(|(key, value)| {
                    (
                        Key {
                            text: key.clone(),
                            span: span.clone(),
                            merged: false,
                        },
                        json_node(value, span),
                    )
                })
                .collect(),
        ),
        other => NodeValue::Scalar(Scalar::text(other.to_string())),
    };
    Node {
        span: span.clone(),
        value,
    }
}

/// The layer of `--key=value` arguments. Words without `--` are the program's own, and so are names without a dot,
/// which are kept for placeholders only.
pub(crate) fn command_line(
    schema: &Schema,
    arguments: &[String],
    report: &mut Vec<Diagnostic>,
) -> Layer {
    let mut unowned = BTreeSet::new();
    let mut collector = Collector::new(schema, report, &mut unowned);
    for argument in arguments {
        let Some(text) = argument.strip_prefix("--") else {
            continue;
        };
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        if key.is_empty() || is_flag(key) {
            continue;
        }
        let span = Span::whole(Source::named(SourceKind::CommandLine, format!("--{key}")));
        if key.contains('.') {
            collector.pair(
                &Key {
                    text: key.to_owned(),
                    span: span.clone(),
                    merged: false,
                },
                &scalar(value, &span),
            );
        } else {
            collector.foreign(key, key, value, &span);
        }
    }
    collector.finish()
}

/// The layer of values set in code.
pub(crate) fn code(
    schema: &Schema,
    values: &[(String, String)],
    report: &mut Vec<Diagnostic>,
) -> Layer {
    let mut unowned = BTreeSet::new();
    let mut collector = Collector::new(schema, report, &mut unowned);
    for (key, value) in values {
        let span = Span::whole(Source::named(SourceKind::Code, key));
        collector.pair(
            &Key {
                text: key.clone(),
                span: span.clone(),
                merged: false,
            },
            &scalar(value, &span),
        );
    }
    collector.finish()
}

fn scalar(text: &str, span: &Span) -> Node {
    Node {
        span: span.clone(),
        value: NodeValue::Scalar(Scalar::text(text)),
    }
}

/// Arguments that ask the program for something instead of configuring it.
pub(crate) fn is_flag(key: &str) -> bool {
    let flags = ["config", "check", "schema", "asyncapi", "explain", "json"];
    key.strip_prefix("bindery.")
        .is_some_and(|flag| flags.contains(&flag))
}

struct Found {
    row: RowId,
    captures: Vec<String>,
    rest: String,
    index: Option<usize>,
}

/// Follows the tokens of one variable through the schema.
struct Search<'a> {
    schema: &'a Schema,
    tokens: &'a [String],
    known: &'a KnownNames,
    best: Option<Found>,
    /// How far any path got, for the message: tokens used, canonical path, place.
    deepest: (usize, Vec<String>, &'a Place),
}

impl<'a> Search<'a> {
    fn from(
        &mut self,
        place: &'a Place,
        at: usize,
        path: &mut Vec<String>,
        captures: &mut Vec<String>,
    ) {
        if at > self.deepest.0 {
            self.deepest = (at, path.clone(), place);
        }
        if let Some(row) = place.leaf() {
            self.leaf(row, at, captures);
        }
        // Longer matches first, so that the first complete one is the longest.
        for end in (at + 1..=self.tokens.len()).rev() {
            if self.best.is_some() {
                return;
            }
            let word = self.tokens[at..end].concat();
            if let Some((_, kebab, next)) =
                place.children().find(|(squashed, ..)| *squashed == word)
            {
                path.push(kebab.to_owned());
                self.from(next, end, path, captures);
                path.pop();
            }
            if let Some(next) = place.any() {
                self.named(next, &word, end, path, captures);
            }
        }
        if let (Some(row), None) = (place.rest(), &self.best)
            && at < self.tokens.len()
        {
            let rest = self.tokens[at..].join(".");
            self.best = Some(Found {
                row,
                captures: captures.clone(),
                rest,
                index: None,
            });
        }
    }

    fn leaf(&mut self, row: RowId, at: usize, captures: &[String]) {
        let index = match &self.tokens[at..] {
            [] => None,
            [last] if matches!(self.schema.row(row).kind, Kind::List { .. }) => {
                match last.parse() {
                    Ok(index) => Some(index),
                    Err(_) => return,
                }
            }
            _ => return,
        };
        if self.best.is_none() {
            self.best = Some(Found {
                row,
                captures: captures.to_vec(),
                rest: String::new(),
                index,
            });
        }
    }

    fn named(
        &mut self,
        next: &'a Place,
        word: &str,
        end: usize,
        path: &mut Vec<String>,
        captures: &mut Vec<String>,
    ) {
        let names: Vec<String> = self
            .known
            .at(path)
            .filter(|name| squash(name) == word)
            .map(str::to_owned)
            .collect();
        for name in names {
            path.push(name.clone());
            captures.push(name);
            self.from(next, end, path, captures);
            captures.pop();
            path.pop();
        }
    }

    /// What to say about a variable that matches nothing; nothing if it isn't ours.
    fn unmatched(&self, name: &str, span: &Span) -> Option<Diagnostic> {
        let ours = self
            .tokens
            .starts_with(&["spring", "cloud", "stream"].map(str::to_owned))
            || self.tokens.first().is_some_and(|first| first == "bindery");
        if !ours || PROCESS_VARIABLES.contains(&name) {
            return None;
        }
        let (used, path, place) = &self.deepest;
        let error = |message: String| {
            Diagnostic::error(DiagnosticKind::UnknownKey, message)
                .key(name)
                .at(Some(span))
        };
        if place.any().is_some() {
            let what = if path.last().is_some_and(|last| last == "bindings") {
                "binding"
            } else {
                "name"
            };
            let known: Vec<&str> = self.known.at(path).collect();
            let near = self.near(*used, &known);
            let message = match &near {
                Some(near) => format!("{name} does not match any {what}; did you mean {near}?"),
                None => format!("{name} does not match any {what}"),
            };
            let names = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            return Some(
                error(message)
                    .suggest(near)
                    .label(format!("known {what}s: {names}")),
            );
        }
        let names: Vec<&str> = place.names().collect();
        let near = self
            .near(*used, &names)
            .map(|near| format!("{}.{near}", path.join(".")));
        Some(error(format!("{name} does not match any key")).suggest(near))
    }

    fn near(&self, used: usize, names: &[&str]) -> Option<String> {
        let ends = used + 1..=self.tokens.len();
        ends.filter_map(|end| nearest(&self.tokens[used..end].concat(), names.iter().copied()))
            .next()
            .map(str::to_owned)
    }
}
