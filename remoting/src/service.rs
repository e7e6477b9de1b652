//! What a connection hands its requests to, and the right to answer them.
use std::sync::atomic::Ordering;

use bindery_protocol::frame::{Frame, Reply};
use tokio::sync::oneshot;

use crate::Connection;

/// Takes the requests that arrive on connections. Called on the connection's reader task, frame after frame: it must
/// not block and should answer quick requests at once; slow ones keep the [`Responder`] and answer from elsewhere.
///
/// A frame's body shares the buffer of the read that brought it (up to 64 KiB, or the size of the frame): what is kept
/// for long should be copied out. A panic in here closes the connection and nothing else.
pub trait Service: Send + Sync + 'static {
    /// One request.
    fn request(&self, connection: &Connection, frame: Frame, responder: Responder);
    /// All frames that one read brought have been handed over: the place to start work that serves many of them. Not
    /// called when a read brought no request.
    fn batch_end(&self, connection: &Connection) {
        _ = connection;
    }
    /// A connection was accepted or made; called once, before its first request.
    fn connected(&self, connection: &Connection) {
        _ = connection;
    }
    /// A connection ended; called once, after its last request. Nothing can be sent on it any more.
    fn disconnected(&self, connection: &Connection) {
        _ = connection;
    }
}

/// The right to answer one request, from any task or thread. Dropping it unused leaves the request unanswered. For
/// oneway requests [`Responder::send`] does nothing.
#[derive(Debug)]
pub struct Responder {
    connection: Connection,
    opaque: i32,
    oneway: bool,
    /// In tests the answer goes here instead.
    probe: Option<oneshot::Sender<Reply>>,
}

impl Responder {
    pub(crate) fn new(connection: Connection, opaque: i32, oneway: bool) -> Self {
        connection.shared.unanswered.fetch_add(1, Ordering::Relaxed);
        Self {
            connection,
            opaque,
            oneway,
            probe: None,
        }
    }

    /// Queues the answer; if the connection is gone or its queue full, the answer is dropped. Never blocks.
    pub fn send(mut self, reply: Reply) {
        if let Some(probe) = self.probe.take() {
            if probe.send(reply).is_err() {
                tracing::debug!("the test no longer waits for this answer");
            }
        } else if !self.oneway {
            self.connection.answer(reply, self.opaque);
        }
    }

    /// Whether nobody waits for an answer.
    #[must_use]
    pub fn is_oneway(&self) -> bool {
        self.oneway
    }

    /// The connection on which the request came.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// A responder whose answer arrives at the receiver, for tests of services; its connection leads nowhere.
    #[doc(hidden)]
    #[must_use]
    pub fn for_test() -> (Self, oneshot::Receiver<Reply>) {
        Self::for_test_on(&Connection::for_test())
    }

    /// Like [`Responder::for_test`], on a given connection.
    #[doc(hidden)]
    #[must_use]
    pub fn for_test_on(connection: &Connection) -> (Self, oneshot::Receiver<Reply>) {
        let (probe, answer) = oneshot::channel();
        let mut responder = Self::new(connection.clone(), 0, false);
        responder.probe = Some(probe);
        (responder, answer)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let shared = &self.connection.shared;
        if shared.unanswered.fetch_sub(1, Ordering::Relaxed) == 1 {
            shared.all_answered.notify_one();
        }
    }
}
