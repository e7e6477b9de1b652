//! Typed ext fields of requests and answers, one declarative table each.
//!
//! ```text
//! Frame::header::<PullHeader>() ─▶ WireHeader::read ─▶ one pass over (name, value) ─▶ struct that borrows from the frame
//! PullReply { … } ─▶ Reply::with ─▶ WireHeader::write ─▶ ExtWriter
//! ```
//!
//! A table (`header!`) lists Rust names and types; the wire name is the Rust name in camel case unless `#[wire("…")]` says
//! otherwise. An `Option` may be absent, a field with `= value` takes that value when absent, all others are mandatory.
//! Unknown fields are skipped. Names and meanings are those of the `CommandCustomHeader` classes of Apache RocketMQ 5.3.3.

use crate::frame::{ExtFields, ExtWriter, HeaderError};

#[macro_use]
mod table;
mod admin;
mod client;
mod field;
mod group;
mod offset;
mod pop;
mod pull;
mod query;
mod route;
mod send;
mod topic;
mod transaction;

pub use admin::*;
pub use client::*;
pub use field::{FieldInfo, FieldKind, FieldValue};
pub use group::*;
pub use offset::*;
pub use pop::*;
pub use pull::*;
pub use query::*;
pub use route::*;
pub use send::*;
pub use topic::*;
pub use transaction::*;

/// A typed header: read in one pass over the ext fields, written as strings.
pub trait WireHeader<'a>: Sized {
    /// Its fields, as its table lists them.
    const FIELDS: &'static [FieldInfo];

    /// Reads it from the fields of a frame.
    ///
    /// # Errors
    /// [`HeaderError`] when a mandatory field is absent or a value does not parse.
    fn read(fields: ExtFields<'a>) -> Result<Self, HeaderError>;
    /// Writes all present fields.
    fn write(&self, ext: &mut ExtWriter);
}

/// No fields.
impl<'a> WireHeader<'a> for () {
    const FIELDS: &'static [FieldInfo] = &[];

    fn read(_: ExtFields<'a>) -> Result<Self, HeaderError> {
        Ok(())
    }

    fn write(&self, _: &mut ExtWriter) {}
}

#[cfg(test)]
pub(crate) mod tests;
