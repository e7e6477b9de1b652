//! A transaction listener without a name, on something else, and without `FromApp`.

use bindery::error::BoxError;
use bindery::transaction::{HalfMessage, LocalState, TransactionListener, TxArgs};
use bindery::transaction_listener;

struct Books;

#[transaction_listener]
impl Books {}

#[transaction_listener("books")]
impl Books {}

#[transaction_listener("books")]
struct Other;

#[transaction_listener("books")]
impl TransactionListener for Books {
    async fn execute_local(&self, _: &HalfMessage, _: &TxArgs) -> Result<LocalState, BoxError> {
        Ok(LocalState::Commit)
    }

    async fn check_local(&self, _: &HalfMessage) -> Result<LocalState, BoxError> {
        Ok(LocalState::Commit)
    }
}

fn main() {}
