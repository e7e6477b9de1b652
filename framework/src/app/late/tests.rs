//! Applications that start before their broker.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use super::*;
use crate::binder::memory::MemoryBinder;
use crate::binder::{Capabilities, ConsumerBinding, ConsumerSpec, Deliver, Health};
use crate::binder::{ProducerBinding, ProducerSpec};
use crate::binding::{InputState, SendError};
use crate::config::LoadOptions;
use crate::registry::Handler;
use crate::{App, AppHandle};

/// The memory binder, behind a door.
#[derive(Clone)]
struct Away {
    memory: MemoryBinder,
    away: Arc<AtomicBool>,
}

impl Away {
    fn check(&self) -> Result<(), BinderError> {
        if !self.away.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(BinderError::Broker {
            action: "reaching",
            subject: "the broker".to_owned(),
            source: "nobody there".into(),
        })
    }
}

#[async_trait]
impl Binder for Away {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    async fn declare(&self, destinations: &[Destination]) -> Result<(), BinderError> {
        self.check()?;
        self.memory.declare(destinations).await
    }

    async fn bind_consumer(
        &self,
        spec: ConsumerSpec,
        sink: Arc<dyn Deliver>,
    ) -> Result<Arc<dyn ConsumerBinding>, BinderError> {
        self.check()?;
        self.memory.bind_consumer(spec, sink).await
    }

    async fn bind_producer(
        &self,
        spec: ProducerSpec,
    ) -> Result<Arc<dyn ProducerBinding>, BinderError> {
        self.memory.bind_producer(spec).await
    }

    async fn health(&self) -> Health {
        self.memory.health().await
    }

    async fn shutdown(&self) -> Result<(), BinderError> {
        self.memory.shutdown().await
    }
}

async fn start(more: &str) -> (Away, crate::Result<AppHandle>) {
    async fn ignore() {}
    let config = "
spring.cloud.stream:
  default-binder: memory
  default.consumer.max-attempts: 1
  bindings:
    input: { destination: orders, group: group }
    output: { destination: orders, producer.partition-key-expression: hashCode() }
";
    let binder = Away {
        memory: MemoryBinder::new(),
        away: Arc::new(AtomicBool::new(true)),
    };
    let started = App::builder()
        .options(LoadOptions::from_text(format!("{config}\n---\n{more}\n")))
        .without_inventory()
        .binder("memory", Arc::new(binder.clone()))
        .output("output")
        .handler(Handler::listen("input").to(ignore))
        .start()
        .await;
    (binder, started)
}

#[tokio::test(start_paused = true)]
async fn an_application_starts_before_its_broker_and_binds_when_that_comes() {
    let (binder, app) = start("").await;
    let app = app.unwrap();
    let input = app.input("input").unwrap();
    // Long enough for the pauses to have reached the interval.
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(input.state(), InputState::Stopped);
    let refused = app.bridge().send("output", 1).await.unwrap_err();
    assert!(
        matches!(refused, SendError::NotBound { .. }) && refused.is_retryable(),
        "{refused}"
    );
    binder.away.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(input.state(), InputState::Running);
    app.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_application_that_still_waits_can_be_stopped() {
    let (_, app) = start("").await;
    app.unwrap().shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_an_interval_the_first_failure_ends_the_start() {
    let (_, app) = start("spring.cloud.stream.binding-retry-interval: 0").await;
    let error = app.unwrap_err();
    assert!(
        matches!(error, Error::Binder(BinderError::Broker { .. })),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_binding_itself_ends_the_start_at_once() {
    let count = "spring.cloud.stream.bindings.output.producer.partition-count: 900";
    let binder = MemoryBinder::new();
    let config = format!(
        "
spring.cloud.stream:
  default-binder: memory
  bindings.output: {{ destination: orders, producer.partition-key-expression: hashCode() }}
---
{count}
"
    );
    let app = App::builder()
        .options(LoadOptions::from_text(config))
        .without_inventory()
        .binder("memory", Arc::new(binder))
        .output("output")
        .start()
        .await;
    let error = app.unwrap_err();
    assert!(
        matches!(error, Error::Bind(BindError::PartitionCount { .. })),
        "{error:?}"
    );
}
