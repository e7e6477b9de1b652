//! What expansions of the attribute macros refer to. Not part of the public interface: it changes with the macros.

pub use inventory;

pub use crate::binding::{BindError, Bindings, BoundField};
pub use crate::convert::Payload;
pub use crate::error_handler::{ErrorHandlerResult, FailureContext, FromFailure, IntoErrorAction};
pub use crate::handler::probe;
pub use crate::handler::{
    BoxFuture, FromMessage, HandlerFailure, HandlerResult, IntoOutcome, MessageContext, Rejection,
    Reply, Requirement,
};
pub use crate::headers::Headers;
pub use crate::main_entry::run_main;
pub use crate::partition::{ExtractError, PartitionKey, extracted, payload_of};
pub use crate::registry::{
    BindingSource, Direction, FieldDescriptor, HandlerDescriptor, HandlerKind, OnUnmatched,
    SourceDescriptor, SourceEntry,
};
pub use crate::registry::{ErrorHandlerDescriptor, ErrorTarget};
pub use crate::registry::{KeyExtractorDescriptor, PartitionSelectorDescriptor};
pub use crate::registry::{TransactionListenerDescriptor, make_transaction_listener};
pub use crate::testing::entry::{TestSource, run_test};

pub use crate::handler::{header_argument, header_or_default, optional_header, payload_argument};
