//! The two tasks of a connection.
//!
//! ```text
//! reader: read ▶ frames ▶ calls / service ▶ (pause while too many answers are queued) ▶ read …
//! writer: everything queued ▶ write_vectored until taken ▶ everything queued meanwhile …
//!
//! end of stream ─▶ answers under way get a second ─┐
//! read or frame error, close(), server stops ──────┴▶ queue closes ▶ writer drains (a second) ▶ disconnected ▶ ended
//! ```
//! This file and `inbox.rs` are the only ones that know the kind of socket.
use std::{
    io::{self, IoSlice},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bindery_protocol::frame::FrameError;
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Budget, Clock, Connection, RemotingError, Responder, Service,
    connection::Shared,
    inbox::Inbox,
    outbox::{Batch, MAX_SLICES},
    proxied::Beginning,
};

/// How long a closing connection may take to get rid of what is queued. Real time, whatever the clock: it depends on a
/// peer in the real world.
const GRACE: Duration = Duration::from_secs(1);

/// Who made a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// We did.
    Connecting,
    /// The peer did, perhaps through a proxy that says so.
    Accepting,
}

/// Limits of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) budget: Budget,
    pub(crate) side: Side,
    pub(crate) max_frame: usize,
    pub(crate) max_queued_bytes: usize,
}

/// The tasks of a connection, not yet started.
pub(crate) struct Driver {
    connection: Connection,
    service: Arc<dyn Service>,
    inbox: Inbox,
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
}

/// Why a connection is no longer read.
enum End {
    /// [`Connection::close`], the server's stop, or the writer's failure.
    Stopped,
    /// The peer sends no more, but may still read.
    Eof,
    Io(io::Error),
    Frame(FrameError),
    /// A proxy's header that can't be read.
    Proxy(proxy_header::Error),
    /// The service panicked; the panic hook has reported it.
    Panicked,
}

/// Sets up a connection over `stream`; it lives once [`Driver::run`] runs.
pub(crate) fn open(
    stream: TcpStream,
    limits: Limits,
    service: Arc<dyn Service>,
    clock: Clock,
    stop: CancellationToken,
) -> io::Result<(Connection, Driver)> {
    // Answers are coalesced before they are written; the kernel must not hold them back for more.
    stream.set_nodelay(true)?;
    let addresses = (stream.peer_addr()?, stream.local_addr()?);
    let shared = Shared::new(
        addresses,
        (limits.max_queued_bytes, limits.budget),
        clock,
        stop,
    );
    let connection = Connection::of(shared);
    let (read, write) = stream.into_split();
    let inbox = match limits.side {
        Side::Connecting => Inbox::new(limits.max_frame),
        Side::Accepting => Inbox::of_accepted(limits.max_frame),
    };
    Ok((
        connection.clone(),
        Driver {
            connection,
            service,
            inbox,
            read,
            write,
        },
    ))
}

impl Driver {
    /// Runs until the connection has ended; the writer becomes a task of `tasks`.
    pub(crate) async fn run(self, tasks: TaskTracker) {
        let Self {
            connection,
            service,
            inbox,
            read,
            write,
        } = self;
        let shared = Arc::clone(&connection.shared);
        let _ended = EndMark(Arc::clone(&shared));
        tracing::debug!(peer = %connection.peer(), id = connection.id().0, "connected");
        let writer = tasks.spawn(write_until_end(Arc::clone(&shared), write));

        let greeted = catch_unwind(AssertUnwindSafe(|| service.connected(&connection)));
        let mut reader = Reader {
            connection,
            service,
            inbox,
            socket: read,
        };
        let end = match greeted {
            Ok(()) => reader.read_until_end().await,
            Err(_reported_by_the_panic_hook) => End::Panicked,
        };
        if matches!(end, End::Eof) {
            linger(&shared).await;
        }
        shared.close(end.report(&reader.connection));
        if let Err(error) = writer.await {
            tracing::error!(peer = %reader.connection.peer(), %error, "the writer task failed");
        }
        let farewell = || reader.service.disconnected(&reader.connection);
        if catch_unwind(AssertUnwindSafe(farewell)).is_err() {
            tracing::error!(peer = %reader.connection.peer(), "the service panicked at the end of a connection");
        }
    }
}

/// Marks the connection as ended however its task ends.
struct EndMark(Arc<Shared>);

impl Drop for EndMark {
    fn drop(&mut self) {
        self.0.close(None);
        self.0.outbox.abandon();
        self.0.ended.cancel();
    }
}

/// A peer that closed only its sending half still waits for its answers.
async fn linger(shared: &Shared) {
    tokio::select! {
        biased;
        () = shared.stop.cancelled() => {}
        () = shared.all_answered() => {}
        () = tokio::time::sleep(GRACE) => {}
    }
}

impl End {
    /// Logs it; what the oldest call in flight is to be told, if there is something to tell.
    fn report(self, connection: &Connection) -> Option<RemotingError> {
        let (peer, id) = (connection.peer(), connection.id().0);
        match self {
            Self::Stopped => tracing::debug!(%peer, id, "closed"),
            Self::Eof => tracing::debug!(%peer, id, "closed by the peer"),
            Self::Io(error) => tracing::debug!(%peer, id, %error, "lost"),
            Self::Panicked => tracing::error!(%peer, id, "closed: the service panicked"),
            Self::Proxy(error) => {
                tracing::debug!(%peer, id, %error, "closed: malformed header of a proxy");
            }
            Self::Frame(source) => {
                tracing::debug!(%peer, id, error = %source, "closed: malformed frame");
                return Some(RemotingError::Frame {
                    addr: peer.to_string(),
                    source,
                });
            }
        }
        None
    }
}

/// How far the frames of a read were handed over.
enum Handed {
    /// All of them.
    All,
    /// Too many answers are queued: the rest waits in the inbox.
    UntilPressed,
}

struct Reader {
    connection: Connection,
    service: Arc<dyn Service>,
    inbox: Inbox,
    socket: OwnedReadHalf,
}

impl Reader {
    async fn read_until_end(&mut self) -> End {
        let shared = Arc::clone(&self.connection.shared);
        let mut stopped = pin!(shared.stop.cancelled());
        loop {
            let read = tokio::select! {
                biased;
                () = &mut stopped => return End::Stopped,
                read = self.inbox.fill(&mut self.socket) => read,
            };
            match read {
                Ok(0) => return End::Eof,
                Ok(_) => shared.touch(),
                Err(error) => return End::Io(error),
            }
            loop {
                match catch_unwind(AssertUnwindSafe(|| self.hand_over())) {
                    Ok(Ok(Handed::All)) => break,
                    Ok(Ok(Handed::UntilPressed)) => {}
                    Ok(Err(end)) => return end,
                    Err(_reported_by_the_panic_hook) => return End::Panicked,
                }
                tokio::select! {
                    biased;
                    () = &mut stopped => return End::Stopped,
                    () = shared.outbox.relieved() => {}
                }
            }
        }
    }

    /// The whole frames that have arrived, as long as their answers find room.
    fn hand_over(&mut self) -> Result<Handed, End> {
        match self.inbox.begin().map_err(End::Proxy)? {
            Beginning::Undecided => return Ok(Handed::All),
            Beginning::Header { source, .. } => self.connection.shared.proxied(source),
            Beginning::Frame => {}
        }
        let mut requests = 0_usize;
        let outcome = loop {
            if self.connection.shared.outbox.is_pressing() {
                break Ok(Handed::UntilPressed);
            }
            let frame = match self.inbox.frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break Ok(Handed::All),
                Err(error) => break Err(End::Frame(error)),
            };
            if frame.is_response() {
                let opaque = frame.head.opaque;
                if !self.connection.shared.calls.complete(frame) {
                    tracing::debug!(peer = %self.connection.peer(), opaque, "answer that nobody waits for");
                }
            } else {
                requests += 1;
                let responder = Responder::new(
                    self.connection.clone(),
                    frame.head.opaque,
                    frame.is_oneway(),
                );
                self.service.request(&self.connection, frame, responder);
            }
        };
        if requests > 0 {
            self.service.batch_end(&self.connection);
        }
        outcome
    }
}

/// The writer task. Its failure stops the reader, a stop gives it [`GRACE`] for what is queued.
async fn write_until_end(shared: Arc<Shared>, mut socket: OwnedWriteHalf) {
    let ran_out = async {
        shared.stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let (peer, id) = (shared.peer(), shared.id());
    tokio::select! {
        written = write_queued(&shared, &mut socket) => {
            if let Err(error) = written {
                tracing::debug!(%peer, id, %error, "cannot write");
            }
        }
        () = ran_out => tracing::debug!(%peer, id, bytes = shared.outbox.queued(), "closed with answers unwritten"),
    }
    shared.stop.cancel();
}

async fn write_queued(shared: &Shared, socket: &mut OwnedWriteHalf) -> io::Result<()> {
    let mut spare = Batch::default();
    while let Some(mut batch) = shared.outbox.next(spare).await {
        shared.touch_written();
        write_batch(shared, socket, &mut batch).await?;
        shared.outbox.written(&batch);
        batch.clear();
        spare = batch;
        // A peer that reads as fast as we write must not keep this task running for ever.
        tokio::task::consume_budget().await;
    }
    socket.shutdown().await
}

async fn write_batch(
    shared: &Shared,
    socket: &OwnedWriteHalf,
    batch: &mut Batch,
) -> io::Result<()> {
    loop {
        let written = {
            // In a block of its own, so that the slices are no part of the task's memory while it waits.
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let count = batch.fill(&mut slices);
            if count == 0 {
                return Ok(());
            }
            socket.try_write_vectored(&slices[..count])
        };
        match written {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(count) => {
                batch.advance(count);
                shared.touch_written();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
