//! Tables of named configurations (topics, consumer groups) that survive a kill.
//!
//! ```text
//! put / remove ─▶ one line appended to NAME.json.journal ─▶ map ─▶ changed ─▶ persist: the whole NAME.json, behind it
//! open: NAME.json, then the journal's lines over it
//! ```
//! Rewriting a file of 10,000 topics for each new topic would make creating them quadratic, so a change costs one line;
//! the file is rewritten behind it, several changes at a time, and the lines it covers are dropped. Apache's broker
//! reads the file alone: a clean stop leaves no journal.
mod journal;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bindery_protocol::bodies::DataVersion;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Notify;

use self::journal::{Change, Journal};
use crate::store::{JsonFile, StoreError};

/// What a [`ConfigTable`] holds, and the shape of its file.
pub(crate) trait Entry:
    Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The whole file.
    type File: Serialize + DeserializeOwned;
    /// What the file holds besides the entries.
    type Rest: Clone + Default + PartialEq + Send + Sync + 'static;
    /// Name of the file in `config/`.
    const FILE: &'static str;
    /// The key.
    fn name(&self) -> &str;
    /// The file's content.
    fn pack(entries: Vec<Arc<Self>>, rest: Self::Rest, version: DataVersion) -> Self::File;
    /// The table's content.
    fn unpack(file: Self::File) -> (Vec<Self>, Self::Rest, DataVersion);
    /// The entry, read from a file, as it may be used; none when it can't be.
    fn admitted(self) -> Option<Self>;
}

/// Why a table can't be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Neither the file nor its backup can be read.
    #[error("cannot read or write the configuration table {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: StoreError,
    },
    /// The journal of changes can't be read or written.
    #[error("cannot use the journal {}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
}

/// Whether each change waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A change survives the death of the process.
    Process,
    /// A change survives the loss of power.
    Power,
}

/// A table of named configurations with its file and its journal.
pub(crate) struct ConfigTable<T: Entry> {
    state: RwLock<State<T>>,
    file: JsonFile,
    path: PathBuf,
    changed: Notify,
    /// Keeps writers of the file apart, so that an older content never replaces a newer one.
    turn: Mutex<()>,
}

struct State<T: Entry> {
    entries: HashMap<String, Arc<T>>,
    rest: T::Rest,
    version: DataVersion,
    journal: Journal<T>,
}

impl<T: Entry> std::fmt::Debug for ConfigTable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigTable")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl<T: Entry> ConfigTable<T> {
    /// Reads the table of `dir`, which must exist.
    pub(crate) fn open(dir: &Path, durability: Durability) -> Result<Self, TableError> {
        let path = dir.join(T::FILE);
        let file = JsonFile::new(path.clone());
        let loaded: Option<T::File> = file.load().map_err(|source| TableError::File {
            path: path.clone(),
            source,
        })?;
        let (entries, rest, version) = loaded.map(T::unpack).unwrap_or_default();
        let mut entries: HashMap<_, _> = entries
            .into_iter()
            .filter_map(Entry::admitted)
            .map(|entry| (entry.name().to_owned(), Arc::new(entry)))
            .collect();
        let (journal, changes): (Journal<T>, _) = Journal::open(&path, durability)?;
        for change in changes {
            match change {
                Change::Put(entry) => {
                    if let Some(entry) = entry.admitted() {
                        entries.insert(entry.name().to_owned(), Arc::new(entry));
                    }
                }
                Change::Remove(name) => {
                    entries.remove(&name);
                }
            }
        }
        Ok(Self {
            state: RwLock::new(State {
                entries,
                rest,
                version,
                journal,
            }),
            file,
            path,
            changed: Notify::new(),
            turn: Mutex::default(),
        })
    }

    /// The entry of that name.
    pub(crate) fn entry(&self, name: &str) -> Option<Arc<T>> {
        self.read().entries.get(name).cloned()
    }

    /// All entries, in no order.
    pub(crate) fn entries(&self) -> Vec<Arc<T>> {
        self.read().entries.values().cloned().collect()
    }

    /// The version of the table: it rises with every change.
    pub(crate) fn version(&self) -> DataVersion {
        self.read().version
    }

    /// Puts an entry, new or changed; an equal one changes nothing and is not written.
    ///
    /// # Errors
    /// [`TableError::Journal`]; the table is unchanged then.
    pub(crate) fn put(&self, entry: T, now: i64) -> Result<Arc<T>, TableError> {
        let mut state = self.write();
        if let Some(known) = state.entries.get(entry.name())
            && **known == entry
        {
            return Ok(known.clone());
        }
        self.insert(&mut state, entry, now)
    }

    /// The entry of that name, made by `make` when there is none. Two callers at a time get the same one; the flag
    /// says whether this call made it.
    ///
    /// # Errors
    /// [`TableError::Journal`]; the table is unchanged then.
    pub(crate) fn entry_or_make(
        &self,
        name: &str,
        now: i64,
        make: impl FnOnce() -> T,
    ) -> Result<(Arc<T>, bool), TableError> {
        if let Some(known) = self.entry(name) {
            return Ok((known, false));
        }
        let mut state = self.write();
        if let Some(known) = state.entries.get(name) {
            return Ok((known.clone(), false));
        }
        self.insert(&mut state, make(), now)
            .map(|entry| (entry, true))
    }

    fn insert(&self, state: &mut State<T>, entry: T, now: i64) -> Result<Arc<T>, TableError> {
        state.journal.append(&Change::Put(entry.clone()))?;
        let name = entry.name().to_owned();
        let entry = Arc::new(entry);
        state.entries.insert(name, entry.clone());
        next_version(&mut state.version, now);
        self.changed.notify_one();
        Ok(entry)
    }

    /// Removes an entry; `None` when there was none.
    ///
    /// # Errors
    /// [`TableError::Journal`]; the table is unchanged then.
    pub(crate) fn remove(&self, name: &str, now: i64) -> Result<Option<Arc<T>>, TableError> {
        let mut state = self.write();
        if !state.entries.contains_key(name) {
            return Ok(None);
        }
        state.journal.append(&Change::Remove(name.to_owned()))?;
        next_version(&mut state.version, now);
        self.changed.notify_one();
        Ok(state.entries.remove(name))
    }

    /// Runs `act` while nobody can make an entry of that name; not at all when there is one.
    pub(crate) fn while_absent<R>(&self, name: &str, act: impl FnOnce() -> R) -> Option<R> {
        let state = self.read();
        (!state.entries.contains_key(name)).then(act)
    }

    /// Raises the version without a change of the entries.
    pub(crate) fn new_version(&self, now: i64) {
        next_version(&mut self.write().version, now);
        self.changed.notify_one();
    }

    /// Looks at what the file holds besides the entries.
    pub(crate) fn rest<R>(&self, look: impl FnOnce(&T::Rest) -> R) -> R {
        look(&self.read().rest)
    }

    /// Changes what the file holds besides the entries, and writes the file: the journal has no line for it. Blocks on
    /// the disk.
    ///
    /// # Errors
    /// [`TableError`]; the change is in force and is written with the next one.
    pub(crate) fn change_rest(
        &self,
        now: i64,
        change: impl FnOnce(&mut T::Rest),
    ) -> Result<(), TableError> {
        let mut state = self.write();
        let before = state.rest.clone();
        change(&mut state.rest);
        if state.rest == before {
            return Ok(());
        }
        next_version(&mut state.version, now);
        drop(state);
        self.changed.notify_one();
        self.persist()
    }

    /// Waits for a change since the last call returned. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Writes the whole file and drops the journal's lines it covers. Blocks on the disk.
    ///
    /// # Errors
    /// [`TableError`]; nothing is lost then, the journal still holds the changes.
    pub(crate) fn persist(&self) -> Result<(), TableError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let content = {
            let mut state = self.write();
            state.journal.set_aside()?;
            T::pack(
                state.entries.values().cloned().collect(),
                state.rest.clone(),
                state.version,
            )
        };
        self.file
            .persist(&content)
            .map_err(|source| TableError::File {
                path: self.path.clone(),
                source,
            })?;
        // Only what was set aside before the content was taken is covered by the file.
        self.write().journal.drop_aside()
    }

    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `DataVersion.nextVersion` of Apache `RocketMQ`: the time of the change, and a counter.
pub(crate) fn next_version(version: &mut DataVersion, now: i64) {
    version.timestamp = now;
    version.counter += 1;
}

#[cfg(test)]
mod tests;
