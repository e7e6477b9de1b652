//! Environment variables as a layer.
//!
//! ```text
//! SPRING_CLOUD_STREAM_BINDINGS_ORDERSIN_GROUP ──tokens along the Schema, known names──▶ spring.cloud.stream.bindings.orders-in.group
//! ```
//! A variable's name has lost dashes and capitals, so it is matched against what exists: the schema's names, and for
//! bindings the names of files and program. The longest match wins; no match under a prefix that is ours is an error.

use std::collections::BTreeSet;

use super::{
    layer::{Collector, Entry, Layer, Raw},
    node::{Key, Node, Scalar},
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

    /// Names at `section`, each once. The binder's own `bindings` speak of the same bindings as the stream's.
    pub(crate) fn at(&self, section: &[String]) -> BTreeSet<&str> {
        let is_bindings = |at: &[String]| at.last().is_some_and(|last| last == "bindings");
        let of_section = |at: &[String]| at == section || (is_bindings(section) && is_bindings(at));
        self.names
            .iter()
            .filter(|(at, _)| of_section(at))
            .map(|(_, name)| name.as_str())
            .collect()
    }
}

/// The layer of the environment.
pub(crate) fn environment(
    schema: &Schema,
    variables: &[(String, String)],
    known: &KnownNames,
    report: &mut Vec<Diagnostic>,
) -> Layer {
    let mut unmatched = Vec::new();
    let mut unowned = BTreeSet::new();
    let mut collector = Collector::new(schema, report, &mut unowned);
    for (name, value) in variables
        .iter()
        .filter(|(name, _)| name != APPLICATION_JSON)
    {
        let span = Span::whole(Source::named(SourceKind::Environment, name));
        if name.contains('.') {
            // A shell can't set it, a container can: it is a key as it stands.
            let key = Key {
                text: name.clone(),
                span: span.clone(),
                merged: false,
            };
            collector.pair(&key, &Node::text(value, &span));
            continue;
        }
        let tokens: Vec<String> = name
            .split('_')
            .filter(|token| !token.is_empty())
            .map(str::to_lowercase)
            .collect();
        let mut search = Search::new(schema, &tokens, known);
        match search.run() {
            Some(found) => {
                let index = found.index;
                collector.put(found.entry(schema, name, value, &span), index);
            }
            None => unmatched.extend(search.unmatched(name, &span)),
        }
    }
    let layer = collector.finish();
    report.append(&mut unmatched);
    layer
}

struct Found {
    row: RowId,
    captures: Vec<String>,
    rest: String,
    index: Option<usize>,
}

impl Found {
    fn entry(self, schema: &Schema, name: &str, value: &str, span: &Span) -> Entry {
        Entry {
            path: schema.canonical(self.row, &self.captures, &self.rest),
            row: Some(self.row),
            spelled: name.to_owned(),
            key_span: span.clone(),
            span: span.clone(),
            raw: Raw::Scalar(Scalar::text(value)),
        }
    }
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
    fn new(schema: &'a Schema, tokens: &'a [String], known: &'a KnownNames) -> Self {
        Self {
            schema,
            tokens,
            known,
            best: None,
            deepest: (0, Vec::new(), schema.root()),
        }
    }

    /// The key the tokens name.
    fn run(&mut self) -> Option<Found> {
        self.from(self.schema.root(), 0, &mut Vec::new(), &mut Vec::new());
        self.best.take()
    }

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
            .into_iter()
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
            let known: Vec<&str> = self.known.at(path).into_iter().collect();
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
        let mut ends = used + 1..=self.tokens.len();
        ends.find_map(|end| nearest(&self.tokens[used..end].concat(), names.iter().copied()))
            .map(str::to_owned)
    }
}
