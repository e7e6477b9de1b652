//! A binder inside the process: topics, queues, groups, redelivery, dead letters, delay; nothing survives the process.
//!
//! ```text
//! MemoryProducer ─▶ Board::append ─▶ topic/queue ──take──▶ worker ─▶ Deliver
//!                        ▲                 ▲                  │
//!                     delayed          redelivery ◀── retry ──┤── ack: the position moves on
//!                                                             └── reject, or too often: %DLQ%group
//! ```
//!
//! Transactional messages whose local transaction does not know its end wait until
//! [`MemoryBinder::ask_for_outcomes`] asks for it.
//!
//! For tests of handlers and bindings without a network. Time is tokio's, so a test with a paused clock runs through
//! pauses and delay levels at once. Queues keep their order; a queue of an ordered input is one worker's at a time.

mod board;
mod transactions;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use self::board::Board;
use self::transactions::Halves;
use self::worker::MemoryConsumer;
use super::{
    Audience, Binder, BinderError, Capabilities, ConsumerBinding, ConsumerSpec, Deliver,
    Destination, Health, Place, ProducerBinding, ProducerSpec, require,
};
use crate::binding::{SendError, SendReceipt};
use crate::message::Message;
use crate::transaction::{LocalWork, TxReceipt};

/// Queues of a topic that nobody configured.
const DEFAULT_QUEUES: u32 = 4;

/// A broker inside the process. Cheap to clone; clones are the same broker, so two applications can share one.
#[derive(Debug, Clone, Default)]
pub struct MemoryBinder {
    board: Arc<Board>,
    // Members of broadcasting groups each have positions of their own.
    members: Arc<AtomicU64>,
    halves: Arc<Halves>,
}

impl MemoryBinder {
    /// A broker without topics.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All messages stored under `topic`, queue after queue.
    #[must_use]
    pub fn stored(&self, topic: &str) -> Vec<Message> {
        self.board.stored(topic)
    }

    /// The dead letters of `group`.
    #[must_use]
    pub fn dead_letters(&self, group: &str) -> Vec<Message> {
        self.board.stored(&board::dead_letter_topic(group))
    }

    /// Asks for the outcome of every transactional message that has none yet, as a broker does again and again by itself:
    /// each time any listener of the message's output. How many have no outcome even then.
    pub async fn ask_for_outcomes(&self) -> usize {
        self.halves.ask(&self.board).await
    }

    /// Waits until no message waits, is delayed, or is being handled for any group that has a consumer.
    pub async fn settled(&self) {
        self.board.settled().await;
    }
}

#[async_trait]
impl Binder for MemoryBinder {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTITIONS
            .with(Capabilities::ORDERED)
            .with(Capabilities::DELAY)
            .with(Capabilities::BROADCAST)
            .with(Capabilities::TAGS)
            .with(Capabilities::PAUSE)
            .with(Capabilities::START_BY_TIME)
            .with(Capabilities::TRANSACTIONS)
    }

    async fn declare(&self, destinations: &[Destination]) -> Result<(), BinderError> {
        for destination in destinations {
            self.board.create(
                &destination.name,
                destination.queues.unwrap_or(DEFAULT_QUEUES),
            );
        }
        Ok(())
    }

    async fn bind_consumer(
        &self,
        spec: ConsumerSpec,
        sink: Arc<dyn Deliver>,
    ) -> Result<Arc<dyn ConsumerBinding>, BinderError> {
        require(self, &spec)?;
        let seat = match spec.audience {
            Audience::Shared => spec.group.clone(),
            Audience::Everyone => format!(
                "{}#{}",
                spec.group,
                self.members.fetch_add(1, Ordering::Relaxed)
            ),
        };
        for topic in &spec.destinations {
            self.board.create(topic, DEFAULT_QUEUES);
        }
        self.board.join(&seat, &spec);
        Ok(Arc::new(MemoryConsumer::start(
            Arc::clone(&self.board),
            seat,
            spec,
            &sink,
        )))
    }

    async fn bind_producer(
        &self,
        spec: ProducerSpec,
    ) -> Result<Arc<dyn ProducerBinding>, BinderError> {
        self.board.create(&spec.destination, DEFAULT_QUEUES);
        if let Some(transaction) = &spec.transaction {
            self.halves
                .join(&spec.binding, transaction.listener.clone());
        }
        Ok(Arc::new(MemoryProducer {
            board: Arc::clone(&self.board),
            halves: Arc::clone(&self.halves),
            spec,
        }))
    }

    async fn health(&self) -> Health {
        Health::Up
    }

    async fn shutdown(&self) -> Result<(), BinderError> {
        Ok(())
    }
}

struct MemoryProducer {
    board: Arc<Board>,
    halves: Arc<Halves>,
    spec: ProducerSpec,
}

impl MemoryProducer {
    /// The same checks as on the wire, so that a test finds what a broker would refuse.
    fn check(&self, message: &Message) -> Result<(), SendError> {
        let checked = message.headers().outgoing();
        checked.map(drop).map_err(|source| SendError::Header {
            binding: self.spec.binding.clone(),
            source: Box::new(source),
        })
    }
}

#[async_trait]
impl ProducerBinding for MemoryProducer {
    async fn send(&self, message: &Message, place: Place) -> Result<SendReceipt, SendError> {
        self.check(message)?;
        self.board.send(&self.spec.destination, message, place)
    }

    async fn send_in_transaction(
        &self,
        message: &Message,
        work: LocalWork<'_>,
    ) -> Result<TxReceipt, SendError> {
        self.check(message)?;
        self.halves
            .send(&self.board, &self.spec, message, work)
            .await
    }

    async fn partitions(&self) -> Result<u32, SendError> {
        Ok(self.board.queues(&self.spec.destination))
    }

    async fn stop(&self) -> Result<(), BinderError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
