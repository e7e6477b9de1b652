//! Orders that are booked in `SQLite` and told to everybody who listens: both happen or neither, whenever the process dies.
//!
//! ```text
//! PUT /orders/1 (handlers.rs) ─▶ half message at the broker ─▶ books.rs ─▶ store.rs: order row + state row, one commit
//!                                       │ the verdict, or the broker's question and the state row's answer
//! deliveries table ◀─ handlers.rs ◀─────┘ only if the order is booked
//! ```
//!
//! `cargo run -p transaction` starts it with a broker inside the process and the database at `.bindery/orders.db`
//! (`ORDERS_DB` is another path). Then
//!
//! ```text
//! curl -X PUT -d '{"item":"tea","quantity":2}' -H 'content-type: application/json' localhost:8080/orders/1
//! curl localhost:8080/orders            # what is booked, and how often it was delivered
//! ```
//!
//! To see it die: `TRANSACTION_PARK=committed cargo run -p transaction`, the same PUT for order 2, `kill -9` of the process,
//! and start it again without the variable. The other steps are in `park.rs`.
#![allow(
    unreachable_pub,
    reason = "nobody uses the items of a program from outside, and `pub` reads easier than `pub(crate)`"
)]

mod books;
mod handlers;
mod orders;
mod park;
mod store;

use std::path::PathBuf;

use bindery::Error;
use bindery::prelude::*;

use store::Store;

#[bindery::main]
async fn main(app: AppBuilder) -> bindery::Result<()> {
    let path = std::env::var_os("ORDERS_DB").map_or_else(
        || PathBuf::from(".bindery").join("orders.db"),
        PathBuf::from,
    );
    let store = Store::open(&path).await.map_err(Error::user)?;
    app.state(store.clone())
        .routes(handlers::routes())
        .on_started(move |_| store::expire_old_outcomes(store))
        .run()
        .await
}
