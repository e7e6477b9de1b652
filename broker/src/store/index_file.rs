//! One index file: a hash table from keys to records, with chains through its items.
//!
//! ```text
//! header (40) │ slot × maxHashSlotNum (4 each: newest item) │ item × maxIndexNum (20 each: hash, offset, seconds, previous)
//! ```
//! Layout of `IndexHeader` and `IndexFile` of Apache `RocketMQ` 5.3.3. Space for the slots is allocated at once, for the
//! items in windows, so that writing into the mapping can't fail for want of space.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memmap2::MmapMut;
use rustix::fs::FallocateFlags;

use super::error::StoreError;
use super::mapped_file::map_exclusive;
use super::space::Space;

const HEADER: usize = 40;
const SLOT: usize = 4;
const ITEM: usize = 20;
/// Item space is allocated in steps of this many bytes.
const WINDOW: usize = 4 << 20;

// Header fields.
const BEGIN_TIME: usize = 0;
const END_TIME: usize = 8;
const BEGIN_OFFSET: usize = 16;
const END_OFFSET: usize = 24;
const SLOTS_USED: usize = 32;
const COUNT: usize = 36;

/// How large index files are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// `maxHashSlotNum`.
    pub(super) slots: u32,
    /// `maxIndexNum`; one item fewer fits.
    pub(super) items: u32,
}

impl Shape {
    fn items_at(self) -> usize {
        HEADER + wide(self.slots) * SLOT
    }

    /// Length of a file in bytes.
    pub(super) fn file_len(self) -> usize {
        self.items_at() + wide(self.items) * ITEM
    }
}

/// An open index file.
#[derive(Debug)]
pub(super) struct IndexFile {
    path: PathBuf,
    shape: Shape,
    file: File,
    map: MmapMut,
    reserved: usize,
    space: Space,
}

/// The time range of a query, in milliseconds since 1970, both ends included.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeRange {
    pub(super) begin: i64,
    pub(super) end: i64,
}

impl IndexFile {
    /// Makes a new file; its ends are preset from the file before it.
    pub(super) fn create(
        path: PathBuf,
        shape: Shape,
        before: Option<&IndexFile>,
        space: &Space,
    ) -> Result<Self, StoreError> {
        let failed = |source| StoreError::io("create", &path, 0, source);
        space.claim().map_err(failed)?;
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        file.set_len(u64::try_from(shape.file_len()).unwrap_or(0))
            .map_err(failed)?;
        let mut index = Self::map(path, shape, file, space)?;
        index.reserve(shape.items_at())?;
        if let Some(before) = before {
            index.put_i64(BEGIN_TIME, before.end_time());
            index.put_i64(END_TIME, before.end_time());
            index.put_i64(BEGIN_OFFSET, before.end_offset());
            index.put_i64(END_OFFSET, before.end_offset());
        }
        index.put_i32(COUNT, 1);
        Ok(index)
    }

    /// Opens an existing file; `None` if its length is another than `shape` has, which makes it unusable.
    pub(super) fn open(
        path: &Path,
        shape: Shape,
        space: &Space,
    ) -> Result<Option<Self>, StoreError> {
        let failed = |source| StoreError::io("open", path, 0, source);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(failed)?;
        if usize::try_from(file.metadata().map_err(failed)?.len()) != Ok(shape.file_len()) {
            return Ok(None);
        }
        Self::map(path.to_owned(), shape, file, space).map(Some)
    }

    fn map(path: PathBuf, shape: Shape, file: File, space: &Space) -> Result<Self, StoreError> {
        let map = map_exclusive(&file, shape.file_len());
        let map = map.map_err(|source| StoreError::io("map", &path, shape.file_len(), source))?;
        Ok(Self {
            path,
            shape,
            file,
            map,
            reserved: 0,
            space: space.clone(),
        })
    }

    fn reserve(&mut self, upto: usize) -> Result<(), StoreError> {
        while self.reserved < upto {
            let (at, left) = (self.reserved, self.shape.file_len() - self.reserved);
            let len = WINDOW.min(left).max((upto - at).min(left));
            let wide = |value| u64::try_from(value).unwrap_or(0);
            let room = self.space.claim().and_then(|()| {
                match rustix::fs::fallocate(
                    &self.file,
                    FallocateFlags::KEEP_SIZE,
                    wide(at),
                    wide(len),
                ) {
                    // Without fallocate, writing the bytes that are there already claims their space.
                    Err(rustix::io::Errno::OPNOTSUPP) => {
                        self.file.write_all_at(&self.map[at..at + len], wide(at))
                    }
                    other => other.map_err(std::io::Error::from),
                }
            });
            room.map_err(|source| StoreError::io("allocate", &self.path, len, source))?;
            self.reserved = at + len;
        }
        Ok(())
    }

    /// Where the file lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Store time of the newest record in the file.
    pub(super) fn end_time(&self) -> i64 {
        self.i64_at(END_TIME)
    }

    /// Store time of the oldest record in the file.
    pub(super) fn begin_time(&self) -> i64 {
        self.i64_at(BEGIN_TIME)
    }

    /// Physical offset of the oldest record in the file.
    pub(super) fn begin_offset(&self) -> i64 {
        self.i64_at(BEGIN_OFFSET)
    }

    /// Physical offset of the newest record in the file.
    pub(super) fn end_offset(&self) -> i64 {
        self.i64_at(END_OFFSET)
    }

    /// Number of the next item; item 0 is never used.
    fn count(&self) -> u32 {
        u32::try_from(self.i32_at(COUNT)).unwrap_or(1).max(1)
    }

    /// Whether no item fits any more.
    pub(super) fn is_full(&self) -> bool {
        self.count() >= self.shape.items
    }

    /// Adds an item; `false` if the file is full.
    ///
    /// # Errors
    /// No room on the volume; the file is as it was.
    pub(super) fn put(
        &mut self,
        hash: i32,
        physical: i64,
        store_timestamp: i64,
    ) -> Result<bool, StoreError> {
        let count = self.count();
        if count >= self.shape.items {
            return Ok(false);
        }
        let item = self.item_at(count);
        self.reserve(item + ITEM)?;
        let slot = self.slot_at(hash);
        let previous = Some(self.i32_at(slot))
            .filter(|previous| self.is_item(*previous))
            .unwrap_or(0);
        let begin = self.begin_time();
        let seconds = if begin > 0 {
            store_timestamp.saturating_sub(begin) / 1000
        } else {
            0
        };
        self.put_i32(item, hash);
        self.put_i64(item + 4, physical);
        self.put_i32(
            item + 12,
            i32::try_from(seconds.clamp(0, i64::from(i32::MAX))).unwrap_or(0),
        );
        self.put_i32(item + 16, previous);
        self.put_i32(slot, count.cast_signed());
        if count == 1 {
            self.put_i64(BEGIN_OFFSET, physical);
            self.put_i64(BEGIN_TIME, store_timestamp);
        }
        if previous == 0 {
            self.put_i32(SLOTS_USED, self.i32_at(SLOTS_USED).saturating_add(1));
        }
        self.put_i32(COUNT, count.cast_signed() + 1);
        self.put_i64(END_OFFSET, physical);
        self.put_i64(END_TIME, store_timestamp);
        Ok(true)
    }

    fn is_item(&self, number: i32) -> bool {
        number > 0 && number.cast_unsigned() <= self.count()
    }

    /// Whether any item can lie within `range`.
    pub(super) fn overlaps(&self, range: TimeRange) -> bool {
        range.begin <= self.end_time() && range.end >= self.begin_time()
    }

    /// Physical offsets of the items with this hash within `range`, newest first, until `found` holds `max`.
    pub(super) fn find(&self, hash: i32, range: TimeRange, max: usize, found: &mut Vec<i64>) {
        let begin = self.begin_time();
        let mut number = self.i32_at(self.slot_at(hash));
        while self.is_item(number) && number.cast_unsigned() < self.shape.items && found.len() < max
        {
            let item = self.item_at(number.cast_unsigned());
            let (seconds, previous) = (self.i32_at(item + 12), self.i32_at(item + 16));
            if seconds < 0 {
                break;
            }
            let time = begin.saturating_add(i64::from(seconds) * 1000);
            // Whole seconds: an item may be up to a second younger than it says.
            if self.i32_at(item) == hash && range.begin <= time && time <= range.end {
                found.push(self.i64_at(item + 4));
            }
            // Chains lead to smaller numbers; anything else is damage that could turn in a circle.
            if previous >= number || time < range.begin {
                break;
            }
            number = previous;
        }
    }

    /// Writes the file to the disk.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.map
            .flush()
            .map_err(|source| StoreError::io("flush", &self.path, 0, source))
    }

    fn slot_at(&self, hash: i32) -> usize {
        let slot = hash.unsigned_abs() % self.shape.slots;
        HEADER + wide(slot) * SLOT
    }

    fn item_at(&self, number: u32) -> usize {
        self.shape.items_at() + wide(number) * ITEM
    }

    fn i32_at(&self, at: usize) -> i32 {
        self.map[at..]
            .first_chunk()
            .map_or(0, |bytes| i32::from_be_bytes(*bytes))
    }

    fn i64_at(&self, at: usize) -> i64 {
        self.map[at..]
            .first_chunk()
            .map_or(0, |bytes| i64::from_be_bytes(*bytes))
    }

    fn put_i32(&mut self, at: usize, value: i32) {
        self.map[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    fn put_i64(&mut self, at: usize, value: i64) {
        self.map[at..at + 8].copy_from_slice(&value.to_be_bytes());
    }
}

fn wide(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
