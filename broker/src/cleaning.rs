//! Rounds of expiry by the broker's clock: nothing wakes while the commit log has one file only, which never goes.
//!
//! ```text
//! log goes on to another file ─▶ every cleanResourceInterval: Store::clean on a blocking thread
//! ```
use std::{sync::Arc, time::Duration};

use crate::state::Core;

/// Lets files expire until the broker stops.
pub(crate) async fn run(core: Arc<Core>) {
    let interval = Duration::from_millis(core.config.clean_resource_interval);
    loop {
        let due = async {
            if core.store.may_expire() {
                core.clock.sleep(interval).await;
            } else {
                core.store.rolled().await;
            }
        };
        tokio::select! {
            biased;
            () = core.stop.cancelled() => return,
            () = core.cleaning.notified() => {}
            () = due => {}
        }
        let store = core.store.clone();
        match tokio::task::spawn_blocking(move || store.clean()).await {
            Ok(cleaned) => tracing::trace!(?cleaned, "looked for expired files"),
            Err(error) => tracing::error!(%error, "a round of expiry ended early"),
        }
    }
}
