//! Stops that were no stops: dropped stores, torn logs, lost queues.

use std::fs;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;

use super::*;

fn fill(store: &Store, count: usize) -> Vec<Vec<u8>> {
    let sent: Vec<_> = (0..count)
        .map(|n| format!("body {n} {}", "x".repeat(n * 13 % 300)).into_bytes())
        .collect();
    for (n, body) in sent.iter().enumerate() {
        let properties = format!("KEYS\u{1}k{n}\u{2}TAGS\u{1}t{}\u{2}", n % 3);
        store
            .append(&message("T", 0, body, properties.as_bytes()))
            .unwrap();
    }
    sent
}

#[test]
fn a_dropped_store_has_every_message_when_it_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut sent = Vec::new();
    for round in 0..5 {
        let store = started(small(folder.path()));
        assert_eq!(bodies(&store, "T", 0), sent, "round {round}");
        sent.extend(fill(&store, 40));
        drop(store);
        assert!(folder.path().join("abort").exists());
    }
    let store = started(small(folder.path()));
    assert_eq!(bodies(&store, "T", 0), sent);
    assert_eq!(store.query("T", "k39", 64, 0, i64::MAX).records.len(), 5);
    store.shutdown().unwrap();
    assert!(!folder.path().join("abort").exists());
}

#[test]
fn queues_behind_the_log_are_made_up_for_without_doubles() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    let sent = fill(&store, 100);
    store.shutdown().unwrap();
    drop(store);
    fs::write(folder.path().join("abort"), "1").unwrap();
    // 60 of the 100 entries are on disk.
    let queue = folder.path().join("consumequeue/T/0");
    let cut = fs::OpenOptions::new()
        .write(true)
        .open(queue.join(format!("{:020}", 1200)))
        .unwrap();
    cut.write_all_at(&[0; 400], 0).unwrap();
    fs::remove_file(queue.join(format!("{:020}", 1600))).unwrap();
    let store = started(small(folder.path()));
    assert_eq!(store.max_offset("T", 0).0, 100);
    assert_eq!(bodies(&store, "T", 0), sent);
}

#[test]
fn deleted_queues_and_index_are_rebuilt_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    fill(&store, 300);
    store.shutdown().unwrap();
    drop(store);
    let root = folder.path();
    let before = (contents(root, "consumequeue"), contents(root, "index"));
    fs::remove_dir_all(root.join("consumequeue")).unwrap();
    fs::remove_dir_all(root.join("index")).unwrap();
    let store = started(small(root));
    store.shutdown().unwrap();
    assert!(before == (contents(root, "consumequeue"), contents(root, "index")));
}

#[test]
fn a_file_of_another_size_is_an_error_and_an_empty_last_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    let sent = fill(&store, 20);
    store.shutdown().unwrap();
    drop(store);
    let next = folder
        .path()
        .join("commitlog")
        .join(format!("{:020}", 4096 * 9));
    fs::write(&next, "").unwrap();
    assert_eq!(bodies(&started(small(folder.path())), "T", 0), sent);
    assert!(!next.exists());
    let mut other = small(folder.path());
    other.commit_log_file_size = 8192;
    assert!(matches!(
        Store::open(other, Arc::new(NoArrivals)),
        Err(StoreError::FileLength { .. })
    ));
}

#[test]
fn what_was_cut_off_never_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    let ends: Vec<_> = (0..10)
        .map(|n| {
            store
                .append(&message("T", 0, &[b'0' + n; 50], b""))
                .unwrap()
                .end
                .0
        })
        .collect();
    drop(store);
    // The fourth body is damaged: it and all behind it are cut, though records of the same size follow.
    let log = fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("commitlog").join("0".repeat(20)))
        .unwrap();
    log.write_all_at(b"?", u64::try_from(ends[2]).unwrap() + 90)
        .unwrap();
    let store = started(small(folder.path()));
    assert_eq!(
        store
            .append(&message("T", 0, &[b'n'; 50], b""))
            .unwrap()
            .queue_offset
            .0,
        3
    );
    drop(store);
    let store = started(small(folder.path()));
    let expected = [[b'0'; 50], [b'1'; 50], [b'2'; 50], [b'n'; 50]];
    assert_eq!(bodies(&store, "T", 0), expected);
}

#[test]
fn a_cut_log_takes_the_keys_of_lost_messages_out_of_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    let put = |n: usize| {
        let properties = format!("KEYS\u{1}k{n}\u{2}");
        store
            .append(&message("T", 0, &[b'x'; 50], properties.as_bytes()))
            .unwrap()
            .physical_offset
            .0
    };
    let places: Vec<_> = (0..20).map(put).collect();
    store.shutdown().unwrap();
    drop(store);
    let log = fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("commitlog").join("0".repeat(20)))
        .unwrap();
    log.write_all_at(b"?", u64::try_from(places[10]).unwrap() + 90)
        .unwrap();
    let store = started(small(folder.path()));
    let found = |store: &Store, key: &str| store.query("T", key, 32, 0, i64::MAX).records.len();
    assert_eq!(
        (
            found(&store, "k9"),
            found(&store, "k10"),
            found(&store, "k15")
        ),
        (1, 0, 0)
    );
    store
        .append(&message("T", 0, b"new", b"KEYS\x01k15\x02"))
        .unwrap();
    assert_eq!(found(&store, "k15"), 1);
}

#[test]
fn a_deleted_topic_stays_deleted_whatever_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    fill(&store, 60);
    store.append(&message("U", 0, b"other", b"")).unwrap();
    store.delete_topic("T").unwrap();
    drop(store);
    let gone = |store: &Store| {
        assert_eq!(store.topics(), ["U"]);
        assert_eq!(
            (store.max_offset("T", 0).0, store.max_offset("U", 0).0),
            (0, 1)
        );
    };
    // The last stop was unclean, and the checkpoint vouches for nothing: the whole log is dispatched again.
    let store = started(small(folder.path()));
    gone(&store);
    store.shutdown().unwrap();
    drop(store);
    fs::remove_dir_all(folder.path().join("consumequeue")).unwrap();
    let store = started(small(folder.path()));
    gone(&store);
    let again = store.append(&message("T", 0, b"new", b"")).unwrap();
    assert_eq!(again.queue_offset.0, 0);
    drop(store);
    let store = started(small(folder.path()));
    assert_eq!(
        bodies(&store, "T", 0),
        [b"new"],
        "what came after the deletion is there"
    );
}

#[test]
fn a_deletion_cut_short_by_a_crash_is_finished_by_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    fill(&store, 60);
    store.bury_topic("T").unwrap();
    drop(store);
    let store = started(small(folder.path()));
    assert_eq!(store.topics(), Vec::<String>::new());
    assert!(!folder.path().join("consumequeue/T").exists());
}

#[test]
fn a_topic_made_anew_keeps_its_new_messages_over_a_crash() {
    // How many messages the first topic and the second had; some fill several queue files.
    for (old, new) in [(3, 1), (100, 1), (100, 25), (3, 60), (41, 40)] {
        let folder = tempfile::tempdir().unwrap();
        let store = started(small(folder.path()));
        fill(&store, old);
        store.delete_topic("T").unwrap();
        let mut sent = fill(&store, new);
        drop(store);
        for lost in [false, true] {
            if lost {
                // The entries themselves never reached the disk.
                fs::remove_dir_all(folder.path().join("consumequeue")).unwrap();
            }
            let store = started(small(folder.path()));
            assert_eq!(bodies(&store, "T", 0), sent, "{old} {new} {lost}");
            let next = store.append(&message("T", 0, b"next", b"")).unwrap();
            assert_eq!(usize::try_from(next.queue_offset.0).unwrap(), sent.len());
            sent.push(b"next".to_vec());
            store.shutdown().unwrap();
            fs::write(folder.path().join("abort"), "1").unwrap();
        }
        let store = started(small(folder.path()));
        assert_eq!(bodies(&store, "T", 0), sent);
    }
}

#[test]
fn entries_cut_off_with_the_log_do_not_return_once_the_log_has_grown() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    let put = |n: u8| {
        let sent = store.append(&message("T", 0, &[b'0' + n; 50], b""));
        sent.unwrap().physical_offset.0
    };
    let places: Vec<_> = (0..10).map(put).collect();
    store.shutdown().unwrap();
    drop(store);
    let log = fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("commitlog").join("0".repeat(20)))
        .unwrap();
    log.write_all_at(b"?", u64::try_from(places[3]).unwrap() + 90)
        .unwrap();
    let store = started(small(folder.path()));
    let expected = [[b'0'; 50], [b'1'; 50], [b'2'; 50]];
    assert_eq!(bodies(&store, "T", 0), expected);
    for _ in 0..20 {
        store.append(&message("U", 0, &[b'u'; 50], b"")).unwrap();
    }
    store.shutdown().unwrap();
    drop(store);
    let store = started(small(folder.path()));
    assert_eq!(bodies(&store, "T", 0), expected);
    assert_eq!(store.max_offset("T", 0).0, 3);
}

#[test]
fn keys_of_files_older_than_the_scan_are_found_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (clock, time) = bindery_remoting::Clock::manual(1_000_000);
    let config = || {
        let mut config = small(folder.path());
        config.clock = clock.clone();
        config
    };
    // One index file, not full, over several files of the log; a checkpoint that vouches for all but the newest of them.
    let store = started(config());
    for n in 0..90 {
        let properties = format!("KEYS\u{1}k{n}\u{2}");
        store
            .append(&message("T", 0, &[b'x'; 200], properties.as_bytes()))
            .unwrap();
        time.advance(Duration::from_secs(1));
    }
    store.shutdown().unwrap();
    drop(store);
    let place = |store: &Store, n: usize| {
        let found = store.query("T", &format!("k{n}"), 32, 0, i64::MAX).records;
        assert_eq!(found.len(), 1, "k{n}");
    };
    for stop in ["crash", "crash again", "clean"] {
        let store = started(config());
        (0..90).for_each(|n| place(&store, n));
        store.append(&message("T", 0, b"one more", b"")).unwrap();
        if stop == "clean" {
            store.shutdown().unwrap();
        }
    }
    assert_eq!(contents(folder.path(), "index").len(), 1);
    (0..90).for_each(|n| place(&started(config()), n));
}

#[test]
fn a_store_opened_on_a_full_volume_gives_no_offset_twice() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    let mut sent = fill(&store, 60);
    drop(store);
    // The entries of the queue never reached the disk, and the index needs a new file.
    assert!(!folder.path().join("consumequeue").exists());
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    let mut config = small(folder.path());
    config.space = Space::switchable();
    let space = config.space.clone();
    space.set_full(true);
    let store = started(config);
    let refused = store.append(&message("T", 0, b"no", b""));
    assert!(matches!(
        refused,
        Err(AppendError::Store(StoreError::Full { .. }))
    ));
    space.set_full(false);
    let appended = store.append(&message("T", 0, b"yes", b"")).unwrap();
    assert_eq!(appended.queue_offset.0, 60);
    sent.push(b"yes".to_vec());
    assert_eq!(bodies(&store, "T", 0), sent);
    assert_eq!(store.query("T", "k59", 32, 0, i64::MAX).records.len(), 1);
}

#[test]
fn a_queue_damaged_after_a_clean_stop_is_built_again() {
    // Which bytes of the first of three queue files become what.
    for (at, len, byte) in [
        (0, 60, 0),
        (0, 20, 0xFF),
        (0, 40, 0x5A),
        (0, 400, 0),
        (0, 400, 0xFF),
        (200, 200, 0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = started(small(folder.path()));
        let mut sent = fill(&store, 50);
        store.append(&message("U", 0, b"other", b"")).unwrap();
        store.shutdown().unwrap();
        drop(store);
        let queue = folder.path().join("consumequeue/T/0");
        let before = contents(folder.path(), "consumequeue");
        let file = fs::OpenOptions::new()
            .write(true)
            .open(queue.join("0".repeat(20)))
            .unwrap();
        file.write_all_at(&vec![byte; len], at).unwrap();
        let store = Store::open(small(folder.path()), Arc::new(NoArrivals)).unwrap();
        assert_eq!(bodies(&store, "T", 0), sent, "{at} {len} {byte}");
        drop(store);
        assert!(
            before == contents(folder.path(), "consumequeue"),
            "{at} {len} {byte}"
        );
        // A crash came while the queue was built: some of its entries are there, and what was put aside.
        fs::create_dir(folder.path().join("consumequeue/T/0.damaged")).unwrap();
        fs::remove_file(queue.join(format!("{:020}", 800))).unwrap();
        let store = started(small(folder.path()));
        assert_eq!(bodies(&store, "T", 0), sent);
        let next = store.append(&message("T", 0, b"next", b"")).unwrap();
        assert_eq!(next.queue_offset.0, 50);
        sent.push(b"next".to_vec());
        store.shutdown().unwrap();
        drop(store);
        assert!(!folder.path().join("consumequeue/T/0.damaged").exists());
        let store = started(small(folder.path()));
        assert_eq!(bodies(&store, "T", 0), sent);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_torn_tail_recovers_to_a_prefix(
        lengths in proptest::collection::vec(0_usize..700, 1..40), cut in 0.0_f64..1.0, zeros: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let store = started(small(folder.path()));
        let sent: Vec<_> = lengths.iter().enumerate().map(|(n, len)| vec![u8::try_from(n).unwrap(); *len]).collect();
        let ends: Vec<_> = sent.iter().map(|body| store.append(&message("T", 0, body, b"")).unwrap().end.0).collect();
        let end = store.stats().max_physical_offset.0;
        drop(store);
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "any position will do")]
        let cut = (cut * end as f64) as i64;
        // From the cut on everything is lost: zeros, or what some other use of the disk left.
        let file = cut / 4096 * 4096;
        for base in (file..end).step_by(4096) {
            let path = folder.path().join("commitlog").join(format!("{base:020}"));
            let from = (cut - base).max(0);
            let rest = vec![if zeros { 0 } else { 0x5A }; usize::try_from(4096 - from).unwrap()];
            let log = fs::OpenOptions::new().write(true).open(path).unwrap();
            log.write_all_at(&rest, u64::try_from(from).unwrap()).unwrap();
        }
        let store = started(small(folder.path()));
        let seen = bodies(&store, "T", 0);
        prop_assert!(sent.starts_with(&seen));
        // Whatever was complete before the cut is there.
        prop_assert!(seen.len() >= ends.iter().filter(|end| **end <= cut).count());
        let next = store.append(&message("T", 0, b"next", b"")).unwrap().queue_offset.0;
        prop_assert_eq!(usize::try_from(next).unwrap(), seen.len());
        store.shutdown().unwrap();
    }
}
