//! Messages as RocketMQ stores and ships them: the record of the commit log, its properties, ids, tags and batches.
//!
//! ```text
//! NewMessage ──record::encode──▶ record bytes ──record::patch──▶ commit log ─┐
//! batch body ──batch::decode──▶ BatchElement ─┘                              │ pull, query
//! StoredMessage ◀──record::decode / decode_all── answer body ◀───────────────┘
//! ```
//!
//! Everything here is a pure function over bytes. Layouts mirror Apache RocketMQ 5.3.3 byte for byte.

pub mod batch;
pub mod compress;
pub mod delay;
pub mod id;
pub mod properties;
pub mod recall;
pub mod record;
pub mod sysflag;
pub mod tag;

use std::fmt;

pub use compress::{BodyError, Compression};
pub use delay::DelayLevels;
pub use properties::{Properties, property};
pub use recall::{RecallHandle, RecallHandleError};
pub use record::{NewMessage, RecordView, StoredMessage};
pub use sysflag::{SysFlag, Transaction};
pub use tag::TagExpression;

/// Position of a message in one queue, counted in messages from 0: entry n of the queue's consume queue.
///
/// Signed as on the wire, where -1 stands for "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct QueueOffset(pub i64);

/// Position of a record in the commit log, counted in bytes from 0. Never mixed with [`QueueOffset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PhysicalOffset(pub i64);

impl fmt::Display for QueueOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PhysicalOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
