//! What a binder knows about one delivery of a message, beside its payload and headers.

use std::sync::Arc;

/// The facts of one delivery. Binders fill in what they know; the rest keeps its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The input binding that received the message.
    pub binding: Arc<str>,
    /// The consumer group.
    pub group: Arc<str>,
    /// The topic the message was sent to; for a redelivery the original one, not the retry topic.
    pub topic: Arc<str>,
    /// The broker that delivered it.
    pub broker_name: Arc<str>,
    /// The queue within the topic and broker.
    pub queue_id: i32,
    /// The position in the queue, in messages.
    pub queue_offset: i64,
    /// The id that the sending client gave the message; constant over redeliveries.
    pub message_id: Arc<str>,
    /// When the sender made the message, in milliseconds since 1970.
    pub born_millis: i64,
    /// When the broker stored the message, in milliseconds since 1970.
    pub store_millis: i64,
    /// Address of the sender, `host:port`.
    pub born_host: Option<Arc<str>>,
    /// Id of the transaction the message belongs to.
    pub transaction_id: Option<Arc<str>>,
    /// The broker's flags of the message.
    pub sys_flag: i32,
    /// The sender's own integer.
    pub flag: i32,
    /// How often the broker has redelivered the message: 0 for the first delivery.
    pub reconsume_times: u32,
    /// The attempt within this delivery, counted from 1.
    pub attempt: u32,
    /// After how many redeliveries the message is given up; `None` without a limit.
    pub max_reconsume_times: Option<u32>,
    /// The binding's content type, used when the message names none; empty means `application/json`.
    pub content_type: Arc<str>,
    /// Whether a JSON argument refuses a message that is labelled as something else.
    pub strict_content_type: bool,
}
