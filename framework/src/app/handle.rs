//! A running application: what it is made of, and how it ends.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::binder::Binder;
use crate::binding::{BindError, Bindings, Bound, BoundField, Input, Output, StreamBridge};
use crate::embedded::Embedded;
use crate::error::{Error, Result};
use crate::handler::AppContext;
use crate::registry::BindingSource;
use crate::web::WebServer;

/// A running application. A handle: clones are the same application.
#[derive(Debug, Clone)]
pub struct AppHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    binders: BTreeMap<String, Arc<dyn Binder>>,
    bindings: Bindings,
    context: Arc<AppContext>,
    /// Handlers and their inputs.
    handlers: Vec<(String, String)>,
    stopping: CancellationToken,
    tasks: TaskTracker,
    web_address: Option<SocketAddr>,
    name_server: Option<String>,
    /// Set by whoever asked for the end first.
    stop_asked: CancellationToken,
    /// Emptied by the first shutdown; the others wait for it here.
    running: Mutex<Option<Running>>,
}

/// The parts of an application in the order of their start.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) embedded: Option<Embedded>,
    pub(super) binders: BTreeMap<String, Arc<dyn Binder>>,
    pub(super) bindings: Bindings,
    pub(super) context: Arc<AppContext>,
    pub(super) handlers: Vec<(String, String)>,
    pub(super) web: Option<WebServer>,
    pub(super) tasks: TaskTracker,
    /// Ends pauses between attempts, and the tasks of hooks.
    pub(super) stopping: CancellationToken,
}

impl Default for Running {
    fn default() -> Self {
        Self {
            embedded: None,
            binders: BTreeMap::new(),
            bindings: Bindings::new(Vec::new(), Vec::new()),
            context: Arc::new(AppContext::new()),
            handlers: Vec::new(),
            web: None,
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }
    }
}

impl AppHandle {
    pub(super) fn new(running: Running) -> Self {
        let shared = Shared {
            binders: running.binders.clone(),
            bindings: running.bindings.clone(),
            context: Arc::clone(&running.context),
            handlers: running.handlers.clone(),
            stopping: running.stopping.clone(),
            tasks: running.tasks.clone(),
            web_address: running.web.as_ref().map(WebServer::address),
            name_server: running.embedded.as_ref().map(Embedded::name_server),
            stop_asked: CancellationToken::new(),
            running: Mutex::new(Some(running)),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// A `#[bindings]` struct, connected.
    ///
    /// # Errors
    /// One of its bindings is not part of this application.
    pub fn bound<S: BindingSource>(&self) -> Result<Bound<S>, BindError> {
        self.shared.bindings.source().map(Bound::new)
    }

    /// A handle on an output by its name.
    ///
    /// # Errors
    /// There is no such output.
    pub fn output<T>(&self, name: &str) -> Result<Output<T>, BindError> {
        Output::bind(&self.shared.bindings, name)
    }

    /// A handle on an input by its name.
    ///
    /// # Errors
    /// There is no such input.
    pub fn input(&self, name: &str) -> Result<Input, BindError> {
        Input::bind(&self.shared.bindings, name)
    }

    /// Sends to outputs by name.
    #[must_use]
    pub fn bridge(&self) -> StreamBridge {
        StreamBridge::new(self.shared.bindings.clone())
    }

    /// A value that was given with [`AppBuilder::state`](super::AppBuilder::state).
    #[must_use]
    pub fn state<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.shared
            .context
            .extension::<T>()
            .map(|value| (*value).clone())
    }

    /// Where the web server listens; `None` without one.
    #[must_use]
    pub fn web_address(&self) -> Option<SocketAddr> {
        self.shared.web_address
    }

    /// `host:port` of the embedded name server; `None` without one.
    #[must_use]
    pub fn name_server(&self) -> Option<&str> {
        self.shared.name_server.as_deref()
    }

    /// Names of the handlers, each with its input.
    pub(crate) fn handlers(&self) -> &[(String, String)] {
        &self.shared.handlers
    }

    pub(crate) fn bindings(&self) -> &Bindings {
        &self.shared.bindings
    }

    pub(crate) fn binders(&self) -> &BTreeMap<String, Arc<dyn Binder>> {
        &self.shared.binders
    }

    pub(crate) fn context(&self) -> &Arc<AppContext> {
        &self.shared.context
    }

    /// Asks for the end without waiting for it: [`AppBuilder::run`](super::AppBuilder::run) then stops the application.
    pub fn stop(&self) {
        self.shared.stop_asked.cancel();
    }

    /// Waits until somebody has asked for the end. Cancel safe.
    pub async fn stopping(&self) {
        self.shared.stop_asked.cancelled().await;
    }

    /// Stops in order: inputs take no more messages and let running handlers finish within `bindery.shutdown.grace`,
    /// then outputs, web server, binders, and the embedded broker, whose store is left clean. A second call waits for the
    /// first.
    ///
    /// # Errors
    /// The first thing that could not be stopped in order; the rest is stopped all the same.
    pub async fn shutdown(&self) -> Result<()> {
        self.stop();
        let mut running = self.shared.running.lock().await;
        let Some(mut parts) = running.take() else {
            return Ok(());
        };
        let mut failures = parts.stop().await.into_iter();
        let first = failures.next();
        failures.for_each(|error| tracing::warn!(%error, "while stopping"));
        tracing::info!("stopped");
        first.map_or(Ok(()), Err)
    }

    /// Runs a task that ends with the application.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.shared.stopping.clone();
        self.shared.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stopping.cancelled() => {}
                () = task => {}
            }
        });
    }
}

impl Running {
    /// Stops everything that was started; the failures, in order.
    pub(super) async fn stop(&mut self) -> Vec<Error> {
        let mut failures = Vec::new();
        // First no more messages, then the end of pauses: a message that is given back must not be taken again at once.
        for input in self.bindings.inputs() {
            input.pause().await;
        }
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        let mut stopping = JoinSet::new();
        for input in self.bindings.inputs() {
            let input = Arc::clone(input);
            stopping.spawn(async move { input.stop().await });
        }
        while let Some(stopped) = stopping.join_next().await {
            match stopped {
                Ok(result) => failures.extend(result.err().map(Error::Binder)),
                Err(panicked) => failures.push(Error::User(Box::new(panicked))),
            }
        }
        for output in self.bindings.outputs() {
            failures.extend(output.stop().await.err().map(Error::Binder));
        }
        if let Some(web) = self.web.take() {
            failures.extend(web.stop().await.err());
        }
        for binder in std::mem::take(&mut self.binders).into_values() {
            failures.extend(binder.shutdown().await.err().map(Error::Binder));
        }
        if let Some(embedded) = self.embedded.take() {
            failures.extend(embedded.stop().await.err());
        }
        failures
    }
}
