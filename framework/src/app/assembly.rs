//! Putting an application together, in an order in which a failure leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::builder::StartHook;
use super::handle::{AppHandle, Running};
use super::late::{self, OfBinder, Partitioned, ToBind};
use super::program::Program;
use super::report::StartReport;
use super::specs;
use crate::binder::memory::MemoryBinder;
use crate::binder::rocketmq::{RocketmqBinder, RocketmqOptions};
use crate::binder::{Binder, BinderError, Capabilities, ProducerBinding};
use crate::binding::{BindError, Bindings, InputBinding, OutputBinding, OutputParts, Waiting};
use crate::config::{BindingConfig, Config, ProducerType, SendType};
use crate::embedded::Embedded;
use crate::error::{Error, Result};
use crate::error_handler::ErrorHandlers;
use crate::handler::AppContext;
use crate::pipeline::{Attempts, Listener, Pipeline};
use crate::registry::Direction;
use crate::transaction::ListenerHandle;
use crate::web::{WebAddress, WebServer};
use axum::Router;

/// Everything an application is started from; the configuration is checked.
pub(super) struct Assembly {
    pub(super) config: Config,
    pub(super) program: Program,
    pub(super) context: AppContext,
    pub(super) routes: Option<Router>,
    pub(super) binders: BTreeMap<String, Arc<dyn Binder>>,
    pub(super) memory: MemoryBinder,
    pub(super) hooks: Vec<StartHook>,
}

impl Assembly {
    pub(super) async fn start(mut self, began: Instant) -> Result<AppHandle> {
        // The port first: that it is taken should be told before anything else happens.
        let address = WebAddress::take(&self.config.server, self.routes.is_some()).await?;
        let mut running = Running::default();
        match self.connect(&mut running, address).await {
            Ok(report) => {
                let app = AppHandle::new(running);
                report.print(began.elapsed());
                self.hooks
                    .into_iter()
                    .for_each(|hook| app.spawn(hook(app.clone())));
                Ok(app)
            }
            Err(error) => {
                for failure in running.stop().await {
                    tracing::warn!(error = %failure, "while stopping after a failed start");
                }
                Err(error)
            }
        }
    }

    async fn connect(
        &mut self,
        running: &mut Running,
        address: Option<WebAddress>,
    ) -> Result<StartReport> {
        let (inputs, outputs) = self.used();
        // Built before anything is connected: what a listener lacks should be told first.
        let names = outputs
            .iter()
            .filter_map(|output| self.listener_name(output));
        let listeners = self.program.transaction_listeners(names, &self.context)?;
        running.embedded = match &self.config.embedded {
            Some(embedded) if self.needs_cluster(inputs.iter().chain(&outputs)) => {
                Some(Embedded::start(embedded).await?)
            }
            _ => None,
        };
        running.binders =
            self.binders_for(inputs.iter().chain(&outputs), running.embedded.as_ref())?;
        let mut to_bind = self.to_bind(&running.binders, &inputs, &outputs);
        let away = self.unless_away(to_bind.declare().await)?;
        let outputs = self
            .bind_outputs(&running.binders, &outputs, &listeners)
            .await?;
        let inputs = self.describe_inputs(&running.binders, &inputs)?;
        running.bindings = Bindings::new(inputs, outputs);
        let handlers = self.program.handlers.iter();
        running.handlers = handlers
            .map(|handler| (handler.name().to_owned(), handler.binding().to_owned()))
            .collect();
        self.context.insert(running.bindings.clone());
        running.context = Arc::new(std::mem::take(&mut self.context));
        for output in running.bindings.outputs() {
            output.attach(&running.context);
        }
        self.check_sources(&running.bindings)?;
        self.bind(running, to_bind, away).await?;
        if let Some(address) = address {
            let routes = self.routes.take().unwrap_or_default();
            let web = WebServer::start(
                address,
                &self.config,
                routes,
                Arc::clone(&running.context),
                &running.binders,
            );
            running.web = Some(web);
        }
        Ok(StartReport::new(&self.config, &self.program, running))
    }

    /// The configured bindings that the program receives from and sends to.
    fn used(&self) -> (Vec<BindingConfig>, Vec<BindingConfig>) {
        let usage = self.program.usage();
        let find = |names: BTreeSet<&str>| {
            let configured = names.into_iter().filter_map(|name| self.configured(name));
            configured
                .map(|binding| (binding.name.clone(), binding.clone()))
                .collect::<BTreeMap<_, _>>()
                .into_values()
                .collect()
        };
        let inputs = usage.inputs.iter().map(|one| one.name.as_str());
        let outputs = usage.outputs.iter().map(|one| one.name.as_str());
        // Those too that only the file names, for the bridge and for error handlers.
        let listed = self.config.output_bindings.iter().map(String::as_str);
        (
            find(inputs.collect()),
            find(outputs.chain(listed).collect()),
        )
    }

    /// The exact name, else the one that differs in case only; the configuration's check has refused everything else.
    fn configured(&self, name: &str) -> Option<&BindingConfig> {
        let bindings = &self.config.bindings;
        bindings.get(name).or_else(|| {
            bindings
                .values()
                .find(|binding| binding.name.eq_ignore_ascii_case(name))
        })
    }

    fn binders_for<'a>(
        &mut self,
        used: impl Iterator<Item = &'a BindingConfig>,
        embedded: Option<&Embedded>,
    ) -> Result<BTreeMap<String, Arc<dyn Binder>>> {
        let mut binders = BTreeMap::new();
        for binding in used {
            let kind = self.config.binder_of(binding).to_owned();
            if binders.contains_key(&kind) {
                continue;
            }
            let binder = match (self.binders.get(&kind), kind.as_str()) {
                (Some(given), _) => Arc::clone(given),
                (None, "rocketmq") => Arc::new(self.rocketmq(embedded)?) as Arc<dyn Binder>,
                (None, "memory") => Arc::new(self.memory()?),
                (None, _) => return Err(self.unknown_binder(binding, kind).into()),
            };
            binders.insert(kind, binder);
        }
        Ok(binders)
    }

    /// Whether one of these bindings is RocketMQ's, so that an embedded broker would be spoken to.
    fn needs_cluster<'a>(&self, mut used: impl Iterator<Item = &'a BindingConfig>) -> bool {
        used.any(|binding| self.config.binder_of(binding) == "rocketmq")
            && !self.binders.contains_key("rocketmq")
    }

    /// The broker in the process, with the settings that a broker of its own would have been given.
    fn memory(&self) -> Result<MemoryBinder, BindError> {
        let memory = self.memory.with_settings(self.config.rocketmq.clone());
        let keys = self
            .config
            .embedded
            .iter()
            .flat_map(|embedded| &embedded.broker);
        for (key, value) in keys {
            memory
                .set(key, value)
                .map_err(|expected| BindError::BrokerKey {
                    key: key.clone(),
                    value: value.clone(),
                    expected,
                })?;
        }
        Ok(memory)
    }

    fn rocketmq(&self, embedded: Option<&Embedded>) -> Result<RocketmqBinder, BinderError> {
        RocketmqBinder::start(RocketmqOptions {
            config: self.config.rocketmq.clone(),
            name_servers: match embedded {
                Some(embedded) => vec![embedded.name_server()],
                None => self.config.rocketmq.binder.name_servers.clone(),
            },
            application: self.config.application_name.clone(),
            start_like_java: self.config.bindery.start_like_java,
            // Beside the store, not in the user's home: both are the program's own and thrown away together.
            offset_dir: self
                .config
                .embedded
                .as_ref()
                .and_then(|embedded| Some(embedded.store_dir.parent()?.join("offsets"))),
        })
    }

    fn unknown_binder(&self, binding: &BindingConfig, binder: String) -> BindError {
        let own = ["rocketmq", "memory"].into_iter().map(str::to_owned);
        let mut known: Vec<String> = own.chain(self.binders.keys().cloned()).collect();
        known.sort();
        known.dedup();
        BindError::UnknownBinder {
            binding: binding.name.clone(),
            binder,
            known,
        }
    }

    /// The destinations of each binder; its bindings are added when they exist.
    fn to_bind(
        &self,
        binders: &BTreeMap<String, Arc<dyn Binder>>,
        inputs: &[BindingConfig],
        outputs: &[BindingConfig],
    ) -> ToBind {
        let of_binder = |(kind, binder): (&String, &Arc<dyn Binder>)| {
            let own = inputs
                .iter()
                .chain(outputs)
                .filter(|binding| self.config.binder_of(binding) == kind);
            OfBinder {
                kind: kind.clone(),
                binder: Arc::clone(binder),
                destinations: specs::destinations(&self.config, own),
                outputs: Vec::new(),
                inputs: Vec::new(),
            }
        };
        ToBind {
            binders: binders.iter().map(of_binder).collect(),
        }
    }

    /// How long an attempt to bind may be put off; not at all where the broker is in this process.
    fn retry_interval(&self) -> Duration {
        match self.config.embedded {
            Some(_) => Duration::ZERO,
            None => self.config.binding_retry_interval,
        }
    }

    /// The failure of an attempt to bind that is made again later.
    ///
    /// # Errors
    /// The failure is for good, or nothing is to be tried again.
    fn unless_away(&self, attempt: Result<()>) -> Result<Option<Error>> {
        match attempt {
            Ok(()) => Ok(None),
            Err(error) if late::passes(&error) && !self.retry_interval().is_zero() => {
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }

    /// Counts partitions and starts inputs, now or, while the broker is away, as soon as it is there.
    async fn bind(
        &self,
        running: &Running,
        mut to_bind: ToBind,
        away: Option<Error>,
    ) -> Result<()> {
        for one in &mut to_bind.binders {
            self.add_bindings(running, one)?;
        }
        let away = match away {
            Some(error) => Some(error),
            None => self.unless_away(to_bind.bind().await)?,
        };
        if let Some(error) = away {
            let (interval, stopping) = (self.retry_interval(), running.stopping.clone());
            running.tasks.spawn(async move {
                tokio::select! {
                    biased;
                    () = stopping.cancelled() => {}
                    () = to_bind.go_on(error, interval) => {}
                }
            });
        }
        Ok(())
    }

    fn add_bindings(&self, running: &Running, one: &mut OfBinder) -> Result<(), BindError> {
        for output in running.bindings.outputs() {
            let Some(config) = self.configured(output.name()) else {
                continue;
            };
            if self.config.binder_of(config) == one.kind && config.producer.is_partitioned() {
                one.outputs.push(Partitioned {
                    output: Arc::clone(output),
                    config: config.clone(),
                    code: self.program.partition_code(&config.producer),
                });
            }
        }
        for input in running.bindings.inputs() {
            let Some(config) = self.configured(&input.spec.binding) else {
                continue;
            };
            if self.config.binder_of(config) == one.kind {
                input.connect(Arc::new(self.pipeline(config, running)?));
                if config.consumer.auto_startup {
                    one.inputs.push(Arc::clone(input));
                }
            }
        }
        Ok(())
    }

    fn binder_of(
        &self,
        binders: &BTreeMap<String, Arc<dyn Binder>>,
        binding: &BindingConfig,
    ) -> Result<Arc<dyn Binder>, BindError> {
        let kind = self.config.binder_of(binding);
        binders
            .get(kind)
            .cloned()
            .ok_or_else(|| self.unknown_binder(binding, kind.to_owned()))
    }

    async fn bind_outputs(
        &self,
        binders: &BTreeMap<String, Arc<dyn Binder>>,
        outputs: &[BindingConfig],
        listeners: &BTreeMap<String, ListenerHandle>,
    ) -> Result<Vec<Arc<OutputBinding>>> {
        let mut bound = Vec::with_capacity(outputs.len());
        for output in outputs {
            let binder = self.binder_of(binders, output)?;
            let listener = self
                .listener_name(output)
                .and_then(|name| listeners.get(name))
                .cloned();
            bound.push(Arc::new(
                self.bind_output(&*binder, output, listener).await?,
            ));
        }
        Ok(bound)
    }

    async fn bind_output(
        &self,
        binder: &dyn Binder,
        output: &BindingConfig,
        transaction: Option<ListenerHandle>,
    ) -> Result<OutputBinding, BindError> {
        let settings = &self.config.rocketmq.binding(&output.name).producer;
        let mut parts = OutputParts {
            name: output.name.clone(),
            destination: output.destination.clone(),
            content_type: content_type(output),
            binder_kind: binder.kind(),
            producer_type: settings.producer_type,
            partitioning: output.producer.is_partitioned().then(OnceLock::new),
            transaction: transaction.clone(),
            errors: ErrorHandlers::of(&self.program.error_handlers, output, Direction::Output),
            waiting: if settings.send_type == SendType::Async {
                Waiting::Optional
            } else if output.producer.error_channel_enabled {
                Waiting::AndErrorHandler
            } else {
                Waiting::Alone
            },
            grace: self.config.bindery.shutdown_grace,
            producer: None,
        };
        if settings.enabled {
            let producer = self.bind_producer(binder, output, transaction).await?;
            parts.producer = Some(producer);
        }
        Ok(OutputBinding::new(parts))
    }

    async fn bind_producer(
        &self,
        binder: &dyn Binder,
        output: &BindingConfig,
        transaction: Option<ListenerHandle>,
    ) -> Result<Arc<dyn ProducerBinding>, BindError> {
        let able = binder.capabilities().has(Capabilities::TRANSACTIONS);
        let bound = if transaction.is_some() && !able {
            Err(BinderError::Unsupported {
                binding: output.name.clone(),
                binder: binder.kind(),
                what: "transactions",
            })
        } else {
            let spec = specs::producer_spec(&self.config, output, transaction);
            binder.bind_producer(spec).await
        };
        bound.map_err(|source| BindError::Binder {
            binding: output.name.clone(),
            source,
        })
    }

    /// The listener of a transactional output.
    fn listener_name(&self, output: &BindingConfig) -> Option<&str> {
        let producer = &self.config.rocketmq.binding(&output.name).producer;
        match producer.producer_type {
            ProducerType::Trans => producer.transaction_listener.as_deref(),
            ProducerType::Normal | ProducerType::Orderly => None,
        }
    }

    fn describe_inputs(
        &self,
        binders: &BTreeMap<String, Arc<dyn Binder>>,
        inputs: &[BindingConfig],
    ) -> Result<Vec<Arc<InputBinding>>> {
        let mut described = Vec::with_capacity(inputs.len());
        for input in inputs {
            let Some(spec) = specs::consumer_spec(&self.config, input) else {
                return Err(BindError::Missing {
                    handler: input.name.clone(),
                    what: "a `group`".to_owned(),
                }
                .into());
            };
            let enabled = self.config.rocketmq.binding(&input.name).consumer.enabled;
            described.push(Arc::new(InputBinding::new(
                spec,
                self.binder_of(binders, input)?,
                enabled,
            )));
        }
        Ok(described)
    }

    /// Every source can be bound; handlers and routes then find them without a failure.
    fn check_sources(&self, bindings: &Bindings) -> Result<(), BindError> {
        let mut sources = self.program.sources.iter();
        sources.try_for_each(|source| (source.check)(bindings))
    }

    fn pipeline(&self, config: &BindingConfig, running: &Running) -> Result<Pipeline, BindError> {
        let mut listeners = Vec::new();
        for handler in self.program.listeners(&config.name) {
            let outputs = handler
                .send_to()
                .map(|output| running.bindings.output(output))
                .collect::<Result<_, _>>()?;
            listeners.push(Listener {
                handler: handler.clone(),
                outputs,
            });
        }
        Ok(Pipeline {
            listeners,
            attempts: Attempts {
                max: config.consumer.max_attempts,
                retry_by_default: config.consumer.default_retryable,
                back_off: config.consumer.back_off,
            },
            errors: ErrorHandlers::of(&self.program.error_handlers, config, Direction::Input),
            content_type: config.content_type.as_str().into(),
            app: Arc::clone(&running.context),
            stop: running.stopping.clone(),
            pace: self.memory.pace().clone(),
        })
    }
}

fn content_type(output: &BindingConfig) -> crate::convert::ContentType {
    // The configuration's check has parsed it; a type it let through that we can't read is sent as JSON, the default.
    output.content_type.parse().unwrap_or_default()
}
