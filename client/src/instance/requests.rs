//! Requests that wait for their reply.
//!
//! ```text
//! Producer::request ─▶ Requests::wait (correlation id) ─▶ send … 326 ─▶ Shared::replied ─▶ the one that waits
//!                                └─ dropped: forgotten, a late reply finds nobody
//! ```
//! A reply comes over the connection to the broker that the replier chose, any of the requester's cluster. So the first
//! request to a cluster connects to all its masters; heartbeats keep those connections up.
use std::{
    collections::{HashMap, HashSet},
    net::{Ipv4Addr, SocketAddr},
    sync::Mutex,
};

use bindery_protocol::{
    frame::{Frame, HeaderError},
    headers::PushReplyHeader,
    message::{
        BodyError, PhysicalOffset, Properties, QueueOffset, StoredMessage, SysFlag, property,
    },
    names,
};
use bytes::Bytes;
use tokio::sync::oneshot;

use super::{Shared, TopicRoute};
use crate::{ClientError, MessageExt, consumer::Origin, sync::lock};

/// All requests of a client that wait.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    waiting: Mutex<HashMap<String, oneshot::Sender<MessageExt>>>,
    /// Clusters whose brokers are connected.
    clusters: Mutex<HashSet<String>>,
}

/// The right to one reply.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    requests: &'a Requests,
    correlation_id: String,
    reply: oneshot::Receiver<MessageExt>,
}

/// Why a reply can't be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplyError {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("process reply message fail: {0}")]
    Body(#[from] BodyError),
}

impl Requests {
    /// Makes a place for the reply of that correlation id.
    pub(crate) fn wait(&self, correlation_id: &str) -> Waiting<'_> {
        let (sender, reply) = oneshot::channel();
        lock(&self.waiting).insert(correlation_id.to_owned(), sender);
        Waiting {
            requests: self,
            correlation_id: correlation_id.to_owned(),
            reply,
        }
    }

    /// Ends all waiting without a reply.
    pub(super) fn give_up(&self) {
        lock(&self.waiting).clear();
    }
}

impl Waiting<'_> {
    /// Waits for the reply. Cancel safe; must not be called again once it has answered.
    ///
    /// # Errors
    /// [`ClientError::ShutDown`] when the client was shut down meanwhile.
    pub(crate) async fn reply(&mut self) -> Result<MessageExt, ClientError> {
        (&mut self.reply)
            .await
            .map_err(|_given_up| ClientError::ShutDown { what: "the client" })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.requests.waiting).remove(&self.correlation_id);
    }
}

impl Shared {
    /// Takes a reply in. One that nobody waits for, or no longer, is dropped: the replier has done its part.
    pub(super) fn replied(&self, addr: &str, frame: &Frame) -> Result<(), ReplyError> {
        let header: PushReplyHeader<'_> = frame.header()?;
        let brokers = self.routes.brokers_at(addr);
        let origin = Origin {
            broker_name: brokers.first().map_or("", String::as_str),
            min_offset: 0,
            max_offset: 0,
            namespace: None,
        };
        let mut stored = message(header, frame.body.clone());
        let arrived = self.config.clock.now_millis().to_string();
        stored.properties.put(property::ARRIVE_TIME, arrived);
        let reply = MessageExt::received(stored, &origin)?;
        let correlation_id = reply.property(property::CORRELATION_ID).unwrap_or_default();
        let waiting = lock(&self.requests.waiting).remove(correlation_id);
        if waiting.is_none_or(|waiting| waiting.send(reply.clone()).is_err()) {
            tracing::debug!(addr, correlation_id, "reply that nobody waits for");
        }
        Ok(())
    }

    /// Makes sure that replies to requests on this route find us: a connection to each master of its clusters.
    pub(crate) async fn listen_for_replies(&self, route: &TopicRoute) {
        for cluster in &route.clusters {
            if lock(&self.requests.clusters).contains(cluster) {
                continue;
            }
            let topic = names::reply_topic(cluster);
            // One queue a broker, should the topic have to be made.
            if let Err(error) = self.publish_route(&topic, 1).await {
                tracing::debug!(topic, %error, "route of the reply topic not found yet");
                continue;
            }
            self.greet_all().await;
            lock(&self.requests.clusters).insert(cluster.clone());
        }
    }
}

/// A pushed reply as the record that the broker stored, as far as it tells.
fn message(header: PushReplyHeader<'_>, body: Bytes) -> StoredMessage {
    let address = |text: &str| {
        text.parse()
            .unwrap_or_else(|_| SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
    };
    StoredMessage {
        queue_id: header.queue_id,
        flag: header.flag,
        queue_offset: QueueOffset(0),
        physical_offset: PhysicalOffset(0),
        sys_flag: SysFlag(header.sys_flag),
        born_timestamp: header.born_timestamp,
        born_host: address(&header.born_host),
        store_timestamp: header.store_timestamp,
        store_host: address(&header.store_host),
        reconsume_times: header.reconsume_times.unwrap_or(0),
        prepared_transaction_offset: 0,
        body,
        body_crc: 0,
        properties: Properties::parse(header.properties.as_deref().unwrap_or_default()),
        topic: header.topic.into_owned(),
    }
}
