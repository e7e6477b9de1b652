//! Writing the broker's tables behind their changes: nothing is written, and nobody wakes, while nothing changes.
//!
//! ```text
//! changed ─▶ wait a while, so that one write serves many changes ─▶ blocking thread ─▶ file
//! ```
use std::{sync::Arc, time::Duration};

use bindery_protocol::message::PhysicalOffset;
use tokio::sync::oneshot;

use crate::{state::Core, table::TableError, timer};

/// A table with a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Topics,
    Groups,
    ConsumerOffsets,
    DelayOffsets,
    Timers,
}

impl Kept {
    /// All of them, in the order they are written at the end.
    pub(crate) const ALL: [Self; 5] = [
        Self::Topics,
        Self::Groups,
        Self::ConsumerOffsets,
        Self::DelayOffsets,
        Self::Timers,
    ];

    async fn changed(self, core: &Core) {
        match self {
            Self::Topics => core.topics.table().changed().await,
            Self::Groups => core.groups.table().changed().await,
            Self::ConsumerOffsets => core.offsets.changed().await,
            Self::DelayOffsets => core.schedule.changed().await,
            Self::Timers => match &core.timer {
                Some(timer) => timer.changed().await,
                None => std::future::pending().await,
            },
        }
    }

    /// Time from a change to its file. The tables of topics and groups have a journal, so theirs may lag too.
    fn delay(self, core: &Core) -> Duration {
        match self {
            Self::Topics | Self::Groups => Duration::from_millis(500),
            Self::ConsumerOffsets => {
                Duration::from_millis(core.config.flush_consumer_offset_interval)
            }
            Self::DelayOffsets => Duration::from_millis(core.config.flush_delay_offset_interval),
            Self::Timers => Duration::from_millis(core.config.timer_flush_interval_ms),
        }
    }

    /// Writes the table; waits for the disk.
    pub(crate) async fn write(self, core: &Arc<Core>) {
        let content = match self {
            Self::DelayOffsets => {
                let Some(content) = core.schedule.take_unwritten() else {
                    return;
                };
                // The file must not say "delivered" of what a loss of power could still take from the log.
                if core.flushes_synchronously() {
                    flushed(core, core.store.stats().max_physical_offset).await;
                }
                Some(content)
            }
            Self::Timers => {
                if let Some(timer) = &core.timer {
                    timer::flush(core, timer).await;
                }
                return;
            }
            _ => None,
        };
        let shared = core.clone();
        let written = tokio::task::spawn_blocking(move || -> Result<(), TableError> {
            match (self, content) {
                (Self::Topics, _) => shared.topics.table().persist(),
                (Self::Groups, _) => shared.groups.table().persist(),
                (Self::ConsumerOffsets, _) => shared.offsets.persist(),
                (Self::DelayOffsets, Some(content)) => shared.schedule.write(&content),
                (Self::DelayOffsets, None) | (Self::Timers, _) => Ok(()),
            }
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(table = ?self, %error, "table not written"),
            Err(error) => tracing::error!(table = ?self, %error, "table not written"),
        }
    }
}

/// Waits until the log is on the disk up to `end`, or its flush has timed out.
pub(crate) async fn flushed(core: &Core, end: PhysicalOffset) {
    let (done, wait) = oneshot::channel();
    core.store.when_durable(
        end,
        Box::new(move |_| {
            // The writer gave up waiting only if the broker was dropped.
            _ = done.send(());
        }),
    );
    if wait.await.is_err() {
        tracing::debug!("the store ended before its log was flushed");
    }
}

/// Keeps one table's file behind its changes until the broker stops.
pub(crate) async fn run(core: Arc<Core>, kept: Kept) {
    loop {
        tokio::select! {
            biased;
            () = core.stop.cancelled() => return,
            () = kept.changed(&core) => {}
        }
        tokio::select! {
            biased;
            () = core.stop.cancelled() => return,
            () = core.clock.sleep(kept.delay(&core)) => {}
        }
        kept.write(&core).await;
    }
}
