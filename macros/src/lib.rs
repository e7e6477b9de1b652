//! The attribute macros of Bindery.
//!
//! ```text
//! #[stream_listener(..)] fn ──parse──▶ Listener ──check──▶ every mistake, at its place ──expand──▶ fn + description
//! #[bindings] struct ────────parse──▶ Source ────check──▶ … ────────────────────────────expand──▶ struct + description
//! #[transaction_listener(..)] impl ─parse─▶ … ──────────────────────────────────────────expand──▶ impl + description
//! ```
//!
//! An annotated function stays as it is written and can be called as before. Beside it stands one constant description
//! that the program's registry collects; everything that runs lives in the framework.
#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod bindings;
mod error_handler;
mod keys;
mod listener;
mod main_function;
mod partition;
mod test_function;
mod transaction_listener;

/// Makes a struct a source of bindings: each field is connected to the binding that its attribute names.
///
/// ```ignore
/// #[bindings]
/// struct Orders {
///     #[output("orders-out")]
///     placed: Output<Order>,
///     #[input("orders-in")]
///     incoming: Input,
/// }
/// ```
///
/// Take it as `Bound<Orders>` in handlers and web routes.
#[proc_macro_attribute]
pub fn bindings(arguments: TokenStream, item: TokenStream) -> TokenStream {
    bindings::attribute(arguments.into(), item.into()).into()
}

/// Makes an async function a listener: it is called for each message of an input binding.
///
/// ```ignore
/// #[stream_listener("orders-in", condition = "headers['type'] == 'order'")]
/// async fn on_order(order: Json<Order>, headers: Headers) -> Result<(), OrderError> { .. }
/// ```
///
/// | key | meaning | default |
/// |---|---|---|
/// | first, or `binding` | the input binding | required |
/// | `condition` | an expression over `payload` and `headers`; only messages for which it is true | every message |
/// | `copy_headers` | answers of `#[send_to]` take over the message's headers | `true` |
/// | `on_unmatched` | what becomes of messages no condition matches: `"ack"`, `"warn"`, `"fail"` | `"warn"` |
///
/// Arguments are extractors in any order: `Json<T>`, `Text`, `String`, `Bytes`, `Message<T>`, `Headers`, `State<T>`, …, and
/// `#[payload] x: T`, `#[header("name")] x: T`, `#[header("name", default = "1")] x: T`,
/// `#[header("name")] x: Option<T>`.
#[proc_macro_attribute]
pub fn stream_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    listener::attribute(arguments.into(), item.into()).into()
}

/// Sends what a listener returns to a binding: `#[send_to("orders-out")]` below `#[stream_listener(..)]`. With several
/// names the listener returns a tuple with one element each.
#[proc_macro_attribute]
pub fn send_to(_: TokenStream, item: TokenStream) -> TokenStream {
    listener::send_to_alone(&item.into()).into()
}

/// Makes an async function an error handler: it is called for messages that an input could not handle, when the attempts
/// inside the process are used up, and for asynchronous sends of an output that failed.
///
/// ```ignore
/// #[error_handler("orders-in")]
/// async fn on_fail(failure: Failure, bridge: StreamBridge) -> ErrorAction {
///     if failure.attempts() < 10 { ErrorAction::Rethrow } else { ErrorAction::send_to("parking") }
/// }
/// ```
///
/// | key | meaning | default |
/// |---|---|---|
/// | first | the binding, or its error channel: `<destination>.<group>.errors`, `<destination>.errors` | bindings without a handler of their own |
/// | `for` | an error type: only failures that are, or were caused by, such an error | every error |
/// | `name` | only for bindings whose `error-handler-definition` is this name | |
///
/// Arguments are `Failure` and whatever a handler may take, in any order. It returns `ErrorAction`, `()` (the failure is dealt
/// with), or a `Result` of these; an error or a panic of its own leaves the failure as it was.
#[proc_macro_attribute]
pub fn error_handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    error_handler::attribute(arguments.into(), &item.into()).into()
}

/// Gives a transaction listener the name by which `transactionListener` in application.yaml refers to it.
///
/// ```ignore
/// #[transaction_listener("books")]
/// impl TransactionListener for Books {
///     async fn execute_local(&self, half: &HalfMessage, args: &TxArgs) -> Result<LocalState, BoxError> { .. }
///     async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> { .. }
/// }
/// ```
///
/// The application builds the listener when it starts and an output names it, by its `FromApp`.
#[proc_macro_attribute]
pub fn transaction_listener(arguments: TokenStream, item: TokenStream) -> TokenStream {
    transaction_listener::attribute(arguments.into(), &item.into()).into()
}

/// Gives a function the name by which `partition-key-extractor-name` in application.yaml refers to it. It takes the payload
/// before it is encoded, `&Headers` if it wants, and returns the key: anything serde can write, or an `Option` of it.
///
/// ```ignore
/// #[partition_key_extractor("byRegion")]
/// fn by_region(order: &Order, headers: &Headers) -> Option<String> { .. }
/// ```
///
/// Equal keys go to one partition; an `i64` hashes as Java's `Long`, an `i32` as its `Integer`. `None` fails the send.
#[proc_macro_attribute]
pub fn partition_key_extractor(arguments: TokenStream, item: TokenStream) -> TokenStream {
    partition::extractor(arguments.into(), &item.into()).into()
}

/// Gives a function the name by which `partition-selector-name` in application.yaml refers to it. From the key and the number
/// of partitions it returns a number whose remainder is the partition.
///
/// ```ignore
/// #[partition_selector("vipFirst")]
/// fn vip_first(key: &PartitionKey, partitions: u32) -> i32 { .. }
/// ```
#[proc_macro_attribute]
pub fn partition_selector(arguments: TokenStream, item: TokenStream) -> TokenStream {
    partition::selector(arguments.into(), &item.into()).into()
}

/// Makes `async fn main(app: AppBuilder) -> bindery::Result<()>` the program's entry: runtime, log, flags, exit code.
#[proc_macro_attribute]
pub fn main(arguments: TokenStream, item: TokenStream) -> TokenStream {
    main_function::attribute(arguments.into(), item.into()).into()
}

/// Makes `async fn name(t: TestApp)` a test of an application that runs on a broker of its own; the function may return a
/// `Result`.
///
/// ```ignore
/// #[bindery::test(yaml = "tests/orders.yaml", setup = "with_books")]
/// async fn orders_are_handled(t: TestApp) { .. }
/// ```
///
/// | key | meaning | default |
/// |---|---|---|
/// | `yaml` | the configuration file, relative to the crate | the crate's `application.yaml` |
/// | `config` | the configuration itself | |
/// | `set` | `key=value`, stronger than the file; may be repeated | |
/// | `only` | names of the handlers or modules that take part, separated by commas | all whose bindings the configuration names |
/// | `setup` | path of a `fn(TestAppBuilder) -> TestAppBuilder`: state, handlers without attributes | |
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    test_function::attribute(arguments.into(), item.into()).into()
}
