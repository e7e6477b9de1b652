//! The texts and records of POP consumption, in which the broker notes what it handed out and clients say what is done.
//!
//! ```text
//! pop ─▶ Checkpoint ─▶ revive topic          "so far hidden: these offsets of this queue, until then"
//!    └─▶ start, offset and order infos ─▶ client ─▶ Receipt ─▶ ack ─▶ Ack ─▶ revive topic
//! revive topic ─▶ Checkpoint − Acks = messages that come again
//! ```
//! Formats are those of `ExtraInfoUtil`, `PopCheckPoint`, `AckMsg` and `BatchAckMsg` of Apache RocketMQ 5.3.3.

mod infos;
mod receipt;
mod records;

pub use infos::{push_offsets, push_order_count, push_queue_order_count, push_start};
pub use receipt::{Receipt, ReceiptError, RetryMark};
pub use records::{ACK_TAG, Ack, BATCH_ACK_TAG, CHECKPOINT_TAG, Checkpoint};

/// Revive queue in receipts of ordered pops: they are noted elsewhere.
pub const ORDER_REVIVE_QUEUE: i32 = 999;
/// Starts the topic of checkpoints and acks; the cluster's name follows.
pub const REVIVE_TOPIC_PREFIX: &str = "rmq_sys_REVIVE_LOG_";
/// The group that reads it.
pub const REVIVE_GROUP: &str = "CID_RMQ_SYS_REVIVE_GROUP";
/// Most messages of one pop: a checkpoint marks them in 32 bits.
pub const MOST_MESSAGES: i32 = 32;
