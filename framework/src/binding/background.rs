//! Sends that nobody has to wait for, and what is done about those that fail.
//!
//! ```text
//! post · send on an asynchronous output ─▶ a task of the output ─┬─ stored ─▶ the caller, if it still waits
//!                                                                └─ failed ─▶ error handlers ─▶ the caller, else the log
//! ```

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio_util::task::TaskTracker;

use super::error::SendError;
use super::output::{OutputBinding, Prepared};
use super::receipt::SendReceipt;
use crate::error_handler::{Failure, Outcome};
use crate::handler::Delivery;
use crate::pipeline::Chain;

/// Sends of one output that may be under way in the background; as many as the client allows of its own.
const MAX_IN_FLIGHT: usize = 10_000;

/// The sends of one output that are under way in the background.
#[derive(Debug)]
pub(super) struct Background {
    places: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Default for Background {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            tasks: TaskTracker::new(),
        }
    }
}

impl Background {
    /// Takes no more sends, and waits for those under way.
    pub(super) async fn finish(&self, grace: Duration) {
        self.places.close();
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                sends = self.tasks.len(),
                "sends not finished in time; what they bring is not looked at"
            );
        }
    }
}

impl OutputBinding {
    /// Starts a send that goes on whether or not somebody waits for what it brings.
    pub(super) fn start(
        self: &Arc<Self>,
        prepared: Prepared,
    ) -> Result<oneshot::Receiver<Result<SendReceipt, SendError>>, SendError> {
        let places = &self.background.places;
        let Ok(place) = Arc::clone(places).try_acquire_owned() else {
            return Err(if places.is_closed() {
                self.closed()
            } else {
                SendError::TooManyInFlight {
                    binding: self.name().to_owned(),
                    limit: MAX_IN_FLIGHT,
                }
            });
        };
        let (tell, hear) = oneshot::channel();
        let output = Arc::clone(self);
        self.background.tasks.spawn(async move {
            let _place = place;
            let sent = match output.send_unreported(&prepared).await {
                Err(error) => Err(output.report(&prepared, error).await),
                stored => stored,
            };
            if let Err(Err(unheard)) = tell.send(sent)
                && output.parts.errors.is_empty()
            {
                let keys: Vec<&str> = prepared.message.headers().keys().collect();
                tracing::error!(binding = output.name(), ?keys, error = %Chain(&unheard),
                    "message not sent, and nobody waits for it");
            }
        });
        Ok(hear)
    }

    /// Lets the error handlers see why a message was not sent. What they decide is theirs; the caller gets its error.
    pub(super) async fn report(&self, prepared: &Prepared, error: SendError) -> SendError {
        let Some(context) = self.context.get().and_then(Weak::upgrade) else {
            return error;
        };
        let error = Arc::new(error);
        let message = prepared.message.clone();
        let failure = Failure::of_output(self.name(), message, Arc::clone(&error));
        let delivery = Delivery {
            binding: self.name().into(),
            topic: self.parts.destination.as_str().into(),
            content_type: self.parts.content_type.as_str().into(),
            ..Delivery::default()
        };
        let outcome = self
            .parts
            .errors
            .handle(&failure, &delivery, &context)
            .await;
        drop(failure);
        if outcome == Outcome::Rethrown {
            tracing::error!(binding = self.name(), error = %Chain(&*error), "message not sent");
        }
        // A handler that has kept the failure keeps the error too.
        Arc::try_unwrap(error).unwrap_or_else(SendError::Shared)
    }
}
