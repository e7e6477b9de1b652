//! One entry of a consume queue.

use bindery_protocol::message::PhysicalOffset;
use bytes::{Buf, BufMut};

/// One entry: 20 bytes, big endian: physical offset (i64), record size in bytes (i32), tags code (i64).
/// Mirrors `ConsumeQueue.putMessagePositionInfo` of Apache `RocketMQ` 5.3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Where the record lies.
    pub physical: PhysicalOffset,
    /// Size of the record in bytes.
    pub size: i32,
    /// Hash of the tag, or the due time of a delayed message.
    pub tags_code: i64,
}

impl Entry {
    /// Fills places below the queue's first message.
    pub(super) const FILLER: Self = Self {
        physical: PhysicalOffset(0),
        size: i32::MAX,
        tags_code: 0,
    };

    /// Reads an entry; missing bytes read as zero, which is no entry.
    pub(in crate::store) fn read(mut bytes: &[u8]) -> Self {
        Self {
            physical: PhysicalOffset(bytes.try_get_i64().unwrap_or(0)),
            size: bytes.try_get_i32().unwrap_or(0),
            tags_code: bytes.try_get_i64().unwrap_or(0),
        }
    }

    pub(super) fn write(self, into: &mut Vec<u8>) {
        into.put_i64(self.physical.0);
        into.put_i32(self.size);
        into.put_i64(self.tags_code);
    }

    pub(super) fn is_entry(self) -> bool {
        self.physical.0 >= 0 && self.size > 0
    }

    /// Whether this stands for no message.
    pub(in crate::store) fn is_filler(self) -> bool {
        self == Self::FILLER
    }

    /// Offset behind the record.
    pub(in crate::store) fn end(self) -> i64 {
        self.physical.0.saturating_add(i64::from(self.size))
    }
}
