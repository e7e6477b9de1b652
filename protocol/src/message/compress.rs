//! Body compression: zlib, LZ4 frames and Zstandard, as producers apply it and consumers undo it.
//!
//! ```text
//! producer: body ──deflate──▶ stored body + sysFlag bits      consumer: stored body ──inflate──▶ body
//! ```
//! The broker never inflates what it stores.

use std::io::{self, Read, Write};

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use lz4_flex::frame::{FrameDecoder, FrameEncoder};

/// The most bytes that [`inflate`] produces. Far above any body a broker accepts (`maxMessageSize`, 4 MiB by default),
/// and what stops a small body that unpacks to gigabytes.
pub const INFLATE_LIMIT: u64 = 128 << 20;

/// How a body is compressed (bits 8 to 10 of the system flag).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// A zlib stream (RFC 1950), the default of the Java client at level 5.
    Zlib,
    /// An LZ4 frame (magic `04224D18`).
    Lz4,
    /// A Zstandard frame (magic `28B52FFD`).
    Zstd,
}

/// Why a body could not be compressed or brought back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The system flag names a compression nobody defined.
    #[error("unknown compression in system flag {sys_flag:#x}")]
    UnknownCompression {
        /// The whole system flag.
        sys_flag: i32,
    },
    /// The compressed bytes are damaged, or the compressor failed.
    #[error("damaged {compression:?} body")]
    Damaged {
        /// What the body claims to be.
        compression: Compression,
        /// What the codec said.
        #[source]
        source: io::Error,
    },
    /// The body unpacks to more than [`INFLATE_LIMIT`] bytes.
    #[error("a {compression:?} body unpacks to more than {INFLATE_LIMIT} bytes")]
    TooLong {
        /// What the body claims to be.
        compression: Compression,
    },
}

/// Unpacks a compressed body.
///
/// # Errors
/// [`BodyError::Damaged`] for bytes that are no such stream, [`BodyError::TooLong`] beyond [`INFLATE_LIMIT`].
pub fn inflate(compression: Compression, stored: &[u8]) -> Result<Vec<u8>, BodyError> {
    let damaged = |source| BodyError::Damaged {
        compression,
        source,
    };
    let mut body = Vec::new();
    let read = match compression {
        Compression::Zlib => take(ZlibDecoder::new(stored), &mut body),
        Compression::Lz4 => take(FrameDecoder::new(stored), &mut body),
        Compression::Zstd => ruzstd::decoding::StreamingDecoder::new(stored)
            .map_err(io::Error::other)
            .and_then(|decoder| take(decoder, &mut body)),
    }
    .map_err(damaged)?;
    if read > INFLATE_LIMIT {
        return Err(BodyError::TooLong { compression });
    }
    Ok(body)
}

fn take(stream: impl Read, into: &mut Vec<u8>) -> io::Result<u64> {
    let read = stream.take(INFLATE_LIMIT + 1).read_to_end(into)?;
    Ok(u64::try_from(read).unwrap_or(u64::MAX))
}

/// Compresses a body. `level` is zlib's 0 to 9 (the Java client uses 5); the other two kinds have one level.
///
/// # Errors
/// [`BodyError::Damaged`] if the codec fails, which writing to memory does not make it do.
pub fn deflate(compression: Compression, level: u32, body: &[u8]) -> Result<Vec<u8>, BodyError> {
    let packed = match compression {
        Compression::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::new(level.min(9)));
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
        Compression::Lz4 => {
            let mut encoder = FrameEncoder::new(Vec::new());
            encoder
                .write_all(body)
                .and_then(|()| encoder.finish().map_err(io::Error::other))
        }
        Compression::Zstd => Ok(ruzstd::encoding::compress_to_vec(
            body,
            ruzstd::encoding::CompressionLevel::Fastest,
        )),
    };
    packed.map_err(|source| BodyError::Damaged {
        compression,
        source,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn every_kind_brings_the_body_back() {
        let body = b"The quick brown fox. ".repeat(50);
        for kind in [Compression::Zlib, Compression::Lz4, Compression::Zstd] {
            let packed = deflate(kind, 5, &body).unwrap();
            assert!(packed.len() < body.len(), "{kind:?}");
            assert_eq!(inflate(kind, &packed).unwrap(), body, "{kind:?}");
        }
    }

    #[test]
    fn damaged_bodies_are_errors() {
        for kind in [Compression::Zlib, Compression::Lz4, Compression::Zstd] {
            assert!(inflate(kind, b"not compressed at all").is_err(), "{kind:?}");
        }
    }
}
