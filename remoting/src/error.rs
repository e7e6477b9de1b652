//! What goes wrong between two ends of a connection.
use std::time::Duration;

use bindery_protocol::frame::FrameError;

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
    /// No answer in time. The request may have been carried out.
    #[error("{addr} gave no answer within {after:?}")]
    Timeout {
        /// Peer.
        addr: String,
        /// Time waited.
        after: Duration,
    },
    /// The connection ended before the answer came. The request may have been carried out.
    #[error("connection to {addr} was closed")]
    Closed {
        /// Peer.
        addr: String,
    },
    /// The out queue is full: the peer does not read. Nothing was sent.
    #[error("{addr} does not read what is sent to it")]
    Busy {
        /// Peer.
        addr: String,
    },
    /// The peer sent what is no frame; the connection is closed.
    #[error("{addr} sent a malformed frame")]
    Frame {
        /// Peer.
        addr: String,
        /// Cause.
        #[source]
        source: FrameError,
    },
}
