//! The files of all consume queues, opened on demand: there may be tens of thousands, so only the recently used ones
//! are held open. Written and read by position, never mapped.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use super::error::StoreError;
use super::json_file::sync_folder;
use super::mapped_file::file_name;
use super::space::Space;

/// Tells queues apart in the cache; a queue made anew after its topic was deleted has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct QueueSerial(pub(super) u64);

/// The open files.
#[derive(Debug)]
pub(super) struct QueueFiles {
    open: Mutex<LruCache<(QueueSerial, i64), Arc<File>>>,
    file_size: u32,
    space: Space,
    /// Folders in which files were made whose names may not be on disk yet.
    created: Mutex<Vec<PathBuf>>,
}

impl QueueFiles {
    /// Holds at most `limit` files open; each has `file_size` bytes.
    pub(super) fn new(limit: usize, file_size: u32, space: Space) -> Self {
        let limit = NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN);
        Self {
            open: Mutex::new(LruCache::new(limit)),
            file_size,
            space,
            created: Mutex::default(),
        }
    }

    /// Size of every file in bytes, a multiple of 20.
    pub(super) fn file_size(&self) -> i64 {
        i64::from(self.file_size)
    }

    fn open(&self) -> MutexGuard<'_, LruCache<(QueueSerial, i64), Arc<File>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes `bytes` at `at` of the queue's file that begins with byte `file`; creates it if need be.
    pub(super) fn write(
        &self,
        queue: QueueSerial,
        dir: &Path,
        file: i64,
        at: u64,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let path = || dir.join(file_name(file));
        let write = |handle: Arc<File>| {
            self.space.claim()?;
            handle.write_all_at(bytes, at)
        };
        let handle = match self.cached(queue, file) {
            Some(handle) => handle,
            None => self.create(queue, dir, file)?,
        };
        write(handle).map_err(|source| StoreError::io("write", &path(), bytes.len(), source))
    }

    /// Fills `into` from `at` of a file; `false` if the file does not exist.
    pub(super) fn read(
        &self,
        queue: QueueSerial,
        dir: &Path,
        file: i64,
        at: u64,
        into: &mut [u8],
    ) -> Result<bool, StoreError> {
        let path = dir.join(file_name(file));
        let failed = |source| StoreError::io("read", &path, 0, source);
        let handle = match self.cached(queue, file) {
            Some(handle) => handle,
            None => match OpenOptions::new().read(true).write(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                opened => self.remember(queue, file, opened.map_err(failed)?),
            },
        };
        handle.read_exact_at(into, at).map_err(failed)?;
        Ok(true)
    }

    /// Writes a file's data to the disk.
    pub(super) fn sync(&self, queue: QueueSerial, dir: &Path, file: i64) -> Result<(), StoreError> {
        let path = dir.join(file_name(file));
        let failed = |source| StoreError::io("flush", &path, 0, source);
        let handle = match self.cached(queue, file) {
            Some(handle) => handle,
            None => match OpenOptions::new().read(true).write(true).open(&path) {
                // Deleted with its topic meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                opened => Arc::new(opened.map_err(failed)?),
            },
        };
        handle.sync_data().map_err(failed)
    }

    /// Makes the names of new files durable, and those of the folders they lie in up to `root`.
    pub(super) fn sync_names(&self, root: &Path) -> Result<(), StoreError> {
        let created = std::mem::take(&mut *self.created());
        let folders: BTreeSet<_> = created
            .iter()
            .flat_map(|dir| dir.ancestors().take(3))
            .collect();
        let mut folders = folders.into_iter().filter(|dir| dir.starts_with(root));
        let synced = folders.try_for_each(|dir| match sync_folder(dir) {
            // Deleted with its topic meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|source| StoreError::io("sync", dir, 0, source)),
        });
        if synced.is_err() {
            self.created().extend_from_slice(&created);
        }
        synced
    }

    fn created(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what [`QueueFiles::sync_names`] would do: the whole volume was synced.
    pub(super) fn names_are_synced(&self) {
        self.created().clear();
    }

    /// Removes a file.
    pub(super) fn remove(
        &self,
        queue: QueueSerial,
        dir: &Path,
        file: i64,
    ) -> Result<(), StoreError> {
        self.open().pop(&(queue, file));
        let path = dir.join(file_name(file));
        match fs::remove_file(&path) {
            // Gone already: somebody else's damage, or a removal cut short.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|source| StoreError::io("remove", &path, 0, source)),
        }
    }

    /// Forgets the open files of a queue that is deleted.
    pub(super) fn forget(&self, queue: QueueSerial) {
        let mut open = self.open();
        let gone: Vec<_> = open
            .iter()
            .map(|(key, _)| *key)
            .filter(|(serial, _)| *serial == queue)
            .collect();
        for key in gone {
            open.pop(&key);
        }
    }

    fn cached(&self, queue: QueueSerial, file: i64) -> Option<Arc<File>> {
        self.open().get(&(queue, file)).cloned()
    }

    fn remember(&self, queue: QueueSerial, file: i64, handle: File) -> Arc<File> {
        let handle = Arc::new(handle);
        self.open().put((queue, file), Arc::clone(&handle));
        handle
    }

    fn create(&self, queue: QueueSerial, dir: &Path, file: i64) -> Result<Arc<File>, StoreError> {
        let path = dir.join(file_name(file));
        let failed = |source| StoreError::io("create", &path, 0, source);
        self.space.claim().map_err(failed)?;
        let open = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
        };
        let handle = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(dir).and_then(|()| open())
            }
            opened => opened,
        };
        let handle = handle.map_err(failed)?;
        handle.set_len(u64::from(self.file_size)).map_err(failed)?;
        self.created().push(dir.to_owned());
        Ok(self.remember(queue, file, handle))
    }
}

/// The data files of a folder of queue files, all of which have `size` bytes: the first byte of each, ascending. An empty
/// last one, left by a crash at its creation, is deleted.
///
/// # Errors
/// [`StoreError::FileLength`] for a file of another size.
pub(super) fn checked_files(dir: &Path, size: i64) -> Result<Vec<i64>, StoreError> {
    let files = data_files(dir)?;
    let newest = files.last().map(|(base, _)| *base);
    let mut found = Vec::with_capacity(files.len());
    for (base, path) in files {
        let failed = |action| {
            let path = path.clone();
            move |source| StoreError::io(action, &path, 0, source)
        };
        let length = fs::metadata(&path).map_err(failed("read"))?.len();
        if length == 0 && newest == Some(base) {
            fs::remove_file(&path).map_err(failed("remove"))?;
        } else if i64::try_from(length) == Ok(size) {
            found.push(base);
        } else {
            return Err(StoreError::FileLength {
                path,
                found: length,
                expected: u64::try_from(size).unwrap_or(0),
            });
        }
    }
    Ok(found)
}

/// The data files of a folder: offset of the first byte and path, ascending. Names that are no offset are ignored.
pub(super) fn data_files(dir: &Path) -> Result<Vec<(i64, PathBuf)>, StoreError> {
    let failed = |source| StoreError::io("list", dir, 0, source);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let base = name
            .to_str()
            .filter(|name| name.len() == 20)
            .and_then(|name| name.parse::<i64>().ok());
        files.extend(
            base.filter(|base| *base >= 0)
                .map(|base| (base, entry.path())),
        );
    }
    files.sort_unstable();
    Ok(files)
}
