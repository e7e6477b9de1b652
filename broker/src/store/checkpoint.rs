//! The checkpoint: up to which store time the parts of the store are known to be on disk.
//!
//! 4,096 bytes; five big-endian 64-bit integers, the rest zero. Layout of `StoreCheckpoint` of Apache `RocketMQ` 5.3.3.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use super::error::StoreError;

const SIZE: u64 = 4096;
/// Store times this close to the checkpoint are not trusted, in milliseconds.
const SLACK: i64 = 3000;

/// The five numbers, and the file they are kept in.
#[derive(Debug)]
pub(super) struct Checkpoint {
    path: PathBuf,
    file: File,
    /// Store time of the newest record known to be on disk (ms).
    pub(super) physic: AtomicI64,
    /// Store time of the newest record whose consume-queue entry is on disk (ms).
    pub(super) logics: AtomicI64,
    /// End time of the newest index file that is full and on disk (ms).
    pub(super) index: AtomicI64,
    master_flushed: AtomicI64,
    /// Offset up to which records are confirmed; set by recovery.
    pub(super) confirm: AtomicI64,
}

impl Checkpoint {
    /// Opens `ROOT/checkpoint`, or makes it with zeros.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::io("open", path, 0, source);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = file.map_err(failed)?;
        if file.metadata().map_err(failed)?.len() < SIZE {
            file.set_len(SIZE).map_err(failed)?;
        }
        let field = |at| read(&file, at).map_err(failed);
        Ok(Self {
            path: path.to_owned(),
            physic: field(0)?,
            logics: field(8)?,
            index: field(16)?,
            master_flushed: field(24)?,
            confirm: field(32)?,
            file,
        })
    }

    /// The store time up to which log and queues can be relied on.
    pub(super) fn min_timestamp(&self) -> i64 {
        let physic = self.physic.load(Ordering::Relaxed);
        let logics = self.logics.load(Ordering::Relaxed);
        (physic.min(logics) - SLACK).max(0)
    }

    /// [`Checkpoint::min_timestamp`], and the index too.
    pub(super) fn min_timestamp_index(&self) -> i64 {
        self.min_timestamp().min(self.index.load(Ordering::Relaxed))
    }

    /// Writes the numbers to the disk.
    pub(super) fn persist(&self) -> Result<(), StoreError> {
        let fields = [
            &self.physic,
            &self.logics,
            &self.index,
            &self.master_flushed,
            &self.confirm,
        ];
        let bytes: Vec<u8> = fields
            .iter()
            .flat_map(|field| field.load(Ordering::Relaxed).to_be_bytes())
            .collect();
        let written = self
            .file
            .write_all_at(&bytes, 0)
            .and_then(|()| self.file.sync_data());
        written.map_err(|source| StoreError::io("write", &self.path, bytes.len(), source))
    }
}

fn read(file: &File, at: u64) -> io::Result<AtomicI64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at)?;
    Ok(AtomicI64::new(i64::from_be_bytes(bytes)))
}
