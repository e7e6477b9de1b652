//! A client of `RocketMQ` clusters: producers, push consumers and administration calls, for our broker and Apache's alike.
//!
//! ```text
//! ClientConfig ─▶ Client ─┬─ Producer ──────▶ route ─▶ queue ─▶ broker
//!                         ├─ PushConsumer ◀── queues ◀─ rebalance
//!                         └─ Admin ─────────▶ name server, brokers
//!        one set of connections, one route table, one heartbeat for all of them
//! ```
#![forbid(unsafe_code)]

mod admin;
mod body;
mod config;
mod error;
mod instance;
mod message;
mod namespace;
mod source;
mod sync;

pub mod consumer;
pub mod producer;

pub use admin::{Admin, ConsumeProgress, QueueBounds, TopicSettings};
pub use bindery_protocol::bodies::MessageQueue;
pub use config::ClientConfig;
pub use consumer::{
    AllocateStrategy, Allocation, ConcurrentContext, ConcurrentListener, ConcurrentStatus,
    ConsumeFrom, FilterExpression, Listener, MessageExt, MessageModel, OrderlyContext,
    OrderlyListener, OrderlyStatus, PushConsumer, PushConsumerBuilder, QueuePosition, RoomOf,
};
pub use error::{ClientError, MessageIllegal, client_code};
pub use instance::Client;
pub use message::{Message, SendResult, SendStatus};
pub use producer::{
    BoxError, HalfMessage, LocalFailure, LocalState, Producer, ProducerBuilder, ReplyMessage,
    TransactionArgs, TransactionListener, TransactionProducer, TransactionProducerBuilder,
    TransactionSendResult,
};
