//! The application's own sections, handed to its own serde types by figment.
//!
//! ```text
//! Tree ──keys below a prefix──▶ figment::Provider ──extract──▶ T: Deserialize
//! ```
//! Placeholders are resolved, profiles and every source have had their say. Field names are taken as they are spelled:
//! `#[serde(rename_all = "kebab-case")]` suits files written in Spring's manner.

use figment::{
    Error, Figment, Metadata, Profile, Provider,
    value::{Dict, Map, Value},
};
use serde::de::DeserializeOwned;

use super::{Loaded, layer::Raw, schema::SCHEMA, span::Span, typing::Typing};

/// A section is not what the application's type expects.
#[derive(Debug, thiserror::Error)]
pub enum SectionError {
    /// A placeholder has no value.
    #[error("a placeholder of `{key}` at {span} cannot be resolved")]
    Placeholder {
        /// The key as it was written.
        key: String,
        /// Where its value stands.
        span: Span,
    },
    /// The type doesn't fit.
    #[error("section `{section}`: {source}{}", span.as_ref().map(|span| format!(" ({span})")).unwrap_or_default())]
    Type {
        /// The section's prefix.
        section: String,
        /// Where the value stands that doesn't fit.
        span: Option<Span>,
        /// What figment says.
        #[source]
        source: Box<Error>,
    },
}

impl Loaded {
    /// Reads everything below `prefix` (`orders.limits`, say) into `T`.
    ///
    /// # Errors
    /// [`SectionError`] when a placeholder can't be resolved or a value doesn't fit `T`.
    pub fn section<T: DeserializeOwned>(&self, prefix: &str) -> Result<T, SectionError> {
        let section = Section {
            prefix: prefix.to_owned(),
            dict: self.dict(prefix)?,
        };
        Figment::from(section).extract().map_err(|error| {
            let path: Vec<String> = prefix
                .split('.')
                .map(str::to_owned)
                .chain(error.path.iter().cloned())
                .collect();
            let span = self
                .tree
                .history(&path)
                .last()
                .map(|setting| setting.entry.span.clone());
            SectionError::Type {
                section: prefix.to_owned(),
                span,
                source: Box::new(error),
            }
        })
    }

    fn dict(&self, prefix: &str) -> Result<Dict, SectionError> {
        let typing = Typing::new(&SCHEMA, &self.tree, &self.env);
        let prefix: Vec<&str> = prefix.split('.').collect();
        let mut dict = Dict::new();
        for setting in self.tree.winners() {
            let entry = &setting.entry;
            let Some(below) = strip(&entry.path, &prefix) else {
                continue;
            };
            let resolve = |text: &str| {
                typing
                    .foreign_text(text)
                    .map_err(|_unresolved| SectionError::Placeholder {
                        key: entry.spelled.clone(),
                        span: entry.span.clone(),
                    })
            };
            let value = match &entry.raw {
                Raw::Scalar(scalar) if scalar.null => continue,
                Raw::Scalar(scalar) => scalar_value(&resolve(&scalar.text)?, scalar.plain),
                Raw::List(items) => {
                    let items = items
                        .iter()
                        .map(|(scalar, _)| Ok(scalar_value(&resolve(&scalar.text)?, scalar.plain)));
                    Value::from(items.collect::<Result<Vec<Value>, SectionError>>()?)
                }
            };
            insert(&mut dict, below, value);
        }
        Ok(dict)
    }
}

fn strip<'a>(path: &'a [String], prefix: &[&str]) -> Option<&'a [String]> {
    let (head, below) = path.split_at_checked(prefix.len())?;
    (head.iter().zip(prefix).all(|(a, b)| a == b) && !below.is_empty()).then_some(below)
}

fn insert(dict: &mut Dict, path: &[String], value: Value) {
    match path {
        [] => {}
        [last] => {
            dict.insert(last.clone(), value);
        }
        [first, below @ ..] => {
            let entry = dict
                .entry(first.clone())
                .or_insert_with(|| Value::from(Dict::new()));
            if let Value::Dict(_, inner) = entry {
                insert(inner, below, value);
            }
        }
    }
}

/// There is no schema here, so plain scalars get the type of YAML 1.2's core schema, quoted ones are text.
fn scalar_value(text: &str, plain: bool) -> Value {
    if !plain {
        return Value::from(text);
    }
    match text {
        "true" => return Value::from(true),
        "false" => return Value::from(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::from(number);
    }
    match text.parse::<f64>() {
        Ok(number) if text.contains(|c: char| c.is_ascii_digit()) => Value::from(number),
        _ => Value::from(text),
    }
}

/// One section as figment sees it.
struct Section {
    prefix: String,
    dict: Dict,
}

impl Provider for Section {
    fn metadata(&self) -> Metadata {
        Metadata::named(format!("section {}", self.prefix))
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Map::from([(Profile::Default, self.dict.clone())]))
    }
}
