//! Opening a store: which files there are, where the commit log really ends, and what queues and index lack of it.
//!
//! ```text
//! abort? ─▶ commit log files ─▶ consume queues ─▶ checkpoint ─▶ index (rebuild: what the scan misses) ─▶ scan from a
//! safe file:
//!    good record ─▶ dispatched if the queues may lack it       first bad byte ─▶ the log ends here, the rest is cut
//! ```
//! The rules are those of Apache `RocketMQ` 5.3.3 (`CommitLog.recoverNormally`, `recoverAbnormally`); there is no repair
//! beyond cutting.

use std::sync::atomic::Ordering;

use bindery_protocol::message::RecordView;
use bindery_protocol::message::record::{MAGIC_V1, MAGIC_V2, RecordError};
use tracing::{info, warn};

use super::batch_queues::BatchQueues;
use super::checkpoint::Checkpoint;
use super::commit_log::Recovered;
use super::config::StoreConfig;
use super::deleted::Deleted;
use super::dispatch::Derived;
use super::error::StoreError;
use super::index::{Distrusted, Index};
use super::index_file::Shape;
use super::json_file::sync_folder;
use super::mapped_file::MappedFile;
use super::mistrust;
use super::queue_files::{QueueFiles, data_files};
use super::queues::Queues;
use super::rebuild;

/// How the last stop was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastStop {
    /// In order.
    Clean,
    /// The file `abort` was there.
    Unclean,
}

/// A store's parts after recovery.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) log: Recovered,
    pub(super) derived: Derived,
    pub(super) checkpoint: Checkpoint,
    /// Offset from which on dispatch goes on.
    pub(super) dispatched: i64,
}

/// Loads all files and recovers.
pub(super) fn open(config: &StoreConfig, last_stop: LastStop) -> Result<Opened, StoreError> {
    let mut files = load_log(config)?;
    let (queues, lost_batches) = load_queues(config, last_stop)?;
    let checkpoint = Checkpoint::open(&config.root.join("checkpoint"))?;
    let (index, distrusted) = load_index(config, &checkpoint, last_stop)?.unzip();
    let derived = Derived {
        queues,
        index,
        deleted: Deleted::open(&config.root)?,
        light: config.light_queues.is_some(),
        delay_levels: config.delay_levels.clone(),
    };
    finish_deletions(&derived)?;
    let from = match last_stop {
        LastStop::Clean => Start::clean(&files, derived.queues.highest_end()),
        LastStop::Unclean => Start::unclean(&files, trusted_time(config, &checkpoint)),
    };
    if lost_batches {
        // Before the scan: a queue takes no record older than its newest.
        rebuild::batches(&files, &derived, from.dispatch_from.max(from.base(&files)))?;
    }
    let distrusted = distrusted.unwrap_or_default();
    let behind = rebuild::distrusted(&files, &derived, distrusted, from.base(&files))?;
    let mut found = scan(&files, &from, behind, &derived, config)?;
    let until = found.undispatched.unwrap_or(found.end);
    let behind = rebuild::queues(&files, &derived, until)?;
    found.undispatched = behind.or(found.undispatched);
    if found.undispatched.is_none() {
        derived.queues.write()?;
    }
    for queue in derived.queues.all() {
        queue.truncate(found.end)?;
    }
    for queue in derived.queues.batches.all() {
        queue.truncate(found.end)?;
    }
    if last_stop == LastStop::Unclean {
        mistrust::mark_queues(&files, &derived)?;
        let until = found.undispatched.unwrap_or(found.end);
        let behind = rebuild::queues(&files, &derived, until)?;
        found.undispatched = behind.or(found.undispatched);
    }
    let until = found.undispatched.unwrap_or(found.end);
    mistrust::rebuild_batches(&files, &derived, until)?;
    let behind = rebuild::cut_off(&files, &derived, found.end, until)?;
    found.undispatched = behind.or(found.undispatched);
    if found.last_record >= 0 {
        checkpoint
            .confirm
            .store(found.last_record, Ordering::Relaxed);
    }
    derived.deleted.cut(found.end)?;
    cut(&mut files, found.end, last_stop)?;
    if files.is_empty() {
        derived.queues.delete_all()?;
        if let Some(index) = &derived.index {
            index.delete_all()?;
        }
    }
    settle(&derived, files.first().map_or(0, MappedFile::base))?;
    info!(
        end = found.end,
        records = found.records,
        ?last_stop,
        "store recovered"
    );
    let log = Recovered {
        files,
        end: found.end,
        timestamp: found.timestamp,
    };
    let dispatched = found.undispatched.unwrap_or(found.end);
    Ok(Opened {
        log,
        derived,
        checkpoint,
        dispatched,
    })
}

/// All queues, and whether those of batch topics are to be searched for in the log.
fn load_queues(config: &StoreConfig, last_stop: LastStop) -> Result<(Queues, bool), StoreError> {
    let files = |size| QueueFiles::new(config.open_queue_files, size, config.space.clone());
    let dir = config.root.join("batchconsumequeue");
    let lost_batches = !dir.exists() && mentions_batch_topics(&config.root);
    let batches = BatchQueues::load(dir, files(config.batch_file_size()))?;
    let dir = config.root.join("consumequeue");
    let files = files(config.queue_file_size());
    let queues = Queues::load(dir, files, batches, last_stop)?;
    Ok((queues, lost_batches))
}

/// Ends recovery for the queues: what a log that begins at `start` lets them serve, and the next offsets.
fn settle(derived: &Derived, start: i64) -> Result<(), StoreError> {
    for queue in derived.queues.all() {
        queue.correct_min(start)?;
        queue.settle();
    }
    for queue in derived.queues.batches.all() {
        queue.correct_min(start)?;
        queue.settle();
    }
    Ok(())
}

/// Whether the table of topics speaks of batch topics at all: their queues are searched for in the whole log then, should
/// their folder be gone. Apache's broker takes the other queues' word for how far everything is.
fn mentions_batch_topics(root: &std::path::Path) -> bool {
    let mentions = |name: &str| {
        let text = std::fs::read(root.join("config").join(name)).unwrap_or_default();
        text.windows(7).any(|word| word == b"BatchCQ")
    };
    ["topics.json", "topics.json.bak", "topics.json.journal"]
        .iter()
        .any(|name| mentions(name))
}

/// Removes the queues of deleted topics that a crash left behind, before anything is put into them again.
fn finish_deletions(derived: &Derived) -> Result<(), StoreError> {
    for (topic, end) in derived.deleted.ends() {
        let queues = derived.queues.all().into_iter();
        let ends = queues
            .filter(|queue| queue.topic() == topic)
            .map(|queue| queue.highest_end());
        let batches = derived.queues.batches.all().into_iter();
        let batch_ends = batches
            .filter(|queue| queue.topic() == topic)
            .map(|queue| queue.highest_end());
        // A topic made again since has younger entries, and its folder holds no others.
        if ends
            .chain(batch_ends)
            .max()
            .is_some_and(|newest| newest <= end)
        {
            derived.queues.delete_topic(&topic)?;
        }
    }
    Ok(())
}

fn trusted_time(config: &StoreConfig, checkpoint: &Checkpoint) -> i64 {
    if config.message_index_enable && config.message_index_safe {
        checkpoint.min_timestamp_index()
    } else {
        checkpoint.min_timestamp()
    }
}

/// The index, and the files of it that are to be built again; `None` when it is switched off.
fn load_index(
    config: &StoreConfig,
    checkpoint: &Checkpoint,
    last_stop: LastStop,
) -> Result<Option<(Index, Distrusted)>, StoreError> {
    if !config.message_index_enable {
        return Ok(None);
    }
    let trusted =
        (last_stop == LastStop::Unclean).then(|| checkpoint.index.load(Ordering::Relaxed));
    let shape = Shape {
        slots: config.max_hash_slot_num,
        items: config.max_index_num,
    };
    let (space, clock) = (config.space.clone(), config.clock.clone());
    Index::load(config.root.join("index"), shape, trusted, space, clock).map(Some)
}

/// Maps all files of the log. An empty last file, left by a crash at its creation, is deleted.
fn load_log(config: &StoreConfig) -> Result<Vec<MappedFile>, StoreError> {
    let dir = config.commit_log_path();
    let made =
        std::fs::create_dir_all(&dir).and_then(|()| dir.parent().map_or(Ok(()), sync_folder));
    made.map_err(|source| StoreError::io("create", &dir, 0, source))?;
    let expected = u64::from(config.commit_log_file_size);
    let len = usize::try_from(config.commit_log_file_size).unwrap_or(0);
    let list = data_files(&dir)?;
    let mut files: Vec<MappedFile> = Vec::with_capacity(list.len());
    for (number, (base, path)) in list.iter().enumerate() {
        let failed = |action| move |source| StoreError::io(action, path, 0, source);
        let found = std::fs::metadata(path).map_err(failed("read"))?.len();
        if found == 0 && number + 1 == list.len() {
            std::fs::remove_file(path).map_err(failed("remove"))?;
            continue;
        }
        if found != expected {
            return Err(StoreError::FileLength {
                path: path.clone(),
                found,
                expected,
            });
        }
        if files.last().is_some_and(|before| before.end() != *base) {
            return Err(StoreError::Gap { path: path.clone() });
        }
        files.push(MappedFile::open(path.clone(), *base, len, &config.space)?);
    }
    Ok(files)
}

/// Where the scan begins, and which records it dispatches.
#[derive(Debug)]
struct Start {
    /// Number of the first file to look at.
    file: usize,
    /// Records that begin before this offset are in the queues already.
    dispatch_from: i64,
}

impl Start {
    /// After a clean stop: the newest file that begins at or before `highest_end`, the end of what the queues know.
    fn clean(files: &[MappedFile], highest_end: i64) -> Self {
        let file = files
            .iter()
            .rposition(|file| file.base() <= highest_end)
            .unwrap_or(0);
        Self {
            file,
            dispatch_from: highest_end,
        }
    }

    /// After an unclean stop: the newest file whose first record is not newer than the checkpoint can vouch for.
    fn unclean(files: &[MappedFile], trusted: i64) -> Self {
        let safe = |file: &MappedFile| {
            let time = first_timestamp(file);
            time != 0 && time <= trusted
        };
        let file = files.iter().rposition(safe).unwrap_or(0);
        // The queues skip what they hold.
        Self {
            file,
            dispatch_from: i64::MIN,
        }
    }

    /// Offset of the first byte looked at.
    fn base(&self, files: &[MappedFile]) -> i64 {
        files.get(self.file).map_or(0, MappedFile::base)
    }
}

/// Store time of a file's first record; 0 if no record begins the file.
fn first_timestamp(file: &MappedFile) -> i64 {
    let bytes = file.written();
    let magic = bytes
        .get(4..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |magic| i32::from_be_bytes(*magic));
    if magic != MAGIC_V1 && magic != MAGIC_V2 {
        return 0;
    }
    RecordView::parse(bytes).map_or(0, |record| record.store_timestamp())
}

/// What the scan of the log found.
#[derive(Debug)]
struct Found {
    /// Offset behind the last good record.
    end: i64,
    /// Offset of the last good record; -1 if there was none.
    last_record: i64,
    /// Its store time.
    timestamp: i64,
    /// How many good records were read.
    records: u64,
    /// The first record for which the volume had no room in queues or index.
    undispatched: Option<i64>,
}

/// Looks at every record from `from` on. Nothing is dispatched if there are records before that must come first.
fn scan(
    files: &[MappedFile],
    from: &Start,
    undispatched: Option<i64>,
    derived: &Derived,
    config: &StoreConfig,
) -> Result<Found, StoreError> {
    let mut found = Found {
        end: from.base(files),
        last_record: -1,
        timestamp: 0,
        records: 0,
        undispatched,
    };
    for file in files.get(from.file..).unwrap_or_default() {
        let mut rest = file.written();
        let mut at = file.base();
        let stopped = loop {
            let record = match check(rest, config.check_crc_on_recover) {
                Ok(record) => record,
                Err(error) => break error,
            };
            if at >= from.dispatch_from && found.undispatched.is_none() {
                match derived.put(&record) {
                    // A full volume must not keep the store from opening: dispatch goes on when there is room.
                    Err(StoreError::Full { .. }) => found.undispatched = Some(at),
                    put => put?,
                }
            }
            let size = record.size();
            found.last_record = at;
            found.timestamp = found.timestamp.max(record.store_timestamp());
            found.records += 1;
            rest = &rest[size..];
            at += i64::try_from(size).unwrap_or(0);
        };
        found.end = at;
        if !matches!(stopped, RecordError::Blank { .. }) {
            if rest.iter().take(8).any(|byte| *byte != 0) {
                warn!(end = at, file = %file.path().display(), error = %stopped, "the commit log is cut");
            }
            break;
        }
    }
    Ok(found)
}

fn check(bytes: &[u8], crc: bool) -> Result<RecordView<'_>, RecordError> {
    let record = RecordView::parse(bytes)?;
    if crc {
        record.check_crc()?;
    }
    Ok(record)
}

/// Ends the log at `end`: files behind it are deleted. What the cut leaves in the last file is erased where it could be
/// taken for records later.
fn cut(files: &mut Vec<MappedFile>, end: i64, last_stop: LastStop) -> Result<(), StoreError> {
    // The file that holds `end` stays; at a file's first byte that is a file without records, as Apache keeps it.
    let keep = files.iter().filter(|file| file.base() <= end).count();
    for file in files.drain(keep..) {
        let path = file.path().to_owned();
        drop(file);
        std::fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, 0, source))?;
    }
    let Some(last) = files.last_mut() else {
        return Ok(());
    };
    let at = usize::try_from(end - last.base()).unwrap_or(0);
    let dirty = last
        .written()
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take(8)
        .any(|byte| *byte != 0);
    if last_stop == LastStop::Unclean || dirty {
        last.erase(at)
    } else {
        last.cut(at)
    }
}
