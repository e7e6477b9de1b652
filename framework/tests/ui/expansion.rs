//! What the expansions of the attributes do.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::Arc;

use axum::Json;
use bindery::convert::{ContentType, EncodeOptions};
use bindery::error::BoxError;
use bindery::handler::{
    AppContext, Delivery, FromApp, HandlerResult, MessageContext, Outcome, State, Verdict,
};
use bindery::partition::PartitionKey;
use bindery::registry::{
    BindingSource, Direction, Handler, OnUnmatched, registered_handlers, registered_key_extractors,
    registered_partition_selectors, registered_sources, registered_transaction_listeners,
};
use bindery::transaction::{HalfMessage, LocalState, TransactionListener, TxArgs};
use bindery::{
    Headers, Input, Message, Output, bindings, partition_key_extractor, partition_selector,
    send_to, stream_listener, transaction_listener,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Order {
    id: i64,
}

#[stream_listener("ui-plain")]
async fn plain(
    headers: Headers,
    #[payload] order: Order,
    #[header("no")] no: u64,
    #[header("absent", default = "7")] absent: u32,
    #[header("absent")] optional: Option<String>,
    State(sum): State<Arc<std::sync::atomic::AtomicI64>>,
) -> Result<(), std::fmt::Error> {
    assert_eq!(headers.tags(), Some("t"));
    assert_eq!((no, absent, optional), (42, 7, None));
    sum.fetch_add(order.id, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

#[stream_listener(
    "ui-condition",
    condition = "headers['type'] == 'dog' and payload.age > 3",
    on_unmatched = "fail"
)]
async fn conditional(_whole: Message) -> Outcome {
    Outcome::Skip
}

/// A listener's documentation and its visibility stay.
#[stream_listener(binding = "ui-serialized", copy_headers = false)]
#[send_to("ui-out")]
pub(crate) async fn serialized(order: Json<Order>) -> Result<Option<Order>, std::fmt::Error> {
    Ok(Some(Order { id: order.id + 1 }).filter(|order| order.id > 0))
}

#[stream_listener("ui-several")]
#[send_to("ui-first", "ui-second")]
async fn several(text: String) -> (Vec<Order>, Option<Message<String>>) {
    (
        vec![Order { id: 1 }, Order { id: 2 }],
        Some(Message::new(text).tag("x")),
    )
}

#[stream_listener("ui-text")]
#[bindery::send_to("ui-out")]
async fn text(text: String) -> Result<String, bindery::handler::HandlerError> {
    if text.is_empty() {
        return Err(bindery::handler::HandlerError::reject("empty"));
    }
    Ok(text.to_uppercase())
}

#[bindings]
struct Orders {
    #[output("ui-orders")]
    #[allow(dead_code, reason = "the struct is only described here")]
    placed: Output<Order>,
    #[input("ui-plain")]
    #[allow(dead_code, reason = "the struct is only described here")]
    incoming: Input,
}

fn handler(name: &str) -> Handler {
    registered_handlers()
        .into_iter()
        .find(|handler| handler.name() == name)
        .unwrap()
}

async fn call(name: &str, body: &str, app: &AppContext) -> HandlerResult {
    let info = Delivery::default();
    let properties = [("TAGS", "t"), ("no", "42")];
    let message = Message::received(
        body.to_owned().into_bytes().into(),
        properties,
        Arc::new(info.clone()),
    );
    handler(name)
        .call(MessageContext {
            message: &message,
            info: &info,
            app,
        })
        .await
}

/// The replies as (output, body, tag).
async fn replies(name: &str, body: &str) -> Vec<(usize, String, Option<String>)> {
    let replies = call(name, body, &AppContext::new()).await.unwrap();
    let text = |reply: &bindery::handler::Reply| {
        let encoded = reply
            .payload
            .encode(&ContentType::json(), EncodeOptions::default())
            .unwrap();
        String::from_utf8(encoded.bytes.to_vec()).unwrap()
    };
    replies
        .iter()
        .map(|reply| {
            (
                reply.output,
                text(reply),
                reply.headers.tags().map(str::to_owned),
            )
        })
        .collect()
}

#[tokio::test]
async fn a_listener_extracts_its_arguments_and_needs_its_state() {
    let mut app = AppContext::new();
    let sum = Arc::new(std::sync::atomic::AtomicI64::new(0));
    app.insert(sum.clone());
    assert!(call("plain", "{\"id\":5}", &app).await.unwrap().is_empty());
    assert_eq!(sum.load(std::sync::atomic::Ordering::Relaxed), 5);
    assert_eq!(handler("plain").requirements().len(), 1);
    let failure = call("plain", "[]", &app).await.unwrap_err();
    assert_eq!(failure.verdict, Verdict::Reject);
    assert!(
        failure.to_string().starts_with("plain: argument 2: "),
        "{failure}"
    );
}

#[tokio::test]
async fn a_condition_and_its_options_are_registered() {
    let handler = handler("conditional");
    assert_eq!(
        (handler.binding(), handler.on_unmatched()),
        ("ui-condition", OnUnmatched::Fail)
    );
    assert!(handler.condition().unwrap().is_some());
    assert!(handler.module().ends_with("expansion") && handler.file().ends_with("expansion.rs"));
    let failure = call("conditional", "", &AppContext::new())
        .await
        .unwrap_err();
    assert_eq!(failure.verdict, Verdict::Skip);
}

#[tokio::test]
async fn answers_are_found_by_their_type() {
    assert_eq!(
        replies("serialized", "{\"id\":1}").await,
        [(0, "{\"id\":2}".to_owned(), None)]
    );
    assert!(replies("serialized", "{\"id\":-1}").await.is_empty());
    assert!(!handler("serialized").copy_headers());
    assert_eq!(
        replies("several", "hello").await,
        [
            (0, "{\"id\":1}".to_owned(), None),
            (0, "{\"id\":2}".to_owned(), None),
            (1, "hello".to_owned(), Some("x".to_owned())),
        ]
    );
    assert_eq!(
        replies("text", "hello").await,
        [(0, "HELLO".to_owned(), None)]
    );
    let failure = call("text", "", &AppContext::new()).await.unwrap_err();
    assert_eq!(failure.verdict, Verdict::Reject);
}

#[tokio::test]
async fn the_function_stays_callable() {
    let next = serialized(Json(Order { id: 3 })).await.unwrap().unwrap();
    assert_eq!(next.id, 4);
}

#[test]
fn handlers_are_sorted_by_their_place() {
    let handlers = registered_handlers();
    let names: Vec<_> = handlers.iter().map(Handler::name).collect();
    assert_eq!(
        names,
        ["plain", "conditional", "serialized", "several", "text"]
    );
}

#[test]
fn a_source_describes_its_fields() {
    let sources = registered_sources();
    let [source] = sources.as_slice() else {
        panic!("{sources:?}")
    };
    assert!(std::ptr::eq(*source, Orders::descriptor()));
    let fields: Vec<_> = source
        .fields
        .iter()
        .map(|field| (field.name, field.binding, field.direction, field.payload))
        .collect();
    assert_eq!(
        fields,
        [
            ("placed", "ui-orders", Direction::Output, "Order"),
            ("incoming", "ui-plain", Direction::Input, ""),
        ]
    );
    assert_eq!(source.fields[1].line - source.fields[0].line, 3);
}

/// Commits what is longer than its state.
struct Longer {
    than: usize,
}

#[transaction_listener("ui-longer")]
impl TransactionListener for Longer {
    async fn execute_local(&self, half: &HalfMessage, _: &TxArgs) -> Result<LocalState, BoxError> {
        self.check_local(half).await
    }

    async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        Ok(if half.payload().len() > self.than {
            LocalState::Commit
        } else {
            LocalState::Rollback
        })
    }
}

impl FromApp for Longer {
    fn from_app(app: &AppContext) -> Result<Self, BoxError> {
        Ok(Self { than: app.state()? })
    }
}

#[tokio::test]
async fn a_transaction_listener_is_registered_and_built_from_state() {
    let listeners = registered_transaction_listeners();
    let [listener] = listeners.as_slice() else {
        panic!("{listeners:?}")
    };
    assert_eq!((listener.name, listener.type_name), ("ui-longer", "Longer"));
    assert!(listener.file.ends_with("expansion.rs"));
    let mut app = AppContext::new();
    let missing = (listener.make)(listener.name, &app).unwrap_err();
    assert!(missing.to_string().contains("usize"), "{missing}");
    app.insert(3_usize);
    let listener = (listener.make)(listener.name, &app).unwrap();
    let half = HalfMessage::new(Message::new("four".into()), "id");
    assert_eq!(listener.check(&half).await.unwrap(), LocalState::Commit);
}

#[partition_key_extractor("ui-key")]
fn key_of(headers: &Headers, order: &Order) -> Option<String> {
    Some(format!("{}-{}", headers.tags()?, order.id))
}

#[partition_selector("ui-selector")]
fn last(key: &PartitionKey, partitions: u32) -> i32 {
    i32::from(!key.is_null()) * (partitions.cast_signed() - 1)
}

#[test]
fn partition_code_is_registered_under_its_name() {
    let (extractors, selectors) = (
        registered_key_extractors(),
        registered_partition_selectors(),
    );
    let ([extractor], [selector]) = (extractors.as_slice(), selectors.as_slice()) else {
        panic!("{extractors:?} {selectors:?}")
    };
    assert_eq!((extractor.name, extractor.function), ("ui-key", "key_of"));
    let headers: Headers = [("TAGS", "t")].into_iter().collect();
    let key = (extractor.extract)(&Order { id: 7 }, &headers).unwrap();
    assert_eq!(key, PartitionKey::from("t-7"));
    assert!((extractor.extract)(&7_i64, &headers).is_err());
    assert_eq!(
        (selector.name, (selector.select)(&key, 4)),
        ("ui-selector", 3)
    );
}

#[bindery::error_handler("ui-plain", for = std::fmt::Error)]
async fn on_ui_fail(
    #[header("no")] no: u64,
    failure: bindery::error_handler::Failure,
) -> bindery::error_handler::ErrorAction {
    assert_eq!((no, failure.binding()), (42, "ui-plain"));
    bindery::error_handler::ErrorAction::send_to("parking")
}

#[test]
fn an_error_handler_is_registered() {
    let handlers = bindery::registry::registered_error_handlers();
    let [handler] = handlers.as_slice() else {
        panic!("{handlers:?}")
    };
    assert_eq!(handler.name(), "on_ui_fail");
    assert!(format!("{handler:?}").contains("ui-plain"), "{handler:?}");
}
