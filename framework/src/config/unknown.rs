//! What to say about a key that leads nowhere: what it probably was meant to be, or where it belongs.

use std::cmp::Reverse;

use super::{
    relaxed::{distance, nearest, squash},
    report::{Diagnostic, DiagnosticKind},
    schema::{Place, Schema},
};

/// The message for `name`, which does not exist at `place`, the end of the canonical `path`.
pub(crate) fn key(schema: &Schema, place: &Place, path: &[String], name: &str) -> Diagnostic {
    let mut diagnostic =
        Diagnostic::error(DiagnosticKind::UnknownKey, format!("unknown key `{name}`"));
    if let Some(elsewhere) = elsewhere(schema, name, path) {
        let (section, _) = elsewhere.rsplit_once('.').unwrap_or(("", &elsewhere));
        diagnostic = diagnostic
            .label(format!("`{name}` belongs under {section}"))
            .suggest(Some(elsewhere.clone()));
    } else {
        diagnostic = diagnostic.suggest(nearest(name, place.names()).map(str::to_owned));
    }
    if !path.is_empty() {
        diagnostic = diagnostic.note(format!("in {}", path.join(".")));
    }
    diagnostic.note(format!("accepted here: {}", accepted(name, place)))
}

/// The full key of that name which shares most of the path, with the user's names filled in.
fn elsewhere(schema: &Schema, name: &str, path: &[String]) -> Option<String> {
    let wanted = squash(name);
    let shared = |pattern: &[String]| {
        pattern
            .iter()
            .zip(path)
            .take_while(|(a, b)| *a == *b || *a == "*")
            .count()
    };
    let kin = |pattern: &[String]| pattern.iter().filter(|step| path.contains(step)).count();
    let nearness = |pattern: &[String]| (shared(pattern), kin(pattern), Reverse(pattern.len()));
    let found = schema
        .rows()
        .map(|placed| placed.pattern.as_slice())
        .filter(|pattern| pattern.last().is_some_and(|last| squash(last) == wanted))
        .max_by_key(|pattern| nearness(pattern))
        .filter(|pattern| shared(pattern) > 0)?;
    // The name of the binding the key stands in, wherever a pattern wants one.
    let own = path
        .iter()
        .position(|step| step == "bindings")
        .and_then(|at| path.get(at + 1));
    let fill = |step: &String| match (step.as_str(), own) {
        ("*", Some(own)) => own.clone(),
        ("*", None) => "<name>".to_owned(),
        _ => step.clone(),
    };
    Some(found.iter().map(fill).collect::<Vec<_>>().join("."))
}

/// Up to eight names that may stand at `place`, those most like `name` first.
pub(crate) fn accepted(name: &str, place: &Place) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<&str> = place.names().collect();
    let wanted = squash(name);
    if !wanted.is_empty() {
        names.sort_by_key(|candidate| distance(&wanted, &squash(candidate)));
    }
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names.truncate(SHOWN);
    format!("{}{more}", names.join(", "))
}
