//! How far timer messages have come: `config/timercheck`.
//!
//! 4,096 bytes, big endian, of which 56 are used: time up to which slots were delivered, position up to which the timer log
//! is on the disk, next offset of the timer queue as far as the disk knows, the same as far as it was read, and the data
//! version's state version, timestamp and counter. Layout of `TimerCheckpoint` of Apache `RocketMQ` 5.3.3; the 56 bytes are
//! also the answer to `GET_TIMER_CHECK_POINT`.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bindery_protocol::bodies::DataVersion;

use crate::store::error::StoreError;

const SIZE: u64 = 4096;
const USED: usize = 56;

/// The numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// Slots before this time, milliseconds since 1970, are delivered.
    pub read_time: i64,
    /// The timer log is on the disk up to here.
    pub log_synced: i64,
    /// Messages of the timer queue before this offset are in a part of the timer log that is on the disk.
    pub queue_synced: i64,
    /// Messages of the timer queue before this offset are in the timer log.
    pub queue: i64,
    /// Rises whenever read time or queue offset changed.
    pub version: DataVersion,
}

impl Marks {
    /// The seven numbers as they lie in the file and travel to slaves.
    #[must_use]
    pub fn encode(&self) -> [u8; USED] {
        let numbers = [
            self.read_time,
            self.log_synced,
            self.queue_synced,
            self.queue,
            self.version.state_version,
            self.version.timestamp,
            self.version.counter,
        ];
        let mut bytes = [0; USED];
        for (field, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            field.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; USED]) -> Self {
        let (fields, _) = bytes.as_chunks::<8>();
        let number = |at: usize| fields.get(at).map_or(0, |field| i64::from_be_bytes(*field));
        Self {
            read_time: number(0),
            log_synced: number(1),
            queue_synced: number(2),
            queue: number(3),
            version: DataVersion {
                state_version: number(4),
                timestamp: number(5),
                counter: number(6),
            },
        }
    }
}

/// The file.
#[derive(Debug)]
pub struct TimerCheck {
    path: PathBuf,
    file: File,
}

impl TimerCheck {
    /// Opens the file and reads it; without one there are no marks.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn open(path: &Path) -> Result<(Self, Option<Marks>), StoreError> {
        let failed = |source| StoreError::io("open", path, 0, source);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if length < SIZE {
            file.set_len(SIZE).map_err(failed)?;
        }
        let mut bytes = [0; USED];
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        let marks = (length > 0).then(|| Marks::decode(&bytes));
        let path = path.to_owned();
        // A file of zeros says as little as none.
        let marks = marks.filter(|marks| *marks != Marks::default());
        Ok((Self { path, file }, marks))
    }

    /// Writes the marks into the file; a killed process leaves them there.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Io`]
    pub fn write(&self, marks: &Marks) -> Result<(), StoreError> {
        let written = self.file.write_all_at(&marks.encode(), 0);
        written.map_err(|source| StoreError::io("write", &self.path, USED, source))
    }

    /// Writes the file to the disk.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn sync(&self) -> Result<(), StoreError> {
        let synced = self.file.sync_data();
        synced.map_err(|source| StoreError::io("sync", &self.path, 0, source))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn marks_are_there_again_and_have_apaches_layout() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/timercheck");
        let (check, marks) = TimerCheck::open(&path).unwrap();
        assert_eq!(marks, None);
        let marks = Marks {
            read_time: 1,
            log_synced: 2,
            queue_synced: 3,
            queue: 4,
            version: DataVersion {
                state_version: 5,
                timestamp: 6,
                counter: 7,
            },
        };
        check.write(&marks).unwrap();
        check.sync().unwrap();
        let bytes = fs::read(&path).unwrap();
        let numbers: Vec<_> = bytes.iter().step_by(8).skip(1).take(7).collect();
        assert_eq!((bytes.len(), numbers), (4096, vec![&0; 7]));
        let numbers: Vec<_> = bytes.iter().skip(7).step_by(8).take(7).collect();
        assert_eq!(numbers, [&1, &2, &3, &4, &5, &6, &7]);
        assert_eq!(TimerCheck::open(&path).unwrap().1, Some(marks));
    }
}
