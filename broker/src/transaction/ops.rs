//! Op messages: what is decided, by offsets in the half topic, several to a message.
//!
//! ```text
//! committed ───▶ "17," ─▶ OpLog ─▶ 4096 bytes, or 3 s after the last write ─┬▶ RMQ_SYS_TRANS_OP_HALF_TOPIC, TAGS=d
//! rolled back ─▶ "18," ─▶ OpLog ─▶ at once ──────────────────────────────────┘
//! ```
//! Of a commit the log has the message itself. Of a roll-back it has nothing but the op message: a broker killed before it
//! is written would ask again, so it does not wait, unlike in Apache's broker.
//! Layout of Apache `RocketMQ` 5.3.3 (`TransactionalMessageServiceImpl.getOpMessage`); 4.x wrote one offset without a
//! comma, which reads the same.
use super::{NEVER, RETRY};

/// `TAGS` of a message whose body names decided half messages.
pub(super) const TAG: &str = "d";
/// Property text of an op message, as Apache's broker writes it.
pub(super) const PROPERTIES: &[u8] = b"WAIT\x01true\x02TAGS\x01d\x02";

/// Verdicts that are not in the log yet.
#[derive(Debug)]
pub(super) struct OpLog {
    body: String,
    last_half: i64,
    last_write: i64,
    due: i64,
    max_bytes: usize,
    interval: i64,
}

/// The content of one op message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpBatch {
    pub(super) body: String,
    /// Highest half offset it names.
    pub(super) last_half: i64,
}

impl OpLog {
    /// Nothing pending. A message is written at `max_bytes`, or `interval` milliseconds after the one before.
    pub(super) fn new(max_bytes: usize, interval: i64) -> Self {
        Self {
            body: String::new(),
            last_half: -1,
            last_write: i64::MIN,
            due: NEVER,
            max_bytes,
            interval,
        }
    }

    /// Adds a decided half message; [`OpLog::due`] may be earlier now.
    pub(super) fn push(&mut self, half: i64, now: i64) {
        self.body.push_str(&half.to_string());
        self.body.push(',');
        self.last_half = self.last_half.max(half);
        let at = if self.body.len() >= self.max_bytes {
            now
        } else {
            self.last_write.saturating_add(self.interval).max(now)
        };
        self.due = self.due.min(at);
    }

    /// Has what is pending written at once.
    pub(super) fn hurry(&mut self, now: i64) {
        self.due = self.due.min(now);
    }

    /// When the next op message is to be written.
    pub(super) fn due(&self) -> i64 {
        self.due
    }

    /// Takes out what is pending, to be written at once.
    pub(super) fn take(&mut self, now: i64) -> Option<OpBatch> {
        self.due = NEVER;
        if self.body.is_empty() {
            return None;
        }
        self.last_write = now;
        Some(OpBatch {
            body: std::mem::take(&mut self.body),
            last_half: std::mem::replace(&mut self.last_half, -1),
        })
    }

    /// Takes back what could not be written.
    pub(super) fn put_back(&mut self, batch: &OpBatch, now: i64) {
        self.body.insert_str(0, &batch.body);
        self.last_half = self.last_half.max(batch.last_half);
        self.due = now.saturating_add(RETRY);
    }
}

/// The half offsets an op message names; what is no number is left out.
pub(super) fn parse(body: &[u8]) -> impl Iterator<Item = i64> {
    body.split(|byte| *byte == b',')
        .filter_map(|part| std::str::from_utf8(part).ok()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_written_at_once_after_a_pause_and_together_in_a_rush() {
        let mut ops = OpLog::new(4096, 3000);
        ops.push(7, 10_000);
        assert_eq!(ops.due(), 10_000);
        assert_eq!(
            ops.take(10_000),
            Some(OpBatch {
                body: "7,".into(),
                last_half: 7
            })
        );
        assert_eq!(ops.due(), NEVER);
        ops.push(9, 10_001);
        ops.push(8, 10_002);
        assert_eq!(ops.due(), 13_000);
        let batch = ops.take(13_000);
        assert_eq!(
            batch,
            Some(OpBatch {
                body: "9,8,".into(),
                last_half: 9
            })
        );
        assert_eq!(ops.take(13_000), None);
    }

    #[test]
    fn a_full_message_does_not_wait() {
        let mut ops = OpLog::new(8, 3000);
        ops.push(1, 0);
        ops.take(0);
        for half in [12, 34] {
            ops.push(half, 1);
        }
        assert_eq!(ops.due(), 3000);
        ops.push(56, 2);
        assert_eq!(ops.due(), 2);
    }

    #[test]
    fn what_was_not_written_stays() {
        let mut ops = OpLog::new(4096, 3000);
        ops.push(1, 0);
        let batch = ops.take(0);
        ops.push(2, 5);
        if let Some(batch) = batch {
            ops.put_back(&batch, 5);
        }
        assert_eq!(ops.due(), 5 + RETRY);
        assert_eq!(ops.take(1005).map(|batch| batch.body), Some("1,2,".into()));
    }

    #[test]
    fn offsets_of_both_major_versions_are_read() {
        assert_eq!(parse(b"0,1,3,").collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!(parse(b"42").collect::<Vec<_>>(), [42]);
        assert_eq!(parse(b"x,,7 ,\xff").collect::<Vec<_>>(), [7]);
    }
}
