//! Who may work on a store folder, and whether the last one left it in order: the files `lock` and `abort`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::json_file::sync_folder;
use super::mapped_file::lock_first_byte;

/// The lock on a store folder; released when dropped. A file left behind by a killed process does not hold it.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock of `root`, whose folder is made if need be.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another store holds it, in this process or another, ours or Apache's.
    pub(super) fn take(root: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(root).map_err(|source| StoreError::io("create", root, 0, source))?;
        let path = root.join("lock");
        let failed = |source| StoreError::io("lock", &path, 0, source);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        lock_first_byte(&file).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied => StoreError::Locked {
                root: root.to_owned(),
            },
            _ => failed(source),
        })?;
        file.write_all(b"lock").map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// The file `abort`: there while a store is open, so that its presence at start tells of an unclean stop.
#[derive(Debug)]
pub(super) struct AbortMark {
    path: PathBuf,
}

impl AbortMark {
    /// The mark of `root`.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            path: root.join("abort"),
        }
    }

    /// Whether it is there.
    pub(super) fn is_set(&self) -> bool {
        self.path.exists()
    }

    /// Sets it; the content is the process id.
    pub(super) fn set(&self) -> Result<(), StoreError> {
        let write = || {
            let mut file = File::create(&self.path)?;
            file.write_all(std::process::id().to_string().as_bytes())?;
            file.sync_all()?;
            // After a power failure the mark must be there, or the next start would trust everything.
            self.path.parent().map_or(Ok(()), sync_folder)
        };
        write().map_err(|source| StoreError::io("write", &self.path, 0, source))
    }

    /// Removes it.
    pub(super) fn clear(&self) -> Result<(), StoreError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|source| StoreError::io("remove", &self.path, 0, source)),
        }
    }
}
