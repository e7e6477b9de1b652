//! The `bindery` command: thin shells around the name server and the broker.
//!
//! ```text
//! command line ─▶ args (and files with Apache's keys) ─▶ serve: start · one line when ready · wait · stop cleanly
//! ```
//! Exit codes: 0 after a clean stop, 2 for a wrong command line, 78 for a wrong configuration file, 1 for the rest.
#![forbid(unsafe_code)]

mod args;
mod serve;

use std::{error::Error, io::IsTerminal, process::ExitCode};

use args::{Args, Verb};
use bindery_broker::{BrokerError, config::ConfigError, namesrv::NameServerError};
use clap::Parser;

/// `EX_CONFIG` of sysexits.h: something is wrong in a configuration file.
const EXIT_CONFIG: u8 = 78;

/// Why a command ended early.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error("the configuration can't be used")]
    Config(#[from] ConfigError),
    #[error("the name server could not start")]
    NameServer(#[from] NameServerError),
    #[error("the broker could not start or stop")]
    Broker(#[from] BrokerError),
    #[error("the configuration can't be printed")]
    Print(#[source] std::io::Error),
    #[error("signals can't be waited for")]
    Signal(#[source] std::io::Error),
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let done = match Args::parse().verb {
        Verb::Up(up) => serve::up(up).await,
        Verb::Namesrv(namesrv) => serve::namesrv(namesrv).await,
        Verb::Broker(broker) => serve::broker(broker).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::from(
                if matches!(
                    error,
                    CliError::Config(_) | CliError::NameServer(NameServerError::Config { .. })
                ) {
                    EXIT_CONFIG
                } else {
                    1
                },
            )
        }
    }
}

/// The error and its causes, one a line.
fn report(error: &CliError) {
    eprintln!("error: {error}");
    let mut cause = error.source();
    while let Some(source) = cause {
        eprintln!("  caused by: {source}");
        cause = source.source();
    }
}
