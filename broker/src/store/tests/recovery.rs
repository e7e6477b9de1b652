//! Recovery, row by row of its rules (`CommitLog.recoverNormally`, `recoverAbnormally`, `ConsumeQueue.recover` of Apache
//! `RocketMQ` 5.3.3): where the log ends after what damage, and what queues and files are left.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::*;

/// A cleanly stopped store of some files, and where its records lie.
struct Stopped {
    folder: tempfile::TempDir,
    config: StoreConfig,
    /// First byte of each record.
    places: Vec<i64>,
    end: i64,
}

fn stopped() -> Stopped {
    let folder = tempfile::tempdir().unwrap();
    let config = small(folder.path());
    let store = started(config.clone());
    let mut places = Vec::new();
    for n in 0..40_u8 {
        let appended = store
            .append(&message("T", 0, &[n; 300], b"KEYS\x01k\x02"))
            .unwrap();
        places.push(appended.physical_offset.0);
    }
    let end = store.stats().max_physical_offset.0;
    store.shutdown().unwrap();
    Stopped {
        folder,
        config,
        places,
        end,
    }
}

impl Stopped {
    fn file(&self, physical: i64) -> (PathBuf, u64) {
        let name = format!("commitlog/{:020}", physical / 4096 * 4096);
        (
            self.folder.path().join(name),
            u64::try_from(physical % 4096).unwrap(),
        )
    }

    fn overwrite(&self, physical: i64, bytes: &[u8]) {
        let (path, at) = self.file(physical);
        let file = fs::File::options().write(true).open(path).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }

    fn flip(&self, physical: i64) {
        let (path, at) = self.file(physical);
        let byte = fs::read(path).unwrap()[usize::try_from(at).unwrap()];
        self.overwrite(physical, &[byte ^ 1]);
    }

    fn unclean(&self) {
        fs::write(self.folder.path().join("abort"), "1").unwrap();
    }

    /// Has the checkpoint vouch for nothing, so that an unclean start reads the whole log.
    fn forget_checkpoint(&self) {
        fs::remove_file(self.folder.path().join("checkpoint")).unwrap();
    }

    /// The end of the log and of the queue after a start.
    fn start(&self) -> (i64, i64) {
        let store = started(self.config.clone());
        let found = (
            store.stats().max_physical_offset.0,
            store.max_offset("T", 0).0,
        );
        assert_eq!(
            i64::try_from(drain(&store, "T", 0).len()).unwrap(),
            found.1 - store.min_offset("T", 0).0
        );
        let next = store.append(&message("T", 0, b"next", b"")).unwrap();
        assert_eq!(
            next.queue_offset.0, found.1,
            "the log goes on where it ends"
        );
        found
    }

    fn last(&self) -> i64 {
        self.places[39]
    }
}

/// Where a field of a record lies.
const TOTAL_SIZE: i64 = 0;
const MAGIC: i64 = 4;
const BODY: i64 = 88;

#[test]
fn a_store_in_order_ends_where_it_ended() {
    let stopped = stopped();
    assert_eq!(stopped.start(), (stopped.end, 40));
}

#[test]
fn every_kind_of_bad_record_ends_the_log_where_it_begins() {
    type Harm = fn(&Stopped);
    let harms: [(&str, Harm); 7] = [
        ("another magic", |store| {
            store.overwrite(store.last() + MAGIC, &[1, 2, 3, 4]);
        }),
        ("zeros", |store| store.overwrite(store.last(), &[0; 300])),
        ("a size behind the file", |store| {
            store.overwrite(store.last() + TOTAL_SIZE, &[0, 1, 0, 0]);
        }),
        ("a negative size", |store| {
            store.overwrite(store.last() + TOTAL_SIZE, &[0xFF; 4]);
        }),
        ("a size that its fields do not make up", |store| {
            store.overwrite(store.last() + TOTAL_SIZE + 3, &[200]);
        }),
        ("another body", |store| store.flip(store.last() + BODY)),
        ("a body as long as the file", |store| {
            store.overwrite(store.last() + 84, &[0, 0, 16, 0]);
        }),
    ];
    for (what, harm) in harms {
        for unclean in [false, true] {
            let stopped = stopped();
            harm(&stopped);
            if unclean {
                stopped.unclean();
            }
            // After a clean stop the file that holds the end of the queues is looked at all the same.
            assert_eq!(
                stopped.start(),
                (stopped.last(), 39),
                "{what}, unclean: {unclean}"
            );
        }
    }
}

#[test]
fn one_bad_record_takes_all_behind_it_away_and_the_files_they_lie_in() {
    let stopped = stopped();
    let bad = stopped.places[12];
    stopped.flip(bad + BODY);
    stopped.unclean();
    stopped.forget_checkpoint();
    assert_eq!(stopped.start(), (bad, 12));
    let left = fs::read_dir(stopped.folder.path().join("commitlog")).unwrap();
    let newest = left.map(|entry| entry.unwrap().file_name()).max().unwrap();
    // The file with the end, and the one made ahead of the next appends.
    assert!(newest.to_str().unwrap().parse::<i64>().unwrap() <= bad / 4096 * 4096 + 4096);
}

#[test]
fn a_bad_record_in_an_older_file_goes_unnoticed_after_a_clean_stop() {
    let stopped = stopped();
    stopped.flip(stopped.places[2] + BODY);
    assert_eq!(stopped.start(), (stopped.end, 40));
}

#[test]
fn without_crc_checks_another_body_goes_unnoticed() {
    let mut stopped = stopped();
    stopped.flip(stopped.last() + BODY);
    stopped.config.check_crc_on_recover = false;
    assert_eq!(stopped.start(), (stopped.end, 40));
}

#[test]
fn properties_are_not_covered_by_the_crc() {
    let stopped = stopped();
    stopped.flip(stopped.end - 2);
    stopped.unclean();
    assert_eq!(stopped.start(), (stopped.end, 40));
}

#[test]
fn rubbish_behind_the_end_is_no_record() {
    for unclean in [false, true] {
        let stopped = stopped();
        stopped.overwrite(
            stopped.end,
            &[0, 0, 1, 44, 0x12, 0x34, 0x56, 0x78, 0, 0, 0, 1],
        );
        if unclean {
            stopped.unclean();
        }
        assert_eq!(stopped.start(), (stopped.end, 40), "unclean: {unclean}");
    }
}

#[test]
fn a_blank_without_a_file_behind_it_ends_the_log_and_is_overwritten() {
    let stopped = stopped();
    let whole_files = stopped.end / 4096 * 4096;
    fs::remove_file(stopped.file(stopped.end).0).unwrap();
    let kept = stopped
        .places
        .iter()
        .filter(|place| **place < whole_files)
        .count();
    let size = stopped.places[1] - stopped.places[0];
    let end = stopped.places[kept - 1] + size;
    assert_eq!(stopped.start(), (end, i64::try_from(kept).unwrap()));
}

#[test]
fn an_empty_log_leaves_no_queue() {
    for unclean in [false, true] {
        let stopped = stopped();
        fs::remove_dir_all(stopped.folder.path().join("commitlog")).unwrap();
        if unclean {
            stopped.unclean();
        }
        let store = Store::open(stopped.config.clone(), Arc::new(NoArrivals)).unwrap();
        assert_eq!(store.topics(), Vec::<String>::new());
        assert!(store.query("T", "k", 10, 0, i64::MAX).records.is_empty());
        drop(store);
        assert_eq!(stopped.start(), (0, 0), "unclean: {unclean}");
    }
}

#[test]
fn a_missing_file_in_the_middle_is_an_error_that_names_the_gap() {
    let stopped = stopped();
    fs::remove_file(stopped.file(4096).0).unwrap();
    let error = Store::open(stopped.config.clone(), Arc::new(NoArrivals)).unwrap_err();
    assert!(
        matches!(&error, StoreError::Gap { path } if path.ends_with("00000000000000008192")),
        "{error}"
    );
}

#[test]
fn l01_queue_entries_behind_the_log_are_rebuilt_before_clients_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small(folder.path());
    config.flush = FlushPolicy::Sync;
    config.consume_queue_file_size = 2400;
    let store = started(config.clone());
    let sent: Vec<_> = (0..100).map(|n| format!("body {n}").into_bytes()).collect();
    let mut end = PhysicalOffset(0);
    for body in &sent {
        end = store.append(&message("T", 0, body, b"")).unwrap().end;
    }
    assert_eq!(durable(&store, end), Durability::Stored);
    store.shutdown().unwrap();
    drop(store);
    // Power failed: sixty entries had reached the disk.
    let queue = folder.path().join("consumequeue/T/0/00000000000000000000");
    let file = fs::File::options().write(true).open(queue).unwrap();
    file.write_all_at(&[0; 40 * 20], 60 * 20).unwrap();
    fs::write(folder.path().join("abort"), "1").unwrap();
    fs::remove_file(folder.path().join("checkpoint")).unwrap();
    let store = Store::open(config, Arc::new(NoArrivals)).unwrap();
    assert_eq!(store.max_offset("T", 0).0, 100);
    assert_eq!(bodies(&store, "T", 0), sent);
}

#[test]
fn l04_a_lock_file_that_nobody_holds_keeps_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lock"), "lock").unwrap();
    let store = started(small(folder.path()));
    let second = Store::open(small(folder.path()), Arc::new(NoArrivals)).unwrap_err();
    assert!(matches!(second, StoreError::Locked { .. }), "{second}");
    assert!(second.to_string().contains("in use by another broker"));
    drop(store);
    started(small(folder.path()));
}
