//! Calls that wait for their answers.
//!
//! ```text
//! Connection::call ─▶ Calls::register ─▶ (opaque, receiver)      reader ─▶ Calls::complete(frame) ─▶ receiver
//! ```
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Mutex,
};

use bindery_protocol::frame::Frame;
use tokio::sync::oneshot;

use crate::{RemotingError, lock};

/// Tables that have grown past this many slots are given back when the last call has ended.
const KEEP_SLOTS: usize = 256;

/// What a call gets: its answer, or why there will be none. The sender's silent end means the connection was closed.
pub(crate) type Answer = Result<Frame, RemotingError>;

/// The calls in flight on one connection, by opaque.
#[derive(Debug)]
pub(crate) struct Calls {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    open: bool,
    next: i32,
    waiting: HashMap<i32, oneshot::Sender<Answer>>,
}

/// A call that waits; leaves the table when dropped, whatever the reason.
pub(crate) struct Waiting<'a> {
    calls: &'a Calls,
    /// Correlation id, to be written into the request.
    pub(crate) opaque: i32,
    /// Where the answer comes.
    pub(crate) answer: oneshot::Receiver<Answer>,
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                open: true,
                next: 0,
                waiting: HashMap::new(),
            }),
        }
    }

    /// A fresh opaque and the place where its answer will come; `None` once closed.
    pub(crate) fn register(&self) -> Option<Waiting<'_>> {
        let mut state = lock(&self.state);
        if !state.open {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        loop {
            let opaque = state.next;
            state.next = opaque.wrapping_add(1);
            // After 2³² requests an opaque may still belong to a call in flight; it is skipped.
            if let Entry::Vacant(slot) = state.waiting.entry(opaque) {
                slot.insert(sender);
                return Some(Waiting {
                    calls: self,
                    opaque,
                    answer,
                });
            }
        }
    }

    /// An opaque for a request that gets no answer.
    pub(crate) fn oneway_opaque(&self) -> i32 {
        let mut state = lock(&self.state);
        let opaque = state.next;
        state.next = opaque.wrapping_add(1);
        opaque
    }

    /// Hands an answer to its call; false if nobody waits for it (any more).
    pub(crate) fn complete(&self, frame: Frame) -> bool {
        let sender = lock(&self.state).remove(frame.head.opaque);
        sender.is_some_and(|sender| sender.send(Ok(frame)).is_ok())
    }

    /// Ends all calls and refuses new ones. The oldest call is told `reason`, the others that the connection closed.
    pub(crate) fn close(&self, reason: Option<RemotingError>) {
        let waiting = {
            let mut state = lock(&self.state);
            state.open = false;
            std::mem::take(&mut state.waiting)
        };
        let Some(reason) = reason else { return };
        let oldest = waiting.into_iter().min_by_key(|(opaque, _)| *opaque);
        if let Some((_, sender)) = oldest
            && sender.send(Err(reason)).is_err()
        {
            tracing::trace!("the call was given up before it could be told why it failed");
        }
    }

    #[cfg(test)]
    pub(crate) fn in_flight(&self) -> usize {
        lock(&self.state).waiting.len()
    }
}

impl State {
    fn remove(&mut self, opaque: i32) -> Option<oneshot::Sender<Answer>> {
        let sender = self.waiting.remove(&opaque);
        if self.waiting.is_empty() && self.waiting.capacity() > KEEP_SLOTS {
            self.waiting.shrink_to_fit();
        }
        sender
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.calls.state).remove(self.opaque);
    }
}
