//! The lines of changes that the table's file does not hold yet.
use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Durability, TableError};

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change<T> {
    /// New or changed.
    Put(T),
    /// Gone.
    Remove(String),
}

/// The open journal: lines go to `current`; while the whole file is being rewritten, the lines it will cover lie in
/// `aside`.
pub(super) struct Journal<T> {
    path: PathBuf,
    aside: PathBuf,
    current: File,
    durability: Durability,
    _changes: std::marker::PhantomData<fn(T)>,
}

impl<T: Serialize + DeserializeOwned> Journal<T> {
    /// Opens the journal of the table file `table` and returns the changes it holds, oldest first.
    pub(super) fn open(
        table: &Path,
        durability: Durability,
    ) -> Result<(Self, Vec<Change<T>>), TableError> {
        let path = with_suffix(table, ".journal");
        let aside = with_suffix(table, ".journal.1");
        let mut changes = read(&aside)?;
        changes.extend(read(&path)?);
        let mut current = open_append(&path)?;
        end_line(&path, &mut current).map_err(|source| TableError::Journal {
            path: path.clone(),
            source,
        })?;
        Ok((
            Self {
                path,
                aside,
                current,
                durability,
                _changes: std::marker::PhantomData,
            },
            changes,
        ))
    }

    /// Appends one change.
    pub(super) fn append(&mut self, change: &Change<T>) -> Result<(), TableError> {
        let written = serde_json::to_vec(change)
            .map_err(io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                self.current.write_all(&line)?;
                match self.durability {
                    Durability::Process => Ok(()),
                    Durability::Power => self.current.sync_data(),
                }
            });
        written.map_err(|source| TableError::Journal {
            path: self.path.clone(),
            source,
        })
    }

    /// Puts the current lines aside and starts an empty journal.
    pub(super) fn set_aside(&mut self) -> Result<(), TableError> {
        self.try_set_aside().map_err(|source| TableError::Journal {
            path: self.path.clone(),
            source,
        })
    }

    fn try_set_aside(&mut self) -> io::Result<()> {
        if self.aside.exists() {
            // The rewrite before this one failed: its lines are still needed, in their order.
            let lines = std::fs::read(&self.path)?;
            let mut aside = OpenOptions::new().append(true).open(&self.aside)?;
            aside.write_all(&lines)?;
            aside.sync_data()?;
            return self.current.set_len(0);
        }
        std::fs::rename(&self.path, &self.aside)?;
        self.current = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)?;
        Ok(())
    }

    /// Drops the lines put aside: the file holds them now.
    pub(super) fn drop_aside(&mut self) -> Result<(), TableError> {
        match std::fs::remove_file(&self.aside) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(TableError::Journal {
                path: self.aside.clone(),
                source,
            }),
            _ => Ok(()),
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn open_append(path: &Path) -> Result<File, TableError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|source| TableError::Journal {
            path: path.to_owned(),
            source,
        })
}

/// Ends a line that a crash cut off, so that the next one stands alone.
fn end_line(path: &Path, file: &mut File) -> io::Result<()> {
    match std::fs::read(path)?.last() {
        None | Some(b'\n') => Ok(()),
        Some(_) => file.write_all(b"\n"),
    }
}

/// The changes of one file. A last line cut off by a crash was never acknowledged and is left out.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<Change<T>>, TableError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(TableError::Journal {
                path: path.to_owned(),
                source,
            });
        }
    };
    let mut changes = Vec::new();
    for line in bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        match serde_json::from_slice(line) {
            Ok(change) => changes.push(change),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "journal line is not readable, left out");
            }
        }
    }
    Ok(changes)
}
