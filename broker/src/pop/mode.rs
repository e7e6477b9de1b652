//! How groups get the messages of topics: by pulling or by popping (401), kept in `messageRequestMode.json`.
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bindery_protocol::bodies::{RequestModeBody, RequestModeTable};

use crate::{store::JsonFile, table::TableError};

const FILE: &str = "messageRequestMode.json";

/// The modes that were set.
#[derive(Debug)]
pub(crate) struct RequestModes {
    table: Mutex<RequestModeTable>,
    file: JsonFile,
    path: PathBuf,
}

impl RequestModes {
    /// Reads the file of `dir`.
    pub(crate) fn open(dir: &Path) -> Result<Self, TableError> {
        let path = dir.join(FILE);
        let file = JsonFile::new(path.clone());
        let loaded = file.load().map_err(|source| TableError::File {
            path: path.clone(),
            source,
        })?;
        Ok(Self {
            table: Mutex::new(loaded.unwrap_or_default()),
            file,
            path,
        })
    }

    /// What was set for a topic and group.
    pub(crate) fn mode(&self, topic: &str, group: &str) -> Option<RequestModeBody> {
        let table = self.table();
        let groups = table.message_request_mode_map.get(topic)?;
        groups.get(group).cloned()
    }

    /// Sets one and writes the file. Blocks on the disk.
    ///
    /// # Errors
    /// The file can't be written; the mode is as before then.
    pub(crate) fn set(&self, mode: RequestModeBody) -> Result<(), TableError> {
        let mut table = self.table();
        let mut changed = table.clone();
        changed
            .message_request_mode_map
            .entry(mode.topic.clone())
            .or_default()
            .insert(mode.consumer_group.clone(), mode);
        self.file
            .persist(&changed)
            .map_err(|source| TableError::File {
                path: self.path.clone(),
                source,
            })?;
        *table = changed;
        Ok(())
    }

    /// All of them.
    pub(crate) fn all(&self) -> RequestModeTable {
        self.table().clone()
    }

    fn table(&self) -> MutexGuard<'_, RequestModeTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use bindery_protocol::bodies::RequestMode;

    use super::*;

    #[test]
    fn modes_are_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let modes = RequestModes::open(dir.path()).unwrap();
        let pop = RequestModeBody {
            consumer_group: "g".into(),
            mode: RequestMode::Pop,
            pop_share_queue_num: 2,
            topic: "T".into(),
        };
        modes.set(pop.clone()).unwrap();
        let again = RequestModes::open(dir.path()).unwrap();
        assert_eq!(again.mode("T", "g"), Some(pop));
        assert_eq!((again.mode("T", "h"), again.mode("U", "g")), (None, None));
    }
}
