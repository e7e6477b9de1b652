//! Bindery: annotate a handler function, name its bindings in `application.yaml`, and have it fed by a broker.
//!
//! ```text
//! application.yaml ──▶ config ─────────────┐
//! #[bindings], #[stream_listener] ──▶ registry ─┴─▶ app: names resolved, every mistake reported at once
//!      app ──▶ binder (rocketmq | memory) ──▶ delivery pipeline ──▶ handler ──▶ outcome: ack · retry · suspend · dead letter
//!      Output<T> ──▶ partition key ──▶ codec ──▶ binder ──▶ broker
//! ```
//!
//! Nothing above [`binder`] knows which broker is behind it.
#![forbid(unsafe_code)]

pub mod app;
pub mod binder;
pub mod binding;
pub mod config;
pub mod convert;
pub mod error;
pub mod error_handler;
pub mod handler;
pub mod headers;
pub mod message;
pub mod partition;
pub mod prelude;
pub mod registry;
pub mod testing;
pub mod transaction;

mod actuator;
mod embedded;
mod log;
mod main_entry;
mod pace;
mod pipeline;
mod signals;
mod web;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use app::{App, AppBuilder, AppHandle};
pub use bindery_macros::{
    bindings, error_handler, main, partition_key_extractor, partition_selector, send_to,
    stream_listener, test, transaction_listener,
};
pub use binding::{Bound, Input, Output, SendError, SendReceipt, StreamBridge};
pub use error::{Error, Result};
pub use headers::Headers;
pub use message::Message;
