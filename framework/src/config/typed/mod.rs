//! The typed configuration: what the run time reads after every source was merged and every mistake was reported.
//!
//! ```text
//! Tree (merged, positioned) ──build──▶ Config ──▶ application, binders, web server, embedded broker
//! ```
//! Defaults are already filled in: `spring.cloud.stream.default.*` is merged into each binding and the `RocketMQ` binder's
//! settings into each `RocketMQ` binding, so that a reader never asks two places. Every struct keeps the [`Positions`] of
//! the keys that were written down, so that checks which need the program (see [`check_usage`](crate::config::check_usage)) can still
//! point at file, line and column.

mod binding;
mod own;
mod rocketmq;

use std::collections::BTreeMap;
use std::time::Duration;

pub use binding::{BackOff, BindingConfig, ConsumerConfig, ProducerConfig};
pub use own::{
    AutoCreate, BinderyConfig, Compat, EmbeddedConfig, LogLevel, LoggingConfig, ManagementConfig,
    ServerConfig, ShowDetails, TopicConfig,
};
pub use rocketmq::{
    AllocateStrategy, BinderConfig, ConsumeFrom, MessageModel, ProducerType, RocketmqBinding,
    RocketmqConfig, RocketmqConsumer, RocketmqProducer, SendType, Subscription,
};

use super::span::Span;

/// Where the keys of one section were written: canonical (kebab-case) key, relative to the section, to its value's position.
///
/// A key that kept its default has no entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Positions {
    section: Option<Span>,
    keys: BTreeMap<String, Position>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Position {
    span: Span,
    /// Written in a `default` section, not in this one.
    inherited: bool,
}

impl Positions {
    /// The position of the section's own name, for example of `orders-in` in `bindings: { orders-in: … }`.
    #[must_use]
    pub fn section(&self) -> Option<&Span> {
        self.section.as_ref()
    }

    /// The position of `key`'s value, wherever it was written; `None` when the built-in default holds.
    #[must_use]
    pub fn of(&self, key: &str) -> Option<&Span> {
        self.keys.get(key).map(|position| &position.span)
    }

    /// The position of `key`'s value, or of the section when the built-in default holds.
    #[must_use]
    pub fn of_or_section(&self, key: &str) -> Option<&Span> {
        self.of(key).or(self.section())
    }

    /// The position of `key`'s value if it was written in this very section and not in a `default` one.
    #[must_use]
    pub fn own(&self, key: &str) -> Option<&Span> {
        self.keys
            .get(key)
            .filter(|position| !position.inherited)
            .map(|position| &position.span)
    }

    /// The first key below `prefix` that was written in this very section.
    pub(crate) fn first_own(&self, prefix: &str) -> Option<(&str, &Span)> {
        let own = self
            .keys
            .iter()
            .filter(|(key, position)| key.starts_with(prefix) && !position.inherited);
        own.map(|(key, position)| (key.as_str(), &position.span))
            .next()
    }

    /// Makes all keys those of a `default` section.
    pub(crate) fn inherit(&mut self) {
        self.keys
            .values_mut()
            .for_each(|position| position.inherited = true);
    }

    pub(crate) fn set_section(&mut self, span: Span) {
        self.section = Some(span);
    }

    pub(crate) fn set(&mut self, key: &str, span: Span, inherited: bool) {
        self.keys
            .insert(key.to_owned(), Position { span, inherited });
    }
}

/// The whole configuration of one application.
#[derive(Debug, Clone)]
pub struct Config {
    /// `spring.application.name`; default `application` (Spring's own default).
    pub application_name: String,
    /// `server.*`: the web server.
    pub server: ServerConfig,
    /// `spring.cloud.stream.bindings.*` by binding name, `default.*` merged in.
    pub bindings: BTreeMap<String, BindingConfig>,
    /// `spring.cloud.stream.default.*`: what a binding that is created at run time starts from.
    pub binding_defaults: BindingConfig,
    /// `spring.cloud.stream.output-bindings` (alias `source`): outputs that are used although no handler or source struct
    /// names them, for example by name through the bridge.
    pub output_bindings: Vec<String>,
    /// `spring.cloud.stream.default-binder`: the binder of bindings that name none. `None`: `rocketmq`.
    pub default_binder: Option<String>,
    /// `spring.cloud.stream.binding-retry-interval` (default 30 s): the longest pause between attempts to bind while the
    /// broker is away; zero: the first failure ends the start.
    pub binding_retry_interval: Duration,
    /// `spring.cloud.stream.rocketmq.*`.
    pub rocketmq: RocketmqConfig,
    /// `bindery.embedded`: present when a name server and a broker run inside this process.
    pub embedded: Option<EmbeddedConfig>,
    /// `bindery.*` except `embedded`.
    pub bindery: BinderyConfig,
    /// `logging.level.*`.
    pub logging: LoggingConfig,
    /// `management.*`: the actuator.
    pub management: ManagementConfig,
    /// The active profiles in the order of their activation; `["default"]` when none was chosen.
    pub profiles: Vec<String>,
}

impl Config {
    /// The kind of binder that serves `binding`: its own `binder`, else [`Config::default_binder`], else `rocketmq`.
    #[must_use]
    pub fn binder_of<'a>(&'a self, binding: &'a BindingConfig) -> &'a str {
        binding
            .binder
            .as_deref()
            .or(self.default_binder.as_deref())
            .unwrap_or("rocketmq")
    }
}

impl Default for Config {
    /// What an empty file means.
    fn default() -> Self {
        Self {
            application_name: "application".to_owned(),
            server: ServerConfig::default(),
            bindings: BTreeMap::new(),
            binding_defaults: BindingConfig::new("default", ""),
            output_bindings: Vec::new(),
            default_binder: None,
            binding_retry_interval: Duration::from_secs(30),
            rocketmq: RocketmqConfig::default(),
            embedded: None,
            bindery: BinderyConfig::default(),
            logging: LoggingConfig::default(),
            management: ManagementConfig::default(),
            profiles: vec!["default".to_owned()],
        }
    }
}
