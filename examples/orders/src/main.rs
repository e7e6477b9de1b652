//! The quickstart: an orders service fed by a broker.
//!
//! ```text
//! POST /orders ─┐                    ┌─▶ handlers.rs ─▶ account.rs ─▶ one printed line a flow
//! demonstration ┴─▶ orders.rs ─▶ broker
//! ```
//!
//! `cargo run` at the root starts it with a name server and a broker inside the process. It sends through every kind of
//! flow (normal, tagged, orderly, delayed, failing, transactional), prints what its handlers saw of that, and stays up:
//! `curl -d '{"item":"tea","quantity":2}' -H 'content-type: application/json' localhost:8080/orders`. On a cluster:
//! `BINDERY_EMBEDDED=false SPRING_CLOUD_STREAM_ROCKETMQ_BINDER_NAME_SERVER=HOST:9876 cargo run`.
#![allow(
    unreachable_pub,
    reason = "nobody uses the items of a program from outside, and `pub` reads easier than `pub(crate)`"
)]

mod account;
mod books;
mod demonstration;
mod handlers;
mod orders;
mod web;

use std::time::{SystemTime, UNIX_EPOCH};

use bindery::prelude::*;

use account::Account;
use books::Books;
use web::OrderNumbers;

#[bindery::main]
async fn main(app: AppBuilder) -> bindery::Result<()> {
    let account = Account::new(run_id());
    app.state(account.clone())
        .state(Books::default())
        .state(OrderNumbers::default())
        .routes(web::routes())
        .on_started(move |app| demonstration::run(app, account))
        .run()
        .await
}

/// Names this run: no two processes that share a broker have the same.
fn run_id() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("{}-{}", std::process::id(), since.as_nanos())
}
