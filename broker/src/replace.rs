//! Replacing a text file so that a crash leaves the old text or the new one, whole.
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Replaces a file's text; the text before becomes `FILE.bak`.
pub(crate) fn with_text(path: &Path, text: &str) -> io::Result<()> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let temporary = beside(".tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if path.exists() {
        fs::copy(path, beside(".bak"))?;
    }
    fs::rename(&temporary, path)
}
