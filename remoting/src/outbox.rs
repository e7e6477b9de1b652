//! The bounded queue of what is to be written, and its vectored form.
//!
//! ```text
//! reply / request ─ heads encoded into one buffer ─┐
//!                 └ body parts by reference ───────┴▶ Batch ─ everything queued at once ─▶ writer: one write_vectored
//! ```
//! The writer takes all that is queued and writes it; what is queued meanwhile is the next batch. So answers are
//! coalesced by what has piled up, never by waiting.
use std::{
    io::IoSlice,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bindery_protocol::frame::{Reply, Request, encode_reply_head, encode_request_head};
use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::{Budget, lock};

/// Body parts up to this size are copied behind their head: an I/O vector entry of their own would cost more.
const COPY_BELOW: usize = 256;
/// Buffers above this size are given back when the queue has run empty, so that idle connections stay small.
const KEEP_BYTES: usize = 1024;
/// I/O vector entries in one system call.
pub(crate) const MAX_SLICES: usize = 64;

/// Why something was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// More than the limit is queued already, here or on all connections together.
    Full,
    /// The connection is closing.
    Closed,
}

/// The out queue of one connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    limit: usize,
    /// Shared with other connections.
    budget: Budget,
    /// Bytes accepted and not yet written.
    queued: AtomicUsize,
    /// The part of `queued` that are answers: what a peer makes grow by asking without reading.
    answers: AtomicUsize,
    work: Notify,
    relief: Notify,
}

#[derive(Debug)]
struct Queue {
    open: bool,
    batch: Batch,
}

/// Frames in the order in which they go on the wire.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    heads: BytesMut,
    chunks: Vec<Chunk>,
    bytes: usize,
    answer_bytes: usize,
    done: Cursor,
}

#[derive(Debug)]
enum Chunk {
    /// The next so many bytes of `heads`.
    Heads(usize),
    Body(Bytes),
}

/// How far a batch has been written.
#[derive(Debug, Default)]
struct Cursor {
    chunk: usize,
    /// Bytes of the current chunk.
    within: usize,
    /// Where in `heads` the current chunk begins, or the next one of heads.
    heads: usize,
}

impl Outbox {
    pub(crate) fn new(limit: usize, budget: Budget) -> Self {
        Self {
            queue: Mutex::new(Queue {
                open: true,
                batch: Batch::default(),
            }),
            limit,
            budget,
            queued: AtomicUsize::new(0),
            answers: AtomicUsize::new(0),
            work: Notify::new(),
            relief: Notify::new(),
        }
    }

    pub(crate) fn push_request(
        &self,
        request: Request,
        opaque: i32,
        oneway: bool,
    ) -> Result<(), Refused> {
        let mut queue = self.admit(request.body.len())?;
        let was_empty = queue.batch.is_empty();
        let encode = |heads: &mut BytesMut| encode_request_head(heads, &request, opaque, oneway);
        let bytes = queue.batch.append(encode);
        let bytes = bytes + queue.batch.append_body(request.body);
        self.charge(bytes);
        drop(queue);
        self.wake_writer(was_empty);
        Ok(())
    }

    pub(crate) fn push_reply(&self, reply: Reply, opaque: i32) -> Result<(), Refused> {
        let mut queue = self.admit(reply.body.iter().map(Bytes::len).sum())?;
        let was_empty = queue.batch.is_empty();
        let mut bytes = queue
            .batch
            .append(|heads| encode_reply_head(heads, &reply, opaque));
        for part in reply.body {
            bytes += queue.batch.append_body(part);
        }
        queue.batch.answer_bytes += bytes;
        self.charge(bytes);
        self.answers.fetch_add(bytes, Ordering::Relaxed);
        drop(queue);
        self.wake_writer(was_empty);
        Ok(())
    }

    /// Waits for something to write and takes all of it; `None` when closed and everything was taken. `spare` is an
    /// emptied batch whose buffers are used again. Cancel safe but for `spare`.
    pub(crate) async fn next(&self, mut spare: Batch) -> Option<Batch> {
        loop {
            {
                let mut queue = lock(&self.queue);
                if !queue.batch.is_empty() {
                    return Some(std::mem::replace(&mut queue.batch, spare));
                }
                if !queue.open {
                    return None;
                }
                queue.batch.give_back();
                spare.give_back();
            }
            self.work.notified().await;
        }
    }

    /// Counts a batch as written.
    pub(crate) fn written(&self, batch: &Batch) {
        self.queued.fetch_sub(batch.bytes, Ordering::Relaxed);
        self.budget.release(batch.bytes);
        if batch.answer_bytes > 0 {
            self.answers
                .fetch_sub(batch.answer_bytes, Ordering::Relaxed);
            self.relief.notify_one();
        }
    }

    /// Drops what was never written: the connection has ended.
    pub(crate) fn abandon(&self) {
        let mut queue = lock(&self.queue);
        queue.open = false;
        queue.batch = Batch::default();
        let left = self.queued.swap(0, Ordering::Relaxed);
        drop(queue);
        self.budget.release(left);
    }

    /// Refuses whatever comes from now on; what is queued can still be taken.
    pub(crate) fn close(&self) {
        lock(&self.queue).open = false;
        self.work.notify_one();
    }

    /// Bytes accepted and not yet written.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Waits while so many answers are queued that no more requests should be read. Only answers count: a client whose
    /// own requests pile up must go on reading, or two ends that wait for each other would never move again.
    /// Cancel safe; one waiter at a time.
    pub(crate) async fn relieved(&self) {
        while self.is_pressing() {
            self.relief.notified().await;
        }
    }

    /// Whether [`Outbox::relieved`] would wait.
    pub(crate) fn is_pressing(&self) -> bool {
        let answers = self.answers.load(Ordering::Relaxed);
        answers > 0 && answers > (self.limit / 2).min(self.budget.share())
    }

    fn charge(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::Relaxed);
        self.budget.charge(bytes);
    }

    fn admit(&self, body: usize) -> Result<std::sync::MutexGuard<'_, Queue>, Refused> {
        let queue = lock(&self.queue);
        if !queue.open {
            return Err(Refused::Closed);
        }
        let queued = self.queued();
        // A single frame beyond the limit passes when nothing else waits: it must be possible to send it at all.
        let over = queued > 0 && queued.saturating_add(body) > self.limit;
        if over || self.budget.is_too_much(body) {
            return Err(Refused::Full);
        }
        Ok(queue)
    }

    /// The writer takes all there is, so it needs to hear of the first frame only.
    fn wake_writer(&self, was_empty: bool) {
        if was_empty {
            self.work.notify_one();
        }
    }
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn append(&mut self, encode: impl FnOnce(&mut BytesMut)) -> usize {
        let before = self.heads.len();
        encode(&mut self.heads);
        let added = self.heads.len() - before;
        match self.chunks.last_mut() {
            Some(Chunk::Heads(len)) => *len += added,
            _ => self.chunks.push(Chunk::Heads(added)),
        }
        self.bytes += added;
        added
    }

    fn append_body(&mut self, part: Bytes) -> usize {
        let len = part.len();
        if len == 0 {
            return 0;
        }
        if len <= COPY_BELOW {
            return self.append(|heads| heads.extend_from_slice(&part));
        }
        self.chunks.push(Chunk::Body(part));
        self.bytes += len;
        len
    }

    /// What is still to be written, as far as `slices` has room; the number of entries filled, 0 when all is written.
    pub(crate) fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>; MAX_SLICES]) -> usize {
        let mut heads_at = self.done.heads;
        let mut skip = self.done.within;
        let mut count = 0;
        for (slot, chunk) in slices.iter_mut().zip(&self.chunks[self.done.chunk..]) {
            let bytes = match chunk {
                Chunk::Heads(len) => {
                    let bytes = &self.heads[heads_at..heads_at + len];
                    heads_at += len;
                    bytes
                }
                Chunk::Body(bytes) => bytes,
            };
            *slot = IoSlice::new(&bytes[skip..]);
            skip = 0;
            count += 1;
        }
        count
    }

    /// Counts `written` more bytes as done.
    pub(crate) fn advance(&mut self, written: usize) {
        let mut left = self.done.within + written;
        while let Some(chunk) = self.chunks.get(self.done.chunk) {
            let len = match chunk {
                Chunk::Heads(len) => *len,
                Chunk::Body(bytes) => bytes.len(),
            };
            if left < len {
                break;
            }
            left -= len;
            self.done.chunk += 1;
            if matches!(chunk, Chunk::Heads(_)) {
                self.done.heads += len;
            }
        }
        self.done.within = left;
    }

    /// Empties it for the next use, keeping its buffers.
    pub(crate) fn clear(&mut self) {
        self.heads.clear();
        self.chunks.clear();
        self.bytes = 0;
        self.answer_bytes = 0;
        self.done = Cursor::default();
    }

    fn give_back(&mut self) {
        if self.heads.capacity() > KEEP_BYTES {
            self.heads = BytesMut::new();
        }
        if self.chunks.capacity() * size_of::<Chunk>() > KEEP_BYTES {
            self.chunks = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use bindery_protocol::frame::Frame;
    use proptest::prelude::*;

    use super::*;

    fn taken(outbox: &Outbox) -> Batch {
        std::mem::take(&mut lock(&outbox.queue).batch)
    }

    /// Writes the batch in pieces of at most `step` bytes, as a socket might.
    fn written_in_steps(batch: &mut Batch, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let count = batch.fill(&mut slices);
            if count == 0 {
                return out;
            }
            let all: Vec<u8> = slices[..count]
                .iter()
                .flat_map(|slice| slice.iter().copied())
                .collect();
            let now = all.len().min(step);
            out.extend_from_slice(&all[..now]);
            batch.advance(now);
        }
    }

    #[test]
    fn small_answers_are_one_slice_of_one_write() {
        let outbox = Outbox::new(1 << 20, Budget::unlimited());
        for opaque in 0..50 {
            outbox
                .push_reply(Reply::ok().body(vec![7; 20]), opaque)
                .unwrap();
        }
        let batch = taken(&outbox);
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        assert_eq!(batch.fill(&mut slices), 1);
        assert_eq!(slices[0].len(), outbox.queued());
    }

    #[test]
    fn large_bodies_are_written_from_where_they_lie() {
        let outbox = Outbox::new(1 << 20, Budget::unlimited());
        let body = Bytes::from(vec![1; 4096]);
        outbox
            .push_reply(Reply::ok().body(body.clone()).body(body.slice(..2048)), 1)
            .unwrap();
        outbox.push_reply(Reply::ok(), 2).unwrap();
        let batch = taken(&outbox);
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        assert_eq!(batch.fill(&mut slices), 4);
        assert_eq!(slices[1].as_ptr(), body.as_ptr());
        assert_eq!(slices[2].as_ptr(), body.as_ptr());
    }

    #[test]
    fn what_exceeds_the_limit_is_refused_and_accepted_again_after_writing() {
        let outbox = Outbox::new(1000, Budget::unlimited());
        let large = || Reply::ok().body(vec![0; 2000]);
        outbox.push_reply(large(), 1).unwrap();
        assert_eq!(outbox.push_reply(large(), 2), Err(Refused::Full));
        assert!(outbox.is_pressing());
        let batch = taken(&outbox);
        outbox.written(&batch);
        assert!(!outbox.is_pressing());
        assert_eq!(outbox.queued(), 0);
        outbox.push_reply(large(), 3).unwrap();
        outbox.close();
        assert_eq!(outbox.push_reply(Reply::ok(), 4), Err(Refused::Closed));
    }

    #[test]
    fn connections_share_a_budget_and_those_with_nothing_queued_go_on() {
        let budget = Budget::new(4400);
        let outbox = || Outbox::new(1 << 20, budget.clone());
        let (greedy, other, idle) = (outbox(), outbox(), outbox());
        let answer = || Reply::ok().body(vec![0; 900]);
        greedy.push_reply(answer(), 1).unwrap();
        assert!(!greedy.is_pressing());
        greedy.push_reply(answer(), 2).unwrap();
        assert!(greedy.is_pressing(), "it has more than is free below half");
        other.push_reply(answer(), 3).unwrap();
        assert!(other.is_pressing() && !idle.is_pressing());
        idle.push_reply(answer(), 4).unwrap();
        assert_eq!(idle.push_reply(answer(), 5), Err(Refused::Full));
        idle.push_reply(Reply::ok(), 5).unwrap();
        let batch = taken(&greedy);
        greedy.written(&batch);
        assert!(!greedy.is_pressing());
        for outbox in [&greedy, &other, &idle] {
            outbox.abandon();
        }
        assert_eq!(budget.used(), 0);
        assert_eq!(idle.push_reply(answer(), 6), Err(Refused::Closed));
    }

    #[test]
    fn requests_alone_never_stop_the_reader() {
        let outbox = Outbox::new(1000, Budget::unlimited());
        let request = Request::new(bindery_protocol::codes::RequestCode(10)).body(vec![0; 900]);
        outbox.push_request(request, 1, false).unwrap();
        assert!(!outbox.is_pressing());
    }

    proptest! {
        #[test]
        fn any_partial_writes_give_the_same_frames(
            bodies in prop::collection::vec(prop::collection::vec(0_usize..700, 0..4), 1..40),
            step in 1_usize..3000,
        ) {
            let outbox = Outbox::new(usize::MAX, Budget::unlimited());
            for (opaque, parts) in (0..).zip(&bodies) {
                let mut reply = Reply::ok();
                for len in parts {
                    reply = reply.body(vec![u8::try_from(opaque % 251).unwrap(); *len]);
                }
                outbox.push_reply(reply, opaque).unwrap();
            }
            let mut batch = taken(&outbox);
            let mut wire = BytesMut::from(written_in_steps(&mut batch, step).as_slice());
            prop_assert_eq!(wire.len(), outbox.queued());
            for (opaque, parts) in (0..).zip(&bodies) {
                let frame = Frame::decode(&mut wire, 1 << 24).unwrap().unwrap();
                prop_assert_eq!(frame.head.opaque, opaque);
                prop_assert_eq!(frame.body.len(), parts.iter().sum::<usize>());
                prop_assert!(frame.body.iter().all(|byte| i32::from(*byte) == opaque % 251));
            }
            prop_assert!(wire.is_empty());
        }
    }
}
