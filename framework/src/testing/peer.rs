//! Parts of a test's view: other instances, queues, the actuator, outputs of the test's own.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::http::Request;
use serde_json::Value;
use tower::ServiceExt;

use crate::AppHandle;
use crate::actuator;
use crate::binder::{Audience, Binder, ProducerSpec};
use crate::binding::{OutputBinding, OutputParts, SendError, Waiting};
use crate::config::{BindingConfig, Config, Loaded, ProducerType};
use crate::error_handler::ErrorHandlers;

/// Bodies of the actuator are read up to this many bytes.
const BODY_LIMIT: usize = 16 * 1024 * 1024;

/// A second instance of the application under test.
#[derive(Debug)]
pub struct Instance {
    app: AppHandle,
}

impl Instance {
    pub(super) fn new(app: AppHandle) -> Self {
        Self { app }
    }

    /// The running application.
    #[must_use]
    pub fn app(&self) -> &AppHandle {
        &self.app
    }

    /// Stops it in order: its queues go to the instances that stay.
    ///
    /// # Panics
    /// When it does not stop in order.
    pub async fn leave(self) {
        if let Err(error) = self.app.shutdown().await {
            panic!(
                "the instance did not stop in order: {}",
                crate::pipeline::Chain(&error)
            );
        }
    }
}

/// Queues that the inputs of this instance have.
pub(super) async fn assigned(app: &AppHandle) -> usize {
    let mut count = 0;
    for input in app.bindings().inputs() {
        if let Some(consumer) = input.consumer() {
            count += consumer.assignment().await.len();
        }
    }
    count
}

/// Whether there is an input whose queues are shared with other instances.
pub(super) fn shares(app: &AppHandle) -> bool {
    let mut inputs = app.bindings().inputs();
    inputs.any(|input| input.spec.audience == Audience::Shared && input.consumer().is_some())
}

/// An output to `topic`, encoding as the binding `name` does.
pub(super) async fn open_output(
    loaded: &Loaded,
    binder: &dyn Binder,
    name: &str,
    topic: &str,
) -> Result<OutputBinding, SendError> {
    let spec = ProducerSpec {
        binding: format!("test-to-{name}"),
        destination: topic.to_owned(),
        ordered: false,
        transaction: None,
    };
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| SendError::Client(source);
    let producer = binder.bind_producer(spec).await;
    let producer = producer.map_err(|source| failed(source.into()))?;
    let config = &loaded.config;
    let content_type = config
        .bindings
        .get(name)
        .map(|binding: &BindingConfig| binding.content_type.as_str());
    Ok(OutputBinding::new(OutputParts {
        name: name.to_owned(),
        destination: topic.to_owned(),
        content_type: content_type
            .and_then(|text| text.parse().ok())
            .unwrap_or_default(),
        binder_kind: binder.kind(),
        producer_type: ProducerType::Normal,
        partitioning: None,
        transaction: None,
        errors: ErrorHandlers::default(),
        waiting: Waiting::Alone,
        grace: Duration::ZERO,
        producer: Some(producer),
    }))
}

/// Asks the actuator of an application, all of whose endpoints are exposed.
pub(super) async fn actuator(
    app: &AppHandle,
    config: &Config,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let mut config = config.clone();
    config.management.include = vec!["*".to_owned()];
    config.management.exclude = Vec::new();
    let base = config.management.base_path.trim_end_matches('/').to_owned();
    let binders: BTreeMap<_, _> = app.binders().clone();
    let routes = actuator::routes(&config, &binders).layer(Extension(app.context().clone()));
    let path = path.trim_start_matches('/');
    let request = Request::builder()
        .method(method)
        .uri(format!("{base}/{path}"))
        .header("content-type", "application/json")
        .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())));
    let request = request.unwrap_or_else(|error| panic!("`{path}` is no path: {error}"));
    let answer = match routes.oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    let status = answer.status().as_u16();
    let body = axum::body::to_bytes(answer.into_body(), BODY_LIMIT).await;
    let body = body.unwrap_or_default();
    let value = serde_json::from_slice(&body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
    (status, value)
}
