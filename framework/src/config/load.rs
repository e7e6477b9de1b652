//! The order of work: profiles first, then every document, then one tree, then its meaning.

use super::{
    Config, LoadOptions, Loaded, arguments,
    build::{self, Named},
    check::{self, Usage},
    document, env,
    env::KnownNames,
    files::Files,
    layer::{self, Collector, Entry, Layer},
    profile::ProfileChoice,
    report::{ConfigErrors, Diagnostic, DiagnosticKind},
    rules,
    schema::{SCHEMA, Schema},
    search::Search,
    span::{SourceKind, Span},
    told::Told,
    tree::Tree,
    typed::Compat,
    typing::{Typing, Values},
};

/// Everything the sources say, before it is given a meaning.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) tree: Tree,
    pub(crate) values: Values,
    pub(crate) names: Vec<Named>,
    pub(crate) profiles: Vec<String>,
    pub(crate) report: Vec<Diagnostic>,
    /// Names of the files, in the order of reading.
    files: Vec<String>,
}

pub(crate) fn load(options: LoadOptions, usage: Option<&Usage>) -> Result<Loaded, ConfigErrors> {
    let Gathered {
        tree,
        values,
        names,
        profiles,
        mut report,
        files,
    } = gather(&SCHEMA, &options, usage);
    let mut config = build::config(&values, &names, profiles, &mut report);
    if let Some(usage) = usage {
        check::add_declared(&mut config, usage);
    }
    if config.bindery.compat == Compat::Lenient {
        layer::lenient(&mut report);
    }
    if files.is_empty() && usage.is_some_and(|usage| !usage.names().is_empty()) {
        let nothing = Diagnostic::error(DiagnosticKind::File, "there is no application.yaml");
        report.push(nothing.note(Search::new(&options).searched()));
    }
    let told = Told::of(&report);
    destinations(&config, usage, &told, &mut report);
    rules::check(&config, &names, &told, &mut report);
    if let Some(usage) = usage {
        let found = check::usage_report(&config, &names, usage, &told);
        once(&mut report, &found);
        report.extend(found);
    }
    in_source_order(&mut report, &files);
    if report.iter().any(Diagnostic::is_error) {
        return Err(ConfigErrors::of_report(report));
    }
    Ok(Loaded {
        config,
        tree,
        warnings: report,
        names,
        env: options.env,
    })
}

/// Reads every source and types every value.
pub(crate) fn gather(schema: &Schema, options: &LoadOptions, usage: Option<&Usage>) -> Gathered {
    let mut files = Files::new(schema, options);
    let profiles = profiles(schema, options, &mut files);
    let mut layers = files.layers(&profiles);
    let mut report = std::mem::take(&mut files.report);

    let mut known = KnownNames::default();
    for layer in &layers {
        known.add_layer(layer);
    }
    let section = ["spring", "cloud", "stream", "bindings"].map(str::to_owned);
    for name in usage.into_iter().flat_map(Usage::names) {
        known.add(&section, name);
    }
    layers.push(env::environment(schema, &options.env, &known, &mut report));
    let above = layers.len();
    layers.extend(strong(schema, options, &mut report));

    let tree = Tree::merge(schema, &layers, above);
    let mut typing = Typing::new(schema, &tree, &options.env);
    let values = typing.run(&layers);
    report.append(&mut typing.report);
    report.extend(unowned(&files));
    let names = layers.iter().flat_map(named).collect();
    let files = files
        .sources
        .iter()
        .map(|source| source.name().to_owned())
        .collect();
    Gathered {
        tree,
        values,
        names,
        profiles,
        report,
        files,
    }
}

/// Sources stronger than the environment's variables, weakest first.
fn strong(schema: &Schema, options: &LoadOptions, report: &mut Vec<Diagnostic>) -> Vec<Layer> {
    let mut layers = Vec::new();
    if let Some(node) = arguments::application_json(&options.env, report) {
        let mut unowned = std::collections::BTreeSet::new();
        let mut collector = Collector::new(schema, report, &mut unowned);
        collector.document(&node);
        layers.push(collector.finish());
    }
    layers.push(arguments::command_line(schema, &options.args, report));
    layers.push(arguments::code(schema, &options.overrides, report));
    layers
}

/// The active profiles, weakest first. What is wrong in the sources is told by the pass that follows.
fn profiles(schema: &Schema, options: &LoadOptions, files: &mut Files<'_>) -> Vec<String> {
    let mut untold = Vec::new();
    let mut layers = files.unconditional();
    layers.push(env::environment(
        schema,
        &options.env,
        &KnownNames::default(),
        &mut untold,
    ));
    let above = layers.len();
    layers.extend(strong(schema, options, &mut untold));
    let tree = Tree::merge(schema, &layers, above);
    let typing = Typing::new(schema, &tree, &options.env);
    ProfileChoice {
        active: profile_names(&tree, &typing, "spring.profiles.active"),
        include: profile_names(&tree, &typing, "spring.profiles.include"),
        default: profile_names(&tree, &typing, "spring.profiles.default"),
        groups: profile_groups(&tree),
    }
    .resolve()
}

fn profile_names(tree: &Tree, typing: &Typing<'_>, key: &str) -> Vec<String> {
    let path: Vec<String> = key.split('.').map(str::to_owned).collect();
    let text = tree
        .history(&path)
        .last()
        .and_then(|setting| setting.text(None));
    // A placeholder without value is told about when every value is read.
    let text = text
        .and_then(|text| typing.foreign_text(&text).ok())
        .unwrap_or_default();
    text.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn profile_groups(tree: &Tree) -> Vec<(String, Vec<String>)> {
    let group = |entry: &Entry| {
        let name = entry.path.last()?;
        let is_group = entry.path.join(".") == format!("spring.profiles.group.{name}");
        let members = document::texts(entry).into_iter().map(|(text, _)| text);
        is_group.then(|| (name.clone(), members.collect()))
    };
    tree.winners()
        .filter_map(|setting| group(&setting.entry))
        .collect()
}

fn named(layer: &Layer) -> Vec<Named> {
    let of_paths = layer.names.iter().filter_map(|(path, span)| {
        let (name, section) = path.split_last()?;
        Some(Named {
            section: section.join("."),
            name: name.clone(),
            span: span.clone(),
            active: layer.active,
        })
    });
    of_paths.collect()
}

/// One line for everything that is somebody else's.
fn unowned(files: &Files<'_>) -> Option<Diagnostic> {
    let roots: Vec<&str> = files.unowned.iter().map(String::as_str).collect();
    let message = format!("not Bindery's, left alone: {}", roots.join(", "));
    (!roots.is_empty()).then(|| Diagnostic::info(DiagnosticKind::Ignored, message))
}

/// A binding needs a topic. Of a binding the program doesn't have, something else is said.
fn destinations(config: &Config, usage: Option<&Usage>, told: &Told, report: &mut Vec<Diagnostic>) {
    let used = |name: &String| {
        usage.is_none_or(|usage| usage.declares(name)) || config.output_bindings.contains(name)
    };
    for binding in config
        .bindings
        .values()
        .filter(|binding| binding.destination.is_empty() && used(&binding.name))
    {
        let key = format!("spring.cloud.stream.bindings.{}.destination", binding.name);
        if told.explains(&binding.name, "destination") {
            continue;
        }
        let message = format!("binding `{}` has no destination", binding.name);
        report.push(
            Diagnostic::error(DiagnosticKind::Missing, message)
                .key(key)
                .at(binding.positions.section())
                .label(format!("add `destination: {}`, say", binding.name))
                .note("bindery.config.destination-from-name: true takes the binding's name"),
        );
    }
}

/// A mistyped binding is told once: that the binder's section spells its name right is no second mistake.
fn once(report: &mut Vec<Diagnostic>, found: &[Diagnostic]) {
    let mistyped: Vec<&str> = found
        .iter()
        .filter(|diagnostic| diagnostic.kind == DiagnosticKind::UnusedBinding)
        .filter_map(|diagnostic| diagnostic.suggestion.as_deref())
        .collect();
    report.retain(|diagnostic| {
        let name = diagnostic
            .key
            .as_deref()
            .and_then(|key| key.strip_prefix("spring.cloud.stream.rocketmq.bindings."));
        diagnostic.kind != DiagnosticKind::UnknownName
            || !name.is_some_and(|name| mistyped.contains(&name))
    });
}

/// Files in the order of reading, then environment, command line and code, then what has no place.
fn in_source_order(report: &mut Vec<Diagnostic>, files: &[String]) {
    let rank = |span: &Span| match span.source().kind() {
        SourceKind::File => files
            .iter()
            .position(|name| name == span.source().name())
            .unwrap_or(files.len()),
        SourceKind::Environment => files.len() + 1,
        SourceKind::CommandLine => files.len() + 2,
        SourceKind::Code => files.len() + 3,
    };
    report.sort_by_key(|diagnostic| match &diagnostic.span {
        Some(span) => (rank(span), span.line(), span.column()),
        None => (files.len() + 4, 0, 0),
    });
    report.dedup();
}
