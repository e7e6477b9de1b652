//! Numbers as clients really write them: Java bare, Go and C++ some of them as text; and constants by name or by number.
//! fastjson, which the original reads with, takes either.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, de};

/// A constant's name, or its number in Java's declaration.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum NameOrNumber {
    /// Its name.
    Name(String),
    /// Its number.
    Number(i64),
}

/// An integer, bare or as text.
pub(super) fn integer<'de, D, N>(deserializer: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<i64>,
{
    number(&NameOrNumber::deserialize(deserializer)?)
}

/// A list of integers, each bare or as text.
pub(super) fn integers<'de, D, N>(deserializer: D) -> Result<BTreeSet<N>, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<i64> + Ord,
{
    Vec::<NameOrNumber>::deserialize(deserializer)?
        .iter()
        .map(number)
        .collect()
}

fn number<N: TryFrom<i64>, E: de::Error>(read: &NameOrNumber) -> Result<N, E> {
    let wide = match read {
        NameOrNumber::Number(number) => Some(*number),
        NameOrNumber::Name(text) => text.trim().parse().ok(),
    };
    wide.and_then(|wide| N::try_from(wide).ok())
        .ok_or_else(|| E::custom(format!("{read:?} is no number that fits here")))
}
