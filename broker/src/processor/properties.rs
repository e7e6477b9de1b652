//! The property text of a message on its way into the store: read in one pass, written in one pass, no map between.
//!
//! ```text
//! text of the sender ─▶ Facts::of ─▶ (unique key, delay level, half?, timer?)
//!                    └▶ Rewrite::write ─▶ kept pairs + what the broker adds
//! ```
use bindery_protocol::message::property;

use crate::timer::Timing;

/// What the broker has to know of a message's properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Facts<'a> {
    /// The client's message id.
    pub(super) unique_key: Option<&'a str>,
    /// Delay level; 0 when absent or no number.
    pub(super) delay_level: i32,
    /// `TRAN_MSG=true`: a half message.
    pub(super) half: bool,
    /// Seconds a half message asks to be left alone before it is checked.
    pub(super) immunity: Option<&'a str>,
    /// The point of time it asks for, unless it was timed already.
    pub(super) timing: Option<Timing<'a>>,
    /// It is there to cancel a timer message.
    pub(super) cancels: bool,
    /// `INNER_NUM` is there: the sender calls its message a batch in one record, which is the broker's to do.
    pub(super) inner: bool,
    /// The sender waits for flush and replication; only `WAIT=false` says no.
    pub(super) wait: bool,
}

impl<'a> Facts<'a> {
    /// Reads a property text.
    pub(super) fn of(text: &'a str) -> Self {
        let mut facts = Self {
            wait: true,
            ..Self::default()
        };
        let (mut timing, mut timed) = ([None; 3], false);
        for (name, value) in pairs(text) {
            match name {
                property::UNIQ_KEY => facts.unique_key = Some(value),
                property::DELAY => facts.delay_level = value.parse().unwrap_or(0),
                property::TRAN_MSG => facts.half = value.eq_ignore_ascii_case("true"),
                property::CHECK_IMMUNITY_TIME_IN_SECONDS => facts.immunity = Some(value),
                property::INNER_NUM => facts.inner = true,
                property::WAIT => facts.wait = !value.eq_ignore_ascii_case("false"),
                property::TIMER_DELAY_SEC => timing[0] = Some(Timing::AfterSeconds(value)),
                property::TIMER_DELAY_MS => timing[1] = Some(Timing::AfterMillis(value)),
                property::TIMER_DELIVER_MS => timing[2] = Some(Timing::At(value)),
                property::TIMER_OUT_MS => timed = true,
                property::TIMER_DEL_UNIQKEY => facts.cancels = true,
                _ => {}
            }
        }
        if !timed && facts.delay_level <= 0 {
            facts.timing = timing.into_iter().flatten().next();
        }
        facts
    }
}

/// How the text is changed: pairs left out, then pairs and ready text appended.
#[derive(Debug, Default)]
pub(super) struct Rewrite<'a> {
    /// The message goes to a delay level: the pairs that say so are replaced by those in `added`.
    pub(super) delayed: bool,
    /// Pairs appended.
    pub(super) added: &'a [(&'a str, &'a str)],
    /// Text appended, already in wire form.
    pub(super) stamp: &'a [u8],
}

impl Rewrite<'_> {
    /// Writes the new text to `out`, which is cleared first.
    pub(super) fn write(&self, text: &str, out: &mut Vec<u8>) {
        out.clear();
        for (name, value) in pairs(text) {
            if !self.drops(name) {
                put(out, name, value);
            }
        }
        for (name, value) in self.added {
            put(out, name, value);
        }
        out.extend_from_slice(self.stamp);
    }

    /// The receipt of a popped message means nothing in a new one; what the broker adds must not be there twice.
    fn drops(&self, name: &str) -> bool {
        match name {
            property::POP_CK | property::MSG_REGION | property::TRACE_ON | property::CLUSTER => {
                true
            }
            property::TIMER_DELAY_SEC | property::TIMER_DELAY_MS | property::TIMER_DELIVER_MS
                if self.delayed =>
            {
                true
            }
            _ => self.added.iter().any(|(added, _)| *added == name),
        }
    }
}

/// The value of one property.
pub(super) fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    pairs(text).find_map(|(found, value)| (found == name).then_some(value))
}

/// Appends one pair.
pub(super) fn put(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.push(1);
    out.extend_from_slice(value.as_bytes());
    out.push(2);
}

/// The pairs of a text; those without a separator, name or value are skipped, as Java does.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('\u{2}')
        .filter_map(|pair| pair.split_once('\u{1}'))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "KEYS\u{1}k\u{2}UNIQ_KEY\u{1}id\u{2}DELAY\u{1}3\u{2}POP_CK\u{1}x\u{2}WAIT\u{1}false";

    #[test]
    fn facts_are_read_without_a_final_separator() {
        let facts = Facts::of(TEXT);
        assert_eq!(
            (facts.unique_key, facts.delay_level, facts.wait),
            (Some("id"), 3, false)
        );
        assert!(!facts.half && facts.timing.is_none());
        assert_eq!(
            Facts::of(""),
            Facts {
                wait: true,
                ..Facts::default()
            }
        );
        assert!(Facts::of("TIMER_DELAY_MS\u{1}5\u{2}TRAN_MSG\u{1}true\u{2}").half);
    }

    #[test]
    fn a_message_without_delay_keeps_everything_but_a_receipt() {
        let mut out = Vec::new();
        Rewrite {
            stamp: b"MSG_REGION\x01r\x02",
            ..Rewrite::default()
        }
        .write(TEXT, &mut out);
        let text = "KEYS\u{1}k\u{2}UNIQ_KEY\u{1}id\u{2}DELAY\u{1}3\u{2}WAIT\u{1}false\u{2}MSG_REGION\u{1}r\u{2}";
        assert_eq!(String::from_utf8_lossy(&out), text);
    }

    #[test]
    fn a_delayed_message_gets_its_level_and_real_queue_once() {
        let mut out = Vec::new();
        let added = [("DELAY", "18"), ("REAL_TOPIC", "T"), ("REAL_QID", "0")];
        Rewrite {
            delayed: true,
            added: &added,
            stamp: b"",
        }
        .write(
            "REAL_TOPIC\u{1}old\u{2}DELAY\u{1}99\u{2}A\u{1}b\u{2}",
            &mut out,
        );
        assert_eq!(
            String::from_utf8_lossy(&out),
            "A\u{1}b\u{2}DELAY\u{1}18\u{2}REAL_TOPIC\u{1}T\u{2}REAL_QID\u{1}0\u{2}"
        );
    }
}
