//! State kept as JSON beside the store (`config/topics.json` and the like), replaced as a whole and never lost half-way.
//!
//! ```text
//! persist: FILE.tmp written, synced ──▶ FILE renamed to FILE.bak ──▶ FILE.tmp renamed to FILE ──▶ folder synced
//! load:    FILE, or FILE.bak when FILE is missing, empty or unreadable; both unreadable is an error
//! ```
//! The text is one JSON object; anything else counts as unreadable. A broken FILE never becomes FILE.bak. Apache writes integer keys of maps without quotes; both forms are read.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};

use super::error::StoreError;

/// One JSON file and its backup.
#[derive(Debug)]
pub struct JsonFile {
    path: PathBuf,
    /// Whether FILE holds a text that was read or written completely; also keeps writers apart.
    good: Mutex<bool>,
}

impl JsonFile {
    /// The file at `path`, for instance `ROOT/config/topics.json`; nothing is read yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            good: Mutex::new(false),
        }
    }

    /// Where the file lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file, or its backup. `None` if there is neither (files without text count as missing).
    ///
    /// # Errors
    /// [`StoreError::Unreadable`] when there is text, but none that can be understood; both files are kept.
    /// [`StoreError::Io`] when a file exists and can't be read.
    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let main = parse(&read(&self.path)?);
        *good = matches!(main, Some(Ok(_)));
        match main {
            Some(Ok(value)) => Ok(Some(value)),
            main => match (main, parse(&read(&with_suffix(&self.path, ".bak"))?)) {
                (_, Some(Ok(value))) => Ok(Some(value)),
                (Some(Err(source)), _) | (None, Some(Err(source))) => {
                    let path = self.path.clone();
                    Err(StoreError::Unreadable { path, source })
                }
                _ => Ok(None),
            },
        }
    }

    /// Replaces the file's text; the text before becomes the backup. Durable when this returns.
    ///
    /// Blocks for two disk syncs: not for a runtime's own threads.
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::Io`]; the old text is still in FILE or FILE.bak then.
    pub fn persist<T: Serialize>(&self, value: &T) -> Result<(), StoreError> {
        let text = serde_json::to_vec_pretty(value).map_err(|source| StoreError::Json {
            path: self.path.clone(),
            source,
        })?;
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let temporary = with_suffix(&self.path, ".tmp");
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::io(action, &path, 0, source)
        };
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(failed("create", folder))?;
        }
        write_synced(&temporary, &text).map_err(failed("write", &temporary))?;
        if *good || parse::<serde_json::Value>(&read(&self.path)?).is_some_and(|text| text.is_ok())
        {
            let backup = with_suffix(&self.path, ".bak");
            fs::rename(&self.path, &backup).map_err(failed("rename", &self.path))?;
        }
        fs::rename(&temporary, &self.path).map_err(failed("rename", &temporary))?;
        *good = true;
        self.path
            .parent()
            .map_or(Ok(()), sync_folder)
            .map_err(failed("sync", &self.path))
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Makes names created or renamed in `folder` durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The text of a file; empty if it is missing.
fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(StoreError::io("read", path, 0, source)),
        Ok(text) => Ok(text),
    }
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Option<Result<T, serde_json::Error>> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    // A struct whose fields all have defaults would take `[]` for an empty table.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Some(Err(serde_json::Error::custom("not a JSON object")));
    }
    let text = String::from_utf8_lossy(text);
    Some(serde_json::from_str(&quote_integer_keys(&text)))
}

/// Puts quotes around bare integer keys: `{0:5,1:6}` becomes `{"0":5,"1":6}`. Text inside strings is left alone.
fn quote_integer_keys(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut quoted = String::new();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'{' | b',' => {
                let start = at + 1 + blanks(&bytes[at + 1..]);
                let end = start + integer(&bytes[start..]);
                if end > start && bytes[end + blanks(&bytes[end..])..].first() == Some(&b':') {
                    quoted.push_str(&text[copied..start]);
                    quoted.push('"');
                    quoted.push_str(&text[start..end]);
                    quoted.push('"');
                    copied = end;
                }
                at = end.max(at + 1);
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    quoted.push_str(&text[copied..]);
    Cow::Owned(quoted)
}

/// Position behind the string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn blanks(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count()
}

fn integer(bytes: &[u8]) -> usize {
    let sign = usize::from(bytes.first() == Some(&b'-'));
    match bytes[sign..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
    {
        0 => 0,
        digits => sign + digits,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use std::collections::BTreeMap;

    use super::*;

    type Table = BTreeMap<String, i64>;

    fn table(value: i64) -> Table {
        Table::from([("a".to_owned(), value)])
    }

    fn file(folder: &tempfile::TempDir) -> JsonFile {
        JsonFile::new(folder.path().join("config/topics.json"))
    }

    #[test]
    fn l03_the_text_before_becomes_the_backup() {
        let folder = tempfile::tempdir().unwrap();
        let json = file(&folder);
        assert_eq!(json.load::<Table>().unwrap(), None);
        json.persist(&table(1)).unwrap();
        json.persist(&table(2)).unwrap();
        assert_eq!(json.load::<Table>().unwrap(), Some(table(2)));
        fs::remove_file(json.path()).unwrap();
        assert_eq!(json.load::<Table>().unwrap(), Some(table(1)));
    }

    #[test]
    fn l03_a_broken_file_is_answered_from_the_backup_and_never_becomes_it() {
        let folder = tempfile::tempdir().unwrap();
        let json = file(&folder);
        json.persist(&table(1)).unwrap();
        json.persist(&table(2)).unwrap();
        fs::write(json.path(), "{\"a\":").unwrap();
        assert_eq!(json.load::<Table>().unwrap(), Some(table(1)));
        json.persist(&table(3)).unwrap();
        fs::write(json.path(), "").unwrap();
        assert_eq!(json.load::<Table>().unwrap(), Some(table(1)));
    }

    #[test]
    fn l03_two_broken_files_are_an_error_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let json = file(&folder);
        json.persist(&table(1)).unwrap();
        fs::write(json.path(), "{").unwrap();
        fs::write(with_suffix(json.path(), ".bak"), "[").unwrap();
        assert!(matches!(
            json.load::<Table>(),
            Err(StoreError::Unreadable { .. })
        ));
        assert_eq!(fs::read(json.path()).unwrap(), b"{");
    }

    #[test]
    fn a_text_that_is_no_object_is_broken_even_for_a_struct_of_defaults() {
        #[derive(Debug, Default, PartialEq, Serialize, serde::Deserialize)]
        #[serde(default)]
        struct Tables {
            a: i64,
        }
        let folder = tempfile::tempdir().unwrap();
        let json = file(&folder);
        for text in ["[]", " [1]", "null", "7", "\"a\""] {
            json.persist(&Tables { a: 1 }).unwrap();
            fs::rename(json.path(), with_suffix(json.path(), ".bak")).unwrap();
            fs::write(json.path(), text).unwrap();
            assert_eq!(json.load().unwrap(), Some(Tables { a: 1 }), "{text}");
            // Nor does it become the backup.
            json.persist(&Tables { a: 2 }).unwrap();
            fs::write(json.path(), text).unwrap();
            assert_eq!(json.load().unwrap(), Some(Tables { a: 1 }), "{text}");
            fs::remove_file(with_suffix(json.path(), ".bak")).unwrap();
            assert!(matches!(
                json.load::<Tables>(),
                Err(StoreError::Unreadable { .. })
            ));
        }
    }

    #[test]
    fn bare_integer_keys_are_read() {
        let text = r#"{"T@G":{0:5,1:6, -2 :7},"s":"{3:4}","l":[1,2],"e":"\",4:"}"#;
        let expected = r#"{"T@G":{"0":5,"1":6, "-2" :7},"s":"{3:4}","l":[1,2],"e":"\",4:"}"#;
        assert_eq!(quote_integer_keys(text), expected);
        assert_eq!(quote_integer_keys("{1"), "{1");
        assert_eq!(quote_integer_keys("\"a\\"), "\"a\\");
    }
}
