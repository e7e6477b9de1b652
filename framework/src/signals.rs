//! Ctrl-C and SIGTERM: the two ways a process is asked to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Result};

/// Exit code of a process that was interrupted a second time: 128 + SIGINT, as shells count.
pub(crate) const EXIT_INTERRUPTED: i32 = 130;

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
}
