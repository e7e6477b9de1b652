//! Content types as far as codecs are chosen by them: `type/subtype`, a `+suffix`, and the charset.

use std::fmt;
use std::str::FromStr;

/// A parsed content type. Types are compared without case; parameters other than `charset` are kept in the text only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentType {
    text: String,
    essence: String,
    charset: Option<String>,
}

/// A text that is no content type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no content type: expected `type/subtype`, for instance `application/json`")]
pub struct ContentTypeError {
    text: String,
}

/// An encoding of text that the text codec knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8, the default.
    Utf8,
    /// US-ASCII.
    Ascii,
    /// ISO-8859-1: each byte is the code point of its value.
    Latin1,
}

impl ContentType {
    /// `application/json`, the default.
    #[must_use]
    pub fn json() -> Self {
        Self::known("application/json")
    }

    /// `text/plain`.
    #[must_use]
    pub fn text() -> Self {
        Self::known("text/plain")
    }

    /// `application/octet-stream`.
    #[must_use]
    pub fn octets() -> Self {
        Self::known("application/octet-stream")
    }

    fn known(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            essence: text.to_owned(),
            charset: None,
        }
    }

    /// The whole text, with its parameters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `type/subtype` in lower case.
    #[must_use]
    pub fn essence(&self) -> &str {
        &self.essence
    }

    /// `application/json`, `text/json` or a type ending in `+json`.
    #[must_use]
    pub fn is_json(&self) -> bool {
        matches!(self.essence.as_str(), "application/json" | "text/json")
            || self.essence.ends_with("+json")
    }

    /// `text/*` except `text/json`.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.essence.starts_with("text/") && !self.is_json()
    }

    /// `application/octet-stream`.
    #[must_use]
    pub fn is_octets(&self) -> bool {
        self.essence == "application/octet-stream"
    }

    /// A serialized Java object, which only Java can read.
    #[must_use]
    pub fn is_java_object(&self) -> bool {
        self.essence.starts_with("application/x-java-")
    }

    /// The charset of text; `None` when it is named but not known.
    #[must_use]
    pub fn charset(&self) -> Option<Charset> {
        match self.charset.as_deref() {
            None | Some("utf-8" | "utf8") => Some(Charset::Utf8),
            Some("us-ascii" | "ascii") => Some(Charset::Ascii),
            Some("iso-8859-1" | "latin1") => Some(Charset::Latin1),
            Some(_) => None,
        }
    }
}

impl Default for ContentType {
    fn default() -> Self {
        Self::json()
    }
}

impl FromStr for ContentType {
    type Err = ContentTypeError;

    fn from_str(text: &str) -> Result<Self, ContentTypeError> {
        // Java's header arrives JSON-quoted from the older binder when it was no plain text there.
        let text = text.trim().trim_matches('"');
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let well_formed = essence
            .split_once('/')
            .is_some_and(|(main, sub)| is_token(main) && is_token(sub));
        if !well_formed {
            return Err(ContentTypeError {
                text: text.to_owned(),
            });
        }
        let charset = parts
            .filter_map(|parameter| parameter.split_once('='))
            .find_map(|(name, value)| {
                let value = value.trim().trim_matches('"').to_ascii_lowercase();
                name.trim().eq_ignore_ascii_case("charset").then_some(value)
            });
        Ok(Self {
            text: text.to_owned(),
            essence,
            charset,
        })
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&b))
}

impl fmt::Display for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
