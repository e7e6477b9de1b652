//! The actuator: what an application tells operators over HTTP.
//!
//! ```text
//! GET /actuator/health ──▶ every binder asked ──▶ 200 UP · 503 DOWN
//! GET /actuator/health/liveness · readiness ──▶ the process · its bindings
//! GET /actuator/bindings[/name] ──▶ the bindings with their state, as Spring Cloud Stream prints them
//! POST /actuator/bindings/name {"state": "STOPPED"} ──▶ 204 · 400 · 404 · 409 · 503
//! GET /actuator/channels ──▶ what is configured
//! ```
//!
//! Which endpoints exist is said by `management.endpoints.web.exposure`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::binder::{Binder, Health};
use crate::binding::{
    BindingChange, Bindings, ChangeError, InputBinding, InputState, OutputBinding,
};
use crate::config::relaxed::nearest;
use crate::config::{BindingConfig, Config, ShowDetails};
use crate::handler::AppContext;
use crate::pipeline::Chain;

/// What the endpoints look at.
#[derive(Clone)]
struct Looked {
    binders: Arc<BTreeMap<String, Arc<dyn Binder>>>,
    details: bool,
    /// The configuration of each binding as `channels` shows it.
    channels: Arc<BTreeMap<String, Value>>,
}

pub(crate) fn routes(config: &Config, binders: &BTreeMap<String, Arc<dyn Binder>>) -> Router {
    let management = &config.management;
    let looked = Looked {
        binders: Arc::new(binders.clone()),
        details: management.show_details == ShowDetails::Always,
        channels: Arc::new(
            config
                .bindings
                .values()
                .map(|binding| (binding.name.clone(), channel(binding)))
                .collect(),
        ),
    };
    let base = management.base_path.trim_end_matches('/');
    let mut router = Router::new();
    if management.exposes("health") {
        router = router
            .route(&format!("{base}/health"), get(health))
            .route(&format!("{base}/health/liveness"), get(liveness))
            .route(&format!("{base}/health/readiness"), get(readiness));
    }
    if management.exposes("bindings") {
        router = router
            .route(&format!("{base}/bindings"), get(bindings))
            .route(
                &format!("{base}/bindings/{{name}}"),
                get(binding).post(change),
            );
    }
    if management.exposes("channels") {
        router = router.route(&format!("{base}/channels"), get(channels));
    }
    router.with_state(looked)
}

async fn health(
    State(looked): State<Looked>,
    Extension(context): Extension<Arc<AppContext>>,
) -> (StatusCode, Json<Value>) {
    let mut components = serde_json::Map::new();
    let mut up = true;
    for (name, binder) in looked.binders.iter() {
        let component = match binder.health().await {
            Health::Up => json!({ "status": "UP" }),
            Health::Down(reason) => {
                up = false;
                json!({ "status": "DOWN", "details": { "error": reason } })
            }
        };
        components.insert(name.clone(), component);
    }
    let status = if up { "UP" } else { "DOWN" };
    let mut body = json!({ "status": status });
    if looked.details {
        // A paused binding is somebody's wish, not an illness: it is shown and changes nothing.
        let paused: Vec<String> = context
            .extension::<Bindings>()
            .iter()
            .flat_map(|bindings| bindings.inputs().cloned().collect::<Vec<_>>())
            .filter(|input| input.state() == InputState::Paused)
            .map(|input| input.spec.binding.clone())
            .collect();
        body["components"] = json!({ "binders": { "status": status, "components": components } });
        body["paused"] = json!(paused);
    }
    let code = if up {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, Json(body))
}

/// Whoever reads this answer knows that the process lives.
async fn liveness() -> Json<Value> {
    Json(json!({ "status": "UP" }))
}

/// Whether every binding that should run does.
async fn readiness(Extension(context): Extension<Arc<AppContext>>) -> (StatusCode, Json<Value>) {
    let waiting = context
        .extension::<Bindings>()
        .is_none_or(|bindings| bindings.inputs().any(|input| input.error().is_some()));
    if waiting {
        let body = json!({ "status": "OUT_OF_SERVICE" });
        return (StatusCode::SERVICE_UNAVAILABLE, Json(body));
    }
    (StatusCode::OK, Json(json!({ "status": "UP" })))
}

async fn bindings(Extension(context): Extension<Arc<AppContext>>) -> Json<Value> {
    Json(Value::Array(all(&context)))
}

async fn binding(
    Path(name): Path<String>,
    Extension(context): Extension<Arc<AppContext>>,
) -> Response {
    let named: Vec<Value> = all(&context)
        .into_iter()
        .filter(|binding| is_named(binding, &name))
        .collect();
    if named.is_empty() {
        return unknown(&context, &name);
    }
    Json(Value::Array(named)).into_response()
}

/// The body of a change: `{"state": "STOPPED"}`.
#[derive(Debug, Deserialize)]
struct Wanted {
    state: BindingChange,
}

/// 204 when the binding is where it should be, 404 for an unknown one, 409 when there is no way, 400 for another word, 503
/// when the binder failed. All bindings of the name change, an input and an output alike.
async fn change(
    Path(name): Path<String>,
    Extension(context): Extension<Arc<AppContext>>,
    body: Result<Json<Wanted>, JsonRejection>,
) -> Response {
    let wanted = match body {
        Ok(Json(wanted)) => wanted.state,
        Err(rejection) => {
            let message = format!(
                "the body is {{\"state\": \"STARTED\"}}, or STOPPED, PAUSED, RESUMED: {}",
                rejection.body_text()
            );
            return problem(StatusCode::BAD_REQUEST, &message);
        }
    };
    let Some(bindings) = context.extension::<Bindings>() else {
        return unknown(&context, &name);
    };
    let (input, output) = (bindings.input(&name).ok(), bindings.output(&name).ok());
    if input.is_none() && output.is_none() {
        return unknown(&context, &name);
    }
    let mut changed = Ok(());
    if let Some(input) = &input {
        changed = input.change(wanted).await;
    }
    if let (Ok(()), Some(output)) = (&changed, &output) {
        changed = output.change(wanted);
    }
    match changed {
        Ok(()) => {
            tracing::info!(binding = name, ?wanted, "binding changed by an operator");
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error @ ChangeError::Impossible { .. }) => {
            problem(StatusCode::CONFLICT, &error.to_string())
        }
        Err(error) => problem(StatusCode::SERVICE_UNAVAILABLE, &Chain(&error).to_string()),
    }
}

fn unknown(context: &AppContext, name: &str) -> Response {
    let known = all(context);
    let names = known.iter().filter_map(|one| one["bindingName"].as_str());
    let hint = nearest(name, names).map(|near| format!("; did you mean `{near}`?"));
    let message = format!("no binding `{name}`{}", hint.unwrap_or_default());
    problem(StatusCode::NOT_FOUND, &message)
}

fn problem(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}

/// Spring finds bindings without regard to case.
fn is_named(binding: &Value, name: &str) -> bool {
    binding["bindingName"]
        .as_str()
        .is_some_and(|known| known.eq_ignore_ascii_case(name))
}

/// As Spring Cloud Stream's `channels`: what is configured, by direction, without what has its default.
async fn channels(
    State(looked): State<Looked>,
    Extension(context): Extension<Arc<AppContext>>,
) -> Json<Value> {
    let Some(bindings) = context.extension::<Bindings>() else {
        return Json(json!({ "inputs": {}, "outputs": {} }));
    };
    let described = |name: &str| looked.channels.get(name).cloned().unwrap_or_default();
    let inputs: serde_json::Map<String, Value> = bindings
        .inputs()
        .map(|input| {
            let name = input.spec.binding.clone();
            let value = described(&name);
            (name, value)
        })
        .collect();
    let outputs: serde_json::Map<String, Value> = bindings
        .outputs()
        .map(|output| {
            let mut value = described(output.name());
            // Of a name that is used on both sides each side shows its own part.
            if let Some(fields) = value.as_object_mut() {
                fields.remove("consumer");
                fields.remove("group");
            }
            (output.name().to_owned(), value)
        })
        .collect();
    Json(json!({ "inputs": inputs, "outputs": outputs }))
}

/// The keys of one binding that differ from their defaults, with Spring's names.
fn channel(binding: &BindingConfig) -> Value {
    let plain = BindingConfig::new("", "");
    let mut fields = serde_json::Map::new();
    let mut put = |name: &str, differs: bool, value: Value| {
        if differs {
            fields.insert(name.to_owned(), value);
        }
    };
    put("destination", true, json!(binding.destination));
    put("group", binding.group.is_some(), json!(binding.group));
    put(
        "contentType",
        binding.content_type != plain.content_type,
        json!(binding.content_type),
    );
    put("binder", binding.binder.is_some(), json!(binding.binder));
    let (own, default) = (&binding.consumer, &plain.consumer);
    let mut consumer = serde_json::Map::new();
    let mut put = |name: &str, differs: bool, value: Value| {
        if differs {
            consumer.insert(name.to_owned(), value);
        }
    };
    put(
        "autoStartup",
        own.auto_startup != default.auto_startup,
        json!(own.auto_startup),
    );
    put(
        "concurrency",
        own.concurrency != default.concurrency,
        json!(own.concurrency),
    );
    put(
        "partitioned",
        own.partitioned != default.partitioned,
        json!(own.partitioned),
    );
    put(
        "maxAttempts",
        own.max_attempts != default.max_attempts,
        json!(own.max_attempts),
    );
    put(
        "defaultRetryable",
        own.default_retryable != default.default_retryable,
        json!(own.default_retryable),
    );
    let producer = &binding.producer;
    let mut sending = serde_json::Map::new();
    let texts = [
        ("partitionKeyExpression", &producer.partition_key_expression),
        (
            "partitionKeyExtractorName",
            &producer.partition_key_extractor,
        ),
        (
            "partitionSelectorExpression",
            &producer.partition_selector_expression,
        ),
        ("partitionSelectorName", &producer.partition_selector),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            sending.insert(name.to_owned(), json!(text));
        }
    }
    if let Some(count) = producer.partition_count {
        sending.insert("partitionCount".to_owned(), json!(count));
    }
    for (name, section) in [("consumer", consumer), ("producer", sending)] {
        if !section.is_empty() {
            fields.insert(name.to_owned(), Value::Object(section));
        }
    }
    Value::Object(fields)
}

pub(crate) fn all(context: &AppContext) -> Vec<Value> {
    let Some(bindings) = context.extension::<Bindings>() else {
        return Vec::new();
    };
    let inputs = bindings.inputs().map(|input| input_json(input));
    let outputs = bindings.outputs().map(|output| output_json(output));
    inputs.chain(outputs).collect()
}

fn input_json(input: &InputBinding) -> Value {
    let state = input.state();
    let mut json = json!({
        "bindingName": input.spec.binding,
        "name": input.spec.destinations.join(","),
        "group": input.spec.group,
        "pausable": true,
        "state": state,
        "paused": state == InputState::Paused,
        "binderType": input.binder_kind(),
        "input": true,
    });
    if let Some(error) = input.error() {
        json["error"] = json!(error);
    }
    json
}

fn output_json(output: &OutputBinding) -> Value {
    let state = match (&output.parts.producer, output.is_open()) {
        (None, _) => InputState::Disabled,
        (Some(_), true) => InputState::Running,
        (Some(_), false) => InputState::Stopped,
    };
    json!({
        "bindingName": output.name(),
        "name": output.parts.destination,
        "group": null,
        "pausable": false,
        "state": state,
        "paused": false,
        "binderType": output.parts.binder_kind,
        "input": false,
    })
}
