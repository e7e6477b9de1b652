//! What handlers in several processes say, and whether it was in order.
//!
//! ```text
//! member ─ "begin NANOS KEY NUMBER QUEUE" / "end NANOS KEY NUMBER QUEUE" ─▶ Diary ─▶ judged key by key, queue by queue
//! ```

use std::collections::{BTreeMap, BTreeSet};

/// One line of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    /// Since 1970, by the machine's clock, which all members share.
    nanos: u128,
    pub(crate) key: u32,
    pub(crate) number: u32,
    queue: i32,
    member: usize,
    begins: bool,
}

impl Event {
    /// Reads a line; nothing for lines that say something else.
    pub(crate) fn parse(member: usize, line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let begins = match words.next()? {
            "begin" => true,
            "end" => false,
            _ => return None,
        };
        Some(Self {
            nanos: words.next()?.parse().ok()?,
            key: words.next()?.parse().ok()?,
            number: words.next()?.parse().ok()?,
            queue: words.next()?.parse().ok()?,
            member,
            begins,
        })
    }
}

/// How a run was, when nothing was out of order.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Different messages handled.
    pub(crate) handled: usize,
    /// Handled again, the last owner of the queue having been killed.
    pub(crate) again_after_kill: usize,
    /// Handled again for other reasons.
    pub(crate) again: usize,
    /// Times a queue went from one member to another.
    pub(crate) handovers: usize,
}

/// The messages whose handling ended at least once.
pub(crate) fn finished(events: &[Event]) -> BTreeSet<(u32, u32)> {
    let ends = events.iter().filter(|event| !event.begins);
    ends.map(|event| (event.key, event.number)).collect()
}

/// Judges everything that was said; `killed` tells when members were killed, in nanoseconds since 1970.
///
/// # Errors
/// What was out of order or done by two members at once.
pub(crate) fn judge(
    mut events: Vec<Event>,
    killed: &BTreeMap<usize, u128>,
) -> Result<Verdict, String> {
    events.sort_unstable();
    let mut verdict = Verdict {
        handled: finished(&events).len(),
        ..Verdict::default()
    };
    let mut queues: BTreeMap<i32, QueueOwner> = BTreeMap::new();
    let mut keys: BTreeMap<u32, KeyState> = BTreeMap::new();
    for event in &events {
        let queue = queues.entry(event.queue).or_default();
        queue.see(event, killed, &mut verdict)?;
        keys.entry(event.key)
            .or_default()
            .see(event, queue.inherited_from_killed, &mut verdict)?;
    }
    Ok(verdict)
}

#[derive(Debug, Default)]
struct QueueOwner {
    member: Option<usize>,
    running: Option<Event>,
    inherited_from_killed: bool,
}

impl QueueOwner {
    /// One handler at a time for a queue, whoever has it.
    fn see(
        &mut self,
        event: &Event,
        killed: &BTreeMap<usize, u128>,
        verdict: &mut Verdict,
    ) -> Result<(), String> {
        if !event.begins {
            self.running = None;
            return Ok(());
        }
        let dead = |running: &Event| {
            killed
                .get(&running.member)
                .is_some_and(|at| *at <= event.nanos)
        };
        if let Some(running) = self.running.filter(|running| !dead(running)) {
            return Err(format!(
                "two handlers of one queue at once: {running:?} and {event:?}"
            ));
        }
        if self.member.is_some_and(|member| member != event.member) {
            verdict.handovers += 1;
            self.inherited_from_killed = self
                .member
                .is_some_and(|member| killed.contains_key(&member));
        }
        self.member = Some(event.member);
        self.running = Some(*event);
        Ok(())
    }
}

#[derive(Debug, Default)]
struct KeyState {
    /// The number that is handled for the first time next.
    next: u32,
    last: Option<u32>,
}

impl KeyState {
    /// The next number, or one seen already followed by those after it; never one whose predecessor was not handled to its end.
    fn see(
        &mut self,
        event: &Event,
        after_kill: bool,
        verdict: &mut Verdict,
    ) -> Result<(), String> {
        if !event.begins {
            self.next = self.next.max(event.number + 1);
            return Ok(());
        }
        if event.number > self.next {
            return Err(format!("{} expected at most: {event:?}", self.next));
        }
        if self.last.is_some_and(|last| event.number > last + 1) {
            return Err(format!("skipped after {:?}: {event:?}", self.last));
        }
        if self.last.is_some_and(|last| event.number <= last) || event.number < self.next {
            if after_kill {
                verdict.again_after_kill += 1;
            } else {
                verdict.again += 1;
            }
        }
        self.last = Some(event.number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(lines: &[(usize, &str)]) -> Vec<Event> {
        let parsed = lines
            .iter()
            .map(|(member, line)| Event::parse(*member, line).unwrap());
        parsed.collect()
    }

    #[test]
    fn a_message_before_its_predecessor_ended_is_found() {
        let lines = [
            (0, "begin 1 7 0 0"),
            (0, "end 2 7 0 0"),
            (0, "begin 3 7 2 0"),
        ];
        assert!(
            judge(events(&lines), &BTreeMap::new())
                .unwrap_err()
                .contains("expected at most")
        );
    }

    #[test]
    fn two_members_at_once_are_found_unless_one_was_dead() {
        let lines = [
            (0, "begin 1 7 0 0"),
            (1, "begin 5 7 0 0"),
            (1, "end 6 7 0 0"),
        ];
        assert!(
            judge(events(&lines), &BTreeMap::new())
                .unwrap_err()
                .contains("at once")
        );
        let verdict = judge(events(&lines), &BTreeMap::from([(0, 4)])).unwrap();
        assert_eq!(
            (verdict.handled, verdict.again_after_kill, verdict.handovers),
            (1, 1, 1)
        );
    }

    #[test]
    fn going_back_and_then_skipping_is_found() {
        let lines = [
            (0, "begin 1 7 0 0"),
            (0, "end 2 7 0 0"),
            (0, "begin 3 7 1 0"),
            (0, "end 4 7 1 0"),
            (0, "begin 5 7 2 0"),
            (0, "end 6 7 2 0"),
            (0, "begin 7 7 0 0"),
            (0, "end 8 7 0 0"),
            (0, "begin 9 7 2 0"),
        ];
        assert!(
            judge(events(&lines), &BTreeMap::new())
                .unwrap_err()
                .contains("skipped")
        );
    }
}
