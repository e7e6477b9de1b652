//! The local transactions behind `output-transaction`, and the table that remembers how they ended.
//!
//! ```text
//! half message ─▶ execute_local: begun ─▶ the property `test` decides: 1 unknown, 2 rollback, else commit ─▶ ended
//! broker, while undecided ─▶ check_local: what the table says; of one that ended unknown, commit
//! ```
//!
//! The table is in memory, so it answers for this process alone. A real one is written in the database transaction that it tells of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery::error::BoxError;
use bindery::handler::AppContext;
use bindery::prelude::*;

/// Transactions by id. Cheap to clone; clones are the same table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transactions {
    rows: Arc<Mutex<HashMap<String, Row>>>,
}

/// A transaction that runs can't be told from one that ended unknown by its state alone, and must not be committed.
#[derive(Debug, Clone, Copy)]
enum Row {
    Begun,
    Ended(LocalState),
}

impl Transactions {
    fn rows(&self) -> MutexGuard<'_, HashMap<String, Row>> {
        // One insert leaves the map whole: a panic elsewhere cannot have damaged it.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The listener that the YAML names.
struct MyTransactionListener {
    transactions: Transactions,
}

#[transaction_listener("myTransactionListener")]
impl TransactionListener for MyTransactionListener {
    async fn execute_local(
        &self,
        half: &HalfMessage,
        args: &TxArgs,
    ) -> Result<LocalState, BoxError> {
        let id = half.transaction_id().to_owned();
        self.transactions.rows().insert(id.clone(), Row::Begun);
        let state = match half.headers().get("test") {
            Some("1") => LocalState::Unknown,
            Some("2") => LocalState::Rollback,
            _ => LocalState::Commit,
        };
        println!("executed {state:?}, args {}", args.as_text().unwrap_or("-"));
        self.transactions.rows().insert(id, Row::Ended(state));
        Ok(state)
    }

    async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        let row = self.transactions.rows().get(half.transaction_id()).copied();
        let state = match row {
            None | Some(Row::Begun) => LocalState::Unknown,
            Some(Row::Ended(LocalState::Unknown)) => LocalState::Commit,
            Some(Row::Ended(state)) => state,
        };
        println!("checked {state:?}");
        Ok(state)
    }
}

impl FromApp for MyTransactionListener {
    fn from_app(app: &AppContext) -> Result<Self, BoxError> {
        Ok(Self {
            transactions: app.state()?,
        })
    }
}
