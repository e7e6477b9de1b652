//! Configuration that can't be misread: Spring's keys from files, profiles, environment and command line, every mistake
//! at once with file, line and column, before anything connects.

mod check;
mod report;
mod span;
pub mod typed;

use std::path::PathBuf;

pub use check::{DeclaredBinding, Usage, check_usage};
pub use report::{
    ConfigErrors, Diagnostic, DiagnosticKind, EXIT_CONFIG, Severity, report_json, report_text,
};
pub use span::{Source, SourceKind, Span};
pub use typed::*;

/// What a configuration is made of.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Files to read instead of looking for `application.yaml`. `--bindery.config` in `args` wins over this.
    pub locations: Vec<PathBuf>,
    /// The folder of the crate that cargo runs (`CARGO_MANIFEST_DIR`), searched before the working folder.
    pub manifest_dir: Option<PathBuf>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Arguments of the command line, without the program's name.
    pub args: Vec<String>,
    /// Values set in code, canonical or relaxed key and text; they win over everything.
    pub overrides: Vec<(String, String)>,
    /// Binding names the program declares: environment variables are resolved against them and those of the files.
    pub declared_bindings: Vec<String>,
}

/// A configuration without errors.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The typed result.
    pub config: Config,
    /// Warnings and remarks.
    pub warnings: Vec<Diagnostic>,
}

impl Config {
    /// Reads, merges and checks everything `options` names.
    ///
    /// # Errors
    /// [`ConfigErrors`] with all mistakes, in source order.
    pub fn load(_options: LoadOptions) -> Result<Loaded, ConfigErrors> {
        todo!()
    }
}
