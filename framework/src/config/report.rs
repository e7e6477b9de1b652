//! What is said to the user about a mistake, as text with a caret line and as JSON.
//!
//! ```text
//! error[config]: unknown key `partition-key-expresion`
//!   --> application.yaml:18:13
//!    |
//! 18 |             partition-key-expresion: payload['id']
//!    |             ^^^^^^^^^^^^^^^^^^^^^^^ did you mean `partition-key-expression`?
//!    = in spring.cloud.stream.bindings.output-order.producer
//! ```

use std::{borrow::Cow, fmt};

use serde_json::json;

use super::{relaxed::squash, span::Span};

/// The process exit code for a configuration that holds errors (`EX_CONFIG` of `sysexits.h`).
pub const EXIT_CONFIG: u8 = 78;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Info,
    /// Served, but probably not what was meant.
    Warning,
    /// The application does not start.
    Error,
}

impl Severity {
    /// `error`, `warning` or `info`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What sort of mistake a [`Diagnostic`] tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The text is no YAML, JSON or properties file.
    Syntax,
    /// A file could not be read.
    File,
    /// A key that does not exist (here).
    UnknownKey,
    /// A name of a binding, binder or profile that does not exist.
    UnknownName,
    /// One key twice in one place.
    Duplicate,
    /// A value that is not of the key's type.
    WrongType,
    /// A value of the right type that is out of bounds or not among the accepted ones.
    WrongValue,
    /// A key that must be there.
    Missing,
    /// A key or value whose run time does not exist yet.
    Unsupported,
    /// A placeholder that cannot be resolved.
    Placeholder,
    /// Keys that exclude or need each other.
    Conflict,
    /// A binding that nothing uses.
    UnusedBinding,
    /// An expression that cannot be parsed.
    Expression,
    /// A spelling that is accepted but on its way out.
    Deprecated,
    /// A key that is accepted and has no effect.
    Ignored,
    /// A value whose reading may surprise.
    Surprise,
}

impl DiagnosticKind {
    /// The kebab-case name used in JSON reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::File => "file",
            Self::UnknownKey => "unknown-key",
            Self::UnknownName => "unknown-name",
            Self::Duplicate => "duplicate",
            Self::WrongType => "wrong-type",
            Self::WrongValue => "wrong-value",
            Self::Missing => "missing",
            Self::Unsupported => "unsupported",
            Self::Placeholder => "placeholder",
            Self::Conflict => "conflict",
            Self::UnusedBinding => "unused-binding",
            Self::Expression => "expression",
            Self::Deprecated => "deprecated",
            Self::Ignored => "ignored",
            Self::Surprise => "surprise",
        }
    }
}

/// One thing to tell about the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What sort of mistake it is.
    pub kind: DiagnosticKind,
    /// The whole key in the user's spelling, where there is one.
    pub key: Option<String>,
    /// Where it is; `None` only when nothing was written down (a missing file, say).
    pub span: Option<Span>,
    /// What is wrong, without position.
    pub message: String,
    /// The nearest right name or value.
    pub suggestion: Option<String>,
    /// Stands after the caret; defaults to the suggestion as a question.
    pub label: Option<String>,
    /// Further lines: where it belongs, what is accepted.
    pub notes: Vec<String>,
    /// Other places that take part, each with what it says.
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    /// An error.
    #[must_use]
    pub fn error(kind: DiagnosticKind, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, kind, message)
    }

    /// A warning.
    #[must_use]
    pub fn warning(kind: DiagnosticKind, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, kind, message)
    }

    /// A remark.
    #[must_use]
    pub fn info(kind: DiagnosticKind, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, kind, message)
    }

    fn new(severity: Severity, kind: DiagnosticKind, message: impl Into<String>) -> Self {
        Self {
            severity,
            kind,
            key: None,
            span: None,
            message: message.into(),
            suggestion: None,
            label: None,
            notes: Vec::new(),
            related: Vec::new(),
        }
    }

    /// Adds the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Adds the position.
    #[must_use]
    pub fn at(mut self, span: Option<&Span>) -> Self {
        self.span = span.cloned();
        self
    }

    /// Adds the nearest right name, if there is one.
    #[must_use]
    pub fn suggest(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    /// Sets what stands after the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds a line of explanation.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds another place.
    #[must_use]
    pub fn related(mut self, span: Option<&Span>, what: impl Into<String>) -> Self {
        if let Some(span) = span {
            self.related.push((span.clone(), what.into()));
        }
        self
    }

    /// Whether the application must not start because of this.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// `{severity, kind, file, line, column, key, message, suggestion}`; absent parts are null.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let lined = self.span.as_ref().filter(|span| span.line() > 0);
        json!({
            "severity": self.severity.as_str(),
            "kind": self.kind.as_str(),
            "file": self.span.as_ref().map(|span| span.source().place()),
            "line": lined.map(Span::line),
            "column": lined.map(Span::column),
            "key": self.key,
            "message": self.message,
            "suggestion": self.suggestion,
        })
    }

    fn caret_text(&self) -> Option<String> {
        self.label.clone().or_else(|| {
            self.suggestion
                .as_ref()
                .map(|name| format!("did you mean `{name}`?"))
        })
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[config]: {}", self.severity.as_str(), self.message)?;
        let shown = match &self.span {
            Some(span) => {
                write!(f, "\n  --> {span}")?;
                write_snippet(f, span, self.caret_text().as_deref())?
            }
            None => false,
        };
        if !shown && let Some(text) = self.caret_text() {
            write!(f, "\n   = {text}")?;
        }
        for (span, what) in &self.related {
            write!(f, "\n   = {what}: {span}")?;
        }
        for note in &self.notes {
            write!(f, "\n   = {note}")?;
        }
        Ok(())
    }
}

/// Prints the line and the caret line; answers whether there was a line to print.
fn write_snippet(
    f: &mut fmt::Formatter<'_>,
    span: &Span,
    text: Option<&str>,
) -> Result<bool, fmt::Error> {
    let Some(line) = span.source().line(span.line()).map(masked) else {
        return Ok(false);
    };
    let number = span.line().to_string();
    let gutter = " ".repeat(number.len().max(2));
    let before = usize::try_from(span.column().saturating_sub(1)).unwrap_or(usize::MAX);
    let width = usize::try_from(span.length()).unwrap_or(1).max(1);
    // The part before the caret is repeated with tabs kept, so that the caret stands right in any terminal.
    let indent: String = line
        .chars()
        .take(before)
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let carets = "^".repeat(
        width
            .min(line.chars().count().saturating_sub(before))
            .max(1),
    );
    write!(
        f,
        "\n{gutter} |\n{number:>2} | {}\n{gutter} | {indent}{carets}",
        line.trim_end()
    )?;
    if let Some(text) = text {
        write!(f, " {text}")?;
    }
    Ok(true)
}

/// The line up to what looks like a secret: a report ends up in logs.
fn masked(line: &str) -> Cow<'_, str> {
    const SECRETS: [&str; 4] = ["secret", "password", "accesskey", "token"];
    let is_secret = |end: usize| {
        let key = line[..end]
            .rsplit([',', '{', ':'])
            .next()
            .unwrap_or_default();
        SECRETS.iter().any(|word| squash(key).contains(word))
    };
    let written = |end: usize| !line[end + 1..].trim().is_empty();
    match line
        .match_indices([':', '='])
        .map(|(end, _)| end)
        .find(|end| is_secret(*end) && written(*end))
    {
        Some(end) => Cow::Owned(format!("{} ***", &line[..=end])),
        None => Cow::Borrowed(line),
    }
}

/// Everything that is wrong with a configuration, in the order of the sources. Never empty.
#[derive(Debug, Clone, thiserror::Error)]
pub struct ConfigErrors {
    diagnostics: Vec<Diagnostic>,
}

impl ConfigErrors {
    /// Collects `diagnostics`; `None` when none of them is an error.
    #[must_use]
    pub fn of(diagnostics: Vec<Diagnostic>) -> Option<Self> {
        diagnostics
            .iter()
            .any(Diagnostic::is_error)
            .then_some(Self { diagnostics })
    }

    /// `diagnostics`, of which one at least is an error.
    pub(crate) fn of_report(diagnostics: Vec<Diagnostic>) -> Self {
        Self { diagnostics }
    }

    /// All of them, warnings included.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// How many are errors.
    #[must_use]
    pub fn error_count(&self) -> usize {
        self.diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.is_error())
            .count()
    }

    /// The list for `--json`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        report_json(&self.diagnostics)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&report_text(&self.diagnostics))?;
        let count = self.error_count();
        write!(
            f,
            "\n\n{count} configuration error{}",
            if count == 1 { "" } else { "s" }
        )
    }
}

/// `diagnostics` as the text report, one blank line between two.
#[must_use]
pub fn report_text(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// `diagnostics` as the JSON report: a list of `{severity, kind, file, line, column, key, message, suggestion}`.
#[must_use]
pub fn report_json(diagnostics: &[Diagnostic]) -> serde_json::Value {
    diagnostics.iter().map(Diagnostic::to_json).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    #[test]
    fn reports_show_no_secrets() {
        for (line, shown) in [
            ("  secret-keyy: abc", "  secret-keyy: ***"),
            (
                "binder: { accessKey: a, secretKey: b }",
                "binder: { accessKey: ***",
            ),
            ("secret:", "secret:"),
            ("group: secret-service", "group: secret-service"),
        ] {
            assert_eq!(masked(line), shown);
        }
    }

    #[test]
    fn the_caret_stands_under_characters_not_bytes() {
        let source = Source::file("a.yaml", "订单: x\n\tb: y");
        let at = |line, column, length| Span::new(source.clone(), line, column, length);
        let shown = |span: &Span| {
            Diagnostic::error(DiagnosticKind::Syntax, "m")
                .at(Some(span))
                .to_string()
        };
        assert!(shown(&at(1, 5, 1)).ends_with("\n 1 | 订单: x\n   |     ^"));
        assert!(shown(&at(2, 2, 1)).ends_with("\n 2 | \tb: y\n   | \t^"));
    }
}
