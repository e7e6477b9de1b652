//! Committed offsets: up to where each group has consumed each queue, and resets that wait for the next pull.
//!
//! ```text
//! 15, pull's commit flag ─▶ Offsets::commit ─▶ dirty ─▶ consumerOffset.json, 5 s after the first change
//! 14, pull ◀── Offsets::committed                 222 ─▶ Offsets::reset ─▶ next pull ─▶ Offsets::take_reset
//! ```
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bindery_protocol::{
    bodies::{ConsumerOffsetTable, DataVersion},
    message::PhysicalOffset,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::{
    store::{JsonFile, LIGHT_PREFIX},
    table::{TableError, next_version},
};

const FILE: &str = "consumerOffset.json";
/// Read and written instead while there are light queues.
const LIGHT_FILE: &str = "lmqConsumerOffset.json";

/// Either file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Content {
    data_version: Option<DataVersion>,
    group_topic_map: BTreeMap<String, BTreeSet<String>>,
    offset_table: BTreeMap<String, ByQueue>,
    /// By `topic@group`, for groups named as light queues are: they have one queue.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    lmq_offset_table: BTreeMap<String, i64>,
    /// Ours alone: everything that this broker commits by itself because of a message before this log offset, in bytes, is
    /// in the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_end: Option<i64>,
}

/// Which file keeps the offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffsetFile {
    /// `consumerOffset.json`.
    Plain,
    /// `lmqConsumerOffset.json`, as with `enableLmq`; until it is there, the other one is read.
    Light,
}

/// Offsets by queue id.
type ByQueue = BTreeMap<i32, i64>;
/// group → topic → queue → offset: looked up by borrowed names, unlike Java's joined `topic@group`.
type ByGroup = HashMap<String, HashMap<String, ByQueue>>;

/// All committed offsets of a broker.
pub(crate) struct Offsets {
    state: Mutex<State>,
    pulled: Mutex<ByGroup>,
    file: JsonFile,
    path: PathBuf,
    kind: OffsetFile,
    version_step: u64,
    changed: Notify,
    /// What the file said of the log when it was read.
    loaded_log_end: Option<i64>,
}

struct State {
    committed: ByGroup,
    resets: ByGroup,
    version: DataVersion,
    commits: u64,
    dirty: bool,
}

impl Offsets {
    /// Reads the file of `dir`.
    pub(crate) fn open(
        dir: &Path,
        kind: OffsetFile,
        version_step: u64,
    ) -> Result<Self, TableError> {
        let plain = dir.join(FILE);
        let path = match kind {
            OffsetFile::Plain => plain.clone(),
            OffsetFile::Light => dir.join(LIGHT_FILE),
        };
        let load = |path: &Path| {
            let file = JsonFile::new(path);
            let loaded: Option<Content> = file.load().map_err(|source| TableError::File {
                path: path.to_owned(),
                source,
            })?;
            Ok((file, loaded))
        };
        let (file, mut loaded) = load(&path)?;
        if loaded.is_none() && kind == OffsetFile::Light {
            // Light queues were switched on: Apache's broker would forget every offset here.
            loaded = load(&plain)?.1;
        }
        // Where there is no file, nothing that the log says is in the table.
        let loaded = loaded.unwrap_or_else(|| Content {
            log_end: Some(0),
            ..Content::default()
        });
        let loaded_log_end = loaded.log_end;
        let mut committed = ByGroup::new();
        let light = loaded.lmq_offset_table.into_iter();
        let light = light.map(|(key, offset)| (key, ByQueue::from([(0, offset)])));
        for (key, queues) in loaded.offset_table.into_iter().chain(light) {
            let Some((topic, group)) = key.split_once('@') else {
                tracing::warn!(
                    key,
                    "committed offsets under a key that is no topic@group, left out"
                );
                continue;
            };
            committed
                .entry(group.to_owned())
                .or_default()
                .insert(topic.to_owned(), queues);
        }
        let state = State {
            committed,
            resets: ByGroup::new(),
            version: loaded.data_version.unwrap_or_default(),
            commits: 0,
            dirty: false,
        };
        Ok(Self {
            state: Mutex::new(state),
            pulled: Mutex::default(),
            file,
            path,
            kind,
            version_step: version_step.max(1),
            changed: Notify::new(),
            loaded_log_end,
        })
    }

    /// Log offset in bytes up to which the file, when it was read, knew what the broker committed by itself; none when
    /// another broker wrote it.
    pub(crate) fn loaded_log_end(&self) -> Option<i64> {
        self.loaded_log_end
    }

    /// The committed offset of a queue.
    pub(crate) fn committed(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        self.state()
            .committed
            .get(group)?
            .get(topic)?
            .get(&queue_id)
            .copied()
    }

    /// Commits an offset; it may lie before the last one, as Apache's broker allows.
    pub(crate) fn commit(&self, group: &str, topic: &str, queue_id: i32, offset: i64, now: i64) {
        let mut state = self.state();
        let before = insert(&mut state.committed, group, topic, queue_id, offset);
        if before == Some(offset) {
            return;
        }
        if before.is_some_and(|before| before > offset) {
            tracing::warn!(group, topic, queue_id, from = ?before, to = offset, "consumer offset moved back");
        }
        state.commits += 1;
        if state.commits.is_multiple_of(self.version_step) {
            next_version(&mut state.version, now);
        }
        self.touch(&mut state);
    }

    fn touch(&self, state: &mut State) {
        if !state.dirty {
            state.dirty = true;
            self.changed.notify_one();
        }
    }

    /// A group asked for messages from this offset on.
    pub(crate) fn pulling(&self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        insert(&mut self.pulled(), group, topic, queue_id, offset);
    }

    /// The offset a group last asked for.
    pub(crate) fn last_pulled(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        self.pulled()
            .get(group)?
            .get(topic)?
            .get(&queue_id)
            .copied()
    }

    /// Sets an offset aside for the next pull of the queue, and commits it.
    pub(crate) fn reset(&self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        let mut state = self.state();
        insert(&mut state.resets, group, topic, queue_id, offset);
        let from = insert(&mut state.committed, group, topic, queue_id, offset);
        tracing::info!(
            group,
            topic,
            queue_id,
            ?from,
            to = offset,
            "consumer offset reset"
        );
        self.touch(&mut state);
    }

    /// Whether a reset waits for the next pull of the queue.
    pub(crate) fn reset_pending(&self, group: &str, topic: &str, queue_id: i32) -> bool {
        let state = self.state();
        !state.resets.is_empty()
            && state
                .resets
                .get(group)
                .and_then(|topics| topics.get(topic))
                .is_some_and(|queues| queues.contains_key(&queue_id))
    }

    /// Takes out the reset that waits for the queue.
    pub(crate) fn take_reset(&self, group: &str, topic: &str, queue_id: i32) -> Option<i64> {
        let mut state = self.state();
        if state.resets.is_empty() {
            return None;
        }
        let topics = state.resets.get_mut(group)?;
        let queues = topics.get_mut(topic)?;
        let offset = queues.remove(&queue_id)?;
        if queues.is_empty() {
            topics.remove(topic);
        }
        if topics.is_empty() {
            state.resets.remove(group);
        }
        Some(offset)
    }

    /// The committed offsets of a group by queue of a topic.
    pub(crate) fn of_topic(&self, group: &str, topic: &str) -> BTreeMap<i32, i64> {
        self.state()
            .committed
            .get(group)
            .and_then(|topics| topics.get(topic))
            .cloned()
            .unwrap_or_default()
    }

    /// The topics a group has offsets for.
    pub(crate) fn topics_of(&self, group: &str) -> Vec<String> {
        self.state()
            .committed
            .get(group)
            .map(|topics| topics.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// The groups that have offsets for a topic.
    pub(crate) fn groups_of(&self, topic: &str) -> Vec<String> {
        let state = self.state();
        state
            .committed
            .iter()
            .filter(|(_, topics)| topics.contains_key(topic))
            .map(|(group, _)| group.clone())
            .collect()
    }

    /// Forgets a group.
    pub(crate) fn forget_group(&self, group: &str) {
        self.pulled().remove(group);
        let mut state = self.state();
        state.resets.remove(group);
        if state.committed.remove(group).is_some() {
            self.touch(&mut state);
        }
    }

    /// Forgets a topic.
    pub(crate) fn forget_topic(&self, topic: &str) {
        self.pulled().retain(|_, topics| {
            topics.remove(topic);
            !topics.is_empty()
        });
        let mut state = self.state();
        let mut found = false;
        let State {
            committed, resets, ..
        } = &mut *state;
        for groups in [committed, resets] {
            groups.retain(|_, topics| {
                found |= topics.remove(topic).is_some();
                !topics.is_empty()
            });
        }
        if found {
            self.touch(&mut state);
        }
    }

    /// Everything, as `GET_ALL_CONSUMER_OFFSET` (43) answers it.
    pub(crate) fn snapshot(&self) -> ConsumerOffsetTable {
        let state = self.state();
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut file = ConsumerOffsetTable {
            data_version: Some(state.version),
            ..ConsumerOffsetTable::default()
        };
        for (group, topics) in &state.committed {
            for (topic, queues) in topics {
                file.offset_table
                    .insert(format!("{topic}@{group}"), queues.clone());
                groups
                    .entry(group.clone())
                    .or_default()
                    .insert(topic.clone());
            }
        }
        file.group_topic_map = Some(groups);
        file
    }

    /// Everything, in the shape of the file.
    fn content(&self) -> Content {
        let table = self.snapshot();
        let mut content = Content {
            data_version: table.data_version,
            group_topic_map: table.group_topic_map.unwrap_or_default(),
            offset_table: table.offset_table,
            ..Content::default()
        };
        if self.kind == OffsetFile::Light {
            let of_light_group = |key: &String| {
                let group = key.split_once('@').map_or("", |(_, group)| group);
                group.starts_with(LIGHT_PREFIX)
            };
            let light = content
                .offset_table
                .extract_if(.., |key, _| of_light_group(key));
            let first = |(key, queues): (String, ByQueue)| Some((key, *queues.get(&0)?));
            content.lmq_offset_table = light.filter_map(first).collect();
        }
        content
    }

    /// Waits for the first change since the file was written. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The file's content if it is no longer what is on the disk. `log_end` is the log's end before which no message waits
    /// to be accounted for; the caller passes the content to [`Offsets::write`] once the log is as durable as it has to be.
    pub(crate) fn take_unwritten(&self, log_end: PhysicalOffset) -> Option<Content> {
        if !std::mem::take(&mut self.state().dirty) {
            return None;
        }
        let mut content = self.content();
        content.log_end = Some(log_end.0);
        Some(content)
    }

    /// Writes the file. Blocks on the disk.
    pub(crate) fn write(&self, content: &Content) -> Result<(), TableError> {
        let written = self.file.persist(content);
        if written.is_err() {
            self.touch(&mut self.state());
        }
        written.map_err(|source| TableError::File {
            path: self.path.clone(),
            source,
        })
    }

    fn pulled(&self) -> MutexGuard<'_, ByGroup> {
        self.pulled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Inserts without allocating names that are already there.
fn insert(
    groups: &mut ByGroup,
    group: &str,
    topic: &str,
    queue_id: i32,
    offset: i64,
) -> Option<i64> {
    if !groups.contains_key(group) {
        groups.insert(group.to_owned(), HashMap::new());
    }
    let topics = groups.get_mut(group)?;
    if let Some(queues) = topics.get_mut(topic) {
        return queues.insert(queue_id, offset);
    }
    topics.insert(topic.to_owned(), BTreeMap::from([(queue_id, offset)]));
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn offsets_are_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let offsets = Offsets::open(dir.path(), OffsetFile::Plain, 500).unwrap();
        offsets.commit("g", "T", 3, 42, 1);
        offsets.commit("g", "%RETRY%g", 0, 7, 1);
        let content = offsets.take_unwritten(PhysicalOffset(77)).unwrap();
        offsets.write(&content).unwrap();
        assert!(offsets.take_unwritten(PhysicalOffset(78)).is_none());
        assert_eq!(offsets.loaded_log_end(), Some(0));
        let again = Offsets::open(dir.path(), OffsetFile::Plain, 500).unwrap();
        assert_eq!(again.loaded_log_end(), Some(77));
        assert_eq!(again.committed("g", "T", 3), Some(42));
        assert_eq!(again.committed("g", "%RETRY%g", 0), Some(7));
        assert_eq!(again.committed("g", "T", 0), None);
    }

    #[test]
    fn switching_light_queues_on_keeps_every_offset_and_their_groups_have_a_table_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let offsets = Offsets::open(dir.path(), OffsetFile::Plain, 500).unwrap();
        offsets.commit("g", "T", 3, 42, 1);
        let content = offsets.take_unwritten(PhysicalOffset(0)).unwrap();
        offsets.write(&content).unwrap();
        let light = Offsets::open(dir.path(), OffsetFile::Light, 500).unwrap();
        assert_eq!(light.committed("g", "T", 3), Some(42));
        light.commit("%LMQ%g", "%LMQ%T", 0, 7, 1);
        let content = light.take_unwritten(PhysicalOffset(0)).unwrap();
        light.write(&content).unwrap();
        let text = std::fs::read_to_string(dir.path().join(LIGHT_FILE)).unwrap();
        let file: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(file["lmqOffsetTable"]["%LMQ%T@%LMQ%g"], 7);
        assert_eq!(file["offsetTable"]["T@g"]["3"], 42);
        let again = Offsets::open(dir.path(), OffsetFile::Light, 500).unwrap();
        assert_eq!(again.committed("%LMQ%g", "%LMQ%T", 0), Some(7));
        assert_eq!(again.committed("g", "T", 3), Some(42));
    }

    #[test]
    fn a_reset_waits_for_one_pull_of_its_queue() {
        let dir = tempfile::tempdir().unwrap();
        let offsets = Offsets::open(dir.path(), OffsetFile::Plain, 500).unwrap();
        offsets.commit("g", "T", 0, 9, 1);
        offsets.reset("g", "T", 0, 2);
        assert!(offsets.reset_pending("g", "T", 0) && !offsets.reset_pending("g", "T", 1));
        assert_eq!(offsets.committed("g", "T", 0), Some(2));
        assert_eq!(offsets.take_reset("g", "T", 0), Some(2));
        assert_eq!(offsets.take_reset("g", "T", 0), None);
    }

    #[test]
    fn deleted_topics_and_groups_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let offsets = Offsets::open(dir.path(), OffsetFile::Plain, 500).unwrap();
        offsets.commit("g", "T", 0, 9, 1);
        offsets.commit("h", "T", 0, 9, 1);
        offsets.commit("h", "U", 0, 9, 1);
        assert_eq!(offsets.groups_of("T").len(), 2);
        offsets.forget_topic("T");
        assert!(offsets.groups_of("T").is_empty() && offsets.topics_of("h") == ["U"]);
        offsets.forget_group("h");
        assert!(offsets.topics_of("h").is_empty());
    }
}
