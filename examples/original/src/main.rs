//! An application written in Java for Spring Cloud Stream, as it looks here: its YAML is unchanged, its source interface, its
//! handlers and its web endpoints are Rust.
//!
//! ```text
//! --spring.profiles.active=PART ─▶ application-PART.yaml
//!          GET /produce ─▶ web.rs ─▶ MySource (source.rs) ─▶ broker ─▶ handlers.rs ─▶ printed
//! ```
//!
//! Its parts share the names of bindings, and each has its own file: one of them runs at a time. With a broker at
//! 127.0.0.1:9876 (`cargo run -p bindery-cli -- up`):
//!
//! ```text
//! cargo run -p original -- --spring.profiles.active=ordered      # first, ordered, delay, transaction, backtracking
//! curl localhost:8080/produce                                    # backtracking: localhost:8080/mq-example/produce
//! curl 'localhost:8080/send_transaction?test=1'                  # transaction: 1 unknown at first, 2 rolled back, 3 committed
//! ```

mod handlers;
mod source;
mod transaction;
mod web;

use bindery::config::{Config, LoadOptions};
use bindery::prelude::*;

#[bindery::main]
async fn main(app: AppBuilder) -> bindery::Result<()> {
    // What is wrong with the configuration is told by `run`, which reads it for this program.
    let profiles = Config::load(LoadOptions::from_process())
        .map_or_else(|_| Vec::new(), |loaded| loaded.config.profiles);
    app.bindings::<source::MySource>()
        .state(transaction::Transactions::default())
        .routes(web::routes(&profiles))
        .run()
        .await
}
