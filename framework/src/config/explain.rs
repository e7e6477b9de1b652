//! What one key means, what it is set to, and where that comes from.

use super::{
    Loaded,
    layer::Raw,
    relaxed::{nearest, split},
    schema::{Place, Row, RowId, SCHEMA, State, Step},
    tree::Setting,
};

/// No key of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no key `{key}`{}", suggestion.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
pub struct UnknownKey {
    /// As it was asked for.
    pub key: String,
    /// The nearest key.
    pub suggestion: Option<String>,
}

impl Loaded {
    /// Meaning, type, default, value and origin of `key` (in any spelling), as text of a few lines. Secrets are masked.
    ///
    /// # Errors
    /// [`UnknownKey`] when there is no such key.
    pub fn explain(&self, key: &str) -> Result<String, UnknownKey> {
        let (row, path) = find(key)?;
        let row = SCHEMA.row(row);
        let mut text = format!(
            "{}\n  {}\n  takes: {}\n",
            path.join("."),
            row.doc,
            row.kind.expected()
        );
        if !row.default.is_empty() {
            push(&mut text, &format!("  default: {}", row.default));
        }
        match row.state {
            State::Later => push(&mut text, "  not supported yet"),
            State::Ignored | State::Foreign => push(&mut text, "  accepted, without effect"),
            State::Refused(advice) => push(&mut text, &format!("  not supported: {advice}")),
            State::Live => {}
        }
        match self.tree.history(&path) {
            [] => push(&mut text, "  value: the default"),
            [overridden @ .., winner] => {
                push(
                    &mut text,
                    &format!("  value: {}  ({})", shown(winner, row), winner.entry.span),
                );
                for setting in overridden.iter().rev() {
                    push(
                        &mut text,
                        &format!(
                            "  overrides: {}  ({})",
                            shown(setting, row),
                            setting.entry.span
                        ),
                    );
                }
            }
        }
        Ok(text)
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn shown(setting: &Setting, row: &Row) -> String {
    if row.secret {
        return "***".to_owned();
    }
    match &setting.entry.raw {
        Raw::Scalar(scalar) => scalar.text.clone(),
        Raw::List(items) => {
            format!(
                "[{}]",
                items
                    .iter()
                    .map(|(scalar, _)| scalar.text.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
    }
}

/// Follows a key in any spelling.
fn find(key: &str) -> Result<(RowId, Vec<String>), UnknownKey> {
    let unknown = |suggestion: Option<String>| UnknownKey {
        key: key.to_owned(),
        suggestion,
    };
    let mut place: &Place = SCHEMA.root();
    let mut captures = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let segments = split(key);
    for (at, segment) in segments.iter().enumerate() {
        match place.step(&segment.text, segment.literal) {
            Step::Fixed(kebab, next) => {
                path.push(kebab.to_owned());
                place = next;
            }
            Step::Named(next) => {
                path.push(segment.text.clone());
                captures.push(segment.text.clone());
                place = next;
            }
            Step::Rest(row) => {
                let rest = segments[at..]
                    .iter()
                    .map(|segment| segment.text.as_str())
                    .collect::<Vec<_>>()
                    .join(".");
                return Ok((row, SCHEMA.canonical(row, &captures, &rest)));
            }
            Step::Unowned | Step::Unknown => {
                let near = nearest(&segment.text, place.names());
                return Err(unknown(near.map(|near| {
                    path.iter()
                        .map(String::as_str)
                        .chain([near])
                        .collect::<Vec<_>>()
                        .join(".")
                })));
            }
        }
    }
    match place.leaf() {
        Some(row) => Ok((row, SCHEMA.canonical(row, &captures, ""))),
        None => Err(unknown(
            place
                .names()
                .next()
                .map(|name| format!("{}.{name}", path.join("."))),
        )),
    }
}
