//! Values of keys as Spring Boot reads them from files, environment and command line.

use std::fs;

use bindery::config::oracle::{Reading, read, squash_fixed};
use bindery::config::{Diagnostic, DiagnosticKind, LoadOptions};
use serde_json::Value as Json;

use super::corpus::{Judged, Verdict, text};
use super::recorded::flat;

const UNKNOWN: &str = "an unknown key is an error";
const TWICE: &str = "one key twice is an error that names both places";
const PLACEHOLDER: &str = "a placeholder that can't be resolved is an error";
const LOSSY: &str = "a conversion that changes the value is an error";
const DOCUMENT: &str = "a document is a mapping";
const CYCLE: &str = "files that import each other are an error";
const LONG: &str = "no duration is longer than 292 million years";
const ILL_FORMED: &str = "there is no call that could be made with an ill-formed name";
const UNDERSCORES: &str = "doubled underscores of a variable count as one";
const NO_INVENTION: &str = "a variable does not invent a binding that neither program nor file has";
const LAST_WORD: &str = "the command line has the last word, also over SPRING_APPLICATION_JSON";
const ONE_TYPE: &str =
    "a key has one type; none is a set or a list of sections, and an empty list is written";
const BRACKETS: &str =
    "names with other characters stand in brackets; none of their characters is dropped";
const SPELLINGS: &str =
    "names of the user's in several spellings are several names, each with its own value";
const NOTHING: &str = "a key with nothing behind it keeps its default";
const SOURCE_TEXT: &str = "a scalar bound to text keeps its source text";
const RELAXED_NAMES: &str = "placeholder names are relaxed in every spelling";
const ONE_IS_TRUE: &str = "an unquoted 1 is true, an unquoted 0 false";
const POSITION: &str = "the position is that of the text, not of its anchor or block indicator";
const OLD_PROFILES: &str = "the old spelling of profile documents is accepted with a warning";

/// 64 bits of milliseconds, in nanoseconds.
const LONGEST: i128 = i64::MAX as i128 * 1_000_000;

pub(crate) fn judge(_: &Json, case: &Json) -> Judged {
    let (input, out) = (&case["in"], &case["out"]);
    let asked = Asked {
        key: text(input, "key")?,
        kind: text(input, "type")?,
        input,
        out,
    };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    for (name, content) in pairs(&input["files"]) {
        fs::write(folder.path().join(name), content).map_err(|error| error.to_string())?;
    }
    let arguments = input["args"].as_array().into_iter().flatten();
    let options = LoadOptions {
        working_dir: Some(folder.path().to_owned()),
        env: pairs(&input["env"]),
        args: arguments
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect(),
        ..LoadOptions::default()
    };
    let Some(reading) = read(asked.key, asked.kind, &options) else {
        return Ok(Verdict::Refused(ONE_TYPE));
    };
    match asked.problem(&reading) {
        None => Ok(Verdict::Passed),
        Some(problem) => asked
            .difference(&reading)
            .map(Verdict::Refused)
            .ok_or(problem),
    }
}

fn pairs(json: &Json) -> Vec<(String, String)> {
    let pairs = json.as_object().into_iter().flatten();
    pairs
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

struct Asked<'a> {
    key: &'a str,
    kind: &'a str,
    input: &'a Json,
    out: &'a Json,
}

impl Asked<'_> {
    /// What is wrong with our answer; nothing when it is Boot's.
    fn problem(&self, reading: &Reading) -> Option<String> {
        let messages = |errors: &[Diagnostic]| {
            let texts: Vec<&str> = errors.iter().map(|error| &*error.message).collect();
            texts.join("; ")
        };
        match (self.out.get("error"), reading.errors.as_slice()) {
            (Some(_), [_, ..]) => None,
            (Some(error), []) => Some(format!("{error} expected, none reported")),
            (None, []) => self.wrong_value(reading),
            (None, errors) => Some(format!("unexpected: {}", messages(errors))),
        }
    }

    fn wrong_value(&self, reading: &Reading) -> Option<String> {
        let (ours, expected) = (ours(reading), self.expected());
        if ours != expected {
            return Some(format!("{ours:?} instead of {expected:?}"));
        }
        let origin = reading.origin.as_deref()?;
        let expected = self.out["origin"].as_str()?;
        (origin != expected).then(|| format!("at {origin} instead of {expected}"))
    }

    /// The recorded answer as path and text, in order.
    fn expected(&self) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        if let Some(value) = self.out.get("value") {
            flat(String::new(), value, &mut pairs);
        }
        for (path, _) in &mut pairs {
            *path = squash_fixed(path);
        }
        pairs.sort();
        pairs
    }

    /// Why our answer differs on purpose.
    fn difference(&self, reading: &Reading) -> Option<&'static str> {
        if let Some(error) = reading.errors.first() {
            return self.refusal(error);
        }
        let (ours, expected) = (ours(reading), self.expected());
        if self.out.get("error").is_some() {
            return self.acceptance(&ours);
        }
        if ours == expected {
            // Only the position differs.
            return self.is_marked().then_some(POSITION);
        }
        self.other_type()
            .or_else(|| self.other_source(&ours, &expected))
            .or_else(|| self.other_name(&ours))
            .or_else(|| self.other_text(&ours, &expected))
    }

    /// We report an error where Boot has a value.
    fn refusal(&self, error: &Diagnostic) -> Option<&'static str> {
        Some(match error.kind {
            DiagnosticKind::Duplicate => TWICE,
            DiagnosticKind::UnknownKey | DiagnosticKind::UnknownName if self.has_list() => ONE_TYPE,
            DiagnosticKind::UnknownKey | DiagnosticKind::UnknownName => UNKNOWN,
            DiagnosticKind::Placeholder => PLACEHOLDER,
            DiagnosticKind::WrongType | DiagnosticKind::WrongValue
                if self.kind.starts_with("duration") =>
            {
                LONG
            }
            DiagnosticKind::WrongValue if self.group() == "map" => BRACKETS,
            DiagnosticKind::WrongType | DiagnosticKind::WrongValue => LOSSY,
            DiagnosticKind::Syntax | DiagnosticKind::File if self.key.starts_with("document") => {
                DOCUMENT
            }
            DiagnosticKind::Syntax | DiagnosticKind::File | DiagnosticKind::Conflict
                if self.files().any(|(_, text)| text.contains("import")) =>
            {
                CYCLE
            }
            _ => return None,
        })
    }

    /// We have a value, or nothing, where Boot reports an error.
    fn acceptance(&self, ours: &[(String, String)]) -> Option<&'static str> {
        let exception = self.out["exception"].as_str().unwrap_or_default();
        match exception {
            "InvalidConfigurationPropertyNameException" => Some(ILL_FORMED),
            "InvalidConfigDataPropertyException" => Some(OLD_PROFILES),
            "ConverterNotFoundException" if self.kind == "boolean" => Some(ONE_IS_TRUE),
            "ConverterNotFoundException" if ours.is_empty() => Some(NOTHING),
            _ => None,
        }
    }

    fn files(&self) -> impl Iterator<Item = (&String, &str)> {
        let files = self.input["files"].as_object().into_iter().flatten();
        files.filter_map(|(name, text)| Some((name, text.as_str()?)))
    }

    fn has_list(&self) -> bool {
        self.files().any(|(_, text)| text.contains("items"))
    }

    fn group(&self) -> &str {
        self.input["group"].as_str().unwrap_or_default()
    }

    /// Whether an anchor, a tag or a block indicator stands where Boot sees the value.
    fn is_marked(&self) -> bool {
        let Some(origin) = self.out["origin"].as_str() else {
            return false;
        };
        let mut place = origin
            .rsplitn(3, ':')
            .filter_map(|part| part.parse::<usize>().ok());
        let (Some(column), Some(line)) = (place.next(), place.next()) else {
            return false;
        };
        self.files().any(|(name, text)| {
            let mut lines = text.lines().skip(line.saturating_sub(1));
            let mark = lines
                .next()
                .and_then(|line| line.chars().nth(column.saturating_sub(1)));
            origin.starts_with(&**name) && mark.is_some_and(|mark| "&!|>".contains(mark))
        })
    }

    /// The case asks for a type that the key does not have.
    fn other_type(&self) -> Option<&'static str> {
        let sections = self.kind.starts_with("set<")
            || self.kind.contains("Nested")
            || self.key.contains('[')
            || self.has_list();
        let text_of_list = self.key == "app.servers" && !self.kind.starts_with("list");
        let empty = self.files().any(|(_, text)| text.contains("[]"));
        (sections || text_of_list || empty).then_some(ONE_TYPE)
    }

    /// The value comes from elsewhere, or from nowhere.
    fn other_source(
        &self,
        ours: &[(String, String)],
        expected: &[(String, String)],
    ) -> Option<&'static str> {
        let names = pairs(&self.input["env"]);
        let has = |part: &str| {
            names
                .iter()
                .any(|(name, _)| name.to_uppercase().contains(part))
        };
        let arguments = self.input["args"]
            .as_array()
            .is_some_and(|args| !args.is_empty());
        if expected.is_empty() && has("__") {
            Some(UNDERSCORES)
        } else if ours.is_empty() && has("_BINDINGS_") {
            Some(NO_INVENTION)
        } else if has("SPRING_APPLICATION_JSON") && arguments {
            Some(LAST_WORD)
        } else {
            None
        }
    }

    /// Names that are the user's own.
    fn other_name(&self, ours: &[(String, String)]) -> Option<&'static str> {
        if self.group() != "map" || !(self.key == "app.labels" || self.kind == "Props") {
            return None;
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/".contains(c);
        let squashed = |path: &str| path.to_lowercase().replace(['-', '_'], "");
        let twins = ours.iter().enumerate().any(|(at, (path, _))| {
            ours[..at]
                .iter()
                .any(|(other, _)| squashed(other) == squashed(path))
        });
        if twins {
            return Some(SPELLINGS);
        }
        let special = |path: &str| path.contains(|c| !plain(c)) || path.matches('/').count() > 1;
        let special = ours.iter().any(|(path, _)| special(path));
        (special || self.files().any(|(_, text)| text.contains("\"["))).then_some(BRACKETS)
    }

    /// The same value, written in another way.
    fn other_text(
        &self,
        ours: &[(String, String)],
        expected: &[(String, String)],
    ) -> Option<&'static str> {
        if expected.iter().any(|(_, value)| value.contains("${")) {
            return Some(RELAXED_NAMES);
        }
        let too_long = |value: &str| value.parse().is_ok_and(|nanos: i128| nanos > LONGEST);
        if self.kind.starts_with("duration") && expected.iter().any(|(_, value)| too_long(value)) {
            return Some(LONG);
        }
        let differing = |mine: &[(String, String)], others: &[(String, String)]| {
            let values = mine.iter().filter(|pair| !others.contains(pair)).cloned();
            values.collect::<Vec<_>>()
        };
        let (mine, java) = (differing(ours, expected), differing(expected, ours));
        if mine.is_empty() && java.iter().all(|(_, value)| value.is_empty()) {
            return Some(NOTHING);
        }
        let written = |value: &str| self.files().any(|(_, text)| text.contains(value));
        (!mine.is_empty() && mine.iter().all(|(_, value)| written(value))).then_some(SOURCE_TEXT)
    }
}

/// Our values, in order.
fn ours(reading: &Reading) -> Vec<(String, String)> {
    let mut values = reading.values.clone();
    // The record leaves out what is the bean's default.
    values.retain(|pair| *pair != ("nested/count".to_owned(), "1".to_owned()));
    values.sort();
    values
}
