//! The actuator: what an application tells operators over HTTP.
//!
//! ```text
//! GET /actuator/health ──▶ every binder asked ──▶ 200 UP · 503 DOWN
//! GET /actuator/bindings[/name] ──▶ the bindings with their state, as Spring Cloud Stream prints them
//! ```
//!
//! Which endpoints exist is said by `management.endpoints.web.exposure`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde_json::{Value, json};

use crate::binder::{Binder, Health};
use crate::binding::{Bindings, InputBinding, InputState, OutputBinding};
use crate::config::{Config, ShowDetails};
use crate::handler::AppContext;

/// What the endpoints look at.
#[derive(Clone)]
struct Looked {
    binders: Arc<BTreeMap<String, Arc<dyn Binder>>>,
    details: bool,
}

pub(crate) fn routes(config: &Config, binders: &BTreeMap<String, Arc<dyn Binder>>) -> Router {
    let management = &config.management;
    let looked = Looked {
        binders: Arc::new(binders.clone()),
        details: management.show_details == ShowDetails::Always,
    };
    let base = management.base_path.trim_end_matches('/');
    let mut router = Router::new();
    if management.exposes("health") {
        router = router.route(&format!("{base}/health"), get(health));
    }
    if management.exposes("bindings") {
        router = router
            .route(&format!("{base}/bindings"), get(bindings))
            .route(&format!("{base}/bindings/{{name}}"), get(binding));
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

async fn bindings(Extension(context): Extension<Arc<AppContext>>) -> Json<Value> {
    Json(Value::Array(all(&context)))
}

async fn binding(
    Path(name): Path<String>,
    Extension(context): Extension<Arc<AppContext>>,
) -> (StatusCode, Json<Value>) {
    let named: Vec<Value> = all(&context)
        .into_iter()
        .filter(|binding| binding["bindingName"] == name.as_str())
        .collect();
    if named.is_empty() {
        return (
            StatusCode::NOT_FOUND,
            Json(json!({ "error": format!("no binding `{name}`") })),
        );
    }
    (StatusCode::OK, Json(Value::Array(named)))
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
    json!({
        "bindingName": input.spec.binding,
        "name": input.spec.destinations.join(","),
        "group": input.spec.group,
        "pausable": true,
        "state": state,
        "paused": state == InputState::Paused,
        "binderType": input.binder_kind(),
        "input": true,
    })
}

fn output_json(output: &OutputBinding) -> Value {
    json!({
        "bindingName": output.name(),
        "name": output.parts.destination,
        "group": null,
        "pausable": false,
        "state": if output.parts.producer.is_some() { "running" } else { "disabled" },
        "paused": false,
        "binderType": output.parts.binder_kind,
        "input": false,
    })
}
