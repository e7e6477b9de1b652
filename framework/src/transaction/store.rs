//! Where the outcomes of local transactions are kept, so that the broker's questions can be answered.
//!
//! ```text
//! StoredListener ─ begin ─▶ work ─▶ the application writes with it ─▶ commit(work, id, state): both or neither
//!                └ check ─▶ outcome(id): the recorded state, or unknown
//! ```

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::{HalfMessage, LocalState, TransactionListener, TxArgs};
use crate::error::BoxError;

/// A store in which what a local transaction changes and how it ended become durable together.
///
/// With a database, [`Work`](Self::Work) is the database's own transaction, and the outcome is a row in a table beside
/// the application's: if the process dies before the commit, neither is there, and the answer stays "unknown" until the
/// broker gives the message up.
pub trait TxStore: Send + Sync + 'static {
    /// What the local transaction writes with. Dropping it undoes what was written.
    type Work: Send;

    /// Begins.
    ///
    /// # Errors
    /// The store is not available.
    fn begin(&self) -> impl Future<Output = Result<Self::Work, BoxError>> + Send;

    /// Makes durable, as one, what `work` has written and that the transaction `id` ended as `state`.
    ///
    /// # Errors
    /// It is not known to be durable.
    fn commit(
        &self,
        work: Self::Work,
        id: &str,
        state: LocalState,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// How the transaction `id` ended; `None` when nothing is recorded.
    ///
    /// # Errors
    /// The store is not available.
    fn outcome(
        &self,
        id: &str,
    ) -> impl Future<Output = Result<Option<LocalState>, BoxError>> + Send;

    /// Forgets outcomes older than `age`; how many. Brokers ask for some 15 minutes by default.
    ///
    /// # Errors
    /// The store is not available.
    fn expire(&self, age: Duration) -> impl Future<Output = Result<u64, BoxError>> + Send;
}

/// A [`TransactionListener`] over a [`TxStore`]: one function with the local transaction, everything else is done.
///
/// The function gets the store's work and gives it back with its decision. `Commit` makes the work durable together with
/// that decision; `Rollback` drops the work and records the decision; `Unknown` and errors drop the work and record
/// nothing.
///
/// ```
/// use bindery::transaction::{LocalState, MemoryTxStore, StoredListener};
///
/// let listener = StoredListener::new(MemoryTxStore::new(), |mut work, half, _args| async move {
///     let booked = half.payload().len();
///     work.on_commit(move || println!("{booked} bytes are booked"));
///     Ok((work, LocalState::Commit))
/// });
/// # let _ = listener;
/// ```
pub struct StoredListener<S, F> {
    store: S,
    local: F,
}

impl<S, F, Fut> StoredListener<S, F>
where
    S: TxStore,
    F: Fn(S::Work, HalfMessage, TxArgs) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(S::Work, LocalState), BoxError>> + Send,
{
    /// A listener that runs `local` and keeps its outcomes in `store`.
    pub fn new(store: S, local: F) -> Self {
        Self { store, local }
    }
}

impl<S, F, Fut> TransactionListener for StoredListener<S, F>
where
    S: TxStore,
    F: Fn(S::Work, HalfMessage, TxArgs) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(S::Work, LocalState), BoxError>> + Send,
{
    async fn execute_local(
        &self,
        half: &HalfMessage,
        args: &TxArgs,
    ) -> Result<LocalState, BoxError> {
        let id = half.transaction_id();
        let work = self.store.begin().await?;
        let (work, state) = (self.local)(work, half.clone(), args.clone()).await?;
        match state {
            LocalState::Commit => self.store.commit(work, id, state).await?,
            LocalState::Rollback => {
                drop(work);
                let nothing = self.store.begin().await?;
                self.store.commit(nothing, id, state).await?;
            }
            LocalState::Unknown => drop(work),
        }
        Ok(state)
    }

    async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        let outcome = self.store.outcome(half.transaction_id()).await?;
        Ok(outcome.unwrap_or_default())
    }
}

impl<S: fmt::Debug, F> fmt::Debug for StoredListener<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredListener")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// Outcomes in this process: for tests and for state that dies with the process anyway. Cheap to clone; clones are the
/// same store.
#[derive(Debug, Clone, Default)]
pub struct MemoryTxStore {
    outcomes: Arc<Mutex<HashMap<String, (LocalState, SystemTime)>>>,
}

/// What a local transaction over a [`MemoryTxStore`] will change.
#[derive(Default)]
pub struct MemoryWork {
    changes: Vec<Box<dyn FnOnce() + Send>>,
}

impl MemoryWork {
    /// Changes something when the transaction is committed, while nobody can ask for its outcome.
    pub fn on_commit(&mut self, change: impl FnOnce() + Send + 'static) {
        self.changes.push(Box::new(change));
    }
}

impl fmt::Debug for MemoryWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryWork")
            .field("changes", &self.changes.len())
            .finish()
    }
}

impl MemoryTxStore {
    /// A store without outcomes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (LocalState, SystemTime)>> {
        // A change that panicked did so before its outcome was entered: the map is whole.
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TxStore for MemoryTxStore {
    type Work = MemoryWork;

    async fn begin(&self) -> Result<MemoryWork, BoxError> {
        Ok(MemoryWork::default())
    }

    async fn commit(&self, work: MemoryWork, id: &str, state: LocalState) -> Result<(), BoxError> {
        let mut outcomes = self.lock();
        for change in work.changes {
            change();
        }
        outcomes.insert(id.to_owned(), (state, SystemTime::now()));
        Ok(())
    }

    async fn outcome(&self, id: &str) -> Result<Option<LocalState>, BoxError> {
        Ok(self.lock().get(id).map(|(state, _)| *state))
    }

    async fn expire(&self, age: Duration) -> Result<u64, BoxError> {
        let mut outcomes = self.lock();
        let before = outcomes.len();
        // A clock that was set back makes an outcome younger than it is: it is kept longer, which does no harm.
        outcomes.retain(|_, (_, at)| at.elapsed().unwrap_or_default() < age);
        Ok(u64::try_from(before - outcomes.len()).unwrap_or(u64::MAX))
    }
}
