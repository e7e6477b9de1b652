//! What Spring Boot itself answered (3.2.12, recorded), case by case.
//!
//! Where Bindery differs on purpose the case is listed in [`DIFFERENT`] with its reason; everything else must match.

use std::{fs, path::Path};

use serde_json::Value as Json;

use super::super::{
    LoadOptions,
    load::{Gathered, gather},
    relaxed::squash,
    schema::{Choice, Kind, Row, Schema, Section, TextRule, Unit},
    value::Value,
};

/// Cases in which the answer is another one, with the reason.
const DIFFERENT: &[(&[u64], &str)] = &[
    (&[16, 135, 178, 203], "an unknown key is an error"),
    (
        &[42, 43, 44, 46, 47, 49, 50],
        "one key twice is an error that names both places",
    ),
    (
        &[20, 21, 24],
        "there is no call that could be made with an ill-formed name",
    ),
    (&[80], "doubled underscores of a variable count as one"),
    (
        &[90],
        "a variable does not invent a binding that neither program nor file has",
    ),
    (
        &[115],
        "the command line has the last word, also over SPRING_APPLICATION_JSON",
    ),
    (
        &[151, 158, 174, 175, 176, 180, 181],
        "a key has one type; none is a set or a list of sections, and an empty list is written",
    ),
    (
        &[188, 205],
        "names with other characters stand in brackets; none of their characters is dropped",
    ),
    (
        &[194, 195],
        "names of the user's in several spellings are several names, each with its own value",
    ),
    (
        &[196, 215, 517, 518],
        "a key with nothing behind it keeps its default",
    ),
    (
        &[216, 313, 331, 339, 522, 523, 525],
        "a scalar bound to text keeps its source text",
    ),
    (
        &[220, 237, 238, 261],
        "a placeholder that cannot be resolved is an error",
    ),
    (
        &[234, 266],
        "placeholder names are relaxed in every spelling",
    ),
    (&[289], "an unquoted 1 is true"),
    (
        &[336, 342, 374, 491],
        "a conversion that changes the value is an error",
    ),
    (&[426], "no duration is longer than 292 million years"),
    (
        &[532, 568, 569],
        "the position is that of the text, not of its anchor or block indicator",
    ),
    (&[582], "a document is a mapping"),
    (
        &[689],
        "the old spelling of profile documents is accepted with a warning",
    ),
    (&[696], "files that import each other are an error"),
];

#[test]
fn spring_boot_answers_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/oracle/relaxed.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let (mut passed, mut refused, mut failed) = (0, 0, Vec::new());
    for line in text.lines().skip(1) {
        let case: Json = serde_json::from_str(line).unwrap();
        let id = case["id"].as_u64().unwrap();
        let different = DIFFERENT.iter().any(|(ids, _)| ids.contains(&id));
        match (judge(&case), different) {
            (Ok(()), false) => passed += 1,
            (Err(_), true) => refused += 1,
            (Ok(()), true) => {
                failed.push(format!("{id}: matches although it is listed as different"));
            }
            (Err(reason), false) => failed.push(format!("{id}: {reason}")),
        }
    }
    println!(
        "relaxed: {passed} passed, {} failed, {refused} refused",
        failed.len()
    );
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

const FROM: Kind = Kind::Choice(&[
    choice("CONSUME_FROM_LAST_OFFSET"),
    choice("CONSUME_FROM_FIRST_OFFSET"),
    choice("CONSUME_FROM_TIMESTAMP"),
]);
const MODE: Kind = Kind::Choice(&[choice("none"), choice("headers"), choice("embeddedHeaders")]);
const STRINGS: Kind = Kind::List {
    separators: &[','],
    rule: TextRule::Any,
};
const TEXT: Kind = Kind::Text(TextRule::Any);
const INT: Kind = Kind::Int {
    min: i32::MIN as i64,
    max: i32::MAX as i64,
};

const fn choice(name: &'static str) -> Choice {
    Choice { name, later: false }
}

const fn duration(unit: Unit) -> Kind {
    Kind::Duration {
        unit,
        min: i64::MIN,
        max: i64::MAX,
    }
}

const fn size(bare: i64) -> Kind {
    Kind::Size {
        bare,
        min: i64::MIN,
        max: i64::MAX,
    }
}

const fn row(key: &'static str, kind: Kind) -> Row {
    Row {
        key,
        aliases: &[],
        kind,
        default: "",
        doc: "",
        state: super::super::schema::State::Live,
        secret: false,
    }
}

/// The bean of the recorded cases.
static PROPS: &[Row] = &[
    row("name-server", TEXT),
    row("send-msg-timeout", INT),
    row("vip-channel-enabled", Kind::Bool),
    row("consume-from-where", FROM),
    row("poll-timeout", duration(Unit::Millis)),
    row("interval", duration(Unit::Seconds)),
    row("max-size", size(1)),
    row("limit", size(1024)),
    row("servers", STRINGS),
    row("labels.**", TEXT),
    row("bindings.*.name", TEXT),
    row("bindings.*.count", INT),
    row("nested.name", TEXT),
    row("nested.count", INT),
    row("use-tls", Kind::Bool),
    row("url-path", TEXT),
    row("x1-y2", INT),
];
static PROPS_SECTION: Section = Section {
    bases: &["app"],
    rows: PROPS,
};
static AROUND: Section = Section {
    bases: &["spring"],
    rows: &[
        row("config.import", STRINGS),
        row("config.activate.on-profile", STRINGS),
        row("profiles.active", STRINGS),
        row("profiles.include", STRINGS),
        row("profiles.default", STRINGS),
        row("profiles.group.*", STRINGS),
        row("profiles", STRINGS),
    ],
};

/// A schema in which the case's key has the case's type, if it isn't one of the bean's.
fn schema(key: &str, kind: &str) -> Option<Schema> {
    if kind == "Props" {
        return Some(Schema::of(&[&PROPS_SECTION, &AROUND], &["app"]));
    }
    macro_rules! with {
        ($kind:expr) => {{
            static ROWS: &[Row] = &[row("v", $kind)];
            static SECTION: Section = Section {
                bases: &["app"],
                rows: ROWS,
            };
            &SECTION
        }};
    }
    let own = match kind {
        "boolean" => with!(Kind::Bool),
        "int" => with!(INT),
        "long" => with!(Kind::Int {
            min: i64::MIN,
            max: i64::MAX
        }),
        "double" => with!(Kind::Float {
            min: f64::NEG_INFINITY
        }),
        "duration" => with!(duration(Unit::Millis)),
        "duration(s)" => with!(duration(Unit::Seconds)),
        "datasize" => with!(size(1)),
        "datasize(KB)" => with!(size(1024)),
        "enum From" => with!(FROM),
        "enum Mode" => with!(MODE),
        "string" => with!(TEXT),
        "map<int>" => {
            static ROWS: &[Row] = &[row("labels.**", INT)];
            static SECTION: Section = Section {
                bases: &["app"],
                rows: ROWS,
            };
            return Some(Schema::of(&[&SECTION], &["app"]));
        }
        _ => return (key != "app.v").then(|| Schema::of(&[&PROPS_SECTION, &AROUND], &["app"])),
    };
    Some(if key == "app.v" {
        Schema::of(&[own, &AROUND], &["app"])
    } else {
        Schema::of(&[&PROPS_SECTION, &AROUND], &["app"])
    })
}

/// Compares our answer with the recorded one.
fn judge(case: &Json) -> Result<(), String> {
    let (input, out) = (&case["in"], &case["out"]);
    let (key, kind) = (
        input["key"].as_str().unwrap(),
        input["type"].as_str().unwrap(),
    );
    let Some(schema) = schema(key, kind) else {
        return Err(format!("no row of type {kind}"));
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in input["files"].as_object().into_iter().flatten() {
        fs::write(folder.path().join(name), text.as_str().unwrap()).unwrap();
    }
    let pairs = |json: &Json| -> Vec<(String, String)> {
        json.as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect()
    };
    let args = input["args"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|arg| arg.as_str().unwrap().to_owned())
        .collect();
    let options = LoadOptions {
        working_dir: Some(folder.path().to_owned()),
        env: pairs(&input["env"]),
        args,
        ..LoadOptions::default()
    };
    let gathered = gather(&schema, &options, None);
    let errors: Vec<String> = gathered
        .report
        .iter()
        .filter(|diagnostic| diagnostic.is_error())
        .map(super::line)
        .collect();
    match (out.get("error"), errors.as_slice()) {
        (Some(_), [_, ..]) => Ok(()),
        (Some(error), []) => Err(format!("{error} expected, none reported")),
        (None, []) => answer(&gathered, key, kind, out),
        (None, errors) => Err(format!("unexpected: {}", errors.join("; "))),
    }
}

fn answer(gathered: &Gathered, key: &str, kind: &str, out: &Json) -> Result<(), String> {
    let expected = expected(out);
    let mut ours: Vec<(String, String)> = gathered
        .values
        .iter()
        .map(|(path, typed)| (path.join("/"), shown(&typed.value)))
        .collect();
    let found = gathered.tree.find(key);
    if kind == "Props" || ours.iter().all(|(path, _)| squash(path) != squash(key)) {
        let below = format!("{}/", key.replace('.', "/"));
        ours.retain(|(path, _)| path.starts_with(&below));
        for (path, _) in &mut ours {
            *path = path[below.len()..].to_owned();
        }
    } else {
        ours.retain(|(path, _)| squash(path) == squash(key));
        for (path, _) in &mut ours {
            path.clear();
        }
    }
    // The record leaves out what is the bean's default.
    ours.retain(|pair| *pair != ("nested/count".to_owned(), "1".to_owned()));
    let normal = |pairs: Vec<(String, String)>| {
        let mut pairs: Vec<_> = pairs
            .into_iter()
            .map(|(path, value)| (squash_fixed(&path), value))
            .collect();
        pairs.sort();
        pairs
    };
    let (ours, expected) = (normal(ours), normal(expected));
    if ours != expected {
        return Err(format!("{ours:?} instead of {expected:?}"));
    }
    match (out["origin"].as_str(), found) {
        (Some(origin), Some((setting, _))) if setting.entry.span.to_string() != origin => {
            Err(format!("at {} instead of {origin}", setting.entry.span))
        }
        _ => Ok(()),
    }
}

/// Fixed names without case and dashes, map keys as they are.
fn squash_fixed(path: &str) -> String {
    match path.split_once('/') {
        Some((section, rest)) => format!("{}/{rest}", squash(section)),
        None => squash(path),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) | Value::Size(value) => value.to_string(),
        Value::Float(value) if value.is_infinite() => "Infinity".to_owned(),
        Value::Float(value) => format!("{value:?}"),
        Value::Duration(millis, nanos) => {
            (i128::from(*millis) * 1_000_000 + i128::from(*nanos)).to_string()
        }
        Value::Text(value) => value.clone(),
        Value::Choice(value) => (*value).to_owned(),
        Value::List(items) => format!("{items:?}"),
    }
}

/// The recorded answer as path and text.
fn expected(out: &Json) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    if let Some(value) = out.get("value") {
        flat(String::new(), value, &mut pairs);
    }
    pairs
}

fn flat(path: String, value: &Json, into: &mut Vec<(String, String)>) {
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}/{name}")
        }
    };
    let v = &value["v"];
    match value["t"].as_str().unwrap_or_default() {
        "props" => value["changed"]
            .as_object()
            .unwrap()
            .iter()
            .for_each(|(name, value)| flat(name.clone(), value, into)),
        "object" => {
            for (name, value) in v.as_object().unwrap().iter().filter(|(name, value)| {
                !value.is_null() && (*name, *value) != (&"count".to_owned(), &Json::from(1))
            }) {
                into.push((
                    below(name),
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned),
                ));
            }
        }
        "map" => v
            .as_array()
            .unwrap()
            .iter()
            .for_each(|pair| flat(below(pair[0].as_str().unwrap()), &pair[1], into)),
        "list" => {
            let items: Vec<&str> = v
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["v"].as_str().unwrap_or("?"))
                .collect();
            into.push((path, format!("{items:?}")));
        }
        "duration" => into.push((path, java_duration(v.as_str().unwrap()).to_string())),
        _ => into.push((
            path,
            v.as_str().map_or_else(|| v.to_string(), str::to_owned),
        )),
    }
}

/// Nanoseconds of a duration as Java prints it.
fn java_duration(text: &str) -> i128 {
    let mut nanos = 0;
    let mut number = String::new();
    for c in text.trim_start_matches("PT").chars() {
        let unit = match c {
            'H' => 3_600_000_000_000.0,
            'M' => 60_000_000_000.0,
            'S' => 1_000_000_000.0,
            _ => {
                number.push(c);
                continue;
            }
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        let scale = 10_f64.powi(i32::try_from(fraction.len()).unwrap());
        let sign = if whole.starts_with('-') { -1.0 } else { 1.0 };
        let value = whole.parse::<i64>().unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "fractions of a second fit")]
        let part = (sign * fraction.parse::<f64>().unwrap_or(0.0) / scale * unit) as i128;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a whole number of nanoseconds"
        )]
        let unit = unit as i128;
        nanos += i128::from(value) * unit + part;
        number.clear();
    }
    nanos
}
