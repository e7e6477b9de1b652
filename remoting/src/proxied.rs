//! The PROXY protocol: what a load balancer writes in front of a connection to tell whose it is.
//!
//! ```text
//! first bytes ─┬─ "PROXY TCP4 …" or the signature of version 2 ─▶ whole header ─▶ taken off, source address kept
//!              └─ anything else ─▶ frames
//! ```
//! No frame can begin that way: as lengths, both beginnings are far beyond any frame. As Apache's server, every accepted
//! connection may begin with one such header, and an unreadable one closes it.
use std::net::SocketAddr;

use proxy_header::{Error, ParseConfig, ProxyHeader};

const VERSION_1: &[u8] = b"PROXY ";
const VERSION_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// How a connection begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Too few bytes to tell.
    Undecided,
    /// With a frame.
    Frame,
    /// With a header of so many bytes; the address in it, if it tells one.
    Header {
        len: usize,
        source: Option<SocketAddr>,
    },
}

/// Looks at the first bytes of a connection.
///
/// # Errors
/// When they are an unreadable header.
pub(crate) fn beginning(bytes: &[u8]) -> Result<Beginning, Error> {
    let may_become = |signature: &[u8]| signature.starts_with(bytes);
    if may_become(VERSION_1) || may_become(VERSION_2) {
        return Ok(Beginning::Undecided);
    }
    if !bytes.starts_with(VERSION_1) && !bytes.starts_with(VERSION_2) {
        return Ok(Beginning::Frame);
    }
    match ProxyHeader::parse(bytes, ParseConfig::default()) {
        Ok((header, len)) => Ok(Beginning::Header {
            len,
            source: header.proxied_address().map(|addresses| addresses.source),
        }),
        // What is whole does not become better by waiting, however little of it could be read.
        Err(Error::BufferTooShort) if !is_whole(bytes) => Ok(Beginning::Undecided),
        Err(error) => Err(error),
    }
}

/// Whether all bytes have come that a header announces.
fn is_whole(bytes: &[u8]) -> bool {
    if bytes.starts_with(VERSION_1) {
        return bytes.windows(2).any(|pair| pair == b"\r\n");
    }
    // Signature, command, family, length.
    match bytes
        .get(VERSION_2.len() + 2..)
        .and_then(<[u8]>::first_chunk)
    {
        Some(len) => bytes.len() >= VERSION_2.len() + 4 + usize::from(u16::from_be_bytes(*len)),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;
    use proxy_header::{Protocol, ProxiedAddress};

    use super::*;

    fn version_2(protocol: Protocol) -> Vec<u8> {
        let (source, destination) = ("203.0.113.7:4711", "10.0.0.1:10911");
        let header = ProxyHeader::with_address(ProxiedAddress {
            protocol,
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        });
        let mut bytes = vec![0; 64];
        let len = header.encode_to_slice_v2(&mut bytes).unwrap();
        bytes.truncate(len);
        bytes
    }

    #[test]
    fn both_versions_tell_the_source_or_none() {
        let (v4, v6) = ("203.0.113.7:4711", "[2001:db8::7]:4711");
        for (bytes, source) in [
            (
                b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 10911\r\n".to_vec(),
                Some(v4),
            ),
            (
                b"PROXY TCP6 2001:db8::7 ::1 4711 10911\r\n".to_vec(),
                Some(v6),
            ),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (b"PROXY UNKNOWN ff:f::1 a::b 1 2\r\n".to_vec(), None),
            (version_2(Protocol::Stream), Some(v4)),
            (version_2(Protocol::Datagram), Some(v4)),
            ([VERSION_2, &[0x20, 0, 0, 0]].concat(), None),
        ] {
            let header = Beginning::Header {
                len: bytes.len(),
                source: source.map(|text| text.parse().unwrap()),
            };
            assert_eq!(beginning(&bytes), Ok(header), "{bytes:?}");
            for cut in 0..bytes.len() {
                assert_eq!(beginning(&bytes[..cut]), Ok(Beginning::Undecided), "{cut}");
            }
        }
    }

    #[test]
    fn what_apache_closes_is_an_error_and_a_length_is_a_frame() {
        for bytes in [
            b"PROXY TCP4 nonsense\r\n".to_vec(),
            b"PROXY TCP4 203.0.113.7 10.0.0.1 99999 1\r\n".to_vec(),
            [VERSION_1, &[b'x'; 120]].concat(),
            [VERSION_2, &[0x31, 0x11, 0, 12], &[0; 12]].concat(),
            [VERSION_2, &[0x21, 0x11, 0, 3], b"abc"].concat(),
            [VERSION_2, &[0x21, 0xf1, 0, 0]].concat(),
        ] {
            assert!(beginning(&bytes).is_err(), "{bytes:?}");
        }
        assert_eq!(beginning(&[0, 0, 1, 0, b'{']), Ok(Beginning::Frame));
        assert_eq!(beginning(b"POST / HTTP"), Ok(Beginning::Frame));
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at_without_a_panic(
            version in 0_u8..3,
            rest in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let start = [&b""[..], VERSION_1, VERSION_2][usize::from(version)];
            let bytes = [start, &rest].concat();
            if let Ok(Beginning::Header { len, .. }) = beginning(&bytes) {
                prop_assert!(len <= bytes.len());
            }
        }
    }
}
