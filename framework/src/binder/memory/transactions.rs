//! Transactional messages in the process: held back until their outcome is known, then put on the board.
//!
//! ```text
//! send ─▶ Half ─▶ local work ─▶ Commit: stored · Rollback: gone
//!           │ Unknown, or still running
//!           └── after the timeout, then once an interval ─▶ a listener of the group ─▶ …   (at most `check_max` times)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::board::{BROKER, Board, Content, Delay, State};
use super::producer::MemoryProducer;
use crate::binder::Place;
use crate::binding::{SendError, SendReceipt};
use crate::handler::Delivery;
use crate::message::Message;
use crate::transaction::{
    HalfMessage, ListenerHandle, LocalFailure, LocalState, LocalWork, TxReceipt, caught,
};

/// Where messages go that nobody knew the outcome of (`TopicValidator.RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC`).
const GIVEN_UP: &str = "TRANS_CHECK_MAX_TIME_TOPIC";

/// When and how often is asked. The defaults are those of Apache RocketMQ 5.3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CheckTimes {
    /// `transactionTimeOut`: before the first question.
    pub(super) timeout: Duration,
    /// `transactionCheckInterval`: between questions.
    pub(super) interval: Duration,
    /// `transactionCheckMax`: questions before the message is given up.
    pub(super) max: u32,
}

impl Default for CheckTimes {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(6),
            interval: Duration::from_secs(30),
            max: 15,
        }
    }
}

/// The messages without an outcome.
#[derive(Debug, Default)]
pub(super) struct Halves {
    pub(super) times: CheckTimes,
    waiting: BTreeMap<u64, Half>,
    /// Listeners that can be asked, by producer group.
    listening: BTreeMap<String, usize>,
    /// Questions under way.
    asked: usize,
}

#[derive(Debug, Clone)]
struct Half {
    group: String,
    destination: String,
    content: Content,
    asked_times: u32,
    next_question: i64,
}

impl Half {
    fn message(&self) -> HalfMessage {
        let Content { msg_id, .. } = &self.content;
        let delivery = Delivery {
            topic: self.destination.as_str().into(),
            broker_name: BROKER.into(),
            message_id: Arc::clone(msg_id),
            born_millis: self.content.born_millis,
            transaction_id: Some(Arc::clone(msg_id)),
            ..Delivery::default()
        };
        let properties = self.content.properties.iter();
        let message = Message::received(self.content.body.clone(), properties, Arc::new(delivery));
        HalfMessage::new(message, Arc::clone(msg_id))
    }
}

impl Halves {
    pub(super) fn are_asked(&self) -> bool {
        self.asked > 0
    }

    /// When the next question is due that somebody can be asked.
    pub(super) fn next_question(&self) -> Option<i64> {
        let heard = |half: &&Half| {
            self.listening
                .get(&half.group)
                .is_some_and(|count| *count > 0)
        };
        let waiting = self.waiting.values().filter(heard);
        waiting.map(|half| half.next_question).min()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Lets the next question about every message be due now.
    pub(super) fn ask_all(&mut self, now: i64) {
        for half in self.waiting.values_mut() {
            half.next_question = now;
        }
    }

    /// Takes a question that is due for `group`, and says when to come back otherwise.
    fn question(&mut self, group: &str, now: i64) -> Question {
        let mut of_group = self
            .waiting
            .iter_mut()
            .filter(|(_, half)| half.group == group);
        let interval = millis(self.times.interval);
        if let Some((number, half)) = of_group.find(|(_, half)| half.next_question <= now) {
            half.asked_times += 1;
            half.next_question = now.saturating_add(interval);
            self.asked += 1;
            return Question::Due(*number, Box::new(half.message()));
        }
        let waiting = self.waiting.values().filter(|half| half.group == group);
        let next = waiting.map(|half| half.next_question).min();
        next.map_or(Question::None, Question::At)
    }
}

enum Question {
    Due(u64, Box<HalfMessage>),
    At(i64),
    None,
}

impl MemoryProducer {
    pub(super) async fn transaction(
        &self,
        message: &Message,
        work: LocalWork<'_>,
    ) -> Result<TxReceipt, SendError> {
        let (content, _no_delay) = self.content(message)?;
        let id = content.msg_id.to_string();
        let half = Half {
            group: self.group(),
            destination: self.spec.destination.clone(),
            content,
            asked_times: 0,
            next_question: 0,
        };
        // Held before the work runs: dropped half-way, it is asked for.
        let keep = || {
            Ok(self
                .board
                .change(|state, now| state.keep(half.clone(), now)))
        };
        let number = self.try_to(Place::Any, keep).await?;
        let handed = half.message();
        let (state, failure) = match caught(async move { work(handed).await }).await {
            Some(Ok(state)) => (state, None),
            Some(Err(error)) => (LocalState::Unknown, Some(LocalFailure::Failed(error))),
            None => (LocalState::Unknown, Some(LocalFailure::Panicked)),
        };
        let sent = end(&self.board, number, state)?.unwrap_or_else(|| SendReceipt {
            destination: half.destination,
            msg_id: id.clone(),
            offset_msg_id: String::new(),
            broker: BROKER.to_owned(),
            queue_id: 0,
            queue_offset: i64::try_from(number).unwrap_or(i64::MAX),
            partition: None,
        });
        let mut receipt = TxReceipt::new(sent, id, state);
        receipt.failure = failure.map(|failure| Arc::new(failure) as _);
        Ok(receipt)
    }
}

impl State {
    fn keep(&mut self, half: Half, now: i64) -> u64 {
        let number = self.number();
        let next_question = now.saturating_add(millis(self.halves.times.timeout));
        let half = Half {
            next_question,
            ..half
        };
        self.halves.waiting.insert(number, half);
        number
    }
}

/// Ends a transaction; what is stored of it. Without effect when it has ended already.
fn end(board: &Board, number: u64, outcome: LocalState) -> Result<Option<SendReceipt>, SendError> {
    if outcome == LocalState::Unknown {
        return Ok(None);
    }
    // Taken out first: two answers at once must not store the message twice.
    let half = board.change(|state, _| state.halves.waiting.remove(&number));
    match (half, outcome) {
        (Some(half), LocalState::Commit) => {
            let content = Content {
                transaction_id: Some(Arc::clone(&half.content.msg_id)),
                ..half.content
            };
            board
                .store(&half.destination, content, Place::Any, Delay::None)
                .map(Some)
        }
        _ => Ok(None),
    }
}

/// One listener of a producer group, and the questions it is asked.
pub(super) struct Questions {
    board: Arc<Board>,
    group: String,
    listener: ListenerHandle,
    stop: CancellationToken,
}

impl Questions {
    pub(super) fn join(
        board: Arc<Board>,
        group: String,
        listener: ListenerHandle,
        stop: CancellationToken,
    ) -> Self {
        board.change(|state, _| *state.halves.listening.entry(group.clone()).or_default() += 1);
        Self {
            board,
            group,
            listener,
            stop,
        }
    }

    /// Asks whenever a question is due, until the output stops.
    pub(super) async fn run(self) {
        loop {
            let (number, half) = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                question = self.next() => question,
            };
            let state = match caught(self.listener.check(&half)).await {
                Some(Ok(state)) => state,
                Some(Err(error)) => {
                    tracing::warn!(listener = self.listener.name(), %error, "outcome of a transaction not known");
                    LocalState::Unknown
                }
                None => LocalState::Unknown,
            };
            self.answered(number, state);
        }
    }

    /// Cancel safe: a question is only taken when it is returned.
    async fn next(&self) -> (u64, Box<HalfMessage>) {
        loop {
            let changed = self.board.pace.changed();
            match self.board.question(&self.group) {
                Question::Due(number, half) => return (number, half),
                Question::At(at) => tokio::select! {
                    () = changed => {}
                    () = self.board.pace.sleep_until(at) => {}
                },
                Question::None => changed.await,
            }
        }
    }

    fn answered(&self, number: u64, outcome: LocalState) {
        if let Err(error) = end(&self.board, number, outcome) {
            tracing::warn!(group = self.group, %error, "committed message not stored");
        }
        self.board.change(|state, now| {
            state.halves.asked = state.halves.asked.saturating_sub(1);
            let max = state.halves.times.max;
            let waiting = &mut state.halves.waiting;
            let spent = waiting.get(&number).is_some_and(|half| half.asked_times >= max);
            if spent && let Some(half) = waiting.remove(&number) {
                tracing::warn!(group = self.group, msg_id = %half.content.msg_id, "nobody knows the outcome; given up");
                state.push(&(GIVEN_UP.to_owned(), 0), half.content, now);
            }
        });
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        self.board.change(|state, _| {
            if let Some(count) = state.halves.listening.get_mut(&self.group) {
                *count = count.saturating_sub(1);
            }
        });
    }
}

impl Board {
    fn question(&self, group: &str) -> Question {
        // No telling: looking changes nothing unless a question is due.
        self.look(|state, now| match state.outage {
            None => state.halves.question(group, now),
            Some(_) => Question::None,
        })
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
