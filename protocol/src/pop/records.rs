//! The bodies of the messages in the revive topic: what was handed out, and what of it is done.

use serde::{Deserialize, Serialize};

/// Tag of a [`Checkpoint`].
pub const CHECKPOINT_TAG: &str = "ck";
/// Tag of an [`Ack`] of one message.
pub const ACK_TAG: &str = "ack";
/// Tag of an [`Ack`] of several messages.
pub const BATCH_ACK_TAG: &str = "bAck";

/// One hand-out: messages of one queue, hidden until a time. JSON with short names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Checkpoint {
    /// Which messages are done, by their place in `differences`; written 0.
    #[serde(rename = "bm")]
    pub done: u32,
    /// Broker that handed them out.
    #[serde(rename = "bn", skip_serializing_if = "Option::is_none")]
    pub broker_name: Option<String>,
    /// Group.
    #[serde(rename = "c")]
    pub group: String,
    /// Distances of the messages to the start offset; old brokers wrote none and meant consecutive messages.
    #[serde(rename = "d", skip_serializing_if = "Option::is_none")]
    pub differences: Option<Vec<i32>>,
    /// How long they stay hidden, ms.
    #[serde(rename = "it")]
    pub invisible_time: i64,
    /// How many messages.
    #[serde(rename = "n")]
    pub count: i8,
    /// When they were handed out, ms since 1970.
    #[serde(rename = "pt")]
    pub pop_time: i64,
    /// Queue.
    #[serde(rename = "q")]
    pub queue_id: i32,
    /// [`Checkpoint::revive_time`] as [`Checkpoint::hidden`] left it, for those who read the text; not looked at.
    #[serde(rename = "reviveTime")]
    pub written_revive_time: i64,
    /// Place in the revive topic; known to readers, written 0.
    #[serde(rename = "ro")]
    pub revive_offset: i64,
    /// How often it was written again because messages could not be brought back.
    #[serde(rename = "rp", skip_serializing_if = "Option::is_none")]
    pub put_again: Option<String>,
    /// Queue offset that was read from.
    #[serde(rename = "so")]
    pub start_offset: i64,
    /// Topic; the retry topic for messages from there.
    #[serde(rename = "t")]
    pub topic: String,
}

impl Checkpoint {
    /// Sets when the messages were handed out and for how long, in ms.
    #[must_use]
    pub fn hidden(mut self, pop_time: i64, invisible_time: i64) -> Self {
        self.pop_time = pop_time;
        self.invisible_time = invisible_time;
        self.written_revive_time = self.revive_time();
        self
    }

    /// When the messages become visible again, ms since 1970.
    #[must_use]
    pub fn revive_time(&self) -> i64 {
        self.pop_time.saturating_add(self.invisible_time)
    }

    /// How many messages; what 32 marks can't tell apart counts for nothing.
    #[must_use]
    pub fn len(&self) -> usize {
        let listed = match &self.differences {
            Some(list) if !list.is_empty() => list.len(),
            _ => 32,
        };
        usize::try_from(self.count).unwrap_or(0).min(listed).min(32)
    }

    /// Whether nothing was handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queue offset of the message at a place.
    #[must_use]
    pub fn offset_at(&self, place: usize) -> Option<i64> {
        if place >= self.len() {
            return None;
        }
        let difference = match &self.differences {
            Some(list) if !list.is_empty() => i64::from(*list.get(place)?),
            _ => i64::try_from(place).ok()?,
        };
        self.start_offset.checked_add(difference)
    }

    /// Place of the message with a queue offset.
    #[must_use]
    pub fn place_of(&self, offset: i64) -> Option<usize> {
        (0..self.len()).find(|place| self.offset_at(*place) == Some(offset))
    }

    /// Marks a message as done; whether it is one of these.
    pub fn mark(&mut self, offset: i64) -> bool {
        let place = self.place_of(offset);
        if let Some(place) = place {
            self.done |= 1 << place;
        }
        place.is_some()
    }

    /// Queue offsets of the messages that are not done, in order.
    pub fn open(&self) -> impl Iterator<Item = i64> {
        (0..self.len())
            .filter(|place| self.done >> place & 1 == 0)
            .filter_map(|place| self.offset_at(place))
    }

    /// The `UNIQ_KEY` of its message.
    #[must_use]
    pub fn unique_key(&self) -> String {
        let broker = self.broker_name.as_deref().unwrap_or("null");
        format!(
            "{}@{}@{}@{}@{}@{broker}@{CHECKPOINT_TAG}",
            self.topic, self.queue_id, self.start_offset, self.group, self.pop_time
        )
    }
}

/// Messages of one hand-out that are done. JSON with short names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ack {
    /// Queue offset of the message; −1 when there is a list.
    #[serde(rename = "ao", alias = "ackOffset")]
    pub offset: i64,
    /// Queue offsets of the messages, under [`BATCH_ACK_TAG`].
    #[serde(
        rename = "aol",
        alias = "ackOffsetList",
        skip_serializing_if = "Option::is_none"
    )]
    pub offsets: Option<Vec<i64>>,
    /// Broker that handed them out; absent means the one that reads.
    #[serde(
        rename = "bn",
        alias = "brokerName",
        skip_serializing_if = "Option::is_none"
    )]
    pub broker_name: Option<String>,
    /// Group.
    #[serde(rename = "c", alias = "consumerGroup")]
    pub group: String,
    /// When they were handed out, ms since 1970.
    #[serde(rename = "pt", alias = "popTime")]
    pub pop_time: i64,
    /// Queue.
    #[serde(rename = "q", alias = "queueId")]
    pub queue_id: i32,
    /// Queue offset the hand-out was read from.
    #[serde(rename = "so", alias = "startOffset")]
    pub start_offset: i64,
    /// Topic; the retry topic for messages from there.
    #[serde(rename = "t", alias = "topic")]
    pub topic: String,
}

impl Ack {
    /// The messages meant.
    pub fn done(&self) -> impl Iterator<Item = i64> {
        let single = self.offsets.is_none().then_some(self.offset);
        single
            .into_iter()
            .chain(self.offsets.iter().flatten().copied())
    }

    /// The `UNIQ_KEY` of its message, as a request for acknowledgement makes it: of a list too, by its offset −1.
    #[must_use]
    pub fn unique_key(&self) -> String {
        let broker = self.broker_name.as_deref().unwrap_or("null");
        format!(
            "{}@{}@{}@{}@{}@{broker}@{ACK_TAG}",
            self.topic, self.queue_id, self.offset, self.group, self.pop_time
        )
    }

    /// The `UNIQ_KEY` of a list's message, as a broker makes it that gathered acks in memory.
    #[must_use]
    pub fn gathered_key(&self) -> String {
        let offsets: Vec<String> = self.done().map(|offset| offset.to_string()).collect();
        format!(
            "{}@{}@[{}]@{}@{}@{BATCH_ACK_TAG}",
            self.topic,
            self.queue_id,
            offsets.join(", "),
            self.group,
            self.pop_time
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            broker_name: Some("b".into()),
            group: "g".into(),
            differences: Some(vec![0, 2, 3]),
            count: 3,
            queue_id: 1,
            start_offset: 10,
            topic: "T".into(),
            ..Checkpoint::default()
        }
        .hidden(1000, 5000)
    }

    #[test]
    fn a_checkpoint_is_written_as_java_writes_it() {
        let text = r#"{"bm":0,"bn":"b","c":"g","d":[0,2,3],"it":5000,"n":3,"pt":1000,"q":1,"reviveTime":6000,"ro":0,"so":10,"t":"T"}"#;
        assert_eq!(serde_json::to_string(&checkpoint()).unwrap(), text);
        assert_eq!(
            serde_json::from_str::<Checkpoint>(text).unwrap(),
            checkpoint()
        );
        assert_eq!(checkpoint().unique_key(), "T@1@10@g@1000@b@ck");
    }

    #[test]
    fn acks_are_written_as_java_writes_them() {
        let ack = Ack {
            offset: 12,
            broker_name: Some("b".into()),
            group: "g".into(),
            pop_time: 1000,
            queue_id: 1,
            start_offset: 10,
            topic: "T".into(),
            ..Ack::default()
        };
        let text = r#"{"ao":12,"bn":"b","c":"g","pt":1000,"q":1,"so":10,"t":"T"}"#;
        assert_eq!(serde_json::to_string(&ack).unwrap(), text);
        assert_eq!(ack.unique_key(), "T@1@12@g@1000@b@ack");
        let list = Ack {
            offset: -1,
            offsets: Some(vec![10, 13]),
            ..ack
        };
        let text = r#"{"ao":-1,"aol":[10,13],"bn":"b","c":"g","pt":1000,"q":1,"so":10,"t":"T"}"#;
        assert_eq!(serde_json::to_string(&list).unwrap(), text);
        assert_eq!(list.unique_key(), "T@1@-1@g@1000@b@ack");
        assert_eq!(list.gathered_key(), "T@1@[10, 13]@g@1000@bAck");
    }

    #[test]
    fn what_is_done_is_no_longer_open() {
        let mut checkpoint = checkpoint();
        assert!(checkpoint.mark(12) && !checkpoint.mark(11));
        assert_eq!(checkpoint.open().collect::<Vec<_>>(), [10, 13]);
        let old = Checkpoint {
            differences: None,
            ..checkpoint
        };
        assert_eq!(old.open().collect::<Vec<_>>(), [10, 12]);
    }

    #[test]
    fn counts_that_can_not_be_are_cut_down() {
        let odd = |count, differences| Checkpoint {
            count,
            differences,
            start_offset: i64::MAX - 1,
            ..Checkpoint::default()
        };
        assert_eq!(odd(-5, None).len(), 0);
        assert_eq!(odd(127, None).len(), 32);
        assert_eq!(odd(9, Some(vec![0, 1])).len(), 2);
        assert_eq!(odd(9, None).open().count(), 2);
    }
}
