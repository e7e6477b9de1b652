//! The timer log: units in the order in which their messages were read, in files of one size, written by position.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bindery_protocol::message::PhysicalOffset;

use super::unit::{self, BLANK, Place, Unit};
use crate::store::error::StoreError;
use crate::store::json_file::sync_folder;
use crate::store::mapped_file::file_name;
use crate::store::queue_files::data_files;
use crate::store::space::Space;

const UNIT: i64 = 52;
/// Kept free behind the last unit of a file, for the mark that says so.
const BLANK_SIZE: i64 = 16;
/// Bytes read at a time while units are looked through: a whole number of units.
const STEP: usize = unit::SIZE * 1024;

/// See the module.
#[derive(Debug)]
pub struct TimerLog {
    dir: PathBuf,
    file_size: i64,
    files: VecDeque<LogFile>,
    /// Where the next unit goes.
    end: i64,
    space: Space,
}

#[derive(Debug)]
struct LogFile {
    base: i64,
    file: Arc<File>,
}

impl TimerLog {
    /// Opens the files of `dir`, each of `file_size` bytes. The log's end is unknown until recovery.
    ///
    /// # Errors
    /// [`StoreError::FileLength`] when files have another size, [`StoreError::Gap`], [`StoreError::Io`].
    pub fn open(dir: PathBuf, file_size: u32, space: Space) -> Result<Self, StoreError> {
        let file_size = i64::from(file_size);
        if file_size < UNIT + BLANK_SIZE || file_size > i64::from(i32::MAX) {
            let key = "mappedFileSizeTimerLog";
            return Err(StoreError::Setting {
                key,
                value: file_size,
            });
        }
        let mut files: VecDeque<LogFile> = VecDeque::new();
        let found = data_files(&dir)?;
        let count = found.len();
        for (index, (base, path)) in found.into_iter().enumerate() {
            let failed = |source| StoreError::io("open", &path, 0, source);
            let file = OpenOptions::new().read(true).write(true).open(&path);
            let file = file.map_err(failed)?;
            let length = file.metadata().map_err(failed)?.len();
            if length == 0 && index + 1 == count {
                fs::remove_file(&path).map_err(failed)?;
                continue;
            }
            let expected = file_size.unsigned_abs();
            if length != expected {
                return Err(StoreError::FileLength {
                    path,
                    found: length,
                    expected,
                });
            }
            if files
                .back()
                .is_some_and(|last| last.base.checked_add(file_size) != Some(base))
            {
                return Err(StoreError::Gap { path });
            }
            let file = Arc::new(file);
            files.push_back(LogFile { base, file });
        }
        let end = files.back().map_or(0, |last| last.base + file_size);
        Ok(Self {
            dir,
            file_size,
            files,
            end,
            space,
        })
    }

    /// Position of the oldest unit.
    #[must_use]
    pub fn start(&self) -> i64 {
        self.files.front().map_or(self.end, |first| first.base)
    }

    /// Where the next unit goes.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Size of each file in bytes.
    #[must_use]
    pub fn file_size(&self) -> i64 {
        self.file_size
    }

    /// How many files there are.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    fn path(&self, base: i64) -> PathBuf {
        self.dir.join(file_name(base))
    }

    fn file_at(&self, position: i64) -> Option<&LogFile> {
        let first = self.files.front()?.base;
        let index = position.checked_sub(first)?.checked_div(self.file_size)?;
        self.files.get(usize::try_from(index).ok()?)
    }

    /// Appends a unit; gives back its position.
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::Io`]; the log is as before then.
    pub fn append(&mut self, unit: &Unit) -> Result<i64, StoreError> {
        let free = self
            .files
            .back()
            .map_or(0, |last| last.base + self.file_size - self.end);
        if free > 0 && free < UNIT + BLANK_SIZE {
            let mut blank = [0; 16];
            blank[..4].copy_from_slice(&i32::try_from(free).unwrap_or(0).to_be_bytes());
            blank[12..].copy_from_slice(&BLANK.to_be_bytes());
            self.write(self.end, &blank)?;
            self.end += free;
            self.create()?;
        } else if free == 0 {
            self.create()?;
        }
        let position = self.end;
        self.write(position, &unit.encode())?;
        self.end += UNIT;
        Ok(position)
    }

    fn create(&mut self) -> Result<(), StoreError> {
        let base = self.end;
        if self.file_at(base).is_some() {
            return Ok(());
        }
        let path = self.path(base);
        let made = fs::create_dir_all(&self.dir).and_then(|()| self.space.claim());
        let file = made.and_then(|()| {
            let mut options = OpenOptions::new();
            let file = options
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)?;
            file.set_len(self.file_size.unsigned_abs())?;
            Ok(file)
        });
        let file = Arc::new(file.map_err(|source| StoreError::io("create", &path, 0, source))?);
        self.files.push_back(LogFile { base, file });
        Ok(())
    }

    fn write(&self, position: i64, bytes: &[u8]) -> Result<(), StoreError> {
        let Some(file) = self.file_at(position) else {
            return Ok(());
        };
        let at = (position - file.base).unsigned_abs();
        let written = self
            .space
            .claim()
            .and_then(|()| file.file.write_all_at(bytes, at));
        written
            .map_err(|source| StoreError::io("write", &self.path(file.base), bytes.len(), source))
    }

    /// The unit at a position; none if there is no unit.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn unit(&self, position: i64) -> Result<Option<Unit>, StoreError> {
        if position < self.start() || position > self.end - UNIT {
            return Ok(None);
        }
        let Some(file) = self.file_at(position) else {
            return Ok(None);
        };
        if position > file.base + self.file_size - UNIT {
            return Ok(None);
        }
        let mut bytes = [0; unit::SIZE];
        let at = (position - file.base).unsigned_abs();
        file.file
            .read_exact_at(&mut bytes, at)
            .map_err(|source| StoreError::io("read", &self.path(file.base), 0, source))?;
        Ok(match Unit::decode(&bytes) {
            Place::Unit(unit) => Some(unit),
            Place::Blank | Place::Nothing => None,
        })
    }

    /// Shows every unit from the file that holds `from` on, up to the log's end or the first place that holds none; gives
    /// back where that is.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn scan(&self, from: i64, mut show: impl FnMut(i64, Unit)) -> Result<i64, StoreError> {
        let mut reached = self.start();
        let mut buffer = vec![0; STEP];
        for file in &self.files {
            if file.base + self.file_size <= from {
                reached = file.base + self.file_size;
                continue;
            }
            let failed = |source| StoreError::io("read", &self.path(file.base), 0, source);
            let (stop, at) = scan_file(file, self.end, self.file_size, &mut buffer, &mut show)
                .map_err(failed)?;
            reached = at;
            if stop == Stop::Here {
                return Ok(reached);
            }
        }
        Ok(reached)
    }

    /// Ends the log at `end`, where [`TimerLog::scan`] stopped. What lies behind is erased, so that no later scan takes
    /// it for units.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn cut(&mut self, end: i64) -> Result<(), StoreError> {
        while let Some(last) = self.files.back()
            && last.base >= end
            && last.base > self.start()
        {
            let path = self.path(last.base);
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, 0, source))?;
            self.files.pop_back();
        }
        if let Some(last) = self.files.back() {
            let (kept, size) = (
                (end - last.base).unsigned_abs(),
                self.file_size.unsigned_abs(),
            );
            // Shrinking and growing leaves zeros, and no blocks on the volume.
            let erased = last
                .file
                .set_len(kept)
                .and_then(|()| last.file.set_len(size));
            erased.map_err(|source| StoreError::io("cut", &self.path(last.base), 0, source))?;
        }
        self.end = end;
        Ok(())
    }

    /// Removes files from the front, never the last, whose last message lies before `oldest` in the commit log.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn drop_expired(&mut self, oldest: PhysicalOffset) -> Result<usize, StoreError> {
        let mut dropped = 0;
        while self.files.len() > 1
            && let Some(first) = self.files.front()
        {
            let size = self.file_size;
            let last = first.base + size - (size - BLANK_SIZE) % UNIT - BLANK_SIZE - UNIT;
            match self.unit(last)? {
                Some(unit) if unit.physical < oldest => {}
                _ => break,
            }
            let path = self.path(first.base);
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, 0, source))?;
            self.files.pop_front();
            dropped += 1;
        }
        Ok(dropped)
    }

    /// The files that hold units from `from` on, to be written to the disk by [`sync`].
    #[must_use]
    pub fn unsynced(&self, from: i64) -> Vec<Arc<File>> {
        let size = self.file_size;
        let files = self
            .files
            .iter()
            .filter(|file| file.base + size > from && file.base < self.end);
        files.map(|file| file.file.clone()).collect()
    }

    /// The folder of the files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Writes files to the disk, and their names.
///
/// # Errors
/// [`StoreError::Io`]
pub fn sync(dir: &Path, files: &[Arc<File>]) -> Result<(), StoreError> {
    let synced = files.iter().try_for_each(|file| file.sync_data());
    let synced = synced.and_then(|()| {
        if files.is_empty() {
            Ok(())
        } else {
            sync_folder(dir)
        }
    });
    synced.map_err(|source| StoreError::io("sync", dir, 0, source))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Here,
    NextFile,
}

fn scan_file(
    file: &LogFile,
    end: i64,
    size: i64,
    buffer: &mut [u8],
    show: &mut impl FnMut(i64, Unit),
) -> io::Result<(Stop, i64)> {
    let behind = (file.base + size).min(end);
    let mut position = file.base;
    while position + UNIT <= behind {
        let wanted =
            usize::try_from(behind - position).unwrap_or(STEP).min(STEP) / unit::SIZE * unit::SIZE;
        let part = &mut buffer[..wanted];
        file.file
            .read_exact_at(part, (position - file.base).unsigned_abs())?;
        let (units, _) = part.as_chunks::<{ unit::SIZE }>();
        for bytes in units {
            match Unit::decode(bytes) {
                Place::Unit(unit) => show(position, unit),
                Place::Blank => return Ok((Stop::NextFile, file.base + size)),
                Place::Nothing => return Ok((Stop::Here, position)),
            }
            position += UNIT;
        }
    }
    // A blank may begin where no whole unit would fit.
    let mut rest = [0; 16];
    if position + BLANK_SIZE <= behind {
        file.file
            .read_exact_at(&mut rest, (position - file.base).unsigned_abs())?;
        if rest[12..] == BLANK.to_be_bytes() {
            return Ok((Stop::NextFile, file.base + size));
        }
    }
    Ok((Stop::Here, position))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::super::unit::Kind;
    use super::*;

    fn unit(number: i32) -> Unit {
        Unit {
            previous: -1,
            kind: Kind::new(false, false),
            written: 1000,
            delay: number,
            physical: PhysicalOffset(i64::from(number) * 100),
            size: 100,
            topic_hash: 7,
        }
    }

    fn open(dir: &Path, size: u32) -> TimerLog {
        TimerLog::open(dir.join("timerlog"), size, Space::default()).unwrap()
    }

    fn recovered(dir: &Path, size: u32) -> (TimerLog, Vec<i32>) {
        let mut log = open(dir, size);
        let mut seen = Vec::new();
        let end = log.scan(0, |_, unit| seen.push(unit.delay)).unwrap();
        log.cut(end).unwrap();
        (log, seen)
    }

    #[test]
    fn units_are_found_again_over_files_of_every_size() {
        for size in [68, 69, 100, 119, 120, 121, 172, 200] {
            let folder = tempfile::tempdir().unwrap();
            let mut log = open(folder.path(), size);
            let mut positions = Vec::new();
            for number in 0..7 {
                positions.push(log.append(&unit(number)).unwrap());
                let (again, seen) = recovered(folder.path(), size);
                assert_eq!(seen, (0..=number).collect::<Vec<_>>(), "size {size}");
                // Whether the blank is there or not, the next unit lands at the same place.
                let free = again.files.back().unwrap().base + again.file_size - again.end;
                assert!(again.end == log.end || free == 0, "size {size}");
            }
            for (number, position) in (0..).zip(positions) {
                assert_eq!(log.unit(position).unwrap(), Some(unit(number)));
            }
            assert_eq!(log.unit(-1).unwrap(), None);
            assert_eq!(log.unit(log.end()).unwrap(), None);
        }
    }

    #[test]
    fn a_damaged_unit_ends_the_log_and_what_lay_behind_never_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 1000);
        let positions: Vec<_> = (0..40)
            .map(|number| log.append(&unit(number)).unwrap())
            .collect();
        let broken = positions[20];
        log.write(broken, &[0; 16]).unwrap();
        let (mut log, seen) = recovered(folder.path(), 1000);
        assert_eq!((seen.len(), log.end()), (20, broken));
        log.append(&unit(99)).unwrap();
        let (_, seen) = recovered(folder.path(), 1000);
        assert_eq!(seen.last(), Some(&99));
        assert_eq!(seen.len(), 21);
    }

    #[test]
    fn files_are_dropped_when_their_last_message_left_the_commit_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 120);
        for number in 0..5 {
            log.append(&unit(number)).unwrap();
        }
        assert_eq!(log.files(), 3);
        assert_eq!(log.drop_expired(PhysicalOffset(100)).unwrap(), 0);
        assert_eq!(log.drop_expired(PhysicalOffset(101)).unwrap(), 1);
        assert_eq!(log.drop_expired(PhysicalOffset(9999)).unwrap(), 1);
        let (log, seen) = recovered(folder.path(), 120);
        assert_eq!((seen, log.start()), (vec![4], 240));
    }

    #[test]
    fn a_full_volume_leaves_the_log_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::switchable();
        let mut log = TimerLog::open(folder.path().join("timerlog"), 120, space.clone()).unwrap();
        log.append(&unit(1)).unwrap();
        space.set_full(true);
        assert!(matches!(log.append(&unit(2)), Err(StoreError::Full { .. })));
        space.set_full(false);
        log.append(&unit(2)).unwrap();
        assert_eq!(recovered(folder.path(), 120).1, [1, 2]);
    }
}
