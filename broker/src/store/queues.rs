//! All consume queues, by topic and queue id.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::batch_queues::BatchQueues;
use super::consume_queue::{ConsumeQueue, Entry, remove_folder};
use super::error::StoreError;
use super::json_file::sync_folder;
use super::queue_files::{QueueFiles, QueueSerial};
use super::recover::LastStop;

/// Entries that wait in memory over all queues before they are written out of turn.
const CROWDED: usize = 65_536;
/// Entries that wait in memory before dispatch itself writes them.
const OVERCROWDED: usize = 4 * CROWDED;
/// With more unsynced queues than this, one sync of the whole volume is cheaper.
const SYNC_SINGLY: usize = 64;

/// Ends the name of a damaged queue's folder while the queue is built again.
const ASIDE: &str = ".damaged";

type Table = HashMap<Box<str>, HashMap<i32, Arc<ConsumeQueue>>>;

/// The table of queues.
#[derive(Debug)]
pub(super) struct Queues {
    dir: PathBuf,
    files: Arc<QueueFiles>,
    /// The queues of batch topics.
    pub(super) batches: BatchQueues,
    serial: AtomicU64,
    table: RwLock<Table>,
    /// Queues with entries that are not written or not synced, each once.
    dirty: Mutex<Vec<Arc<ConsumeQueue>>>,
    /// Entries put since everything was written last.
    pending: AtomicUsize,
}

impl Queues {
    /// Opens all queues below `dir` (`ROOT/consumequeue`).
    pub(super) fn load(
        dir: PathBuf,
        files: QueueFiles,
        batches: BatchQueues,
        last_stop: LastStop,
    ) -> Result<Self, StoreError> {
        let queues = Self {
            dir,
            files: Arc::new(files),
            batches,
            serial: AtomicU64::new(0),
            table: RwLock::default(),
            dirty: Mutex::default(),
            pending: AtomicUsize::new(0),
        };
        let mut table = Table::new();
        for (topic, topic_dir) in folders(&queues.dir)? {
            let ids = table.entry(topic.as_str().into()).or_default();
            for (name, dir) in folders(&topic_dir)? {
                let (id, aside) = name
                    .strip_suffix(ASIDE)
                    .map_or((name.as_str(), false), |id| (id, true));
                let Ok(id) = id.parse::<i32>() else { continue };
                let (serial, files) = (queues.new_serial(), Arc::clone(&queues.files));
                if !aside {
                    let queue = ConsumeQueue::load(&topic, id, dir, serial, files, last_stop)?;
                    ids.insert(id, Arc::new(queue));
                    continue;
                }
                // A crash came before the queue was built again. Its own folder, if there is one, sorts before.
                let dir = topic_dir.join(id.to_string());
                let new = || Arc::new(ConsumeQueue::new(&topic, id, dir, serial, files));
                ids.entry(id)
                    .or_insert_with(new)
                    .damaged
                    .store(true, Ordering::Release);
            }
        }
        table.retain(|_, ids| !ids.is_empty());
        queues
            .table
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(table);
        Ok(queues)
    }

    fn new_serial(&self) -> QueueSerial {
        QueueSerial(self.serial.fetch_add(1, Ordering::Relaxed))
    }

    /// The queue, if it was ever written to.
    pub(super) fn find(&self, topic: &str, id: i32) -> Option<Arc<ConsumeQueue>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(topic)?.get(&id).cloned()
    }

    /// The queue, made if need be. Its files come with its first entries.
    pub(super) fn find_or_create(&self, topic: &str, id: i32) -> Arc<ConsumeQueue> {
        if let Some(queue) = self.find(topic, id) {
            return queue;
        }
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let queues = table.entry(topic.into()).or_default();
        let queue = queues.entry(id).or_insert_with(|| {
            let dir = self.dir.join(topic).join(id.to_string());
            let files = Arc::clone(&self.files);
            Arc::new(ConsumeQueue::new(topic, id, dir, self.new_serial(), files))
        });
        Arc::clone(queue)
    }

    /// Whether the topic has queues.
    pub(super) fn has_topic(&self, topic: &str) -> bool {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.contains_key(topic) || self.batches.topics().iter().any(|name| name == topic)
    }

    /// How many topics have names that begin so.
    pub(super) fn count_topics(&self, prefix: &str) -> usize {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table
            .keys()
            .filter(|topic| topic.starts_with(prefix))
            .count()
    }

    /// All queues.
    pub(super) fn all(&self) -> Vec<Arc<ConsumeQueue>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.values().flat_map(HashMap::values).cloned().collect()
    }

    /// Offset behind the newest record that any sound queue knows; -1 if no simple queue has entries.
    pub(super) fn highest_end(&self) -> i64 {
        let simple = self.all();
        let sound = simple
            .iter()
            .filter(|queue| !queue.damaged.load(Ordering::Acquire));
        let simple = sound.map(|queue| queue.highest_end()).max().unwrap_or(-1);
        let batches = self.batches.all();
        let batches = batches.iter().map(|queue| queue.highest_end()).max();
        if simple < 0 {
            // Batch queues alone are what a removed `consumequeue` leaves: their word does not count then.
            return simple;
        }
        simple.max(batches.unwrap_or(-1))
    }

    /// Puts an entry into a queue and remembers that the queue is to be written.
    pub(super) fn append(
        &self,
        queue: &Arc<ConsumeQueue>,
        entry: Entry,
        n: i64,
    ) -> Result<(), StoreError> {
        if !queue.append(entry, n)? {
            return Ok(());
        }
        if !queue.listed.swap(true, Ordering::AcqRel) {
            self.dirty
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Arc::clone(queue));
        }
        if self.pending.fetch_add(1, Ordering::Relaxed) + 1 >= OVERCROWDED {
            self.write()?;
        }
        Ok(())
    }

    /// Whether so many entries wait that they should be written soon.
    pub(super) fn is_crowded(&self) -> bool {
        self.pending.load(Ordering::Relaxed) >= CROWDED
    }

    /// Writes the entries that gathered in memory.
    pub(super) fn write(&self) -> Result<(), StoreError> {
        let dirty = self
            .dirty
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        self.pending.store(0, Ordering::Relaxed);
        dirty.iter().try_for_each(|queue| queue.write())
    }

    /// Writes all entries, and everything written to the disk.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.batches.sync()?;
        let dirty = std::mem::take(&mut *self.dirty.lock().unwrap_or_else(PoisonError::into_inner));
        self.pending.store(0, Ordering::Relaxed);
        // Cleared first: an entry that comes meanwhile lists its queue again.
        for queue in &dirty {
            queue.listed.store(false, Ordering::Release);
        }
        let synced = dirty
            .iter()
            .try_for_each(|queue| queue.write())
            .and_then(|()| self.sync_written(&dirty));
        if synced.is_err() {
            let mut list = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
            list.extend(
                dirty
                    .into_iter()
                    .filter(|queue| !queue.listed.swap(true, Ordering::AcqRel)),
            );
        }
        synced
    }

    fn sync_written(&self, dirty: &[Arc<ConsumeQueue>]) -> Result<(), StoreError> {
        if dirty.len() <= SYNC_SINGLY {
            dirty.iter().try_for_each(|queue| queue.sync())?;
            return self.files.sync_names(&self.dir);
        }
        self.files.names_are_synced();
        let unsynced: Vec<_> = dirty.iter().map(|queue| queue.take_unsynced()).collect();
        let synced = fs::File::open(&self.dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?));
        synced.map_err(|source| {
            dirty
                .iter()
                .zip(unsynced)
                .for_each(|(queue, files)| queue.put_unsynced(files));
            StoreError::io("flush", &self.dir, 0, source)
        })
    }

    /// Deletes all queues of a topic, on disk too. Their records stay in the commit log.
    pub(super) fn delete_topic(&self, topic: &str) -> Result<(), StoreError> {
        let removed = self
            .table
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(topic);
        for queue in removed.iter().flat_map(HashMap::values) {
            queue.delete()?;
        }
        self.batches.delete_topic(topic)?;
        if removed.is_some() {
            remove_folder(&self.dir.join(topic))
        } else {
            Ok(())
        }
    }

    /// Removes one queue, on disk too.
    pub(super) fn remove(&self, queue: &ConsumeQueue) -> Result<(), StoreError> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let ids = table.get_mut(queue.topic());
        let last = ids.is_some_and(|ids| {
            ids.remove(&queue.id());
            ids.is_empty()
        });
        if last {
            table.remove(queue.topic());
        }
        drop(table);
        queue.delete()?;
        if last {
            remove_folder(&self.dir.join(queue.topic()))
        } else {
            Ok(())
        }
    }

    /// Puts a damaged queue's folder aside; the next [`Queues::find_or_create`] makes an empty one. Until
    /// [`Queues::forget_aside`] the folder tells a later start that the queue is not complete.
    pub(super) fn put_aside(&self, queue: &ConsumeQueue) -> Result<(), StoreError> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(ids) = table.get_mut(queue.topic()) {
            ids.remove(&queue.id());
        }
        drop(table);
        let aside = self.aside(queue.topic(), queue.id());
        queue.retire(|dir| {
            if aside.exists() {
                return remove_folder(dir);
            }
            fs::rename(dir, &aside)
                .and_then(|()| aside.parent().map_or(Ok(()), sync_folder))
                .map_err(|source| StoreError::io("rename", dir, 0, source))
        })
    }

    /// Deletes what [`Queues::put_aside`] kept: the queue is complete and on disk.
    pub(super) fn forget_aside(&self, topic: &str, id: i32) -> Result<(), StoreError> {
        remove_folder(&self.aside(topic, id))
    }

    fn aside(&self, topic: &str, id: i32) -> PathBuf {
        self.dir.join(topic).join(format!("{id}{ASIDE}"))
    }

    /// Deletes all queues: the commit log is empty.
    pub(super) fn delete_all(&self) -> Result<(), StoreError> {
        let topics: Vec<_> = self.topics();
        topics.iter().try_for_each(|topic| self.delete_topic(topic))
    }

    /// The topics that have queues.
    pub(super) fn topics(&self) -> Vec<String> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let mut topics = self.batches.topics();
        topics.extend(table.keys().map(ToString::to_string));
        topics.sort_unstable();
        topics.dedup();
        topics
    }
}

/// The sub-folders of `dir` with names in UTF-8; none if it is missing.
pub(super) fn folders(dir: &Path) -> Result<Vec<(String, PathBuf)>, StoreError> {
    let failed = |source| StoreError::io("list", dir, 0, source);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let is_folder = entry.file_type().map_err(failed)?.is_dir();
        found.extend(
            entry
                .file_name()
                .into_string()
                .ok()
                .filter(|_| is_folder)
                .map(|name| (name, entry.path())),
        );
    }
    found.sort_unstable();
    Ok(found)
}
