//! Error handlers over the in-process binder, and over one that never stores anything.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::*;
use crate::binder::memory::MemoryBinder;
use crate::binder::{
    Binder, BinderError, Capabilities, ConsumerBinding, ConsumerSpec, Deliver, Destination, Health,
    Place, ProducerBinding, ProducerSpec,
};
use crate::binding::{SendError, SendReceipt, StreamBridge};
use crate::config::LoadOptions;
use crate::handler::{HandlerError, State};
use crate::registry::{Direction, Handler};
use crate::transaction::{LocalWork, TxReceipt};
use crate::{App, AppBuilder, Error, Headers, Message};

#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn add(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    id: i64,
}

#[derive(Debug, thiserror::Error)]
#[error("out of stock")]
struct OutOfStock;

#[derive(Debug, thiserror::Error)]
#[error("the order cannot be placed")]
struct NotPlaced(#[source] OutOfStock);

const BINDINGS: &str = "
spring.cloud.stream:
  default-binder: memory
  default.consumer.max-attempts: 1
  output-bindings: parking
  bindings:
    input: { destination: orders, group: group }
    output: { destination: orders }
    parking: { destination: parked }
    parked: { destination: parked, group: parked-group }
";

fn app(more: &str, seen: &Seen) -> AppBuilder {
    App::builder()
        .options(LoadOptions::from_text(format!("{BINDINGS}\n---\n{more}\n")))
        .without_inventory()
        .output("output")
        .handler(Handler::listen("parked").to(parked))
        .state(seen.clone())
}

async fn parked(headers: Headers, text: String, seen: State<Seen>) {
    let header = |name| headers.get(name).unwrap_or("-").to_owned();
    seen.add(format!(
        "parked {text} because {} from {} tag {}",
        header("x-exception-message"),
        header("x-original-topic"),
        header("TAGS")
    ));
}

async fn fails(_: axum::Json<Order>) -> Result<(), NotPlaced> {
    Err(NotPlaced(OutOfStock))
}

/// Sends one order and waits for the end; what was seen, and how many dead letters there are.
async fn run(more: &str, handler: Handler, errors: Vec<ErrorHandler>) -> (Vec<String>, usize) {
    let (broker, seen) = (MemoryBinder::new(), Seen::default());
    let builder = app(more, &seen)
        .binder("memory", Arc::new(broker.clone()))
        .handler(handler);
    let app = errors
        .into_iter()
        .fold(builder, AppBuilder::error_handler)
        .start()
        .await
        .unwrap();
    let message = Message::new(Order { id: 1 }).tag("t");
    app.bridge().send("output", message).await.unwrap();
    broker.settled().await;
    app.shutdown().await.unwrap();
    (seen.all(), broker.dead_letters("group").len())
}

async fn note(failure: Failure, seen: State<Seen>) {
    let error = failure.error().to_string();
    seen.add(format!(
        "{} {} {error}",
        failure.binding(),
        failure.attempts()
    ));
}

async fn rethrow(failure: Failure, seen: State<Seen>) -> ErrorAction {
    note(failure, seen).await;
    ErrorAction::Rethrow
}

fn failing() -> Handler {
    Handler::listen("input").to(fails)
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_handled_is_acknowledged_after_the_attempts() {
    let attempts = "spring.cloud.stream.bindings.input.consumer.max-attempts: 2";
    let handler = ErrorHandler::on("input").to(note);
    assert_eq!(
        run(attempts, failing(), vec![handler]).await,
        (vec!["input 2 the order cannot be placed".to_owned()], 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_rethrown_message_comes_again_and_may_be_parked_later() {
    async fn on_fail(failure: Failure, seen: State<Seen>) -> ErrorAction {
        assert_eq!(failure.direction(), Direction::Input);
        seen.add(format!(
            "{} {}",
            failure.attempts(),
            failure.redelivery().broker
        ));
        if failure.attempts() < 3 {
            ErrorAction::Rethrow
        } else {
            ErrorAction::send_to("parking")
        }
    }
    let handler = ErrorHandler::on("input").to(on_fail);
    let (seen, dead) = run("", failing(), vec![handler]).await;
    let parked =
        r#"parked {"id":1} because the order cannot be placed: out of stock from orders tag t"#;
    assert_eq!(
        (seen, dead),
        (["1 0", "2 1", "3 2", parked].map(str::to_owned).to_vec(), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_payload_and_a_panic_are_failures_too() {
    async fn number(_: axum::Json<i64>) {}
    async fn panics() {
        panic!("boom");
    }
    let errors = || vec![ErrorHandler::on("input").to(note)];
    let (seen, dead) = run("", Handler::listen("input").to(number), errors()).await;
    assert!(dead == 0 && seen[0].contains("argument 1"), "{seen:?}");
    let (seen, dead) = run("", Handler::listen("input").to(panics), errors()).await;
    assert_eq!((dead, &*seen[0]), (0, "input 1 the handler panicked: boom"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_itself_handles_nothing() {
    async fn fails_too() -> Result<(), HandlerError> {
        Err(HandlerError::reject("cannot even log"))
    }
    async fn panics() {
        panic!("boom");
    }
    async fn nowhere() -> ErrorAction {
        ErrorAction::send_to("nowhere")
    }
    let once = "spring.cloud.stream.rocketmq.bindings.input.consumer.max-reconsume-times: 1";
    for handler in [
        ErrorHandler::on("input").to(fails_too),
        ErrorHandler::on("input").to(panics),
        ErrorHandler::on("input").to(nowhere),
    ] {
        assert_eq!(run(once, failing(), vec![handler]).await, (Vec::new(), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn every_handler_of_a_binding_sees_the_failure_and_one_is_enough_to_rethrow() {
    let errors = vec![
        ErrorHandler::on("input").to(note),
        ErrorHandler::on("orders.group.errors").to(rethrow),
        ErrorHandler::by_default().to(note),
        ErrorHandler::on("parked").to(note),
    ];
    let none = "spring.cloud.stream.rocketmq.bindings.input.consumer.max-reconsume-times: 0";
    let (seen, dead) = run(none, failing(), errors).await;
    assert_eq!((seen.len(), dead), (2, 1), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn the_default_handler_is_for_what_no_own_handler_is_for() {
    async fn other() -> Result<(), std::fmt::Error> {
        Err(std::fmt::Error)
    }
    let (own, default) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = |counter: &Arc<AtomicUsize>| {
        let counter = Arc::clone(counter);
        move || {
            let counter = Arc::clone(&counter);
            async move {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let of_type = || {
        ErrorHandler::on("input")
            .only::<OutOfStock>()
            .to(counted(&own))
    };
    let by_default = || ErrorHandler::by_default().to(counted(&default));
    // The error was caused by one of that type.
    run("", failing(), vec![of_type(), by_default()]).await;
    assert_eq!(
        (own.load(Ordering::Relaxed), default.load(Ordering::Relaxed)),
        (1, 0)
    );
    run(
        "",
        Handler::listen("input").to(other),
        vec![of_type(), by_default()],
    )
    .await;
    assert_eq!(
        (own.load(Ordering::Relaxed), default.load(Ordering::Relaxed)),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn error_handler_definition_takes_the_place_of_all_others() {
    let errors = vec![
        ErrorHandler::on("input").to(rethrow),
        ErrorHandler::named("quiet").to(note),
    ];
    let definition = "spring.cloud.stream.bindings.input.error-handler-definition: quiet";
    let (seen, dead) = run(definition, failing(), errors).await;
    assert_eq!((seen.len(), dead), (1, 0));
}

#[tokio::test]
async fn handlers_of_nothing_and_unknown_definitions_are_told_at_start() {
    let told = |more: &'static str, handler: ErrorHandler| async move {
        let start = app(more, &Seen::default())
            .handler(failing())
            .error_handler(handler)
            .start();
        match start.await {
            Err(Error::Config(errors)) => errors.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let text = told("", ErrorHandler::on("inptu").to(note)).await;
    assert!(
        text.contains("`inptu`") && text.contains("did you mean `input`?"),
        "{text}"
    );
    let definition = "spring.cloud.stream.bindings.input.error-handler-definition: quite";
    let text = told(definition, ErrorHandler::named("quiet").to(note)).await;
    assert!(
        text.contains("error handler `quite`") && text.contains("`quiet`"),
        "{text}"
    );
}

/// Stores nothing but what goes to `parked`.
struct Refusing;

#[async_trait]
impl Binder for Refusing {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn declare(&self, _: &[Destination]) -> Result<(), BinderError> {
        Ok(())
    }

    async fn bind_consumer(
        &self,
        _: ConsumerSpec,
        _: Arc<dyn Deliver>,
    ) -> Result<Arc<dyn ConsumerBinding>, BinderError> {
        Err(BinderError::Closed)
    }

    async fn bind_producer(
        &self,
        spec: ProducerSpec,
    ) -> Result<Arc<dyn ProducerBinding>, BinderError> {
        Ok(Arc::new(RefusingOutput(spec.destination)))
    }

    async fn health(&self) -> Health {
        Health::Up
    }

    async fn shutdown(&self) -> Result<(), BinderError> {
        Ok(())
    }
}

struct RefusingOutput(String);

#[async_trait]
impl ProducerBinding for RefusingOutput {
    async fn send(&self, message: &Message, _: Place) -> Result<SendReceipt, SendError> {
        if self.0 != "parked" {
            return Err(SendError::Connect("nobody there".into()));
        }
        let reason = message.headers().get("x-exception-message");
        Ok(SendReceipt {
            destination: reason.unwrap_or_default().to_owned(),
            msg_id: String::new(),
            offset_msg_id: String::new(),
            broker: String::new(),
            queue_id: 0,
            queue_offset: 0,
            partition: None,
        })
    }

    async fn send_in_transaction(
        &self,
        _: &Message,
        _: LocalWork<'_>,
    ) -> Result<TxReceipt, SendError> {
        Err(SendError::Connect("nobody there".into()))
    }

    async fn partitions(&self) -> Result<u32, SendError> {
        Ok(1)
    }

    async fn stop(&self) -> Result<(), BinderError> {
        Ok(())
    }
}

async fn refused(more: &str, seen: &Seen) -> crate::AppHandle {
    async fn on_fail(
        failure: Failure,
        order: axum::Json<Order>,
        bridge: StreamBridge,
        seen: State<Seen>,
    ) {
        assert_eq!(failure.direction(), Direction::Output);
        let copy = bridge.send("parking", order.0).await.is_ok();
        seen.add(format!("{} {copy} {}", failure.binding(), failure.error()));
    }
    let config = "
spring.cloud.stream:
  default-binder: memory
  bindings:
    output: { destination: orders }
    parking: { destination: parked }
";
    App::builder()
        .options(LoadOptions::from_text(format!("{config}\n---\n{more}\n")))
        .without_inventory()
        .binder("memory", Arc::new(Refusing))
        .output("output")
        .output("parking")
        .error_handler(ErrorHandler::on("orders.errors").to(on_fail))
        .state(seen.clone())
        .start()
        .await
        .unwrap()
}

const ASYNC: &str = "spring.cloud.stream.rocketmq.bindings.output.producer.send-type: Async";

#[tokio::test]
async fn a_failed_asynchronous_send_is_told_to_handler_and_caller() {
    let seen = Seen::default();
    let app = refused(ASYNC, &seen).await;
    let error = app
        .bridge()
        .send("output", Order { id: 1 })
        .await
        .unwrap_err();
    assert!(matches!(error, SendError::Connect(_)) && error.is_retryable());
    let told = "output true the broker cannot be reached";
    assert_eq!(seen.all(), [told]);
    // Nobody waits for these; the end of the application does.
    let output = app.output::<Order>("output").unwrap();
    output.post(Order { id: 2 }).unwrap();
    app.bridge().post("output", Order { id: 3 }).unwrap();
    app.shutdown().await.unwrap();
    assert_eq!(seen.all(), [told; 3]);
    assert!(matches!(
        output.post(Order { id: 4 }),
        Err(SendError::Closed { .. })
    ));
}

#[tokio::test]
async fn a_failed_synchronous_send_is_told_to_the_handler_when_its_channel_is_enabled() {
    let seen = Seen::default();
    let app = refused("", &seen).await;
    app.bridge()
        .send("output", Order { id: 1 })
        .await
        .unwrap_err();
    assert_eq!(seen.all(), Vec::<String>::new());
    app.shutdown().await.unwrap();
    let enabled = "spring.cloud.stream.bindings.output.producer.error-channel-enabled: true";
    let app = refused(enabled, &seen).await;
    app.bridge()
        .send("output", Order { id: 1 })
        .await
        .unwrap_err();
    assert_eq!(seen.all().len(), 1);
    app.shutdown().await.unwrap();
}
