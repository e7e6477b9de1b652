//! The body of a batch send (request 320): messages of one topic, back to back.
//!
//! ```text
//! element: totalSize(4) magic(4)=0 bodyCRC(4)=0 flag(4) bodyLength(4) body propertiesLength(2) properties
//! ```
//! The broker stores each element as its own record. Layout of `MessageDecoder.encodeMessage` of Apache RocketMQ 5.3.3.

use bytes::{Buf, BufMut, BytesMut};

/// Bytes of an element beside its body and properties.
const FIXED: usize = 22;

/// One message of a batch, borrowed from the body it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchElement<'a> {
    /// The user's flag.
    pub flag: i32,
    /// The body; batches are never compressed.
    pub body: &'a [u8],
    /// The properties text, see [`super::properties`].
    pub properties: &'a [u8],
}

/// Why a batch body can't be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The body ends inside an element, or a length field points beyond it.
    #[error("the batch body is cut short or damaged at byte {at}")]
    Damaged {
        /// Where the element begins.
        at: usize,
    },
    /// The body of an element is longer than the format can say.
    #[error("a batch element's body of {len} bytes is too long")]
    BodyTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The properties of an element are longer than 32,767 bytes.
    #[error(
        "a batch element's properties of {len} bytes are longer than {}",
        i16::MAX
    )]
    PropertiesTooLong {
        /// Their length in bytes.
        len: usize,
    },
}

/// Appends `element` to a batch body.
///
/// # Errors
/// Lengths that the format can't express; nothing is written then.
pub fn encode(element: &BatchElement<'_>, into: &mut BytesMut) -> Result<(), BatchError> {
    let (body, properties) = (element.body, element.properties);
    let body_too_long = BatchError::BodyTooLong { len: body.len() };
    let Ok(properties_length) = i16::try_from(properties.len()) else {
        return Err(BatchError::PropertiesTooLong {
            len: properties.len(),
        });
    };
    let total = FIXED + body.len() + properties.len();
    let (Ok(total), Ok(body_length)) = (i32::try_from(total), i32::try_from(body.len())) else {
        return Err(body_too_long);
    };
    into.put_i32(total);
    into.put_i64(0);
    into.put_i32(element.flag);
    into.put_i32(body_length);
    into.put_slice(body);
    into.put_i16(properties_length);
    into.put_slice(properties);
    Ok(())
}

/// Takes a batch body apart.
///
/// # Errors
/// [`BatchError::Damaged`] at the first element whose lengths don't fit.
pub fn decode(body: &[u8]) -> Result<Vec<BatchElement<'_>>, BatchError> {
    let mut elements = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let damaged = BatchError::Damaged {
            at: body.len() - rest.len(),
        };
        let (element, total) = element(rest).ok_or(damaged)?;
        elements.push(element);
        rest = &rest[total..];
    }
    Ok(elements)
}

fn element(bytes: &[u8]) -> Option<(BatchElement<'_>, usize)> {
    let mut rest = bytes;
    let total = usize::try_from(rest.try_get_i32().ok()?).ok()?;
    let _magic_and_crc = rest.try_get_i64().ok()?;
    let flag = rest.try_get_i32().ok()?;
    let body_length = usize::try_from(rest.try_get_i32().ok()?).ok()?;
    let (body, mut rest) = rest.split_at_checked(body_length)?;
    let properties_length = usize::try_from(rest.try_get_i16().ok()?).ok()?;
    let (properties, _) = rest.split_at_checked(properties_length)?;
    (total == FIXED + body_length + properties_length).then_some((
        BatchElement {
            flag,
            body,
            properties,
        },
        total,
    ))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn elements_come_back_in_order() {
        let mut bytes = BytesMut::new();
        let one = BatchElement {
            flag: 7,
            body: b"one",
            properties: b"a\x01b\x02",
        };
        let two = BatchElement {
            flag: -1,
            body: b"",
            properties: b"",
        };
        encode(&one, &mut bytes).unwrap();
        encode(&two, &mut bytes).unwrap();
        assert_eq!(decode(&bytes).unwrap(), [one, two]);
    }

    #[test]
    fn a_cut_body_names_the_element() {
        let mut bytes = BytesMut::new();
        let one = BatchElement {
            flag: 0,
            body: b"one",
            properties: b"",
        };
        encode(&one, &mut bytes).unwrap();
        encode(&one, &mut bytes).unwrap();
        let cut = &bytes[..bytes.len() - 1];
        assert_eq!(decode(cut), Err(BatchError::Damaged { at: 25 }));
    }
}
