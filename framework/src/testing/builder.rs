//! Describing an application under test.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;

use super::TestApp;
use super::back_end::{BackEnd, Server};
use super::calls::Log;
use crate::app::{App, AppBuilder, Around, Program};
use crate::config::{Config, DeclaredBinding, LoadOptions, Loaded};
use crate::error::{Error, Result};
use crate::error_handler::ErrorHandler;
use crate::registry::{BindingSource, Handler};
use crate::transaction::{ListenerHandle, TransactionListener};

/// One step of describing the application; taken again for every instance of it.
type Step = Arc<dyn Fn(AppBuilder) -> AppBuilder + Send + Sync>;

/// An application under test that is being described; [`start`](Self::start) ends the description.
///
/// ```
/// use bindery::prelude::*;
/// use bindery::registry::Handler;
/// use bindery::testing::TestApp;
///
/// async fn greet(name: String, greeting: State<&'static str>) -> String {
///     format!("{} {name}", greeting.0)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let t = TestApp::builder()
///     .config("spring.cloud.stream.bindings: { names: { destination: names, group: g }, greetings: { destination: greetings } }")
///     .without_inventory()
///     .handler(Handler::listen("names").send_to("greetings").to(greet))
///     .state("hello")
///     .start()
///     .await?;
/// t.input("names").send("world").await;
/// t.settle().await;
/// assert_eq!(t.stored("greetings").await[0].text(), "hello world");
/// # Ok::<(), bindery::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing is tested until `start`"]
pub struct TestAppBuilder {
    pub(super) recipe: Recipe,
    back_end: BackEnd,
    begins: Option<i64>,
}

impl fmt::Debug for TestAppBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestAppBuilder")
            .field("back_end", &self.back_end)
            .finish_non_exhaustive()
    }
}

/// How to make an instance of the application.
#[derive(Clone, Default)]
pub(super) struct Recipe {
    options: LoadOptions,
    only: Vec<String>,
    steps: Vec<Step>,
}

impl Default for TestAppBuilder {
    fn default() -> Self {
        Self {
            recipe: Recipe {
                options: LoadOptions {
                    manifest_dir: std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from),
                    ..LoadOptions::default()
                },
                ..Recipe::default()
            },
            back_end: BackEnd::Memory,
            begins: None,
        }
    }
}

impl TestAppBuilder {
    /// Takes this text as the only configuration file. Environment and command line are not read.
    pub fn config(mut self, yaml: impl Into<String>) -> Self {
        self.recipe.options.texts = vec![("application.yaml".to_owned(), yaml.into())];
        self
    }

    /// Reads this file instead of `application.yaml`; a relative path begins in the folder of the crate under test.
    pub fn yaml(mut self, path: impl Into<PathBuf>) -> Self {
        let folder = self.recipe.options.manifest_dir.clone().unwrap_or_default();
        self.recipe.options.locations = vec![folder.join(path.into())];
        self
    }

    /// The folder of the crate under test; `#[bindery::test]` knows it.
    pub fn crate_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.recipe.options.manifest_dir = Some(folder.into());
        self
    }

    /// Sets one key; wins over the file.
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.recipe
            .options
            .overrides
            .push((key.into(), value.into()));
        self
    }

    /// Lets only these registered handlers and `#[bindings]` structs take part, each given by its name or its module.
    /// Without it all do whose bindings the configuration names.
    pub fn only<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.recipe.only.extend(names.into_iter().map(Into::into));
        self
    }

    /// Leaves out what attributes registered, see [`AppBuilder::without_inventory`].
    pub fn without_inventory(self) -> Self {
        self.step(AppBuilder::without_inventory)
    }

    /// Gives a value for `State<T>`, see [`AppBuilder::state`].
    pub fn state<T: Any + Clone + Send + Sync>(self, value: T) -> Self {
        self.step(move |app| app.state(value.clone()))
    }

    /// Adds a handler without an attribute, see [`AppBuilder::handler`].
    pub fn handler(self, handler: Handler) -> Self {
        self.step(move |app| app.handler(handler.clone()))
    }

    /// Adds a `#[bindings]` struct that is not registered, see [`AppBuilder::bindings`].
    pub fn bindings<S: BindingSource>(self) -> Self {
        self.step(AppBuilder::bindings::<S>)
    }

    /// Declares an output, see [`AppBuilder::output`]. One that the configuration names and nothing uses is declared anyhow.
    pub fn output(self, binding: impl Into<String>) -> Self {
        let binding = binding.into();
        self.step(move |app| app.output(binding.clone()))
    }

    /// Adds a transaction listener, see [`AppBuilder::transaction_listener`]; all instances share it.
    #[track_caller]
    pub fn transaction_listener(
        self,
        name: impl Into<String>,
        listener: impl TransactionListener,
    ) -> Self {
        let (name, caller) = (name.into(), std::panic::Location::caller());
        let handle = ListenerHandle::new(name.as_str(), listener);
        let declared = DeclaredBinding {
            name,
            by: "`TestAppBuilder::transaction_listener`".to_owned(),
            file: caller.file().to_owned(),
            line: caller.line(),
        };
        self.step(move |app| app.listener_handle(declared.clone(), handle.clone()))
    }

    /// Adds a handler of failures, see [`AppBuilder::error_handler`].
    pub fn error_handler(self, handler: ErrorHandler) -> Self {
        self.step(move |app| app.error_handler(handler.clone()))
    }

    /// Adds HTTP routes, see [`AppBuilder::routes`]; they listen on a free port.
    pub fn routes(self, routes: Router) -> Self {
        self.step(move |app| app.set("server.port", "0").routes(routes.clone()))
    }

    /// What the application runs on; [`BackEnd::Memory`] unless said otherwise.
    pub fn back_end(mut self, back_end: BackEnd) -> Self {
        self.back_end = back_end;
        self
    }

    /// When virtual time begins, in milliseconds since 1970 UTC; the present unless said otherwise.
    pub fn begins_at(mut self, millis: i64) -> Self {
        self.begins = Some(millis);
        self
    }

    fn step(mut self, step: impl Fn(AppBuilder) -> AppBuilder + Send + Sync + 'static) -> Self {
        self.recipe.steps.push(Arc::new(step));
        self
    }

    /// Starts the broker and the application on it; returns when all bindings are up.
    ///
    /// # Errors
    /// Those of [`AppBuilder::start`], and what keeps the back end from starting.
    pub async fn start(self) -> Result<TestApp> {
        let loaded = self.recipe.load()?;
        let server = Server::start(self.back_end, &loaded, self.begins).await?;
        let log = Log::new(server.pace());
        let app = self.recipe.start(&loaded, &server, &log).await?;
        TestApp::new(self, loaded, server, log, app).map_err(Error::from)
    }

    pub(super) fn kind(&self) -> BackEnd {
        self.back_end
    }
}

impl Recipe {
    /// Reads the configuration by itself: it says which bindings there are.
    pub(super) fn load(&self) -> Result<Loaded> {
        Config::load(self.options.clone()).map_err(Error::Config)
    }

    /// Starts one instance of the application on `server`.
    pub(super) async fn start(
        &self,
        loaded: &Loaded,
        server: &Server,
        log: &Log,
    ) -> Result<crate::AppHandle> {
        let kind = match server {
            Server::Memory(_) => "memory",
            Server::Real(_) => "rocketmq",
        };
        let mut builder = App::builder().options(self.options.clone());
        builder = builder
            .set("spring.cloud.stream.default-binder", kind)
            .set("bindery.config.allow-unused", "true");
        for binding in loaded.config.bindings.values() {
            if binding
                .binder
                .as_deref()
                .is_some_and(|binder| binder != kind)
            {
                let key = format!("spring.cloud.stream.bindings.{}.binder", binding.name);
                builder = builder.set(key, kind);
            }
        }
        if loaded.config.server.port.is_some() {
            builder = builder.set("server.port", "0");
        }
        builder = match server {
            Server::Memory(memory) => builder.memory(memory.clone()),
            Server::Real(_) => builder.binder("rocketmq", server.binder(loaded)?),
        };
        let names: Vec<String> = loaded.config.bindings.keys().cloned().collect();
        let only = self.only.clone();
        let bindings: Vec<_> = loaded.config.bindings.values().cloned().collect();
        builder = builder.select(move |registered| {
            select(registered, &names, &only);
            registered
                .error_handlers
                .retain(|handler| handler.concerns(&bindings));
        });
        let free = unused_outputs(loaded);
        let log = log.clone();
        builder = builder.adapt(move |program| {
            declare(program, free);
            let handlers = std::mem::take(&mut program.handlers).into_iter();
            program.handlers = handlers.map(|handler| log.around(handler)).collect();
            let log = log.clone();
            program.around_listeners = Around(Some(Arc::new(move |listener| {
                log.around_listener(listener)
            })));
        });
        let builder = self
            .steps
            .iter()
            .fold(builder, |builder, step| step(builder));
        builder.start().await
    }
}

/// Leaves out what the test does not want, and what needs bindings that its configuration does not have.
fn select(registered: &mut Program, names: &[String], only: &[String]) {
    let has = |name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let chosen = |name: &str, module: &str| {
        only.is_empty() || only.iter().any(|wanted| wanted == name || wanted == module)
    };
    registered.handlers.retain(|handler| {
        chosen(handler.name(), handler.module())
            && has(handler.binding())
            && handler.send_to().all(has)
    });
    registered.sources.retain(|source| {
        let complete = source.fields.iter().all(|field| has(field.binding));
        // What a source struct offers harms nobody: it takes part also when `only` speaks of handlers alone.
        complete && !source.fields.is_empty()
    });
}

/// Configured bindings without a group: outputs, if nothing else says what they are.
fn unused_outputs(loaded: &Loaded) -> Vec<String> {
    let bindings = loaded.config.bindings.values();
    bindings
        .filter(|binding| binding.group.is_none() && !binding.destination.is_empty())
        .map(|binding| binding.name.clone())
        .collect()
}

fn declare(program: &mut Program, outputs: Vec<String>) {
    let usage = program.usage();
    let used: Vec<String> = usage
        .inputs
        .iter()
        .chain(&usage.outputs)
        .map(|declared| declared.name.to_lowercase())
        .collect();
    for name in outputs {
        if !used.contains(&name.to_lowercase()) {
            program.outputs.push(DeclaredBinding {
                name,
                by: "the configuration of the test".to_owned(),
                file: file!().to_owned(),
                line: line!(),
            });
        }
    }
}
