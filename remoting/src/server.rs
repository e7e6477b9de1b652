//! The accepting side.
//!
//! ```text
//! accept task ─▶ connection (two tasks each) ─▶ Service
//! sweep task  ─▶ closes what has been silent for too long, and what does not read while room is wanted; sleeps while
//!                there is no connection
//! ```
use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bindery_protocol::frame::MAX_FRAME;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Notify,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Budget, Clock, Connection, ConnectionId, Service,
    connection::DEFAULT_QUEUED_BYTES,
    driver::{self, Limits, Side},
    lock,
};

/// Connections that may wait to be accepted (`serverSocketBacklog` in Apache's servers).
const BACKLOG: u32 = 1024;
/// `serverChannelMaxIdleTimeSeconds` in Apache's servers.
const DEFAULT_IDLE: Duration = Duration::from_secs(120);
/// The sweeper does not wake more often than this, so that idle connections cost nothing worth measuring.
const MAX_SWEEP_GRAIN: Duration = Duration::from_secs(10);
/// Bytes queued over all connections, unless set otherwise: 256 MiB.
const DEFAULT_BUDGET: usize = 256 * 1024 * 1024;
/// A peer that takes nothing for so long is closed when room is wanted: milliseconds.
const STALL: i64 = 10_000;
/// Rest after a failed accept. Real time, whatever the clock: what is missing (descriptors, memory) is missing in the
/// real world, and without a rest the task would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Largest frame accepted, in bytes; default [`bindery_protocol::frame::MAX_FRAME`].
    pub max_frame: usize,
    /// A connection silent for so long in both directions is closed; default 120 s. It is noticed at most 10 s late.
    pub idle: Duration,
    /// See [`crate::ConnectOptions::max_queued_bytes`].
    pub max_queued_bytes: usize,
    /// Bytes queued over all connections that share it; default a budget of the server's own of 256 MiB.
    pub budget: Budget,
    /// Time source.
    pub clock: Clock,
}

impl ServerOptions {
    /// The defaults, on the given clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            max_frame: MAX_FRAME,
            idle: DEFAULT_IDLE,
            max_queued_bytes: DEFAULT_QUEUED_BYTES,
            budget: Budget::new(DEFAULT_BUDGET),
            clock,
        }
    }
}

/// A listening server that owns its connections' tasks. Dropped without [`Server::shutdown`], it stops without waiting.
#[derive(Debug)]
pub struct Server {
    local: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
    table: Arc<Table>,
}

/// The live connections of a server.
#[derive(Debug, Default)]
struct Table {
    connections: Mutex<HashMap<ConnectionId, Connection>>,
    /// Told when the table is no longer empty.
    populated: Notify,
}

/// What the accept task works with.
struct Acceptor {
    listener: TcpListener,
    options: ServerOptions,
    service: Arc<dyn Service>,
    stop: CancellationToken,
    tasks: TaskTracker,
    table: Arc<Table>,
}

impl Server {
    /// Binds (port 0: any free one) and starts accepting.
    ///
    /// # Errors
    /// What the system says about the address.
    #[expect(
        clippy::unused_async,
        reason = "listening needs the runtime, and later kinds of listeners must wait"
    )]
    pub async fn bind(
        addr: SocketAddr,
        options: ServerOptions,
        service: Arc<dyn Service>,
    ) -> io::Result<Self> {
        let listener = listen(addr)?;
        let local = listener.local_addr()?;
        let (stop, tasks, table) = (
            CancellationToken::new(),
            TaskTracker::new(),
            Arc::new(Table::default()),
        );
        tasks.spawn(sweep(Arc::clone(&table), options.clone(), stop.clone()));
        let acceptor = Acceptor {
            listener,
            options,
            service,
            stop: stop.clone(),
            tasks: tasks.clone(),
            table: Arc::clone(&table),
        };
        tasks.spawn(acceptor.run());
        Ok(Self {
            local,
            stop,
            tasks,
            table,
        })
    }

    /// The address bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// How many connections are open.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        lock(&self.table.connections).len()
    }

    /// Stops accepting, closes the connections (answers already queued are written, for at most a second) and waits
    /// for all tasks.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // A restarted server must not wait for connections of its predecessor to leave TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

impl Acceptor {
    async fn run(self) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.take(stream, peer),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; trying again");
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => return,
                        () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                    }
                }
            }
        }
    }

    /// Starts a connection.
    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        let limits = Limits {
            budget: self.options.budget.clone(),
            side: Side::Accepting,
            max_frame: self.options.max_frame,
            max_queued_bytes: self.options.max_queued_bytes,
        };
        let clock = self.options.clock.clone();
        let opened = driver::open(
            stream,
            limits,
            Arc::clone(&self.service),
            clock,
            self.stop.child_token(),
        );
        let (connection, driver) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // The peer was gone before we could look at it.
                tracing::debug!(%peer, %error, "lost at once");
                return;
            }
        };
        let (table, id, tasks) = (Arc::clone(&self.table), connection.id(), self.tasks.clone());
        table.insert(connection);
        self.tasks.spawn(async move {
            driver.run(tasks).await;
            table.remove(id);
        });
    }
}

impl Table {
    fn insert(&self, connection: Connection) {
        let mut connections = lock(&self.connections);
        connections.insert(connection.id(), connection);
        if connections.len() == 1 {
            self.populated.notify_one();
        }
    }

    fn remove(&self, id: ConnectionId) {
        lock(&self.connections).remove(&id);
    }

    async fn populated(&self) {
        while lock(&self.connections).is_empty() {
            self.populated.notified().await;
        }
    }

    /// Closes what has been silent since `now - idle`; when the next one could be due.
    fn close_idle(&self, now: i64, idle: i64) -> Option<i64> {
        let mut next = None;
        for connection in lock(&self.connections).values() {
            let due = connection.shared.last_active().saturating_add(idle);
            if due <= now {
                tracing::debug!(peer = %connection.peer(), id = connection.id().0, "closed: silent for too long");
                connection.close();
            } else {
                next = Some(next.map_or(due, |earliest: i64| earliest.min(due)));
            }
        }
        next
    }

    /// Closes those that have taken nothing since `before`, the largest first, until so many bytes come free.
    fn close_stalled(&self, before: i64, mut wanted: usize) {
        let mut stalled: Vec<_> = lock(&self.connections)
            .values()
            .map(|connection| (connection.shared.stalled(before), connection.clone()))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        stalled.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (bytes, connection) in stalled {
            if wanted == 0 {
                return;
            }
            tracing::warn!(peer = %connection.peer(), bytes, "closed: does not read its answers, and their room is wanted");
            connection.close();
            wanted = wanted.saturating_sub(bytes);
        }
    }
}

/// Closes idle connections. One sleeper for all of them: a timer per connection would wake the process for each.
async fn sweep(table: Arc<Table>, options: ServerOptions, stop: CancellationToken) {
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let idle = millis(options.idle);
    let grain = millis(MAX_SWEEP_GRAIN.min(options.idle / 4)).max(1);
    let sweeping = async {
        loop {
            table.populated().await;
            let now = options.clock.now_millis();
            let next = table.close_idle(now, idle).unwrap_or(now);
            let excess = options.budget.excess();
            if excess > 0 {
                table.close_stalled(now.saturating_sub(STALL), excess);
                options
                    .clock
                    .sleep_until(now.saturating_add(STALL / 2))
                    .await;
                continue;
            }
            tokio::select! {
                () = options.clock.sleep_until(next.max(now.saturating_add(grain))) => {}
                () = options.budget.pressed() => {}
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = sweeping => {}
    }
}
