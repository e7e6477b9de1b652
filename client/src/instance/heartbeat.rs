//! Telling brokers who we are: every half minute, on every new connection, and when a group comes.
//!
//! ```text
//! groups ─▶ HeartbeatData ─▶ every known broker (producers alone: masters only), all at a time
//! ```
use std::time::Duration;

use bindery_protocol::{
    bodies::{ConsumerData, HeartbeatData, ProducerData},
    codes::RequestCode,
    frame::Request,
    names,
};
use bindery_remoting::Connection;
use futures_util::future::join_all;

use super::{
    Server, Shared,
    connections::{Peer, Slot, success},
    outages::warn_once,
};
use crate::{ClientError, body, sync::read};

impl Shared {
    /// One heartbeat to every known broker, all at a time: a dead one delays no other.
    pub(crate) async fn heartbeat_all(&self) {
        if !self.has_groups() {
            return;
        }
        let masters_only = read(&self.consumers).is_empty();
        let addresses = self.routes.addresses(masters_only);
        join_all(addresses.iter().map(|addr| async move {
            if let Err(error) = self.heartbeat_to(addr).await {
                warn_once!(self.is_news(Server::At(addr), &error), addr, %error, "heartbeat failed");
            }
        }))
        .await;
    }

    /// A connection to every known master; new ones begin with a heartbeat.
    pub(super) async fn greet_all(&self) {
        let addresses = self.routes.addresses(true);
        join_all(addresses.iter().map(|addr| async move {
            let timeout = self.config.call_timeout;
            if let Err(error) = self.connection(Peer::Broker, addr, timeout).await {
                warn_once!(self.is_news(Server::At(addr), &error), addr, %error, "broker not greeted yet");
            }
        }))
        .await;
    }

    /// One heartbeat to this broker.
    pub(crate) async fn heartbeat_to(&self, addr: &str) -> Result<(), ClientError> {
        let timeout = self.config.call_timeout;
        let connection = self.connection(Peer::Broker, addr, timeout).await?;
        self.beat(addr, &self.connections.slot(addr), &connection, timeout)
            .await
    }

    /// The first heartbeat on a new connection. A failure is not the caller's: what it wants to send may still be understood.
    pub(super) async fn greet(&self, addr: &str, slot: &Slot, connection: &Connection) {
        if !self.has_groups() {
            return;
        }
        if let Err(error) = self
            .beat(addr, slot, connection, self.config.call_timeout)
            .await
        {
            warn_once!(self.is_news(Server::At(addr), &error), addr, %error, "first heartbeat failed");
        }
    }

    async fn beat(
        &self,
        addr: &str,
        slot: &Slot,
        connection: &Connection,
        timeout: Duration,
    ) -> Result<(), ClientError> {
        let _in_order = slot.beating.lock().await;
        let body = body::encode("a heartbeat", &self.heartbeat_data())?;
        let answer = connection
            .call(Request::new(RequestCode::HEART_BEAT).body(body), timeout)
            .await?;
        self.answered(Peer::Broker, addr);
        success(addr, answer).map(drop)
    }

    fn has_groups(&self) -> bool {
        !read(&self.consumers).is_empty() || !read(&self.producers).is_empty()
    }

    fn heartbeat_data(&self) -> HeartbeatData {
        let consumer_data_set: Vec<ConsumerData> = read(&self.consumers)
            .values()
            .map(|consumer| consumer.heartbeat_data())
            .collect();
        let mut producer_data_set: Vec<_> = read(&self.producers)
            .keys()
            .map(|group| ProducerData {
                group_name: group.clone(),
            })
            .collect();
        producer_data_set.push(ProducerData {
            group_name: names::CLIENT_INNER_PRODUCER.to_owned(),
        });
        HeartbeatData {
            client_id: self.id.clone(),
            consumer_data_set,
            producer_data_set,
            ..HeartbeatData::default()
        }
    }
}
