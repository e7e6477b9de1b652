//! A file of the commit log, mapped into memory: one writer appends, any number of readers hold slices of what is written.
//!
//! ```text
//!  0 ───────────── written ─────────── reserved ─────────────── len
//!  │ readers may look │ allocated on the   │ sparse, not yet       │
//!  │                  │ volume, pre-faulted│ allocated             │
//! ```
//! The file has its full length at once, sparse. Space is allocated in windows ahead of the writer, so that a write into
//! the mapping can't fail for want of space (it would raise SIGBUS). A mapping lives until its last reader is gone.
//!
//! This is the only module with `unsafe` code.
#![expect(
    unsafe_code,
    reason = "mappings shared between a writer and readers, and open-file-description locks, have no safe interface"
)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use memmap2::{Advice, MmapMut, MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;
use tracing::trace;

use super::error::StoreError;
use super::space::Space;

/// Space is allocated and pre-faulted in steps of this many bytes.
pub(super) const WINDOW: usize = 4 << 20;

/// The mapping of a whole file; unmapped when the last owner drops it.
#[derive(Debug)]
struct Mapping {
    raw: MmapRaw,
}

impl Mapping {
    /// The first `len` bytes.
    ///
    /// # Safety
    /// `len` is within the mapping, and nobody writes to these bytes while the slice lives.
    unsafe fn prefix(&self, len: usize) -> &[u8] {
        // SAFETY: the mapping is valid for its whole length as long as `self` lives; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.raw.as_ptr(), len) }
    }
}

/// The written part of a mapping, as owner of a [`Bytes`].
struct Window {
    mapping: Arc<Mapping>,
    len: usize,
}

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `len` was the written length when the window was made: within the mapping, and never written again,
        // because the one writer only appends behind it and `MappedFile::cut` refuses while windows live.
        unsafe { self.mapping.prefix(self.len) }
    }
}

/// One file of the commit log.
#[derive(Debug)]
pub(super) struct MappedFile {
    path: PathBuf,
    base: i64,
    len: usize,
    file: File,
    mapping: Arc<Mapping>,
    written: AtomicUsize,
    reserved: Mutex<usize>,
    reserved_seen: AtomicUsize,
    space: Space,
}

/// The right to append to a file; there is one per file, made by [`MappedFile::into_writer`].
#[derive(Debug)]
pub(super) struct FileWriter {
    file: Arc<MappedFile>,
}

impl MappedFile {
    /// Creates the file for offsets from `base` on, `len` bytes long and sparse; an existing one is opened.
    pub(super) fn create(
        dir: &Path,
        base: i64,
        len: usize,
        space: &Space,
    ) -> Result<Self, StoreError> {
        let path = dir.join(file_name(base));
        let failed = |action| {
            let path = path.clone();
            move |source| StoreError::io(action, &path, len, source)
        };
        space.claim().map_err(failed("create"))?;
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = file.map_err(failed("create"))?;
        file.set_len(u64::try_from(len).unwrap_or(u64::MAX))
            .map_err(failed("extend"))?;
        Self::map(path, base, len, file, space)
    }

    /// Opens an existing file of exactly `len` bytes; all of it counts as written until [`MappedFile::cut`].
    pub(super) fn open(
        path: PathBuf,
        base: i64,
        len: usize,
        space: &Space,
    ) -> Result<Self, StoreError> {
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|source| StoreError::io("open", &path, 0, source))?;
        let mapped = Self::map(path, base, len, file, space)?;
        mapped.written.store(len, Ordering::Release);
        Ok(mapped)
    }

    fn map(
        path: PathBuf,
        base: i64,
        len: usize,
        file: File,
        space: &Space,
    ) -> Result<Self, StoreError> {
        let raw = MmapOptions::new().len(len).map_raw(&file);
        let raw = raw.map_err(|source| StoreError::io("map", &path, len, source))?;
        Ok(Self {
            path,
            base,
            len,
            file,
            mapping: Arc::new(Mapping { raw }),
            written: AtomicUsize::new(0),
            reserved: Mutex::new(0),
            reserved_seen: AtomicUsize::new(0),
            space: space.clone(),
        })
    }

    /// Offset of the file's first byte in the log.
    pub(super) fn base(&self) -> i64 {
        self.base
    }

    /// Length of the file in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Offset behind the file's last byte in the log.
    pub(super) fn end(&self) -> i64 {
        self.base
            .saturating_add(i64::try_from(self.len).unwrap_or(i64::MAX))
    }

    /// Where the file lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// When the file was changed last, milliseconds since 1970.
    pub(super) fn modified(&self) -> Result<i64, StoreError> {
        let modified = self.file.metadata().and_then(|data| data.modified());
        let modified = modified.map_err(|source| StoreError::io("read", &self.path, 0, source))?;
        let since = modified.duration_since(std::time::UNIX_EPOCH);
        Ok(since.map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        }))
    }

    /// What is written, to be looked at in place.
    pub(super) fn written(&self) -> &[u8] {
        let written = self.written.load(Ordering::Acquire);
        // SAFETY: `written` never exceeds `len`, and bytes before it are not written again: the one writer appends
        // behind it, and `cut` takes `&mut self`, so no slice lives then.
        unsafe { self.mapping.prefix(written) }
    }

    /// What is written, owned: the mapping lives as long as any slice of it.
    pub(super) fn window(&self) -> Bytes {
        Bytes::from_owner(Window {
            mapping: Arc::clone(&self.mapping),
            len: self.written.load(Ordering::Acquire),
        })
    }

    /// Sets where the next byte goes, after recovery found the end of the log.
    ///
    /// # Errors
    /// [`StoreError::Io`] while slices of this file are held.
    pub(super) fn cut(&mut self, written: usize) -> Result<(), StoreError> {
        if Arc::get_mut(&mut self.mapping).is_none() || written > self.len {
            let source = io::Error::from(io::ErrorKind::ResourceBusy);
            return Err(StoreError::io("cut", &self.path, 0, source));
        }
        *self.written.get_mut() = written;
        Ok(())
    }

    /// Turns everything from `from` on back into zeros and gives its space back.
    pub(super) fn erase(&mut self, from: usize) -> Result<(), StoreError> {
        self.cut(from)?;
        let (at, len) = (from, self.len - from);
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punched = rustix::fs::fallocate(&self.file, hole, wide(at), wide(len));
        match punched {
            Err(rustix::io::Errno::OPNOTSUPP) => self.write_zeros(at, len),
            other => other.map_err(io::Error::from),
        }
        .map_err(|source| StoreError::io("erase", &self.path, len, source))?;
        *self
            .reserved
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner) = 0;
        *self.reserved_seen.get_mut() = 0;
        Ok(())
    }

    /// Makes sure that the volume has room for the first `upto` bytes, and that writing them faults no page.
    ///
    /// # Errors
    /// [`StoreError::Full`] when the volume has no room.
    pub(super) fn reserve(&self, upto: usize) -> Result<(), StoreError> {
        let upto = upto.min(self.len);
        if self.reserved_seen.load(Ordering::Acquire) >= upto {
            return Ok(());
        }
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        if *reserved == 0 {
            // What is written has its space already.
            *reserved = self.written.load(Ordering::Acquire) / WINDOW * WINDOW;
        }
        while *reserved < upto {
            let (at, len) = (*reserved, WINDOW.min(self.len - *reserved));
            self.allocate(at, len)
                .map_err(|source| StoreError::io("allocate", &self.path, len, source))?;
            // Advice only: a kernel without it faults the pages one by one.
            let advised = self
                .mapping
                .raw
                .advise_range(Advice::PopulateWrite, at, len);
            if let Err(error) = advised {
                trace!(%error, "pages are not faulted ahead");
            }
            *reserved = at + len;
            self.reserved_seen.store(*reserved, Ordering::Release);
        }
        Ok(())
    }

    /// How far [`MappedFile::reserve`] has come.
    pub(super) fn reserved(&self) -> usize {
        self.reserved_seen.load(Ordering::Acquire)
    }

    fn allocate(&self, at: usize, len: usize) -> io::Result<()> {
        self.space.claim()?;
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, wide(at), wide(len)) {
            Err(rustix::io::Errno::OPNOTSUPP) => {
                // Without fallocate, zeros do it; they must not touch what is written.
                let from = at.max(self.written.load(Ordering::Acquire));
                self.write_zeros(from, (at + len).saturating_sub(from))
            }
            other => other.map_err(io::Error::from),
        }
    }

    fn write_zeros(&self, mut at: usize, mut len: usize) -> io::Result<()> {
        let zeros = vec![0; len.min(1 << 20)];
        while len > 0 {
            let part = len.min(zeros.len());
            self.file.write_all_at(&zeros[..part], wide(at))?;
            (at, len) = (at + part, len - part);
        }
        Ok(())
    }

    /// Writes everything to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Shares the file with readers and gives the right to append to it to the caller.
    pub(super) fn into_writer(self) -> (Arc<Self>, FileWriter) {
        let file = Arc::new(self);
        let writer = FileWriter {
            file: Arc::clone(&file),
        };
        (file, writer)
    }
}

impl FileWriter {
    /// The file.
    pub(super) fn file(&self) -> &Arc<MappedFile> {
        &self.file
    }

    /// How many bytes are written.
    pub(super) fn position(&self) -> usize {
        self.file.written.load(Ordering::Relaxed)
    }

    /// Appends `bytes`, and lets readers see them. Room for them was made by [`MappedFile::reserve`] before.
    ///
    /// Gives back whether they fit; nothing is written otherwise.
    #[must_use]
    pub(super) fn append(&mut self, bytes: &[u8]) -> bool {
        let at = self.position();
        let end = at.saturating_add(bytes.len());
        if end > self.file.reserved() {
            return false;
        }
        // SAFETY: `at..end` lies within the mapping (`reserved` never exceeds its length) and behind `written`, where
        // no slice of a reader reaches; `&mut self` of the file's only writer keeps other writers out. The space is
        // allocated, so the store can't raise SIGBUS.
        let to = unsafe { self.file.mapping.raw.as_mut_ptr().add(at) };
        // SAFETY: as above; `bytes` is a live slice, and a mapping never overlaps what a caller may borrow here:
        // readers' slices lie before `written`.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.file.written.store(end, Ordering::Release);
        true
    }

    /// Counts the rest of the file as written.
    pub(super) fn seal(&mut self) {
        self.file.written.store(self.file.len, Ordering::Release);
    }
}

/// Maps a file of `len` bytes for one owner, who reads through `&` and writes through `&mut`.
pub(super) fn map_exclusive(file: &File, len: usize) -> io::Result<MmapMut> {
    // SAFETY: the file has `len` bytes and belongs to a store whose folder lock this process holds, so nobody else
    // truncates or writes it; within the process the owner of the mapping is the only one who does.
    unsafe { MmapOptions::new().len(len).map_mut(file) }
}

/// Takes the exclusive lock on a file's first byte that keeps other brokers, Java ones too, out of a store. It belongs to
/// the open file: dropping `file` (or the end of the process) releases it.
///
/// # Errors
/// `WouldBlock` when somebody else holds it.
pub(super) fn lock_first_byte(file: &File) -> io::Result<()> {
    let region = libc::flock {
        l_type: libc::F_WRLCK.try_into().unwrap_or(1),
        l_whence: libc::SEEK_SET.try_into().unwrap_or(0),
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open while `file` is borrowed, and `region` lives for the whole call.
    let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const region) };
    if taken == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// A data file's name: the offset of its first byte, 20 decimal digits.
pub(super) fn file_name(base: i64) -> String {
    format!("{base:020}")
}

fn wide(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn readers_keep_what_they_hold_while_the_writer_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = MappedFile::create(folder.path(), 0, 4096, &Space::default()).unwrap();
        let (file, mut writer) = file.into_writer();
        assert!(!writer.append(b"not reserved yet"));
        file.reserve(100).unwrap();
        assert!(writer.append(b"one"));
        let held = file.window();
        assert!(writer.append(b"two"));
        assert_eq!((&held[..], file.written()), (&b"one"[..], &b"onetwo"[..]));
        writer.seal();
        assert_eq!(file.written().len(), 4096);
        drop((file, writer));
        assert_eq!(&held[..], b"one");
    }

    #[test]
    fn a_full_volume_is_an_error_and_ends_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::switchable();
        let file = MappedFile::create(folder.path(), 0, 4096, &space).unwrap();
        space.set_full(true);
        assert!(matches!(file.reserve(10), Err(StoreError::Full { .. })));
        space.set_full(false);
        file.reserve(10).unwrap();
    }

    #[test]
    fn a_held_file_cannot_be_cut() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::default();
        drop(MappedFile::create(folder.path(), 0, 4096, &space).unwrap());
        let mut file = MappedFile::open(folder.path().join(file_name(0)), 0, 4096, &space).unwrap();
        let held = file.window();
        assert!(file.cut(10).is_err());
        drop(held);
        file.erase(10).unwrap();
        assert_eq!(file.written(), [0; 10]);
    }

    #[test]
    fn the_folder_lock_excludes_a_second_one_in_the_same_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = File::create(&path).unwrap();
        let second = OpenOptions::new().write(true).open(&path).unwrap();
        lock_first_byte(&first).unwrap();
        assert_eq!(
            lock_first_byte(&second).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        drop(first);
        lock_first_byte(&second).unwrap();
    }
}
