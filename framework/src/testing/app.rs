//! The application under test, and what a test does with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::back_end::{BackEnd, Server};
use super::builder::TestAppBuilder;
use super::calls::{Call, Log};
use super::handles::{TestClock, TestInput, TestOutput, TestTransactions};
use super::peer::{self, Instance};
use super::received::Received;
use super::tap::Taps;
use crate::AppHandle;
use crate::binder::{Binder, BinderError, StartAt};
use crate::binding::{OutputBinding, SendError};
use crate::config::Loaded;
use crate::error::{Error, Result};
use crate::pipeline::Chain;

/// How long a test waits, in real time, for something that should come by itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// An application under test, running on a broker of its own. See [the module](super) for an example.
///
/// Methods that can fail only because something is wrong with the test, or the code under test, panic and say what.
pub struct TestApp {
    builder: TestAppBuilder,
    pub(super) loaded: Loaded,
    pub(super) server: Server,
    pub(super) log: Log,
    pub(super) app: AppHandle,
    /// For the test's own sends and looks.
    binder: Arc<dyn Binder>,
    pub(super) taps: Taps,
    outputs: Mutex<BTreeMap<String, Arc<OutputBinding>>>,
}

impl TestApp {
    /// Describes an application. `#[bindery::test]` does it for most tests.
    pub fn builder() -> TestAppBuilder {
        TestAppBuilder::default()
    }

    pub(super) fn new(
        builder: TestAppBuilder,
        loaded: Loaded,
        server: Server,
        log: Log,
        app: AppHandle,
    ) -> Result<Self, BinderError> {
        let binder = server.binder(&loaded)?;
        Ok(Self {
            builder,
            loaded,
            server,
            log,
            app,
            binder,
            taps: Taps::default(),
            outputs: Mutex::default(),
        })
    }

    /// The running application: its outputs, its bridge, its state.
    #[must_use]
    pub fn app(&self) -> &AppHandle {
        &self.app
    }

    /// What it runs on.
    #[must_use]
    pub fn back_end(&self) -> BackEnd {
        self.builder.kind()
    }

    /// The same application on a real broker: on the cluster that `BINDERY_NAMESRV` names, else on the included one.
    /// Nothing of what happened before is there.
    ///
    /// # Panics
    /// When it does not start there.
    pub async fn with_real_broker(self) -> Self {
        let builder = self.builder.clone();
        Box::pin(self.shutdown()).await;
        let back_end = BackEnd::cluster().unwrap_or(BackEnd::Embedded);
        // On the heap: what starts an application would be part of every test's future.
        match Box::pin(builder.back_end(back_end).start()).await {
            Ok(app) => app,
            Err(error) => panic!(
                "the application does not start on the {back_end} broker: {}",
                Chain(&error)
            ),
        }
    }

    /// Where messages are put in: an input by its binding's name, or any destination.
    #[must_use]
    pub fn input(&self, name: &str) -> TestInput<'_> {
        TestInput::new(self, name)
    }

    /// Where messages come out: an output by its binding's name, or any destination, also `%DLQ%group`.
    #[must_use]
    pub fn output(&self, name: &str) -> TestOutput<'_> {
        TestOutput::new(self, self.destination(name))
    }

    /// Waits until nothing is in flight: no message waits for a handler, is being handled, comes again or is delayed.
    /// In memory time jumps over every pause. Transactions without an outcome are not in flight, see [`tx`](Self::tx);
    /// neither is what waits for a paused input or a broker that is down.
    ///
    /// # Panics
    /// When something is still in flight after half a minute, or keeps coming again for days of virtual time.
    pub async fn settle(&self) {
        match &self.server {
            Server::Memory(memory) => {
                match tokio::time::timeout(PATIENCE, memory.settled_within(VIRTUAL_PATIENCE)).await
                {
                    Ok(true) => {}
                    Ok(false) => panic!(
                        "still in flight after {} days of virtual time: {}",
                        VIRTUAL_PATIENCE.as_secs() / 86_400,
                        memory.under_way()
                    ),
                    Err(tokio::time::error::Elapsed { .. }) => {
                        panic!("still in flight after {PATIENCE:?}: {}", memory.under_way())
                    }
                }
            }
            Server::Real(real) => {
                let flight = async || real.watch.in_flight(&real.client).await;
                self.until("nothing is in flight", flight).await;
            }
        }
    }

    /// Every attempt of the handler of this name, or of all handlers of this input, in the order of their calls.
    ///
    /// # Panics
    /// When no handler or input of this name takes part.
    #[must_use]
    #[track_caller]
    pub fn calls(&self, name: &str) -> Vec<Call> {
        let known = self.app.handlers();
        let takes_part = known
            .iter()
            .any(|(handler, binding)| handler == name || binding.eq_ignore_ascii_case(name));
        assert!(
            takes_part,
            "no handler or input `{name}` takes part; there are {known:?} (handler, input)"
        );
        self.log
            .calls(|call| call.handler() == name || call.binding().eq_ignore_ascii_case(name))
    }

    /// Waits until there are at least `count` such calls; in memory nothing needs to be waited for after
    /// [`settle`](Self::settle).
    ///
    /// # Panics
    /// When they don't come within half a minute.
    pub async fn wait_for_calls(&self, name: &str, count: usize) -> Vec<Call> {
        let missing = async || {
            let seen = self.calls(name).len();
            (seen < count).then(|| format!("{seen} calls of {name}, {count} expected"))
        };
        self.until("the calls", missing).await;
        self.calls(name)
    }

    /// The dead letters of a consumer group.
    pub async fn dlq(&self, group: &str) -> Vec<Received> {
        self.stored(&bindery_protocol::names::dlq_topic(group))
            .await
    }

    /// Everything that is stored in a topic, given by its name or by a binding's.
    ///
    /// # Panics
    /// When a real broker does not answer in time.
    pub async fn stored(&self, name: &str) -> Vec<Received> {
        let topic = self.destination(name);
        match &self.server {
            Server::Memory(memory) => memory
                .in_order(&topic)
                .into_iter()
                .map(|(_, message)| Received::new(message))
                .collect(),
            Server::Real(real) => {
                if !real
                    .client
                    .admin()
                    .topic_exists(&topic)
                    .await
                    .unwrap_or(false)
                {
                    return Vec::new();
                }
                let tap = self.tap(&topic).await;
                let missing = async || {
                    let caught = tap.all().len();
                    match tap.stored(&real.client).await {
                        Ok(stored) if caught >= stored => None,
                        Ok(stored) => Some(format!("{caught} of {stored} messages of {topic}")),
                        Err(error) => Some(error.to_string()),
                    }
                };
                self.until("the topic is read", missing).await;
                tap.all()
            }
        }
    }

    /// The test's time.
    #[must_use]
    pub fn clock(&self) -> TestClock<'_> {
        TestClock::new(self)
    }

    /// Takes the broker down: sends fail, nothing is delivered, nothing is lost. On a real back end it is stopped.
    ///
    /// # Panics
    /// On a cluster, whose brokers a test cannot stop.
    pub async fn fail_broker(&mut self) {
        let done = match &mut self.server {
            Server::Memory(memory) => {
                memory.set_outage(Some(crate::binder::memory::Outage::Refusing));
                Ok(())
            }
            Server::Real(real) => real.fail().await,
        };
        told("the broker was not stopped", done);
    }

    /// Lets the broker hang: connections stand, nothing is answered.
    ///
    /// # Panics
    /// On anything but memory.
    pub fn silence_broker(&mut self) {
        match &self.server {
            Server::Memory(memory) => {
                memory.set_outage(Some(crate::binder::memory::Outage::Silent));
            }
            Server::Real(_) => panic!("only the broker in memory can be silenced"),
        }
    }

    /// Brings the broker back after [`fail_broker`](Self::fail_broker), with everything that it had stored.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn restore_broker(&mut self) {
        let done = match &mut self.server {
            Server::Memory(memory) => {
                memory.set_outage(None);
                Ok(())
            }
            Server::Real(real) => real.restore().await,
        };
        told("the broker was not started", done);
    }

    /// Tries of all sends so far, each counted; known in memory only.
    #[must_use]
    pub fn send_attempts(&self) -> Option<u64> {
        match &self.server {
            Server::Memory(memory) => Some(memory.send_attempts()),
            Server::Real(_) => None,
        }
    }

    /// A second instance of the application on the same broker: it joins every group. Its calls are noted with those of
    /// the first.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn another(&self) -> Instance {
        let started = self
            .builder
            .recipe
            .start(&self.loaded, &self.server, &self.log)
            .await;
        match started {
            Ok(app) => Instance::new(app),
            Err(error) => panic!("the second instance does not start: {}", Chain(&error)),
        }
    }

    /// Another application on the same broker, with configuration, handlers and listeners of its own; its calls are noted
    /// with those of this one. Stop it by its handle.
    ///
    /// # Errors
    /// Those of [`AppBuilder::start`](crate::AppBuilder::start).
    pub async fn beside(&self, other: TestAppBuilder) -> Result<AppHandle> {
        let loaded = other.recipe.load()?;
        other.recipe.start(&loaded, &self.server, &self.log).await
    }

    /// A client of the broker, in the test's namespace, to ask what no application asks; none in memory.
    #[must_use]
    pub fn client(&self) -> Option<&bindery_client::Client> {
        match &self.server {
            Server::Memory(_) => None,
            Server::Real(real) => Some(&real.client),
        }
    }

    /// Lets every group share its queues anew: a second instance joins, gets its part, and leaves again.
    ///
    /// # Panics
    /// When the queues don't move within half a minute.
    pub async fn rebalance(&self) {
        let before = peer::assigned(&self.app).await;
        let other = self.another().await;
        let joined = async || {
            let moved = peer::assigned(&self.app).await < before;
            (!moved).then(|| format!("no queue was given away, {before} before"))
        };
        // Without two queues to share there is nothing that could move.
        if before > 1 && peer::shares(&self.app) {
            self.until("queues are shared", joined).await;
        }
        other.leave().await;
        let back = async || {
            let now = peer::assigned(&self.app).await;
            (now < before).then(|| format!("{now} of {before} queues are back"))
        };
        self.until("queues are back", back).await;
    }

    /// Stops the application and starts it again on the same broker: groups go on where they had stopped.
    ///
    /// # Panics
    /// When it does not stop in order or does not start.
    pub async fn restart(&mut self) {
        told(
            "the application did not stop in order",
            self.app.shutdown().await,
        );
        let started = self
            .builder
            .recipe
            .start(&self.loaded, &self.server, &self.log)
            .await;
        match started {
            Ok(app) => self.app = app,
            Err(error) => panic!("the application does not start again: {}", Chain(&error)),
        }
    }

    /// The questions to transaction listeners.
    #[must_use]
    pub fn tx(&self) -> TestTransactions<'_> {
        TestTransactions::new(self)
    }

    /// Moves a group's position in every queue of a topic.
    ///
    /// # Panics
    /// When a real broker refuses.
    pub async fn reset(&self, group: &str, topic: &str, to: StartAt) {
        let topic = self.destination(topic);
        match &self.server {
            Server::Memory(memory) => memory.reset(group, &topic, to),
            Server::Real(real) => {
                let millis = match to {
                    StartAt::First => 0,
                    StartAt::Last => -1,
                    StartAt::Timestamp(millis) => millis,
                };
                let moved = real
                    .client
                    .admin()
                    .reset_offset(group, &topic, millis)
                    .await;
                told("positions were not moved", moved.map_err(Error::user));
            }
        }
    }

    /// The bindings as `GET /actuator/bindings` shows them.
    #[must_use]
    pub fn bindings(&self) -> Vec<serde_json::Value> {
        crate::actuator::all(self.app.context())
    }

    /// The actuator's answer to `GET` of a path below its base, `"/bindings"` say: status and body. All endpoints are there,
    /// whatever the configuration exposes.
    pub async fn actuator(&self, path: &str) -> (u16, serde_json::Value) {
        peer::actuator(&self.app, &self.loaded.config, "GET", path, None).await
    }

    /// The actuator's answer to `POST` of a path with a JSON body.
    pub async fn actuator_post(
        &self,
        path: &str,
        body: serde_json::Value,
    ) -> (u16, serde_json::Value) {
        peer::actuator(&self.app, &self.loaded.config, "POST", path, Some(body)).await
    }

    /// Stops application and broker in order. A test that ends without it drops them as they are.
    pub async fn shutdown(self) {
        told(
            "the application did not stop in order",
            self.app.shutdown().await,
        );
        self.taps.close().await;
        let outputs = std::mem::take(&mut *lock(&self.outputs));
        for output in outputs.into_values() {
            told(
                "an output did not close",
                output.stop().await.map_err(Error::from),
            );
        }
        told(
            "the binder did not close",
            self.binder.shutdown().await.map_err(Error::from),
        );
        told("the broker did not stop in order", self.server.stop().await);
    }

    /// The topic of a binding; any other name is a topic's own.
    fn destination(&self, name: &str) -> String {
        let bindings = &self.loaded.config.bindings;
        let binding = bindings.get(name);
        let first = binding.and_then(|binding| binding.destinations().next());
        first.unwrap_or(name).to_owned()
    }

    pub(super) async fn tap(&self, topic: &str) -> Arc<super::tap::Tap> {
        let opened = self.taps.of(topic, &*self.binder, self.log.pace()).await;
        opened.unwrap_or_else(|error| panic!("cannot look at `{topic}`: {}", Chain(&error)))
    }

    /// An output of the test's own to what `name` stands for.
    pub(super) async fn output_to(&self, name: &str) -> Result<Arc<OutputBinding>, SendError> {
        let topic = self.destination(name);
        // Its rule says in which queue a message belongs.
        let mut own = self.app.bindings().outputs();
        if let Some(partitioned) = own
            .find(|output| output.parts.destination == topic && output.parts.partitioning.is_some())
        {
            return Ok(Arc::clone(partitioned));
        }
        if let Some(open) = lock(&self.outputs).get(name) {
            return Ok(Arc::clone(open));
        }
        let output = peer::open_output(&self.loaded, &*self.binder, name, &topic).await?;
        let output = Arc::new(output);
        lock(&self.outputs).insert(name.to_owned(), Arc::clone(&output));
        Ok(output)
    }

    /// Waits until `missing` says nothing any more.
    async fn until(&self, what: &str, missing: impl AsyncFn() -> Option<String>) {
        self.until_within(PATIENCE, what, missing).await;
    }

    pub(super) async fn until_within(
        &self,
        patience: Duration,
        what: &str,
        missing: impl AsyncFn() -> Option<String>,
    ) {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let changed = self.log.pace().changed();
            let Some(missing) = missing().await else {
                return;
            };
            assert!(
                tokio::time::Instant::now() < deadline,
                "waited {patience:?} until {what}: {missing}"
            );
            // What a real broker does is not told here.
            let _told_or_not = tokio::time::timeout(POLL_INTERVAL, changed).await;
        }
    }
}

/// How much virtual time may pass until everything is at rest.
const VIRTUAL_PATIENCE: Duration = Duration::from_secs(3 * 86_400);

/// How often a real broker is asked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl fmt::Debug for TestApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestApp")
            .field("back_end", &self.back_end())
            .field("app", &self.app)
            .finish_non_exhaustive()
    }
}

#[track_caller]
fn told<T>(what: &str, result: Result<T>) {
    if let Err(error) = result {
        panic!("{what}: {}", Chain(&error));
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
