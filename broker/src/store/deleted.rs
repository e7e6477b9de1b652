//! Deleted topics: up to where in the commit log their records stay out of the queues.
//!
//! ```text
//! delete topic ─▶ grave (end of the log, store time) ─▶ deletedTopics.json, synced ─▶ queue folders removed
//! recovery, rebuild ─▶ record before its topic's grave? ─▶ left out        log begins behind the grave ─▶ forgotten
//! ```
//! Records of a deleted topic stay in the log until they expire, and Apache's format says nothing of the deletion: a start
//! that reads the log again would bring them back. Topics missing from `topics.json` can't tell either: the file may be an
//! older copy, or lag behind a topic that a send has just made, and then messages would be lost. So the deletion itself is
//! kept, exactly: a record is left out only if it lies before the end that the log had then and is not younger. The file
//! lies in `config/`, where Apache's broker ignores it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::json_file::JsonFile;

/// Where the records of a deleted topic end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Grave {
    /// The log's end when the topic was deleted.
    offset: i64,
    /// Store time of the newest record then, milliseconds since 1970. Tells apart what is written there anew, should the
    /// log ever be cut before `offset`.
    store_timestamp: i64,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Content {
    deleted_topics: BTreeMap<String, Grave>,
}

/// All deleted topics whose records may still be in the log.
#[derive(Debug)]
pub(super) struct Deleted {
    file: JsonFile,
    graves: RwLock<HashMap<String, Grave>>,
    /// Largest `offset` of all: behind it nobody has to look further.
    highest: AtomicI64,
    /// Keeps changes, each with its write, apart.
    changing: Mutex<()>,
}

impl Deleted {
    /// Reads `ROOT/config/deletedTopics.json`.
    pub(super) fn open(root: &Path) -> Result<Self, StoreError> {
        let file = JsonFile::new(root.join("config").join("deletedTopics.json"));
        let content: Content = file.load()?.unwrap_or_default();
        let deleted = Self {
            file,
            graves: RwLock::new(content.deleted_topics.into_iter().collect()),
            highest: AtomicI64::new(0),
            changing: Mutex::default(),
        };
        deleted.raise();
        Ok(deleted)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<String, Grave>> {
        self.graves.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn raise(&self) {
        let highest = self.read().values().map(|grave| grave.offset).max();
        self.highest.store(highest.unwrap_or(0), Ordering::Release);
    }

    /// Whether a record belongs to a topic that was deleted after it came.
    pub(super) fn hides(&self, topic: &str, physical: i64, store_timestamp: i64) -> bool {
        physical < self.highest.load(Ordering::Acquire)
            && self.read().get(topic).is_some_and(|grave| {
                physical < grave.offset && store_timestamp <= grave.store_timestamp
            })
    }

    /// The topics, each with the end of the log when it was deleted.
    pub(super) fn ends(&self) -> Vec<(String, i64)> {
        let graves = self.read();
        graves
            .iter()
            .map(|(topic, grave)| (topic.clone(), grave.offset))
            .collect()
    }

    /// Leaves out all records of `topic` before `offset`, the log's present end. Durable when this returns.
    pub(super) fn bury(
        &self,
        topic: &str,
        offset: i64,
        store_timestamp: i64,
    ) -> Result<(), StoreError> {
        let grave = Grave {
            offset,
            store_timestamp,
        };
        self.change(|graves| graves.insert(topic.to_owned(), grave) != Some(grave))
    }

    /// Forgets topics none of whose records are left in a log that begins at `start`.
    pub(super) fn forget_before(&self, start: i64) -> Result<(), StoreError> {
        self.change(|graves| {
            let before = graves.len();
            graves.retain(|_, grave| grave.offset > start);
            graves.len() < before
        })
    }

    /// Recovery ended the log at `end`: what is written from there on is new.
    pub(super) fn cut(&self, end: i64) -> Result<(), StoreError> {
        self.change(|graves| {
            let mut behind = graves.values_mut().filter(|grave| grave.offset > end);
            behind.by_ref().map(|grave| grave.offset = end).count() > 0
        })
    }

    fn change(
        &self,
        work: impl FnOnce(&mut HashMap<String, Grave>) -> bool,
    ) -> Result<(), StoreError> {
        let _turn = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut graves = self.read().clone();
        if !work(&mut graves) {
            return Ok(());
        }
        let deleted_topics = graves.iter().map(|(topic, grave)| (topic.clone(), *grave));
        self.file.persist(&Content {
            deleted_topics: deleted_topics.collect(),
        })?;
        *self.graves.write().unwrap_or_else(PoisonError::into_inner) = graves;
        self.raise();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn only_records_older_than_the_deletion_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let deleted = Deleted::open(folder.path()).unwrap();
        deleted.bury("T", 1000, 50).unwrap();
        let again = Deleted::open(folder.path()).unwrap();
        assert!(again.hides("T", 999, 50) && again.hides("T", 0, 1));
        assert!(!again.hides("T", 1000, 50), "came after the deletion");
        assert!(!again.hides("T", 500, 51), "written anew over a cut");
        assert!(!again.hides("U", 0, 1));
        again.cut(400).unwrap();
        assert!(again.hides("T", 399, 50) && !again.hides("T", 400, 50));
        again.forget_before(400).unwrap();
        assert!(!again.hides("T", 399, 50));
        assert!(!Deleted::open(folder.path()).unwrap().hides("T", 399, 50));
    }
}
