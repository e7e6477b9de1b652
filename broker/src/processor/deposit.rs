//! The last step of everything that stores a message: delay levels, property text, append, durability.
//!
//! ```text
//! send, send-back ─▶ Draft ─▶ append ─┬─ no level: topic, queue
//!                                     ├─ a slot:   rmq_sys_wheel_timer, TIMER_OUT_MS, REAL_TOPIC, REAL_QID
//!                                     └─ level n:  SCHEDULE_TOPIC_XXXX, queue n − 1, REAL_TOPIC, REAL_QID
//!                  Appended ─▶ settle ─▶ at once, or when the disk has it
//! ```
use std::{cell::RefCell, net::SocketAddr, sync::atomic::Ordering};

use bindery_protocol::{
    codes::ResponseCode,
    message::{NewMessage, SysFlag, property, record::MAX_PROPERTIES},
    names,
};

use super::properties::{Facts, Rewrite};
use crate::{
    refusal::Refusal,
    state::Core,
    store::{AppendError, Appended, Durability},
    timer::{Timing, TimingError},
    transaction::ROOM_FOR_CHECKS,
};

/// Bytes of property text that the timer adds: when a message came into the wheel and left it, and how often it went round.
const ROOM_FOR_TIMER: usize = 96;

thread_local! {
    /// Property text of the message being stored: one buffer a thread instead of one allocation a message.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A message about to be stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft<'a> {
    /// Where consumers will find it.
    pub(crate) topic: &'a str,
    /// Where consumers will find it.
    pub(crate) queue_id: i32,
    /// The user's flag.
    pub(crate) flag: i32,
    /// System flag.
    pub(crate) sys_flag: SysFlag,
    /// The producer's clock.
    pub(crate) born_timestamp: i64,
    /// The producer's address.
    pub(crate) born_host: SocketAddr,
    /// How often consumers gave it back.
    pub(crate) reconsume_times: i32,
    /// Physical offset of the half message, for a committed one; otherwise 0.
    pub(crate) prepared_transaction_offset: i64,
    /// The body as sent.
    pub(crate) body: &'a [u8],
    /// The sender's property text.
    pub(crate) properties: &'a str,
    /// Level it waits for; 0 for none.
    pub(crate) delay_level: i32,
    /// Slot of the timer it waits for, from [`slot`]; only without a level.
    pub(crate) slot: Option<i64>,
}

/// The slot of the timer that a message asks for; none when it goes to its topic at once.
///
/// # Errors
/// When it can't be had.
pub(super) fn slot(core: &Core, facts: &Facts<'_>) -> Result<Option<i64>, Refusal> {
    let Some(timing) = facts.timing else {
        return Ok(None);
    };
    let timer = core.timer.as_ref().ok_or(TimingError::Off)?;
    Ok(timer.slot(timing, core.now(), facts.cancels, &core.config)?)
}

/// Stores a draft. `added` pairs replace the sender's pairs of those names, `stamp` is ready property text.
pub(crate) fn append(
    core: &Core,
    draft: &Draft<'_>,
    added: &[(&str, &str)],
    stamp: &[u8],
) -> Result<Appended, Refusal> {
    if draft.delay_level <= 0 {
        if let Some(slot) = draft.slot {
            return append_timed(core, draft, slot, added, stamp);
        }
        return put(
            core,
            draft,
            draft.topic,
            draft.queue_id,
            &Rewrite {
                delayed: false,
                added,
                stamp,
            },
            0,
        );
    }
    let level = core.levels.current().clamp(draft.delay_level);
    let (level_text, queue_text) = (level.to_string(), draft.queue_id.to_string());
    let mut all = added.to_vec();
    all.retain(|(name, _)| *name != property::DELAY);
    all.extend([
        (property::DELAY, level_text.as_str()),
        (property::REAL_TOPIC, draft.topic),
        (property::REAL_QID, queue_text.as_str()),
    ]);
    put(
        core,
        draft,
        names::SCHEDULE_TOPIC,
        level - 1,
        &Rewrite {
            delayed: true,
            added: &all,
            stamp,
        },
        0,
    )
}

/// Stores a draft under the timer's topic. What the timer adds later has to fit as well.
fn append_timed(
    core: &Core,
    draft: &Draft<'_>,
    slot: i64,
    added: &[(&str, &str)],
    stamp: &[u8],
) -> Result<Appended, Refusal> {
    let (slot_text, queue_text) = (slot.to_string(), draft.queue_id.to_string());
    let mut all = added.to_vec();
    all.extend([
        (property::TIMER_OUT_MS, slot_text.as_str()),
        (property::REAL_TOPIC, draft.topic),
        (property::REAL_QID, queue_text.as_str()),
    ]);
    put(
        core,
        draft,
        names::TIMER_TOPIC,
        0,
        &Rewrite {
            delayed: false,
            added: &all,
            stamp,
        },
        ROOM_FOR_TIMER,
    )
}

/// Stores a message that the broker itself makes for `time` (milliseconds since 1970), with `TIMER_DELIVER_MS` among its
/// properties. It is in its topic at once when that is past, and within a second of it otherwise.
///
/// # Errors
/// [`Refusal::Timing`] when `timerWheelEnable` is off or the time lies beyond `timerMaxDelaySec`, and what an append says.
pub(crate) fn append_at(
    core: &Core,
    draft: &Draft<'_>,
    time: i64,
    added: &[(&str, &str)],
    stamp: &[u8],
) -> Result<Appended, Refusal> {
    let time = time.to_string();
    let facts = Facts {
        timing: Some(Timing::At(&time)),
        ..Facts::default()
    };
    let draft = Draft {
        slot: slot(core, &facts)?,
        ..*draft
    };
    let mut all = added.to_vec();
    all.push((property::TIMER_DELIVER_MS, time.as_str()));
    append(core, &draft, &all, stamp)
}

/// Stores a draft as a half message, invisible until it is committed. A delay level counts from the commit on.
///
/// # Errors
/// Also when its properties leave no room for what the checks add: it could never be asked about.
pub(super) fn append_half(
    core: &Core,
    draft: &Draft<'_>,
    transaction_id: &str,
    added: &[(&str, &str)],
) -> Result<Appended, Refusal> {
    let queue_text = draft.queue_id.to_string();
    let mut all = added.to_vec();
    all.extend([
        (property::TRANSACTION_ID, transaction_id),
        (property::REAL_TOPIC, draft.topic),
        (property::REAL_QID, queue_text.as_str()),
    ]);
    put(
        core,
        draft,
        names::TRANS_HALF_TOPIC,
        0,
        &Rewrite {
            delayed: false,
            added: &all,
            stamp: &core.stamp,
        },
        ROOM_FOR_CHECKS,
    )
}

/// Appends a draft under a topic, and leaves `room` bytes of property text free.
fn put(
    core: &Core,
    draft: &Draft<'_>,
    topic: &str,
    queue_id: i32,
    rewrite: &Rewrite<'_>,
    room: usize,
) -> Result<Appended, Refusal> {
    // Only a batch topic's own sends make inner batches; nothing else could be read back from its queue.
    if draft.sys_flag.contains(SysFlag::INNER_BATCH) {
        return Err(Refusal::MessageIllegal {
            limit: core.config.max_message_size,
        });
    }
    TEXT.with_borrow_mut(|text| {
        rewrite.write(draft.properties, text);
        let len = text.len() + room;
        if room > 0 && len > MAX_PROPERTIES {
            return stored(core, draft.topic, || {
                Err(AppendError::PropertiesTooLong { len })
            });
        }
        let message = NewMessage {
            topic,
            queue_id,
            flag: draft.flag,
            sys_flag: draft.sys_flag,
            born_timestamp: draft.born_timestamp,
            born_host: draft.born_host,
            store_host: core.address,
            reconsume_times: draft.reconsume_times,
            prepared_transaction_offset: draft.prepared_transaction_offset,
            body: draft.body,
            properties: text,
        };
        stored(core, draft.topic, || core.store.append(&message))
    })
}

/// Runs an append and counts it.
pub(super) fn stored(
    core: &Core,
    topic: &str,
    append: impl FnOnce() -> Result<Appended, AppendError>,
) -> Result<Appended, Refusal> {
    let before = core.now();
    match append() {
        Ok(appended) => {
            let now = core.now();
            let bytes = u64::try_from(appended.end.0 - appended.physical_offset.0).unwrap_or(0);
            let count = u64::try_from(appended.count).unwrap_or(u64::MAX);
            core.stats.stored(
                topic,
                count,
                bytes,
                u64::try_from(now - before).unwrap_or(0),
                now,
            );
            Ok(appended)
        }
        Err(error) => {
            core.stats.refused();
            tracing::warn!(topic, %error, "message not stored");
            Err(Refusal::append(&error, &core.store))
        }
    }
}

/// Whether the sender waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// As the broker is set to.
    ForDisk,
    /// The log is enough.
    ForLog,
}

/// Calls `done` with the outcome once the message is as durable as it has to be.
pub(super) fn settle(
    core: &Core,
    appended: &Appended,
    wait: Wait,
    done: impl FnOnce(ResponseCode) + Send + 'static,
) {
    if wait == Wait::ForLog || !core.flushes_synchronously() {
        return done(ResponseCode::SUCCESS);
    }
    let unsettled = core.unsettled.clone();
    unsettled.fetch_add(1, Ordering::Relaxed);
    let outcome = move |durability| {
        unsettled.fetch_sub(1, Ordering::Relaxed);
        done(match durability {
            Durability::Stored => ResponseCode::SUCCESS,
            Durability::FlushTimeout => ResponseCode::FLUSH_DISK_TIMEOUT,
        });
    };
    core.store.when_durable(appended.end, Box::new(outcome));
}
