//! The queues of a topic on all brokers, as the name servers tell: what this broker needs when it assigns queues to consumers.
//!
//! ```text
//! topic ─▶ asked a moment ago? ─▶ its queues
//!             └─ no ─▶ GET_ROUTEINFO_BY_TOPIC (105) at the first name server that answers ─▶ kept for a while
//! ```
//! Without a name server, or while none knows the topic, this broker's own queues are all there are.
use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bindery_protocol::{
    bodies::{self, MessageQueue, PERM_READ, RouteData},
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::RouteHeader,
};
use bindery_remoting::{ConnectOptions, Connection};
use lru::LruCache;

use crate::{limits::MOST_QUEUES, registration::NothingServed, state::Core};

/// Topics whose queues are kept.
const KEPT: NonZeroUsize = match NonZeroUsize::new(1024) {
    Some(kept) => kept,
    None => NonZeroUsize::MIN,
};
/// Time a name server has to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Queues of topics, as they were told.
pub(crate) struct Routes {
    kept: Mutex<LruCache<String, Kept>>,
    connection: tokio::sync::Mutex<Option<Connection>>,
}

struct Kept {
    until: i64,
    queues: Arc<Vec<MessageQueue>>,
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            kept: Mutex::new(LruCache::new(KEPT)),
            connection: tokio::sync::Mutex::new(None),
        }
    }
}

/// The readable queues of a topic on all brokers; none when there is no such topic.
pub(crate) async fn queues(core: &Core, topic: &str) -> Option<Vec<MessageQueue>> {
    let servers = core.config.name_servers();
    if servers.is_empty() {
        return own(core, topic);
    }
    if let Some(kept) = core.routes.kept(topic, core.now()) {
        return Some(kept.to_vec());
    }
    for server in &servers {
        match core.routes.ask(server, topic).await {
            Ok(None) => return own(core, topic),
            Ok(Some(route)) => {
                let queues = Arc::new(readable(&route));
                let period = i64::try_from(core.config.load_balance_poll_name_server_interval);
                let until = core.now().saturating_add(period.unwrap_or(i64::MAX));
                core.routes.keep(topic, queues.clone(), until);
                return Some(queues.to_vec());
            }
            Err(error) => tracing::debug!(server, topic, %error, "route not told"),
        }
    }
    own(core, topic)
}

fn own(core: &Core, topic: &str) -> Option<Vec<MessageQueue>> {
    let config = core.topics.topic(topic)?;
    let broker = &core.config.broker_name;
    let queues = (0..config.read_queue_nums).map(|id| MessageQueue::new(topic, broker, id));
    let may_read = config.perm & PERM_READ != 0;
    Some(queues.filter(|_| may_read).collect())
}

fn readable(route: &Route) -> Vec<MessageQueue> {
    let queues = route.data.queue_datas.iter();
    queues
        .filter(|queue| queue.perm & PERM_READ != 0)
        .flat_map(|queue| {
            (0..queue.read_queue_nums.min(MOST_QUEUES))
                .map(|id| MessageQueue::new(&route.topic, &queue.broker_name, id))
        })
        .collect()
}

struct Route {
    topic: String,
    data: RouteData,
}

/// Why a name server did not tell.
#[derive(Debug, thiserror::Error)]
enum RouteError {
    #[error(transparent)]
    Remoting(#[from] bindery_remoting::RemotingError),
    #[error(transparent)]
    Body(#[from] bodies::BodyError),
    #[error("the name server answered with code {}", code.0)]
    Refused { code: ResponseCode },
}

impl Routes {
    fn kept(&self, topic: &str, now: i64) -> Option<Arc<Vec<MessageQueue>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.get(topic).filter(|kept| kept.until > now)?;
        Some(found.queues.clone())
    }

    fn keep(&self, topic: &str, queues: Arc<Vec<MessageQueue>>, until: i64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.put(topic.to_owned(), Kept { until, queues });
    }

    /// The topic's route; none when the name server does not know it.
    async fn ask(&self, server: &str, topic: &str) -> Result<Option<Route>, RouteError> {
        let connection = self.connected(server).await?;
        let request = Request::new(RequestCode::GET_ROUTEINFO_BY_TOPIC).with(&RouteHeader {
            topic: topic.into(),
            accept_standard_json_only: Some(true),
        });
        let answer = connection.call(request, PATIENCE).await?;
        match answer.response_code() {
            ResponseCode::TOPIC_NOT_EXIST => Ok(None),
            ResponseCode::SUCCESS => Ok(Some(Route {
                topic: topic.to_owned(),
                data: bodies::from_slice(&answer.body)?,
            })),
            code => Err(RouteError::Refused { code }),
        }
    }

    async fn connected(&self, server: &str) -> Result<Connection, RouteError> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = kept.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        let options = ConnectOptions::default();
        let connection = Connection::connect(server, options, Arc::new(NothingServed)).await?;
        *kept = Some(connection.clone());
        Ok(connection)
    }
}
