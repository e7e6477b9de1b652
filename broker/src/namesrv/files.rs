//! The two files of a name server: the key-value table, and the configuration when it was changed by request.
//!
//! ```text
//! change in memory ─▶ Files::write_… (one writer at a time, each writes the newest state) ─▶ FILE, before it FILE.bak
//! ```
use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use super::{kv::KvStore, refusal::Refusal};
use crate::{
    replace,
    store::{JsonFile, StoreError},
};

/// Where a name server keeps what must survive it. All of it blocks for the disk.
#[derive(Debug)]
pub(super) struct Files {
    kv: Option<JsonFile>,
    /// Keeps writers apart, so that an older state never replaces a newer one.
    turn: Mutex<()>,
}

impl Files {
    /// `kv` is the file of the key-value table, if it is to be kept.
    pub(super) fn new(kv: Option<PathBuf>) -> Self {
        Self {
            kv: kv.map(JsonFile::new),
            turn: Mutex::new(()),
        }
    }

    /// The key-value table of the last run; an empty one if there was none.
    pub(super) fn load_kv(&self) -> Result<KvStore, StoreError> {
        match &self.kv {
            Some(file) => Ok(file.load()?.unwrap_or_default()),
            None => Ok(KvStore::default()),
        }
    }

    /// Whether the key-value table has a file.
    pub(super) fn keep_kv(&self) -> bool {
        self.kv.is_some()
    }

    /// Writes the table that `newest` returns.
    pub(super) fn write_kv(&self, newest: impl FnOnce() -> KvStore) -> Result<(), Refusal> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.kv {
            Some(file) => Ok(file.persist(&newest())?),
            None => Ok(()),
        }
    }

    /// Writes the configuration that `newest` returns to the path beside it.
    pub(super) fn write_config(
        &self,
        newest: impl FnOnce() -> (Option<PathBuf>, String),
    ) -> Result<(), Refusal> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        match newest() {
            (Some(path), text) => {
                replace::with_text(&path, &text).map_err(|source| Refusal::NotWritten {
                    path: path.display().to_string(),
                    source,
                })
            }
            (None, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::fs;

    use super::*;
    use crate::namesrv::kv::ORDER_TOPIC_CONFIG;

    #[test]
    fn the_key_value_file_has_apaches_form_and_survives_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kvConfig.json");
        let files = Files::new(Some(path.clone()));
        let mut table = files.load_kv().unwrap();
        table.put(ORDER_TOPIC_CONFIG, "TopicA", "broker-a:4");
        files.write_kv(|| table.clone()).unwrap();
        let text: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            text,
            serde_json::json!({"configTable": {"ORDER_TOPIC_CONFIG": {"TopicA": "broker-a:4"}}})
        );
        assert_eq!(Files::new(Some(path)).load_kv().unwrap(), table);
    }

    #[test]
    fn a_changed_configuration_replaces_the_file_and_keeps_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("namesrv.conf");
        fs::write(&path, "a=1\n").unwrap();
        Files::new(None)
            .write_config(|| (Some(path.clone()), "a=2\n".to_owned()))
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a=2\n");
        assert_eq!(
            fs::read_to_string(dir.path().join("namesrv.conf.bak")).unwrap(),
            "a=1\n"
        );
    }
}
