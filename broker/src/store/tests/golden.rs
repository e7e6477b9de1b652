//! Stores written by Apache `RocketMQ` 5.3.3 (`tests/golden/store`) open here, with everything that is in them.

use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bindery_protocol::message::{TagExpression, id};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::*;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/store/");

/// A fresh copy of a golden store.
struct Golden {
    _folder: tempfile::TempDir,
    root: PathBuf,
    expected: Value,
}

fn golden(name: &str) -> Golden {
    let packed = fs::File::open(format!("{FOLDER}{name}.tar.zst")).unwrap();
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(packed)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    tar::Archive::new(&bytes[..]).unpack(folder.path()).unwrap();
    let expected: Value =
        serde_json::from_slice(&fs::read(format!("{FOLDER}expected.json")).unwrap()).unwrap();
    Golden {
        root: folder.path().join(name),
        _folder: folder,
        expected: expected[name].clone(),
    }
}

fn config(root: &Path) -> StoreConfig {
    let mut config = small(root);
    config.commit_log_file_size = 65_536;
    config.batch_queue_file_size = 920;
    config.light_queues = Some(100);
    config
}

fn open(golden: &Golden) -> Store {
    Store::open(config(&golden.root), Arc::new(NoArrivals)).unwrap()
}

fn list<'a>(golden: &'a Golden, name: &str) -> &'a Vec<Value> {
    golden.expected[name].as_array().unwrap()
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

fn queue(value: &Value) -> (&str, i32) {
    (
        value["topic"].as_str().unwrap(),
        i32::try_from(int(&value["queueId"])).unwrap(),
    )
}

/// How many messages; a batch counts as many as it holds.
fn count(records: &[StoredMessage]) -> i64 {
    let inner = |record: &StoredMessage| {
        record
            .properties
            .get("INNER_NUM")
            .map(|n| n.parse().unwrap())
    };
    records
        .iter()
        .map(|record| inner(record).unwrap_or(1))
        .sum()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat()
}

fn check_message(store: &Store, expected: &Value) {
    let physical = PhysicalOffset(int(&expected["physOffset"]));
    let bytes = store.message_at(physical).unwrap();
    let (read, size) = record::decode(&bytes).unwrap();
    assert_eq!(
        i64::try_from(size).unwrap(),
        int(&expected["size"]),
        "{expected}"
    );
    assert_eq!(
        (read.topic.as_str(), read.queue_id),
        queue(expected),
        "{expected}"
    );
    assert_eq!(
        read.queue_offset.0,
        int(&expected["queueOffset"]),
        "{expected}"
    );
    assert_eq!(read.physical_offset, physical, "{expected}");
    assert_eq!(i64::from(read.flag), int(&expected["flag"]), "{expected}");
    assert_eq!(
        i64::from(read.sys_flag.0),
        int(&expected["sysFlag"]),
        "{expected}"
    );
    assert_eq!(
        i64::from(read.body_crc),
        int(&expected["bodyCRC"]),
        "{expected}"
    );
    assert_eq!(read.tags(), expected["tags"].as_str(), "{expected}");
    assert_eq!(read.keys(), expected["keys"].as_str(), "{expected}");
    assert_eq!(read.uniq_key(), expected["uniqKey"].as_str(), "{expected}");
    assert_eq!(
        read.offset_msg_id(),
        expected["offsetMsgId"].as_str().unwrap(),
        "{expected}"
    );
    assert_eq!(
        id::parse_offset_msg_id(&read.offset_msg_id()).unwrap().1,
        physical
    );
    assert_eq!(
        read.born_timestamp,
        int(&expected["bornTimestamp"]),
        "{expected}"
    );
    assert_eq!(
        read.store_timestamp,
        int(&expected["storeTimestamp"]),
        "{expected}"
    );
    assert_eq!(
        i64::from(read.born_host.port()),
        int(&expected["bornPort"]),
        "{expected}"
    );
    assert_eq!(
        read.store_host.to_string(),
        expected["storeHost"].as_str().unwrap(),
        "{expected}"
    );
    assert_eq!(
        i64::from(read.reconsume_times),
        int(&expected["reconsumeTimes"]),
        "{expected}"
    );
    assert_eq!(
        read.prepared_transaction_offset,
        int(&expected["preparedTransactionOffset"]),
        "{expected}"
    );
    assert_eq!(
        sha256(&read.body),
        expected["storedBodySha256"].as_str().unwrap(),
        "{expected}"
    );
    assert_eq!(
        sha256(&read.decompressed_body().unwrap()),
        expected["bodySha256"].as_str().unwrap(),
        "{expected}"
    );
    let mut properties: Vec<_> = read.properties.iter().collect();
    properties.sort_unstable();
    let mut wanted: Vec<_> = expected["properties"].as_object().unwrap().iter().collect();
    wanted.sort_unstable_by_key(|(name, _)| name.as_str());
    let wanted: Vec<_> = wanted
        .into_iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect();
    assert_eq!(properties, wanted, "{expected}");
}

fn check_everything(golden: &Golden, store: &Store) {
    assert_eq!(
        store.stats().max_physical_offset.0,
        int(&golden.expected["maxPhysOffset"])
    );
    assert_eq!(store.stats().dispatch_behind_bytes, 0);
    for expected in list(golden, "messages") {
        check_message(store, expected);
    }
    for expected in list(golden, "queues") {
        let (topic, id) = queue(expected);
        let bounds = (store.min_offset(topic, id).0, store.max_offset(topic, id).0);
        assert_eq!(
            bounds,
            (int(&expected["minOffset"]), int(&expected["maxOffset"])),
            "{expected}"
        );
        assert_eq!(
            count(&drain(store, topic, id)),
            bounds.1 - bounds.0,
            "{expected}"
        );
    }
    check_searches(golden, store);
    check_pulls(golden, store);
}

fn check_searches(golden: &Golden, store: &Store) {
    for expected in list(golden, "offsetByTime") {
        let (topic, id) = queue(expected);
        let boundary = if expected["boundary"] == "UPPER" {
            Boundary::Upper
        } else {
            Boundary::Lower
        };
        let found = store.offset_by_time(topic, id, int(&expected["timestamp"]), boundary);
        assert_eq!(found.0, int(&expected["offset"]), "{expected}");
    }
    for expected in list(golden, "queryByKey") {
        let (topic, key) = (
            expected["topic"].as_str().unwrap(),
            expected["key"].as_str().unwrap(),
        );
        let found = store.query(topic, key, 64, 0, i64::MAX);
        assert_eq!(
            physical_offsets(&found.records),
            expected["physOffsets"],
            "{expected}"
        );
    }
}

fn check_pulls(golden: &Golden, store: &Store) {
    for expected in list(golden, "pulls") {
        let (topic, id) = queue(expected);
        let filter = TagExpression::parse(expected["expression"].as_str().unwrap()).unwrap();
        let limits = ReadLimits::messages(usize::try_from(int(&expected["maxMsgNums"])).unwrap());
        let read = store.read(topic, id, offset(int(&expected["offset"])), limits, &filter);
        let fields = |name: &str| {
            expected["extFields"][name]
                .as_str()
                .unwrap()
                .parse::<i64>()
                .unwrap()
        };
        assert_eq!(
            physical_offsets(&read.messages),
            expected["physOffsets"],
            "{expected}"
        );
        assert_eq!(
            i64::try_from(read.bytes).unwrap(),
            int(&expected["bodyLength"]),
            "{expected}"
        );
        assert_eq!(read.next.0, fields("nextBeginOffset"), "{expected}");
        assert_eq!(
            (read.min.0, read.max.0),
            (fields("minOffset"), fields("maxOffset")),
            "{expected}"
        );
        let remark = match read.status {
            ReadStatus::Found => "FOUND",
            ReadStatus::NoMatchedMessage => "NO_MATCHED_MESSAGE",
            ReadStatus::OffsetOverflowOne => "OFFSET_OVERFLOW_ONE",
            ReadStatus::OffsetOverflowBadly => "OFFSET_OVERFLOW_BADLY",
            other => panic!("{other:?}: {expected}"),
        };
        assert_eq!(remark, expected["remark"], "{expected}");
    }
}

fn physical_offsets(records: &[bytes::Bytes]) -> Value {
    let offset = |bytes| record::decode(bytes).unwrap().0.physical_offset.0;
    records.iter().map(offset).collect::<Vec<_>>().into()
}

#[test]
fn the_clean_store_opens_with_everything_in_it() {
    let golden = golden("clean");
    check_everything(&golden, &open(&golden));
}

#[test]
fn the_crashed_store_opens_with_everything_in_it() {
    let golden = golden("crash");
    check_everything(&golden, &open(&golden));
}

#[test]
fn a_started_and_stopped_store_opens_the_same_again() {
    for name in ["clean", "crash"] {
        let golden = golden(name);
        let store = started(config(&golden.root));
        store.shutdown().unwrap();
        drop(store);
        assert!(!golden.root.join("abort").exists());
        check_everything(&golden, &open(&golden));
    }
}

fn apply(root: &Path, change: &Value) {
    let path = root.join(change["file"].as_str().unwrap());
    if change["remove"] == true {
        fs::remove_dir_all(path).unwrap();
    } else if let Some(text) = change["create"].as_str() {
        fs::write(path, text).unwrap();
    } else {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let at = u64::try_from(int(&change["offset"])).unwrap();
        let bytes = if let Some(hex) = change["bytes"].as_str() {
            let digits = (0..hex.len()).step_by(2);
            digits
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect()
        } else if let Some(count) = change["zeros"].as_u64() {
            vec![0; usize::try_from(count).unwrap()]
        } else {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            vec![byte[0] ^ u8::try_from(int(&change["xor"])).unwrap()]
        };
        file.write_all_at(&bytes, at).unwrap();
    }
}

fn index_names(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join("index")) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn every_damaged_store_recovers_as_apache_recovers_it() {
    for name in ["clean", "crash"] {
        let cases = list(&golden(name), "recoveryCases").clone();
        for case in cases {
            let golden = golden(name);
            let names = index_names(&golden.root);
            for change in case["changes"].as_array().unwrap() {
                apply(&golden.root, change);
            }
            let store = started(config(&golden.root));
            assert_eq!(
                store.stats().max_physical_offset.0,
                int(&case["maxPhysOffset"]),
                "{case}"
            );
            store.shutdown().unwrap();
            drop(store);
            let kept = index_names(&golden.root)
                .iter()
                .filter(|name| names.contains(name))
                .count();
            assert_eq!(
                i64::try_from(kept).unwrap(),
                int(&case["indexFilesKept"]),
                "{case}"
            );
            let again = open(&golden);
            assert_eq!(
                again.stats().max_physical_offset.0,
                int(&case["maxPhysOffset"]),
                "again: {case}"
            );
        }
    }
}

const DERIVED: [&str; 3] = ["consumequeue", "batchconsumequeue", "index"];

/// Removes some derived folders of the clean store and compares what a start makes of it with all that was there.
fn rebuilt_without(removed: &[&str]) {
    let golden = golden("clean");
    let before = DERIVED.map(|folder| contents(&golden.root, folder));
    for folder in removed {
        fs::remove_dir_all(golden.root.join(folder)).unwrap();
    }
    let store = started(config(&golden.root));
    store.shutdown().unwrap();
    for (folder, before) in DERIVED.iter().zip(before) {
        let after = contents(&golden.root, folder);
        let names = (
            after.keys().collect::<Vec<_>>(),
            before.keys().collect::<Vec<_>>(),
        );
        assert_eq!(names.0, names.1, "{folder} without {removed:?}");
        for (name, bytes) in &after {
            let mut both = bytes.iter().zip(&before[name]);
            let differs = both.position(|(ours, apaches)| ours != apaches);
            assert_eq!(
                differs, None,
                "{name} differs at this byte without {removed:?}"
            );
        }
    }
}

#[test]
fn queues_and_index_rebuilt_from_the_log_are_apaches() {
    rebuilt_without(&DERIVED);
    rebuilt_without(&["consumequeue", "index"]);
    rebuilt_without(&["batchconsumequeue"]);
}

#[test]
fn expired_files_of_the_clean_store_go_as_apache_lets_them_go() {
    let golden = golden("clean");
    let case = &golden.expected["deletionCase"];
    let old = std::time::SystemTime::now() - std::time::Duration::from_hours(5 * 24);
    for file in case["expiredFiles"].as_array().unwrap() {
        let path = golden.root.join(file.as_str().unwrap());
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(old).unwrap();
    }
    let mut config = config(&golden.root);
    config.space = Space::switchable();
    config.space.set_used(10);
    let store = started(config);
    store.delete_expired_soon();
    assert_eq!(store.clean().log_files, 2);
    let min = int(&case["minPhysOffset"]);
    assert_eq!(store.stats().min_physical_offset.0, min);
    for (queue, files) in case["queueFilesLeft"].as_object().unwrap() {
        let dir = golden.root.join("consumequeue").join(queue);
        let mut left: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(Value::from(left), *files, "{queue}");
    }
    let mut left = index_names(&golden.root);
    left.sort();
    assert_eq!(Value::from(left), case["indexFilesLeft"]);
    for expected in case["queues"].as_array().unwrap() {
        let (topic, id) = queue(expected);
        let bounds = (store.min_offset(topic, id).0, store.max_offset(topic, id).0);
        let wanted = (int(&expected["minOffset"]), int(&expected["maxOffset"]));
        assert_eq!(bounds, wanted, "{expected}");
        if bounds.0 > 0 {
            let below = offset(bounds.0 - 1);
            let read = store.read(topic, id, below, ReadLimits::messages(1), &Everything);
            assert_eq!(
                (read.status, read.next.0),
                (ReadStatus::OffsetTooSmall, bounds.0)
            );
        }
    }
}
