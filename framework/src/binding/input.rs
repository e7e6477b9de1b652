//! The handle of one input: pause, resume, what it has.
//!
//! ```text
//! created ──start──▶ running ◀──pause/resume──▶ paused
//!                       └────────stop────────┴──▶ stopped
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::bindings::{Bindings, BoundField};
use super::error::BindError;
use crate::binder::{AssignedQueue, Binder, BinderError, ConsumerBinding, ConsumerSpec, Deliver};

/// What an input does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InputState {
    /// Not started yet, or stopped.
    Stopped,
    /// Takes messages.
    Running,
    /// Keeps its queues but takes no messages.
    Paused,
    /// Switched off by `consumer.enabled: false`.
    Disabled,
}

/// A handle to one input, for programs that look at it or pause it. Cheap to clone.
///
/// ```
/// use bindery::prelude::*;
///
/// #[stream_listener("doc-input")]
/// async fn on_order(order: String) {}
///
/// # bindery::testing::entry::example("spring.cloud.stream.bindings: { doc-input: { destination: orders, group: g } }", |t| async move {
/// let input = t.app().input("doc-input").unwrap();
/// input.pause().await;
/// t.input("doc-input").send("tea").await;
/// t.settle().await;
/// assert!(t.calls("on_order").is_empty());
///
/// input.resume().await;
/// t.settle().await;
/// assert_eq!(t.calls("on_order").len(), 1);
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Input {
    binding: Arc<InputBinding>,
}

impl Input {
    /// Name of the binding.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.binding.spec.binding
    }

    /// What the input does now.
    #[must_use]
    pub fn state(&self) -> InputState {
        self.binding.state()
    }

    /// The queues that this process has now.
    pub async fn assignment(&self) -> Vec<AssignedQueue> {
        match self.binding.consumer() {
            Some(consumer) => consumer.assignment().await,
            None => Vec::new(),
        }
    }

    /// Takes no more messages until [`resume`](Self::resume); running handlers finish. Without effect unless running.
    pub async fn pause(&self) {
        self.binding.pause().await;
    }

    /// Takes messages again. Without effect unless paused.
    pub async fn resume(&self) {
        self.binding.resume().await;
    }
}

impl BoundField for Input {
    fn bind(bindings: &Bindings, name: &str) -> Result<Self, BindError> {
        Ok(Self {
            binding: bindings.input(name)?,
        })
    }
}

/// One input of the application, with its consumer once it runs.
pub(crate) struct InputBinding {
    pub(crate) spec: ConsumerSpec,
    binder: Arc<dyn Binder>,
    current: Mutex<Current>,
}

struct Current {
    state: InputState,
    consumer: Option<Arc<dyn ConsumerBinding>>,
}

impl InputBinding {
    pub(crate) fn new(spec: ConsumerSpec, binder: Arc<dyn Binder>, enabled: bool) -> Self {
        let state = if enabled {
            InputState::Stopped
        } else {
            InputState::Disabled
        };
        Self {
            spec,
            binder,
            current: Mutex::new(Current {
                state,
                consumer: None,
            }),
        }
    }

    pub(crate) fn state(&self) -> InputState {
        self.lock().state
    }

    pub(crate) fn binder_kind(&self) -> &'static str {
        self.binder.kind()
    }

    pub(crate) async fn start(&self, sink: Arc<dyn Deliver>) -> Result<(), BinderError> {
        if self.state() == InputState::Disabled {
            return Ok(());
        }
        let consumer = self.binder.bind_consumer(self.spec.clone(), sink).await?;
        let mut current = self.lock();
        current.consumer = Some(consumer);
        current.state = InputState::Running;
        Ok(())
    }

    pub(crate) async fn stop(&self) -> Result<(), BinderError> {
        let consumer = {
            let mut current = self.lock();
            if current.state != InputState::Disabled {
                current.state = InputState::Stopped;
            }
            current.consumer.take()
        };
        match consumer {
            Some(consumer) => consumer.stop().await,
            None => Ok(()),
        }
    }

    pub(crate) async fn pause(&self) {
        if let Some(consumer) = self.change(InputState::Running, InputState::Paused) {
            consumer.pause().await;
        }
    }

    pub(crate) async fn resume(&self) {
        if let Some(consumer) = self.change(InputState::Paused, InputState::Running) {
            consumer.resume().await;
        }
    }

    pub(crate) fn consumer(&self) -> Option<Arc<dyn ConsumerBinding>> {
        self.lock().consumer.clone()
    }

    /// Goes from one state to another; `None` when the input is in neither, so that nothing is to be done.
    fn change(&self, from: InputState, to: InputState) -> Option<Arc<dyn ConsumerBinding>> {
        let mut current = self.lock();
        if current.state != from {
            return None;
        }
        current.state = to;
        current.consumer.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        // The guarded code only assigns fields: a panic elsewhere cannot leave them half changed.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for InputBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputBinding")
            .field("spec", &self.spec)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
