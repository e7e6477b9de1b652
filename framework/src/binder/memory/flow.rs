//! Letting the in-process broker run: until nothing is left to do, or up to a time.

use super::board::{Board, Counting, Rest};

/// Runs until no message is on its way, or until something is due after `limit`; whether nothing is on its way. Waits for
/// whoever works, and jumps in virtual time to what is due next.
pub(super) async fn run_dry(board: &Board, limit: i64) -> bool {
    loop {
        let changed = board.pace.changed();
        match board.rest(Counting::Messages) {
            Rest::Done => return true,
            Rest::Until(at) if at > limit => return false,
            Rest::Until(at) if board.pace.is_virtual() => board.pace.jump_to(at),
            Rest::Busy | Rest::Until(_) => changed.await,
        }
    }
}

/// Runs virtual time up to `target` with everything that happens on the way.
pub(super) async fn run_until(board: &Board, target: i64) {
    while step(board, target).await {}
}

/// Lets one thing happen, or virtual time go on to `target`; false when that has come and everybody is at rest.
pub(super) async fn step(board: &Board, target: i64) -> bool {
    let changed = board.pace.changed();
    match board.rest(Counting::Everything) {
        Rest::Busy => changed.await,
        Rest::Until(at) if at <= target => board.pace.jump_to(at),
        Rest::Until(_) | Rest::Done if board.pace.now_millis() < target => {
            board.pace.jump_to(target);
        }
        Rest::Until(_) | Rest::Done => return false,
    }
    true
}
