//! What a name server answers, by request code.
//!
//! ```text
//! Frame ─▶ Processor::answer ─▶ header, body ─▶ tables (one lock, short) ─▶ Reply | Refusal::reply
//!                            └▶ what changes a file: tables first, then the file on a blocking thread, then the answer
//! ```
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_protocol::{
    bodies::{self, NumericKeys},
    codes::RequestCode,
    frame::{Frame, Reply},
    headers::RouteHeader,
};
use bindery_remoting::{Clock, Connection, Responder, Service};
use serde::Serialize;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::{
    config::NameServerConfig,
    files::Files,
    kv::{KvStore, ORDER_TOPIC_CONFIG},
    lookup::{UnitTopics, keep_zone},
    refusal::Refusal,
    route::{RouteTable, WritePermission},
};

/// Requesters from this version on (`V4_9_4`) are answered 105 with quoted numeric keys.
const QUOTED_KEYS_FROM: i32 = 401;
/// Answers all requests of a name server.
#[derive(Debug)]
pub(super) struct Processor {
    state: Arc<Mutex<State>>,
    files: Arc<Files>,
    /// Writers of files; waited for at the stop.
    writers: TaskTracker,
    pub(super) clock: Clock,
    started: i64,
    /// Told when a broker will expire earlier than the housekeeping knows.
    pub(super) sooner: Notify,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) routes: RouteTable,
    pub(super) kv: KvStore,
    pub(super) config: NameServerConfig,
    /// When the housekeeping looks next, ms since 1970.
    pub(super) next_look: i64,
}

/// Answers that are there at once, and those that wait for a file.
pub(super) enum Outcome {
    Now(Reply),
    After(Keep),
}

/// What must be written before the answer goes out.
#[derive(Clone, Copy)]
pub(super) enum Keep {
    Kv,
    Config,
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        Self::Now(reply)
    }
}

impl Service for Processor {
    fn request(&self, connection: &Connection, frame: Frame, responder: Responder) {
        match self.answer(connection, &frame) {
            Ok(Outcome::Now(reply)) => responder.send(reply),
            Ok(Outcome::After(keep)) => self.keep(keep, responder),
            Err(refusal) => {
                tracing::debug!(code = frame.head.code, peer = %connection.peer(), %refusal, "request refused");
                responder.send(refusal.reply());
            }
        }
    }

    fn disconnected(&self, connection: &Connection) {
        self.state().routes.connection_lost(connection.id());
    }
}

impl Processor {
    pub(super) fn new(
        config: NameServerConfig,
        kv: KvStore,
        files: Files,
        writers: TaskTracker,
    ) -> Self {
        let clock = config.clock.clone();
        let started = clock.now_millis();
        let state = State {
            routes: RouteTable::default(),
            kv,
            config,
            next_look: i64::MAX,
        };
        let (state, files) = (Arc::new(Mutex::new(state)), Arc::new(files));
        Self {
            state,
            files,
            writers,
            clock,
            started,
            sooner: Notify::new(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn answer(&self, connection: &Connection, frame: &Frame) -> Result<Outcome, Refusal> {
        let code = frame.request_code();
        if changes_by_hand(code) && !connection.is_from_this_host() {
            return Err(Refusal::Foreign);
        }
        match code {
            RequestCode::GET_ROUTEINFO_BY_TOPIC => self.route(frame),
            RequestCode::REGISTER_BROKER => self.register(connection, frame),
            RequestCode::UNREGISTER_BROKER => self.unregister(frame),
            RequestCode::BROKER_HEARTBEAT => self.heartbeat(frame),
            RequestCode::QUERY_DATA_VERSION => self.data_version(frame),
            RequestCode::GET_BROKER_CLUSTER_INFO => json(&self.state().routes.cluster_info()),
            RequestCode::GET_BROKER_MEMBER_GROUP => self.member_group(frame),
            RequestCode::PUT_KV_CONFIG => self.put_kv(frame),
            RequestCode::GET_KV_CONFIG => self.kv_value(frame),
            RequestCode::DELETE_KV_CONFIG => self.delete_kv(frame),
            RequestCode::GET_KVLIST_BY_NAMESPACE => self.kv_namespace(frame),
            RequestCode::WIPE_WRITE_PERM_OF_BROKER => self.turn_write(frame, WritePermission::Wipe),
            RequestCode::ADD_WRITE_PERM_OF_BROKER => self.turn_write(frame, WritePermission::Add),
            RequestCode::DELETE_TOPIC_IN_NAMESRV => self.delete_topic(frame),
            RequestCode::REGISTER_TOPIC_IN_NAMESRV => self.register_topic(frame),
            RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER => self.all_topics(),
            RequestCode::GET_TOPICS_BY_CLUSTER => self.cluster_topics(frame),
            RequestCode::GET_SYSTEM_TOPIC_LIST_FROM_NS => self.system_topics(),
            RequestCode::GET_UNIT_TOPIC_LIST => self.unit_topics(UnitTopics::Unit),
            RequestCode::GET_HAS_UNIT_SUB_TOPIC_LIST => self.unit_topics(UnitTopics::UnitSub),
            RequestCode::GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST => {
                self.unit_topics(UnitTopics::UnitSubOnly)
            }
            RequestCode::UPDATE_NAMESRV_CONFIG => self.change_config(frame),
            RequestCode::GET_NAMESRV_CONFIG => {
                Ok(Reply::ok().body(self.state().config.render()).into())
            }
            RequestCode(unknown) => Err(Refusal::UnknownCode(unknown)),
        }
    }

    fn route(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: RouteHeader<'_> = frame.header()?;
        let standard = header.accept_standard_json_only.unwrap_or(false);
        let quoted = standard || frame.head.version >= QUOTED_KEYS_FROM;
        let keys = if quoted {
            NumericKeys::Quoted
        } else {
            NumericKeys::Bare
        };
        let mut state = self.state();
        let State {
            routes, kv, config, ..
        } = &mut *state;
        if config.need_wait_for_service {
            let wait = i64::try_from(config.wait_seconds_for_service)
                .unwrap_or(i64::MAX)
                .saturating_mul(1000);
            if self.clock.now_millis().saturating_sub(self.started) < wait {
                return Err(Refusal::NotReady);
            }
        }
        let order = || {
            let conf = if config.order_message_enable {
                kv.value(ORDER_TOPIC_CONFIG, &header.topic)
            } else {
                None
            };
            conf.map(str::to_owned)
        };
        let body = match zone(frame) {
            None => routes.encoded_route(&header.topic, keys, order)?,
            Some(zone) => {
                let mut route = routes.route(&header.topic);
                if let Some(route) = &mut route {
                    route.order_topic_conf = order();
                    keep_zone(route, &zone);
                }
                route
                    .map(|route| route.to_vec(keys))
                    .transpose()?
                    .map(Into::into)
            }
        };
        let body = body.ok_or_else(|| Refusal::NoRoute {
            topic: header.topic.into_owned(),
        })?;
        Ok(Reply::ok().body(body).into())
    }

    /// Writes what has changed, on a thread that may block, and answers then.
    fn keep(&self, keep: Keep, responder: Responder) {
        let has_file = match keep {
            Keep::Kv => self.files.keep_kv(),
            Keep::Config => self.state().config.config_store_path.is_some(),
        };
        if !has_file {
            responder.send(Reply::ok());
            return;
        }
        let (files, state) = (Arc::clone(&self.files), Arc::clone(&self.state));
        self.writers.spawn_blocking(move || {
            let written = match keep {
                Keep::Kv => files.write_kv(|| lock(&state).kv.clone()),
                Keep::Config => files.write_config(|| {
                    let state = lock(&state);
                    (
                        state.config.config_store_path.clone(),
                        state.config.render(),
                    )
                }),
            };
            responder.send(match written {
                Ok(()) => Reply::ok(),
                Err(refusal) => {
                    tracing::error!(%refusal, "a change is not on disk");
                    refusal.reply()
                }
            });
        });
    }

    /// Gives up the brokers that gave no sign of life; when to look again, ms since 1970.
    pub(super) fn look(&self) -> Option<i64> {
        let now = self.clock.now_millis();
        let mut state = self.state();
        let lost = state.routes.expire(now);
        let scan = i64::try_from(state.config.scan_interval_millis).unwrap_or(i64::MAX);
        let next = state
            .routes
            .next_expiry()
            .map(|expiry| expiry.max(now.saturating_add(scan)));
        state.next_look = next.unwrap_or(i64::MAX);
        drop(state);
        for connection in lost {
            tracing::warn!(peer = %connection.peer(), "no sign of life from a broker; its connection is closed");
            connection.close();
        }
        next
    }
}

/// No panic leaves the tables half changed in a way that later requests would suffer from.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a request is one that people send to change things by hand. Without access control they are served to the
/// host itself only; brokers and clients send none of them.
fn changes_by_hand(code: RequestCode) -> bool {
    matches!(
        code,
        RequestCode::PUT_KV_CONFIG
            | RequestCode::DELETE_KV_CONFIG
            | RequestCode::WIPE_WRITE_PERM_OF_BROKER
            | RequestCode::ADD_WRITE_PERM_OF_BROKER
            | RequestCode::DELETE_TOPIC_IN_NAMESRV
            | RequestCode::REGISTER_TOPIC_IN_NAMESRV
            | RequestCode::UPDATE_NAMESRV_CONFIG
    )
}

/// The zone a requester wants its route kept to.
fn zone(frame: &Frame) -> Option<String> {
    let wanted = frame.ext("__ZONE_MODE")?;
    let zone = frame.ext("__ZONE_NAME")?;
    (wanted.eq_ignore_ascii_case("true") && !zone.is_empty()).then(|| zone.into_owned())
}

pub(super) fn json<T: Serialize>(body: &T) -> Result<Outcome, Refusal> {
    Ok(Reply::ok().body(bodies::to_vec(body)?).into())
}
