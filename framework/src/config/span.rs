//! Positions: which source a value came from, and where in it.
//!
//! ```text
//! application.yaml  ─┐
//! environment        ├─▶ Source (name, text) ◀── Span (line, column, length in characters)
//! command line, code ┘
//! ```

use std::{fmt, sync::Arc};

/// What sort of place a [`Source`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A file; spans have lines and columns.
    File,
    /// One environment variable.
    Environment,
    /// One argument of the command line.
    CommandLine,
    /// A value set by the program or a test.
    Code,
}

/// One place that values come from. Cheap to share; positions hold it by reference count.
pub struct Source {
    name: String,
    kind: SourceKind,
    text: String,
}

impl Source {
    /// A file by the name to show and its whole text.
    #[must_use]
    pub fn file(name: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            kind: SourceKind::File,
            text: text.into(),
        })
    }

    /// A place without lines: an environment variable, an argument, a value set in code. `name` is shown in messages.
    #[must_use]
    pub fn named(kind: SourceKind, name: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            kind,
            text: String::new(),
        })
    }

    /// The name to show: a path, a variable, an argument.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What sort of place this is.
    #[must_use]
    pub fn kind(&self) -> SourceKind {
        self.kind
    }

    /// Line `line` (from 1) without its end; `None` past the end and for places without lines.
    #[must_use]
    pub fn line(&self, line: u32) -> Option<&str> {
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        self.text.lines().nth(index)
    }

    /// The name of the place as the `file` field of a JSON report shows it.
    #[must_use]
    pub fn place(&self) -> &str {
        match self.kind {
            SourceKind::File => &self.name,
            SourceKind::Environment => "environment",
            SourceKind::CommandLine => "command line",
            SourceKind::Code => "code",
        }
    }
}

impl fmt::Debug for Source {
    /// Without the text: it may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({:?}, {})", self.kind, self.name)
    }
}

/// A stretch of one line of one [`Source`]. Lines and columns count from 1, columns and length count characters;
/// line 0 means the whole source (an environment variable has no lines).
#[derive(Debug, Clone)]
pub struct Span {
    source: Arc<Source>,
    line: u32,
    column: u32,
    length: u32,
}

impl Span {
    /// `length` characters from `line`:`column`.
    #[must_use]
    pub fn new(source: Arc<Source>, line: u32, column: u32, length: u32) -> Self {
        Self {
            source,
            line,
            column,
            length,
        }
    }

    /// The whole source.
    #[must_use]
    pub fn whole(source: Arc<Source>) -> Self {
        Self {
            source,
            line: 0,
            column: 0,
            length: 0,
        }
    }

    /// Where this is.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The line, from 1; 0 for a source without lines.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column in characters, from 1; 0 for a source without lines.
    #[must_use]
    pub fn column(&self) -> u32 {
        self.column
    }

    /// The length in characters.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.length
    }
}

impl PartialEq for Span {
    fn eq(&self, other: &Self) -> bool {
        self.source.name == other.source.name
            && self.source.kind == other.source.kind
            && (self.line, self.column, self.length) == (other.line, other.column, other.length)
    }
}

impl Eq for Span {}

impl fmt::Display for Span {
    /// `application.yaml:18:13`, or `environment variable NAME`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.source.name;
        match self.source.kind {
            SourceKind::File if self.line == 0 => write!(f, "{name}"),
            SourceKind::File => write!(f, "{name}:{}:{}", self.line, self.column),
            SourceKind::Environment => write!(f, "environment variable {name}"),
            SourceKind::CommandLine => write!(f, "command line argument {name}"),
            SourceKind::Code => write!(f, "value set in code for {name}"),
        }
    }
}
