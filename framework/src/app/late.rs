//! Binding, also while the broker is away: what cannot be bound at the start is tried again until it is.
//!
//! ```text
//! destinations ─▶ partitions of outputs ─▶ inputs ──┬─ all there ─▶ done
//!      ▲                                            └─ broker away ─▶ pause 1 s, 2 s, … binding-retry-interval ─┐
//!      └────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! Meanwhile partitioned outputs refuse sends with an error that passes, and `health/readiness` answers 503.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::binder::{Binder, BinderError, Destination};
use crate::binding::{BindError, InputBinding, OutputBinding};
use crate::config::BindingConfig;
use crate::error::{Error, Result};
use crate::partition::{PartitionCode, Partitioning};
use crate::pipeline::Chain;

/// The pause after the first attempt; doubled from then on.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What is to be bound, binder by binder.
#[derive(Debug, Default)]
pub(super) struct ToBind {
    pub(super) binders: Vec<OfBinder>,
}

/// What is to be bound at one binder.
#[derive(Debug)]
pub(super) struct OfBinder {
    pub(super) kind: String,
    pub(super) binder: Arc<dyn Binder>,
    /// To be created if they are absent; empty when that is done.
    pub(super) destinations: Vec<Destination>,
    pub(super) outputs: Vec<Partitioned>,
    pub(super) inputs: Vec<Arc<InputBinding>>,
}

/// An output whose partitions have to be counted.
#[derive(Debug)]
pub(super) struct Partitioned {
    pub(super) output: Arc<OutputBinding>,
    pub(super) config: BindingConfig,
    pub(super) code: PartitionCode,
}

impl ToBind {
    /// Creates the destinations.
    pub(super) async fn declare(&mut self) -> Result<()> {
        for one in &mut self.binders {
            one.declare().await?;
        }
        Ok(())
    }

    /// Binds what is not bound yet; the first thing that fails ends the attempt.
    pub(super) async fn bind(&mut self) -> Result<()> {
        for one in &mut self.binders {
            one.declare().await?;
            one.count().await?;
            one.start().await?;
        }
        Ok(())
    }

    /// Lets every input that is not bound yet show why.
    fn show(&self, error: &Error) {
        let text = Chain(error).to_string();
        for input in self.binders.iter().flat_map(|one| &one.inputs) {
            input.wait_because(&text);
        }
    }

    /// Tries again until everything is bound, with pauses of up to `longest`, or until something fails for good.
    pub(super) async fn go_on(mut self, mut error: Error, longest: Duration) {
        let mut pause = FIRST_PAUSE;
        loop {
            self.show(&error);
            tracing::warn!(error = %Chain(&error), again_in = ?pause.min(longest), "not bound yet: the broker is away");
            tokio::time::sleep(pause.min(longest)).await;
            pause = pause.saturating_mul(2);
            match self.bind().await {
                Ok(()) => {
                    tracing::info!("the broker is there: everything is bound");
                    return;
                }
                Err(other) if passes(&other) => error = other,
                Err(permanent) => {
                    self.show(&permanent);
                    tracing::error!(error = %Chain(&permanent), "not bound, and no further attempt will help");
                    return;
                }
            }
        }
    }
}

impl OfBinder {
    async fn declare(&mut self) -> Result<()> {
        if !self.destinations.is_empty() {
            self.binder.declare(&self.destinations).await?;
            self.destinations.clear();
        }
        Ok(())
    }

    async fn count(&mut self) -> Result<()> {
        while let Some(Partitioned {
            output,
            config,
            code,
        }) = self.outputs.last()
        {
            if let Some(producer) = &output.parts.producer {
                let queues = producer
                    .partitions()
                    .await
                    .map_err(|source| BindError::Send {
                        binding: config.name.clone(),
                        source: Box::new(source),
                    })?;
                output.partition(Partitioning::new(config, code.clone(), queues)?);
            }
            self.outputs.pop();
        }
        Ok(())
    }

    /// Starts all inputs at the same time.
    async fn start(&mut self) -> Result<()> {
        let mut starting = JoinSet::new();
        for input in std::mem::take(&mut self.inputs) {
            starting.spawn(async move { (input.start().await, input) });
        }
        let mut first = Ok(());
        while let Some(joined) = starting.join_next().await {
            let (started, input) = joined.map_err(|source| Error::User(Box::new(source)))?;
            if let Err(source) = started {
                let binding = input.spec.binding.clone();
                self.inputs.push(input);
                first = first.and(Err(BindError::Binder { binding, source }.into()));
            }
        }
        first
    }
}

/// Whether another attempt may succeed: the broker did not play along, and nothing is wrong with the bindings themselves.
pub(super) fn passes(error: &Error) -> bool {
    match error {
        Error::Binder(BinderError::Broker { .. })
        | Error::Bind(BindError::Binder {
            source: BinderError::Broker { .. },
            ..
        }) => true,
        Error::Bind(BindError::Send { source, .. }) => source.is_retryable(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
