//! What can go wrong in the store, by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};

/// The store can't open, read or write its files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The volume has no room; reading goes on, and writing as soon as there is room again.
    #[error("no room for {needed} bytes at {}", path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
        /// How many bytes were wanted.
        needed: u64,
    },
    /// A file operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried: `open`, `map`, `write` …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Another store, ours or Apache's, works on this folder.
    #[error("the store {} is in use by another broker", root.display())]
    Locked {
        /// The folder.
        root: PathBuf,
    },
    /// A data file has another length than the configured one.
    #[error("{} has {found} bytes, the configuration says {expected}", path.display())]
    FileLength {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        found: u64,
        /// The configured length in bytes.
        expected: u64,
    },
    /// Files of the commit log are missing between others.
    #[error("the commit log has a gap before {}", path.display())]
    Gap {
        /// The first file behind the gap.
        path: PathBuf,
    },
    /// A setting has no possible meaning.
    #[error("{key} = {value} is not possible")]
    Setting {
        /// Apache's name of the setting.
        key: &'static str,
        /// Its value.
        value: i64,
    },
    /// Writing data to the disk failed: what was written since the last success may be lost, so nothing more is taken.
    #[error("the store stopped writing after a failed flush")]
    Poisoned,
    /// Text in a JSON file that holds the broker's state can't be understood, nor its backup.
    #[error("neither {} nor its .bak can be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// State can't be expressed as JSON.
    #[error("cannot write {} as JSON", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong with the value.
        #[source]
        source: serde_json::Error,
    },
}

impl StoreError {
    /// An operation on `path` failed; running out of space becomes [`StoreError::Full`].
    pub(super) fn io(action: &'static str, path: &Path, needed: usize, source: io::Error) -> Self {
        let path = path.to_owned();
        if is_full(&source) {
            let needed = u64::try_from(needed).unwrap_or(u64::MAX);
            return Self::Full { path, needed };
        }
        Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Whether the operating system says that there is no room: volume full or quota used up.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// A message was not stored. Nothing of it remains: neither queue offset nor log end have moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The body, or a batch as a whole, is longer than `maxMessageSize`.
    #[error("the body has {len} bytes, at most {max} are allowed")]
    BodyTooLong {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The properties text is longer than 32,767 bytes.
    #[error("the properties have {len} bytes, at most 32767 are possible")]
    PropertiesTooLong {
        /// Its length in bytes.
        len: usize,
    },
    /// The topic is empty, longer than 255 bytes or can't be the name of a folder.
    #[error("the topic {topic:?} is not possible")]
    Topic {
        /// The topic.
        topic: String,
    },
    /// The record is longer than `maxMessageSize` allows, or than a commit-log file.
    #[error("the record has {len} bytes, at most {max} are possible")]
    RecordTooLong {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A name in `INNER_MULTI_DISPATCH` can't be a light queue's.
    #[error(
        "{name:?} cannot be a light queue: %LMQ% and letters, digits, %, |, _ or - are possible"
    )]
    LightQueue {
        /// The name.
        name: String,
    },
    /// There are as many light queues as `maxLmqConsumeQueueNum` allows.
    #[error("there would be more than {most} light queues")]
    TooManyLightQueues {
        /// The limit.
        most: usize,
    },
    /// A batch without messages, without the number it has to name, or with messages for several queues.
    #[error("a batch holds one or more messages for one queue")]
    Batch,
    /// The volume is fuller than `diskSpaceWarningLevelRatio` allows. Ends by itself when there is room.
    #[error("more than {limit} percent of the volume are used")]
    VolumeFull {
        /// The limit in percent.
        limit: u8,
    },
    /// The store is not started, or shuts down.
    #[error("the store takes no messages now")]
    Closed,
    /// The store can't write. For a full volume this ends by itself when there is room.
    #[error("the store cannot write")]
    Store(#[from] StoreError),
}
