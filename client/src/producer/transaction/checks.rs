//! Answering brokers that ask what became of a half message.
//!
//! ```text
//! 39 ─▶ free place? ─ no ─▶ dropped: the broker asks again
//!            └ yes ─▶ waits for a worker ─▶ check_local ─▶ 37 to the broker that asked
//! ```
use std::{error::Error as _, fmt, sync::Arc, time::Duration};

use bindery_protocol::{
    codes::RequestCode,
    frame::Request,
    headers::{CheckTransactionHeader, EndTransactionHeader},
};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::listener::{Listening, LocalState};
use crate::{MessageExt, instance::Shared};

/// Limits of the checks of a producer.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckLimits {
    pub(super) workers: usize,
    pub(super) queue: usize,
    pub(super) grace: Duration,
}

/// The checks of one transaction producer.
pub(crate) struct Checks {
    listener: Arc<dyn Listening>,
    limits: CheckLimits,
    /// Running and waiting checks.
    places: Arc<Semaphore>,
    workers: Semaphore,
    /// No new checks; those that wait for a worker are dropped.
    closing: CancellationToken,
    /// Running ones are dropped too.
    kill: CancellationToken,
    tasks: TaskTracker,
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A broker's question.
#[derive(Debug)]
pub(crate) struct Question {
    /// Producer group, with the namespace.
    pub(crate) group: String,
    /// Who asked, and gets the answer.
    pub(crate) addr: String,
    /// With the message's places in the half queue and the log, which the answer repeats.
    pub(crate) header: CheckTransactionHeader<'static>,
    pub(crate) message: MessageExt,
}

impl Checks {
    pub(super) fn new(listener: Arc<dyn Listening>, limits: CheckLimits) -> Self {
        Self {
            listener,
            limits,
            places: Arc::new(Semaphore::new(limits.workers + limits.queue)),
            workers: Semaphore::new(limits.workers),
            closing: CancellationToken::new(),
            kill: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn listener(&self) -> &dyn Listening {
        &*self.listener
    }

    /// Stops taking questions when it is cancelled.
    pub(super) fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// Takes a question, or drops it when too many wait already.
    pub(crate) fn take(self: &Arc<Self>, client: Arc<Shared>, question: Question) {
        if self.closing.is_cancelled() {
            return;
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            tracing::warn!(
                group = question.group,
                limit = self.limits.queue,
                "transaction check dropped: too many are waiting, the broker asks again"
            );
            return;
        };
        let checks = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = checks.kill.cancelled() => {}
                () = checks.answer(&client, question) => {}
            }
            drop(place);
        });
    }

    async fn answer(&self, client: &Shared, question: Question) {
        let worker = tokio::select! {
            biased;
            () = self.closing.cancelled() => return,
            worker = self.workers.acquire() => worker,
        };
        // The semaphore is never closed.
        let Ok(_worker) = worker else { return };
        let Question {
            group,
            addr,
            header,
            message,
        } = question;
        let checked = self.listener.check(&message).await;
        let state = checked.unwrap_or_else(|error| {
            let cause = error.source().map(ToString::to_string);
            tracing::warn!(group, msg_id = message.msg_id(), %error, cause, "outcome of a transaction unknown");
            LocalState::Unknown
        });
        tracing::debug!(
            group,
            msg_id = message.msg_id(),
            ?state,
            "transaction checked"
        );
        let answer = EndTransactionHeader {
            topic: header.topic,
            producer_group: (&*group).into(),
            tran_state_table_offset: header.tran_state_table_offset,
            commit_log_offset: header.commit_log_offset,
            commit_or_rollback: state.wire(),
            from_transaction_check: true,
            msg_id: message.msg_id().into(),
            transaction_id: header.transaction_id,
        };
        let request = Request::new(RequestCode::END_TRANSACTION).with(&answer);
        let told = client.tell(&addr, request, client.config.call_timeout);
        if let Err(error) = told.await {
            tracing::warn!(group, addr, %error, "outcome of a transaction not told: the broker asks again");
        }
    }

    /// Takes no more questions and lets the running ones end, for at most the grace.
    pub(crate) async fn shutdown(&self, client: &Shared) {
        self.closing.cancel();
        self.tasks.close();
        tokio::select! {
            biased;
            () = self.tasks.wait() => {}
            () = client.config.clock.sleep(self.limits.grace) => {
                tracing::warn!("transaction checks still running at the end of the grace are dropped");
                self.kill.cancel();
                self.tasks.wait().await;
            }
        }
    }
}
