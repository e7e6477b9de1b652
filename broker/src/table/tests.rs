#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
use bindery_protocol::bodies::TopicConfig;

use super::*;

fn table(dir: &Path) -> ConfigTable<TopicConfig> {
    ConfigTable::open(dir, Durability::Process).unwrap()
}

fn topic(name: &str, queues: i32) -> TopicConfig {
    TopicConfig::new(name, queues, 6)
}

#[test]
fn a_change_is_there_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let before = table(dir.path());
    before.put(topic("A", 1), 1).unwrap();
    before.put(topic("B", 2), 2).unwrap();
    before.remove("A", 3).unwrap();
    drop(before);
    let after = table(dir.path());
    assert!(after.entry("A").is_none());
    assert_eq!(after.entry("B").unwrap().write_queue_nums, 2);
}

#[test]
fn a_written_file_leaves_no_journal_lines_behind() {
    let dir = tempfile::tempdir().unwrap();
    let before = table(dir.path());
    before.put(topic("A", 1), 1).unwrap();
    before.persist().unwrap();
    assert_eq!(
        std::fs::read(dir.path().join("topics.json.journal")).unwrap(),
        b""
    );
    assert!(!dir.path().join("topics.json.journal.1").exists());
    let after = table(dir.path());
    assert_eq!(after.entry("A").unwrap().write_queue_nums, 1);
    assert_eq!(after.version().counter, 1);
}

#[test]
fn lines_put_aside_by_a_write_that_failed_are_read_before_the_newer_ones() {
    let dir = tempfile::tempdir().unwrap();
    let before = table(dir.path());
    before.put(topic("A", 1), 1).unwrap();
    before.write().journal.set_aside().unwrap();
    before.put(topic("A", 2), 2).unwrap();
    before.write().journal.set_aside().unwrap();
    before.put(topic("A", 3), 3).unwrap();
    drop(before);
    assert_eq!(table(dir.path()).entry("A").unwrap().write_queue_nums, 3);
}

#[test]
fn a_line_cut_off_by_a_crash_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let before = table(dir.path());
    before.put(topic("A", 1), 1).unwrap();
    before.put(topic("B", 1), 1).unwrap();
    drop(before);
    let path = dir.path().join("topics.json.journal");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    let after = table(dir.path());
    assert!(after.entry("A").is_some() && after.entry("B").is_none());
    after.put(topic("C", 1), 1).unwrap();
    drop(after);
    assert!(table(dir.path()).entry("C").is_some());
}

#[test]
fn an_equal_entry_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let table = table(dir.path());
    table.put(topic("A", 1), 1).unwrap();
    table.put(topic("A", 1), 2).unwrap();
    assert_eq!(table.version().counter, 1);
    let (_, made) = table.entry_or_make("A", 3, || topic("A", 9)).unwrap();
    assert!(!made);
    assert_eq!(table.entries().len(), 1);
}
