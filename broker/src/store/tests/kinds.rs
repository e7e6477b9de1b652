//! Records and queues of other kinds: long topics, IPv6 hosts, batches in one record, light queues.

use std::fs;
use std::net::Ipv6Addr;

use bindery_protocol::message::property;

use super::*;

fn light(folder: &tempfile::TempDir) -> StoreConfig {
    let mut config = small(folder.path());
    config.batch_queue_file_size = 460;
    config.light_queues = Some(3);
    config
}

fn pair(name: &str, value: &str) -> String {
    format!("{name}\u{1}{value}\u{2}")
}

fn inner_batch<'a>(topic: &'a str, body: &'a [u8], properties: &'a str) -> NewMessage<'a> {
    NewMessage {
        sys_flag: SysFlag::NEED_UNWRAP.with(SysFlag::INNER_BATCH),
        ..message(topic, 0, body, properties.as_bytes())
    }
}

/// What the queues of a store hold, in a form that can be compared.
fn everything(store: &Store) -> Vec<(String, i32, i64, i64, Vec<i64>)> {
    let mut all = Vec::new();
    for topic in store.topics() {
        for id in store.queue_ids(&topic) {
            let (min, max) = (
                store.min_offset(&topic, id).0,
                store.max_offset(&topic, id).0,
            );
            let records = drain(store, &topic, id);
            let places = records
                .iter()
                .map(|record| record.physical_offset.0)
                .collect();
            all.push((topic.clone(), id, min, max, places));
        }
    }
    all
}

#[test]
fn long_topics_and_ipv6_hosts_come_back_over_an_unclean_stop() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    let long = format!("%RETRY%{}", "g".repeat(240));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 1234));
    for n in 0..40_u8 {
        let body = [n; 50];
        let new = NewMessage {
            born_host: v6,
            store_host: if n % 2 == 0 {
                v6
            } else {
                SocketAddr::from(HOST)
            },
            ..message(&long, 0, &body, b"KEYS\x01key\x02")
        };
        store.append(&new).unwrap();
    }
    let before = drain(&store, &long, 0);
    assert_eq!(
        (before.len(), before[0].born_host, before[0].store_host),
        (40, v6, v6)
    );
    assert_eq!(before[0].offset_msg_id().len(), 56, "an IPv6 id");
    assert_eq!(before[1].offset_msg_id().len(), 32);
    drop(store);
    let store = started(small(folder.path()));
    assert_eq!(drain(&store, &long, 0), before);
    assert_eq!(store.query(&long, "key", 64, 0, i64::MAX).records.len(), 40);
}

#[test]
fn an_inner_batch_is_one_record_with_as_many_offsets_as_messages() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(light(&folder));
    let mut base = 0;
    for n in 0..30_i64 {
        let count = n % 4 + 1;
        let spoofed =
            pair(property::INNER_BASE, "77") + &pair(property::INNER_NUM, &count.to_string());
        let appended = store.append(&inner_batch("B", b"chain", &spoofed)).unwrap();
        assert_eq!(appended.queue_offset.0, base);
        assert_eq!(appended.count, usize::try_from(count).unwrap());
        base += count;
    }
    assert_eq!(
        (store.min_offset("B", 0).0, store.max_offset("B", 0).0),
        (0, base)
    );
    let record = &drain(&store, "B", 0)[1];
    assert_eq!(record.properties.get(property::INNER_BASE), Some("1"));
    assert_eq!(record.queue_offset.0, 1);
    // An offset in the middle of a batch gives the whole of it: bases are 0, 1, 3, 6, 10.
    let read = store.read("B", 0, offset(5), ReadLimits::messages(7), &Everything);
    let bases = |read: &ReadResult| -> Vec<i64> {
        let messages = read.messages.iter();
        messages
            .map(|bytes| record::decode(bytes).unwrap().0.queue_offset.0)
            .collect()
    };
    assert_eq!((bases(&read), read.next.0), (vec![3, 6], 10));
    let before = everything(&store);
    drop(store);
    let store = started(light(&folder));
    assert_eq!(everything(&store), before, "after an unclean stop");
    store.shutdown().unwrap();
    drop(store);
    let files = contents(folder.path(), "batchconsumequeue");
    assert!(files.len() > 2);
    for folders in [
        &["batchconsumequeue"][..],
        &["batchconsumequeue", "consumequeue", "index"],
    ] {
        // As the broker has it: the table of topics tells that there are batch topics.
        fs::create_dir_all(folder.path().join("config")).unwrap();
        fs::write(
            folder.path().join("config/topics.json"),
            "{\"queue.type\":\"BatchCQ\"}",
        )
        .unwrap();
        for name in folders {
            crate::store::consume_queue::remove_folder(&folder.path().join(name)).unwrap();
        }
        let store = started(light(&folder));
        assert_eq!(everything(&store), before, "rebuilt without {folders:?}");
        store.shutdown().unwrap();
        drop(store);
        assert!(
            contents(folder.path(), "batchconsumequeue") == files,
            "{folders:?}"
        );
    }
    let store = started(light(&folder));
    let next = store
        .append(&inner_batch("B", b"c", &pair(property::INNER_NUM, "2")))
        .unwrap();
    assert_eq!(next.queue_offset.0, base);
    for bad in ["0", "-1", "40000", "two"] {
        let refused = store.append(&inner_batch("B", b"c", &pair(property::INNER_NUM, bad)));
        assert!(matches!(refused, Err(AppendError::Batch)), "{bad}");
    }
    store.delete_topic("B").unwrap();
    assert_eq!(store.max_offset("B", 0).0, 0);
    assert!(!folder.path().join("batchconsumequeue/B").exists());
}

#[test]
fn a_time_in_a_batch_queue_is_the_offset_of_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (clock, hands) = bindery_remoting::Clock::manual(1_000_000);
    let mut config = light(&folder);
    config.clock = clock;
    let store = started(config);
    for _ in 0..3 {
        let two = pair(property::INNER_NUM, "2");
        store.append(&inner_batch("B", b"c", &two)).unwrap();
        hands.advance(Duration::from_secs(1));
    }
    let at = |time, boundary| store.offset_by_time("B", 0, time, boundary).0;
    assert_eq!(at(0, Boundary::Lower), 0);
    assert_eq!(at(1_001_000, Boundary::Lower), 2);
    assert_eq!(at(1_001_001, Boundary::Lower), 4);
    assert_eq!(at(1_009_000, Boundary::Lower), 6);
    assert_eq!(at(1_001_000, Boundary::Upper), 2);
    assert_eq!(at(1_001_999, Boundary::Upper), 2);
    assert_eq!(at(1_009_000, Boundary::Upper), 4);
    assert_eq!(store.earliest_time("B", 0), 1_000_000);
}

#[test]
fn light_queues_hold_an_entry_for_every_message_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(light(&folder));
    for n in 0..50_u8 {
        let names = if n % 3 == 0 {
            "%LMQ%a,%LMQ%b"
        } else {
            "%LMQ%b"
        };
        let text = pair(property::INNER_MULTI_DISPATCH, names)
            + &pair(property::INNER_MULTI_QUEUE_OFFSET, "99,99")
            + &pair("TAGS", "t");
        store
            .append(&message("T", 0, &[n], text.as_bytes()))
            .unwrap();
        store.append(&message("T", 1, &[n], b"")).unwrap();
    }
    let of_a = drain(&store, "%LMQ%a", 0);
    assert_eq!((of_a.len(), store.max_offset("%LMQ%b", 0).0), (17, 50));
    assert_eq!(of_a[2].topic, "T");
    assert_eq!(
        of_a[2].properties.get(property::INNER_MULTI_QUEUE_OFFSET),
        Some("2,6")
    );
    let before = everything(&store);
    drop(store);
    let store = started(light(&folder));
    assert_eq!(everything(&store), before, "after an unclean stop");
    store.shutdown().unwrap();
    drop(store);
    let files = contents(folder.path(), "consumequeue");
    fs::remove_dir_all(folder.path().join("consumequeue")).unwrap();
    let store = started(light(&folder));
    store.shutdown().unwrap();
    drop(store);
    assert!(
        contents(folder.path(), "consumequeue") == files,
        "rebuilt byte for byte"
    );
}

#[test]
fn l31_light_queues_with_impossible_names_and_too_many_of_them_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(light(&folder));
    let named = |names: &str| {
        let text = pair(property::INNER_MULTI_DISPATCH, names);
        store.append(&message("T", 0, b"x", text.as_bytes()))
    };
    named("%LMQ%a,%LMQ%b").unwrap();
    let end = store.stats().max_physical_offset;
    for bad in ["%LMQ%a/../x", "T", "%LMQ%a,,"] {
        assert!(
            matches!(named(bad), Err(AppendError::LightQueue { .. })),
            "{bad}"
        );
    }
    assert!(matches!(
        named("%LMQ%c,%LMQ%d"),
        Err(AppendError::TooManyLightQueues { most: 3 })
    ));
    assert_eq!(store.stats().max_physical_offset, end);
    named("%LMQ%c,%LMQ%a").unwrap();
    let mut folders: Vec<_> = store.topics();
    folders.sort();
    assert_eq!(folders, ["%LMQ%a", "%LMQ%b", "%LMQ%c", "T"]);
}

#[test]
fn a_light_queue_that_is_sent_to_itself_has_one_numbering() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(light(&folder));
    let text = pair(property::INNER_MULTI_DISPATCH, "%LMQ%a");
    std::thread::scope(|scope| {
        for topic in ["T", "%LMQ%a"] {
            let (store, text) = (&store, &text);
            scope.spawn(move || {
                for _ in 0..200 {
                    let properties = if topic == "T" { text.as_bytes() } else { b"" };
                    store.append(&message(topic, 0, b"x", properties)).unwrap();
                }
            });
        }
    });
    assert_eq!(store.max_offset("%LMQ%a", 0).0, 400);
    assert_eq!(drain(&store, "%LMQ%a", 0).len(), 400);
}
