//! One output on RocketMQ: any queue, or the queue of a partition and no other, or a transaction.

use std::sync::OnceLock;

use async_trait::async_trait;
use bindery_client::{MessageQueue, Producer, TransactionProducer};

use super::transaction::send_in_transaction;
use super::translate::{outgoing, queue_name, receipt, send_error};
use crate::binder::{BinderError, Place, ProducerBinding, ProducerSpec};
use crate::binding::{SendError, SendReceipt};
use crate::config::SendType;
use crate::message::Message;
use crate::transaction::{LocalWork, TxReceipt};

/// An output with its producer, which it may share with other outputs of the group.
#[derive(Debug)]
pub(super) struct RocketmqProducing {
    producer: Producer,
    transactional: Option<TransactionProducer>,
    spec: ProducerSpec,
    send_type: SendType,
    // The queues when partitions were counted. An ordered output keeps to them: if a broker is away, its partitions fail
    // rather than move, because moving would break the order of their keys.
    counted: OnceLock<Vec<MessageQueue>>,
}

impl RocketmqProducing {
    pub(super) fn new(
        producer: Producer,
        transactional: Option<TransactionProducer>,
        spec: ProducerSpec,
        send_type: SendType,
    ) -> Self {
        Self {
            producer,
            transactional,
            spec,
            send_type,
            counted: OnceLock::new(),
        }
    }

    async fn queues(&self) -> Result<Vec<MessageQueue>, SendError> {
        let topic = &self.spec.destination;
        self.producer
            .publish_queues(topic)
            .await
            .map_err(|error| send_error(&self.spec.binding, topic, error))
    }

    async fn counted(&self) -> Result<&[MessageQueue], SendError> {
        if let Some(counted) = self.counted.get() {
            return Ok(counted);
        }
        let queues = self.queues().await?;
        Ok(self.counted.get_or_init(|| queues))
    }

    /// The queue of a partition: of the list counted at first, or for unordered outputs of the route as it is now.
    async fn queue(&self, partition: u32) -> Result<MessageQueue, SendError> {
        let index = usize::try_from(partition).unwrap_or(usize::MAX);
        let queue = if self.spec.ordered {
            self.counted().await?.get(index).cloned()
        } else {
            let queues = self.queues().await?;
            let index = index.checked_rem(queues.len()).unwrap_or(0);
            queues.get(index).cloned()
        };
        match queue {
            Some(queue) => Ok(queue),
            None => Err(SendError::PartitionMissing {
                destination: self.spec.destination.clone(),
                partition,
                queues: self.counted.get().map_or(0, Vec::len),
            }),
        }
    }

    async fn send_anywhere(
        &self,
        message: bindery_client::Message,
    ) -> Result<SendReceipt, SendError> {
        let (binding, topic) = (&self.spec.binding, &self.spec.destination);
        let result = match self.send_type {
            SendType::Sync => self.producer.send(message).await,
            SendType::Async => match self.producer.send_async(message) {
                Ok(sending) => sending.await,
                Err(refused) => Err(refused),
            },
            SendType::OneWay => {
                let sent = self.producer.send_oneway(message).await;
                return sent
                    .map(|()| self.unanswered())
                    .map_err(|error| send_error(binding, topic, error));
            }
        };
        receipt(
            binding,
            result.map_err(|error| send_error(binding, topic, error))?,
        )
    }

    /// What can be said of a message for which no answer was asked.
    fn unanswered(&self) -> SendReceipt {
        SendReceipt {
            destination: self.spec.destination.clone(),
            msg_id: String::new(),
            offset_msg_id: String::new(),
            broker: String::new(),
            queue_id: -1,
            queue_offset: -1,
            partition: None,
        }
    }
}

#[async_trait]
impl ProducerBinding for RocketmqProducing {
    async fn send(&self, message: &Message, place: Place) -> Result<SendReceipt, SendError> {
        let (binding, topic) = (&self.spec.binding, &self.spec.destination);
        let message = outgoing(binding, topic, message)?;
        let partition = match place {
            Place::Any => return self.send_anywhere(message).await,
            Place::Partition(partition) => partition,
        };
        let queue = self.queue(partition).await?;
        tracing::trace!(binding, queue = %queue_name(&queue), partition, "sending to the partition's queue");
        let result = self.producer.send_to_queue(message, &queue).await;
        receipt(
            binding,
            result.map_err(|error| send_error(binding, topic, error))?,
        )
    }

    async fn send_in_transaction(
        &self,
        message: &Message,
        work: LocalWork<'_>,
    ) -> Result<TxReceipt, SendError> {
        let binding = &self.spec.binding;
        let Some(producer) = &self.transactional else {
            return Err(SendError::WrongProducerType {
                binding: binding.clone(),
            });
        };
        let message = outgoing(binding, &self.spec.destination, message)?;
        send_in_transaction(producer, binding, message, work).await
    }

    async fn partitions(&self) -> Result<u32, SendError> {
        let queues = self.counted().await?;
        Ok(u32::try_from(queues.len()).unwrap_or(u32::MAX))
    }

    async fn stop(&self) -> Result<(), BinderError> {
        // The producer belongs to the group; the binder shuts it down with the others.
        Ok(())
    }
}
