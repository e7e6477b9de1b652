//! All batch consume queues, by topic and queue id.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::batch_queue::BatchQueue;
use super::consume_queue::remove_folder;
use super::error::StoreError;
use super::queue_files::{QueueFiles, QueueSerial};
use super::queues::folders;

type Table = HashMap<Box<str>, HashMap<i32, Arc<BatchQueue>>>;

/// The table of queues.
#[derive(Debug)]
pub(super) struct BatchQueues {
    dir: PathBuf,
    files: Arc<QueueFiles>,
    serial: AtomicU64,
    table: RwLock<Table>,
}

impl BatchQueues {
    /// Opens all queues below `dir` (`ROOT/batchconsumequeue`).
    pub(super) fn load(dir: PathBuf, files: QueueFiles) -> Result<Self, StoreError> {
        let queues = Self {
            dir,
            files: Arc::new(files),
            serial: AtomicU64::new(0),
            table: RwLock::default(),
        };
        let mut table = Table::new();
        for (topic, topic_dir) in folders(&queues.dir)? {
            for (name, dir) in folders(&topic_dir)? {
                let Ok(id) = name.parse::<i32>() else {
                    continue;
                };
                let (serial, files) = (queues.new_serial(), Arc::clone(&queues.files));
                let queue = BatchQueue::load(&topic, id, dir, serial, files)?;
                let ids = table.entry(topic.as_str().into()).or_default();
                ids.insert(id, Arc::new(queue));
            }
        }
        *queues.table.write().unwrap_or_else(PoisonError::into_inner) = table;
        Ok(queues)
    }

    fn new_serial(&self) -> QueueSerial {
        QueueSerial(self.serial.fetch_add(1, Ordering::Relaxed))
    }

    fn table(&self) -> std::sync::RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are any: most stores have none.
    pub(super) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// The queue, if it was ever written to.
    pub(super) fn find(&self, topic: &str, id: i32) -> Option<Arc<BatchQueue>> {
        self.table().get(topic)?.get(&id).cloned()
    }

    /// The queue, made if need be. Its files come with its first entry.
    pub(super) fn find_or_create(&self, topic: &str, id: i32) -> Arc<BatchQueue> {
        if let Some(queue) = self.find(topic, id) {
            return queue;
        }
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let queues = table.entry(topic.into()).or_default();
        let queue = queues.entry(id).or_insert_with(|| {
            let dir = self.dir.join(topic).join(id.to_string());
            let files = Arc::clone(&self.files);
            Arc::new(BatchQueue::new(topic, id, dir, self.new_serial(), files))
        });
        Arc::clone(queue)
    }

    /// All queues.
    pub(super) fn all(&self) -> Vec<Arc<BatchQueue>> {
        let table = self.table();
        table.values().flat_map(HashMap::values).cloned().collect()
    }

    /// Writes everything to the disk.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.all().iter().try_for_each(|queue| queue.sync())?;
        self.files.sync_names(&self.dir)
    }

    /// Deletes all queues of a topic, on disk too.
    pub(super) fn delete_topic(&self, topic: &str) -> Result<(), StoreError> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let removed = table.remove(topic);
        drop(table);
        for queue in removed.iter().flat_map(HashMap::values) {
            queue.delete()?;
        }
        if removed.is_some() {
            remove_folder(&self.dir.join(topic))
        } else {
            Ok(())
        }
    }

    /// Removes one queue, on disk too.
    pub(super) fn remove(&self, queue: &BatchQueue) -> Result<(), StoreError> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let ids = table.get_mut(queue.topic());
        let last = ids.is_some_and(|ids| {
            ids.remove(&queue.id());
            ids.is_empty()
        });
        if !last {
            drop(table);
            return queue.delete();
        }
        table.remove(queue.topic());
        drop(table);
        queue.delete()?;
        remove_folder(&self.dir.join(queue.topic()))
    }

    /// The topics that have queues.
    pub(super) fn topics(&self) -> Vec<String> {
        self.table().keys().map(ToString::to_string).collect()
    }
}
