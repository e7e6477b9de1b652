//! Whole stores under test: what is appended comes back, over clean and unclean stops, and Apache's stores open here.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod expiry;
mod fuzz;
mod golden;
mod kinds;
mod recovery;
mod restart;
mod running;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bindery_protocol::message::record::{self, StoredMessage};
use bindery_protocol::message::{NewMessage, PhysicalOffset, QueueOffset, SysFlag};

use super::*;

pub(super) const HOST: ([u8; 4], u16) = ([127, 0, 0, 1], 10911);

/// Small files, so that a few messages fill several.
pub(super) fn small(root: &Path) -> StoreConfig {
    let mut config = StoreConfig::new(root, SocketAddr::from(HOST));
    config.commit_log_file_size = 4096;
    config.consume_queue_file_size = 400;
    config.max_hash_slot_num = 64;
    config.max_index_num = 100;
    config.max_message_size = 60_000;
    config
}

/// Opens and starts.
pub(super) fn started(config: StoreConfig) -> Store {
    let store = Store::open(config, Arc::new(NoArrivals)).unwrap();
    store.start().unwrap();
    store
}

pub(super) fn message<'a>(
    topic: &'a str,
    queue_id: i32,
    body: &'a [u8],
    properties: &'a [u8],
) -> NewMessage<'a> {
    NewMessage {
        topic,
        queue_id,
        flag: 0,
        sys_flag: SysFlag(0),
        born_timestamp: 1,
        born_host: SocketAddr::from(HOST),
        store_host: SocketAddr::from(HOST),
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body,
        properties,
    }
}

/// All messages of a queue, read to its end.
pub(super) fn drain(store: &Store, topic: &str, queue_id: i32) -> Vec<StoredMessage> {
    let mut messages = Vec::new();
    let mut from = store.min_offset(topic, queue_id);
    while from < store.max_offset(topic, queue_id) {
        let read = store.read(topic, queue_id, from, ReadLimits::messages(32), &Everything);
        assert!(read.next > from, "{read:?}");
        from = read.next;
        messages.extend(
            read.messages
                .iter()
                .map(|bytes| record::decode(bytes).unwrap().0),
        );
    }
    messages
}

pub(super) fn bodies(store: &Store, topic: &str, queue_id: i32) -> Vec<Vec<u8>> {
    drain(store, topic, queue_id)
        .into_iter()
        .map(|message| message.body.to_vec())
        .collect()
}

/// Waits until everything before `end` is durable.
pub(super) fn durable(store: &Store, end: PhysicalOffset) -> Durability {
    let (sender, receiver) = mpsc::channel();
    store.when_durable(
        end,
        Box::new(move |durability| sender.send(durability).unwrap()),
    );
    receiver.recv_timeout(Duration::from_secs(10)).unwrap()
}

pub(super) fn offset(offset: i64) -> QueueOffset {
    QueueOffset(offset)
}

/// Every file below a folder with its content, by path; index files under their number instead of their time.
pub(super) fn contents(root: &Path, folder: &str) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut folders = vec![root.join(folder)];
    while let Some(dir) = folders.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        for (number, path) in entries.into_iter().enumerate() {
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                let name = if folder == "index" {
                    format!("index/{number}")
                } else {
                    name
                };
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}
