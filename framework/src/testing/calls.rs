//! What handlers and transaction listeners were called with, and how it ended.
//!
//! ```text
//! pipeline ─▶ Recorded(handler) ─▶ handler        TestApp::calls ─▶ Vec<Call>
//!                    └─▶ Log ◀──────────────────────────┘
//! ```

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Received;
use crate::error::BoxError;
use crate::handler::{BoxFuture, ErasedHandler, HandlerResult, MessageContext, Verdict};
use crate::pace::Pace;
use crate::registry::Handler;
use crate::transaction::{HalfMessage, ListenerHandle, LocalState, TransactionListener, TxArgs};

/// Calls that are kept; of more the oldest are forgotten.
const CAPACITY: usize = 100_000;

/// One call of a handler: one attempt. Derefs to the message as the handler got it.
///
/// ```
/// use bindery::prelude::*;
///
/// #[stream_listener("doc-call")]
/// async fn third_time(redelivery: Redelivery) -> Outcome {
///     if redelivery.broker < 2 { Outcome::Retry } else { Outcome::Ack }
/// }
///
/// # bindery::testing::entry::example("spring.cloud.stream.bindings: { doc-call: { destination: orders, group: g } }", |t| async move {
/// t.input("doc-call").send("tea").await;
/// t.settle().await;
/// let calls = t.calls("third_time");
/// let redeliveries: Vec<u32> = calls.iter().map(|call| call.redeliveries()).collect();
/// assert_eq!(redeliveries, [0, 1, 2]);
/// assert_eq!(calls[1].at_millis() - calls[0].at_millis(), 10_000);
/// assert!(calls[2].is_handled());
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Call {
    handler: String,
    message: Received,
    attempt: u32,
    at_millis: i64,
    result: CallResult,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallResult {
    /// The handler still runs.
    Running,
    /// The message was handled.
    Handled,
    /// It was not.
    Failed {
        /// What the handler wants to become of the message.
        verdict: Verdict,
        /// Why.
        reason: String,
    },
}

impl Call {
    /// The handler's name.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.handler
    }

    /// The input.
    #[must_use]
    pub fn binding(&self) -> &str {
        &self.message.delivery().binding
    }

    /// The attempt within the delivery, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When the handler was called, in milliseconds since 1970 UTC of the test's clock.
    #[must_use]
    pub fn at_millis(&self) -> i64 {
        self.at_millis
    }

    /// How it ended.
    #[must_use]
    pub fn result(&self) -> &CallResult {
        &self.result
    }

    /// Whether the handler handled the message.
    #[must_use]
    pub fn is_handled(&self) -> bool {
        self.result == CallResult::Handled
    }
}

impl Deref for Call {
    type Target = Received;

    fn deref(&self) -> &Received {
        &self.message
    }
}

/// A question that a transaction listener was asked, with its answer. Derefs to the message.
#[derive(Debug, Clone)]
pub struct TxCall {
    listener: String,
    message: Received,
    transaction_id: String,
    args: Option<String>,
    at_millis: i64,
    answer: Result<LocalState, String>,
}

impl TxCall {
    /// The listener's name.
    #[must_use]
    pub fn listener(&self) -> &str {
        &self.listener
    }

    /// What the transaction is filed under.
    #[must_use]
    pub fn transaction_id(&self) -> &str {
        &self.transaction_id
    }

    /// The sender's argument, if it was a text.
    #[must_use]
    pub fn args(&self) -> Option<&str> {
        self.args.as_deref()
    }

    /// When it was asked, in milliseconds since 1970 UTC of the test's clock.
    #[must_use]
    pub fn at_millis(&self) -> i64 {
        self.at_millis
    }

    /// What it answered.
    ///
    /// # Errors
    /// The text of the listener's own error.
    pub fn answer(&self) -> Result<LocalState, &str> {
        match &self.answer {
            Ok(state) => Ok(*state),
            Err(text) => Err(text),
        }
    }
}

impl Deref for TxCall {
    type Target = Received;

    fn deref(&self) -> &Received {
        &self.message
    }
}

/// All calls of one application under test. A handle.
#[derive(Debug, Clone)]
pub(super) struct Log {
    pace: Pace,
    entries: Arc<Mutex<Entries>>,
}

#[derive(Debug, Default)]
struct Entries {
    forgotten: usize,
    calls: VecDeque<Call>,
    executed: VecDeque<TxCall>,
    checked: VecDeque<TxCall>,
}

/// Which of a listener's functions was called.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Execute,
    Check,
}

impl Log {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            entries: Arc::default(),
        }
    }

    /// `handler`, with its calls noted.
    pub(super) fn around(&self, handler: Handler) -> Handler {
        let log = self.clone();
        handler.around(|handler, inner| {
            Arc::new(Recorded {
                name: handler.name().to_owned(),
                inner,
                log,
            })
        })
    }

    /// `listener`, with its calls noted.
    pub(super) fn around_listener(&self, listener: ListenerHandle) -> ListenerHandle {
        let name = listener.name().to_owned();
        let recorded = RecordedListener {
            inner: listener,
            log: self.clone(),
        };
        ListenerHandle::new(name.as_str(), recorded)
    }

    pub(super) fn calls(&self, wanted: impl Fn(&Call) -> bool) -> Vec<Call> {
        let entries = self.lock();
        entries
            .calls
            .iter()
            .filter(|call| wanted(call))
            .cloned()
            .collect()
    }

    pub(super) fn executed(&self) -> Vec<TxCall> {
        self.lock().executed.iter().cloned().collect()
    }

    pub(super) fn checked(&self) -> Vec<TxCall> {
        self.lock().checked.iter().cloned().collect()
    }

    pub(super) fn pace(&self) -> &Pace {
        &self.pace
    }

    fn begin(&self, handler: &str, cx: &MessageContext<'_>) -> usize {
        let call = Call {
            handler: handler.to_owned(),
            message: Received::new(cx.message.clone()),
            attempt: cx.info.attempt,
            at_millis: self.pace.now_millis(),
            result: CallResult::Running,
        };
        let mut entries = self.lock();
        if entries.calls.len() == CAPACITY {
            entries.calls.pop_front();
            entries.forgotten += 1;
        }
        entries.calls.push_back(call);
        let number = entries.forgotten + entries.calls.len() - 1;
        drop(entries);
        self.pace.tell();
        number
    }

    fn end(&self, number: usize, result: &HandlerResult) {
        let result = match result {
            Ok(_) => CallResult::Handled,
            Err(failure) => CallResult::Failed {
                verdict: failure.verdict.clone(),
                reason: failure.to_string(),
            },
        };
        let mut entries = self.lock();
        let index = number.checked_sub(entries.forgotten);
        if let Some(call) = index.and_then(|index| entries.calls.get_mut(index)) {
            call.result = result;
        }
        drop(entries);
        self.pace.tell();
    }

    fn asked(
        &self,
        asked: Asked,
        listener: &str,
        half: &HalfMessage,
        args: Option<&TxArgs>,
        answer: &Result<LocalState, BoxError>,
    ) {
        let message: &crate::Message = half;
        let call = TxCall {
            listener: listener.to_owned(),
            message: Received::new(message.clone()),
            transaction_id: half.transaction_id().to_owned(),
            args: args.and_then(TxArgs::as_text).map(str::to_owned),
            at_millis: self.pace.now_millis(),
            answer: match answer {
                Ok(state) => Ok(*state),
                Err(error) => Err(error.to_string()),
            },
        };
        let mut entries = self.lock();
        let into = match asked {
            Asked::Execute => &mut entries.executed,
            Asked::Check => &mut entries.checked,
        };
        if into.len() == CAPACITY {
            into.pop_front();
        }
        into.push_back(call);
        drop(entries);
        self.pace.tell();
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handler with its log.
struct Recorded {
    name: String,
    inner: Arc<dyn ErasedHandler>,
    log: Log,
}

impl ErasedHandler for Recorded {
    fn call<'a>(&'a self, cx: MessageContext<'a>) -> BoxFuture<'a, HandlerResult> {
        Box::pin(async move {
            let number = self.log.begin(&self.name, &cx);
            let result = self.inner.call(cx).await;
            self.log.end(number, &result);
            result
        })
    }
}

/// A transaction listener with its log.
struct RecordedListener {
    inner: ListenerHandle,
    log: Log,
}

impl TransactionListener for RecordedListener {
    async fn execute_local(
        &self,
        half: &HalfMessage,
        args: &TxArgs,
    ) -> Result<LocalState, BoxError> {
        let answer = self.inner.execute(half, args).await;
        let name = self.inner.name();
        self.log
            .asked(Asked::Execute, name, half, Some(args), &answer);
        answer
    }

    async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        let answer = self.inner.check(half).await;
        let name = self.inner.name();
        self.log.asked(Asked::Check, name, half, None, &answer);
        answer
    }
}
