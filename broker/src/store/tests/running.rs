//! A store at work: appending, reading, waiting for the disk, a full volume.

use std::sync::Mutex;

use super::*;

#[derive(Default)]
struct Seen(Mutex<Vec<(String, i32, i64, i64)>>);

impl Arrivals for Seen {
    fn arrived(&self, topic: &str, id: i32, after: QueueOffset, tags_code: i64, _: i64, _: &[u8]) {
        self.0
            .lock()
            .unwrap()
            .push((topic.to_owned(), id, after.0, tags_code));
    }
}

#[test]
fn messages_come_back_in_order_over_many_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    let sent: Vec<_> = (0..200).map(|n| vec![b'x'; n * 7 % 500]).collect();
    for (n, body) in sent.iter().enumerate() {
        let appended = store.append(&message("T", 1, body, b"")).unwrap();
        assert_eq!(appended.queue_offset.0, i64::try_from(n).unwrap());
    }
    assert_eq!(bodies(&store, "T", 1), sent);
    assert!(store.stats().max_physical_offset.0 > 4096 * 10);
    store.shutdown().unwrap();
    drop(store);
    let store = started(small(folder.path()));
    assert_eq!(bodies(&store, "T", 1), sent);
    assert_eq!(
        store
            .append(&message("T", 1, b"next", b""))
            .unwrap()
            .queue_offset
            .0,
        200
    );
}

#[test]
fn a_batch_gets_consecutive_offsets_and_its_ids() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    store.append(&message("T", 0, b"before", b"")).unwrap();
    let batch = [
        message("T", 0, b"a", b""),
        message("T", 0, b"b", b""),
        message("T", 0, b"c", b""),
    ];
    let appended = store.append_batch(&batch).unwrap();
    assert_eq!(
        (appended.queue_offset.0, appended.count, appended.more.len()),
        (1, 3, 2)
    );
    let read = drain(&store, "T", 0);
    let ids: Vec<_> = read[1..].iter().map(StoredMessage::offset_msg_id).collect();
    assert_eq!(
        appended.offset_msg_ids(SocketAddr::from(HOST)),
        ids.join(",")
    );
    let mixed = [message("T", 0, b"a", b""), message("T", 1, b"b", b"")];
    assert!(matches!(
        store.append_batch(&mixed),
        Err(AppendError::Batch)
    ));
    assert!(matches!(store.append_batch(&[]), Err(AppendError::Batch)));
}

#[test]
fn arrivals_are_told_with_the_offset_behind_the_message() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Arc::new(Seen::default());
    let store = Store::open(small(folder.path()), Arc::<Seen>::clone(&seen)).unwrap();
    store.start().unwrap();
    store
        .append(&message("T", 3, b"a", b"TAGS\x01TagA\x02"))
        .unwrap();
    store.append(&message("T", 3, b"b", b"")).unwrap();
    let expected = [("T".to_owned(), 3, 1, 2_598_919), ("T".to_owned(), 3, 2, 0)];
    assert_eq!(*seen.0.lock().unwrap(), expected);
}

#[test]
fn a_delayed_message_carries_its_due_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small(folder.path());
    (config.clock, _) = bindery_remoting::Clock::manual(1_000_000);
    let store = started(config);
    store
        .append(&message(
            "SCHEDULE_TOPIC_XXXX",
            2,
            b"a",
            b"DELAY\x013\x02TAGS\x01t\x02",
        ))
        .unwrap();
    store
        .append(&message(
            "SCHEDULE_TOPIC_XXXX",
            17,
            b"a",
            b"DELAY\x0199\x02",
        ))
        .unwrap();
    let due = |queue| {
        store
            .entry("SCHEDULE_TOPIC_XXXX", queue, offset(0))
            .unwrap()
            .tags_code
    };
    assert_eq!((due(2), due(17)), (1_010_000, 8_200_000));
}

#[test]
fn l02_refused_messages_leave_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small(folder.path());
    config.max_message_size = 100;
    let store = started(config);
    let end = store.stats().max_physical_offset;
    let long = vec![0; 101];
    assert!(matches!(
        store.append(&message("T", 0, &long, b"")),
        Err(AppendError::BodyTooLong { len: 101, max: 100 })
    ));
    let properties = vec![b'x'; 32_768];
    let refused = store.append(&message("T", 0, b"", &properties));
    assert!(matches!(
        refused,
        Err(AppendError::PropertiesTooLong { len: 32_768 })
    ));
    assert!(matches!(
        store.append(&message("T", 0, b"", &properties[..5000])),
        Err(AppendError::RecordTooLong { .. })
    ));
    for topic in ["", ".", "..", "a/b"] {
        assert!(
            matches!(
                store.append(&message(topic, 0, b"", b"")),
                Err(AppendError::Topic { .. })
            ),
            "{topic}"
        );
    }
    assert_eq!(store.stats().max_physical_offset, end);
    assert_eq!(
        store
            .append(&message("T", 0, b"fits", b""))
            .unwrap()
            .queue_offset
            .0,
        0
    );
}

#[test]
fn keys_find_their_messages() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    for n in 0..150 {
        let properties = format!("KEYS\u{1}k{} all\u{2}UNIQ_KEY\u{1}U{n}\u{2}", n % 10);
        store
            .append(&message(
                "T",
                0,
                format!("{n}").as_bytes(),
                properties.as_bytes(),
            ))
            .unwrap();
    }
    let found = |key, max| {
        let records = store.query("T", key, max, 0, i64::MAX).records;
        let body =
            |bytes| String::from_utf8(record::decode(bytes).unwrap().0.body.to_vec()).unwrap();
        records.iter().map(body).collect::<Vec<_>>()
    };
    assert_eq!(found("U77", 32), ["77"]);
    assert_eq!(found("k3", 32).len(), 15);
    assert_eq!(found("k3", 2), ["133", "143"]);
    assert_eq!(found("all", 1000).len(), 64);
    assert_eq!(found("none", 32), [""; 0]);
}

#[test]
fn sync_flush_answers_after_the_disk_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small(folder.path());
    config.flush = FlushPolicy::Sync;
    let store = started(config);
    for n in 0..20_i64 {
        let appended = store.append(&message("T", 0, b"body", b"")).unwrap();
        assert_eq!(durable(&store, appended.end), Durability::Stored);
        assert!(store.stats().flushed >= appended.end);
        assert_eq!(
            store.max_offset("T", 0).0,
            n + 1,
            "who was answered finds its message"
        );
    }
    store.shutdown().unwrap();
    assert_eq!(bodies(&store, "T", 0).len(), 20);
    let refused = store.append(&message("T", 0, b"late", b""));
    assert!(matches!(refused, Err(AppendError::Closed)));
}

#[test]
fn appends_from_many_threads_fill_every_queue_without_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..250 {
                    let queue = (thread + n) % 3;
                    store
                        .append(&message(
                            "T",
                            queue,
                            format!("{thread}-{n}").as_bytes(),
                            b"",
                        ))
                        .unwrap();
                }
            });
        }
    });
    let mut all: Vec<_> = (0..3).flat_map(|queue| drain(&store, "T", queue)).collect();
    assert_eq!(store.stats().dispatch_behind_bytes, 0);
    assert_eq!(all.len(), 1000);
    for queue in 0..3 {
        let offsets: Vec<_> = all
            .iter()
            .filter(|m| m.queue_id == queue)
            .map(|m| m.queue_offset.0)
            .collect();
        assert_eq!(
            offsets,
            (0..i64::try_from(offsets.len()).unwrap()).collect::<Vec<_>>()
        );
    }
    all.sort_by_key(|message| message.physical_offset);
    assert!(all.is_sorted_by_key(|message| message.store_timestamp));
}

#[test]
fn a_full_volume_refuses_sends_serves_reads_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small(folder.path());
    config.space = Space::switchable();
    let space = config.space.clone();
    let store = started(config);
    let body = vec![b'x'; 1000];
    store.append(&message("T", 0, &body, b"")).unwrap();
    space.set_full(true);
    let refused = loop {
        if let Err(error) = store.append(&message("T", 0, &body, b"")) {
            break error;
        }
    };
    assert!(
        matches!(refused, AppendError::Store(StoreError::Full { .. })),
        "{refused}"
    );
    let stored = bodies(&store, "T", 0).len();
    space.set_full(false);
    let appended = store.append(&message("T", 0, &body, b"")).unwrap();
    assert_eq!(appended.queue_offset.0, i64::try_from(stored).unwrap());
    store.shutdown().unwrap();
    drop(store);
    let store = started(small(folder.path()));
    assert_eq!(bodies(&store, "T", 0).len(), stored + 1);
}

#[test]
fn a_deleted_topic_starts_again_at_zero() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    for _ in 0..30 {
        store.append(&message("T", 0, b"old", b"")).unwrap();
    }
    store.append(&message("U", 0, b"other", b"")).unwrap();
    store.delete_topic("T").unwrap();
    assert_eq!(
        (store.max_offset("T", 0).0, store.topics()),
        (0, vec!["U".to_owned()])
    );
    assert_eq!(
        store
            .append(&message("T", 0, b"new", b""))
            .unwrap()
            .queue_offset
            .0,
        0
    );
    assert_eq!(bodies(&store, "T", 0), [b"new"]);
}

#[test]
fn the_limits_of_a_read_hold() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    for n in 0..100 {
        let tag = if n % 10 == 0 {
            "TAGS\u{1}ten\u{2}"
        } else {
            "TAGS\u{1}other\u{2}"
        };
        store
            .append(&message("T", 0, &[b'x'; 100], tag.as_bytes()))
            .unwrap();
    }
    let read = |from, limits| store.read("T", 0, offset(from), limits, &Everything);
    assert_eq!(read(0, ReadLimits::messages(5)).messages.len(), 5);
    let bytes = ReadLimits {
        messages: 32,
        bytes: 500,
    };
    assert_eq!(read(0, bytes).messages.len(), 2);
    let one = ReadLimits {
        messages: 32,
        bytes: 1,
    };
    assert_eq!(read(0, one).messages.len(), 1);
    // A queue file holds 20 entries, and a read stays within one.
    let across = read(15, ReadLimits::messages(32));
    assert_eq!((across.messages.len(), across.next.0), (5, 20));
    let ten = bindery_protocol::message::TagExpression::parse("ten").unwrap();
    let tagged = store.read("T", 0, offset(1), ReadLimits::messages(32), &ten);
    assert_eq!((tagged.messages.len(), tagged.next.0), (1, 20));
    assert_eq!(read(-1, one).status, ReadStatus::OffsetTooSmall);
    assert_eq!(
        store.read("X", 0, offset(0), one, &Everything).status,
        ReadStatus::NoMatchedLogicQueue
    );
}

#[test]
fn l04_a_second_store_on_the_folder_is_kept_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = started(small(folder.path()));
    let second = Store::open(small(folder.path()), Arc::new(NoArrivals));
    assert!(matches!(second, Err(StoreError::Locked { .. })));
    drop(store);
    Store::open(small(folder.path()), Arc::new(NoArrivals)).unwrap();
}
