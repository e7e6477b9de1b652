//! One connection to each server, made when it is first needed and again after it broke.
//!
//! ```text
//! call(addr) ─▶ live? ── yes ─▶ use it
//!                 └─ no ─▶ connect (one task does, the others wait) ─▶ heartbeat, if it is a broker ─▶ publish it
//! ```
//! A broker hears a heartbeat before anything else on a new connection, so it knows our groups when the first pull arrives.
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, RwLock},
    time::{Duration, Instant},
};

use bindery_protocol::{
    codes::ResponseCode,
    frame::{Frame, Request},
};
use bindery_remoting::{ConnectOptions, Connection, Service};

use super::{Shared, callbacks::Inbound};
use crate::{
    ClientError,
    sync::{lock, read, write},
};

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    NameServer,
    Broker,
}

#[derive(Debug, Default)]
pub(super) struct Connections {
    slots: RwLock<HashMap<String, Arc<Slot>>>,
}

/// The place of the connection to one address.
#[derive(Debug, Default)]
pub(super) struct Slot {
    live: Mutex<Option<Connection>>,
    /// Held while connecting, over awaits on purpose: everyone who needs the address waits for the one attempt.
    connecting: tokio::sync::Mutex<()>,
    /// Held during a heartbeat, so that an older state of our subscriptions never overtakes a newer one.
    pub(super) beating: tokio::sync::Mutex<()>,
}

impl Slot {
    fn live(&self) -> Option<Connection> {
        lock(&self.live)
            .clone()
            .filter(|connection| !connection.is_closed())
    }
}

impl Connections {
    pub(super) fn slot(&self, addr: &str) -> Arc<Slot> {
        if let Some(slot) = read(&self.slots).get(addr) {
            return Arc::clone(slot);
        }
        Arc::clone(write(&self.slots).entry(addr.to_owned()).or_default())
    }

    pub(super) fn close_all(&self) -> Vec<Connection> {
        let slots = std::mem::take(&mut *write(&self.slots));
        let open: Vec<_> = slots
            .values()
            .filter_map(|slot| lock(&slot.live).take())
            .collect();
        open.iter().for_each(Connection::close);
        open
    }
}

impl Shared {
    /// Sends a request and waits for its answer, whatever its code. `timeout` covers connecting too.
    pub(crate) async fn call(
        &self,
        peer: Peer,
        addr: &str,
        request: Request,
        timeout: Duration,
    ) -> Result<Frame, ClientError> {
        let started = Instant::now();
        let connection = self.connection(peer, addr, timeout).await?;
        let left = timeout.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Err(ClientError::Timeout {
                addr: addr.to_owned(),
                after: timeout,
            });
        }
        let answer = connection.call(request, left).await?;
        self.answered(peer, addr);
        if answer.response_code() == ResponseCode::GO_AWAY {
            // The server is about to stop: whoever tries again shall do so on a new connection.
            connection.close();
        }
        Ok(answer)
    }

    /// [`Shared::call`] of a broker, where every answer but success is an error.
    pub(crate) async fn ask(
        &self,
        addr: &str,
        request: Request,
        timeout: Duration,
    ) -> Result<Frame, ClientError> {
        let answer = self.call(Peer::Broker, addr, request, timeout).await?;
        success(addr, answer)
    }

    /// Hands a request to the connection and waits for no answer.
    pub(crate) async fn tell(
        &self,
        addr: &str,
        request: Request,
        timeout: Duration,
    ) -> Result<(), ClientError> {
        let connection = self.connection(Peer::Broker, addr, timeout).await?;
        Ok(connection.oneway(request)?)
    }

    /// Whether there is a live connection to an address.
    pub(crate) fn is_connected(&self, addr: &str) -> bool {
        self.connections.slot(addr).live().is_some()
    }

    /// The live connection to an address, made now if there is none.
    pub(super) async fn connection(
        &self,
        peer: Peer,
        addr: &str,
        timeout: Duration,
    ) -> Result<Connection, ClientError> {
        let slot = self.connections.slot(addr);
        if let Some(connection) = slot.live() {
            return Ok(connection);
        }
        match tokio::time::timeout(timeout, self.connect(peer, addr, &slot)).await {
            Ok(connected) => connected,
            Err(_elapsed) => Err(ClientError::Timeout {
                addr: addr.to_owned(),
                after: timeout,
            }),
        }
    }

    async fn connect(
        &self,
        peer: Peer,
        addr: &str,
        slot: &Slot,
    ) -> Result<Connection, ClientError> {
        let _one_at_a_time = slot.connecting.lock().await;
        if let Some(connection) = slot.live() {
            return Ok(connection);
        }
        if self.stop.is_cancelled() {
            return Err(ClientError::ShutDown { what: "the client" });
        }
        let options = ConnectOptions {
            connect_timeout: self.config.connect_timeout,
            ..ConnectOptions::default()
        };
        let service: Arc<dyn Service> = Arc::new(Inbound::new(self.this.clone(), peer, addr));
        let connection = Connection::connect(addr, options, service)
            .await
            .inspect_err(|_| {
                if peer == Peer::Broker {
                    // It may have moved: learn its new address now and not in half a minute.
                    self.routes.hurry();
                }
            })?;
        if peer == Peer::Broker {
            let reconnected = lock(&slot.live).is_some();
            self.greet(addr, slot, &connection).await;
            if reconnected {
                self.reconnected();
            }
        }
        *lock(&slot.live) = Some(connection.clone());
        Ok(connection)
    }
}

/// The answer, if its code is success.
pub(crate) fn success(addr: &str, answer: Frame) -> Result<Frame, ClientError> {
    if answer.response_code() == ResponseCode::SUCCESS {
        Ok(answer)
    } else {
        Err(refusal(addr, &answer))
    }
}

/// The error that an answer stands for.
pub(crate) fn refusal(addr: &str, answer: &Frame) -> ClientError {
    ClientError::Broker {
        addr: addr.to_owned(),
        code: answer.response_code(),
        remark: answer.head.remark.clone().unwrap_or_default(),
    }
}
