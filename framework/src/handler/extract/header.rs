//! Single headers as handler arguments: `#[header("orderNo")] no: u64`.

use std::any::type_name;
use std::str::FromStr;

use super::Rejection;
use crate::error::BoxError;
use crate::handler::MessageContext;

/// A required header, read by `FromStr`.
///
/// # Errors
/// The header is missing or its text is no `T`.
pub fn header_argument<T>(cx: &MessageContext<'_>, name: &str) -> Result<T, Rejection>
where
    T: FromStr,
    T::Err: Into<BoxError>,
{
    match cx.message.headers().get(name) {
        Some(text) => parse(name, text),
        None => Err(Rejection::MissingHeader {
            name: name.to_owned(),
        }),
    }
}

/// A header that may be missing.
///
/// # Errors
/// The header's text is no `T`.
pub fn optional_header<T>(cx: &MessageContext<'_>, name: &str) -> Result<Option<T>, Rejection>
where
    T: FromStr,
    T::Err: Into<BoxError>,
{
    cx.message
        .headers()
        .get(name)
        .map(|text| parse(name, text))
        .transpose()
}

/// A header, or the text that stands for it when it is missing.
///
/// # Errors
/// The header's or the default's text is no `T`.
pub fn header_or_default<T>(
    cx: &MessageContext<'_>,
    name: &str,
    default: &str,
) -> Result<T, Rejection>
where
    T: FromStr,
    T::Err: Into<BoxError>,
{
    parse(name, cx.message.headers().get(name).unwrap_or(default))
}

fn parse<T>(name: &str, text: &str) -> Result<T, Rejection>
where
    T: FromStr,
    T::Err: Into<BoxError>,
{
    text.parse()
        .map_err(|error: T::Err| Rejection::InvalidHeader {
            name: name.to_owned(),
            value: text.to_owned(),
            expected: type_name::<T>(),
            source: error.into(),
        })
}
