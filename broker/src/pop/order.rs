//! Ordered pops: a queue stays closed until everything that was handed out of it is done or visible again.
//!
//! ```text
//! pop ─▶ free? ─▶ handed_out ─▶ OrderInfo of (topic, group, queue) ─▶ ack ─▶ done ─▶ committed offset
//!                                    └─ invisible time over ─▶ handed out again, counted
//! consumerOrderInfo.json ◀─ a while after the first change
//! ```
//! Mirrors `ConsumerOrderInfoManager` of Apache `RocketMQ` 5.3.3.
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bindery_protocol::{
    bodies::{OrderInfo, OrderTable},
    pop::{push_order_count, push_queue_order_count},
};
use tokio::sync::Notify;

use crate::{store::JsonFile, table::TableError};

const FILE: &str = "consumerOrderInfo.json";
/// Milliseconds after which a queue that nobody popped is forgotten.
const STALE: i64 = 24 * 3600 * 1000;

/// The ordered pops of all groups.
#[derive(Debug)]
pub(crate) struct Orders {
    state: Mutex<State>,
    file: JsonFile,
    path: PathBuf,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// By `topic@group`.
    table: HashMap<String, BTreeMap<i32, OrderInfo>>,
    dirty: bool,
}

/// What an acknowledgement in order comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// Everything before this offset is done.
    Upto(i64),
    /// It belongs to an earlier hand-out and changes nothing.
    Stale,
    /// The message was not handed out.
    Unknown,
}

/// One hand-out of a queue in order.
#[derive(Debug)]
pub(crate) struct HandedOut<'a> {
    pub(crate) topic: &'a str,
    pub(crate) group: &'a str,
    pub(crate) queue_id: i32,
    pub(crate) attempt_id: Option<&'a str>,
    pub(crate) pop_time: i64,
    pub(crate) invisible_time: i64,
    /// Queue offsets, ascending, not empty.
    pub(crate) offsets: &'a [i64],
}

impl Orders {
    /// Reads the file of `dir`.
    pub(crate) fn open(dir: &Path) -> Result<Self, TableError> {
        let path = dir.join(FILE);
        let file = JsonFile::new(path.clone());
        let loaded: Option<OrderTable> = file.load().map_err(|source| TableError::File {
            path: path.clone(),
            source,
        })?;
        let state = State {
            table: loaded.unwrap_or_default().table.into_iter().collect(),
            dirty: false,
        };
        Ok(Self {
            state: Mutex::new(state),
            file,
            path,
            changed: Notify::new(),
        })
    }

    /// When the queue is free again, if another try than `attempt_id` has to wait for it.
    pub(crate) fn closed_until(
        &self,
        topic: &str,
        group: &str,
        queue_id: i32,
        attempt_id: Option<&str>,
        invisible_time: i64,
        now: i64,
    ) -> Option<i64> {
        let mut state = self.state();
        let info = state.info(topic, group, queue_id)?;
        if info.attempt_id.is_some() && info.attempt_id.as_deref() == attempt_id {
            return None;
        }
        if info.invisible_time.is_none_or(|time| time <= 0) {
            info.invisible_time = Some(invisible_time);
        }
        free_at(info).filter(|free| *free > now)
    }

    /// Notes a hand-out and tells in `counts` how often its messages were handed out before.
    pub(crate) fn handed_out(&self, out: &HandedOut<'_>, counts: &mut String, now: i64) {
        let Some(first) = out.offsets.first() else {
            return;
        };
        let mut info = OrderInfo {
            attempt_id: out.attempt_id.map(str::to_owned),
            done: 0,
            invisible_time: Some(out.invisible_time),
            last_consume_time: now,
            offsets: Vec::with_capacity(out.offsets.len()),
            consumed_counts: None,
            next_visible: None,
            pop_time: out.pop_time,
        };
        info.offsets.push(*first);
        info.offsets
            .extend(out.offsets[1..].iter().map(|offset| offset - first));
        let mut state = self.state();
        let queues = state.table.entry(key(out.topic, out.group)).or_default();
        if let Some(before) = queues.get(&out.queue_id) {
            info.consumed_counts = Some(counted(&info, before));
        }
        let again = info.consumed_counts.clone().unwrap_or_default();
        queues.insert(out.queue_id, info);
        self.touch(&mut state);
        drop(state);
        let mut least = i32::MAX;
        for (offset, count) in &again {
            push_order_count(counts, out.topic, out.queue_id, *offset, *count);
            least = least.min(*count);
        }
        if again.len() != out.offsets.len() {
            least = 0;
        }
        push_queue_order_count(counts, out.topic, out.queue_id, least);
    }

    /// A message handed out at `pop_time` is done.
    pub(crate) fn done(
        &self,
        topic: &str,
        group: &str,
        queue_id: i32,
        offset: i64,
        pop_time: i64,
    ) -> Done {
        let mut state = self.state();
        let Some(info) = state.info(topic, group, queue_id) else {
            return Done::Upto(offset.saturating_add(1));
        };
        if info.offsets.is_empty() {
            return Done::Unknown;
        }
        if info.pop_time != pop_time {
            return Done::Stale;
        }
        let Some(place) = (0..info.offsets.len()).find(|place| at(info, *place) == Some(offset))
        else {
            return Done::Unknown;
        };
        info.done |= bit(place);
        let next = first_open(info);
        self.touch(&mut state);
        Done::Upto(next)
    }

    /// A message handed out at `pop_time` is to become visible at another time.
    pub(crate) fn postpone(
        &self,
        topic: &str,
        group: &str,
        queue_id: i32,
        offset: i64,
        pop_time: i64,
        visible_at: i64,
    ) {
        let mut state = self.state();
        let Some(info) = state.info(topic, group, queue_id) else {
            return;
        };
        let known = (0..info.offsets.len()).any(|place| at(info, place) == Some(offset));
        if info.pop_time == pop_time && known {
            let times = info.next_visible.get_or_insert_default();
            times.insert(offset, visible_at);
            self.touch(&mut state);
        }
    }

    /// The group goes on from another offset: nothing is handed out any more.
    pub(crate) fn clear(&self, topic: &str, group: &str, queue_id: i32) {
        let mut state = self.state();
        let Some(queues) = state.table.get_mut(&key(topic, group)) else {
            return;
        };
        if queues.remove(&queue_id).is_some() {
            self.touch(&mut state);
        }
    }

    /// Waits for the first change since the file was written. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Writes the file if something changed, without what `kept` says is gone: it gives the queues that a group may read
    /// of a topic. Blocks on the disk.
    pub(crate) fn persist(
        &self,
        now: i64,
        kept: impl Fn(&str, &str) -> Option<i32>,
    ) -> Result<(), TableError> {
        let table = {
            let mut state = self.state();
            if !std::mem::take(&mut state.dirty) {
                return Ok(());
            }
            state.table.retain(|key, queues| {
                let readable = key
                    .split_once('@')
                    .and_then(|(topic, group)| kept(topic, group))
                    .unwrap_or(0);
                queues.retain(|queue_id, info| {
                    *queue_id < readable && now.saturating_sub(info.last_consume_time) <= STALE
                });
                !queues.is_empty()
            });
            OrderTable {
                table: state.table.clone().into_iter().collect(),
            }
        };
        let written = self.file.persist(&table);
        if written.is_err() {
            self.touch(&mut self.state());
        }
        written.map_err(|source| TableError::File {
            path: self.path.clone(),
            source,
        })
    }

    fn touch(&self, state: &mut State) {
        if !state.dirty {
            state.dirty = true;
            self.changed.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn info(&mut self, topic: &str, group: &str, queue_id: i32) -> Option<&mut OrderInfo> {
        self.table.get_mut(&key(topic, group))?.get_mut(&queue_id)
    }
}

fn key(topic: &str, group: &str) -> String {
    format!("{topic}@{group}")
}

/// The mark of a place; a hand-out has 32 at most, a file may claim more.
fn bit(place: usize) -> u64 {
    u32::try_from(place)
        .ok()
        .and_then(|place| 1_u64.checked_shl(place))
        .unwrap_or(0)
}

/// Queue offset of the message at a place.
fn at(info: &OrderInfo, place: usize) -> Option<i64> {
    let first = *info.offsets.first()?;
    match place {
        0 => Some(first),
        _ => first.checked_add(*info.offsets.get(place)?),
    }
}

fn open_places(info: &OrderInfo) -> impl Iterator<Item = usize> {
    (0..info.offsets.len()).filter(|place| info.done & bit(*place) == 0)
}

/// When the last of the messages that are not done becomes visible.
fn free_at(info: &OrderInfo) -> Option<i64> {
    let usual = info.pop_time.saturating_add(info.invisible_time?);
    let visible = |place| {
        let own = info.next_visible.as_ref().zip(at(info, place));
        own.and_then(|(times, offset)| times.get(&offset).copied())
            .unwrap_or(usual)
    };
    open_places(info).map(visible).max()
}

/// The first message that is not done, or the offset behind the last.
fn first_open(info: &OrderInfo) -> i64 {
    let open = open_places(info).next();
    let last = info.offsets.len().saturating_sub(1);
    match open {
        Some(place) => at(info, place).unwrap_or(0),
        None => at(info, last).unwrap_or(0).saturating_add(1),
    }
}

/// How often the messages of `info` were handed out before, where they were. The same try counts once.
fn counted(info: &OrderInfo, before: &OrderInfo) -> BTreeMap<i64, i32> {
    let counts = before.consumed_counts.clone().unwrap_or_default();
    if before.attempt_id.is_some() && before.attempt_id == info.attempt_id {
        return counts;
    }
    let again =
        |offset: &i64| (0..before.offsets.len()).any(|place| at(before, place) == Some(*offset));
    (0..info.offsets.len())
        .filter_map(|place| at(info, place))
        .filter(again)
        .map(|offset| {
            (
                offset,
                counts
                    .get(&offset)
                    .map_or(1, |count| count.saturating_add(1)),
            )
        })
        .collect()
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
