//! Settings of a push consumer, checked once at its start.
use std::time::Duration;

use super::{Allocation, ConsumeFrom, FilterExpression, MessageModel, queue_state::CacheLimits};
use crate::ClientError;

/// Retries of a concurrent consumer unless set.
const DEFAULT_RECONSUME_TIMES: i32 = 16;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) subscriptions: Vec<(String, FilterExpression)>,
    pub(crate) from: ConsumeFrom,
    pub(crate) start_like_java: bool,
    pub(crate) reset_on_start: bool,
    pub(crate) model: MessageModel,
    pub(crate) strategy: Allocation,
    pub(crate) concurrency: usize,
    pub(crate) batch_size: usize,
    pub(crate) pull_batch_size: i32,
    pub(crate) pull_interval: Duration,
    pub(crate) limits: CacheLimits,
    pub(crate) max_reconsume_times: Option<i32>,
    pub(crate) delay_level: i32,
    pub(crate) suspend: Duration,
    pub(crate) consume_timeout: Duration,
    pub(crate) grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            subscriptions: Vec::new(),
            from: ConsumeFrom::default(),
            start_like_java: false,
            reset_on_start: false,
            model: MessageModel::default(),
            strategy: Allocation::default(),
            concurrency: 20,
            batch_size: 1,
            pull_batch_size: 32,
            pull_interval: Duration::ZERO,
            limits: CacheLimits {
                messages: 1000,
                bytes: 100 << 20,
                span: 2000,
            },
            max_reconsume_times: None,
            delay_level: 0,
            suspend: Duration::from_secs(1),
            consume_timeout: Duration::from_secs(15 * 60),
            grace: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// What the header of a send-back says.
    pub(crate) fn concurrent_retries(&self) -> i32 {
        self.max_reconsume_times
            .filter(|times| *times >= 0)
            .unwrap_or(DEFAULT_RECONSUME_TIMES)
    }

    /// Attempts in place before a message of an orderly queue becomes a dead letter.
    pub(crate) fn orderly_retries(&self) -> i32 {
        self.max_reconsume_times
            .filter(|times| *times >= 0)
            .unwrap_or(i32::MAX)
    }

    pub(crate) fn check(&self) -> Result<(), ClientError> {
        let range = |setting: &'static str, ok: bool, problem: &str| {
            if ok {
                Ok(())
            } else {
                Err(ClientError::Config {
                    setting,
                    problem: problem.to_owned(),
                })
            }
        };
        range(
            "subscription",
            !self.subscriptions.is_empty(),
            "the consumer subscribes to nothing",
        )?;
        range(
            "concurrency",
            (1..=1000).contains(&self.concurrency),
            "out of range [1, 1000]",
        )?;
        range(
            "batch size",
            (1..=1024).contains(&self.batch_size),
            "out of range [1, 1024]",
        )?;
        range(
            "pull batch size",
            (1..=1024).contains(&self.pull_batch_size),
            "out of range [1, 1024]",
        )?;
        range(
            "pull interval",
            self.pull_interval <= Duration::from_millis(65_535),
            "out of range [0, 65535] ms",
        )?;
        range(
            "max cached messages",
            (1..=65_535).contains(&self.limits.messages),
            "out of range [1, 65535]",
        )?;
        range(
            "max cached bytes",
            self.limits.bytes > 0,
            "must be positive",
        )?;
        range(
            "max span",
            (1..=65_535).contains(&self.limits.span),
            "out of range [1, 65535]",
        )?;
        range(
            "consume timeout",
            !self.consume_timeout.is_zero(),
            "must be positive",
        )?;
        if let Allocation::ConsistentHash { places } = self.strategy {
            range(
                "places on the hash ring",
                (1..=10_000).contains(&places),
                "out of range [1, 10000]",
            )?;
        }
        self.subscriptions
            .iter()
            .try_for_each(|(_, filter)| filter.tag_set().map(drop))
    }
}
