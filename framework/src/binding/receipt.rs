//! What the broker says about a stored message.

use serde::{Deserialize, Serialize};

/// The broker's word that a message is stored.
///
/// ```
/// # bindery::testing::entry::example("spring.cloud.stream.bindings: { doc-receipt: { destination: orders } }", |t| async move {
/// let first = t.app().bridge().send("doc-receipt", "a").await.unwrap();
/// let again = t.app().bridge().send("doc-receipt", "a").await.unwrap();
/// assert_eq!(first.destination, "orders");
/// assert_ne!(first.msg_id, again.msg_id);
/// # });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendReceipt {
    /// The topic the message went to.
    pub destination: String,
    /// The message's own id, made by the client and the same over all redeliveries (`UNIQ_KEY`).
    pub msg_id: String,
    /// The id that names the place in the broker's log; empty where there is none.
    pub offset_msg_id: String,
    /// The broker that has it; empty where there is none.
    pub broker: String,
    /// Number of the queue at its broker.
    pub queue_id: i32,
    /// Position in the queue, counted in messages; for a delayed message that of the waiting queue.
    pub queue_offset: i64,
    /// The partition that the key chose, on partitioned outputs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub partition: Option<u32>,
}
