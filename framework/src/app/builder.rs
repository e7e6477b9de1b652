//! Describing an application: its configuration, state, routes and handlers.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;

use super::assembly::Assembly;
use super::flags;
use super::handle::AppHandle;
use super::program::{Listening, Named, Origin, Program};
use crate::binder::Binder;
use crate::binder::memory::MemoryBinder;
use crate::config::{
    Config, ConfigErrors, DeclaredBinding, Flags, LoadOptions, Loaded, Usage, check_usage,
};
use crate::error::{Error, Result};
use crate::error_handler::ErrorHandler;
use crate::handler::AppContext;
use crate::log::LogLevels;
use crate::partition::{KeyExtractor, PartitionSelector};
use crate::registry::{BindingSource, Handler};
use crate::signals::{self, Signals};
use crate::transaction::{ListenerHandle, TransactionListener};

/// Where an application begins: [`App::builder`].
#[derive(Debug, Clone, Copy)]
pub struct App;

impl App {
    /// An application with what attributes registered in this program, configured by the process: `application.yaml`,
    /// environment and command line.
    pub fn builder() -> AppBuilder {
        AppBuilder::default()
    }
}

/// A change of the program before it is checked.
type Change = Box<dyn FnOnce(&mut Program) + Send>;

/// Called once when the application has started.
pub(super) type StartHook =
    Box<dyn FnOnce(AppHandle) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// An application that is being described; [`run`](Self::run) or [`start`](Self::start) ends the description.
///
/// Several applications may live in one process: give each its own configuration, and use
/// [`without_inventory`](Self::without_inventory) where they must not share the registered handlers.
#[must_use = "an application does nothing until `run` or `start`"]
pub struct AppBuilder {
    source: ConfigSource,
    overrides: Vec<(String, String)>,
    program: Program,
    inventory: bool,
    context: AppContext,
    routes: Router,
    has_routes: bool,
    binders: BTreeMap<String, Arc<dyn Binder>>,
    memory: Option<MemoryBinder>,
    select: Option<Change>,
    adapt: Option<Change>,
    hooks: Vec<StartHook>,
    log: Option<LogLevels>,
}

/// Where the configuration comes from.
enum ConfigSource {
    Process,
    Options(Box<LoadOptions>),
    Loaded(Box<Loaded>),
}

impl Default for AppBuilder {
    fn default() -> Self {
        Self {
            source: ConfigSource::Process,
            overrides: Vec::new(),
            program: Program::default(),
            inventory: true,
            context: AppContext::new(),
            routes: Router::new(),
            has_routes: false,
            binders: BTreeMap::new(),
            memory: None,
            select: None,
            adapt: None,
            hooks: Vec::new(),
            log: None,
        }
    }
}

impl AppBuilder {
    /// Uses this configuration instead of the process's.
    pub fn config(mut self, loaded: Loaded) -> Self {
        self.source = ConfigSource::Loaded(Box::new(loaded));
        self
    }

    /// Reads the configuration from these places instead of the process's.
    pub fn options(mut self, options: LoadOptions) -> Self {
        self.source = ConfigSource::Options(Box::new(options));
        self
    }

    /// Sets one key; wins over every other source. Without effect on a configuration given by [`config`](Self::config).
    pub fn set(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.overrides.push((key.into(), value.into()));
        self
    }

    /// Gives handlers and routes a value for their `State<T>` argument; one value a type.
    pub fn state<T: Any + Clone + Send + Sync>(mut self, value: T) -> Self {
        self.context.insert(value);
        self
    }

    /// Adds HTTP routes. `Bound<S>`, `StreamBridge` and [`State<T>`](crate::handler::State) are extractors in them.
    pub fn routes(mut self, routes: Router) -> Self {
        self.routes = self.routes.merge(routes);
        self.has_routes = true;
        self
    }

    /// Adds a handler without an attribute.
    pub fn handler(mut self, handler: Handler) -> Self {
        self.program.handlers.push(handler);
        self
    }

    /// Declares an output that is named at run time only, through [`StreamBridge`](crate::StreamBridge).
    #[track_caller]
    pub fn output(mut self, binding: impl Into<String>) -> Self {
        let declared = here(binding, "`AppBuilder::output`");
        self.program.outputs.push(declared);
        self
    }

    /// Adds a transaction listener without an attribute, under the name that `transactionListener` uses for it.
    #[track_caller]
    pub fn transaction_listener(
        mut self,
        name: impl Into<String>,
        listener: impl TransactionListener,
    ) -> Self {
        let name = name.into();
        self.program.listeners.push(Listening {
            origin: Origin::Given(ListenerHandle::new(name.as_str(), listener)),
            declared: here(name, "`AppBuilder::transaction_listener`"),
        });
        self
    }

    /// Adds an error handler without an attribute.
    pub fn error_handler(mut self, handler: ErrorHandler) -> Self {
        self.program.error_handlers.push(handler);
        self
    }

    /// Adds a partition key extractor without an attribute, under its name.
    #[track_caller]
    pub fn partition_key_extractor(mut self, extractor: KeyExtractor) -> Self {
        self.program.key_extractors.push(Named {
            declared: here(extractor.name(), "`AppBuilder::partition_key_extractor`"),
            code: extractor,
        });
        self
    }

    /// Adds a partition selector without an attribute, under its name.
    #[track_caller]
    pub fn partition_selector(mut self, selector: PartitionSelector) -> Self {
        self.program.partition_selectors.push(Named {
            declared: here(selector.name(), "`AppBuilder::partition_selector`"),
            code: selector,
        });
        self
    }

    /// Adds a transaction listener that is shared with others.
    pub(crate) fn listener_handle(
        mut self,
        declared: DeclaredBinding,
        handle: ListenerHandle,
    ) -> Self {
        self.program.listeners.push(Listening {
            origin: Origin::Given(handle),
            declared,
        });
        self
    }

    /// Declares the bindings of a `#[bindings]` struct that no handler asks for; with the inventory it is known already.
    pub fn bindings<S: BindingSource>(mut self) -> Self {
        self.program.add_source(S::descriptor());
        self
    }

    /// Leaves out what attributes registered; only [`handler`](Self::handler), [`bindings`](Self::bindings) and
    /// [`transaction_listener`](Self::transaction_listener) count.
    pub fn without_inventory(mut self) -> Self {
        self.inventory = false;
        self
    }

    /// Adds a binder, or replaces `rocketmq` or `memory`, under the name that configuration uses for it.
    pub fn binder(mut self, name: impl Into<String>, binder: Arc<dyn Binder>) -> Self {
        self.binders.insert(name.into(), binder);
        self
    }

    /// Gives the binder `memory` its broker, and the application that broker's time.
    pub(crate) fn memory(mut self, broker: MemoryBinder) -> Self {
        self.memory = Some(broker);
        self
    }

    /// Chooses among what attributes registered.
    pub(crate) fn select(mut self, select: impl FnOnce(&mut Program) + Send + 'static) -> Self {
        self.select = Some(Box::new(select));
        self
    }

    /// Changes the whole program before it is checked.
    pub(crate) fn adapt(mut self, adapt: impl FnOnce(&mut Program) + Send + 'static) -> Self {
        self.adapt = Some(Box::new(adapt));
        self
    }

    /// Runs a task when all bindings are up. It belongs to the application: stopping drops it where it is.
    pub fn on_started<F, Fut>(mut self, hook: F) -> Self
    where
        F: FnOnce(AppHandle) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.hooks.push(Box::new(move |app| Box::pin(hook(app))));
        self
    }

    /// Lets the configuration set the levels of a log.
    pub(crate) fn log(mut self, log: Option<LogLevels>) -> Self {
        self.log = log;
        self
    }

    /// What the command line asks instead of a run; only of a program that is configured by its process.
    fn asked(&self) -> Option<Flags> {
        let ConfigSource::Process = self.source else {
            return None;
        };
        let (flags, _settings) = Flags::parse(&LoadOptions::from_process().args);
        flags::asks(&flags).then_some(flags)
    }

    /// Adds what attributes registered, and what handlers ask for.
    fn complete_program(&mut self) {
        if self.inventory {
            let mut registered = Program::registered();
            if let Some(select) = self.select.take() {
                select(&mut registered);
            }
            let explicit = std::mem::replace(&mut self.program, registered);
            self.program.add(explicit);
        }
        self.program.add_required_sources();
        if let Some(adapt) = self.adapt.take() {
            adapt(&mut self.program);
        }
    }

    /// Starts the application and returns when all bindings are up.
    ///
    /// # Errors
    /// [`Error::Config`] with every mistake of configuration and program, before anything is connected; else what
    /// failed first. What had been started is stopped again.
    pub async fn start(mut self) -> Result<AppHandle> {
        let began = std::time::Instant::now();
        self.complete_program();
        let loaded = load(self.source, self.overrides, &self.program).map_err(Error::Config)?;
        if let Some(log) = &self.log {
            log.apply(&loaded.config.logging);
        }
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let missing = self.program.missing_state(&self.context);
        if !missing.is_empty() {
            return Err(Error::MissingState { missing });
        }
        let assembly = Assembly {
            config: loaded.config,
            program: self.program,
            context: self.context,
            routes: self.has_routes.then_some(self.routes),
            binders: self.binders,
            memory: self.memory.unwrap_or_default(),
            hooks: self.hooks,
        };
        assembly.start(began).await
    }

    /// Runs the application until Ctrl-C or SIGTERM, then stops it in order. A second signal ends the process at once.
    ///
    /// # Errors
    /// As [`start`](Self::start), or what could not be stopped in order.
    pub async fn run(mut self) -> Result<()> {
        if let Some(flags) = self.asked() {
            self.complete_program();
            return flags::answer(&flags, load(self.source, self.overrides, &self.program));
        }
        let mut signals = Signals::listen()?;
        // On the heap: the futures of everything that is started would be part of every caller's future.
        let (app, interrupted) = signals.start(Box::pin(self.start())).await?;
        if !interrupted {
            tokio::select! {
                name = signals.next() => signals::announce(name),
                () = app.stopping() => {}
            }
        }
        tokio::select! {
            result = app.shutdown() => result,
            name = signals.next() => signals::end_at_once(name),
        }
    }
}

/// What the caller of a builder's method declares.
#[track_caller]
fn here(name: impl Into<String>, by: &str) -> DeclaredBinding {
    let caller = std::panic::Location::caller();
    DeclaredBinding {
        name: name.into(),
        by: by.to_owned(),
        file: caller.file().to_owned(),
        line: caller.line(),
    }
}

fn load(
    source: ConfigSource,
    overrides: Vec<(String, String)>,
    program: &Program,
) -> std::result::Result<Loaded, ConfigErrors> {
    let usage = program.usage();
    match source {
        ConfigSource::Loaded(loaded) => checked(*loaded, &usage),
        ConfigSource::Process => load_with(LoadOptions::from_process(), overrides, &usage),
        ConfigSource::Options(options) => load_with(*options, overrides, &usage),
    }
}

fn checked(mut loaded: Loaded, usage: &Usage) -> std::result::Result<Loaded, ConfigErrors> {
    loaded.config.add_declared(usage);
    let mut found = std::mem::take(&mut loaded.warnings);
    found.extend(check_usage(&loaded, usage));
    match ConfigErrors::of(found.clone()) {
        Some(errors) => Err(errors),
        None => Ok(Loaded {
            warnings: found,
            ..loaded
        }),
    }
}

fn load_with(
    mut options: LoadOptions,
    overrides: Vec<(String, String)>,
    usage: &Usage,
) -> std::result::Result<Loaded, ConfigErrors> {
    options.overrides.extend(overrides);
    Config::load_for(options, usage)
}

impl fmt::Debug for AppBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppBuilder")
            .field("program", &self.program)
            .field("inventory", &self.inventory)
            .finish_non_exhaustive()
    }
}
