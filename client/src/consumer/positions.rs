//! Where positions are kept: at the broker for a group that shares its queues, in a local file for a broadcasting consumer.
//!
//! ```text
//! finish ─▶ unsaved ─▶ save round (5 s after the first change, none while nothing changes) ─┬─▶ broker (15, answered)
//!                      release of a queue, at once ────────────────────────────────────────┴─▶ offsets.json
//! ```
//! The file has Java's place and form (`~/.rocketmq_offsets/<client>/<group>/offsets.json`), so that a Java consumer can be replaced
//! where it stands. Its client id is `ip@DEFAULT` unless an instance name is configured.
use std::{
    collections::BTreeMap,
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use bindery_protocol::bodies::QueueMap;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use super::{core::ConsumerCore, process_queue::ProcessQueue};
use crate::{
    ClientError, MessageQueue, body,
    instance::{Server, Shared, host_text, warn_once},
    sync::lock,
};

#[derive(Debug)]
pub(super) enum Positions {
    Broker,
    Local(Arc<LocalPositions>),
}

/// The positions of a broadcasting consumer, those of queues that are not there at the moment included.
#[derive(Debug)]
pub(super) struct LocalPositions {
    path: PathBuf,
    table: Mutex<BTreeMap<MessageQueue, i64>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OffsetsFile {
    offset_table: QueueMap<i64>,
}

impl Positions {
    pub(super) fn local(client: &Shared, group: &str) -> Result<Self, ClientError> {
        let config = &client.config;
        let root = match &config.offset_dir {
            Some(root) => root.clone(),
            None => std::env::home_dir()
                .unwrap_or_default()
                .join(".rocketmq_offsets"),
        };
        let instance = config.instance_name.as_deref().unwrap_or("DEFAULT");
        let path = root
            .join(format!("{}@{instance}", host_text(client.ip)))
            .join(group)
            .join("offsets.json");
        let table = LocalPositions::load(&path)?;
        Ok(Self::Local(Arc::new(LocalPositions {
            path,
            table: Mutex::new(table),
        })))
    }
}

impl LocalPositions {
    /// The file, else the one before it, else nothing.
    fn load(path: &Path) -> Result<BTreeMap<MessageQueue, i64>, ClientError> {
        for candidate in [path.to_owned(), backup_of(path)] {
            match fs::read(&candidate) {
                Ok(bytes) => {
                    match body::decode::<OffsetsFile>(&candidate.display().to_string(), &bytes) {
                        Ok(file) => return Ok(file.offset_table.0),
                        Err(error) => {
                            tracing::warn!(path = %candidate.display(), %error, "local positions not readable");
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => {
                    return Err(ClientError::File {
                        action: "read",
                        path: candidate,
                        source,
                    });
                }
            }
        }
        Ok(BTreeMap::new())
    }

    fn position(&self, queue: &MessageQueue) -> Option<i64> {
        lock(&self.table).get(queue).copied()
    }

    fn save(&self, positions: &[(MessageQueue, i64)]) -> Result<(), ClientError> {
        let offset_table = {
            let mut table = lock(&self.table);
            table.extend(positions.iter().cloned());
            QueueMap(table.clone())
        };
        let bytes = body::encode("local positions", &OffsetsFile { offset_table })?;
        self.replace(&bytes).map_err(|source| ClientError::File {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }

    /// The old content becomes the backup; the new one is complete on disk before it gets the name.
    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let fresh = self.path.with_extension("json.tmp");
        let mut file = fs::File::create(&fresh)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        match fs::copy(&self.path, backup_of(&self.path)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        fs::rename(&fresh, &self.path)
    }
}

/// On a thread of its own, since it waits for the disk.
async fn save_elsewhere(
    local: Arc<LocalPositions>,
    positions: Vec<(MessageQueue, i64)>,
) -> Result<(), ClientError> {
    let saving = tokio::task::spawn_blocking(move || local.save(&positions));
    saving.await.unwrap_or(Err(ClientError::TaskEnded {
        what: "saving local positions",
    }))
}

fn backup_of(path: &Path) -> PathBuf {
    path.with_extension("json.bak")
}

impl ConsumerCore {
    /// The stored position of a queue.
    pub(super) async fn stored_position(
        &self,
        queue: &MessageQueue,
    ) -> Result<Option<i64>, ClientError> {
        match &self.positions {
            Positions::Local(local) => Ok(local.position(queue)),
            Positions::Broker => {
                let addr = self.client.routes.master(&queue.broker_name)?;
                self.client
                    .query_offset(&addr, self.group(), queue, self.settings.start_like_java)
                    .await
            }
        }
    }

    /// Saves the positions that are unsaved; what fails stays unsaved. Answers whether all are saved.
    pub(super) async fn save(&self, queues: &[Arc<ProcessQueue>]) -> bool {
        let unsaved: Vec<_> = queues
            .iter()
            .filter(|queue| self.may_save(queue))
            .filter_map(|queue| Some((queue, queue.unsaved()?)))
            .collect();
        if unsaved.is_empty() {
            return true;
        }
        match &self.positions {
            Positions::Local(local) => {
                let positions: Vec<_> = unsaved
                    .iter()
                    .map(|(queue, offset)| (queue.mq.clone(), *offset))
                    .collect();
                if let Err(error) = save_elsewhere(Arc::clone(local), positions).await {
                    tracing::warn!(group = self.group(), %error, "local positions not saved");
                    return false;
                }
                for (queue, offset) in unsaved {
                    queue.saved(offset);
                }
                true
            }
            Positions::Broker => {
                let saves = unsaved
                    .into_iter()
                    .map(|(queue, offset)| self.save_one(queue, offset));
                join_all(saves).await.into_iter().all(|saved| saved)
            }
        }
    }

    /// Saves one position at the broker; answers whether it is saved.
    pub(super) async fn save_one(&self, queue: &ProcessQueue, offset: i64) -> bool {
        let saved = match self.client.routes.master(&queue.mq.broker_name) {
            Ok(addr) => {
                self.client
                    .update_offset(&addr, self.group(), &queue.mq, offset)
                    .await
            }
            Err(error) => Err(error),
        };
        match saved {
            Ok(()) => {
                queue.saved(offset);
                true
            }
            Err(error) => {
                let news = self
                    .client
                    .is_news(Server::Broker(&queue.mq.broker_name), &error);
                warn_once!(news, queue = %queue.mq, group = self.group(), offset, %error, "position not saved");
                false
            }
        }
    }
}

/// Saves some time after the first change, and again while something could not be saved.
pub(super) async fn save_rounds(core: Arc<ConsumerCore>) {
    let clock = core.client.config.clock.clone();
    let mut all_saved = true;
    loop {
        if all_saved {
            core.unsaved.notified().await;
        }
        clock
            .sleep(core.client.config.persist_offset_interval)
            .await;
        // A queue that is being given up saves its position itself, once.
        let mut queues = core.held();
        queues.retain(|queue| !queue.leave.is_cancelled());
        all_saved = core.save(&queues).await;
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn local_positions_survive_and_keep_a_backup() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("10.0.0.1@DEFAULT/g/offsets.json");
        let queue = MessageQueue::new("orders", "broker-a", 3);
        let local = LocalPositions {
            path: path.clone(),
            table: Mutex::default(),
        };
        local.save(&[(queue.clone(), 7)]).unwrap();
        local.save(&[(queue.clone(), 9)]).unwrap();
        assert_eq!(LocalPositions::load(&path).unwrap().get(&queue), Some(&9));
        fs::write(&path, b"torn").unwrap();
        assert_eq!(
            LocalPositions::load(&path).unwrap().get(&queue),
            Some(&7),
            "the backup serves"
        );
    }

    #[test]
    fn a_file_written_by_java_is_read() {
        let text = "{\n\t\"offsetTable\":{{\n\t\t\t\"brokerName\":\"broker-a\",\n\t\t\t\"queueId\":3,\n\t\t\t\"topic\":\"orders\"\n\t\t}:7\n\t}\n}";
        let file: OffsetsFile = body::decode("a test", text.as_bytes()).unwrap();
        assert_eq!(
            file.offset_table
                .get(&MessageQueue::new("orders", "broker-a", 3)),
            Some(&7)
        );
    }
}
