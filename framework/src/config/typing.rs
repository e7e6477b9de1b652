//! Types for texts: every written value is read by its row, and what is wrong with it is told at its place.
//!
//! ```text
//! Entry ──state of its row: live · later · ignored · refused──▶ ──placeholders──▶ ──value::read──▶ Typed
//! ```
//! Values that don't count (overridden, inactive profile) are checked too, as long as they hold no placeholder.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    layer::{Entry, Layer, Raw, last_name},
    node::Scalar,
    placeholder::{self, PlaceholderError},
    relaxed::{nearest, squash},
    report::{Diagnostic, DiagnosticKind},
    schema::{Choice, Kind, Row, Schema, State},
    span::Span,
    tree::{Tree, is_spelling},
    value::{self, Value, Wrong},
    yaml_1_1,
};

/// The typed values that count, by canonical path.
pub(crate) type Values = BTreeMap<Vec<String>, Typed>;

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

/// Reads and checks everything.
#[derive(Debug)]
pub(crate) struct Typing<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) tree: &'a Tree,
    pub(crate) env: &'a [(String, String)],
    pub(crate) report: Vec<Diagnostic>,
    /// Told once each: keys without effect, foreign binders.
    told: BTreeSet<String>,
}

impl<'a> Typing<'a> {
    pub(crate) fn new(schema: &'a Schema, tree: &'a Tree, env: &'a [(String, String)]) -> Self {
        Self {
            schema,
            tree,
            env,
            report: Vec::new(),
            told: BTreeSet::new(),
        }
    }

    /// Checks every value of every layer and returns those that count.
    pub(crate) fn run(&mut self, layers: &[Layer]) -> Values {
        for layer in layers {
            for entry in &layer.entries {
                let counts = layer.active && self.tree.is_winner(entry);
                if !counts && !has_placeholder(entry) {
                    self.entry(entry);
                }
            }
        }
        let tree = self.tree;
        let mut values = Values::new();
        for setting in tree.winners() {
            let entry = &setting.entry;
            if let Some(value) = self.entry(entry) {
                values.insert(
                    entry.path.clone(),
                    Typed {
                        value,
                        span: entry.span.clone(),
                    },
                );
            }
        }
        values
    }

    /// The text of a value of somebody else's, for the application's own types.
    pub(crate) fn foreign_text(&self, text: &str) -> Result<String, PlaceholderError> {
        placeholder::resolve(text, &|name| self.lookup(name))
    }

    fn entry(&mut self, entry: &Entry) -> Option<Value> {
        let row = self.schema.row(entry.row?);
        if !matches!(row.state, State::Live | State::Later) {
            self.without_effect(entry, row);
            return None;
        }
        let value = match &entry.raw {
            Raw::Scalar(scalar) => self.scalar(entry, row, scalar),
            Raw::List(items) => self.list(entry, row, items),
        }?;
        if row.state == State::Live {
            return Some(value);
        }
        // A value that is the default asks for nothing, so files that spell defaults out stay loadable.
        if !is_default(row, &value) {
            let message = format!("`{}` is not supported yet", last_name(&entry.spelled));
            let mut diagnostic = Diagnostic::error(DiagnosticKind::Unsupported, message);
            if !row.default.is_empty() {
                diagnostic = diagnostic.label(format!("only `{}`, the default", row.default));
            }
            self.push(entry, &entry.key_span, diagnostic);
        }
        None
    }

    /// Tells of a key that never acts; of some once only.
    fn without_effect(&mut self, entry: &Entry, row: &Row) {
        let name = last_name(&entry.spelled).to_owned();
        let (what, diagnostic) = match row.state {
            State::Refused(advice) => {
                let message = format!("`{name}` is not supported: {advice}");
                (
                    entry.spelled.clone(),
                    Diagnostic::error(DiagnosticKind::Unsupported, message),
                )
            }
            State::Foreign => {
                let kind = entry.path.get(3).cloned().unwrap_or_default();
                let message =
                    format!("settings of the `{kind}` binder, which is not part of this program");
                (kind, Diagnostic::warning(DiagnosticKind::Ignored, message))
            }
            _ => {
                let message = format!("`{name}` is accepted and has no effect here: {}", row.doc);
                (name, Diagnostic::info(DiagnosticKind::Ignored, message))
            }
        };
        if self.told.insert(what) {
            self.push(entry, &entry.key_span, diagnostic);
        }
    }

    fn scalar(&mut self, entry: &Entry, row: &'static Row, scalar: &Scalar) -> Option<Value> {
        let scalar = self.resolved(entry, scalar, &entry.span)?;
        self.surprise(entry, row, &scalar, &entry.span);
        match value::read(&row.kind, &scalar) {
            Ok(value) => value,
            Err(wrong) => {
                self.wrong(entry, row, &scalar.text, &entry.span, &wrong);
                None
            }
        }
    }

    fn list(
        &mut self,
        entry: &Entry,
        row: &'static Row,
        items: &[(Scalar, Span)],
    ) -> Option<Value> {
        let mut scalars = Vec::new();
        let mut failed = false;
        for (scalar, span) in items {
            let Some(scalar) = self.resolved(entry, scalar, span) else {
                failed = true;
                continue;
            };
            if let Err(wrong) = value::read_list(&row.kind, std::slice::from_ref(&scalar)) {
                self.wrong(entry, row, &scalar.text, span, &wrong);
                failed = true;
                if wrong == Wrong::Type {
                    break;
                }
            }
            self.surprise(entry, row, &scalar, span);
            scalars.push(scalar);
        }
        if failed {
            None
        } else {
            value::read_list(&row.kind, &scalars).ok()
        }
    }

    fn resolved(&mut self, entry: &Entry, scalar: &Scalar, span: &Span) -> Option<Scalar> {
        if !placeholder::has_placeholder(&scalar.text) {
            return Some(scalar.clone());
        }
        match placeholder::resolve(&scalar.text, &|name| self.lookup(name)) {
            Ok(text) => Some(Scalar {
                text,
                plain: false,
                null: false,
            }),
            Err(error) => {
                let (message, offset) = placeholder_message(&error);
                let span = inside(span, scalar, offset);
                let suggestion = match &error {
                    PlaceholderError::Unresolved { name, .. } if !name.is_empty() => {
                        Some(format!("${{{name}:default}}"))
                    }
                    _ => None,
                };
                let mut diagnostic =
                    Diagnostic::error(DiagnosticKind::Placeholder, message).suggest(suggestion);
                if matches!(error, PlaceholderError::Unresolved { .. }) {
                    diagnostic = diagnostic.label("set it, or give a default after `:`");
                }
                self.push(entry, &span, diagnostic);
                None
            }
        }
    }

    /// The unresolved text of a name: command line and code, then the environment, then everything else.
    fn lookup(&self, name: &str) -> Option<String> {
        let found = self.tree.find(name);
        if let Some((setting, index)) = found
            && setting.above_environment
        {
            return setting.text(index);
        }
        let wanted = squash(name);
        let exact = self.env.iter().find(|(variable, _)| variable == name);
        let relaxed = || {
            self.env
                .iter()
                .find(|(variable, _)| is_spelling(name) && squash(variable) == wanted)
        };
        exact
            .or_else(relaxed)
            .map(|(_, value)| value.clone())
            .or_else(|| found.and_then(|(setting, index)| setting.text(index)))
    }

    fn wrong(&mut self, entry: &Entry, row: &Row, text: &str, span: &Span, wrong: &Wrong) {
        let name = last_name(&entry.spelled);
        let shown = if row.secret { "***" } else { text };
        let expected = row.kind.expected();
        let diagnostic = match wrong {
            Wrong::Type => Diagnostic::error(
                DiagnosticKind::WrongType,
                format!("`{shown}` is not a value for `{name}`"),
            )
            .label(format!("expected {expected}")),
            Wrong::Value => wrong_value(row, name, shown, &expected),
            Wrong::Ambiguous(instead) => {
                let message = format!(
                    "`{shown}` for `{name}` is octal to a YAML 1.1 reader and decimal to a YAML 1.2 reader"
                );
                Diagnostic::error(DiagnosticKind::WrongValue, message)
                    .suggest(Some(instead.clone()))
                    .label(format!("write `{instead}` if that is meant"))
            }
            Wrong::Later => Diagnostic::error(
                DiagnosticKind::Unsupported,
                format!("`{shown}` for `{name}` is not supported yet"),
            )
            .label(format!("supported: {expected}")),
        };
        self.push(entry, span, diagnostic);
    }

    /// Text that Java would have read as a number or a boolean first.
    fn surprise(&mut self, entry: &Entry, row: &Row, scalar: &Scalar, span: &Span) {
        if !scalar.plain || !matches!(row.kind, Kind::Text(_) | Kind::List { .. }) {
            return;
        }
        if let Some(other) = yaml_1_1::reading(&scalar.text) {
            let name = last_name(&entry.spelled);
            let message = format!(
                "`{}` for `{name}` is taken as it is written; Java would read `{other}`",
                scalar.text
            );
            let quoted = format!("'{}'", scalar.text);
            let diagnostic = Diagnostic::warning(DiagnosticKind::Surprise, message)
                .label(format!("write {quoted} to mean the same everywhere"))
                .suggest(Some(quoted));
            self.push(entry, span, diagnostic);
        }
    }

    fn push(&mut self, entry: &Entry, span: &Span, diagnostic: Diagnostic) {
        self.report
            .push(diagnostic.key(&entry.spelled).at(Some(span)));
    }
}

fn wrong_value(row: &Row, name: &str, shown: &str, expected: &str) -> Diagnostic {
    let error = |message: String| Diagnostic::error(DiagnosticKind::WrongValue, message);
    match row.kind {
        Kind::Choice(choices) => {
            let near = nearest_choice(shown, choices);
            let label = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected {expected}"),
            };
            error(format!("`{shown}` is not a value for `{name}`"))
                .suggest(near.map(str::to_owned))
                .label(label)
                .note(format!("accepted: {expected}"))
        }
        _ => error(format!("`{shown}` is not a value for `{name}`"))
            .label(format!("expected {expected}")),
    }
}

fn has_placeholder(entry: &Entry) -> bool {
    match &entry.raw {
        Raw::Scalar(scalar) => placeholder::has_placeholder(&scalar.text),
        Raw::List(items) => items
            .iter()
            .any(|(scalar, _)| placeholder::has_placeholder(&scalar.text)),
    }
}

fn is_default(row: &Row, value: &Value) -> bool {
    matches!(value::read(&row.kind, &Scalar::text(row.default)), Ok(Some(default)) if default == *value)
}

fn nearest_choice(text: &str, choices: &'static [Choice]) -> Option<&'static str> {
    let names: Vec<&'static str> = choices
        .iter()
        .filter(|choice| !choice.later)
        .map(|choice| choice.name)
        .collect();
    // A part of one word only, such as `first` for CONSUME_FROM_FIRST_OFFSET, is as good as a near miss.
    let wanted = squash(text);
    let mut holding = names
        .iter()
        .filter(|name| wanted.len() > 2 && squash(name).contains(&wanted));
    let only = match (holding.next(), holding.next()) {
        (Some(one), None) => Some(*one),
        _ => None,
    };
    nearest(text, names.iter().copied()).or(only)
}

fn placeholder_message(error: &PlaceholderError) -> (String, Option<usize>) {
    match error {
        PlaceholderError::Unresolved { name, offset } if name.is_empty() => {
            ("`${}` names nothing".to_owned(), Some(*offset))
        }
        PlaceholderError::Unresolved { name, offset } => {
            (format!("`${{{name}}}` has no value"), Some(*offset))
        }
        PlaceholderError::Unclosed { offset } => (
            "`${` without `}`; a literal `${` is written `\\${`".to_owned(),
            Some(*offset),
        ),
        PlaceholderError::Cycle { chain } => (
            format!("placeholders need each other: {}", chain.join(" → ")),
            None,
        ),
        PlaceholderError::BeanExpression { offset } => (
            "`#{…}` is an expression of Spring's beans and has no meaning here".to_owned(),
            Some(*offset),
        ),
        PlaceholderError::Random { request, offset } => (
            format!(
                "`random.{request}` is not known; there are uuid, value, int, int(max), int(min,max) and long"
            ),
            Some(*offset),
        ),
        PlaceholderError::TooMany => ("more than 1000 placeholders in one value".to_owned(), None),
    }
}

/// The place inside a scalar of one line, if characters and columns agree there.
fn inside(span: &Span, scalar: &Scalar, offset: Option<usize>) -> Span {
    let length = scalar.text.chars().count();
    let written = usize::try_from(span.length()).unwrap_or(0);
    let quote = match written.checked_sub(length) {
        Some(0) => 0,
        Some(2) => 1,
        _ => return span.clone(),
    };
    match offset.and_then(|offset| u32::try_from(offset + quote).ok()) {
        Some(offset) if span.line() > 0 && offset < span.length() => {
            let rest = span.length() - offset - u32::try_from(quote).unwrap_or(0);
            Span::new(
                span.source().clone(),
                span.line(),
                span.column() + offset,
                rest.max(1),
            )
        }
        _ => span.clone(),
    }
}
