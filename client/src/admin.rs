//! Administration calls: topics, offsets, messages and statistics, asked of the servers that know.
//!
//! ```text
//! Admin ─▶ name server (routes, cluster) ─▶ every master concerned ─▶ answers merged
//! ```
use std::collections::BTreeMap;

use crate::{ClientError, MessageExt, MessageQueue};

/// Administration calls over a [`Client`](crate::Client)'s connections. A handle.
#[derive(Debug, Clone)]
pub struct Admin {}

/// What a topic is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicSettings {
    /// Queues that are read; 8.
    pub read_queues: i32,
    /// Queues that are written; 8.
    pub write_queues: i32,
    /// Permission bits: 4 read, 2 write; 6.
    pub permission: i32,
    /// Whether writing stops rather than moves to other queues when a broker is down; off.
    pub order: bool,
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            read_queues: 8,
            write_queues: 8,
            permission: 6,
            order: false,
        }
    }
}

impl TopicSettings {
    /// So many queues for reading and writing.
    #[must_use]
    pub fn queues(queues: i32) -> Self {
        Self {
            read_queues: queues,
            write_queues: queues,
            ..Self::default()
        }
    }
}

/// One queue's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueBounds {
    /// Offset of the oldest message there is.
    pub min: i64,
    /// Offset the next message will get.
    pub max: i64,
}

/// How far a group is in one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumeProgress {
    /// Offset the next message will get.
    pub broker_offset: i64,
    /// Position of the group; -1 for none.
    pub consumer_offset: i64,
}

impl Admin {
    /// Creates or changes a topic on every master of every cluster known to the name server, and waits until its route is there.
    pub async fn create_topic(
        &self,
        topic: &str,
        settings: TopicSettings,
    ) -> Result<(), ClientError> {
        todo!()
    }
    /// Deletes a topic on its brokers and at the name servers.
    pub async fn delete_topic(&self, topic: &str) -> Result<(), ClientError> {
        todo!()
    }
    /// Whether the name servers know a route of the topic.
    pub async fn topic_exists(&self, topic: &str) -> Result<bool, ClientError> {
        todo!()
    }
    /// All topics the name server knows.
    pub async fn topics(&self) -> Result<Vec<String>, ClientError> {
        todo!()
    }
    /// The queues that can be read, in order.
    pub async fn queues(&self, topic: &str) -> Result<Vec<MessageQueue>, ClientError> {
        todo!()
    }
    /// Bounds of a queue.
    pub async fn bounds(&self, queue: &MessageQueue) -> Result<QueueBounds, ClientError> {
        todo!()
    }
    /// Offset of the first message stored at or after a time (ms since 1970); the end when there is none.
    pub async fn search_offset(
        &self,
        queue: &MessageQueue,
        timestamp: i64,
    ) -> Result<i64, ClientError> {
        todo!()
    }
    /// A message by the id the broker gave it.
    pub async fn view_message(
        &self,
        topic: &str,
        offset_msg_id: &str,
    ) -> Result<MessageExt, ClientError> {
        todo!()
    }
    /// Messages that carry this key, from all brokers of the topic, at most `max` of each.
    pub async fn query_by_key(
        &self,
        topic: &str,
        key: &str,
        max: i32,
        begin: i64,
        end: i64,
    ) -> Result<Vec<MessageExt>, ClientError> {
        todo!()
    }
    /// Position of a group in a queue, `None` when it has none.
    pub async fn consumer_offset(
        &self,
        group: &str,
        queue: &MessageQueue,
    ) -> Result<Option<i64>, ClientError> {
        todo!()
    }
    /// Sets the position of a group in a queue.
    pub async fn update_consumer_offset(
        &self,
        group: &str,
        queue: &MessageQueue,
        offset: i64,
    ) -> Result<(), ClientError> {
        todo!()
    }
    /// How far a group is, by queue.
    pub async fn progress(
        &self,
        group: &str,
        topic: Option<&str>,
    ) -> Result<BTreeMap<MessageQueue, ConsumeProgress>, ClientError> {
        todo!()
    }
    /// Messages not yet consumed by a group: the sum over [`Admin::progress`] of a topic.
    pub async fn lag(&self, group: &str, topic: &str) -> Result<i64, ClientError> {
        todo!()
    }
    /// Client ids of the members of a group.
    pub async fn members(&self, group: &str, topic: &str) -> Result<Vec<String>, ClientError> {
        todo!()
    }
    /// Moves a group to the first message stored at or after a time in every queue of a topic; -1 is the end. Answers the new
    /// positions.
    pub async fn reset_offset(
        &self,
        group: &str,
        topic: &str,
        timestamp: i64,
    ) -> Result<BTreeMap<MessageQueue, i64>, ClientError> {
        todo!()
    }
    /// Creates a consumer group on every master of every cluster known to the name server.
    pub async fn create_group(&self, group: &str, max_retries: i32) -> Result<(), ClientError> {
        todo!()
    }
}
