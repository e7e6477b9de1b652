//! The handle with which a timer message can be taken back: what a broker needs to find it, as one word.
//!
//! ```text
//! v1 TOPIC BROKER TIME UNIQ_KEY ─URL-safe base64─▶ recallHandle of a send reply ─▶ RECALL_MESSAGE (370)
//! ```
//! Mirrors `RecallMessageHandle` of Apache RocketMQ 5.3.3.
use base64::{Engine, engine::general_purpose::URL_SAFE};

const VERSION: &str = "v1";

/// What a handle says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallHandle {
    /// The topic the message is for.
    pub topic: String,
    /// The broker that has it.
    pub broker_name: String,
    /// When it is due, milliseconds since 1970: a time within its slot, in text as it came.
    pub timestamp: String,
    /// Its unique key.
    pub message_id: String,
}

/// The text is no handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("recall handle is invalid")]
pub struct RecallHandleError;

impl RecallHandle {
    /// Reads a handle.
    ///
    /// # Errors
    /// [`RecallHandleError`] when the text is not base64, of another version, or has too few parts.
    pub fn parse(text: &str) -> Result<Self, RecallHandleError> {
        let bytes = URL_SAFE.decode(text).or(Err(RecallHandleError))?;
        let text = String::from_utf8(bytes).or(Err(RecallHandleError))?;
        let mut parts = text.split(' ');
        let mut part = || parts.next().ok_or(RecallHandleError).map(str::to_owned);
        if part()? != VERSION {
            return Err(RecallHandleError);
        }
        Ok(Self {
            topic: part()?,
            broker_name: part()?,
            timestamp: part()?,
            message_id: part()?,
        })
    }

    /// The handle as one word.
    #[must_use]
    pub fn encode(&self) -> String {
        URL_SAFE.encode(format!(
            "{VERSION} {} {} {} {}",
            self.topic, self.broker_name, self.timestamp, self.message_id
        ))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn a_handle_recorded_from_apaches_broker_is_read_and_written_again() {
        let recorded = "djEgVG9waWNFbmMgYnJva2VyLWcgMTc5NjA1MzQ3NzAwMSBGRDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDIyQ0JCMzA5NDZFMDk5OEI4NTU3RDAwMDU=";
        let handle = RecallHandle::parse(recorded).unwrap();
        assert_eq!(
            (handle.topic.as_str(), handle.broker_name.as_str()),
            ("TopicEnc", "broker-g")
        );
        assert_eq!(handle.timestamp, "1796053477001");
        assert_eq!(handle.encode(), recorded);
    }

    #[test]
    fn other_text_is_no_handle() {
        let encoded = |text: &str| URL_SAFE.encode(text);
        for text in [
            "",
            "%%%",
            &encoded("v2 T b 1 k"),
            &encoded("v1 T b 1"),
            &encoded(""),
        ] {
            assert_eq!(RecallHandle::parse(text), Err(RecallHandleError), "{text}");
        }
    }
}
