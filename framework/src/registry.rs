//! What attributes have registered, and what programs register without them.
//!
//! ```text
//! #[stream_listener] ──inventory──▶ HandlerDescriptor ─┐
//!                                                      ├─▶ Handler ──▶ App: resolve bindings, check, call
//! Handler::listen("in").to(on_order) ──────────────────┘
//! #[bindings] struct ──inventory──▶ SourceDescriptor ─────▶ App: declared inputs and outputs
//! ```

use crate::convert::Payload;
use crate::error::BoxError;
use crate::error_handler::{ErrorCallFn, ErrorHandler};
use crate::handler::{AppContext, BoxFuture, FromApp, HandlerResult, MessageContext, Requirement};
use crate::headers::Headers;
use crate::partition::{ExtractError, PartitionKey};
use crate::transaction::{ListenerHandle, TransactionListener};

mod listen;

pub use listen::{Handler, Listen, ListenAndSend};

/// What kind of function a handler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandlerKind {
    /// Called for each message of an input.
    Listener,
}

/// What becomes of a message that no listener's condition matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnmatched {
    /// Acknowledge and count.
    Ack,
    /// Acknowledge, count and log a warning.
    #[default]
    Warn,
    /// Treat it as a failure of the handler.
    Fail,
}

/// A call of a handler, as the macros write it.
pub type CallFn = for<'a> fn(MessageContext<'a>) -> BoxFuture<'a, HandlerResult>;

/// What `#[stream_listener]` registers: constants and one function.
#[derive(Debug)]
pub struct HandlerDescriptor {
    /// The function's name.
    pub name: &'static str,
    /// The module it stands in.
    pub module: &'static str,
    /// The file it stands in, as the compiler was given it.
    pub file: &'static str,
    /// The line of the attribute, counted from 1.
    pub line: u32,
    /// What kind of function it is.
    pub kind: HandlerKind,
    /// The input binding.
    pub binding: &'static str,
    /// The condition, already known to parse.
    pub condition: Option<&'static str>,
    /// The bindings the return value goes to.
    pub send_to: &'static [&'static str],
    /// Whether answers take over the headers of the message. Default true.
    pub copy_headers: bool,
    /// What becomes of messages that no condition matches.
    pub on_unmatched: OnUnmatched,
    /// What the arguments require, one list an argument.
    pub requires: &'static [&'static [Requirement]],
    /// Extracts, calls, converts.
    pub call: CallFn,
}

inventory::collect!(HandlerDescriptor);

/// What `#[bindings]` registers.
#[derive(Debug)]
pub struct SourceDescriptor {
    /// The struct's name.
    pub name: &'static str,
    /// The module it stands in.
    pub module: &'static str,
    /// The file it stands in.
    pub file: &'static str,
    /// The line of the attribute, counted from 1.
    pub line: u32,
    /// Its fields.
    pub fields: &'static [FieldDescriptor],
    /// Fails when a field cannot be connected: no such binding, or another kind of producer than it relies on.
    pub check: fn(&crate::binding::Bindings) -> Result<(), crate::binding::BindError>,
}

/// One field of a `#[bindings]` struct.
#[derive(Debug)]
pub struct FieldDescriptor {
    /// The field's name.
    pub name: &'static str,
    /// The binding.
    pub binding: &'static str,
    /// Whether the program sends or receives there.
    pub direction: Direction,
    /// The payload type as written, empty when the field names none.
    pub payload: &'static str,
    /// The line of the field, counted from 1.
    pub line: u32,
}

/// Which way messages go through a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The program receives.
    Input,
    /// The program sends.
    Output,
}

/// A wrapper that inventory can collect: sources are consts of their structs.
#[derive(Debug)]
pub struct SourceEntry(pub &'static SourceDescriptor);

inventory::collect!(SourceEntry);

/// A struct whose fields are bindings. Implemented by `#[bindings]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no bindings",
    label = "not a `#[bindings]` struct",
    note = "put `#[bindings]` on the struct and `#[output(\"name\")]` or `#[input(\"name\")]` on each field"
)]
pub trait BindingSource: Sized + Send + Sync + 'static {
    /// The struct's description.
    fn descriptor() -> &'static SourceDescriptor;

    /// The struct, with each field connected to its binding.
    ///
    /// # Errors
    /// A binding is not known to the application.
    fn bind(bindings: &crate::binding::Bindings) -> Result<Self, crate::binding::BindError>;
}

/// What `#[transaction_listener]` registers.
#[derive(Debug)]
pub struct TransactionListenerDescriptor {
    /// The name that configuration uses.
    pub name: &'static str,
    /// The listener's type as written.
    pub type_name: &'static str,
    /// The file of the `impl`, as the compiler was given it.
    pub file: &'static str,
    /// The line of the attribute, counted from 1.
    pub line: u32,
    /// Builds the listener.
    pub make: MakeListener,
}

/// Builds a transaction listener of this name.
pub type MakeListener = fn(&str, &AppContext) -> Result<ListenerHandle, BoxError>;

inventory::collect!(TransactionListenerDescriptor);

/// Builds a listener by its [`FromApp`].
///
/// # Errors
/// Those of [`FromApp::from_app`].
pub fn make_transaction_listener<L: FromApp + TransactionListener>(
    name: &str,
    app: &AppContext,
) -> Result<ListenerHandle, BoxError> {
    Ok(ListenerHandle::new(name, L::from_app(app)?))
}

/// All transaction listeners that attributes registered in this program, by name.
#[must_use]
pub fn registered_transaction_listeners() -> Vec<&'static TransactionListenerDescriptor> {
    let mut listeners: Vec<_> = inventory::iter::<TransactionListenerDescriptor>
        .into_iter()
        .collect();
    listeners.sort_by_key(|listener| (listener.name, listener.file, listener.line));
    listeners
}

/// What `#[partition_key_extractor]` registers.
#[derive(Debug)]
pub struct KeyExtractorDescriptor {
    /// The name that configuration uses.
    pub name: &'static str,
    /// The function's name.
    pub function: &'static str,
    /// The file it stands in, as the compiler was given it.
    pub file: &'static str,
    /// The line of the attribute, counted from 1.
    pub line: u32,
    /// Takes the key.
    pub extract: fn(&dyn Payload, &Headers) -> Result<PartitionKey, ExtractError>,
}

inventory::collect!(KeyExtractorDescriptor);

/// What `#[partition_selector]` registers.
#[derive(Debug)]
pub struct PartitionSelectorDescriptor {
    /// The name that configuration uses.
    pub name: &'static str,
    /// The function's name.
    pub function: &'static str,
    /// The file it stands in, as the compiler was given it.
    pub file: &'static str,
    /// The line of the attribute, counted from 1.
    pub line: u32,
    /// Chooses.
    pub select: fn(&PartitionKey, u32) -> i32,
}

inventory::collect!(PartitionSelectorDescriptor);

/// What `#[error_handler]` registers.
#[derive(Debug)]
pub struct ErrorHandlerDescriptor {
    /// The function's name.
    pub name: &'static str,
    /// The module it stands in.
    pub module: &'static str,
    /// The file it stands in, as the compiler was given it.
    pub file: &'static str,
    /// The line of the attribute, counted from 1.
    pub line: u32,
    /// Which failures are meant for it.
    pub target: ErrorTarget,
    /// Whether an error is of the type the handler is for; `None`: every error.
    pub matches: Option<fn(&(dyn std::error::Error + 'static)) -> bool>,
    /// What the arguments require, one list an argument.
    pub requires: &'static [&'static [Requirement]],
    /// Extracts, calls, converts.
    pub call: ErrorCallFn,
}

inventory::collect!(ErrorHandlerDescriptor);

/// Which failures are meant for an error handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorTarget {
    /// Those of bindings that have no handler of their own.
    Default,
    /// Those of this binding or error channel.
    Binding(&'static str),
    /// Those of bindings whose `error-handler-definition` is this name.
    Named(&'static str),
}

/// All error handlers that attributes registered in this program, by module and line.
#[must_use]
pub fn registered_error_handlers() -> Vec<ErrorHandler> {
    let mut all: Vec<&ErrorHandlerDescriptor> = inventory::iter::<ErrorHandlerDescriptor>
        .into_iter()
        .collect();
    all.sort_by_key(|one| (one.module, one.line));
    all.into_iter().map(ErrorHandler::from).collect()
}

/// All partition key extractors that attributes registered in this program, by name.
#[must_use]
pub fn registered_key_extractors() -> Vec<&'static KeyExtractorDescriptor> {
    let mut all: Vec<_> = inventory::iter::<KeyExtractorDescriptor>
        .into_iter()
        .collect();
    all.sort_by_key(|one| (one.name, one.file, one.line));
    all
}

/// All partition selectors that attributes registered in this program, by name.
#[must_use]
pub fn registered_partition_selectors() -> Vec<&'static PartitionSelectorDescriptor> {
    let mut all: Vec<_> = inventory::iter::<PartitionSelectorDescriptor>
        .into_iter()
        .collect();
    all.sort_by_key(|one| (one.name, one.file, one.line));
    all
}

/// All handlers that attributes registered in this program, by module and line.
#[must_use]
pub fn registered_handlers() -> Vec<Handler> {
    let mut descriptors: Vec<&HandlerDescriptor> =
        inventory::iter::<HandlerDescriptor>.into_iter().collect();
    descriptors.sort_by_key(|descriptor| (descriptor.module, descriptor.line));
    descriptors.into_iter().map(Handler::from).collect()
}

/// All `#[bindings]` structs of this program, by module and line.
#[must_use]
pub fn registered_sources() -> Vec<&'static SourceDescriptor> {
    let mut sources: Vec<_> = inventory::iter::<SourceEntry>
        .into_iter()
        .map(|entry| entry.0)
        .collect();
    sources.sort_by_key(|source| (source.module, source.line));
    sources
}
