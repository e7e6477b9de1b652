//! Tests of whole applications, without a network and without waiting.
//!
//! ```text
//! #[bindery::test] ─▶ TestApp ─▶ the application ─▶ broker in the process, in virtual time
//!      │               │ input("in").send(..)          │      (or a real one: with_real_broker)
//!      │               │ settle() ◀── at rest, pauses and delays jumped over
//!      └─ assert! ◀────┴ calls("handler"), output("out").receive(..), dlq("group")
//! ```
//!
//! The handlers and `#[bindings]` structs that take part are those of the test's program whose bindings the
//! configuration names. Each test has a broker and a time of its own: tests run side by side without seeing each other.
//!
//! ```
//! use std::time::Duration;
//!
//! use bindery::prelude::*;
//! use bindery::testing::TestApp;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Order { id: i64 }
//!
//! #[stream_listener("orders")]
//! #[send_to("invoices")]
//! async fn bill(order: Json<Order>) -> Result<String, HandlerError> {
//!     match order.id {
//!         0 => Err(HandlerError::retry("not yet")),
//!         id => Ok(format!("invoice {id}")),
//!     }
//! }
//!
//! const CONFIG: &str = "
//! spring.cloud.stream:
//!   default.consumer.max-attempts: 1
//!   bindings:
//!     orders: { destination: orders, group: billing }
//!     invoices: { destination: invoices }
//! ";
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let t = TestApp::builder().config(CONFIG).start().await?;
//! t.input("orders").send(Order { id: 7 }).await;
//! t.input("orders").send(Order { id: 0 }).await;
//! t.settle().await; // almost five hours of redeliveries, in no time
//!
//! let invoice = t.output("invoices").receive(Duration::ZERO).await.expect("sent");
//! assert_eq!(invoice.text(), "invoice 7");
//! assert_eq!(t.calls("bill").len(), 1 + 17);
//! assert_eq!(t.dlq("billing").await.len(), 1);
//! # Ok::<(), bindery::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! In a test the attribute does the starting:
//!
//! ```no_run
//! # use bindery::testing::TestApp;
//! #[bindery::test(config = "spring.cloud.stream.bindings.orders: { destination: orders, group: billing }")]
//! async fn orders_are_billed(t: TestApp) {
//!     t.input("orders").send("tea").await;
//!     t.settle().await;
//!     assert!(t.calls("bill").iter().all(|call| call.is_handled()));
//! }
//! ```

mod app;
mod back_end;
mod builder;
mod calls;
#[doc(hidden)]
pub mod entry;
mod handles;
mod peer;
mod received;
mod tap;
mod watch;

pub use app::TestApp;
pub use back_end::BackEnd;
pub use builder::TestAppBuilder;
pub use calls::{Call, CallResult, TxCall};
pub use handles::{TestClock, TestInput, TestOutput, TestTransactions};
pub use peer::Instance;
pub use received::Received;
