//! The books: an order that is sent in a transaction reaches the handlers exactly if it is booked.
//!
//! ```text
//! output-transactional ─▶ half message ─▶ execute_local: order and transaction booked as one ─▶ commit ─▶ handlers
//!                                                       └─ not enough tea ─▶ rollback ─▶ nobody
//! broker, when it was not told ─▶ check_local ─▶ what the books say
//! ```
//!
//! These books are in memory. Real ones are a database: the row of the order and the row of the transaction are written
//! in one database transaction, and `check_local` reads the latter.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery::error::BoxError;
use bindery::handler::AppContext;
use bindery::prelude::*;

use crate::orders::Order;

/// The largest quantity that can be booked.
pub const STOCK: u32 = 100;

/// What was decided, by the id of its transaction. Cheap to clone; clones are the same books.
#[derive(Debug, Clone, Default)]
pub struct Books {
    decided: Arc<Mutex<HashMap<String, Decided>>>,
}

#[derive(Debug)]
enum Decided {
    Booked(Order),
    Refused,
}

impl Books {
    fn decide(&self, id: &str, order: Order) -> LocalState {
        let decided = if order.quantity > STOCK {
            Decided::Refused
        } else {
            tracing::debug!(order.id, order.item, order.quantity, "booked");
            Decided::Booked(order)
        };
        let state = decided.state();
        self.lock().insert(id.to_owned(), decided);
        state
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Decided>> {
        // One insert leaves the map whole: a panic elsewhere cannot have damaged it.
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Decided {
    fn state(&self) -> LocalState {
        match self {
            Self::Booked(_order) => LocalState::Commit,
            Self::Refused => LocalState::Rollback,
        }
    }
}

#[transaction_listener("books")]
impl TransactionListener for Books {
    async fn execute_local(&self, half: &HalfMessage, _: &TxArgs) -> Result<LocalState, BoxError> {
        let order = serde_json::from_slice(half.payload())?;
        Ok(self.decide(half.transaction_id(), order))
    }

    async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        let decided = self.lock();
        Ok(decided
            .get(half.transaction_id())
            .map_or(LocalState::Unknown, Decided::state))
    }
}

impl FromApp for Books {
    fn from_app(app: &AppContext) -> Result<Self, BoxError> {
        Ok(app.state()?)
    }
}
