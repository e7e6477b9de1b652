//! Bytes read from a socket, before they are whole frames.
//!
//! ```text
//! socket ─ read ─▶ Inbox ─ Frame::decode ─▶ frames that share the buffer
//! ```
//! The buffer grows with what really arrives, never with what a length word announces, and an idle connection has none.
use std::io;

use bindery_protocol::frame::{Frame, FrameError};
use bytes::BytesMut;
use tokio::{io::AsyncReadExt, net::tcp::OwnedReadHalf};

/// First and smallest read.
const MIN_READ: usize = 4 * 1024;
/// Largest read while frames are small: beyond it the system call is no longer what costs.
const MAX_READ: usize = 64 * 1024;
/// A frame longer than [`MAX_READ`] gets room in steps of at least so much, so that its bytes are moved few times.
const FRAME_STEP: usize = 256 * 1024;
/// The length word of a frame.
const LENGTH_WORD: usize = 4;

/// The read buffer of one connection.
#[derive(Debug)]
pub(crate) struct Inbox {
    buf: BytesMut,
    read_size: usize,
    max_frame: usize,
}

impl Inbox {
    pub(crate) fn new(max_frame: usize) -> Self {
        Self {
            buf: BytesMut::new(),
            read_size: MIN_READ,
            max_frame,
        }
    }

    /// Reads once; the number of bytes, 0 at the end of the stream. While nothing is there to be read and no frame has
    /// begun, no buffer is held. Cancel safe.
    pub(crate) async fn fill(&mut self, socket: &mut OwnedReadHalf) -> io::Result<usize> {
        if self.buf.is_empty() {
            self.buf = BytesMut::new();
            socket.readable().await?;
        }
        let room = self.room();
        self.buf.reserve(room);
        let room = self.buf.capacity() - self.buf.len();
        let count = socket.read_buf(&mut self.buf).await?;
        self.adapt(count, room);
        Ok(count)
    }

    /// The next whole frame.
    pub(crate) fn frame(&mut self) -> Result<Option<Frame>, FrameError> {
        Frame::decode(&mut self.buf, self.max_frame)
    }

    /// How many bytes the next read should have room for.
    fn room(&self) -> usize {
        let Some(word) = self.buf.first_chunk::<LENGTH_WORD>() else {
            return self.read_size;
        };
        // A length that makes no sense was refused by the decoder before this read.
        let announced = usize::try_from(i32::from_be_bytes(*word)).unwrap_or(0);
        let missing = (LENGTH_WORD + announced.min(self.max_frame)).saturating_sub(self.buf.len());
        // Room for what is missing, but not for more than has come already: a peer that announces much and sends little
        // costs little.
        missing
            .min(self.buf.len().max(FRAME_STEP))
            .max(self.read_size)
    }

    /// Reads that fill their room get more of it, those that hardly use it less.
    fn adapt(&mut self, count: usize, room: usize) {
        if count >= room {
            self.read_size = (self.read_size * 2).min(MAX_READ);
        } else if count < self.read_size / 4 {
            self.read_size = (self.read_size / 2).max(MIN_READ);
        }
    }
}
