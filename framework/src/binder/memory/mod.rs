//! A binder inside the process: topics, queues, groups, redelivery, dead letters, delay, transactions; nothing survives
//! the process.
//!
//! ```text
//! MemoryProducer ─▶ Board::store ─▶ topic/queue ──take──▶ worker ─▶ Deliver
//!       │              ▲    ▲            ▲                   │
//!       │              │ delayed     %RETRY%group ◀── retry ─┤── ack: the position moves on
//!       └─▶ half ──────┘ outcome                             └── reject, or too often: %DLQ%group
//! ```
//!
//! It behaves like the broker that [`rocketmq`](super::rocketmq) speaks to, apart from persistence: members of a group
//! share queues by the same arithmetic, levels and ladders last as long, a message keeps its id. Chosen by
//! `default-binder: memory`; [`testing`](crate::testing) runs it in virtual time.

mod board;
mod consumer;
mod flow;
mod producer;
mod transactions;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bindery_client::{Allocation, MessageQueue};
use bindery_protocol::bodies;
use bindery_protocol::filter::FilterExpression;
use bindery_protocol::message::DelayLevels;
use bindery_protocol::names;

use self::board::{BROKER, Board};
use self::consumer::MemoryConsumer;
use self::producer::MemoryProducer;
use self::transactions::CheckTimes;
use super::rocketmq::allocation;
use super::{
    Binder, BinderError, Capabilities, ConsumerBinding, ConsumerSpec, Deliver, Destination, Health,
    ProducerBinding, ProducerSpec, Selection, StartAt, require,
};
use crate::config::RocketmqConfig;
use crate::message::Message;
use crate::pace::Pace;

/// Queues of a topic that nobody configured: as many as the binder for RocketMQ creates.
const DEFAULT_QUEUES: u32 = 8;

/// How the broker in the process is made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outage {
    /// Connections are refused: a send fails as soon as its tries are used up.
    Refusing,
    /// Nothing is answered: a send fails when its time is up.
    Silent,
}

/// A broker inside the process. Cheap to clone; clones are the same broker, so two applications can share one: give each a
/// clone by [`AppBuilder::binder`](crate::AppBuilder::binder). Sends then follow the default settings of producers; those of
/// an application are followed where `default-binder: memory` makes its broker.
#[derive(Debug, Clone)]
pub struct MemoryBinder {
    board: Arc<Board>,
    /// What the application that uses this clone configures of its producers and consumers.
    settings: Arc<RocketmqConfig>,
}

impl Default for MemoryBinder {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBinder {
    /// A broker without topics, in the machine's time.
    #[must_use]
    pub fn new() -> Self {
        Self::in_time(Pace::system())
    }

    pub(crate) fn in_time(pace: Pace) -> Self {
        Self {
            board: Arc::new(Board::new(pace)),
            settings: Arc::default(),
        }
    }

    pub(crate) fn pace(&self) -> &Pace {
        &self.board.pace
    }

    /// The same broker for an application with these settings.
    pub(crate) fn with_settings(&self, settings: RocketmqConfig) -> Self {
        Self {
            board: Arc::clone(&self.board),
            settings: Arc::new(settings),
        }
    }

    /// Takes over what the broker's own key says, where it has a meaning in the process; whether it has.
    ///
    /// # Errors
    /// What the value should have been.
    pub(crate) fn set(&self, key: &str, value: &str) -> Result<bool, String> {
        let millis = || {
            let parsed = value.trim().parse().map(Duration::from_millis);
            parsed.map_err(|_| "milliseconds".to_owned())
        };
        let change = |change: &dyn Fn(&mut CheckTimes)| {
            self.board
                .change(|state, _| change(&mut state.halves.times));
        };
        match key {
            "transactionTimeOut" => {
                let timeout = millis()?;
                change(&|times| times.timeout = timeout);
            }
            "transactionCheckInterval" => {
                let interval = millis()?;
                change(&|times| times.interval = interval);
            }
            "transactionCheckMax" => {
                let max = value.trim().parse().map_err(|_| "a number".to_owned())?;
                change(&|times| times.max = max);
            }
            "messageDelayLevel" => {
                let levels = DelayLevels::parse(value).map_err(|error| error.to_string())?;
                self.board.change(|state, _| state.levels = levels.clone());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// All messages stored under `topic`, queue after queue.
    #[must_use]
    pub fn stored(&self, topic: &str) -> Vec<Message> {
        self.find(topic, None)
    }

    /// The messages of `topic` with this key or this id.
    #[must_use]
    pub fn with_key(&self, topic: &str, key: &str) -> Vec<Message> {
        self.find(topic, Some(key))
    }

    /// The messages of `topic` in the order of their storing, each with its number in the whole broker.
    pub(crate) fn in_order(&self, topic: &str) -> Vec<(u64, Message)> {
        let mut stored = self.board.stored(topic, None);
        stored.sort_by_key(|stored| stored.number);
        let seen = |stored: Arc<board::Stored>| (stored.number, stored.seen());
        stored.into_iter().map(seen).collect()
    }

    fn find(&self, topic: &str, key: Option<&str>) -> Vec<Message> {
        let stored = self.board.stored(topic, key).into_iter();
        stored.map(|stored| stored.seen()).collect()
    }

    /// The dead letters of `group`.
    #[must_use]
    pub fn dead_letters(&self, group: &str) -> Vec<Message> {
        self.stored(&names::dlq_topic(group))
    }

    /// Messages of `topic` that `group` has not handled yet.
    #[must_use]
    pub fn lag(&self, group: &str, topic: &str) -> u64 {
        self.board.lag(group, topic)
    }

    /// Moves the position of `group` in all queues of `topic`. Handlers that run finish; what they handled comes again if
    /// it is still ahead.
    pub fn reset(&self, group: &str, topic: &str, to: StartAt) {
        self.board.reset(group, topic, to);
    }

    /// Lets the broker fail, or work again: nothing is stored or delivered meanwhile, and nothing is lost.
    pub fn set_outage(&self, outage: Option<Outage>) {
        self.board.change(|state, _| state.outage = outage);
    }

    /// Tries of all sends so far, each counted.
    #[must_use]
    pub fn send_attempts(&self) -> u64 {
        self.board.look(|state, _| state.attempts)
    }

    /// Asks for the outcome of every transactional message that has none yet, as a broker does again and again by itself:
    /// each time a listener of its producer group. How many have no outcome even then.
    pub async fn ask_for_outcomes(&self) -> usize {
        let pace = self.board.pace.clone();
        self.board.change(|state, now| state.halves.ask_all(now));
        loop {
            let changed = pace.changed();
            let (open, left) = self.board.look(|state, now| {
                let due = state.halves.next_question().is_some_and(|at| at <= now);
                (due || state.halves.are_asked(), state.halves.len())
            });
            if !open {
                return left;
            }
            changed.await;
        }
    }

    /// Waits until no message waits, is delayed, or is being handled for any group that has a consumer.
    pub async fn settled(&self) {
        flow::run_dry(&self.board, i64::MAX).await;
    }

    /// [`settled`](Self::settled), unless that takes more than this virtual time; whether it is.
    pub(crate) async fn settled_within(&self, patience: Duration) -> bool {
        flow::run_dry(&self.board, self.board.pace.after(patience)).await
    }

    /// Lets one thing happen, or time go on to `deadline`; false when that has come and everybody is at rest.
    pub(crate) async fn step(&self, deadline: i64) -> bool {
        flow::step(&self.board, deadline).await
    }

    /// Runs virtual time up to `millis` (since 1970 UTC) with everything that is due on the way.
    pub(crate) async fn run_until(&self, millis: i64) {
        flow::run_until(&self.board, millis).await;
    }

    /// What [`settled`](Self::settled) waits for now.
    pub(crate) fn under_way(&self) -> String {
        self.board.under_way()
    }
}

#[async_trait]
impl Binder for MemoryBinder {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTITIONS
            .with(Capabilities::ORDERED)
            .with(Capabilities::DELAY)
            .with(Capabilities::BROADCAST)
            .with(Capabilities::TAGS)
            .with(Capabilities::SQL)
            .with(Capabilities::PAUSE)
            .with(Capabilities::START_BY_TIME)
            .with(Capabilities::TRANSACTIONS)
    }

    async fn declare(&self, destinations: &[Destination]) -> Result<(), BinderError> {
        for destination in destinations {
            let default = if destination.name.starts_with('%') {
                1
            } else {
                DEFAULT_QUEUES
            };
            let queues = destination.queues.unwrap_or(default);
            self.board
                .create(&destination.name, queues, destination.access);
        }
        Ok(())
    }

    async fn bind_consumer(
        &self,
        spec: ConsumerSpec,
        sink: Arc<dyn Deliver>,
    ) -> Result<Arc<dyn ConsumerBinding>, BinderError> {
        require(self, &spec)?;
        let filter = filter(&spec)?;
        let settings = &self.settings.binding(&spec.binding).consumer;
        let strategy = match allocation(&spec, settings) {
            // There is one broker here, whatever those are called that the queues were written down for.
            Allocation::Fixed(queues) => Allocation::Fixed(
                queues
                    .into_iter()
                    .map(|queue| MessageQueue::new(queue.topic, BROKER, queue.queue_id))
                    .collect(),
            ),
            Allocation::MachineRoom { .. } => Allocation::default(),
            shared => shared,
        };
        Ok(Arc::new(MemoryConsumer::start(
            &self.board,
            spec,
            &filter,
            strategy,
            &sink,
        )))
    }

    async fn bind_producer(
        &self,
        spec: ProducerSpec,
    ) -> Result<Arc<dyn ProducerBinding>, BinderError> {
        let settings = self.settings.binding(&spec.binding).producer.clone();
        // Counting the queues creates the topic.
        self.board.queues(&spec.destination);
        Ok(Arc::new(MemoryProducer::start(&self.board, spec, settings)))
    }

    async fn health(&self) -> Health {
        match self.board.look(|state, _| state.outage) {
            None => Health::Up,
            Some(outage) => Health::Down(format!("the broker in the process fails: {outage:?}")),
        }
    }

    async fn shutdown(&self) -> Result<(), BinderError> {
        Ok(())
    }
}

fn filter(spec: &ConsumerSpec) -> Result<FilterExpression, BinderError> {
    let parsed = match &spec.selection {
        Selection::All => return Ok(FilterExpression::All),
        Selection::Tags(tags) => FilterExpression::parse(Some(bodies::TAG), tags),
        Selection::Sql(condition) => FilterExpression::parse(Some(bodies::SQL92), condition),
    };
    parsed.map_err(|source| BinderError::Broker {
        action: "reading the subscription of binding",
        subject: spec.binding.clone(),
        source: Box::new(source),
    })
}

#[cfg(test)]
mod tests;
