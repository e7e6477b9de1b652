//! Writing the broker's tables behind their changes: nothing is written, and nobody wakes, while nothing changes.
//!
//! ```text
//! changed ─▶ wait a while, so that one write serves many changes ─▶ blocking thread ─▶ file
//! ```
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use bindery_protocol::{bodies::DelayOffsetTable, message::PhysicalOffset};
use tokio::sync::oneshot;

use crate::{offset, state::Core, table::TableError, timer};

/// A table with a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Topics,
    Groups,
    ConsumerOffsets,
    DelayOffsets,
    Timers,
    PopOrders,
}

impl Kept {
    /// All of them, in the order they are written at the end.
    pub(crate) const ALL: [Self; 6] = [
        Self::Topics,
        Self::Groups,
        Self::ConsumerOffsets,
        Self::DelayOffsets,
        Self::Timers,
        Self::PopOrders,
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
            Self::PopOrders => core.pop.orders.changed().await,
        }
    }

    /// Time from a change to its file. The tables of topics and groups have a journal, so theirs may lag too.
    fn delay(self, core: &Core) -> Duration {
        match self {
            Self::Topics | Self::Groups => Duration::from_millis(500),
            // What is handed out in order belongs to the offsets.
            Self::ConsumerOffsets | Self::PopOrders => {
                Duration::from_millis(core.live().flush_consumer_offset_interval)
            }
            Self::DelayOffsets => Duration::from_millis(core.live().flush_delay_offset_interval),
            Self::Timers => Duration::from_millis(core.config.timer_flush_interval_ms),
        }
    }

    /// Writes the table; waits for the disk.
    pub(crate) async fn write(self, core: &Arc<Core>) {
        if self == Self::Timers {
            if let Some(timer) = &core.timer {
                timer::flush(core, timer).await;
            }
            return;
        }
        let Some(content) = self.content(core) else {
            return;
        };
        // The files must not say "delivered" or "handed out" of what a loss of power could still take from the log.
        if !matches!(content, Content::Own) && core.flushes_synchronously() {
            flushed(core, core.store.stats().max_physical_offset).await;
        }
        let shared = core.clone();
        let written = tokio::task::spawn_blocking(move || -> Result<(), TableError> {
            match (content, self) {
                (Content::Offsets(content), _) => shared.offsets.write(&content),
                (Content::Delays(content), _) => shared.schedule.write(&content),
                (Content::Own, Self::Topics) => shared.topics.table().persist(),
                (Content::Own, Self::Groups) => shared.groups.table().persist(),
                (Content::Own, _) => shared.pop.orders.persist(shared.now(), |topic, group| {
                    let topic = shared.topics.topic(topic)?;
                    shared.groups.known(group).map(|_| topic.read_queue_nums)
                }),
            }
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(table = ?self, %error, "table not written"),
            Err(error) => tracing::error!(table = ?self, %error, "table not written"),
        }
    }
}

/// What is to be written.
enum Content {
    Offsets(offset::Content),
    Delays(DelayOffsetTable),
    /// What the table itself holds when it is written.
    Own,
}

impl Kept {
    /// What is to be written now; none when nothing changed.
    fn content(self, core: &Core) -> Option<Content> {
        match self {
            Self::ConsumerOffsets => {
                // Hand-outs before this end are in the table: none is between its note and its commit.
                let _noted = core
                    .pop
                    .noting
                    .write()
                    .unwrap_or_else(PoisonError::into_inner);
                let log_end = core.store.stats().max_physical_offset;
                core.offsets.take_unwritten(log_end).map(Content::Offsets)
            }
            Self::DelayOffsets => core.schedule.take_unwritten().map(Content::Delays),
            Self::Timers => None,
            Self::Topics | Self::Groups | Self::PopOrders => Some(Content::Own),
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
