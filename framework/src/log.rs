//! The program's log: on standard error, with the levels of `logging.level` once the configuration is read.
//!
//! `RUST_LOG`, where it is set, wins over the configuration.

use std::io::IsTerminal;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::config::LoggingConfig;

/// Changes the levels of a log that [`init`] has set up.
#[derive(Debug, Clone)]
pub(crate) struct LogLevels {
    filter: reload::Handle<EnvFilter, Registry>,
}

/// Sets up the log at level `info`. `None` when it is not ours to change: the program has its own, or `RUST_LOG` is set.
pub(crate) fn init() -> Option<LogLevels> {
    let (from_env, filter) = match EnvFilter::try_from_default_env() {
        Ok(filter) => (true, filter),
        Err(_absent_or_unreadable) => (false, EnvFilter::new("info")),
    };
    let (filter, handle) = reload::Layer::new(filter);
    // Standard error, so that what the program itself prints stands alone on standard output.
    let lines = fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let ours = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()
        .is_ok();
    (ours && !from_env).then_some(LogLevels { filter: handle })
}

impl LogLevels {
    /// Takes over the configured levels.
    pub(crate) fn apply(&self, logging: &LoggingConfig) {
        let directives = logging.directives();
        let changed = EnvFilter::try_new(&directives).map_err(|error| error.to_string());
        let changed = changed.and_then(|filter| {
            self.filter
                .reload(filter)
                .map_err(|error| error.to_string())
        });
        if let Err(error) = changed {
            tracing::warn!(directives, error, "log levels cannot be changed");
        }
    }
}
