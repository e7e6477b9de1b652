//! The timer's task: queue and wheel by turns, asleep in between until something comes or falls due.
use std::{sync::Arc, time::Duration};

use super::{
    book::Timer,
    dequeue::{self, Look},
    enqueue::{self, Round},
    flush,
};
use crate::state::Core;

/// Milliseconds until what the disk did not take is tried again.
const RETRY: i64 = 100;
/// Between two looks for expired files of the timer log, while there is more than one.
const CLEANING: Duration = Duration::from_secs(60);
/// Nothing waits.
const NEVER: i64 = i64::MAX;

/// Works until the broker stops.
pub(crate) async fn run(core: Arc<Core>, timer: Arc<Timer>) {
    while !core.stop.is_cancelled() {
        let round = enqueue::round(&core, &timer);
        let look = dequeue::slot(&core, &timer).await;
        if round != Round::Empty || look == Look::Done {
            flush::write_through(&core, &timer).await;
        }
        let until = match (round, look) {
            (_, Look::Stopped) => return,
            (Round::More, _) | (_, Look::Done) => core.now(),
            (Round::Later, _) => core.now().saturating_add(RETRY),
            (Round::Empty, Look::Until(due)) => due,
            (Round::Empty, Look::Nothing) => NEVER,
        };
        let now = core.now();
        let several_files = timer.has_several_files();
        tokio::select! {
            biased;
            () = core.stop.cancelled() => return,
            () = timer.arrived.wait() => {}
            () = core.clock.sleep(CLEANING), if several_files => flush::clean(&core, &timer),
            () = core.clock.sleep_until(until), if until != NEVER && until > now => {}
            () = tokio::task::yield_now(), if until <= now => {}
        }
    }
}
