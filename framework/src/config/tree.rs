//! The merged configuration: for every key the value that counts, where it was written, and what it overrides.
//!
//! ```text
//! Layer, Layer, … (weakest first) ──merge──▶ Tree ──resolve placeholders, read types──▶ Values ──▶ Config
//! ```
//! The layers are merged here and not in figment because a merged value must still know its line and column; figment's
//! tags end at the source's name. What figment is used for is what it does best: handing sections that are not ours to
//! the application's own serde types (see [`section`](super::section)).

use std::collections::{BTreeMap, HashMap};

use super::{
    layer::{Entry, Layer, Raw},
    relaxed::{split, squash},
    schema::Schema,
};

/// Every active key.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// What was written for a key, weakest first; never empty.
    settings: BTreeMap<Vec<String>, Vec<Setting>>,
    /// Squashed dotted path to canonical path.
    relaxed: HashMap<String, Vec<String>>,
}

/// One written value of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) entry: Entry,
    /// The source is stronger than the environment: command line or code.
    pub(crate) above_environment: bool,
}

impl Tree {
    /// Merges the active layers, weakest first; those from `above` on are stronger than the environment.
    pub(crate) fn merge(schema: &Schema, layers: &[Layer], above: usize) -> Self {
        let mut tree = Self::default();
        let mut names: HashMap<Vec<String>, Vec<String>> = HashMap::new();
        for (index, layer) in layers.iter().enumerate().filter(|(_, layer)| layer.active) {
            for entry in &layer.entries {
                let mut entry = entry.clone();
                if let Some(row) = entry.row {
                    unify(&mut entry.path, &schema.placed(row).pattern, &mut names);
                }
                tree.relaxed
                    .insert(squashed(&entry.path), entry.path.clone());
                let setting = Setting {
                    above_environment: index >= above,
                    entry,
                };
                tree.settings
                    .entry(setting.entry.path.clone())
                    .or_default()
                    .push(setting);
            }
        }
        tree
    }

    /// The values that count.
    pub(crate) fn winners(&self) -> impl Iterator<Item = &Setting> {
        self.settings
            .values()
            .filter_map(|settings| settings.last())
    }

    /// The values of `path` that were written, weakest first.
    pub(crate) fn history(&self, path: &[String]) -> &[Setting] {
        self.settings.get(path).map_or(&[], Vec::as_slice)
    }

    /// Whether `entry` is the value that counts for its key.
    pub(crate) fn is_winner(&self, entry: &Entry) -> bool {
        let last = self
            .settings
            .get(&entry.path)
            .and_then(|settings| settings.last());
        last.is_some_and(|last| {
            last.entry.key_span == entry.key_span && last.entry.spelled == entry.spelled
        })
    }

    /// Finds a key in any spelling; the index of a list item, if the name ends in one.
    pub(crate) fn find(&self, name: &str) -> Option<(&Setting, Option<usize>)> {
        let segments = split(name);
        let index = segments.last().and_then(|segment| segment.index);
        let path: Vec<String> = segments.into_iter().map(|segment| segment.text).collect();
        let relaxed = || {
            self.relaxed
                .get(&squashed(&path))
                .filter(|_| is_spelling(name))
        };
        let settings = self
            .settings
            .get(&path)
            .or_else(|| self.settings.get(relaxed()?))?;
        settings.last().map(|setting| (setting, index))
    }
}

/// Whether relaxed matching is meant at all: a name with other characters is looked for as it stands.
pub(crate) fn is_spelling(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '[' | ']'))
}

impl Setting {
    /// The text as it was written; items of a list are joined by commas.
    pub(crate) fn text(&self, index: Option<usize>) -> Option<String> {
        match (&self.entry.raw, index) {
            (Raw::Scalar(scalar), None) => Some(scalar.text.clone()),
            (Raw::Scalar(_), Some(_)) => None,
            (Raw::List(items), Some(index)) => {
                items.get(index).map(|(scalar, _)| scalar.text.clone())
            }
            (Raw::List(items), None) => Some(
                items
                    .iter()
                    .map(|(scalar, _)| scalar.text.as_str())
                    .collect::<Vec<_>>()
                    .join(","),
            ),
        }
    }
}

fn squashed(path: &[String]) -> String {
    path.iter()
        .map(|name| squash(name))
        .collect::<Vec<_>>()
        .join(".")
}

/// Names of the user's keep the spelling that was met first; another capitalisation of a name that exists once is the
/// same name, as Spring's case-insensitive maps have it.
fn unify(path: &mut [String], pattern: &[String], names: &mut HashMap<Vec<String>, Vec<String>>) {
    for at in 0..path.len() {
        if pattern.get(at).is_none_or(|step| step != "*") {
            continue;
        }
        let known = names.entry(path[..at].to_vec()).or_default();
        if known.contains(&path[at]) {
            continue;
        }
        let lower = path[at].to_lowercase();
        let mut same = known.iter().filter(|name| name.to_lowercase() == lower);
        match (same.next(), same.next()) {
            (Some(one), None) => path[at].clone_from(one),
            _ => known.push(path[at].clone()),
        }
    }
}
