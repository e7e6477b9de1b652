//! What becomes of a message that a worker is done with.

use std::sync::Arc;
use std::time::Duration;

use bindery_protocol::names;

use super::topic::Content;
use super::{Board, Seat, State, Taken};
use crate::binder::{Access, Audience, ConsumerSpec, Order, Settlement, levels};

/// Redeliveries of a group that sets no limit (`SubscriptionGroupConfig.retryMaxTimes` of Apache RocketMQ).
const DEFAULT_RECONSUME_LIMIT: u32 = 16;

impl Board {
    /// Does with the message what its handling said.
    pub(in crate::binder::memory) fn settle(
        &self,
        seat: &Seat,
        spec: &ConsumerSpec,
        taken: &Taken,
        settlement: Settlement,
    ) {
        let fate = fate(spec, taken, settlement);
        if spec.audience == Audience::Everyone && matches!(fate, Fate::Again(_) | Fate::Dead) {
            tracing::warn!(group = spec.group, msg_id = %taken.stored.content.msg_id, "not handled by a broadcasting input; dropped");
        }
        self.change(|state, now| {
            state.running = state.running.saturating_sub(1);
            let moved = state.move_position(seat, spec, taken, fate, now).is_some();
            // After a reset a message that is still ahead comes again by itself.
            if !moved || spec.audience == Audience::Everyone {
                return;
            }
            match fate {
                Fate::Again(after) if spec.order == Order::Concurrent => {
                    state.send_back(&spec.group, taken, level_of(spec, taken, after), now);
                }
                Fate::Dead => state.bury(&spec.group, taken, now),
                Fate::Again(_) | Fate::Done | Fate::Back => {}
            }
        });
    }
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Again(Option<Duration>),
    Dead,
    Back,
}

fn fate(spec: &ConsumerSpec, taken: &Taken, settlement: Settlement) -> Fate {
    let limit = spec.redelivery.limit.or(match spec.order {
        Order::Concurrent => Some(DEFAULT_RECONSUME_LIMIT),
        Order::PerQueue => None,
    });
    let spent = limit.is_some_and(|limit| taken.reconsume_times >= limit);
    let dead_at_once = spec.order == Order::Concurrent && spec.redelivery.delay_level < 0;
    match settlement {
        Settlement::Ack => Fate::Done,
        Settlement::Reject => Fate::Dead,
        Settlement::Return => Fate::Back,
        Settlement::Retry(_) if spent => Fate::Dead,
        Settlement::Retry(None) if dead_at_once => Fate::Dead,
        Settlement::Retry(after) => Fate::Again(after),
    }
}

/// The level at which a message of a concurrent input comes again.
fn level_of(spec: &ConsumerSpec, taken: &Taken, after: Option<Duration>) -> i32 {
    match (after, spec.redelivery.delay_level) {
        (Some(after), _) => levels::level_for(after),
        (None, level @ 1..) => level,
        (None, _) => i32::try_from(
            taken
                .reconsume_times
                .saturating_add(levels::FIRST_REDELIVERY_LEVEL),
        )
        .unwrap_or(i32::MAX),
    }
}

impl State {
    /// Moves the position of the queue; `None` when it was reset since the message was taken.
    fn move_position(
        &mut self,
        seat: &Seat,
        spec: &ConsumerSpec,
        taken: &Taken,
        fate: Fate,
        now: i64,
    ) -> Option<()> {
        let group = self.groups.get_mut(&seat.group)?;
        if let Some(member) = group.members.get_mut(&seat.member) {
            member.in_hand = member.in_hand.saturating_sub(1);
        }
        let position = group.positions.get_mut(&taken.key)?;
        if position.epoch != taken.epoch {
            position.release();
            return None;
        }
        let (offset, order) = (taken.stored.offset, spec.order);
        match (fate, order) {
            (Fate::Back, _) => position.give_back(offset, order),
            (Fate::Again(after), Order::PerQueue) if spec.audience == Audience::Shared => {
                let pause = after.unwrap_or(spec.redelivery.suspend);
                let millis = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
                position.suspend(
                    now.saturating_add(millis),
                    taken.reconsume_times.saturating_add(1),
                );
            }
            _ => position.done(offset, order),
        }
        Some(())
    }

    /// A redelivery: into the group's retry topic when the level's time has passed.
    fn send_back(&mut self, group: &str, taken: &Taken, level: i32, now: i64) {
        let topic = names::retry_topic(group);
        self.create(&topic, 1, Access::Both);
        let due = self.levels.due(self.levels.clamp(level), now);
        self.delay(due, (topic, 0), again(taken));
    }

    /// Into the group's dead letters, with id and properties unchanged.
    fn bury(&mut self, group: &str, taken: &Taken, now: i64) {
        let topic = names::dlq_topic(group);
        self.create(&topic, 1, Access::Both);
        self.push(&(topic, 0), again(taken), now);
    }
}

fn again(taken: &Taken) -> Content {
    let stored = &taken.stored;
    Content {
        reconsume_times: taken.reconsume_times.saturating_add(1),
        origin: Some(Arc::clone(
            stored.content.origin.as_ref().unwrap_or(&stored.topic),
        )),
        ..stored.content.clone()
    }
}
