//! Telling name servers what this broker has.
//!
//! ```text
//! start, every 30 s, after a lost connection ─▶ REGISTER_BROKER (103) with all topics ─┐
//! a topic changed ─▶ REGISTER_BROKER with the changed ones ────────────────────────────┼─▶ one name server
//! stop ─▶ UNREGISTER_BROKER (104) ─────────────────────────────────────────────────────┘
//! ```
//! One task a name server: a dead one does not delay the others. What is sent first is always complete.
use std::{sync::Arc, time::Duration};

use bindery_protocol::{
    bodies::{
        self, DataVersion, KvTable, PERM_READ, PERM_WRITE, RegisterBrokerBody, TopicConfig,
        TopicConfigTable,
    },
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply, Request},
    headers::{RegisterBrokerHeader, UnregisterBrokerHeader},
};
use bindery_remoting::{ConnectOptions, Connection, RemotingError, Responder, Service};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::state::Core;

/// Milliseconds after which a failed registration is tried again.
const RETRY: i64 = 5_000;
/// Milliseconds between a lost connection and the next try.
const RECONNECT: i64 = 1_000;
/// Time a name server has to take note of a broker's end.
const FAREWELL: Duration = Duration::from_secs(3);

/// Why one name server does not know this broker.
#[derive(Debug, thiserror::Error)]
enum RegistrationError {
    #[error(transparent)]
    Remoting(#[from] RemotingError),
    #[error("the name server refused with code {}: {remark}", code.0)]
    Refused { code: ResponseCode, remark: String },
    #[error(transparent)]
    Body(#[from] bodies::BodyError),
}

/// Name servers ask nothing of a broker yet.
pub(crate) struct NothingServed;

impl Service for NothingServed {
    fn request(&self, _: &Connection, frame: Frame, responder: Responder) {
        let remark = format!(" request type {} not supported", frame.head.code);
        responder.send(Reply::error(
            ResponseCode::REQUEST_CODE_NOT_SUPPORTED,
            remark,
        ));
    }
}

/// The standing of this broker with one name server.
struct Link {
    core: Arc<Core>,
    server: String,
    connection: Option<Connection>,
    /// Last topic change the name server was told of.
    told: u64,
    /// Version of the table it was told last.
    told_version: Option<DataVersion>,
    /// When everything is told again.
    next: i64,
    /// Whether the last try succeeded, once there was one.
    known: Option<bool>,
}

/// Keeps this broker registered with one name server until `leave`; `first` is completed by the first try.
pub(crate) async fn keep(
    core: Arc<Core>,
    server: String,
    leave: CancellationToken,
    first: oneshot::Sender<()>,
) {
    let mut changes = core.topics.watch_changes();
    let mut link = Link {
        core,
        server,
        connection: None,
        told: 0,
        told_version: None,
        next: i64::MIN,
        known: None,
    };
    let mut first = Some(first);
    loop {
        tokio::select! {
            biased;
            () = leave.cancelled() => break,
            () = link.attend() => {}
        }
        if let Some(first) = first.take() {
            // Nobody may be waiting any more.
            _ = first.send(());
        }
        let clock = link.core.clock.clone();
        let connection = link.connection.clone();
        tokio::select! {
            biased;
            () = leave.cancelled() => break,
            () = lost(connection) => link.lost(),
            seen = changes.changed(), if link.known == Some(true) => {
                // The sender lives in the core, which the link holds.
                if seen.is_err() { break }
            }
            () = clock.sleep_until(link.next) => {}
        }
    }
    link.unregister().await;
}

async fn lost(connection: Option<Connection>) {
    match connection {
        Some(connection) => connection.closed().await,
        None => std::future::pending().await,
    }
}

impl Link {
    /// Does what is due: tells everything, or what changed.
    async fn attend(&mut self) {
        let now = self.core.now();
        let changed = self.core.topics.last_change();
        let complete = now >= self.next || self.connection.is_none();
        if !complete && changed == self.told {
            return;
        }
        let topics = if complete {
            self.core.topics.table().entries()
        } else {
            self.core.topics.changed_since(self.told)
        };
        // Of two changes at a time the later one's version may have gone out with the earlier one. A name server that
        // knows the version takes nothing over, so the later change needs one of its own.
        if !complete && self.told_version == Some(self.core.topics.table().version()) {
            self.core.topics.table().new_version(now);
        }
        let version = self.core.topics.table().version();
        match self.register(&topics, version).await {
            Ok(()) => {
                self.told = changed;
                self.told_version = Some(version);
                if complete {
                    let period = self
                        .core
                        .config
                        .register_name_server_period
                        .clamp(10_000, 60_000);
                    self.next = now.saturating_add(i64::try_from(period).unwrap_or(60_000));
                }
                if self.known != Some(true) {
                    tracing::info!(
                        server = self.server,
                        topics = topics.len(),
                        "registered with the name server"
                    );
                }
                self.known = Some(true);
            }
            Err(error) => {
                if self.known != Some(false) {
                    tracing::warn!(server = self.server, %error, "not registered with the name server, tried again");
                }
                self.known = Some(false);
                self.connection = None;
                self.next = now.saturating_add(RETRY);
            }
        }
    }

    fn lost(&mut self) {
        tracing::warn!(server = self.server, "connection to the name server lost");
        self.connection = None;
        self.known = Some(false);
        self.next = self.core.now().saturating_add(RECONNECT);
    }

    async fn register(
        &mut self,
        topics: &[Arc<TopicConfig>],
        data_version: DataVersion,
    ) -> Result<(), RegistrationError> {
        let config = &self.core.config;
        let permission = self.core.live().broker_permission;
        let body = bodies::to_vec(&RegisterBrokerBody {
            filter_server_list: Vec::new(),
            topic_config_serialize_wrapper: TopicConfigTable {
                data_version,
                mapping_data_version: Some(DataVersion::default()),
                topic_config_table: topics
                    .iter()
                    .map(|topic| (topic.topic_name.clone(), permitted(topic, permission)))
                    .collect(),
                ..TopicConfigTable::default()
            },
        })?;
        let header = RegisterBrokerHeader {
            broker_name: config.broker_name.as_str().into(),
            broker_addr: self.core.address.to_string().into(),
            cluster_name: config.broker_cluster_name.as_str().into(),
            ha_server_addr: self.core.ha_address.to_string().into(),
            broker_id: i64::try_from(config.broker_id).unwrap_or(i64::MAX),
            heartbeat_timeout_millis: None,
            enable_acting_master: Some(false),
            compressed: false,
            body_crc32: bindery_protocol::message::record::body_crc(&body),
            zone_name: None,
        };
        let timeout = Duration::from_millis(config.register_broker_timeout_mills);
        let request = Request::new(RequestCode::REGISTER_BROKER)
            .with(&header)
            .body(body);
        let answer = accepted(self.connected().await?.call(request, timeout).await?)?;
        if !answer.body.is_empty() {
            self.order_topics(&bodies::from_slice(&answer.body)?);
        }
        Ok(())
    }

    /// Topics that the name server has an order configuration for are ordered here too.
    fn order_topics(&self, table: &KvTable) {
        for topic in table
            .table
            .keys()
            .filter_map(|name| self.core.topics.topic(name))
        {
            if !topic.order
                && let Err(refusal) = self.core.topics.put(TopicConfig {
                    order: true,
                    ..TopicConfig::clone(&topic)
                })
            {
                tracing::warn!(topic = topic.topic_name, %refusal, "topic not marked as ordered");
            }
        }
    }

    async fn connected(&mut self) -> Result<Connection, RemotingError> {
        if let Some(connection) = self
            .connection
            .as_ref()
            .filter(|connection| !connection.is_closed())
        {
            return Ok(connection.clone());
        }
        let connection = Connection::connect(
            &self.server,
            ConnectOptions::default(),
            Arc::new(NothingServed),
        )
        .await?;
        self.connection = Some(connection.clone());
        Ok(connection)
    }

    async fn unregister(mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let config = &self.core.config;
        let header = UnregisterBrokerHeader {
            broker_name: config.broker_name.as_str().into(),
            broker_addr: self.core.address.to_string().into(),
            cluster_name: config.broker_cluster_name.as_str().into(),
            broker_id: i64::try_from(config.broker_id).unwrap_or(i64::MAX),
        };
        let request = Request::new(RequestCode::UNREGISTER_BROKER).with(&header);
        if let Err(error) = connection.call(request, FAREWELL).await {
            tracing::debug!(server = self.server, %error, "name server not told of the stop");
        }
        connection.close();
    }
}

/// The topic as name servers see it: never with more permission than the broker has.
fn permitted(topic: &TopicConfig, broker: i32) -> TopicConfig {
    let mut topic = topic.clone();
    if broker & (PERM_READ | PERM_WRITE) != PERM_READ | PERM_WRITE {
        topic.perm &= broker;
    }
    topic
}

fn accepted(answer: Frame) -> Result<Frame, RegistrationError> {
    match answer.response_code() {
        ResponseCode::SUCCESS => Ok(answer),
        code => Err(RegistrationError::Refused {
            code,
            remark: answer.head.remark.unwrap_or_default(),
        }),
    }
}
