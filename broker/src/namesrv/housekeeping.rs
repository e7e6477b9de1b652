//! Gives up brokers that gave no sign of life.
//!
//! ```text
//! sleep until the earliest broker could be due (none lives: no sleep at all) ─▶ look ─▶ unregister, close ─▶ sleep …
//! ```
use std::{future, sync::Arc};

use bindery_remoting::Clock;

use super::processor::Processor;

/// Runs until dropped.
pub(super) async fn keep_house(processor: Arc<Processor>, clock: Clock) {
    loop {
        let next = processor.look();
        let due = async {
            match next {
                Some(next) => clock.sleep_until(next).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            () = processor.sooner.notified() => {}
        }
    }
}
