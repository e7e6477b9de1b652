//! Damage of every kind to every file of a store: whatever it is, a start ends with an error that says what is wrong, or with
//! every record that lies before the damage. Never with a panic or without end.
//!
//! A short run is part of every test run; `FUZZ_SECONDS=600 cargo test -p bindery-broker fuzz` makes it a long one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bindery_protocol::message::property;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::*;

/// Tries in a test run that asks for no time.
const TRIES: u32 = 48;

/// What happens to a file.
#[derive(Debug, Clone)]
enum Harm {
    Flip(Index, u8),
    Zero(Index, u16),
    Noise(Index, Vec<u8>),
    Number(Index, i64),
    Cut(Index),
    Grow(u16),
    Remove,
    Empty,
    TakeFrom(Index),
}

#[derive(Debug, Clone)]
struct Damage {
    file: Index,
    harm: Harm,
}

fn damage() -> impl Strategy<Value = Damage> {
    let numbers = prop_oneof![
        Just(0),
        Just(-1),
        Just(i64::MAX),
        Just(i64::MIN),
        any::<i64>(),
        0..400_000_i64
    ];
    let harm = prop_oneof![
        8 => (any::<Index>(), 1..=255_u8).prop_map(|(at, bits)| Harm::Flip(at, bits)),
        4 => (any::<Index>(), 1..2000_u16).prop_map(|(at, len)| Harm::Zero(at, len)),
        4 => (any::<Index>(), prop::collection::vec(any::<u8>(), 1..100))
            .prop_map(|(at, bytes)| Harm::Noise(at, bytes)),
        8 => (any::<Index>(), numbers).prop_map(|(at, number)| Harm::Number(at, number)),
        1 => any::<Index>().prop_map(Harm::Cut),
        1 => (1..5000_u16).prop_map(Harm::Grow),
        1 => Just(Harm::Remove),
        1 => Just(Harm::Empty),
        1 => any::<Index>().prop_map(Harm::TakeFrom),
    ];
    (any::<Index>(), harm).prop_map(|(file, harm)| Damage { file, harm })
}

type Files = BTreeMap<String, Vec<u8>>;

/// A store with some of everything, as files, and its records by place.
struct Original {
    files: Files,
    records: BTreeMap<i64, Vec<u8>>,
    file_size: i64,
}

fn config(root: &Path) -> StoreConfig {
    let mut config = small(root);
    config.batch_queue_file_size = 460;
    config.light_queues = Some(1000);
    config
}

fn original() -> Original {
    let folder = tempfile::tempdir().unwrap();
    let store = started(config(folder.path()));
    let mut ends = Vec::new();
    for n in 0..150_u32 {
        let body = vec![b'b'; usize::try_from(n * 11 % 300).unwrap()];
        let queue_id = i32::try_from(n % 2).unwrap();
        let mut text = format!("UNIQ_KEY\u{1}U{n}\u{2}KEYS\u{1}k{n} all\u{2}TAGS\u{1}t\u{2}");
        if n % 10 == 3 {
            text += "INNER_MULTI_DISPATCH\u{1}%LMQ%a,%LMQ%b\u{2}";
        }
        let mut new = message("T", queue_id, &body, text.as_bytes());
        let inner = format!("{}\u{1}3\u{2}", property::INNER_NUM);
        if n % 7 == 5 {
            new = message("B", 0, &body, inner.as_bytes());
            new.sys_flag = SysFlag::NEED_UNWRAP.with(SysFlag::INNER_BATCH);
        } else if n % 13 == 4 {
            new = message("SCHEDULE_TOPIC_XXXX", 1, &body, b"DELAY\x012\x02");
        } else if n % 17 == 4 {
            new = message("Gone", 0, &body, b"KEYS\x01gone\x02");
        }
        ends.push(store.append(&new).unwrap().physical_offset.0);
        if n == 100 {
            store.delete_topic("Gone").unwrap();
        }
    }
    let records = ends.iter().map(|at| {
        let bytes = store.message_at(PhysicalOffset(*at)).unwrap();
        (*at, bytes.to_vec())
    });
    let records = records.collect();
    store.shutdown().unwrap();
    drop(store);
    let mut files = Files::new();
    collect(folder.path(), folder.path(), &mut files);
    Original {
        files,
        records,
        file_size: 4096,
    }
}

fn collect(root: &Path, dir: &Path, files: &mut Files) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// Does the damage; gives back the first byte of the commit log that it touches.
fn harm(files: &mut Files, damages: &[Damage]) -> i64 {
    let mut first = i64::MAX;
    for Damage { file, harm } in damages {
        let names: Vec<String> = files.keys().cloned().collect();
        if names.is_empty() {
            return first;
        }
        let name = file.get(&names);
        let other = match harm {
            Harm::TakeFrom(other) => files[other.get(&names)].clone(),
            _ => Vec::new(),
        };
        let Some(bytes) = files.get_mut(name) else {
            continue;
        };
        let len = bytes.len();
        let place = |at: &Index| if len == 0 { 0 } else { at.index(len) };
        let from = match harm {
            Harm::Flip(at, _) | Harm::Zero(at, _) | Harm::Noise(at, _) | Harm::Number(at, _) => {
                place(at)
            }
            Harm::Cut(at) => place(at),
            Harm::Grow(_) => len,
            Harm::Remove | Harm::Empty | Harm::TakeFrom(_) => 0,
        };
        match harm {
            Harm::Flip(_, bits) => bytes
                .iter_mut()
                .skip(from)
                .take(1)
                .for_each(|byte| *byte ^= bits),
            Harm::Zero(_, count) => bytes
                .iter_mut()
                .skip(from)
                .take(usize::from(*count))
                .for_each(|byte| *byte = 0),
            Harm::Noise(_, noise) => bytes
                .iter_mut()
                .skip(from)
                .zip(noise)
                .for_each(|(byte, new)| *byte = *new),
            Harm::Number(_, number) => bytes
                .iter_mut()
                .skip(from)
                .zip(number.to_be_bytes())
                .for_each(|(byte, new)| *byte = new),
            Harm::Cut(_) => bytes.truncate(from),
            Harm::Grow(more) => bytes.resize(len + usize::from(*more), 0xEE),
            Harm::Empty => bytes.clear(),
            Harm::TakeFrom(_) => *bytes = other,
            Harm::Remove => drop(files.remove(name)),
        }
        if let Some(base) = name
            .strip_prefix("commitlog/")
            .and_then(|base| base.parse::<i64>().ok())
        {
            first = first.min(base + i64::try_from(from).unwrap());
        }
    }
    first
}

/// Opens what the damage left and holds it against the original.
fn judge(original: &Original, damages: &[Damage], unclean: bool) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let mut files = original.files.clone();
    let first = harm(&mut files, damages);
    if unclean {
        files.insert("abort".into(), Vec::new());
    }
    for (name, bytes) in &files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let store = match Store::open(config(folder.path()), Arc::new(NoArrivals)) {
        Ok(store) => store,
        Err(
            StoreError::FileLength { .. } | StoreError::Gap { .. } | StoreError::Unreadable { .. },
        ) => {
            return Ok(());
        }
        Err(error) => {
            return Err(TestCaseError::fail(format!(
                "{error}: {:?}",
                std::error::Error::source(&error)
            )));
        }
    };
    store
        .start()
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    let end = store.stats().max_physical_offset.0;
    for (at, bytes) in &original.records {
        let behind = at + i64::try_from(bytes.len()).unwrap();
        // A file that is emptied as the last one, or missing at the front, took its records with it.
        let there = store.stats().min_physical_offset.0 <= *at;
        if behind <= first && there {
            prop_assert!(
                end >= behind,
                "the log ends at {end}, record {at} to {behind} is lost"
            );
            let read = store.message_at(PhysicalOffset(*at));
            prop_assert_eq!(read.as_deref(), Some(&bytes[..]), "record at {}", at);
        }
    }
    ask_everything(&store)?;
    let next = store.append(&message("T", 0, b"after the damage", b"KEYS\x01after\x02"));
    let next = next.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let read = store.read(
        "T",
        0,
        next.queue_offset,
        ReadLimits::messages(1),
        &Everything,
    );
    prop_assert_eq!(read.messages.len(), 1, "{:?}", read.status);
    store.clean();
    store
        .shutdown()
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    drop(store);
    let store = Store::open(config(folder.path()), Arc::new(NoArrivals))
        .map_err(|error| TestCaseError::fail(format!("the second time: {error}")))?;
    prop_assert_eq!(
        store.message_at(next.physical_offset).is_some(),
        true,
        "what came after the damage"
    );
    prop_assert!(original.file_size > 0);
    Ok(())
}

/// Every kind of question, of every queue.
fn ask_everything(store: &Store) -> Result<(), TestCaseError> {
    for topic in store.topics() {
        for id in store.queue_ids(&topic) {
            let (min, max) = (
                store.min_offset(&topic, id).0,
                store.max_offset(&topic, id).0,
            );
            prop_assert!(0 <= min && min <= max, "{topic} {id}: {min} {max}");
            let mut from = min;
            let mut steps = 0;
            while from < max && steps < 2000 {
                let read = store.read(
                    &topic,
                    id,
                    offset(from),
                    ReadLimits::messages(32),
                    &Everything,
                );
                prop_assert!(
                    read.next.0 > from,
                    "{topic} {id} stands still at {from} of {max}: {read:?}"
                );
                from = read.next.0;
                steps += 1;
            }
            for time in [i64::MIN, 0, 1, i64::MAX] {
                for boundary in [Boundary::Lower, Boundary::Upper] {
                    let found = store.offset_by_time(&topic, id, time, boundary).0;
                    prop_assert!(min <= found.max(min) && found <= max, "{topic} {id}");
                }
            }
            _ = store.earliest_time(&topic, id);
        }
        for key in ["k1", "all", "U9"] {
            drop(store.query(&topic, key, 64, i64::MIN, i64::MAX));
        }
    }
    Ok(())
}

#[test]
fn fuzz_any_damage_to_any_file_ends_with_an_error_or_all_records_before_it() {
    let original = original();
    let seconds = std::env::var("FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let strategy = (prop::collection::vec(damage(), 1..6), any::<bool>());
    let mut tries = 0_u32;
    loop {
        let mut runner = TestRunner::new(Config {
            cases: TRIES,
            failure_persistence: None,
            ..Config::default()
        });
        let run = runner.run(&strategy, |(damages, unclean)| {
            judge(&original, &damages, unclean)
        });
        if let Err(error) = run {
            panic!("{error}");
        }
        tries += TRIES;
        if until.is_none_or(|until| Instant::now() >= until) {
            break;
        }
    }
    println!("{tries} damaged stores");
}
