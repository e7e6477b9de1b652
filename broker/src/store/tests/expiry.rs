//! Expiry: what goes, when, and what readers notice of it. Time is the clock's; a file's age is set on the file.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use bindery_remoting::{Clock, ManualClock};
use chrono::{Local, TimeZone};

use super::*;

/// A store on a clock that shows noon, with some full files of the log; and how many messages they hold.
struct Aged {
    folder: tempfile::TempDir,
    store: Store,
    clock: ManualClock,
    space: Space,
    count: i64,
}

const HOUR: Duration = Duration::from_hours(1);

fn noon() -> i64 {
    let noon = Local.with_ymd_and_hms(2030, 6, 15, 12, 0, 0).unwrap();
    noon.timestamp_millis()
}

fn aged_config(folder: &tempfile::TempDir, clock: Clock, space: &Space) -> StoreConfig {
    let mut config = small(folder.path());
    config.clock = clock;
    config.space = space.clone();
    config.expiry.pause = Duration::ZERO;
    config
}

fn aged() -> Aged {
    let folder = tempfile::tempdir().unwrap();
    let (clock, hands) = Clock::manual(noon());
    let space = Space::switchable();
    space.set_used(10);
    let store = started(aged_config(&folder, clock, &space));
    let mut count = 0;
    while store.stats().max_physical_offset.0 < 4 * 4096 + 2000 {
        let text = format!("KEYS\u{1}k{count}\u{2}");
        let queue_id = i32::try_from(count % 2).unwrap();
        let message = message("T", queue_id, b"a body of some length", text.as_bytes());
        store.append(&message).unwrap();
        count += 1;
    }
    store.flush_now().unwrap();
    let aged = Aged {
        folder,
        store,
        clock: hands,
        space,
        count,
    };
    aged.date(0);
    aged
}

fn log_files(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path().join("commitlog")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

impl Aged {
    /// Dates every file of the log so many hours before the clock's time.
    fn date(&self, hours: u64) {
        let now = u64::try_from(self.store.config().clock.now_millis()).unwrap();
        let then = UNIX_EPOCH + Duration::from_millis(now) - HOUR * u32::try_from(hours).unwrap();
        for path in log_files(&self.folder) {
            fs::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(then)
                .unwrap();
        }
    }

    fn first(&self) -> i64 {
        self.store.stats().min_physical_offset.0
    }

    fn read(&self, queue_id: i32, from: i64) -> ReadResult {
        let limits = ReadLimits::messages(32);
        self.store
            .read("T", queue_id, offset(from), limits, &Everything)
    }
}

#[test]
fn expired_files_go_in_the_hour_for_it_and_never_the_current_one() {
    let aged = aged();
    aged.date(100);
    assert_eq!(aged.store.clean(), Cleaned::default(), "noon is not 04");
    aged.clock.advance(HOUR * 16);
    let cleaned = aged.store.clean();
    assert_eq!(cleaned.log_files, 4, "{cleaned:?}");
    assert!(
        cleaned.queue_files > 0 && cleaned.index_files > 0,
        "{cleaned:?}"
    );
    assert_eq!(aged.store.stats().min_physical_offset.0, 4 * 4096);
    assert_eq!(
        aged.store.clean(),
        Cleaned::default(),
        "the rest is current"
    );
}

#[test]
fn files_younger_than_the_reserved_time_stay() {
    let aged = aged();
    aged.date(60);
    aged.clock.advance(HOUR * 11);
    aged.store.delete_expired_soon();
    assert_eq!(aged.store.clean(), Cleaned::default(), "71 hours");
    aged.clock.advance(HOUR);
    assert_eq!(aged.store.clean().log_files, 4, "72 hours");
}

#[test]
fn queues_begin_where_the_log_begins_and_offsets_below_are_moved() {
    let aged = aged();
    aged.date(100);
    aged.store.delete_expired_soon();
    assert_eq!(aged.store.clean().log_files, 4);
    let mut left = 0;
    for queue_id in [0, 1] {
        let (min, max) = (
            aged.store.min_offset("T", queue_id).0,
            aged.store.max_offset("T", queue_id).0,
        );
        assert!(0 < min && min < max, "{min} {max}");
        let below = aged.read(queue_id, min - 1);
        assert_eq!(
            (below.status, below.next.0),
            (ReadStatus::OffsetTooSmall, min)
        );
        let read = drain_from(&aged.store, queue_id, min);
        assert_eq!(read.len(), usize::try_from(max - min).unwrap());
        assert!(read[0].physical_offset.0 >= aged.first());
        let earliest = aged.store.earliest_time("T", queue_id);
        assert_eq!(earliest, read[0].store_timestamp);
        let by_time = aged.store.offset_by_time("T", queue_id, 0, Boundary::Lower);
        assert_eq!(by_time.0, min);
        left += max - min;
    }
    assert!(left < aged.count);
    assert!(
        aged.store
            .query("T", "k0", 10, 0, i64::MAX)
            .records
            .is_empty()
    );
    let newest = format!("k{}", aged.count - 1);
    assert_eq!(
        aged.store
            .query("T", &newest, 10, 0, i64::MAX)
            .records
            .len(),
        1
    );
}

fn drain_from(store: &Store, queue_id: i32, mut from: i64) -> Vec<StoredMessage> {
    let mut found = Vec::new();
    while from < store.max_offset("T", queue_id).0 {
        let limits = ReadLimits::messages(32);
        let read = store.read("T", queue_id, offset(from), limits, &Everything);
        assert!(read.next.0 > from, "{read:?}");
        from = read.next.0;
        let decoded = read
            .messages
            .iter()
            .map(|bytes| record::decode(bytes).unwrap().0);
        found.extend(decoded);
    }
    found
}

#[test]
fn what_a_reader_holds_stays_readable_after_its_file_is_gone() {
    let aged = aged();
    let held = aged.read(0, 0);
    let before: Vec<Vec<u8>> = held.messages.iter().map(|bytes| bytes.to_vec()).collect();
    aged.date(100);
    aged.store.delete_expired_soon();
    assert_eq!(aged.store.clean().log_files, 4);
    assert!(
        !aged
            .folder
            .path()
            .join("commitlog")
            .join("0".repeat(20))
            .exists()
    );
    assert_eq!(held.messages, before);
}

#[test]
fn a_volume_that_fills_up_lets_expired_files_go_at_any_hour_and_then_all() {
    let aged = aged();
    aged.date(100);
    aged.space.set_used(75);
    assert_eq!(aged.store.clean(), Cleaned::default(), "75 is allowed");
    aged.space.set_used(76);
    assert_eq!(aged.store.clean().log_files, 4);

    let aged = self::aged();
    aged.space.set_used(85);
    assert_eq!(aged.store.clean(), Cleaned::default(), "none has expired");
    aged.space.set_used(86);
    assert_eq!(
        aged.store.clean().log_files,
        4,
        "age does not count any more"
    );
}

#[test]
fn above_the_warning_level_sends_are_refused_reads_go_on_and_room_ends_it() {
    let aged = aged();
    aged.space.set_used(91);
    aged.store.clean();
    assert!(!aged.store.is_writable());
    let end = aged.store.stats().max_physical_offset;
    let refused = aged.store.append(&message("T", 0, b"x", b"")).unwrap_err();
    assert!(
        matches!(refused, AppendError::VolumeFull { limit: 90 }),
        "{refused}"
    );
    assert_eq!(aged.store.stats().max_physical_offset, end);
    let min = aged.store.min_offset("T", 0).0;
    assert_eq!(aged.read(0, min).status, ReadStatus::Found);
    aged.space.set_used(90);
    aged.store.append(&message("T", 0, b"x", b"")).unwrap();
    assert!(aged.store.is_writable());
}

#[test]
fn a_round_deletes_at_most_a_batch() {
    let aged = aged();
    let Aged {
        folder,
        store,
        clock,
        space,
        ..
    } = aged;
    store.shutdown().unwrap();
    let clock_handle = store.config().clock.clone();
    drop(store);
    let mut config = aged_config(&folder, clock_handle, &space);
    config.expiry.batch = 3;
    let store = started(config);
    clock.advance(HOUR * 1000);
    store.delete_expired_soon();
    assert_eq!(store.clean().log_files, 3);
    assert_eq!(store.clean().log_files, 1);
}

#[test]
fn a_store_without_its_first_files_opens_with_the_rest_and_rebuilds_the_same_queues() {
    let aged = aged();
    aged.date(100);
    aged.store.delete_expired_soon();
    aged.store.clean();
    let (start, end) = (aged.first(), aged.store.stats().max_physical_offset);
    let bounds =
        |store: &Store| [0, 1].map(|id| (store.min_offset("T", id).0, store.max_offset("T", id).0));
    let before = bounds(&aged.store);
    let Aged {
        folder,
        store,
        space,
        ..
    } = aged;
    store.shutdown().unwrap();
    let clock = store.config().clock.clone();
    drop(store);
    let store = started(aged_config(&folder, clock.clone(), &space));
    assert_eq!(store.stats().min_physical_offset.0, start);
    assert_eq!(store.stats().max_physical_offset, end);
    assert_eq!(bounds(&store), before);
    store.shutdown().unwrap();
    drop(store);
    fs::remove_dir_all(folder.path().join("consumequeue")).unwrap();
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    let store = started(aged_config(&folder, clock, &space));
    assert_eq!(
        bounds(&store),
        before,
        "rebuilt from what is left of the log"
    );
}

#[test]
fn a_drained_queue_is_removed_on_request_and_others_are_not() {
    let aged = aged();
    let Aged {
        folder,
        store,
        space,
        ..
    } = aged;
    store.shutdown().unwrap();
    let clock = store.config().clock.clone();
    drop(store);
    // A topic that is old as a whole: all its messages lie in the first files.
    let other = tempfile::tempdir().unwrap();
    drop(folder);
    let store = started(aged_config(&other, clock, &space));
    for topic in ["Old", "Kept"] {
        store.append(&message(topic, 0, b"x", b"")).unwrap();
    }
    while store.stats().max_physical_offset.0 < 3 * 4096 {
        store.append(&message("T", 0, &[b'x'; 500], b"")).unwrap();
    }
    store.flush_now().unwrap();
    assert_eq!(store.remove_drained_queues(|_| false).unwrap(), 0);
    space.set_used(86);
    assert!(store.clean().log_files > 0);
    assert_eq!(
        (store.min_offset("Old", 0).0, store.max_offset("Old", 0).0),
        (1, 1),
        "an empty queue keeps its number"
    );
    assert_eq!(
        store
            .remove_drained_queues(|topic| topic == "Kept")
            .unwrap(),
        1
    );
    let mut topics = store.topics();
    topics.sort();
    assert_eq!(topics, ["Kept", "T"]);
    assert!(!other.path().join("consumequeue/Old").exists());
    store.append(&message("Old", 0, b"again", b"")).unwrap();
    assert_eq!(bodies(&store, "Old", 0), [b"again"]);
}

#[test]
fn deletion_goes_on_while_messages_come_and_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let space = Space::switchable();
    let mut config = aged_config(&folder, Clock::system(), &space);
    config.flush = FlushPolicy::Sync;
    space.set_used(86);
    let store = started(config);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..2000_u32 {
                let body = n.to_be_bytes();
                store.append(&message("T", 0, &body, b"")).unwrap();
            }
        });
        let store = &store;
        let cleaner = scope.spawn(move || {
            while !writer.is_finished() {
                store.clean();
            }
        });
        let mut next = 0;
        while next < 2000 {
            let read = store.read("T", 0, offset(next), ReadLimits::messages(32), &Everything);
            for bytes in &read.messages {
                let (message, _) = record::decode(bytes).unwrap();
                let n = u32::from_be_bytes(message.body[..].try_into().unwrap());
                assert_eq!(i64::from(n), message.queue_offset.0);
            }
            next = read.next.0.max(next);
            std::thread::yield_now();
        }
        cleaner.join().unwrap();
    });
}
