//! Whether everything is at rest, and until when: what tests wait for, and how far virtual time may jump.

use super::{Board, State};
use crate::pace::Pace;

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::binder::memory) enum Rest {
    /// Somebody works, or will as soon as the runtime lets them.
    Busy,
    /// Nothing happens before this time (milliseconds since 1970 UTC).
    Until(i64),
    /// Nothing is left to do.
    Done,
}

/// What counts as left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::binder::memory) enum Counting {
    /// Messages on their way to somebody.
    Messages,
    /// Also questions about transactions without an outcome.
    Everything,
}

impl Board {
    pub(in crate::binder::memory) fn rest(&self, counting: Counting) -> Rest {
        self.look(|state, now| state.rest(&self.pace, counting, now))
    }

    /// What is under way, in words.
    pub(in crate::binder::memory) fn under_way(&self) -> String {
        self.look(|state, _| {
            let (pausing, next) = self.pace.pausing();
            let waiting: Vec<String> = state
                .groups
                .iter()
                .filter(|(_, group)| !group.members.is_empty())
                .map(|(name, group)| {
                    let topics = group.members.values().flat_map(super::Member::topics);
                    let mut topics: Vec<&str> = topics.collect();
                    topics.sort_unstable();
                    topics.dedup();
                    let lag: u64 = topics
                        .iter()
                        .filter_map(|topic| state.topics.get(*topic))
                        .map(|topic| group.lag(topic))
                        .sum();
                    format!("group {name}: {lag} behind")
                })
                .collect();
            format!(
                "{} in handlers ({pausing} of them pausing, the first until {next:?}), {} delayed, {}",
                state.running,
                state.delayed.len(),
                waiting.join(", ")
            )
        })
    }

    /// Looks at the state; what is due has been released before.
    pub(in crate::binder::memory) fn look<R>(&self, look: impl FnOnce(&mut State, i64) -> R) -> R {
        let mut state = self.lock();
        let now = self.pace.now_millis();
        state.release_due(now);
        look(&mut state, now)
    }
}

impl State {
    fn rest(&mut self, pace: &Pace, counting: Counting, now: i64) -> Rest {
        let (pausing, pause_ends) = pace.pausing();
        if self.running > pausing || self.halves.are_asked() || self.has_work(now) {
            return Rest::Busy;
        }
        let question = match counting {
            Counting::Everything => self.halves.next_question(),
            Counting::Messages => None,
        };
        if question.is_some_and(|at| at <= now) {
            return Rest::Busy;
        }
        let due = [pause_ends, self.next_due(now), question];
        due.into_iter()
            .flatten()
            .min()
            .map_or(Rest::Done, Rest::Until)
    }

    /// Whether a worker that is free would find a message.
    fn has_work(&mut self, now: i64) -> bool {
        if self.outage.is_some() {
            return false;
        }
        let Self { topics, groups, .. } = self;
        groups.values_mut().any(|group| {
            let hungry: Vec<u64> = group
                .members
                .iter()
                .filter(|(_, member)| member.is_hungry())
                .map(|(number, _)| *number)
                .collect();
            hungry
                .into_iter()
                .any(|member| group.front(member, topics, now).is_some())
        })
    }

    /// When the first message that waits for its time is due.
    pub(super) fn next_due(&self, now: i64) -> Option<i64> {
        if self.outage.is_some() {
            return None;
        }
        let delayed = self.delayed.keys().next().map(|(due, _)| *due);
        let held_back = self.groups.values().filter_map(|group| group.next_due(now));
        delayed.into_iter().chain(held_back).min()
    }
}
