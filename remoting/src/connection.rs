//! One multiplexed connection, the same for both ends.
use std::{net::SocketAddr, sync::Arc, time::Duration};

use bindery_protocol::frame::{Frame, FrameError, Reply, Request};

/// Names a connection within the process, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// What goes wrong between two ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemotingError {
    /// The peer can't be reached.
    #[error("cannot connect to {addr}")]
    Connect {
        /// Address tried.
        addr: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// No answer in time.
    #[error("{addr} gave no answer within {after:?}")]
    Timeout {
        /// Peer.
        addr: String,
        /// Time waited.
        after: Duration,
    },
    /// The connection ended before the answer came.
    #[error("connection to {addr} was closed")]
    Closed {
        /// Peer.
        addr: String,
    },
    /// The out queue is full: the peer does not read.
    #[error("{addr} does not read what is sent to it")]
    Busy {
        /// Peer.
        addr: String,
    },
    /// The peer sent what is no frame.
    #[error("{addr} sent a malformed frame")]
    Frame {
        /// Peer.
        addr: String,
        /// Cause.
        #[source]
        source: FrameError,
    },
}

/// Limits of a connection.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Time allowed for connecting; default 3 s.
    pub connect_timeout: Duration,
    /// Largest frame accepted; default [`bindery_protocol::frame::MAX_FRAME`].
    pub max_frame: usize,
    /// Bytes queued for a peer that does not read before sends are refused; default 64 MiB.
    pub max_queued_bytes: usize,
}

/// Takes the requests that arrive on connections. Called on the connection's reader task, frame after frame: it must
/// not block and should answer quick requests at once; slow ones keep the [`Responder`] and answer from elsewhere.
pub trait Service: Send + Sync + 'static {
    /// One request.
    fn request(&self, connection: &Connection, frame: Frame, responder: Responder);
    /// All frames that one read brought have been handed over: the place to start work that serves many of them.
    fn batch_end(&self, connection: &Connection) {
        _ = connection;
    }
    /// A connection was accepted or made.
    fn connected(&self, connection: &Connection) {
        _ = connection;
    }
    /// A connection ended; called once.
    fn disconnected(&self, connection: &Connection) {
        _ = connection;
    }
}

/// The right to answer one request. Dropping it unused leaves the request unanswered. For oneway requests
/// [`Responder::send`] does nothing.
#[derive(Debug)]
pub struct Responder {}

impl Responder {
    /// Queues the answer; if the connection is gone or its queue full, the answer is dropped.
    pub fn send(self, reply: Reply) {
        todo!()
    }
    /// Whether nobody waits for an answer.
    pub fn is_oneway(&self) -> bool {
        todo!()
    }
}

/// A handle to a live connection; cheap to clone.
#[derive(Debug, Clone)]
pub struct Connection {}

impl Connection {
    /// Connects; requests from the peer go to `service`.
    pub async fn connect(addr: &str, options: ConnectOptions, service: Arc<dyn Service>) -> Result<Self, RemotingError> {
        todo!()
    }
    /// Sends a request and waits for its answer. Cancel safe: a late answer is dropped.
    pub async fn call(&self, request: Request, timeout: Duration) -> Result<Frame, RemotingError> {
        todo!()
    }
    /// Sends a request that gets no answer.
    pub fn oneway(&self, request: Request) -> Result<(), RemotingError> {
        todo!()
    }
    /// Its name in this process.
    pub fn id(&self) -> ConnectionId {
        todo!()
    }
    /// Address of the other end.
    pub fn peer(&self) -> SocketAddr {
        todo!()
    }
    /// Address of this end.
    pub fn local(&self) -> SocketAddr {
        todo!()
    }
    /// Whether it ended.
    pub fn is_closed(&self) -> bool {
        todo!()
    }
    /// Ends it; queued answers are written first, for at most a second.
    pub fn close(&self) {
        todo!()
    }
    /// Waits until it has ended. Cancel safe.
    pub async fn closed(&self) {
        todo!()
    }
}
