//! Ctrl-C and SIGTERM: the two ways a process is asked to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Result};

/// Exit code of a process that was interrupted a second time: 128 + SIGINT, as shells count.
const EXIT_INTERRUPTED: i32 = 130;

/// Waits for signals. From its creation on they no longer end the process by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        let refused = |source| Error::System {
            what: "to listen for signals",
            source,
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(refused)?,
            terminate: signal(SignalKind::terminate()).map_err(refused)?,
        })
    }

    /// The next signal's name. Cancel safe.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// Waits for a start to be done, and says whether a signal came meanwhile: what was begun is finished, so that it can
    /// be stopped in order. A second signal ends the process at once.
    pub(crate) async fn start<T>(
        &mut self,
        start: impl Future<Output = Result<T>>,
    ) -> Result<(T, bool)> {
        tokio::pin!(start);
        let mut interrupted = false;
        loop {
            tokio::select! {
                started = &mut start => return started.map(|started| (started, interrupted)),
                name = self.next() => {
                    if interrupted {
                        end_at_once(name);
                    }
                    announce(name);
                    interrupted = true;
                }
            }
        }
    }
}

pub(crate) fn announce(signal: &str) {
    tracing::info!(signal, "stopping; a second signal ends the process at once");
}

pub(crate) fn end_at_once(signal: &str) -> ! {
    tracing::warn!(signal, "ending at once");
    std::process::exit(EXIT_INTERRUPTED)
}
