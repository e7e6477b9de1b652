//! Typed ext fields of requests and answers, one declarative table each (`header!`).
use crate::frame::{ExtWriter, HeaderError};

/// A typed header: read in one pass over the ext fields, written as strings.
pub trait WireHeader<'a>: Sized {
    /// Reads it from (name, value) pairs.
    fn read(fields: &mut dyn Iterator<Item = (std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>)>) -> Result<Self, HeaderError>;
    /// Writes all present fields.
    fn write(&self, ext: &mut ExtWriter);
}
