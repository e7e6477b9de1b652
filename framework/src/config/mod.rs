//! Configuration that can't be misread: Spring's keys from files, profiles, environment and command line, every mistake
//! at once with file, line and column, before anything connects.
//!
//! ```text
//! files ─┬─ yaml, properties ─▶ Node ─┐
//! env ───┼────────────────────────────┼─ along the Schema ─▶ Layer … ─merge─▶ Tree ─placeholders, types─▶ Values ─▶ Config
//! args ──┤                            │        │                               │                          │
//! code ──┘                            ┘        ▼                               ▼                          ▼
//!                                   unknown keys, duplicates          unresolved, wrong types     rules, unused bindings
//!                                              └───────────────▶ ConfigErrors ◀───────────────────────────┘
//! ```
//! The schema table is the only place where a key is written down; positions come from the parser's events.

mod arguments;
mod build;
mod check;
mod document;
mod env;
mod explain;
mod extensions;
mod files;
mod flags;
mod layer;
mod load;
mod node;
#[cfg(feature = "oracle")]
#[doc(hidden)]
pub mod oracle;
mod placeholder;
mod profile;
mod properties;
pub(crate) mod relaxed;
mod report;
mod rules;
mod schema;
mod search;
mod section;
mod span;
mod timestamp;
mod told;
mod transactions;
mod tree;
pub mod typed;
mod typing;
mod unknown;
mod value;
mod yaml;
mod yaml_1_1;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use check::{DeclaredBinding, Usage, check_usage};
pub use explain::UnknownKey;
pub use flags::Flags;
pub use report::{
    ConfigErrors, Diagnostic, DiagnosticKind, EXIT_CONFIG, Severity, report_json, report_text,
};
pub use section::SectionError;
pub use span::{Source, SourceKind, Span};
pub use timestamp::{TimestampError, consume_timestamp};
pub use tree::Tree;
pub use typed::*;

/// What a configuration is made of. Weakest first: files, environment, `SPRING_APPLICATION_JSON`, command line, code.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Files to read instead of looking for `application.yaml`. `--bindery.config=PATH,…` in `args` wins over this.
    pub locations: Vec<PathBuf>,
    /// Files given as text, name and content; the first is where reading starts, the others are found by name
    /// (profile files, imports). For tests.
    pub texts: Vec<(String, String)>,
    /// The folder of the crate that cargo runs (`CARGO_MANIFEST_DIR`), searched before the working folder.
    pub manifest_dir: Option<PathBuf>,
    /// The working folder; `None`: the process's own. Paths below it are shown relative to it.
    pub working_dir: Option<PathBuf>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Arguments of the command line, without the program's name.
    pub args: Vec<String>,
    /// Values set in code, key in any spelling and text; they win over everything.
    pub overrides: Vec<(String, String)>,
}

impl LoadOptions {
    /// What the running process has: its environment, its arguments, and the folder cargo runs it for.
    #[must_use]
    pub fn from_process() -> Self {
        Self {
            env: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            args: std::env::args_os()
                .skip(1)
                .filter_map(|argument| argument.into_string().ok())
                .collect(),
            manifest_dir: std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from),
            ..Self::default()
        }
    }

    /// One file given as text, nothing else; for tests.
    #[must_use]
    pub fn from_text(yaml: impl Into<String>) -> Self {
        Self {
            texts: vec![("application.yaml".to_owned(), yaml.into())],
            ..Self::default()
        }
    }
}

/// A configuration without errors.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The typed result.
    pub config: Config,
    /// Every key with its origin, for [`Loaded::explain`] and [`Loaded::section`].
    pub tree: Tree,
    /// Warnings and remarks, in source order.
    pub warnings: Vec<Diagnostic>,
    pub(crate) names: Vec<build::Named>,
    pub(crate) env: Vec<(String, String)>,
}

impl Loaded {
    /// What `bindery.embedded.broker` says, also when the embedded broker is switched off.
    pub(crate) fn broker_keys(&self) -> BTreeMap<String, String> {
        let winners = self.tree.winners();
        winners
            .filter_map(|setting| match setting.entry.path.as_slice() {
                [first, second, third, key]
                    if [first, second, third].map(String::as_str)
                        == ["bindery", "embedded", "broker"] =>
                {
                    Some((key.clone(), setting.text(None)?))
                }
                _ => None,
            })
            .collect()
    }
}

impl From<Config> for Loaded {
    /// A configuration made by hand, for tests: there are no positions to tell.
    fn from(config: Config) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }
}

impl Config {
    /// Reads, merges and checks everything `options` names, for a program whose handlers are not known: any binding
    /// name passes.
    ///
    /// # Errors
    /// [`ConfigErrors`] with all mistakes, in source order.
    pub fn load(options: LoadOptions) -> Result<Loaded, ConfigErrors> {
        load::load(options, None)
    }

    /// Adds the bindings that the program declares and no source mentions, if `bindery.config.destination-from-name` is on.
    pub(crate) fn add_declared(&mut self, usage: &Usage) {
        check::add_declared(self, usage);
    }

    /// As [`Config::load`], and checks the binding names against those the program declares, in the same report.
    ///
    /// # Errors
    /// [`ConfigErrors`] with all mistakes, in source order.
    pub fn load_for(options: LoadOptions, usage: &Usage) -> Result<Loaded, ConfigErrors> {
        load::load(options, Some(usage))
    }
}

/// The JSON schema of `application.yaml`, for editors.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schema::json_schema(&schema::SCHEMA)
}
