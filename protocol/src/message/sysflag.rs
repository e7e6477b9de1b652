//! The system flag of a message: 32 bits in which client and broker note compression, transaction state and address kinds.
//!
//! Mirrors `MessageSysFlag` and `CompressionType` of Apache RocketMQ 5.3.3.

use std::fmt;

use super::compress::Compression;

/// The `sysFlag` field of a message. Unknown bits are kept as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SysFlag(pub i32);

/// Transaction state of a message (bits 2 and 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transaction {
    /// An ordinary message.
    None,
    /// A half message, not yet visible to consumers.
    Prepared,
    /// A committed message.
    Commit,
    /// A rolled back message.
    Rollback,
}

impl SysFlag {
    /// The body is compressed; bits 8 to 10 say how.
    pub const COMPRESSED: Self = Self(0x1);
    /// `TAGS` holds several tags.
    pub const MULTI_TAGS: Self = Self(0x2);
    /// Both transaction bits.
    pub const TRANSACTION_MASK: Self = Self(0xC);
    /// The born host is an IPv6 address (16 bytes).
    pub const BORN_HOST_V6: Self = Self(0x10);
    /// The store host is an IPv6 address (16 bytes).
    pub const STORE_HOST_V6: Self = Self(0x20);
    /// The client has to unwrap an inner batch.
    pub const NEED_UNWRAP: Self = Self(0x40);
    /// The body is an inner batch (queues of type `BatchCQ`).
    pub const INNER_BATCH: Self = Self(0x80);
    /// The three bits that name the compression.
    pub const COMPRESSION_MASK: Self = Self(0x700);

    /// Whether all bits of `bits` are set.
    #[must_use]
    pub const fn contains(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// This flag with `bits` set.
    #[must_use]
    pub const fn with(self, bits: Self) -> Self {
        Self(self.0 | bits.0)
    }

    /// This flag with `bits` cleared.
    #[must_use]
    pub const fn without(self, bits: Self) -> Self {
        Self(self.0 & !bits.0)
    }

    /// Whether the body is compressed.
    #[must_use]
    pub const fn is_compressed(self) -> bool {
        self.contains(Self::COMPRESSED)
    }

    /// The compression named by bits 8 to 10, or `None` for a number nobody defined. Only meaningful when
    /// [`SysFlag::is_compressed`]. Old clients leave the bits at 0, which means zlib.
    #[must_use]
    pub const fn compression(self) -> Option<Compression> {
        match (self.0 & Self::COMPRESSION_MASK.0) >> 8 {
            0 | 3 => Some(Compression::Zlib),
            1 => Some(Compression::Lz4),
            2 => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// This flag, marked as compressed by `compression`.
    #[must_use]
    pub const fn with_compression(self, compression: Compression) -> Self {
        let kind = match compression {
            Compression::Lz4 => 1,
            Compression::Zstd => 2,
            Compression::Zlib => 3,
        };
        self.without(Self::COMPRESSION_MASK)
            .with(Self(kind << 8))
            .with(Self::COMPRESSED)
    }

    /// The transaction state.
    #[must_use]
    pub const fn transaction(self) -> Transaction {
        match self.0 & Self::TRANSACTION_MASK.0 {
            0x4 => Transaction::Prepared,
            0x8 => Transaction::Commit,
            0xC => Transaction::Rollback,
            _ => Transaction::None,
        }
    }

    /// This flag with another transaction state.
    #[must_use]
    pub const fn with_transaction(self, state: Transaction) -> Self {
        let bits = match state {
            Transaction::None => 0,
            Transaction::Prepared => 0x4,
            Transaction::Commit => 0x8,
            Transaction::Rollback => 0xC,
        };
        self.without(Self::TRANSACTION_MASK).with(Self(bits))
    }
}

impl From<i32> for SysFlag {
    fn from(bits: i32) -> Self {
        Self(bits)
    }
}

impl fmt::Display for SysFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_states_take_two_bits() {
        for state in [
            Transaction::None,
            Transaction::Prepared,
            Transaction::Commit,
            Transaction::Rollback,
        ] {
            assert_eq!(SysFlag(0x31).with_transaction(state).transaction(), state);
        }
        assert_eq!(SysFlag(0x4).transaction(), Transaction::Prepared);
    }

    #[test]
    fn compression_is_named_as_java_names_it() {
        assert_eq!(
            SysFlag(0).with_compression(Compression::Zlib),
            SysFlag(0x301)
        );
        assert_eq!(
            SysFlag(0).with_compression(Compression::Lz4),
            SysFlag(0x101)
        );
        assert_eq!(SysFlag(0x1).compression(), Some(Compression::Zlib));
        assert_eq!(SysFlag(0x401).compression(), None);
    }
}
