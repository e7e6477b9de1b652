//! One multiplexed connection, the same for both ends.
//!
//! ```text
//! call ─▶ Calls (opaque → waiting) ─┐
//! oneway ───────────────────────────┼─▶ Outbox ─▶ writer task ─▶ socket ─▶ reader task ─┬─▶ Calls::complete
//! Responder::send ──────────────────┘                                                   └─▶ Service::request
//! ```
//! The two numberings of opaques, ours and the peer's, are independent: bit 0 of the flag tells answers from requests.
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bindery_protocol::{
    codes::ResponseCode,
    frame::{Frame, MAX_FRAME, Reply, Request},
};
use tokio::{net::TcpStream, sync::Notify};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Budget, Clock, RemotingError, Service,
    calls::Calls,
    driver::{self, Limits, Side},
    outbox::{Outbox, Refused},
};

/// What clients are told when an answer has no room, in the words of Apache's `NettyRemotingAbstract`.
const OVERLOAD: &str = "[OVERLOAD]system busy, start flow control for a while";
/// Bytes queued for a peer that does not read before sends are refused, unless set otherwise: 64 MiB.
pub(crate) const DEFAULT_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// What Java's clients allow for connecting (`connectTimeoutMillis`).
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Names a connection within the process, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Limits of a connection.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Time allowed for connecting; default 3 s.
    pub connect_timeout: Duration,
    /// Largest frame accepted, in bytes; default [`bindery_protocol::frame::MAX_FRAME`].
    pub max_frame: usize,
    /// Bytes queued for a peer that does not read before sends are refused; default 64 MiB.
    pub max_queued_bytes: usize,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            max_frame: MAX_FRAME,
            max_queued_bytes: DEFAULT_QUEUED_BYTES,
        }
    }
}

/// A handle to a live connection; cheap to clone.
///
/// A connection lives until either end closes it. One made by [`Connection::connect`] is also closed when the last clone
/// of the handle returned there is dropped; the handles that a [`Service`] is given don't count.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(crate) shared: Arc<Shared>,
    /// Held by the handles of whoever connected.
    _owner: Option<Arc<Owner>>,
}

/// Closes the connection when nobody holds it any more.
#[derive(Debug)]
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close(None);
    }
}

/// What the handles and the two tasks of a connection share.
#[derive(Debug)]
pub(crate) struct Shared {
    id: ConnectionId,
    peer: SocketAddr,
    local: SocketAddr,
    /// The client's address as a proxy told it.
    proxied: OnceLock<SocketAddr>,
    pub(crate) outbox: Outbox,
    pub(crate) calls: Calls,
    /// Ends the tasks.
    pub(crate) stop: CancellationToken,
    /// Both tasks have ended.
    pub(crate) ended: CancellationToken,
    /// Requests handed to the service whose responder still exists.
    pub(crate) unanswered: AtomicUsize,
    pub(crate) all_answered: Notify,
    clock: Clock,
    /// When bytes last went either way.
    last_active: AtomicI64,
    /// When the peer last took bytes, or they were first offered to it.
    last_written: AtomicI64,
}

impl Connection {
    /// Connects to `host:port` (IPv6 addresses in brackets; names with several addresses are tried in turn) and starts
    /// the connection's tasks; requests from the peer go to `service`. Dropped half-way, it leaves nothing behind.
    ///
    /// # Errors
    /// [`RemotingError::Connect`] when the name has no address, the peer refuses, or the time is over.
    pub async fn connect(
        addr: &str,
        options: ConnectOptions,
        service: Arc<dyn Service>,
    ) -> Result<Self, RemotingError> {
        let failed = |source| RemotingError::Connect {
            addr: addr.to_owned(),
            source,
        };
        let connecting = tokio::time::timeout(options.connect_timeout, TcpStream::connect(addr));
        let stream = match connecting.await {
            Ok(connected) => connected.map_err(failed)?,
            Err(elapsed) => return Err(failed(io::Error::new(io::ErrorKind::TimedOut, elapsed))),
        };
        let limits = Limits {
            budget: Budget::unlimited(),
            side: Side::Connecting,
            max_frame: options.max_frame,
            max_queued_bytes: options.max_queued_bytes,
        };
        let (connection, driver) = driver::open(
            stream,
            limits,
            service,
            Clock::system(),
            CancellationToken::new(),
        )
        .map_err(failed)?;
        if connection.peer() == connection.local() {
            // Linux connects a socket to itself when the port that nobody listens on happens to be picked as source.
            return Err(failed(io::Error::from(io::ErrorKind::ConnectionRefused)));
        }
        // The connection owns its tasks: `close` stops them, `closed` waits for them.
        let tasks = TaskTracker::new();
        tasks.spawn(driver.run(tasks.clone()));
        let owner = Arc::new(Owner(Arc::clone(&connection.shared)));
        Ok(Self {
            _owner: Some(owner),
            ..connection
        })
    }

    /// A handle that does not keep the connection alive.
    pub(crate) fn of(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            _owner: None,
        }
    }

    /// Sends a request and waits for its answer, whatever its code. Cancel safe: a late answer is dropped.
    ///
    /// # Errors
    /// [`RemotingError::Busy`] before anything was sent; [`RemotingError::Timeout`], [`RemotingError::Closed`] and
    /// [`RemotingError::Frame`] when no answer came.
    pub async fn call(&self, request: Request, timeout: Duration) -> Result<Frame, RemotingError> {
        let shared = &*self.shared;
        let mut waiting = shared.calls.register().ok_or_else(|| self.closed_error())?;
        shared
            .outbox
            .push_request(request, waiting.opaque, false)
            .map_err(|refused| self.refusal(refused))?;
        match tokio::time::timeout(timeout, &mut waiting.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_sender_gone)) => Err(self.closed_error()),
            Err(_elapsed) => Err(RemotingError::Timeout {
                addr: self.peer().to_string(),
                after: timeout,
            }),
        }
    }

    /// Sends a request that gets no answer.
    ///
    /// # Errors
    /// [`RemotingError::Busy`] or [`RemotingError::Closed`]; nothing was sent then.
    pub fn oneway(&self, request: Request) -> Result<(), RemotingError> {
        let opaque = self.shared.calls.oneway_opaque();
        self.shared
            .outbox
            .push_request(request, opaque, true)
            .map_err(|refused| self.refusal(refused))
    }

    /// Its name in this process.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.shared.id
    }

    /// Address of the other end.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.shared.peer
    }

    /// Address of the client: as a proxy in front of it told it (PROXY protocol), else that of the other end. Anybody can
    /// claim any address that way: it is for people to read, never a reason to trust.
    #[must_use]
    pub fn origin(&self) -> SocketAddr {
        self.shared
            .proxied
            .get()
            .copied()
            .unwrap_or(self.shared.peer)
    }

    /// Whether the client is a process of this host. Through a proxy on this host both count, the proxy and the address it
    /// tells: otherwise a proxy would let anybody in.
    #[must_use]
    pub fn is_from_this_host(&self) -> bool {
        let local = self.local().ip();
        same_host(self.peer().ip(), local) && same_host(self.origin().ip(), local)
    }

    /// Address of this end.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.shared.local
    }

    /// Whether it ended or is ending.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.stop.is_cancelled()
    }

    /// Bytes queued for the peer and not yet taken by the system.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.shared.outbox.queued()
    }

    /// Ends it: calls in flight fail, and what is queued is written for at most a second. Returns at once;
    /// [`Connection::closed`] waits.
    pub fn close(&self) {
        self.shared.close(None);
    }

    /// Waits until it has ended. Cancel safe.
    pub async fn closed(&self) {
        self.shared.ended.cancelled().await;
    }

    /// Queues an answer; in the place of one that has no room, that we are busy.
    pub(crate) fn answer(&self, reply: Reply, opaque: i32) {
        let code = reply.code.0;
        let outbox = &self.shared.outbox;
        let outcome = match outbox.push_reply(reply, opaque) {
            Err(Refused::Full) => {
                tracing::debug!(peer = %self.peer(), opaque, code, "no room for an answer");
                let busy = Reply::error(ResponseCode::SYSTEM_BUSY, OVERLOAD);
                outbox.push_reply(busy, opaque)
            }
            outcome => outcome,
        };
        if let Err(refused) = outcome {
            tracing::debug!(peer = %self.peer(), opaque, code, ?refused, "answer dropped");
        }
    }

    fn refusal(&self, refused: Refused) -> RemotingError {
        match refused {
            Refused::Full => RemotingError::Busy {
                addr: self.peer().to_string(),
            },
            Refused::Closed => self.closed_error(),
        }
    }

    fn closed_error(&self) -> RemotingError {
        RemotingError::Closed {
            addr: self.peer().to_string(),
        }
    }

    /// A connection without socket and tasks, for tests of services: what is sent on it stays in its queue.
    #[doc(hidden)]
    #[must_use]
    pub fn for_test() -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let shared = Shared::new(
            (nowhere, nowhere),
            (DEFAULT_QUEUED_BYTES, Budget::unlimited()),
            Clock::system(),
            CancellationToken::new(),
        );
        Self::of(shared)
    }
}

/// Whether a connection between these addresses stays on this host: loopback, or one of its addresses to itself.
fn same_host(peer: IpAddr, local: IpAddr) -> bool {
    let peer = peer.to_canonical();
    peer.is_loopback() || peer == local.to_canonical()
}

impl Shared {
    /// `addresses` are the peer's and ours, `room` what may be queued here and on all connections together.
    pub(crate) fn new(
        addresses: (SocketAddr, SocketAddr),
        room: (usize, Budget),
        clock: Clock,
        stop: CancellationToken,
    ) -> Self {
        Self {
            id: ConnectionId(NEXT_ID.fetch_add(1, Ordering::Relaxed)),
            peer: addresses.0,
            local: addresses.1,
            proxied: OnceLock::new(),
            outbox: Outbox::new(room.0, room.1),
            calls: Calls::new(),
            stop,
            ended: CancellationToken::new(),
            unanswered: AtomicUsize::new(0),
            all_answered: Notify::new(),
            last_active: AtomicI64::new(clock.now_millis()),
            last_written: AtomicI64::new(clock.now_millis()),
            clock,
        }
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn id(&self) -> u64 {
        self.id.0
    }

    /// A proxy told whose connection this is, or that it is its own.
    pub(crate) fn proxied(&self, source: Option<SocketAddr>) {
        if let Some(source) = source {
            tracing::debug!(peer = %self.peer, id = self.id.0, %source, "through a proxy");
            // Told once, before the first frame.
            _ = self.proxied.set(source);
        }
    }

    /// Nothing new goes out, calls in flight fail (the oldest with `reason`), the tasks end.
    pub(crate) fn close(&self, reason: Option<RemotingError>) {
        self.stop.cancel();
        self.outbox.close();
        self.calls.close(reason);
    }

    /// Bytes went one way or the other.
    pub(crate) fn touch(&self) {
        self.last_active
            .store(self.clock.now_millis(), Ordering::Relaxed);
    }

    /// When bytes last went either way, in milliseconds since 1970 UTC.
    pub(crate) fn last_active(&self) -> i64 {
        self.last_active.load(Ordering::Relaxed)
    }

    /// Bytes were offered to the peer, or it took some.
    pub(crate) fn touch_written(&self) {
        let now = self.clock.now_millis();
        self.last_active.store(now, Ordering::Relaxed);
        self.last_written.store(now, Ordering::Relaxed);
    }

    /// Bytes that the peer has not taken since `before`, none when it took some.
    pub(crate) fn stalled(&self, before: i64) -> usize {
        if self.last_written.load(Ordering::Relaxed) > before {
            0
        } else {
            self.outbox.queued()
        }
    }

    /// Waits until every request handed to the service was answered or its responder dropped.
    pub(crate) async fn all_answered(&self) {
        while self.unanswered.load(Ordering::Relaxed) > 0 {
            self.all_answered.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn only_this_host_counts_as_this_host() {
        for (peer, local, same) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("::1", "::1", true),
            ("10.0.0.5", "10.0.0.5", true),
            ("::ffff:10.0.0.5", "10.0.0.5", true),
            ("10.0.0.6", "10.0.0.5", false),
        ] {
            assert_eq!(
                same_host(peer.parse().unwrap(), local.parse().unwrap()),
                same,
                "{peer} to {local}"
            );
        }
    }
}
