//! Tags: the hash that consume queues hold of a message's tag, and the tag expressions consumers subscribe with.
//!
//! ```text
//! message TAGS ──tag_code──▶ consume queue entry ──TagExpression::matches──▶ delivered or skipped
//! ```

use std::collections::BTreeSet;

/// Java's `String.hashCode()`: `h = 31·h + unit` over UTF-16 units, wrapping at 32 bits.
#[must_use]
pub fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

/// The tags code of a message: 0 for an empty tag, otherwise the Java hash of the whole `TAGS` text.
/// Mirrors `MessageExtBrokerInner.tagsString2tagsCode`.
#[must_use]
pub fn tag_code(tags: &str) -> i64 {
    i64::from(java_hash(tags))
}

/// A subscription by tags: everything, or a set of tags joined by `||`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TagExpression {
    /// `*`, or nothing at all.
    #[default]
    All,
    /// These tags. The set is empty for an expression such as `|| ||`, which lets nothing through.
    Tags {
        /// The tags as written, trimmed.
        tags: BTreeSet<String>,
        /// Their hashes.
        codes: BTreeSet<i32>,
    },
}

/// An expression that consists of separators only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tag expression {expression:?} names no tag")]
pub struct TagExpressionError {
    /// The expression.
    pub expression: String,
}

impl TagExpression {
    /// Reads an expression such as `TagA || TagB`. Mirrors `FilterAPI.buildSubscriptionData`.
    ///
    /// # Errors
    /// [`TagExpressionError`] for an expression made of `||` alone.
    pub fn parse(expression: &str) -> Result<Self, TagExpressionError> {
        if expression.is_empty() || expression == "*" {
            return Ok(Self::All);
        }
        let words = expression.split("||");
        if words.clone().all(str::is_empty) {
            return Err(TagExpressionError {
                expression: expression.to_owned(),
            });
        }
        let mut tags = BTreeSet::new();
        for word in words {
            // Java's trim: everything up to the blank, not Unicode white space.
            let tag = word.trim_matches(|c: char| c <= ' ');
            if !tag.is_empty() {
                tags.insert(tag.to_owned());
            }
        }
        let codes = tags.iter().map(|tag| java_hash(tag)).collect();
        Ok(Self::Tags { tags, codes })
    }

    /// Whether a consume-queue entry with this tags code passes. Different tags may share a hash: the consumer compares
    /// the tags themselves again.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Java compares the lower 32 bits (intValue)"
    )]
    pub fn matches_code(&self, tags_code: i64) -> bool {
        match self {
            Self::All => true,
            Self::Tags { codes, .. } => codes.contains(&(tags_code as i32)),
        }
    }

    /// Whether a message with this tag passes, compared as text.
    #[must_use]
    pub fn matches_tag(&self, tag: Option<&str>) -> bool {
        match (self, tag) {
            (Self::All, _) => true,
            (Self::Tags { tags, .. }, Some(tag)) => tags.contains(tag),
            (Self::Tags { .. }, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn hashes_are_javas() {
        assert_eq!(tag_code("TagA"), 2_598_919);
        assert_eq!(tag_code("TagA|TagB"), -1_051_832_611);
        assert_eq!(tag_code("标签"), 857_175);
        assert_eq!(tag_code(""), 0);
    }

    #[test]
    fn colliding_tags_pass_by_code_and_not_by_text() {
        let expression = TagExpression::parse("BB").unwrap();
        assert!(expression.matches_code(tag_code("Aa")));
        assert!(!expression.matches_tag(Some("Aa")));
        assert!(expression.matches_tag(Some("BB")));
        assert!(!expression.matches_tag(None));
    }
}
