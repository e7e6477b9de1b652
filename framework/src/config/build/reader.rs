//! Looks a key up in one section after the other and notes where it was found.

use std::time::Duration;

use crate::config::{
    typed::Positions,
    typing::{Typed, Values},
    value::Value,
};

/// Reads the keys of one section, the first of `bases` that has a key wins.
pub(super) struct Reader<'a> {
    values: &'a Values,
    bases: Vec<Vec<String>>,
    positions: &'a mut Positions,
    /// Stands before a key in [`Positions`], `consumer.` say.
    prefix: &'static str,
}

/// Path steps of a dotted text that holds no names of the user's.
fn steps(dotted: &str) -> impl Iterator<Item = String> + '_ {
    dotted
        .split('.')
        .filter(|step| !step.is_empty())
        .map(str::to_owned)
}

impl<'a> Reader<'a> {
    pub(super) fn new(values: &'a Values, positions: &'a mut Positions) -> Self {
        Self {
            values,
            bases: Vec::new(),
            positions,
            prefix: "",
        }
    }

    /// Adds a place to look: `section.name.below`, of which only `name` may hold dots.
    pub(super) fn below(mut self, section: &str, name: Option<&str>, below: &str) -> Self {
        self.bases.push(
            steps(section)
                .chain(name.map(str::to_owned))
                .chain(steps(below))
                .collect(),
        );
        self
    }

    pub(super) fn prefixed(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    fn find(&mut self, key: &str) -> Option<&'a Typed> {
        let (at, found) = self.bases.iter().enumerate().find_map(|(at, base)| {
            let path: Vec<String> = base.iter().cloned().chain(steps(key)).collect();
            self.values.get(&path).map(|typed| (at, typed))
        })?;
        self.positions
            .set(&format!("{}{key}", self.prefix), found.span.clone(), at > 0);
        Some(found)
    }

    pub(super) fn bool(&mut self, key: &str, into: &mut bool) {
        if let Some(Value::Bool(value)) = self.find(key).map(|typed| &typed.value) {
            *into = *value;
        }
    }

    /// The value of a key that has no default.
    pub(super) fn optional_bool(&mut self, key: &str) -> Option<bool> {
        match self.find(key).map(|typed| &typed.value) {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// A whole number or a size; its bounds in the table keep it within the field's type.
    pub(super) fn number<N: TryFrom<i64>>(&mut self, key: &str, into: &mut N) {
        if let Some(value) = self.optional_number(key) {
            *into = value;
        }
    }

    pub(super) fn optional_number<N: TryFrom<i64>>(&mut self, key: &str) -> Option<N> {
        match self.find(key).map(|typed| &typed.value) {
            Some(Value::Int(value) | Value::Size(value)) => N::try_from(*value).ok(),
            _ => None,
        }
    }

    pub(super) fn float(&mut self, key: &str, into: &mut f64) {
        if let Some(Value::Float(value)) = self.find(key).map(|typed| &typed.value) {
            *into = *value;
        }
    }

    pub(super) fn duration(&mut self, key: &str, into: &mut Duration) {
        if let Some(Value::Duration(millis, nanos)) = self.find(key).map(|typed| &typed.value) {
            // The table's lower bound of every duration is not negative.
            *into = Duration::from_millis(millis.unsigned_abs())
                + Duration::from_nanos(u64::from(*nanos));
        }
    }

    pub(super) fn text(&mut self, key: &str, into: &mut String) {
        if let Some(text) = self.optional_text(key) {
            *into = text;
        }
    }

    pub(super) fn optional_text(&mut self, key: &str) -> Option<String> {
        match self.find(key).map(|typed| &typed.value) {
            Some(Value::Text(value)) if !value.is_empty() => Some(value.clone()),
            _ => None,
        }
    }

    pub(super) fn list(&mut self, key: &str, into: &mut Vec<String>) {
        if let Some(Value::List(value)) = self.find(key).map(|typed| &typed.value) {
            into.clone_from(value);
        }
    }

    pub(super) fn choice<T: Copy>(&mut self, key: &str, words: &[(&str, T)], into: &mut T) {
        if let Some(value) = self.optional_choice(key, words) {
            *into = value;
        }
    }

    pub(super) fn optional_choice<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        match self.find(key).map(|typed| &typed.value) {
            Some(Value::Choice(value)) => words
                .iter()
                .find(|(word, _)| word == value)
                .map(|(_, meaning)| *meaning),
            _ => None,
        }
    }
}
