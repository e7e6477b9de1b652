//! Timer messages that wait, counted by the topic they are for: `config/timermetrics`.
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bindery_protocol::bodies::DataVersion;
use serde::{Deserialize, Serialize};

use crate::{
    store::{JsonFile, StoreError},
    table::next_version,
};

const FILE: &str = "timermetrics";
/// Topics counted at most; messages for further ones are not.
const TOPICS: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metric {
    count: i64,
    /// Of the last change, milliseconds since 1970.
    time_stamp: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Counts {
    data_version: DataVersion,
    timing_count: BTreeMap<String, Metric>,
}

/// The counts, and their file.
#[derive(Debug)]
pub(super) struct Metrics {
    counts: Mutex<Counts>,
    changed: AtomicBool,
    file: JsonFile,
}

impl Metrics {
    /// Reads the counts of `dir`.
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        let file = JsonFile::new(dir.join(FILE));
        let counts = match file.load() {
            Ok(counts) => counts.unwrap_or_default(),
            // They are figures for operators, no reason not to start.
            Err(error @ StoreError::Unreadable { .. }) => {
                tracing::warn!(%error, "timer messages are counted anew");
                Counts::default()
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            counts: Mutex::new(counts),
            changed: AtomicBool::new(false),
            file,
        })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One message more, or one less, for a topic.
    pub(super) fn add(&self, topic: &str, change: i64, now: i64) {
        let mut counts = self.counts();
        if counts.timing_count.len() >= TOPICS && !counts.timing_count.contains_key(topic) {
            return;
        }
        next_version(&mut counts.data_version, now);
        let metric = match counts.timing_count.get_mut(topic) {
            Some(metric) => metric,
            None => counts.timing_count.entry(topic.to_owned()).or_default(),
        };
        metric.count = metric.count.saturating_add(change);
        metric.time_stamp = now;
        self.changed.store(true, Ordering::Release);
    }

    /// The topics counted.
    pub(super) fn topics(&self) -> Vec<String> {
        self.counts().timing_count.keys().cloned().collect()
    }

    /// Replaces the counts of some topics.
    pub(super) fn recount(&self, counted: BTreeMap<String, i64>) {
        let mut counts = self.counts();
        for (topic, count) in counted {
            if let Some(metric) = counts.timing_count.get_mut(&topic)
                && metric.count != count
            {
                metric.count = count;
                self.changed.store(true, Ordering::Release);
            }
        }
    }

    /// All of it, in one line.
    pub(super) fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&*self.counts()).unwrap_or_default()
    }

    /// Writes the file if something changed. Blocks on the disk.
    pub(super) fn persist(&self) -> Result<(), StoreError> {
        if !self.changed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let counts = self.counts().clone();
        let written = self.file.persist(&counts);
        if written.is_err() {
            self.changed.store(true, Ordering::Release);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn counts_are_there_again_and_read_as_apaches() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = Metrics::open(folder.path()).unwrap();
        metrics.add("T", 1, 5);
        metrics.add("T", 1, 6);
        metrics.add("U", -1, 7);
        let json = r#"{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":7},"timingCount":{"T":{"count":2,"timeStamp":6},"U":{"count":-1,"timeStamp":7}}}"#;
        assert_eq!(String::from_utf8(metrics.json()).unwrap(), json);
        metrics.persist().unwrap();
        let again = Metrics::open(folder.path()).unwrap();
        assert_eq!(String::from_utf8(again.json()).unwrap(), json);
        again.recount(BTreeMap::from([("U".to_owned(), 4), ("V".to_owned(), 9)]));
        assert_eq!(again.topics(), ["T", "U"]);
        assert!(
            String::from_utf8(again.json())
                .unwrap()
                .contains(r#""count":4"#)
        );
    }
}
