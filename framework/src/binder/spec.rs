//! What inputs and outputs ask of their binder, in words that no broker owns.

use std::time::Duration;

use crate::transaction::ListenerHandle;

/// What an input asks of its binder.
#[derive(Debug, Clone)]
pub struct ConsumerSpec {
    /// Name of the binding, as written in the configuration.
    pub binding: String,
    /// Destinations; all are read by one consumer.
    pub destinations: Vec<String>,
    /// Consumer group.
    pub group: String,
    /// Handlers that may run at the same time.
    pub concurrency: usize,
    /// Whether a queue's messages are handled one after the other.
    pub order: Order,
    /// Whether the members of the group share the messages.
    pub audience: Audience,
    /// Which messages are wanted.
    pub selection: Selection,
    /// Where a group begins that has no position yet.
    pub start: StartAt,
    /// What a group does at the start that has positions already.
    pub resume: Resume,
    /// How failed messages come back.
    pub redelivery: Redelivery,
    /// Time allowed for running handlers when a queue is given away.
    pub grace: Duration,
}

/// The order of handling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Any order, in parallel.
    Concurrent,
    /// One message at a time per queue, in the queue's order.
    PerQueue,
}

/// Who gets a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// One member of the group.
    Shared,
    /// Every member of the group (broadcasting).
    Everyone,
}

/// Which messages of a destination an input wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// Those with one of these tags, written `A || B`.
    Tags(String),
    /// Those whose headers fulfil this SQL92 condition.
    Sql(String),
}

/// Where a new group begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// With the oldest message kept.
    First,
    /// After the newest message.
    Last,
    /// With the first message stored at or after this time (milliseconds since 1970 UTC).
    Timestamp(i64),
}

/// Where a group goes on that has positions already and no member yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Resume {
    /// From its positions.
    #[default]
    Positions,
    /// From where a new group would begin.
    Start,
}

/// How messages come back that were not handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redelivery {
    /// Redeliveries before the message is dead; `None`: the broker's rule (16, or without end on ordered inputs).
    pub limit: Option<u32>,
    /// Delay of a redelivery as the broker counts it: 0 its own ladder, 1.. a level, -1 dead at once.
    pub delay_level: i32,
    /// How long an ordered input holds a queue before it tries again.
    pub suspend: Duration,
}

/// What an output asks of its binder.
#[derive(Debug, Clone)]
pub struct ProducerSpec {
    /// Name of the binding, as written in the configuration; for a destination chosen at run time its name.
    pub binding: String,
    /// Destination.
    pub destination: String,
    /// Whether messages with a key must stay in their order.
    pub ordered: bool,
    /// Makes the output transactional.
    pub transaction: Option<TransactionSpec>,
}

/// What a transactional output asks of its binder beside.
#[derive(Debug, Clone)]
pub struct TransactionSpec {
    /// Answers the broker's questions, from the start of the output on.
    pub listener: ListenerHandle,
    /// Time allowed for answers under way when the output is closed.
    pub grace: Duration,
}

/// Where in the destination a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Wherever there is room.
    Any,
    /// Into this partition, and into no other if that fails.
    Partition(u32),
}
