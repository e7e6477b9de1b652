//! The timer wheel: for each point of time of the next and the last seven days, the messages due then.
//!
//! ```text
//! due time ─▶ number = time / precision ─▶ slot number mod 1,209,600 ─▶ first and last unit, count
//! ```
//! 32 bytes a slot, big endian: number, position of the first unit, of the last one (i64 each), count, 0 (i32 each). A slot
//! belongs to a time only while its number says so; it is not cleared when its messages are delivered. Mirrors
//! `TimerWheel` of Apache `RocketMQ` 5.3.3. The file is 38 MB and mostly empty, so it is read by position; changes are held
//! back until [`Wheel::write`], and a bitmap knows which slots still wait.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::SeekFrom;

use crate::store::error::StoreError;
use crate::store::space::Space;

/// Slots of seven days at a precision of one second; the wheel has twice as many.
pub const SLOTS: i64 = 604_800;
const TOTAL: i64 = 2 * SLOTS;
const SLOT: i64 = 32;
const LENGTH: u64 = 38_707_200;
/// Changed slots held back at most.
const HELD_BACK: usize = 8192;
/// Bytes read at a time when the file is opened: a whole number of slots.
const STEP: usize = 1 << 18;

/// The messages of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Its time divided by the precision.
    pub number: i64,
    /// Position of its first unit in the timer log.
    pub first: i64,
    /// Position of its last unit in the timer log.
    pub last: i64,
    /// Its messages; those that cancel others count -1.
    pub count: i32,
    /// As Apache keeps it: 0.
    pub magic: i32,
}

impl Slot {
    fn encode(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.first.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.last.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.count.to_be_bytes());
        bytes[28..].copy_from_slice(&self.magic.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8; 32]) -> Self {
        let long = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            i64::from_be_bytes(field)
        };
        let int = |at: usize| {
            let mut field = [0; 4];
            field.copy_from_slice(&bytes[at..at + 4]);
            i32::from_be_bytes(field)
        };
        Self {
            number: long(0),
            first: long(8),
            last: long(16),
            count: int(24),
            magic: int(28),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Wheel {
    path: PathBuf,
    file: Arc<File>,
    precision: i64,
    /// By index: changed since the last write.
    changed: BTreeMap<i64, Slot>,
    /// A bit for each slot whose messages are still to be delivered.
    waiting: Vec<u64>,
    /// Messages in those slots.
    count: i64,
    /// Whether the file was not there, or not of this kind, when it was opened.
    fresh: bool,
    space: Space,
}

impl Wheel {
    /// Opens the wheel at `path`, or makes an empty one. `precision` is in milliseconds and at least 1. No slot waits until
    /// [`Wheel::wait_from`].
    ///
    /// # Errors
    /// [`StoreError::FileLength`] when the file has another size, [`StoreError::Io`].
    pub fn open(path: &Path, precision: i64, space: Space) -> Result<Self, StoreError> {
        let failed = |source| StoreError::io("open", path, 0, source);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if found != 0 && found != LENGTH {
            return Err(StoreError::FileLength {
                path: path.to_owned(),
                found,
                expected: LENGTH,
            });
        }
        file.set_len(LENGTH).map_err(failed)?;
        let words = usize::try_from(TOTAL / 64).unwrap_or(0);
        Ok(Self {
            path: path.to_owned(),
            file: Arc::new(file),
            precision: precision.max(1),
            changed: BTreeMap::new(),
            waiting: vec![0; words],
            count: 0,
            fresh: found == 0,
            space,
        })
    }

    /// Whether the file was made when it was opened.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Messages in the slots that wait.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.count
    }

    fn number(&self, time: i64) -> i64 {
        time.div_euclid(self.precision)
    }

    fn index(number: i64) -> i64 {
        number.rem_euclid(TOTAL)
    }

    /// The slot of a time; none if no message is due then.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn slot(&self, time: i64) -> Result<Option<Slot>, StoreError> {
        let number = self.number(time);
        let slot = self.raw(Self::index(number))?;
        Ok((slot.number == number && number != 0).then_some(slot))
    }

    fn raw(&self, index: i64) -> Result<Slot, StoreError> {
        if let Some(slot) = self.changed.get(&index) {
            return Ok(*slot);
        }
        let mut bytes = [0; 32];
        let read = self
            .file
            .read_exact_at(&mut bytes, (index * SLOT).unsigned_abs());
        read.map_err(|source| StoreError::io("read", &self.path, 0, source))?;
        Ok(Slot::decode(&bytes))
    }

    /// Puts a unit behind the others of its slot; `change` is 1, or -1 for one that cancels another.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Io`]
    pub fn add(&mut self, time: i64, position: i64, change: i32) -> Result<(), StoreError> {
        let slot = self.slot(time)?;
        let slot = Slot {
            number: self.number(time),
            first: slot.map_or(position, |slot| slot.first),
            last: position,
            count: slot.map_or(0, |slot| slot.count).saturating_add(change),
            magic: slot.map_or(0, |slot| slot.magic),
        };
        self.put(slot)?;
        self.count += i64::from(change);
        Ok(())
    }

    /// Says of a unit found in the log that it is the last of its slot so far. The slot's count is raised only when the unit
    /// was not known to the slot.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Io`]
    pub fn relink(&mut self, time: i64, position: i64, change: i32) -> Result<(), StoreError> {
        match self.slot(time)? {
            Some(slot) if slot.last >= position => Ok(()),
            _ => self.add(time, position, change),
        }
    }

    /// Makes the slot's units end before `end`; used when the log was cut there. Without any left it is as if never used.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Io`]
    pub fn forget(&mut self, time: i64) -> Result<(), StoreError> {
        let index = Self::index(self.number(time));
        if let Some(slot) = self.slot(time)? {
            self.count -= i64::from(self.waits(index)) * i64::from(slot.count);
            self.mark(index, false);
            self.hold(
                index,
                Slot {
                    number: 0,
                    first: 0,
                    last: 0,
                    count: 0,
                    magic: 0,
                },
            )?;
        }
        Ok(())
    }

    fn put(&mut self, slot: Slot) -> Result<(), StoreError> {
        let index = Self::index(slot.number);
        self.hold(index, slot)?;
        self.mark(index, true);
        Ok(())
    }

    fn hold(&mut self, index: i64, slot: Slot) -> Result<(), StoreError> {
        if self.changed.len() >= HELD_BACK {
            self.write()?;
        }
        self.changed.insert(index, slot);
        Ok(())
    }

    fn word(index: i64) -> (usize, u64) {
        let bit = 1 << (index.unsigned_abs() % 64);
        (usize::try_from(index / 64).unwrap_or(0), bit)
    }

    fn mark(&mut self, index: i64, waits: bool) {
        let (word, bit) = Self::word(index);
        if let Some(word) = self.waiting.get_mut(word) {
            *word = if waits { *word | bit } else { *word & !bit };
        }
    }

    fn waits(&self, index: i64) -> bool {
        let (word, bit) = Self::word(index);
        self.waiting.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The messages of a slot are delivered.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn done(&mut self, time: i64) -> Result<(), StoreError> {
        let index = Self::index(self.number(time));
        if self.waits(index) {
            self.count -= self.slot(time)?.map_or(0, |slot| i64::from(slot.count));
            self.mark(index, false);
        }
        Ok(())
    }

    /// The time of the first waiting slot at or after `from`, in milliseconds.
    #[must_use]
    pub fn next(&self, from: i64) -> Option<i64> {
        let first = self.number(from);
        let start = Self::index(first);
        let words = i64::try_from(self.waiting.len()).unwrap_or(0);
        // The word of the start comes twice: at the end for the bits before it.
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.waiting[usize::try_from(word).unwrap_or(0)];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let index = word * 64 + i64::from(bits.trailing_zeros());
                let ahead = (index - start).rem_euclid(TOTAL);
                return Some((first + ahead).saturating_mul(self.precision));
            }
        }
        None
    }

    /// Writes the changed slots to the file; gives it back, to be written to the disk.
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::Io`]; the changes are kept then.
    pub fn write(&mut self) -> Result<Arc<File>, StoreError> {
        let failed = |source| StoreError::io("write", &self.path, 32, source);
        self.space.claim().map_err(failed)?;
        for (index, slot) in &self.changed {
            let at = (index * SLOT).unsigned_abs();
            self.file.write_all_at(&slot.encode(), at).map_err(failed)?;
        }
        self.changed.clear();
        Ok(self.file.clone())
    }

    /// Whether slots have changed since the last [`Wheel::write`].
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Shows every used slot.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn each(&self, mut show: impl FnMut(Slot)) -> Result<(), StoreError> {
        let failed = |source| StoreError::io("read", &self.path, 0, source);
        each_on_disk(&self.file, &mut |index, slot| {
            if !self.changed.contains_key(&index) {
                show(slot);
            }
        })
        .map_err(failed)?;
        self.changed.values().copied().for_each(show);
        Ok(())
    }

    /// Empties every slot.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn clear(&mut self) -> Result<(), StoreError> {
        let cleared = self
            .file
            .set_len(0)
            .and_then(|()| self.file.set_len(LENGTH));
        cleared.map_err(|source| StoreError::io("cut", &self.path, 0, source))?;
        self.changed.clear();
        self.waiting.fill(0);
        self.count = 0;
        Ok(())
    }

    /// Lets the slots of `from` and later wait, and no others. Gives back whether every slot's time is one that this wheel
    /// can have: they are not when it was written with another precision.
    ///
    /// # Errors
    /// [`StoreError::Io`]
    pub fn wait_from(&mut self, from: i64) -> Result<bool, StoreError> {
        let first = self.number(from);
        let (mut waiting, mut count, mut plausible) = (Vec::new(), 0, true);
        self.each(|slot| {
            // Slots lie at most the wheel's length ahead, and not decades back.
            plausible &= slot.number < first.saturating_add(TOTAL) && slot.number > first / 5 * 4;
            if slot.number >= first && slot.number < first.saturating_add(TOTAL) {
                waiting.push(Self::index(slot.number));
                count += i64::from(slot.count);
            }
        })?;
        self.waiting.fill(0);
        for index in waiting {
            self.mark(index, true);
        }
        self.count = count;
        Ok(plausible)
    }

    /// Milliseconds of one slot.
    #[must_use]
    pub fn precision(&self) -> i64 {
        self.precision
    }

    /// `time`, rounded down to a slot's.
    #[must_use]
    pub fn floor(&self, time: i64) -> i64 {
        self.number(time).saturating_mul(self.precision)
    }
}

/// Shows the used slots of the file with their index; its holes are not read.
fn each_on_disk(file: &File, show: &mut impl FnMut(i64, Slot)) -> io::Result<()> {
    let mut buffer = vec![0; STEP];
    let mut at: u64 = 0;
    while let Some(start) = data_from(file, at)? {
        // The hole may begin within a slot; reading a little of it does no harm.
        let start = start / 32 * 32;
        let end = hole_from(file, start)?.div_ceil(32) * 32;
        let end = end.min(LENGTH);
        at = start;
        while at < end {
            let part = usize::try_from(end - at).unwrap_or(STEP).min(STEP);
            file.read_exact_at(&mut buffer[..part], at)?;
            let (slots, _) = buffer[..part].as_chunks::<32>();
            for bytes in slots {
                let slot = Slot::decode(bytes);
                if slot.number != 0 {
                    show(i64::try_from(at / 32).unwrap_or(0), slot);
                }
                at += 32;
            }
        }
    }
    Ok(())
}

/// Where the next written part of the file begins; a file system that can't tell has one from everywhere on.
fn data_from(file: &File, at: u64) -> io::Result<Option<u64>> {
    if at >= LENGTH {
        return Ok(None);
    }
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => Ok(Some(start)),
        Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

fn hole_from(file: &File, at: u64) -> io::Result<u64> {
    match rustix::fs::seek(file, SeekFrom::Hole(at)) {
        Ok(end) => Ok(end),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => Ok(LENGTH),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn open(folder: &tempfile::TempDir) -> Wheel {
        Wheel::open(&folder.path().join("timerwheel"), 1000, Space::default()).unwrap()
    }

    const NOW: i64 = 1_700_000_000_000;

    #[test]
    fn slots_are_found_in_order_of_their_times_around_the_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let mut wheel = open(&folder);
        assert!(wheel.is_fresh());
        assert_eq!(wheel.next(NOW), None);
        let times = [
            NOW,
            NOW + 1000,
            NOW + 64_000,
            NOW + 604_799_000,
            NOW + 1_209_599_000,
        ];
        for (position, time) in (0_i64..).zip(times.into_iter().rev()) {
            wheel.add(time, position, 1).unwrap();
        }
        let mut seen = Vec::new();
        let mut at = NOW;
        while let Some(time) = wheel.next(at) {
            seen.push(time);
            wheel.done(time).unwrap();
            at = time + 1000;
        }
        assert_eq!(seen, times);
        assert_eq!(wheel.count(), 0);
    }

    #[test]
    fn a_slot_is_another_ones_two_weeks_later() {
        let folder = tempfile::tempdir().unwrap();
        let mut wheel = open(&folder);
        wheel.add(NOW, 52, 1).unwrap();
        wheel.add(NOW + 999, 104, 1).unwrap();
        let slot = wheel.slot(NOW).unwrap().unwrap();
        assert_eq!((slot.first, slot.last, slot.count), (52, 104, 2));
        let later = NOW + 2 * SLOTS * 1000;
        assert_eq!(wheel.slot(later).unwrap(), None);
        wheel.add(later, 156, 1).unwrap();
        assert_eq!(wheel.slot(NOW).unwrap(), None);
        assert_eq!(wheel.slot(later).unwrap().unwrap().first, 156);
    }

    #[test]
    fn a_wheel_opened_again_waits_for_what_is_ahead() {
        let folder = tempfile::tempdir().unwrap();
        let mut wheel = open(&folder);
        for (position, time) in (0..).zip([NOW - 5000, NOW, NOW + 7000]) {
            wheel.add(time, position, 1).unwrap();
        }
        wheel.add(NOW + 7000, 9, -1).unwrap();
        wheel.write().unwrap();
        assert!(!wheel.has_changes());
        let mut wheel = open(&folder);
        assert!(!wheel.is_fresh());
        assert!(wheel.wait_from(NOW).unwrap());
        assert_eq!((wheel.next(NOW - 9000), wheel.count()), (Some(NOW), 1));
        wheel.done(NOW).unwrap();
        assert_eq!((wheel.next(NOW), wheel.count()), (Some(NOW + 7000), 0));
    }

    #[test]
    fn the_file_has_the_layout_of_apaches_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let mut wheel = open(&folder);
        wheel.add(NOW + 1500, 52, 1).unwrap();
        wheel.add(NOW + 1500, 104, 1).unwrap();
        wheel.write().unwrap();
        let bytes = fs::read(folder.path().join("timerwheel")).unwrap();
        assert_eq!(bytes.len(), 38_707_200);
        let number = 1_700_000_001_i64;
        let at = usize::try_from(number % 1_209_600 * 32).unwrap();
        let expected = [
            &number.to_be_bytes()[..],
            &52_i64.to_be_bytes(),
            &104_i64.to_be_bytes(),
            &2_i32.to_be_bytes(),
            &[0; 4],
        ]
        .concat();
        assert_eq!(bytes[at..at + 32], expected);
        assert!(bytes[..at].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn changes_beyond_the_bound_are_written_early() {
        let folder = tempfile::tempdir().unwrap();
        let mut wheel = open(&folder);
        for number in 0..i64::try_from(HELD_BACK).unwrap() + 10 {
            wheel.add(NOW + number * 1000, number, 1).unwrap();
        }
        assert!(wheel.changed.len() < 20);
        assert_eq!(wheel.slot(NOW).unwrap().unwrap().last, 0);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Add(i64, bool),
        DeliverFirst,
        Reopen,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..700_000_i64, any::<bool>()).prop_map(|(ahead, normal)| Step::Add(ahead, normal)),
            3 => Just(Step::DeliverFirst),
            1 => Just(Step::Reopen),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_wheel_knows_what_waits_as_a_sorted_map_does(steps in vec(step(), 0..60)) {
            let folder = tempfile::tempdir().unwrap();
            let mut wheel = open(&folder);
            let mut model: BTreeMap<i64, (i64, i32)> = BTreeMap::new();
            let mut read = NOW;
            for (position, step) in (0_i64..).zip(steps) {
                match step {
                    Step::Add(ahead, normal) => {
                        let time = read + ahead * 1000;
                        let change = if normal { 1 } else { -1 };
                        wheel.add(time, position, change).unwrap();
                        let slot = model.entry(time).or_insert((position, 0));
                        *slot = (position, slot.1 + change);
                    }
                    Step::DeliverFirst => {
                        if let Some((time, _)) = model.pop_first() {
                            prop_assert_eq!(wheel.next(read), Some(time));
                            wheel.done(time).unwrap();
                            read = time + 1000;
                        }
                    }
                    Step::Reopen => {
                        wheel.write().unwrap();
                        wheel = open(&folder);
                        prop_assert!(wheel.wait_from(read).unwrap());
                    }
                }
                prop_assert_eq!(wheel.next(read), model.keys().next().copied());
                let count: i64 = model.values().map(|slot| i64::from(slot.1)).sum();
                prop_assert_eq!(wheel.count(), count);
            }
            for (time, (last, count)) in model {
                let slot = wheel.slot(time).unwrap().unwrap();
                prop_assert_eq!((slot.last, slot.count), (last, count));
            }
        }
    }

    #[test]
    fn a_wheel_of_another_precision_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timerwheel");
        for precision in [100, 500, 2000] {
            let mut wheel = Wheel::open(&path, precision, Space::default()).unwrap();
            wheel.add(NOW, 0, 1).unwrap();
            wheel.write().unwrap();
            let mut wheel = open(&folder);
            assert!(!wheel.wait_from(NOW).unwrap(), "{precision}");
            wheel.clear().unwrap();
        }
    }
}
