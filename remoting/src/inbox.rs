//! Bytes read from a socket, before they are whole frames.
//!
//! ```text
//! socket ─ read ─▶ Inbox ─ (proxied.rs, at the start) ─ Frame::decode ─▶ frames that share the buffer
//! ```
//! The buffer grows with what really arrives, never with what a length word announces, and an idle connection has none.
use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bindery_protocol::frame::{Frame, FrameError};
use bytes::{Buf, BytesMut};
use tokio::net::tcp::OwnedReadHalf;
use tokio_util::io::poll_read_buf;

use crate::proxied::{self, Beginning};

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
    begun: bool,
}

impl Inbox {
    pub(crate) fn new(max_frame: usize) -> Self {
        Self {
            buf: BytesMut::new(),
            read_size: MIN_READ,
            max_frame,
            begun: true,
        }
    }

    /// An inbox whose bytes may begin with the header of a proxy: see [`Inbox::begin`].
    pub(crate) fn of_accepted(max_frame: usize) -> Self {
        Self {
            begun: false,
            ..Self::new(max_frame)
        }
    }

    /// Takes a proxy's header off. Until it has answered other than [`Beginning::Undecided`] there are no frames.
    pub(crate) fn begin(&mut self) -> Result<Beginning, proxy_header::Error> {
        if self.begun {
            return Ok(Beginning::Frame);
        }
        let beginning = proxied::beginning(&self.buf)?;
        if let Beginning::Header { len, .. } = beginning {
            self.buf.advance(len);
        }
        self.begun = beginning != Beginning::Undecided;
        Ok(beginning)
    }

    /// Reads once; the number of bytes, 0 at the end of the stream. While nothing is there to be read and no frame has
    /// begun, no buffer is held. Cancel safe.
    pub(crate) async fn fill(&mut self, socket: &mut OwnedReadHalf) -> io::Result<usize> {
        poll_fn(|cx| self.poll_fill(socket, cx)).await
    }

    fn poll_fill(
        &mut self,
        socket: &mut OwnedReadHalf,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.buf.is_empty() {
            self.buf = BytesMut::new();
        }
        ready!(socket.as_ref().poll_read_ready(cx))?;
        self.buf.reserve(self.room());
        let room = self.buf.capacity() - self.buf.len();
        let read = poll_read_buf(Pin::new(socket), cx, &mut self.buf);
        match &read {
            Poll::Ready(Ok(count)) => self.adapt(*count, room),
            // After a read that filled its room the socket counts as readable until it has said otherwise.
            Poll::Pending if self.buf.is_empty() => self.buf = BytesMut::new(),
            Poll::Ready(Err(_)) | Poll::Pending => {}
        }
        read
    }

    /// The next whole frame.
    pub(crate) fn frame(&mut self) -> Result<Option<Frame>, FrameError> {
        Frame::decode(&mut self.buf, self.max_frame)
    }

    /// How many bytes the next read should have room for.
    fn room(&self) -> usize {
        let Some(word) = self.buf.first_chunk::<LENGTH_WORD>().filter(|_| self.begun) else {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use tokio::{
        io::AsyncWriteExt,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    #[tokio::test]
    async fn an_idle_connection_holds_no_buffer_however_much_it_has_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut socket, _write) = listener.accept().await.unwrap().0.into_split();
        let mut inbox = Inbox::new(1 << 24);
        for size in [MIN_READ, MIN_READ - 1, 3 * MAX_READ] {
            sender.write_all(&vec![0; size]).await.unwrap();
            let mut seen = 0;
            while seen < size {
                seen += inbox.fill(&mut socket).await.unwrap();
                inbox.buf.clear();
            }
            let waiting = poll_fn(|cx| Poll::Ready(inbox.poll_fill(&mut socket, cx))).await;
            assert!(waiting.is_pending());
            assert_eq!(inbox.buf.capacity(), 0, "after {size} bytes");
        }
    }

    #[test]
    fn room_grows_with_what_has_come_and_not_with_what_is_announced() {
        let mut inbox = Inbox::new(1 << 24);
        inbox
            .buf
            .extend_from_slice(&((1 << 24) - 4_i32).to_be_bytes());
        assert_eq!(inbox.room(), FRAME_STEP);
        inbox.buf.resize(4 * FRAME_STEP, 0);
        assert_eq!(inbox.room(), 4 * FRAME_STEP);
        inbox.buf.resize((1 << 24) - 10, 0);
        assert_eq!(inbox.room(), MIN_READ);
        inbox.buf[..4].copy_from_slice(&(-1_i32).to_be_bytes());
        assert_eq!(inbox.room(), MIN_READ);
    }
}
