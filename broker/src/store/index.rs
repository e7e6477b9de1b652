//! The index: which records carry a key (`UNIQ_KEY`, or a word of `KEYS`). Derived from the commit log.
//!
//! ```text
//! dispatch ──put──▶ newest file ──full──▶ next file      query ──find──▶ files, newest first ──▶ physical offsets
//! ```
//! Hashes may collide: the caller compares the keys themselves.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bindery_protocol::message::{RecordView, Transaction, property};
use bindery_remoting::Clock;
use chrono::{DateTime, Local};
use tracing::warn;

use super::error::StoreError;
use super::index_file::{IndexFile, Shape, TimeRange};
use super::space::Space;

/// All index files.
#[derive(Debug)]
pub(super) struct Index {
    dir: PathBuf,
    shape: Shape,
    space: Space,
    clock: Clock,
    /// Oldest first.
    files: RwLock<Vec<Arc<RwLock<IndexFile>>>>,
    /// Full files that are not yet on disk.
    full: Mutex<Vec<Arc<RwLock<IndexFile>>>>,
}

/// What [`Index::find`] gives back.
#[derive(Debug, Default)]
pub(super) struct Hits {
    /// Physical offsets, newest first.
    pub(super) offsets: Vec<i64>,
    /// Store time of the newest record in the index.
    pub(super) last_update_timestamp: i64,
    /// Physical offset of the newest record in the index.
    pub(super) last_update_offset: i64,
}

/// Index files that an unclean stop left and that are not used. They stay on disk until their range is indexed again, so
/// that another crash meanwhile does not forget it.
#[derive(Debug, Default)]
pub(super) struct Distrusted {
    /// Path, and physical offset of the oldest record.
    paths: Vec<(PathBuf, i64)>,
}

impl Distrusted {
    /// Offset of the oldest record in the files; `None` if there are none.
    pub(super) fn begin(&self) -> Option<i64> {
        self.paths.iter().map(|(_, begin)| *begin).min()
    }

    /// Deletes the files.
    pub(super) fn remove(self) -> Result<(), StoreError> {
        self.paths.into_iter().try_for_each(|(path, _)| {
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, 0, source))
        })
    }
}

impl Index {
    /// Opens the files below `dir` (`ROOT/index`). Those with an end time above `trusted` are left out: after an unclean
    /// stop they may be damaged, and are to be built again.
    pub(super) fn load(
        dir: PathBuf,
        shape: Shape,
        trusted: Option<i64>,
        space: Space,
        clock: Clock,
    ) -> Result<(Self, Distrusted), StoreError> {
        let mut files = Vec::new();
        let mut distrusted = Distrusted::default();
        for path in index_paths(&dir)? {
            let length = fs::metadata(&path)
                .map_err(|source| StoreError::io("read", &path, 0, source))?
                .len();
            if length == 0 {
                // Left by a process that was killed while it made the file.
                fs::remove_file(&path)
                    .map_err(|source| StoreError::io("remove", &path, 0, source))?;
                continue;
            }
            let Some(file) = IndexFile::open(&path, shape, &space)? else {
                warn!(path = %path.display(), "index file of another size is left alone");
                continue;
            };
            if trusted.is_some_and(|trusted| file.end_time() > trusted) {
                distrusted.paths.push((path, file.begin_offset()));
            } else {
                files.push(Arc::new(RwLock::new(file)));
            }
        }
        let index = Self {
            dir,
            shape,
            space,
            clock,
            files: RwLock::new(files),
            full: Mutex::default(),
        };
        Ok((index, distrusted))
    }

    /// Adds the keys of a record; one that is indexed already is skipped.
    ///
    /// # Errors
    /// No room for the keys; some may have been added, and are skipped when the record comes again.
    pub(super) fn put(&self, record: &RecordView<'_>) -> Result<(), StoreError> {
        if record.sys_flag().transaction() == Transaction::Rollback {
            return Ok(());
        }
        let (physical, timestamp) = (record.physical_offset().0, record.store_timestamp());
        let newest = self.newest();
        if newest.is_some_and(|file| physical < read(&file).end_offset()) {
            return Ok(());
        }
        let topic = hash_on(0, record.topic());
        let topic = hash_on(topic, b"#");
        let unique = record.property(property::UNIQ_KEY);
        let words = record.property(property::KEYS).unwrap_or_default();
        let words = words
            .split(|byte| *byte == b' ')
            .filter(|word| !word.is_empty());
        for key in unique.into_iter().chain(words) {
            self.put_hash(index_hash(hash_on(topic, key)), physical, timestamp)?;
        }
        Ok(())
    }

    fn put_hash(&self, hash: i32, physical: i64, timestamp: i64) -> Result<(), StoreError> {
        if let Some(file) = self.newest()
            && write(&file).put(hash, physical, timestamp)?
        {
            return Ok(());
        }
        let file = self.add_file()?;
        // A new file has room for one item at least.
        write(&file).put(hash, physical, timestamp).map(drop)
    }

    fn newest(&self) -> Option<Arc<RwLock<IndexFile>>> {
        self.files
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .last()
            .cloned()
    }

    fn add_file(&self) -> Result<Arc<RwLock<IndexFile>>, StoreError> {
        fs::create_dir_all(&self.dir)
            .map_err(|source| StoreError::io("create", &self.dir, 0, source))?;
        let before = self.newest();
        let path = self.free_name();
        let file = {
            let before = before.as_ref().map(|file| read(file));
            IndexFile::create(path, self.shape, before.as_deref(), &self.space)?
        };
        self.full
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(before);
        let file = Arc::new(RwLock::new(file));
        self.files
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&file));
        Ok(file)
    }

    /// The present local time as 17 digits, moved on by milliseconds past names that exist.
    fn free_name(&self) -> PathBuf {
        let mut millis = self.clock.now_millis();
        loop {
            let time = DateTime::from_timestamp_millis(millis)
                .unwrap_or_default()
                .with_timezone(&Local);
            let path = self.dir.join(time.format("%Y%m%d%H%M%S%3f").to_string());
            let newest = self
                .newest()
                .is_some_and(|file| read(&file).path() >= path.as_path());
            if !newest && !path.exists() {
                return path;
            }
            millis += 1;
        }
    }

    /// Records that may carry `key`, newest first, at most `max`.
    pub(super) fn find(&self, topic: &str, key: &str, range: TimeRange, max: usize) -> Hits {
        let hash = index_hash(hash_on(
            hash_on(hash_on(0, topic.as_bytes()), b"#"),
            key.as_bytes(),
        ));
        let files = self
            .files
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut hits = Hits::default();
        if let Some(newest) = files.last() {
            let newest = read(newest);
            hits.last_update_timestamp = newest.end_time();
            hits.last_update_offset = newest.end_offset();
        }
        for file in files.iter().rev() {
            let file = read(file);
            if file.overlaps(range) {
                file.find(hash, range, max, &mut hits.offsets);
            }
            if file.begin_time() < range.begin || hits.offsets.len() >= max {
                break;
            }
        }
        hits
    }

    /// Deletes the files that name records at or behind `end`, where recovery cut the log. Gives back the offset from
    /// which on records are to be put again.
    pub(super) fn drop_from(&self, end: i64) -> Result<Option<i64>, StoreError> {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        let mut again = None;
        while let Some(file) = files.pop_if(|file| read(file).end_offset() >= end) {
            let (path, begin) = (read(&file).path().to_owned(), read(&file).begin_offset());
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, 0, source))?;
            again = Some(begin);
        }
        Ok(again)
    }

    /// Deletes the files, but the newest, whose records all lie before `start`, the first byte of the commit log. Gives back
    /// how many.
    pub(super) fn expire(&self, start: i64) -> Result<usize, StoreError> {
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        let mut expired = 0;
        while files.len() > 1 && read(&files[0]).end_offset() < start {
            let path = read(&files[0]).path().to_owned();
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, 0, source))?;
            files.remove(0);
            expired += 1;
        }
        Ok(expired)
    }

    /// Writes files that became full to the disk; gives back the end time of the newest of them.
    pub(super) fn sync_full(&self) -> Result<Option<i64>, StoreError> {
        let full = std::mem::take(&mut *self.full.lock().unwrap_or_else(PoisonError::into_inner));
        for (index, file) in full.iter().enumerate() {
            if let Err(error) = read(file).sync() {
                self.full
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(&full[index..]);
                return Err(error);
            }
        }
        Ok(full.last().map(|file| read(file).end_time()))
    }

    /// Writes everything to the disk; part of a clean stop. Gives back the end time of the newest full file written.
    pub(super) fn sync(&self) -> Result<Option<i64>, StoreError> {
        if let Some(newest) = self.newest() {
            let newest = read(&newest);
            newest.sync()?;
            if newest.is_full() {
                self.sync_full()?;
                return Ok(Some(newest.end_time()));
            }
        }
        self.sync_full()
    }

    /// Deletes all files: the commit log is empty.
    pub(super) fn delete_all(&self) -> Result<(), StoreError> {
        let files =
            std::mem::take(&mut *self.files.write().unwrap_or_else(PoisonError::into_inner));
        for file in files {
            let path = read(&file).path().to_owned();
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, 0, source))?;
        }
        Ok(())
    }
}

fn read(file: &RwLock<IndexFile>) -> std::sync::RwLockReadGuard<'_, IndexFile> {
    file.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(file: &RwLock<IndexFile>) -> std::sync::RwLockWriteGuard<'_, IndexFile> {
    file.write().unwrap_or_else(PoisonError::into_inner)
}

/// The index files of a folder, oldest first; other names are ignored.
fn index_paths(dir: &std::path::Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = |source| StoreError::io("list", dir, 0, source);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let digits =
            |name: &str| name.len() == 17 && name.bytes().all(|byte| byte.is_ascii_digit());
        paths.extend(name.to_str().is_some_and(digits).then(|| entry.path()));
    }
    paths.sort_unstable();
    Ok(paths)
}

/// Goes on with Java's string hash over UTF-8 text.
fn hash_on(hash: i32, text: &[u8]) -> i32 {
    let step = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    if text.is_ascii() {
        return text
            .iter()
            .fold(hash, |hash, byte| step(hash, u16::from(*byte)));
    }
    String::from_utf8_lossy(text)
        .encode_utf16()
        .fold(hash, step)
}

/// The hash an index item holds: the absolute value, 0 for the one number that has none.
fn index_hash(hash: i32) -> i32 {
    hash.checked_abs().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use bindery_protocol::message::tag;

    use super::*;

    #[test]
    fn hashes_are_javas() {
        for text in ["GoldNormal#K0", "订单#键"] {
            assert_eq!(hash_on(0, text.as_bytes()), tag::java_hash(text));
        }
        assert_eq!(index_hash(i32::MIN), 0);
        assert_eq!(index_hash(-5), 5);
    }
}
