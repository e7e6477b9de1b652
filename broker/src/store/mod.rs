//! The store: one commit log, and what is derived from it.
//!
//! ```text
//! append ─▶ commit_log ─▶ flush (disk)                        recover: where the log ends, what the rest lacks
//!               │
//!               └─▶ dispatch ─▶ consume_queue ─▶ read  ─▶ pull
//!                          └──▶ index ────────▶ query ─▶ query by key
//! ```
//! The commit log is the only truth; consume queues and index are functions of it and can be deleted and rebuilt. Files
//! are those of Apache `RocketMQ` 5.3.3, byte for byte: a folder can move between the two brokers.

mod append;
mod batch_queue;
mod batch_queues;
mod checkpoint;
mod clean;
mod commit_log;
mod compose;
mod config;
mod consume_queue;
mod deleted;
mod dispatch;
mod error;
mod flush;
mod handle;
mod index;
mod index_file;
mod inner;
pub mod json_file;
mod levels;
mod light;
mod lock;
mod mapped_file;
mod mistrust;
mod query;
mod queue_files;
mod queues;
mod read;
mod rebuild;
mod recover;
mod space;
pub mod timer;

#[cfg(test)]
mod tests;

pub use append::Appended;
pub use clean::{Cleaned, Expiry};
pub use config::{FlushPace, FlushPolicy, StoreConfig};
pub use consume_queue::Entry;
pub use dispatch::{Arrivals, NoArrivals};
pub use error::{AppendError, StoreError};
pub use flush::{Durability, WhenDurable};
pub use handle::{Store, StoreStats};
pub use json_file::JsonFile;
pub use levels::LiveLevels;
pub(crate) use light::PREFIX as LIGHT_PREFIX;
pub use query::{Boundary, QueryResult};
pub use read::{EntryFilter, Everything, ReadLimits, ReadResult, ReadStatus};
pub use space::Space;
