//! The one table of configuration keys, and how a written key finds its row.
//!
//! ```text
//! tables (stream, rocketmq, around, own) ──▶ Schema ──▶ relaxed names, types, unknown keys, explain, JSON schema
//! ```
//! A key is written down in a table and nowhere else. A [`Section`] may stand at several places (`bindings.*` and
//! `default`), a [`Row`] may have several spellings; both lead to one canonical path.

mod around;
mod json;
mod own;
mod rocketmq;
mod row;
mod stream;

use std::{collections::BTreeMap, sync::LazyLock};

pub(crate) use json::json_schema;
pub(crate) use row::{Choice, Kind, Row, State, TextRule, Unit};

use super::relaxed::{nearest, squash};

/// Rows that stand below one or several places.
#[derive(Debug)]
pub(crate) struct Section {
    /// Where the rows stand. The first place is the one messages name.
    pub(crate) bases: &'static [&'static str],
    pub(crate) rows: &'static [Row],
}

/// Every key Bindery knows.
pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let sections: Vec<&'static Section> = [
        stream::SECTIONS,
        rocketmq::SECTIONS,
        around::SECTIONS,
        own::SECTIONS,
    ]
    .into_iter()
    .flatten()
    .collect();
    Schema::of(
        &sections,
        &[
            "spring.cloud.stream",
            "spring.config",
            "spring.profiles",
            "bindery",
        ],
    )
});

/// The index of a row in [`Schema::rows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowId(usize);

/// A row at one of its places.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) row: &'static Row,
    /// The canonical path: `*` stands for a name of the user's, a final `**` for everything below.
    pub(crate) pattern: Vec<String>,
}

/// The tree of all keys.
#[derive(Debug)]
pub(crate) struct Schema {
    rows: Vec<Placed>,
    root: Place,
}

/// One step of the tree: what may follow here.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Fixed names by squashed spelling: the kebab spelling and what follows.
    children: BTreeMap<String, (String, Place)>,
    /// Names of the user's choice.
    any: Option<Box<Place>>,
    /// A value may stand here.
    leaf: Option<RowId>,
    /// Anything may follow.
    rest: Option<RowId>,
    /// Names we don't know are somebody else's, unless they look like one of ours.
    open: bool,
}

/// The step from one [`Place`] to the next.
pub(crate) enum Step<'a> {
    /// A fixed name, with its kebab spelling.
    Fixed(&'a str, &'a Place),
    /// A name of the user's choice.
    Named(&'a Place),
    /// Below this everything belongs to one row.
    Rest(RowId),
    /// Not one of ours.
    Unowned,
    /// Ours, and wrong.
    Unknown,
}

impl Place {
    pub(crate) fn step(&self, name: &str, literal: bool) -> Step<'_> {
        if !literal && let Some((kebab, place)) = self.children.get(&squash(name)) {
            return Step::Fixed(kebab, place);
        }
        match (&self.any, self.rest) {
            (Some(place), _) => Step::Named(place),
            (None, Some(row)) => Step::Rest(row),
            (None, None) if self.open && nearest(name, self.names()).is_none() => Step::Unowned,
            (None, None) => Step::Unknown,
        }
    }

    /// The fixed names accepted here, in alphabetical order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.children.values().map(|(kebab, _)| kebab.as_str())
    }

    pub(crate) fn leaf(&self) -> Option<RowId> {
        self.leaf
    }

    pub(crate) fn any(&self) -> Option<&Place> {
        self.any.as_deref()
    }

    pub(crate) fn rest(&self) -> Option<RowId> {
        self.rest
    }

    /// The fixed names with what follows them: squashed spelling, kebab spelling, place.
    pub(crate) fn children(&self) -> impl Iterator<Item = (&str, &str, &Place)> {
        self.children
            .iter()
            .map(|(squashed, (kebab, place))| (squashed.as_str(), kebab.as_str(), place))
    }

    /// Whether something may follow here.
    pub(crate) fn is_section(&self) -> bool {
        !self.children.is_empty() || self.any.is_some() || self.rest.is_some()
    }
}

impl Schema {
    /// Builds the tree. `closed` are the prefixes below which every unknown key is an error.
    pub(crate) fn of(sections: &[&'static Section], closed: &[&str]) -> Self {
        let mut schema = Self {
            rows: Vec::new(),
            root: Place::default(),
        };
        for section in sections {
            for base in section.bases {
                for row in section.rows {
                    schema.add(base, row);
                }
            }
        }
        schema.root.open_up(&mut Vec::new(), closed);
        schema
    }

    fn add(&mut self, base: &str, row: &'static Row) {
        let full = |key: &str| -> Vec<String> {
            // A leading slash names a spelling outside the section.
            let path = key
                .strip_prefix('/')
                .map_or_else(|| format!("{base}.{key}"), str::to_owned);
            path.split('.')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let id = RowId(self.rows.len());
        let pattern = full(row.key);
        self.root.insert(&pattern, id);
        for alias in row.aliases {
            self.root.insert(&full(alias), id);
        }
        self.rows.push(Placed { row, pattern });
    }

    pub(crate) fn root(&self) -> &Place {
        &self.root
    }

    pub(crate) fn placed(&self, id: RowId) -> &Placed {
        &self.rows[id.0]
    }

    pub(crate) fn row(&self, id: RowId) -> &'static Row {
        self.rows[id.0].row
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Placed> {
        self.rows.iter()
    }

    /// The canonical path of a row where the names of the user's are `captures` and what lies below a `**` is `rest`.
    pub(crate) fn canonical(&self, id: RowId, captures: &[String], rest: &str) -> Vec<String> {
        let mut captures = captures.iter();
        let fill = |step: &String| match step.as_str() {
            "*" => captures.next().cloned().unwrap_or_else(|| "*".to_owned()),
            "**" => rest.to_owned(),
            _ => step.clone(),
        };
        self.rows[id.0].pattern.iter().map(fill).collect()
    }
}

impl Place {
    fn insert(&mut self, path: &[String], row: RowId) {
        let Some((first, after)) = path.split_first() else {
            self.leaf = Some(row);
            return;
        };
        match first.as_str() {
            "**" => self.rest = Some(row),
            "*" => self.any.get_or_insert_default().insert(after, row),
            name => self
                .children
                .entry(squash(name))
                .or_insert_with(|| (name.to_owned(), Place::default()))
                .1
                .insert(after, row),
        }
    }

    fn open_up(&mut self, path: &mut Vec<String>, closed: &[&str]) {
        let here = path.join(".");
        self.open = !closed
            .iter()
            .any(|prefix| here == *prefix || here.starts_with(&format!("{prefix}.")));
        for (name, place) in self.children.values_mut() {
            path.push(name.clone());
            place.open_up(path, closed);
            path.pop();
        }
        if let Some(place) = &mut self.any {
            path.push("*".to_owned());
            place.open_up(path, closed);
            path.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(path: &str) -> Option<String> {
        let mut place = SCHEMA.root();
        let mut captures = Vec::new();
        for name in path.split('.') {
            match place.step(name, false) {
                Step::Fixed(_, next) => place = next,
                Step::Named(next) => {
                    captures.push(name.to_owned());
                    place = next;
                }
                _ => return None,
            }
        }
        place
            .leaf()
            .map(|row| SCHEMA.canonical(row, &captures, "").join("."))
    }

    #[test]
    fn spellings_and_aliases_lead_to_one_canonical_path() {
        for (written, canonical) in [
            (
                "spring.cloud.stream.bindings.orders-in.contentType",
                "spring.cloud.stream.bindings.orders-in.content-type",
            ),
            (
                "spring.cloud.stream.rocketmq.bindings.in.consumer.push.orderly",
                "spring.cloud.stream.rocketmq.bindings.in.consumer.orderly",
            ),
            (
                "spring.cloud.stream.rocketmq.default.producer.retryAnotherBrokerWhenNotStoreOK",
                "spring.cloud.stream.rocketmq.default.producer.retry-another-broker",
            ),
            ("bindery.embedded", "bindery.embedded.enabled"),
            ("BINDERY.topics.auto_create", "bindery.topics.auto-create"),
        ] {
            assert_eq!(find(written).as_deref(), Some(canonical), "{written}");
        }
        assert_eq!(find("spring.cloud.stream.bindings.x.groupp"), None);
    }

    #[test]
    fn every_default_is_a_value_of_its_own_kind_and_every_row_has_a_text() {
        for placed in SCHEMA.rows() {
            assert!(!placed.row.doc.is_empty(), "{:?}", placed.pattern);
            if !placed.row.default.is_empty() {
                let scalar = crate::config::node::Scalar::text(placed.row.default);
                assert!(
                    crate::config::value::read(&placed.row.kind, &scalar).is_ok(),
                    "{:?}",
                    placed.pattern
                );
            }
        }
    }
}
