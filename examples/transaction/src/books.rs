//! The local transaction: books an order, and answers the broker when the process that booked it could not.
//!
//! ```text
//! half message ─▶ execute_local ─▶ begin ─▶ order row ─▶ state row ─▶ commit ─▶ verdict
//! question ─────▶ check_local ─┬─ there is a state row ─▶ what it says
//!                              ├─ none, message young ──▶ unknown: it may be running
//!                              └─ none, message old ────▶ a state row "rollback" first, then that verdict
//! ```
//!
//! That no row is there does not mean that none will be: the transaction may hang in another process. The row that the
//! question leaves makes sure: the late one finds its id taken and cannot commit.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bindery::error::BoxError;
use bindery::handler::AppContext;
use bindery::prelude::*;
use bindery::transaction::TxStore;

use crate::orders::Order;
use crate::park::{self, Step};
use crate::store::{self, Store};

/// How old a message is before a transaction without a row is given up. Correct at any value; short ones give up
/// transactions that are only slow.
const PATIENCE: Duration = Duration::from_secs(2);

/// Books orders.
#[derive(Debug)]
pub struct Books {
    store: Store,
}

#[transaction_listener("books")]
impl TransactionListener for Books {
    async fn execute_local(&self, half: &HalfMessage, _: &TxArgs) -> Result<LocalState, BoxError> {
        let id = half.transaction_id();
        let order: Order = serde_json::from_slice(half.payload())?;
        park::at(Step::HalfSent, id).await;
        let mut work = self.store.begin().await?;
        let booked = store::book(&mut work, &order).await?;
        park::at(Step::InTransaction, id).await;
        // A refusal has written nothing, so the same work carries its row.
        let state = if booked {
            LocalState::Commit
        } else {
            LocalState::Rollback
        };
        self.store.commit(work, id, state).await?;
        park::at(Step::Committed, id).await;
        Ok(state)
    }

    async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        let id = half.transaction_id();
        let state = match self.store.outcome(id).await? {
            Some(state) => state,
            None if age(half) < PATIENCE => LocalState::Unknown,
            None => self.store.give_up(id).await?,
        };
        if state == LocalState::Unknown {
            tracing::info!(transaction = id, "the broker asked too early");
        } else {
            park::at(Step::Check, id).await;
            tracing::info!(transaction = id, ?state, "the broker is answered");
        }
        Ok(state)
    }
}

/// How long ago the message was made. One that does not say is old.
fn age(half: &HalfMessage) -> Duration {
    let born = half.headers().get("rocketmq_BORN_TIMESTAMP");
    let born = born.and_then(|millis| millis.parse().ok()).unwrap_or(0);
    SystemTime::now()
        .duration_since(UNIX_EPOCH + Duration::from_millis(born))
        .unwrap_or_default()
}

impl FromApp for Books {
    fn from_app(app: &AppContext) -> Result<Self, BoxError> {
        Ok(Self {
            store: app.state()?,
        })
    }
}
