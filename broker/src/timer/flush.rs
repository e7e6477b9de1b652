//! Writing the timer's files.
//!
//! ```text
//! after each round:  marks ─▶ timercheck                             (a killed process leaves them)
//! after the first change, timerFlushIntervalMs later:
//!   commit log (SYNC_FLUSH) ─▶ timer log ─▶ wheel ─▶ marks ─▶ disk   (each vouches for the one before it)
//! ```
use std::sync::Arc;

use super::book::Timer;
use crate::{
    keep::flushed,
    state::Core,
    store::{
        StoreError,
        timer::{Marks, sync_log},
    },
};

/// Writes the marks once what they say is as durable as the broker promises: they must not say "delivered" of what a loss
/// of power could still take from the log.
pub(super) async fn write_through(core: &Core, timer: &Timer) {
    let marks = timer.book().marks;
    if core.flushes_synchronously() {
        flushed(core, core.store.stats().max_physical_offset).await;
    }
    if let Err(error) = timer.check.write(&marks) {
        // The flush writes them again.
        tracing::warn!(%error, "timer marks not written");
        timer.touch();
    }
}

/// Writes everything to the disk if something changed since the last time.
pub(crate) async fn flush(core: &Arc<Core>, timer: &Arc<Timer>) {
    if !timer.take_dirty() {
        return;
    }
    if core.flushes_synchronously() {
        flushed(core, core.store.stats().max_physical_offset).await;
    }
    let shared = timer.clone();
    let written = tokio::task::spawn_blocking(move || write_all(&shared)).await;
    match written {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(%error, "timer files not written");
            timer.touch();
        }
        Err(error) => {
            tracing::error!(%error, "timer files not written");
            timer.touch();
        }
    }
}

/// Blocks on the disk.
fn write_all(timer: &Timer) -> Result<(), StoreError> {
    let (marks, end, wheel, dir, log_files) = {
        let mut book = timer.book();
        let wheel = book.wheel.write()?;
        let dir = book.log.dir().to_owned();
        let files = book.log.unsynced(book.marks.log_synced);
        (book.marks, book.log.end(), wheel, dir, files)
    };
    sync_log(&dir, &log_files)?;
    let failed = |source| StoreError::Io {
        action: "sync",
        path: dir.with_file_name("timerwheel"),
        source,
    };
    wheel.sync_data().map_err(failed)?;
    let marks = Marks {
        log_synced: end,
        queue_synced: marks.queue,
        ..marks
    };
    {
        let mut book = timer.book();
        book.marks.log_synced = marks.log_synced;
        book.marks.queue_synced = marks.queue_synced;
    }
    timer.check.write(&marks)?;
    timer.check.sync()?;
    timer.metrics.persist()?;
    Ok(())
}

/// Removes the files of the timer log whose messages have left the commit log.
pub(super) fn clean(core: &Core, timer: &Timer) {
    let oldest = core.store.stats().min_physical_offset;
    let dropped = timer.book().log.drop_expired(oldest);
    match dropped {
        Ok(0) => {}
        Ok(files) => tracing::info!(files, "files of the timer log expired"),
        Err(error) => tracing::warn!(%error, "expired files of the timer log not removed"),
    }
}
