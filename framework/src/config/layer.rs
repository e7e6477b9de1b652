//! One document, environment or command line as canonical keys with positions.
//!
//! ```text
//! Node ──walk along the Schema──▶ Entry (canonical path, row, text, positions) … ──▶ Layer ──▶ Tree
//!                    └──▶ unknown keys, duplicates, values where sections belong
//! ```
//! Unknown keys are found here, on what was written, in every document whether its profile is active or not.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    node::{Key, Node, NodeValue, Scalar},
    relaxed::{Segment, split},
    report::{Diagnostic, DiagnosticKind, Severity},
    schema::{Kind, Place, RowId, Schema, Step},
    span::Span,
    unknown,
};

/// One written value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Canonical: fixed names in kebab case, names of the user's as they are spelled.
    pub(crate) path: Vec<String>,
    /// `None`: a key of somebody else's.
    pub(crate) row: Option<RowId>,
    /// The whole key as it was written.
    pub(crate) spelled: String,
    pub(crate) key_span: Span,
    pub(crate) span: Span,
    pub(crate) raw: Raw,
}

/// The text of a value.
#[derive(Debug, Clone)]
pub(crate) enum Raw {
    Scalar(Scalar),
    List(Vec<(Scalar, Span)>),
}

/// Everything one source (or document) says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    pub(crate) entries: Vec<Entry>,
    /// Names of the user's (bindings, topics) with the path they end, also of sections without a value.
    pub(crate) names: Vec<(Vec<String>, Span)>,
    /// False for a document whose profile is not active.
    pub(crate) active: bool,
}

impl Layer {
    /// The value of a canonical key.
    pub(crate) fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.path.join(".") == path)
    }
}

/// Gathers one [`Layer`].
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    schema: &'a Schema,
    report: &'a mut Vec<Diagnostic>,
    /// Prefixes nobody here owns.
    pub(crate) unowned: &'a mut BTreeSet<String>,
    layer: Layer,
    seen: HashMap<Vec<String>, (String, Span, bool)>,
    indexed: BTreeMap<Vec<String>, Vec<Indexed>>,
    /// Inside a section that is itself a duplicate: its keys are not told again.
    inside_duplicate: bool,
}

#[derive(Debug)]
struct Indexed {
    index: usize,
    entry: Entry,
    scalar: Scalar,
}

/// How far a key has been followed.
#[derive(Debug, Clone)]
struct Cursor<'a> {
    /// `None` once the key is somebody else's.
    place: Option<&'a Place>,
    path: Vec<String>,
    captures: Vec<String>,
    spelled: String,
    /// Below a `**` row: the row, and the names since.
    rest: Option<(RowId, Vec<String>)>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(
        schema: &'a Schema,
        report: &'a mut Vec<Diagnostic>,
        unowned: &'a mut BTreeSet<String>,
    ) -> Self {
        Self {
            schema,
            report,
            unowned,
            layer: Layer {
                active: true,
                ..Layer::default()
            },
            seen: HashMap::new(),
            indexed: BTreeMap::new(),
            inside_duplicate: false,
        }
    }

    /// Takes in a whole document.
    pub(crate) fn document(&mut self, node: &Node) {
        if let NodeValue::Mapping(entries) = &node.value {
            self.mapping(entries, &self.top());
        }
    }

    /// Takes in one dotted key with its value.
    pub(crate) fn pair(&mut self, key: &Key, value: &Node) {
        self.key(key, value, &self.top());
    }

    /// Takes in a value whose row is known already.
    pub(crate) fn put(&mut self, entry: Entry, index: Option<usize>) {
        match (index, &entry.raw) {
            (Some(index), Raw::Scalar(scalar)) => {
                let scalar = scalar.clone();
                self.indexed
                    .entry(entry.path.clone())
                    .or_default()
                    .push(Indexed {
                        index,
                        entry,
                        scalar,
                    });
            }
            _ => self.insert(entry, false),
        }
    }

    /// Takes in a value of a key of somebody else's.
    pub(crate) fn foreign(&mut self, path: &str, spelled: &str, text: &str, span: &Span) {
        let path = split(path)
            .into_iter()
            .map(|segment| segment.text)
            .collect();
        let raw = Raw::Scalar(Scalar::text(text));
        self.insert(
            Entry {
                path,
                row: None,
                spelled: spelled.to_owned(),
                key_span: span.clone(),
                span: span.clone(),
                raw,
            },
            false,
        );
    }

    pub(crate) fn finish(mut self) -> Layer {
        for (_, mut items) in std::mem::take(&mut self.indexed) {
            items.sort_by_key(|item| item.index);
            let Some(first) = items.first() else { continue };
            let whole = first.entry.clone();
            if let Some((position, item)) = items
                .iter()
                .enumerate()
                .find(|(position, item)| *position != item.index)
            {
                let message = format!("`{}` leaves out index {position}", item.entry.spelled);
                self.report.push(
                    Diagnostic::error(DiagnosticKind::WrongValue, message)
                        .key(&item.entry.spelled)
                        .at(Some(&item.entry.key_span)),
                );
            }
            let raw = Raw::List(
                items
                    .into_iter()
                    .map(|item| (item.scalar, item.entry.span))
                    .collect(),
            );
            self.insert(Entry { raw, ..whole }, false);
        }
        self.layer
    }

    fn top(&self) -> Cursor<'a> {
        Cursor {
            place: Some(self.schema.root()),
            path: Vec::new(),
            captures: Vec::new(),
            spelled: String::new(),
            rest: None,
        }
    }

    fn mapping(&mut self, entries: &[(Key, Node)], at: &Cursor<'a>) {
        let mut sections: HashMap<String, Span> = HashMap::new();
        for (key, value) in entries {
            let was_inside = self.inside_duplicate;
            if matches!(value.value, NodeValue::Mapping(_)) && !key.merged {
                if let Some(first) = sections.get(&key.text) {
                    self.duplicate(&key.text, &key.span, &key.text, &first.clone());
                    self.inside_duplicate = true;
                }
                sections
                    .entry(key.text.clone())
                    .or_insert_with(|| key.span.clone());
            }
            self.key(key, value, at);
            self.inside_duplicate = was_inside;
        }
    }

    fn key(&mut self, key: &Key, value: &Node, at: &Cursor<'a>) {
        let mut cursor = at.clone();
        if !cursor.spelled.is_empty() {
            cursor.spelled.push('.');
        }
        cursor.spelled.push_str(&key.text);
        let mut index = None;
        for segment in split(&key.text) {
            if index.is_some() {
                // Lists of sections: none of our keys is one, and other people's are only kept for placeholders.
                return;
            }
            let span = part(&key.span, &segment, &key.text);
            match self.step(cursor, &segment, &span) {
                Some(next) => cursor = next,
                None => return,
            }
            index = segment.index;
        }
        self.value(&cursor, index, key, value);
    }

    fn step(
        &mut self,
        mut cursor: Cursor<'a>,
        segment: &Segment,
        span: &Span,
    ) -> Option<Cursor<'a>> {
        if let Some((_, names)) = &mut cursor.rest {
            names.push(segment.text.clone());
            return Some(cursor);
        }
        let Some(place) = cursor.place else {
            cursor.path.push(segment.text.clone());
            return Some(cursor);
        };
        match place.step(&segment.text, segment.literal) {
            Step::Fixed(kebab, next) => {
                cursor.path.push(kebab.to_owned());
                cursor.place = Some(next);
            }
            Step::Named(next) => {
                self.named(&cursor, segment, span);
                cursor.path.push(segment.text.clone());
                cursor.captures.push(segment.text.clone());
                cursor.place = Some(next);
                self.layer.names.push((cursor.path.clone(), span.clone()));
            }
            Step::Rest(row) => cursor.rest = Some((row, vec![segment.text.clone()])),
            Step::Unowned => {
                cursor.path.push(segment.text.clone());
                self.unowned.insert(cursor.path.join("."));
                cursor.place = None;
            }
            Step::Unknown => {
                let found = unknown::key(self.schema, place, &cursor.path, &segment.text);
                self.report.push(found.key(&cursor.spelled).at(Some(span)));
                return None;
            }
        }
        Some(cursor)
    }

    fn value(&mut self, cursor: &Cursor<'a>, index: Option<usize>, key: &Key, value: &Node) {
        let leaf = match (&cursor.rest, cursor.place) {
            (Some((row, _)), _) => Some(*row),
            (None, Some(place)) => place.leaf(),
            (None, None) => None,
        };
        let owned = cursor.rest.is_some() || cursor.place.is_some();
        let section = cursor.rest.is_some() || cursor.place.is_none_or(Place::is_section);
        match &value.value {
            NodeValue::Mapping(entries) => match leaf {
                Some(row)
                    if matches!(self.schema.row(row).kind, Kind::List { .. })
                        && is_numbered(entries) =>
                {
                    self.numbered(cursor, row, key, entries);
                }
                _ if section => self.mapping(entries, cursor),
                _ => self.not_a_section(cursor, leaf, value),
            },
            NodeValue::Scalar(scalar) if leaf.is_some() || !owned => {
                self.leaf(cursor, leaf, index, key, value, Raw::Scalar(scalar.clone()));
            }
            // Commented-out children leave an empty section behind.
            NodeValue::Scalar(scalar) if scalar.null => {}
            NodeValue::Sequence(items) if leaf.is_some() || !owned => {
                self.list(cursor, leaf, key, value, items);
            }
            NodeValue::Scalar(_) | NodeValue::Sequence(_) => self.not_a_value(cursor, value),
        }
    }

    fn list(
        &mut self,
        cursor: &Cursor<'a>,
        leaf: Option<RowId>,
        key: &Key,
        value: &Node,
        items: &[Node],
    ) {
        let mut scalars = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match (&item.value, leaf) {
                (NodeValue::Scalar(scalar), _) => scalars.push((scalar.clone(), item.span.clone())),
                (NodeValue::Mapping(entries), None) => {
                    let mut below = cursor.clone();
                    below.path.push(index.to_string());
                    self.mapping(entries, &below);
                }
                (_, None) => {}
                (_, Some(row)) => self.wrong_type(cursor, row, &item.span),
            }
        }
        self.leaf(cursor, leaf, None, key, value, Raw::List(scalars));
    }

    /// `servers: {0: a, 1: b}` is a list too.
    fn numbered(&mut self, cursor: &Cursor<'a>, row: RowId, key: &Key, entries: &[(Key, Node)]) {
        for (number, value) in entries {
            if let (Ok(index), NodeValue::Scalar(scalar)) =
                (number.text.parse::<usize>(), &value.value)
            {
                self.leaf(
                    cursor,
                    Some(row),
                    Some(index),
                    key,
                    value,
                    Raw::Scalar(scalar.clone()),
                );
            }
        }
    }

    fn leaf(
        &mut self,
        cursor: &Cursor<'a>,
        row: Option<RowId>,
        index: Option<usize>,
        key: &Key,
        value: &Node,
        raw: Raw,
    ) {
        let rest = cursor
            .rest
            .as_ref()
            .map(|(_, names)| names.join("."))
            .unwrap_or_default();
        let path = match row {
            Some(row) => self.schema.canonical(row, &cursor.captures, &rest),
            None => cursor.path.clone(),
        };
        let spelled = cursor.spelled.clone();
        let entry = Entry {
            path,
            row,
            spelled,
            key_span: key.span.clone(),
            span: value.span.clone(),
            raw,
        };
        match index {
            Some(_) => self.put(entry, index),
            None => self.insert(entry, key.merged),
        }
    }

    fn insert(&mut self, entry: Entry, merged: bool) {
        if let Some((spelled, first, first_merged)) = self.seen.get(&entry.path).cloned() {
            if merged {
                return;
            }
            if !first_merged {
                // Of two equal keys the first is kept, so that what follows speaks of one value only.
                if !self.inside_duplicate {
                    self.duplicate(&entry.spelled, &entry.key_span, &spelled, &first);
                }
                return;
            }
            self.layer.entries.retain(|other| other.path != entry.path);
        }
        self.seen.insert(
            entry.path.clone(),
            (entry.spelled.clone(), entry.key_span.clone(), merged),
        );
        self.layer.entries.push(entry);
    }

    fn duplicate(&mut self, spelled: &str, span: &Span, first: &str, first_span: &Span) {
        let (last, first_last) = (last_name(spelled), last_name(first));
        let message = if last == first_last {
            format!("`{last}` is given twice")
        } else {
            format!("`{last}` and `{first_last}` are the same key, given twice")
        };
        self.report.push(
            Diagnostic::error(DiagnosticKind::Duplicate, message)
                .key(spelled)
                .at(Some(span))
                .related(Some(first_span), "first given here"),
        );
    }

    /// Names of the user's may hold letters, digits, `-` and `_`; others go in brackets.
    fn named(&mut self, cursor: &Cursor<'a>, segment: &Segment, span: &Span) {
        let plain = segment
            .text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        if plain || segment.literal {
            return;
        }
        let text = &segment.text;
        let message = format!("the name `{text}` needs brackets: \"[{text}]\"");
        self.report.push(
            Diagnostic::error(DiagnosticKind::WrongValue, message)
                .key(&cursor.spelled)
                .at(Some(span))
                .suggest(Some(format!("[{text}]")))
                .label("names without brackets hold letters, digits, `-` and `_`"),
        );
    }

    fn not_a_section(&mut self, cursor: &Cursor<'a>, leaf: Option<RowId>, value: &Node) {
        match leaf {
            Some(row) => self.wrong_type(cursor, row, &value.span),
            None => self.not_a_value(cursor, value),
        }
    }

    fn wrong_type(&mut self, cursor: &Cursor<'a>, row: RowId, span: &Span) {
        let name = last_name(&cursor.spelled);
        let message = format!(
            "`{name}` takes {}, not a section",
            self.schema.row(row).kind.expected()
        );
        self.report.push(
            Diagnostic::error(DiagnosticKind::WrongType, message)
                .key(&cursor.spelled)
                .at(Some(span)),
        );
    }

    fn not_a_value(&mut self, cursor: &Cursor<'a>, value: &Node) {
        let message = format!(
            "`{}` is a section of keys, not a value",
            last_name(&cursor.spelled)
        );
        let mut diagnostic = Diagnostic::error(DiagnosticKind::WrongType, message)
            .key(&cursor.spelled)
            .at(Some(&value.span));
        if let Some(place) = cursor.place {
            diagnostic =
                diagnostic.note(format!("accepted there: {}", unknown::accepted("", place)));
        }
        self.report.push(diagnostic);
    }
}

/// Turns unknown keys into warnings (`bindery.config.compat: lenient`).
pub(crate) fn lenient(report: &mut [Diagnostic]) {
    for diagnostic in report
        .iter_mut()
        .filter(|diagnostic| diagnostic.kind == DiagnosticKind::UnknownKey)
    {
        diagnostic.severity = Severity::Warning;
    }
}

fn is_numbered(entries: &[(Key, Node)]) -> bool {
    !entries.is_empty()
        && entries.iter().all(|(key, value)| {
            key.text.parse::<usize>().is_ok() && matches!(value.value, NodeValue::Scalar(_))
        })
}

/// The last step of a written key.
pub(crate) fn last_name(spelled: &str) -> &str {
    if spelled.ends_with(']') {
        return spelled.rfind(".[").map_or(spelled, |at| &spelled[at + 1..]);
    }
    spelled.rsplit('.').next().unwrap_or(spelled)
}

/// The stretch of a key that holds one of its segments.
fn part(key: &Span, segment: &Segment, text: &str) -> Span {
    if key.line() == 0 {
        return key.clone();
    }
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let quote = u32::from(key.length() > length);
    let offset = u32::try_from(segment.offset).unwrap_or(u32::MAX);
    let own = u32::try_from(segment.text.chars().count()).unwrap_or(u32::MAX);
    Span::new(
        key.source().clone(),
        key.line(),
        key.column().saturating_add(offset).saturating_add(quote),
        own.max(1),
    )
}
