//! What an application can fail with, from reading its configuration to stopping its binders.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;

use crate::binder::BinderError;
use crate::binding::{BindError, SendError};
use crate::config::ConfigErrors;

/// The result of [`AppBuilder::run`](crate::AppBuilder::run) and of a `#[bindery::main]` function.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an application could not start, run or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration, or its use by the code, has mistakes; nothing was connected. Ends the process with 78.
    #[error("{0}")]
    Config(#[source] ConfigErrors),
    /// As [`Config`](Self::Config), and already told in another form.
    #[error("the configuration has {} errors", .0.error_count())]
    ConfigReported(#[source] ConfigErrors),
    /// The web server's address is taken or not ours.
    #[error(
        "cannot listen on port {port} for HTTP: {source}; choose another with `server.port` (0 takes any free one)"
    )]
    WebAddress {
        /// The configured port.
        port: u16,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The web server ended by itself.
    #[error("the web server ended")]
    Web(#[source] io::Error),
    /// The embedded name server or broker could not start or stop.
    #[error("the embedded {part} failed")]
    Embedded {
        /// `name server` or `broker`.
        part: &'static str,
        /// Cause.
        #[source]
        source: BoxError,
    },
    /// Handlers need state that nobody gave.
    #[error("{}", list_missing(missing))]
    MissingState {
        /// Type to the handlers that need it.
        missing: BTreeMap<&'static str, Vec<String>>,
    },
    /// A transaction listener could not be built.
    #[error("the transaction listener `{name}` ({type_name}) cannot be built")]
    TransactionListener {
        /// Its name.
        name: String,
        /// Its type.
        type_name: String,
        /// Cause.
        #[source]
        source: BoxError,
    },
    /// The program was built without the feature `embedded`.
    #[error("`bindery.embedded` is on, but the program was built without the feature `embedded`")]
    EmbeddedMissing,
    /// A binding could not be made.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A binder failed as a whole.
    #[error(transparent)]
    Binder(#[from] BinderError),
    /// A send that the program's main function did not handle.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The runtime or its signals are not available.
    #[error("the operating system refused {what}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// Anything else that the program's own code failed with.
    #[error(transparent)]
    User(BoxError),
}

/// Any error of the program itself.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

impl Error {
    /// Wraps an error of the program itself, for `?` in a `#[bindery::main]` function: `.map_err(Error::user)?`.
    pub fn user(error: impl Into<BoxError>) -> Self {
        Self::User(error.into())
    }

    /// The exit code of a process that ends with this error: 78 (`EX_CONFIG`) for configuration, else 1.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::ConfigReported(_) => ExitCode::from(crate::config::EXIT_CONFIG),
            _ => ExitCode::FAILURE,
        }
    }
}

fn list_missing(missing: &BTreeMap<&'static str, Vec<String>>) -> String {
    let lines = missing.iter().map(|(type_name, handlers)| {
        format!(
            "no value of type `{type_name}` was given with `AppBuilder::state`; needed by {}",
            handlers.join(", ")
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}
