//! Transactional messages in the process: held back here until their outcome is known, then put on the board.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::board::Board;
use crate::binder::{Place, ProducerSpec};
use crate::binding::{SendError, SendReceipt};
use crate::message::Message;
use crate::transaction::{
    HalfMessage, ListenerHandle, LocalFailure, LocalState, LocalWork, TxReceipt, caught,
};

/// The messages without an outcome, and who can be asked.
#[derive(Debug, Default)]
pub(super) struct Halves {
    next_id: AtomicU64,
    waiting: Mutex<BTreeMap<u64, Half>>,
    // The last listener of each output: a restarted application answers for the one before.
    listeners: Mutex<HashMap<String, ListenerHandle>>,
}

#[derive(Debug, Clone)]
struct Half {
    binding: String,
    destination: String,
    message: HalfMessage,
}

impl Halves {
    pub(super) fn join(&self, binding: &str, listener: ListenerHandle) {
        lock(&self.listeners).insert(binding.to_owned(), listener);
    }

    pub(super) async fn send(
        &self,
        board: &Board,
        spec: &ProducerSpec,
        message: &Message,
        work: LocalWork<'_>,
    ) -> Result<TxReceipt, SendError> {
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        let half = Half {
            binding: spec.binding.clone(),
            destination: spec.destination.clone(),
            message: HalfMessage::new(message.clone(), format!("transaction-{number}")),
        };
        // Held before the work runs: dropped half-way, it is asked for.
        lock(&self.waiting).insert(number, half.clone());
        let handed = half.message.clone();
        let (state, failure) = match caught(async move { work(handed).await }).await {
            Some(Ok(state)) => (state, None),
            Some(Err(error)) => (LocalState::Unknown, Some(LocalFailure::Failed(error))),
            None => (LocalState::Unknown, Some(LocalFailure::Panicked)),
        };
        let id = half.message.transaction_id().to_owned();
        let sent = self.end(board, number, state)?.unwrap_or(SendReceipt {
            destination: half.destination,
            msg_id: id.clone(),
            offset_msg_id: String::new(),
            broker: String::new(),
            queue_id: -1,
            queue_offset: -1,
            partition: None,
        });
        let mut receipt = TxReceipt::new(sent, id, state);
        receipt.failure = failure.map(|failure| Arc::new(failure) as _);
        Ok(receipt)
    }

    /// Asks about every message that waits; how many wait still.
    pub(super) async fn ask(&self, board: &Board) -> usize {
        let waiting = lock(&self.waiting).clone();
        for (number, half) in waiting {
            let listener = lock(&self.listeners).get(&half.binding).cloned();
            let Some(listener) = listener else { continue };
            let state = match caught(listener.check(&half.message)).await {
                Some(Ok(state)) => state,
                Some(Err(error)) => {
                    tracing::warn!(listener = listener.name(), %error, "outcome of a transaction not known");
                    LocalState::Unknown
                }
                None => LocalState::Unknown,
            };
            if let Err(error) = self.end(board, number, state) {
                tracing::warn!(binding = half.binding, %error, "committed message not stored");
            }
        }
        lock(&self.waiting).len()
    }

    fn end(
        &self,
        board: &Board,
        number: u64,
        state: LocalState,
    ) -> Result<Option<SendReceipt>, SendError> {
        if state == LocalState::Unknown {
            return Ok(None);
        }
        // Taken out first: two answers at once must not store the message twice.
        match (lock(&self.waiting).remove(&number), state) {
            (Some(half), LocalState::Commit) => board
                .send(&half.destination, &half.message, Place::Any)
                .map(Some),
            _ => Ok(None),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing of the application runs while a lock is held: what it guards is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
