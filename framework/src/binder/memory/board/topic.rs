//! Topics, their queues, and the messages stored in them.

use std::collections::VecDeque;
use std::sync::Arc;

use bindery_protocol::filter::FilterExpression;
use bindery_protocol::message::{Properties, property};
use bytes::Bytes;

use crate::binder::Access;
use crate::handler::Delivery;
use crate::message::Message;

/// Messages a queue keeps at most. When nobody waits for the oldest it makes room, else sends are refused.
pub(super) const QUEUE_CAPACITY: usize = 100_000;

/// One stored message.
#[derive(Debug, Clone)]
pub(in crate::binder::memory) struct Stored {
    /// Where it is stored.
    pub(super) topic: Arc<str>,
    pub(super) queue: u32,
    pub(super) offset: u64,
    pub(super) store_millis: i64,
    /// Counts all messages of the broker in the order of their storing.
    pub(in crate::binder::memory) number: u64,
    pub(in crate::binder::memory) content: Content,
}

/// What of a message stays the same wherever it is stored.
#[derive(Debug, Clone)]
pub(in crate::binder::memory) struct Content {
    pub(in crate::binder::memory) msg_id: Arc<str>,
    pub(in crate::binder::memory) born_millis: i64,
    pub(in crate::binder::memory) body: Bytes,
    pub(in crate::binder::memory) properties: Properties,
    pub(in crate::binder::memory) flag: i32,
    /// Redeliveries so far.
    pub(in crate::binder::memory) reconsume_times: u32,
    /// The topic it was sent to, where it is stored elsewhere: a redelivery.
    pub(in crate::binder::memory) origin: Option<Arc<str>>,
    /// Of a committed transaction.
    pub(in crate::binder::memory) transaction_id: Option<Arc<str>>,
}

/// `MessageSysFlag.TRANSACTION_COMMIT_TYPE` of Apache RocketMQ.
const TRANSACTION_COMMIT: i32 = 8;

impl Stored {
    /// The message as a receiver sees it; `facts` are those of its input.
    pub(in crate::binder::memory) fn received(&self, facts: Delivery) -> Message {
        let content = &self.content;
        let delivery = Delivery {
            topic: Arc::clone(content.origin.as_ref().unwrap_or(&self.topic)),
            broker_name: super::BROKER.into(),
            queue_id: i32::try_from(self.queue).unwrap_or(i32::MAX),
            queue_offset: i64::try_from(self.offset).unwrap_or(i64::MAX),
            message_id: Arc::clone(&content.msg_id),
            born_millis: content.born_millis,
            store_millis: self.store_millis,
            transaction_id: content.transaction_id.clone(),
            sys_flag: content
                .transaction_id
                .as_ref()
                .map_or(0, |_| TRANSACTION_COMMIT),
            flag: content.flag,
            ..facts
        };
        Message::received(
            content.body.clone(),
            content.properties.iter(),
            Arc::new(delivery),
        )
    }

    /// The message as somebody sees it who looks into the topic.
    pub(in crate::binder::memory) fn seen(&self) -> Message {
        self.received(Delivery {
            reconsume_times: self.content.reconsume_times,
            ..Delivery::default()
        })
    }

    pub(super) fn wanted(&self, filter: &FilterExpression) -> bool {
        match filter {
            FilterExpression::All => true,
            FilterExpression::Tags(tags) => {
                tags.matches_tag(self.content.properties.get(property::TAGS))
            }
            FilterExpression::Sql(condition) => condition.matches(&self.content.properties),
        }
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        let keys = self.content.properties.get(property::KEYS);
        &*self.content.msg_id == key
            || keys.is_some_and(|keys| keys.split(' ').any(|own| own == key))
    }
}

/// One queue: the oldest messages may be gone, offsets stay.
#[derive(Debug, Default)]
pub(super) struct Queue {
    min: u64,
    messages: VecDeque<Arc<Stored>>,
}

impl Queue {
    pub(super) fn min(&self) -> u64 {
        self.min
    }

    /// The offset of the next message.
    pub(super) fn max(&self) -> u64 {
        self.min + self.messages.len() as u64
    }

    pub(super) fn at(&self, offset: u64) -> Option<&Arc<Stored>> {
        let index = usize::try_from(offset.checked_sub(self.min)?).ok()?;
        self.messages.get(index)
    }

    /// The offset of the first message stored at or after this time.
    pub(super) fn at_time(&self, millis: i64) -> u64 {
        let before = self
            .messages
            .partition_point(|stored| stored.store_millis < millis);
        self.min + before as u64
    }

    pub(super) fn is_full(&self) -> bool {
        self.messages.len() >= QUEUE_CAPACITY
    }

    pub(super) fn drop_oldest(&mut self) {
        if self.messages.pop_front().is_some() {
            self.min += 1;
        }
    }

    pub(super) fn push(&mut self, stored: Arc<Stored>) {
        self.messages.push_back(stored);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.messages.iter()
    }
}

/// A topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: Arc<str>,
    pub(super) access: Access,
    pub(super) queues: Vec<Queue>,
}

impl Topic {
    pub(super) fn new(name: &str, queues: u32, access: Access) -> Self {
        Self {
            name: name.into(),
            access,
            queues: (0..queues.max(1)).map(|_| Queue::default()).collect(),
        }
    }

    pub(super) fn queue(&self, queue: u32) -> Option<&Queue> {
        self.queues.get(usize::try_from(queue).ok()?)
    }

    pub(super) fn queue_mut(&mut self, queue: u32) -> Option<&mut Queue> {
        self.queues.get_mut(usize::try_from(queue).ok()?)
    }

    pub(super) fn queue_count(&self) -> u32 {
        u32::try_from(self.queues.len()).unwrap_or(u32::MAX)
    }
}
