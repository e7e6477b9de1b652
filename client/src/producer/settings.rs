//! Settings of a producer.
use std::time::Duration;

use super::DEFAULT_RETRY_CODES;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) timeout: Duration,
    pub(crate) retries: usize,
    pub(crate) async_retries: usize,
    pub(crate) retry_codes: Vec<i32>,
    pub(crate) retry_when_not_stored_ok: bool,
    pub(crate) compress_over: Option<usize>,
    pub(crate) max_message_size: usize,
    pub(crate) default_topic_queues: i32,
    pub(crate) avoid_faulty_brokers: bool,
    pub(crate) topics: Vec<String>,
    pub(crate) max_in_flight: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(3),
            retries: 2,
            async_retries: 2,
            retry_codes: DEFAULT_RETRY_CODES.to_vec(),
            retry_when_not_stored_ok: false,
            compress_over: Some(4096),
            max_message_size: 4 << 20,
            default_topic_queues: 4,
            avoid_faulty_brokers: false,
            topics: Vec::new(),
            max_in_flight: 10_000,
        }
    }
}
