//! The handle of one input: pause, resume, what it has.
//!
//! ```text
//! stopped ◀──start/stop──▶ running ◀──pause/resume──▶ paused
//!    ▲────────────────────────stop───────────────────────┘
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::bindings::{Bindings, BoundField};
use super::error::BindError;
use crate::binder::{AssignedQueue, Binder, BinderError, ConsumerBinding, ConsumerSpec, Deliver};
use crate::pipeline::Chain;

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

/// What an operator wants of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum BindingChange {
    /// Takes messages: a new consumer, from the committed positions.
    Started,
    /// Takes none, and its queues go to others; running handlers finish.
    Stopped,
    /// Takes none, and keeps its queues.
    Paused,
    /// Takes messages again.
    Resumed,
}

/// Why a binding is not where an operator wants it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The way is not there: only what runs can be paused, only what is paused can be resumed, and what is disabled by
    /// configuration stays so.
    #[error("a {from} binding cannot be {}", wanted.past())]
    Impossible {
        /// What the binding does now.
        from: InputState,
        /// What was asked for.
        wanted: BindingChange,
    },
    /// The binder failed.
    #[error("the binder failed")]
    Failed(#[source] BinderError),
}

impl BindingChange {
    fn past(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
        }
    }
}

impl fmt::Display for InputState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
        })
    }
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

impl Input {
    /// Starts, stops, pauses or resumes the input; without effect when that is what it does already.
    ///
    /// # Errors
    /// [`ChangeError`]: there is no way from its state, or the binder failed.
    pub async fn change(&self, wanted: BindingChange) -> Result<(), ChangeError> {
        self.binding.change(wanted).await
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
    /// Held over a whole change of state: two operators do one after the other.
    changing: tokio::sync::Mutex<()>,
}

struct Current {
    state: InputState,
    consumer: Option<Arc<dyn ConsumerBinding>>,
    /// Where messages go, kept for a start after a stop.
    sink: Option<Arc<dyn Deliver>>,
    /// Why the input could not be started, while that is so.
    error: Option<String>,
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
                sink: None,
                error: None,
            }),
            changing: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn state(&self) -> InputState {
        self.lock().state
    }

    /// Why the input could not be started, while that is so.
    pub(crate) fn error(&self) -> Option<String> {
        self.lock().error.clone()
    }

    pub(crate) fn binder_kind(&self) -> &'static str {
        self.binder.kind()
    }

    /// Says where messages go when the input is started.
    pub(crate) fn connect(&self, sink: Arc<dyn Deliver>) {
        self.lock().sink = Some(sink);
    }

    /// Says why the input waits to be started.
    pub(crate) fn wait_because(&self, reason: &str) {
        self.lock().error = Some(reason.to_owned());
    }

    /// Starts the input unless it runs, is paused, or is disabled.
    pub(crate) async fn start(&self) -> Result<(), BinderError> {
        let _one_at_a_time = self.changing.lock().await;
        self.bind().await
    }

    async fn bind(&self) -> Result<(), BinderError> {
        let sink = {
            let current = self.lock();
            if current.state != InputState::Stopped {
                return Ok(());
            }
            current.sink.clone()
        };
        let Some(sink) = sink else {
            return Err(BinderError::Closed);
        };
        let bound = self.binder.bind_consumer(self.spec.clone(), sink).await;
        let mut current = self.lock();
        match bound {
            Ok(consumer) => {
                current.consumer = Some(consumer);
                current.state = InputState::Running;
                current.error = None;
                Ok(())
            }
            Err(error) => {
                current.error = Some(Chain(&error).to_string());
                Err(error)
            }
        }
    }

    /// Goes where an operator wants it; nothing happens when it is there.
    ///
    /// # Errors
    /// There is no way from here to there, or the binder failed on it.
    pub(crate) async fn change(&self, wanted: BindingChange) -> Result<(), ChangeError> {
        let _one_at_a_time = self.changing.lock().await;
        let state = self.state();
        match (wanted, state) {
            (BindingChange::Started | BindingChange::Resumed, InputState::Running)
            | (BindingChange::Stopped, InputState::Stopped)
            | (BindingChange::Paused, InputState::Paused) => Ok(()),
            (BindingChange::Started, InputState::Stopped) => {
                self.bind().await.map_err(ChangeError::Failed)
            }
            (BindingChange::Stopped, InputState::Running | InputState::Paused) => {
                self.unbind().await.map_err(ChangeError::Failed)
            }
            (BindingChange::Paused, InputState::Running) => {
                self.pause().await;
                Ok(())
            }
            (BindingChange::Resumed, InputState::Paused) => {
                self.resume().await;
                Ok(())
            }
            _ => Err(ChangeError::Impossible {
                from: state,
                wanted,
            }),
        }
    }

    pub(crate) async fn stop(&self) -> Result<(), BinderError> {
        let _one_at_a_time = self.changing.lock().await;
        // The application stops: nothing starts it again.
        self.lock().sink = None;
        self.unbind().await
    }

    async fn unbind(&self) -> Result<(), BinderError> {
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
        if let Some(consumer) = self.switch(InputState::Running, InputState::Paused) {
            consumer.pause().await;
        }
    }

    pub(crate) async fn resume(&self) {
        if let Some(consumer) = self.switch(InputState::Paused, InputState::Running) {
            consumer.resume().await;
        }
    }

    pub(crate) fn consumer(&self) -> Option<Arc<dyn ConsumerBinding>> {
        self.lock().consumer.clone()
    }

    /// Goes from one state to another; `None` when the input is in neither, so that nothing is to be done.
    fn switch(&self, from: InputState, to: InputState) -> Option<Arc<dyn ConsumerBinding>> {
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
