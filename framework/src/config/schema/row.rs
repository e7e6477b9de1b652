//! What a row of the table says: spelling, type, bounds, default, and whether its run time exists.

/// One key.
#[derive(Debug)]
pub(crate) struct Row {
    /// Kebab case, relative to the section; `*` is a name of the user's, `**` everything below.
    pub(crate) key: &'static str,
    /// Other spellings that squashing doesn't cover; with a leading `/` an absolute path.
    pub(crate) aliases: &'static [&'static str],
    pub(crate) kind: Kind,
    /// The default as it would be written; empty: none.
    pub(crate) default: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) state: State,
    /// Never printed.
    pub(crate) secret: bool,
}

/// Whether a key acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It acts.
    Live,
    /// Its run time does not exist yet: an error, unless the value is the default and so asks for nothing.
    Later,
    /// Accepted for files shared with Java and told about once; it has no effect here.
    Ignored,
    /// Never supported; the text says what to use instead.
    Refused(&'static str),
    /// Settings of a binder that is not part of this program.
    Foreign,
}

/// The unit of a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Millis,
    Seconds,
    Minutes,
}

/// Bounds of a text beyond being text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextRule {
    Any,
    /// One or several topics, separated by commas.
    Topics,
    Group,
    /// `type/subtype; parameter=value`
    Mime,
    /// A path that starts with `/`.
    Path,
    IpAddress,
    /// Tags as `A || B`.
    Tags,
    /// A time as [`crate::config::consume_timestamp`] reads it.
    Timestamp,
    /// A name server: `host:port`, an IPv6 address in brackets, or an `http://` address that lists them.
    Address,
    /// An expression over payload and headers.
    Expression,
}

/// One accepted word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) name: &'static str,
    /// Its run time does not exist yet.
    pub(crate) later: bool,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Bool,
    Int {
        min: i64,
        max: i64,
    },
    Float {
        min: f64,
    },
    /// Bounds in milliseconds.
    Duration {
        unit: Unit,
        min: i64,
        max: i64,
    },
    /// Bytes; `bare` is what a bare number counts.
    Size {
        bare: i64,
        min: i64,
        max: i64,
    },
    Text(TextRule),
    /// A sequence, or one text split at one of `separators`.
    List {
        separators: &'static [char],
        rule: TextRule,
    },
    Choice(&'static [Choice]),
}

impl Row {
    pub(super) const fn new(
        key: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        Self {
            key,
            aliases: &[],
            kind,
            default,
            doc,
            state: State::Live,
            secret: false,
        }
    }

    pub(super) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(super) const fn later(self) -> Self {
        Self {
            state: State::Later,
            ..self
        }
    }

    pub(super) const fn ignored(self) -> Self {
        Self {
            state: State::Ignored,
            ..self
        }
    }

    pub(super) const fn refused(self, advice: &'static str) -> Self {
        Self {
            state: State::Refused(advice),
            ..self
        }
    }

    pub(super) const fn foreign(self) -> Self {
        Self {
            state: State::Foreign,
            ..self
        }
    }

    pub(super) const fn secret(self) -> Self {
        Self {
            secret: true,
            ..self
        }
    }
}

pub(super) const BOOL: Kind = Kind::Bool;
pub(super) const TEXT: Kind = Kind::Text(TextRule::Any);
pub(super) const NAMES: Kind = Kind::List {
    separators: &[','],
    rule: TextRule::Any,
};
pub(super) const SEMICOLON_NAMES: Kind = Kind::List {
    separators: &[';'],
    rule: TextRule::Any,
};

pub(super) const fn text(rule: TextRule) -> Kind {
    Kind::Text(rule)
}

pub(super) const fn int(min: i64, max: i64) -> Kind {
    Kind::Int { min, max }
}

/// A count that fits 31 bits.
pub(super) const fn count(min: i64) -> Kind {
    int(min, i32::MAX as i64)
}

pub(super) const fn millis(min: i64, max: i64) -> Kind {
    Kind::Duration {
        unit: Unit::Millis,
        min,
        max,
    }
}

pub(super) const fn live(name: &'static str) -> Choice {
    Choice { name, later: false }
}

pub(super) const fn later(name: &'static str) -> Choice {
    Choice { name, later: true }
}

/// One day: no pause or timeout of a running service is longer.
pub(super) const DAY: i64 = 24 * 60 * 60 * 1000;

impl Kind {
    /// The type in words, for messages: "a number from 1 to 1024".
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Int { min, max } => format!("a whole number{}", between(*min, *max, "")),
            Self::Float { min } => format!("a number of at least {min}"),
            Self::Duration { unit, min, max } => {
                let word = match unit {
                    Unit::Millis => "milliseconds",
                    Unit::Seconds => "seconds",
                    Unit::Minutes => "minutes",
                };
                format!(
                    "a duration such as 500ms, 10s or 2m (a bare number counts {word}){}",
                    between(*min, *max, " ms")
                )
            }
            Self::Size { min, max, .. } => format!(
                "a size such as 4096, 4KB or 4MB{}",
                between(*min, *max, " bytes")
            ),
            Self::Text(rule) => rule.expected().to_owned(),
            Self::List { separators, .. } => {
                let separators: Vec<String> = separators.iter().map(|c| format!("`{c}`")).collect();
                format!(
                    "a list, or one text separated by {}",
                    separators.join(" or ")
                )
            }
            Self::Choice(choices) => {
                let names: Vec<&str> = choices
                    .iter()
                    .filter(|choice| !choice.later)
                    .map(|choice| choice.name)
                    .collect();
                names.join(", ")
            }
        }
    }
}

fn between(min: i64, max: i64, unit: &str) -> String {
    match (min, max) {
        (i64::MIN, i64::MAX) => String::new(),
        (min, max) if max >= i64::from(i32::MAX) => format!(" of at least {min}{unit}"),
        (min, max) => format!(" from {min} to {max}{unit}"),
    }
}

impl TextRule {
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Any => "text",
            Self::Timestamp => {
                "a time as 20220117110148 (local), 2022-01-17T11:01:48+08:00 or milliseconds since 1970"
            }
            Self::Topics => {
                "topic names of letters, digits, `_`, `-`, `%` and `|`, at most 127 characters, separated by commas"
            }
            Self::Group => {
                "a group name of letters, digits, `_`, `-`, `%` and `|`, at most 120 characters"
            }
            Self::Mime => "a content type such as application/json",
            Self::Path => "a path that starts with `/`",
            Self::IpAddress => "an IP address",
            Self::Tags => "tags such as `TagA || TagB`",
            Self::Address => "`host:port`",
            Self::Expression => "an expression such as payload['id'] or headers['key']",
        }
    }
}
