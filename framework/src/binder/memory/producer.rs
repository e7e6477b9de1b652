//! The producer of the in-process broker: the checks, tries and failures of a real one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bindery_protocol::message::{Properties, property};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Outage;
use super::board::{Board, Content, Delay};
use super::transactions::Questions;
use crate::binder::{BinderError, Place, ProducerBinding, ProducerSpec, TransactionSpec};
use crate::binding::{SendError, SendReceipt};
use crate::config::RocketmqProducer;
use crate::message::Message;
use crate::transaction::{LocalWork, TxReceipt};

/// One output.
pub(super) struct MemoryProducer {
    pub(super) board: Arc<Board>,
    pub(super) spec: ProducerSpec,
    settings: RocketmqProducer,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl MemoryProducer {
    pub(super) fn start(
        board: &Arc<Board>,
        spec: ProducerSpec,
        settings: RocketmqProducer,
    ) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let producer = Self {
            board: Arc::clone(board),
            spec,
            settings,
            stop,
            tasks,
        };
        if let Some(TransactionSpec { listener, .. }) = &producer.spec.transaction {
            let questions = Questions::join(
                Arc::clone(board),
                producer.group(),
                listener.clone(),
                producer.stop.clone(),
            );
            producer.tasks.spawn(questions.run());
        }
        producer.tasks.close();
        producer
    }

    /// Whom the broker asks about transactions.
    pub(super) fn group(&self) -> String {
        let group = self.settings.group.clone();
        group.unwrap_or_else(|| self.spec.binding.clone())
    }

    /// The message as it is stored, after the same checks as on the wire: a test finds what a broker would refuse.
    pub(super) fn content(&self, message: &Message) -> Result<(Content, Delay), SendError> {
        let checked = message.headers().outgoing();
        let headers = checked.map_err(|source| SendError::Header {
            binding: self.spec.binding.clone(),
            source: Box::new(source),
        })?;
        let size = message.payload().len();
        if size > self.settings.max_message_size {
            let max = self.settings.max_message_size;
            return Err(SendError::Client(
                format!("the body has {size} bytes, the limit is {max} (`max-message-size`)")
                    .into(),
            ));
        }
        let own = [
            (property::KEYS, headers.keys),
            (property::TAGS, headers.tags),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let properties: Properties = own.chain(headers.properties).collect();
        let content = Content {
            msg_id: self.board.new_id(),
            born_millis: self.board.pace.now_millis(),
            body: message.payload().clone(),
            properties,
            flag: headers.flag,
            reconsume_times: 0,
            origin: None,
            transaction_id: None,
        };
        let delay = match (headers.delay_level, headers.timing) {
            (Some(level), _) => Delay::Level(level),
            (None, Some(timing)) => Delay::Time(timing),
            (None, None) => Delay::None,
        };
        Ok((content, delay))
    }

    /// Tries `store` as often, and for as long, as the output's settings allow. A partitioned send is tried once.
    pub(super) async fn try_to<R>(
        &self,
        place: Place,
        mut store: impl FnMut() -> Result<R, SendError>,
    ) -> Result<R, SendError> {
        let tries = match place {
            Place::Partition(_) => 1,
            Place::Any => self.settings.retry_times_when_send_failed.saturating_add(1),
        };
        let deadline = self.board.pace.after(self.settings.send_msg_timeout);
        for attempt in 1..=tries {
            let outage = self.board.change(|state, _| {
                state.attempts += 1;
                state.outage
            });
            match outage {
                None => return store(),
                Some(Outage::Refusing) if attempt < tries => {}
                Some(Outage::Refusing) => {
                    return Err(SendError::Connect(Box::new(Refused { attempts: attempt })));
                }
                // The first try that hangs takes all the time there is.
                Some(Outage::Silent) => self.wait_until(deadline).await,
            }
            if self.board.pace.now_millis() >= deadline {
                return Err(SendError::Timeout {
                    destination: self.spec.destination.clone(),
                    source: Box::new(Refused { attempts: attempt }),
                });
            }
        }
        Err(SendError::Connect(Box::new(Refused { attempts: tries })))
    }

    /// Waits; in virtual time it lets everybody else go on until then, because the caller may be all that waits.
    async fn wait_until(&self, deadline: i64) {
        let left = deadline.saturating_sub(self.board.pace.now_millis());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        tokio::select! {
            () = self.board.pace.pause(left) => {}
            () = super::flow::run_until(&self.board, deadline), if self.board.pace.is_virtual() => {}
        }
    }
}

#[async_trait]
impl ProducerBinding for MemoryProducer {
    async fn send(&self, message: &Message, place: Place) -> Result<SendReceipt, SendError> {
        let (content, delay) = self.content(message)?;
        let (board, destination) = (&self.board, &self.spec.destination);
        self.try_to(place, || {
            board.store(destination, content.clone(), place, delay)
        })
        .await
    }

    async fn send_in_transaction(
        &self,
        message: &Message,
        work: LocalWork<'_>,
    ) -> Result<TxReceipt, SendError> {
        self.transaction(message, work).await
    }

    async fn partitions(&self) -> Result<u32, SendError> {
        Ok(self.board.queues(&self.spec.destination))
    }

    async fn stop(&self) -> Result<(), BinderError> {
        self.stop.cancel();
        let grace = self.spec.transaction.as_ref();
        let grace = grace.map_or(Duration::ZERO, |transaction| transaction.grace);
        if tokio::time::timeout(grace, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                binding = self.spec.binding,
                "an answer about a transaction takes longer than the grace period"
            );
        }
        Ok(())
    }
}

impl Drop for MemoryProducer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The broker in the process was made to fail.
#[derive(Debug, thiserror::Error)]
#[error("the broker in the process is down; tried {attempts} times")]
struct Refused {
    attempts: u32,
}
