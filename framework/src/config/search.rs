//! Where configuration files are looked for.
//!
//! ```text
//! --bindery.config ▸ the places the program names ▸ the crate's folder ▸ the working folder
//!     each with config/ below it; beside every file found: application-<profile>.*
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    LoadOptions,
    report::{Diagnostic, DiagnosticKind},
};

const EXTENSIONS: [&str; 3] = ["yaml", "yml", "properties"];

/// Looks for files as [`LoadOptions`] says.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    options: &'a LoadOptions,
    working_dir: PathBuf,
}

impl<'a> Search<'a> {
    pub(crate) fn new(options: &'a LoadOptions) -> Self {
        let working_dir = options
            .working_dir
            .clone()
            .or_else(|| std::env::current_dir().ok())
            .unwrap_or_default();
        Self {
            options,
            working_dir,
        }
    }

    /// The files to start from, weakest first.
    pub(crate) fn locations(&self, report: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
        let asked = self
            .options
            .args
            .iter()
            .filter_map(|argument| argument.strip_prefix("--bindery.config="));
        let asked: Vec<PathBuf> = asked
            .flat_map(|paths| paths.split(','))
            .map(|path| PathBuf::from(path.trim()))
            .collect();
        let asked = if asked.is_empty() {
            self.options.locations.clone()
        } else {
            asked
        };
        if !asked.is_empty() {
            return asked
                .into_iter()
                .map(|path| self.working_dir.join(path))
                .collect();
        }
        if let Some((first, _)) = self.options.texts.first() {
            return vec![PathBuf::from(first)];
        }
        let folders = self.options.manifest_dir.iter().chain([&self.working_dir]);
        for folder in folders {
            let found: Vec<PathBuf> = [folder.clone(), folder.join("config")]
                .iter()
                .flat_map(|folder| self.in_folder(folder, report))
                .collect();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// The name to show: relative to the working folder where it lies below it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.working_dir)
            .unwrap_or(path)
            .display()
            .to_string()
    }

    /// Where an `application.yaml` would have been found, for the message that there is none.
    pub(crate) fn searched(&self) -> String {
        let working = self.working_dir.display();
        match &self.options.manifest_dir {
            Some(manifest) if *manifest != self.working_dir => {
                format!("looked in {} and {working}", manifest.display())
            }
            _ => format!("looked in {working}; --bindery.config=PATH names another place"),
        }
    }

    /// `application.*` of one folder. Two YAML files would be a guess, so they are an error.
    fn in_folder(&self, folder: &Path, report: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
        let found: Vec<PathBuf> = EXTENSIONS
            .iter()
            .map(|extension| folder.join(format!("application.{extension}")))
            .filter(|path| path.is_file())
            .collect();
        if let [first, second, ..] = found.as_slice()
            && second
                .extension()
                .is_some_and(|extension| extension == "yml")
        {
            let message = format!(
                "both {} and {} exist; keep one",
                self.shown(first),
                self.shown(second)
            );
            report.push(Diagnostic::error(DiagnosticKind::Conflict, message));
        }
        found
    }

    /// Files beside `locations` that belong to some profile.
    pub(crate) fn other_profile_files(&self, locations: &[PathBuf]) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for location in locations {
            let Some(stem) = location.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            let is_of_profile = |path: &PathBuf| belongs(path, location, stem);
            found.extend(
                self.options
                    .texts
                    .iter()
                    .map(|(name, _)| PathBuf::from(name))
                    .filter(is_of_profile),
            );
            // A folder that can't be listed has no files of other profiles to complain about.
            let listed = location
                .parent()
                .and_then(|folder| fs::read_dir(folder).ok());
            found.extend(
                listed
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path())
                    .filter(is_of_profile),
            );
        }
        found.sort();
        found.dedup();
        found
    }
}

/// `application-<profile>.*` beside `path`.
pub(crate) fn profile_files(path: &Path, profile: &str) -> Vec<PathBuf> {
    let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
        return Vec::new();
    };
    EXTENSIONS
        .iter()
        .map(|extension| path.with_file_name(format!("{stem}-{profile}.{extension}")))
        .collect()
}

/// Whether `path` is `<stem>-<some profile>.*` beside `location`.
fn belongs(path: &Path, location: &Path, stem: &str) -> bool {
    let rest = path
        .file_stem()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix(stem));
    let extension = path.extension().and_then(|extension| extension.to_str());
    path.parent() == location.parent()
        && rest.is_some_and(|rest| rest.len() > 1 && rest.starts_with('-'))
        && extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}
