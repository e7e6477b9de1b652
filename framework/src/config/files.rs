//! Which files are read, and in which order.
//!
//! ```text
//! --bindery.config | the crate's folder | the working folder
//!    └─▶ application.{yaml,yml,properties}, config/application.… ──▶ documents, each followed by what it imports
//!           └─▶ application-<profile>.… in the order of the profiles ──▶ the same
//! ```
//! Later documents win. Documents of inactive profiles, also those in files of inactive profiles, are kept aside: their
//! mistakes are reported, their values don't count.

use std::{
    collections::{BTreeSet, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    LoadOptions,
    document::{self, Document, Import},
    layer::Layer,
    properties,
    report::{Diagnostic, DiagnosticKind},
    schema::Schema,
    search::{Search, profile_files},
    span::{Source, Span},
    yaml,
};

/// Reads files, each once.
#[derive(Debug)]
pub(crate) struct Files<'a> {
    schema: &'a Schema,
    options: &'a LoadOptions,
    search: Search<'a>,
    read: HashMap<PathBuf, Arc<Vec<Document>>>,
    /// What is wrong inside the files, told once however often a file is used.
    pub(crate) report: Vec<Diagnostic>,
    /// Prefixes nobody here owns.
    pub(crate) unowned: BTreeSet<String>,
    /// In the order of reading, which is the order of reports.
    pub(crate) sources: Vec<Arc<Source>>,
}

/// One pass over the documents.
struct Pass<'p> {
    /// `None` while they are not known: only documents that always count are taken.
    profiles: Option<&'p [String]>,
    layers: Vec<Layer>,
    /// Files that are absent, imports that go in a circle.
    report: Vec<Diagnostic>,
    /// The files being imported, outermost first.
    chain: Vec<PathBuf>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(schema: &'a Schema, options: &'a LoadOptions) -> Self {
        Self {
            schema,
            options,
            search: Search::new(options),
            read: HashMap::new(),
            report: Vec::new(),
            unowned: BTreeSet::new(),
            sources: Vec::new(),
        }
    }

    /// The documents that always count, weakest first: they say which profiles are active.
    pub(crate) fn unconditional(&mut self) -> Vec<Layer> {
        let mut pass = Pass {
            profiles: None,
            layers: Vec::new(),
            report: Vec::new(),
            chain: Vec::new(),
        };
        for path in self.search.locations(&mut Vec::new()) {
            self.expand(&path, false, &mut pass);
        }
        pass.layers
    }

    /// Every document, weakest first; those that don't count are marked inactive.
    pub(crate) fn layers(&mut self, profiles: &[String]) -> Vec<Layer> {
        let mut pass = Pass {
            profiles: Some(profiles),
            layers: Vec::new(),
            report: Vec::new(),
            chain: Vec::new(),
        };
        let locations = self.search.locations(&mut pass.report);
        for path in &locations {
            self.expand(path, false, &mut pass);
        }
        let mut used = locations.clone();
        for profile in profiles {
            for path in locations
                .iter()
                .flat_map(|path| profile_files(path, profile))
            {
                if self.exists(&path) && !used.contains(&path) {
                    self.expand(&path, true, &mut pass);
                    used.push(path);
                }
            }
        }
        for path in self
            .search
            .other_profile_files(&locations)
            .into_iter()
            .filter(|path| !used.contains(path))
        {
            self.inactive(&path, &mut pass);
        }
        self.report.append(&mut pass.report);
        pass.layers
    }

    /// Adds the documents of `path`, each followed by its imports, which are stronger than the document itself.
    fn expand(&mut self, path: &Path, of_profile: bool, pass: &mut Pass<'_>) {
        let documents = match self.documents(path) {
            Ok(documents) => documents,
            Err(error) => {
                let message = format!("cannot read {}: {error}", self.search.shown(path));
                pass.report
                    .push(Diagnostic::error(DiagnosticKind::File, message));
                return;
            }
        };
        for document in documents.iter() {
            let counts = match (&document.condition, pass.profiles) {
                (None, _) => true,
                (Some(condition), Some(profiles)) => condition.holds(profiles),
                (Some(_), None) => continue,
            };
            if of_profile || document.condition.is_some() {
                document::forbid_profile_keys(&document.layer, &mut pass.report);
            }
            pass.layers.push(Layer {
                active: counts,
                ..document.layer.clone()
            });
            if counts {
                for (text, span) in &document.imports {
                    self.import(path, text, span, pass);
                }
            }
        }
    }

    fn import(&mut self, from: &Path, text: &str, span: &Span, pass: &mut Pass<'_>) {
        let error = |kind, message: String| {
            Diagnostic::error(kind, message)
                .key("spring.config.import")
                .at(Some(span))
        };
        let import = match Import::read(text, from, &self.options.env) {
            Ok(import) => import,
            Err((kind, message)) => return pass.report.push(error(kind, message)),
        };
        let Import {
            path,
            optional,
            tree,
        } = import;
        if tree {
            self.config_tree(&path, optional, span, pass);
        } else if let Some(circle) = self.circle(from, &path, pass) {
            pass.report.push(error(
                DiagnosticKind::Conflict,
                format!("files import each other in a circle: {circle}"),
            ));
        } else if self.exists(&path) {
            pass.chain.push(from.to_owned());
            self.expand(&path, false, pass);
            pass.chain.pop();
        } else if !optional {
            let message = format!("{} does not exist", self.search.shown(&path));
            pass.report.push(
                error(DiagnosticKind::File, message)
                    .suggest(Some(format!("optional:{}", text.trim())))
                    .label("write `optional:` before it if it may be absent"),
            );
        }
    }

    /// The files that lead from `path` back to itself, if it is being imported already.
    fn circle(&self, from: &Path, path: &Path, pass: &Pass<'_>) -> Option<String> {
        let outer = pass.chain.iter().map(PathBuf::as_path).chain([from]);
        let way: Vec<&Path> = outer
            .skip_while(|outer| *outer != path)
            .chain([path])
            .collect();
        let shown = way
            .iter()
            .map(|path| self.search.shown(path))
            .collect::<Vec<_>>()
            .join(" → ");
        (way.len() > 1).then_some(shown)
    }

    /// One file a key, as Kubernetes mounts secrets.
    fn config_tree(&mut self, folder: &Path, optional: bool, span: &Span, pass: &mut Pass<'_>) {
        let mut files = Vec::new();
        match tree_files(folder, folder, &mut files) {
            Ok(()) => {}
            Err(error) if optional && error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                let message = format!("cannot read {}: {error}", self.search.shown(folder));
                pass.report
                    .push(Diagnostic::error(DiagnosticKind::File, message).at(Some(span)));
                return;
            }
        }
        files.sort();
        pass.layers.push(document::of_tree(
            self.schema,
            &files,
            &mut pass.report,
            &mut self.unowned,
        ));
    }

    /// The documents of an inactive profile's file; that it can't be read is not worth a word.
    fn inactive(&mut self, path: &Path, pass: &mut Pass<'_>) {
        if let Ok(documents) = self.documents(path) {
            for document in documents.iter() {
                document::forbid_profile_keys(&document.layer, &mut pass.report);
                pass.layers.push(Layer {
                    active: false,
                    ..document.layer.clone()
                });
            }
        }
    }

    fn documents(&mut self, path: &Path) -> io::Result<Arc<Vec<Document>>> {
        if let Some(documents) = self.read.get(path) {
            return Ok(documents.clone());
        }
        let text = self.text(path)?;
        let source = Source::file(self.search.shown(path), text.as_str());
        self.sources.push(source.clone());
        let is_properties = path
            .extension()
            .is_some_and(|extension| extension == "properties");
        let nodes = if is_properties {
            properties::documents(&source, &text, &mut self.report)
        } else {
            yaml::documents(&source, &text, &mut self.report)
        };
        let documents = nodes
            .iter()
            .map(|node| document::of_node(self.schema, node, &mut self.report, &mut self.unowned))
            .collect::<Vec<_>>();
        let documents = Arc::new(documents);
        self.read.insert(path.to_owned(), documents.clone());
        Ok(documents)
    }

    fn text(&self, path: &Path) -> io::Result<String> {
        match self
            .options
            .texts
            .iter()
            .find(|(name, _)| Path::new(name) == path)
        {
            Some((_, text)) => Ok(text.clone()),
            None => fs::read_to_string(path),
        }
    }

    fn exists(&self, path: &Path) -> bool {
        self.options
            .texts
            .iter()
            .any(|(name, _)| Path::new(name) == path)
            || path.is_file()
    }
}

/// The files below a folder with their keys: `a/b` is `a.b`. Hidden files are Kubernetes' own bookkeeping.
fn tree_files(
    root: &Path,
    folder: &Path,
    into: &mut Vec<(String, String, PathBuf)>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_none_or(|name| name.starts_with('.'));
        if hidden {
            continue;
        }
        if path.is_dir() {
            tree_files(root, &path, into)?;
        } else {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let key = relative
                .iter()
                .map(|part| part.to_string_lossy())
                .collect::<Vec<_>>()
                .join(".");
            let text = fs::read_to_string(&path)?;
            into.push((
                key,
                text.strip_suffix('\n').unwrap_or(&text).to_owned(),
                path,
            ));
        }
    }
    Ok(())
}
