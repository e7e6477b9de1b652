//! The name of one message queue.

/// One queue of a topic: topic, broker name, queue id, ordered in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageQueue {
    /// Topic.
    pub topic: String,
    /// Name of the broker that holds the queue.
    pub broker_name: String,
    /// Number of the queue within topic and broker.
    pub queue_id: i32,
}
