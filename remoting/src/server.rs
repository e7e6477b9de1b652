//! The accepting side.
use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use crate::{Clock, Service};

/// Limits of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Largest frame accepted.
    pub max_frame: usize,
    /// A connection silent for so long in both directions is closed; default 120 s.
    pub idle: Duration,
    /// See [`crate::ConnectOptions::max_queued_bytes`].
    pub max_queued_bytes: usize,
    /// Time source.
    pub clock: Clock,
}

/// A listening server that owns its connections' tasks.
#[derive(Debug)]
pub struct Server {}

impl Server {
    /// Binds (port 0: any free one) and starts accepting.
    pub async fn bind(addr: SocketAddr, options: ServerOptions, service: Arc<dyn Service>) -> io::Result<Self> {
        todo!()
    }
    /// The address bound.
    pub fn local_addr(&self) -> SocketAddr {
        todo!()
    }
    /// Stops accepting, closes the connections, waits for their tasks.
    pub async fn shutdown(self) {
        todo!()
    }
}
