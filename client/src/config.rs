//! What a client instance is told at its start: where the name servers are, who it is, and how often it does its rounds.
//!
//! ```text
//! ClientConfig ──▶ Client ──▶ every Producer, PushConsumer and Admin made from it
//! ```
use std::{net::IpAddr, path::PathBuf, time::Duration};

use bindery_remoting::Clock;

/// Configuration of a [`Client`](crate::Client), with the Java client's defaults.
///
/// ```
/// use bindery_client::ClientConfig;
///
/// let config = ClientConfig::new("10.0.0.1:9876;10.0.0.2:9876");
/// assert_eq!(config.name_servers.len(), 2);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientConfig {
    /// `host:port` of every name server. They are asked one after the other until one answers.
    pub name_servers: Vec<String>,
    /// The part of the client id after the `@`; `None` (the default) makes one from the process id and random bits, so that two
    /// processes never share an id. Set it to keep the local offset folder of broadcasting consumers stable.
    pub instance_name: Option<String>,
    /// The part of the client id before the `@`; `None` (the default) takes the address of this host that leads to a name server.
    pub client_ip: Option<IpAddr>,
    /// Extends the client id, `None` by default.
    pub unit_name: Option<String>,
    /// Prefix put on every topic and group that goes out (`namespace%name`), and taken off what comes back; `None` by default.
    pub namespace: Option<String>,
    /// Time source of everything that waits between rounds; network timeouts run in real time.
    pub clock: Clock,
    /// How often known routes are asked for again; 30 s.
    pub poll_name_server_interval: Duration,
    /// How often every broker hears from this client; 30 s.
    pub heartbeat_interval: Duration,
    /// How long a consumed position may stay unsaved; 5 s.
    pub persist_offset_interval: Duration,
    /// How often a consumer looks at the distribution of queues without being told to; 20 s.
    pub rebalance_interval: Duration,
    /// Time allowed for routes, heartbeats, consumer lists and the like; 3 s.
    pub call_timeout: Duration,
    /// Time allowed for making a connection; 3 s.
    pub connect_timeout: Duration,
    /// Root folder of the positions of broadcasting consumers; `None` (the default) is `~/.rocketmq_offsets`, as in Java.
    pub offset_dir: Option<PathBuf>,
}

impl ClientConfig {
    /// The defaults with the name servers of a `;`-separated list. An `http://` in front of an address is dropped.
    #[must_use]
    pub fn new(name_servers: &str) -> Self {
        let name_servers = name_servers
            .split([';', ','])
            .map(|addr| addr.trim().trim_start_matches("http://").to_owned())
            .filter(|addr| !addr.is_empty())
            .collect();
        Self {
            name_servers,
            ..Self::default()
        }
    }

    /// Sets the instance name, see [`ClientConfig::instance_name`].
    #[must_use]
    pub fn instance_name(mut self, name: impl Into<String>) -> Self {
        self.instance_name = Some(name.into());
        self
    }

    /// Sets the namespace, see [`ClientConfig::namespace`].
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the time source, see [`ClientConfig::clock`].
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            name_servers: Vec::new(),
            instance_name: None,
            client_ip: None,
            unit_name: None,
            namespace: None,
            clock: Clock::system(),
            poll_name_server_interval: Duration::from_secs(30),
            heartbeat_interval: Duration::from_secs(30),
            persist_offset_interval: Duration::from_secs(5),
            rebalance_interval: Duration::from_secs(20),
            call_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(3),
            offset_dir: None,
        }
    }
}
