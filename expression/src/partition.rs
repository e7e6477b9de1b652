//! From a key to a partition, as Spring Cloud Stream's `PartitionHandler` chooses it.
//!
//! ```text
//! key ──java_hash──▶ default_selector: |h|, 0 for the one h without an absolute value ──▶ |selected % count|
//! key ──selector expression──▶ Integer ─────────────────────────────────────────────────▶ |selected % count|
//! ```

use std::num::NonZeroU32;

use crate::hash::UnstableHash;
use crate::value::Value;

/// How many partitions there are; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionCount(NonZeroU32);

impl PartitionCount {
    /// `None` for zero.
    #[must_use]
    pub fn new(count: u32) -> Option<Self> {
        NonZeroU32::new(count).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

/// Why a key has no partition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The key is null.
    #[error("the partition key is null")]
    NullKey,
    /// The key has no stable hash.
    #[error(transparent)]
    Hash(#[from] UnstableHash),
    /// There is nothing to choose from.
    #[error("there are no partitions")]
    NoPartitions,
}

/// What is taken from a key without a selector expression: the absolute value of its hash, and 0 for the smallest
/// integer, which has none.
///
/// # Errors
/// The key is null or has no stable hash.
pub fn default_selector(key: &Value) -> Result<i32, PartitionError> {
    if key.is_null() {
        return Err(PartitionError::NullKey);
    }
    Ok(key.java_hash()?.checked_abs().unwrap_or(0))
}

/// The partition of what a selector gave: Java's remainder by the count, then the absolute value.
#[must_use]
pub fn partition(selected: i32, count: PartitionCount) -> u32 {
    // The sign of a remainder is the dividend's, so the remainder of the absolute value is its absolute value.
    selected.unsigned_abs() % count.0
}

/// The partition of a key by its hash, out of `count`.
///
/// # Errors
/// The key is null or has no stable hash, or `count` is zero.
pub fn partition_for(key: &Value, count: u32) -> Result<u32, PartitionError> {
    let count = PartitionCount::new(count).ok_or(PartitionError::NoPartitions)?;
    Ok(partition(default_selector(key)?, count))
}
