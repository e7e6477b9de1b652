//! How a transaction producer is set up.
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use super::{
    Inner, TransactionListener, TransactionProducer,
    checks::{CheckLimits, Checks},
    listener::Listening,
};
use crate::{ClientError, ProducerBuilder};

/// Settings of a [`TransactionProducer`] beside those of sending.
pub struct TransactionProducerBuilder {
    sending: ProducerBuilder,
    listener: Arc<dyn Listening>,
    limits: CheckLimits,
    await_end: bool,
}

impl std::fmt::Debug for TransactionProducerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            sending,
            limits,
            await_end,
            listener: _,
        } = self;
        f.debug_struct("TransactionProducerBuilder")
            .field("sending", sending)
            .field("limits", limits)
            .field("await_end", await_end)
            .finish_non_exhaustive()
    }
}

impl TransactionProducerBuilder {
    pub(in crate::producer) fn new(
        sending: ProducerBuilder,
        listener: impl TransactionListener,
    ) -> Self {
        let limits = CheckLimits {
            workers: 8,
            queue: 2000,
            grace: Duration::from_secs(30),
        };
        Self {
            sending,
            listener: Arc::new(listener),
            limits,
            await_end: false,
        }
    }

    /// Checks that may run at a time; 8 (Java: 1).
    #[must_use]
    pub fn check_workers(mut self, checks: usize) -> Self {
        self.limits.workers = checks;
        self
    }

    /// Checks that may wait for a worker; 2000. Further ones are dropped: the broker asks again.
    #[must_use]
    pub fn check_queue(mut self, checks: usize) -> Self {
        self.limits.queue = checks;
        self
    }

    /// Whether the outcome is told to the broker by a request that is answered, and tried again if it fails; off: as in Java it is
    /// sent without waiting, and the broker asks if it got lost.
    #[must_use]
    pub fn await_end(mut self, wait: bool) -> Self {
        self.await_end = wait;
        self
    }

    /// How long a shutdown waits for running checks; 30 s.
    #[must_use]
    pub fn shutdown_grace(mut self, limit: Duration) -> Self {
        self.limits.grace = limit;
        self
    }

    /// Starts the producer. Brokers of the topics given by [`ProducerBuilder::topics`] hear of it before this returns, so that they
    /// can ask it about the transactions of its predecessors although it has sent nothing yet.
    ///
    /// # Errors
    /// Those of [`ProducerBuilder::start`], and a number of workers or waiting checks above 1,000,000, or no worker.
    pub async fn start(self) -> Result<TransactionProducer, ClientError> {
        let Self {
            sending,
            listener,
            limits,
            await_end,
        } = self;
        for (setting, number, least) in [
            ("check_workers", limits.workers, 1),
            ("check_queue", limits.queue, 0),
        ] {
            if !(least..=1_000_000).contains(&number) {
                return Err(ClientError::Config {
                    setting,
                    problem: format!("{number} is not between {least} and 1000000"),
                });
            }
        }
        let checks = Arc::new(Checks::new(listener, limits));
        let producer = sending.start_with(Some(Arc::clone(&checks))).await?;
        let stop = checks.closing().drop_guard();
        let inner = Inner {
            producer,
            checks,
            await_end,
            stopped: AtomicBool::new(false),
            _stop_with_the_last: stop,
        };
        Ok(TransactionProducer {
            inner: Arc::new(inner),
        })
    }
}
