//! What most programs need: `use bindery::prelude::*;`.
//!
//! The attributes `main` and `test` are written with their path (`#[bindery::main]`): their bare names are taken by others.

pub use axum::Json;
pub use bindery_macros::{
    bindings, error_handler, partition_key_extractor, partition_selector, send_to, stream_listener,
    transaction_listener,
};
pub use bytes::Bytes;

pub use crate::app::{App, AppBuilder, AppHandle};
pub use crate::binding::{
    Bound, Input, Orderly, Output, SendError, SendReceipt, StreamBridge, Trans,
};
pub use crate::error_handler::{ErrorAction, Failure};
pub use crate::handler::{
    BindingName, BornTime, FromApp, FromMessage, Group, HandlerError, Keys, MessageId, Outcome,
    QueueId, QueueOffset, Redelivery, State, StoreTime, Tags, Text, Topic,
};
pub use crate::headers::Headers;
pub use crate::message::Message;
pub use crate::partition::PartitionKey;
pub use crate::transaction::{
    HalfMessage, LocalState, TransactionListener, TxArgs, TxOutcome, TxReceipt,
};
