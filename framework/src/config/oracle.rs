//! Keys of any type, as the recorded cases of Spring Boot ask for them; for the workspace's tests alone.
//!
//! ```text
//! key, type of a case ─▶ Schema of a made-up application ─gather─▶ Reading: values below the key, what was reported
//! ```
#![allow(missing_docs, reason = "not part of the public interface")]

use super::{
    Diagnostic, LoadOptions,
    load::gather,
    relaxed::squash,
    schema::{Choice, Kind, Row, Schema, Section, State, TextRule, Unit},
    value::Value,
};

/// What a key comes to.
#[derive(Debug)]
pub struct Reading {
    /// Path below the key (empty for the key itself, `/` between steps, fixed names squashed) and the value as text.
    pub values: Vec<(String, String)>,
    /// The errors alone.
    pub errors: Vec<Diagnostic>,
    /// `file:line:column` of the key's own value.
    pub origin: Option<String>,
}

/// Reads a key as a type in the notation of the recorded cases; `None` for a type that no key can have.
#[must_use]
pub fn read(key: &str, kind: &str, options: &LoadOptions) -> Option<Reading> {
    let gathered = gather(&schema(key, kind)?, options, None);
    let mut values: Vec<(String, String)> = gathered
        .values
        .iter()
        .map(|(path, typed)| (path.join("/"), shown(&typed.value)))
        .collect();
    if kind == "Props" || values.iter().all(|(path, _)| squash(path) != squash(key)) {
        let below = format!("{}/", key.replace('.', "/"));
        values.retain(|(path, _)| path.starts_with(&below));
        for (path, _) in &mut values {
            *path = squash_fixed(&path[below.len()..]);
        }
    } else {
        values.retain(|(path, _)| squash(path) == squash(key));
        for (path, _) in &mut values {
            path.clear();
        }
    }
    let origin = gathered.tree.find(key);
    Some(Reading {
        values,
        errors: gathered
            .report
            .into_iter()
            .filter(Diagnostic::is_error)
            .collect(),
        origin: origin.map(|(setting, _)| setting.entry.span.to_string()),
    })
}

/// Fixed names without case and dashes, map keys as they are.
#[must_use]
pub fn squash_fixed(path: &str) -> String {
    match path.split_once('/') {
        Some((section, rest)) => format!("{}/{rest}", squash(section)),
        None => squash(path),
    }
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
        state: State::Live,
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
