//! The sections beside the bindings: web server, actuator, logging, and what Spring has no word for (`bindery.*`).

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::Positions;

/// `server.*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// `port`: `None` when the file does not say (the run time then takes 8080 if it has something to serve); 0: any free one.
    pub port: Option<u16>,
    /// `address`: the address to listen on; `None`: every address.
    pub address: Option<std::net::IpAddr>,
    /// `servlet.context-path`: prefix of every route, starting with `/` and not ending in one; empty by default.
    pub context_path: String,
    /// Where the keys stand.
    pub positions: Positions,
}

/// Who sees the details of the health endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShowDetails {
    /// Nobody.
    #[default]
    Never,
    /// Callers that are authorised; without authentication nobody is.
    WhenAuthorized,
    /// Everybody.
    Always,
}

/// `management.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementConfig {
    /// `endpoints.web.base-path`; default `/actuator`.
    pub base_path: String,
    /// `endpoints.web.exposure.include`: names or `*`; default `health`.
    pub include: Vec<String>,
    /// `endpoints.web.exposure.exclude`: wins over `include`.
    pub exclude: Vec<String>,
    /// `endpoint.health.show-details`; default never.
    pub show_details: ShowDetails,
}

impl ManagementConfig {
    /// Whether the endpoint `name` is served.
    #[must_use]
    pub fn exposes(&self, name: &str) -> bool {
        let lists = |names: &[String]| names.iter().any(|listed| listed == "*" || listed == name);
        lists(&self.include) && !lists(&self.exclude)
    }
}

impl Default for ManagementConfig {
    fn default() -> Self {
        Self {
            base_path: "/actuator".to_owned(),
            include: vec!["health".to_owned()],
            exclude: Vec::new(),
            show_details: ShowDetails::Never,
        }
    }
}

/// A level of `logging.level.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Errors only (`FATAL` is read as this).
    Error,
    /// Warnings too.
    Warn,
    /// State changes of the process too.
    Info,
    /// One line a request too.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The lower-case name as `tracing` filters write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// `logging.level.<target>`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggingConfig {
    /// Level by target; the target `root` is everything.
    pub levels: BTreeMap<String, LogLevel>,
}

impl LoggingConfig {
    /// The directives of a `tracing` environment filter, `info` for everything unless `root` says otherwise.
    #[must_use]
    pub fn directives(&self) -> String {
        let root = self.levels.get("root").copied().unwrap_or(LogLevel::Info);
        let others = self.levels.iter().filter(|(target, _)| *target != "root");
        std::iter::once(root.as_str().to_owned())
            .chain(others.map(|(target, level)| {
                format!(
                    "{}={}",
                    target.replace('.', "::").replace('-', "_"),
                    level.as_str()
                )
            }))
            .collect::<Vec<_>>()
            .join(",")
    }
}

/// `bindery.embedded`: a name server and a broker inside this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedConfig {
    /// `namesrv-port`; default 0, any free port.
    pub namesrv_port: u16,
    /// `broker-port`; default 0, any free port.
    pub broker_port: u16,
    /// `host`: the address both listen on; default `127.0.0.1`.
    pub host: String,
    /// `store-dir`: the store folder; default `./.bindery/store`, relative to the working folder.
    pub store_dir: PathBuf,
    /// `broker.*`: the broker's own keys (Apache's names), handed over as text.
    pub broker: BTreeMap<String, String>,
    /// Where the keys stand; `enabled` is the switch itself.
    pub positions: Positions,
}

impl Default for EmbeddedConfig {
    fn default() -> Self {
        Self {
            namesrv_port: 0,
            broker_port: 0,
            host: "127.0.0.1".to_owned(),
            store_dir: PathBuf::from("./.bindery/store"),
            broker: BTreeMap::new(),
            positions: Positions::default(),
        }
    }
}

/// How unknown keys are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compat {
    /// As errors.
    #[default]
    Strict,
    /// As warnings, for files shared with Java services.
    Lenient,
}

/// Which topics the application creates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AutoCreate {
    /// None: the operator does.
    Never,
    /// The destinations of its bindings and those under `bindery.topics`.
    #[default]
    Declared,
}

/// `bindery.topics.<name>`: created if absent, never shrunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicConfig {
    /// `queues`: read and write queues (1..=1024); default 8.
    pub queues: u32,
    /// `perm`: 2 write, 4 read, 6 both (default).
    pub perm: u32,
    /// `order`: the name server keeps the order configuration of this topic (default false).
    pub order: bool,
    /// Where the keys stand.
    pub positions: Positions,
}

impl Default for TopicConfig {
    fn default() -> Self {
        Self {
            queues: 8,
            perm: 6,
            order: false,
            positions: Positions::default(),
        }
    }
}

/// `bindery.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the file, by its name"
)]
pub struct BinderyConfig {
    /// `config.allow-unused` (default false): a binding that nothing uses is no error.
    pub allow_unused: bool,
    /// `config.destination-from-name` (default false): a binding without `destination` takes its own name.
    pub destination_from_name: bool,
    /// `config.compat`; default strict.
    pub compat: Compat,
    /// `topics.auto-create`; default declared.
    pub auto_create: AutoCreate,
    /// `topics.<name>`.
    pub topics: BTreeMap<String, TopicConfig>,
    /// `shutdown.grace` (default 30 s): how long running handlers may finish.
    pub shutdown_grace: Duration,
    /// `consumer.start-like-java` (default false): start rules of the Java client, which replays young topics.
    pub start_like_java: bool,
    /// `consumer.reset-offsets-on-start` (default false): groups go to their start points although they have offsets.
    pub reset_offsets_on_start: bool,
}

impl Default for BinderyConfig {
    fn default() -> Self {
        Self {
            allow_unused: false,
            destination_from_name: false,
            compat: Compat::Strict,
            auto_create: AutoCreate::Declared,
            topics: BTreeMap::new(),
            shutdown_grace: Duration::from_secs(30),
            start_like_java: false,
            reset_offsets_on_start: false,
        }
    }
}
