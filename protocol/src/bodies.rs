//! JSON bodies: serde types in Java's spelling.
//!
//! ```text
//! Frame.body ─▶ from_slice::<T> ─▶ dialect made standard ─▶ T        T ─▶ to_vec ─▶ Reply::body / Request::body
//! ```
//!
//! Every field may be absent or null, as with the fastjson of the original: it then has the value that Java's constructor
//! gives it. Unknown fields are skipped. Structs list their fields in the order of their wire names, which is the order
//! they are written in.

#[macro_use]
mod text_enum;
mod clients;
mod config;
pub mod dialect;
mod heartbeat;
mod lenient;
mod pop;
mod properties_text;
mod queue;
mod registration;
mod route;
mod standardise;
mod stats;

pub use clients::*;
pub use config::*;
pub use dialect::{BodyError, NumericKeys, from_slice, to_vec, to_vec_with};
pub use heartbeat::*;
pub use pop::*;
pub use properties_text::{parse_properties, write_properties};
pub use queue::{MessageQueue, QueueMap};
pub use registration::*;
pub use route::*;
pub use stats::*;

#[cfg(test)]
mod tests;
