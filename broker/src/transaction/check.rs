//! Asking producers about half messages that nobody has decided.
//!
//! ```text
//! due ─▶ round: half topic from its position on ─▶ open? ─┬─ too young ─▶ the round ends, and comes again when it is not
//!                                                         ├─ immune still ─▶ written again, not counted
//!                                                         ├─ to be asked ─▶ written again, counted ─▶ 39 to a producer
//!                                                         └─ asked too often, too old ─▶ TRANS_CHECK_MAX_TIME_TOPIC
//! ```
//! Rounds that write keep `transactionCheckInterval` between them; while nothing is open there are none. Unlike Apache
//! `RocketMQ` 5.3.3 (`TransactionalMessageServiceImpl.check`), writing a message again because it is still immune is not
//! counted as a check: a long immunity would use up the checks before the first.
use std::sync::Arc;

use bindery_protocol::{
    bodies::{PERM_READ, PERM_WRITE},
    message::{NewMessage, QueueOffset, RecordView, SysFlag, property},
    names,
};
use bytes::Bytes;

use super::{
    NEVER, QUEUE, RETRY,
    half::{HalfMessage, millis},
    ops::{self, OpBatch},
    question::{Question, Questions},
    state::State,
};
use crate::{
    state::Core,
    store::{AppendError, Appended, Everything, ReadLimits, ReadStatus},
};

/// Half messages looked at between two looks at everything else.
const STEP: usize = 32;

/// Writes op messages and runs rounds until the broker stops. One task per broker.
pub(crate) async fn run(core: Arc<Core>) {
    let mut questions = Questions::default();
    while !core.stop.is_cancelled() {
        write_ops(&core);
        if core.transactions.state().round_at <= core.now() {
            round(&core, &mut questions).await;
        }
        let until = core.transactions.sleep_until();
        tokio::select! {
            biased;
            () = core.stop.cancelled() => {}
            () = core.transactions.woken() => {}
            () = core.clock.sleep_until(until), if until != NEVER => {}
        }
    }
    // No more requests are served: what they decided is in the log when the next start reads it.
    let pending = core.transactions.state().ops.take(core.now());
    if let Some(batch) = pending {
        write_op(&core, &batch);
    }
}

/// Writes the op message that is due, if one is.
fn write_ops(core: &Core) {
    let now = core.now();
    let mut state = core.transactions.state();
    let batch = if state.ops.due() <= now {
        state.ops.take(now)
    } else {
        None
    };
    drop(state);
    if let Some(batch) = batch {
        write_op(core, &batch);
    }
}

fn write_op(core: &Core, batch: &OpBatch) {
    let message = NewMessage {
        topic: names::TRANS_OP_HALF_TOPIC,
        queue_id: QUEUE,
        flag: 0,
        sys_flag: SysFlag(0),
        born_timestamp: core.now(),
        born_host: core.address,
        store_host: core.address,
        reconsume_times: 0,
        prepared_transaction_offset: 0,
        body: batch.body.as_bytes(),
        properties: ops::PROPERTIES,
    };
    let written = core.store.append(&message);
    let mut state = core.transactions.state();
    match written {
        Ok(appended) => {
            state
                .book
                .op_written(appended.queue_offset.0, batch.last_half);
            state.keep(&core.offsets, core.now());
        }
        Err(error) => {
            tracing::error!(%error, "verdicts on transactions not written, tried again");
            state.ops.put_back(batch, core.now());
        }
    }
}

/// Looks at all half messages that were there when it began.
async fn round(core: &Core, questions: &mut Questions) {
    let mut round = Round::begin(core);
    let next = loop {
        match round.step(core, questions) {
            Step::On if core.stop.is_cancelled() => break NEVER,
            Step::On => tokio::task::yield_now().await,
            Step::End { next } => break next,
        }
    };
    let mut state = core.transactions.state();
    state.round_at = state.round_at.min(next);
    if round.wrote && state.round_at != NEVER {
        // What a round wrote again is not to be looked at before its time because of what came meanwhile.
        state.round_at = state.round_at.max(state.next_round(core));
    }
    state.keep(&core.offsets, core.now());
}

/// One walk through the half topic.
struct Round {
    started: i64,
    cursor: i64,
    end: i64,
    /// Whether anything was written: the next round keeps its distance then.
    wrote: bool,
}

/// What a step of a round came to.
enum Step {
    /// There is more to look at.
    On,
    /// Nothing more now; when to look again.
    End { next: i64 },
}

/// What a look at one half message came to.
enum Look {
    /// It is over, or was written again.
    Passed,
    /// A producer is to be asked about its new copy.
    Ask(Question),
    /// It is not to be checked before then, nor is what lies behind it.
    Young { until: i64 },
    /// The store takes nothing now.
    Refused,
}

fn is_behind_the_end(status: ReadStatus) -> bool {
    matches!(
        status,
        ReadStatus::OffsetOverflowOne
            | ReadStatus::OffsetOverflowBadly
            | ReadStatus::NoMessageInQueue
            | ReadStatus::NoMatchedLogicQueue
    )
}

impl Round {
    fn begin(core: &Core) -> Self {
        let mut state = core.transactions.state();
        state.round_at = NEVER;
        Self {
            started: core.now(),
            cursor: state.book.positions().0,
            end: state.book.half_end(),
            wrote: false,
        }
    }

    fn step(&mut self, core: &Core, questions: &mut Questions) -> Step {
        if self.cursor >= self.end {
            return Step::End {
                next: self.when_done(core),
            };
        }
        let read = core.store.read(
            names::TRANS_HALF_TOPIC,
            QUEUE,
            QueueOffset(self.cursor),
            ReadLimits::messages(STEP),
            &Everything,
        );
        if is_behind_the_end(read.status) {
            // Stored, and under SYNC_FLUSH not in the queue before it is on the disk: too young in any case.
            return Step::End {
                next: self.when_done(core),
            };
        }
        for bytes in &read.messages {
            if let Some(next) = self.look_at(core, questions, bytes) {
                return Step::End { next };
            }
        }
        let past = read.next.0.min(self.end);
        if past <= self.cursor && !matches!(read.status, ReadStatus::Found) {
            tracing::error!(offset = self.cursor, status = ?read.status, "half messages not readable");
            return Step::End {
                next: core.now().saturating_add(RETRY),
            };
        }
        if self.cursor < past {
            // Nothing is left of these: their files are gone.
            core.transactions.state().book.lost_before(past);
            self.cursor = past;
        }
        Step::On
    }

    /// Looks at one record; when the round ends here, the time of the next one.
    fn look_at(&mut self, core: &Core, questions: &mut Questions, bytes: &Bytes) -> Option<i64> {
        let record = match RecordView::parse(bytes) {
            Ok(record) => record,
            Err(error) => {
                // Passed over by the caller, as one whose file is gone.
                tracing::error!(%error, "half message not readable, left out");
                return None;
            }
        };
        let offset = record.queue_offset().0;
        if offset >= self.end {
            return None;
        }
        if offset > self.cursor {
            core.transactions.state().book.lost_before(offset);
        }
        match self.look(core, record) {
            Look::Passed => {}
            Look::Ask(question) => questions.ask(core, &question),
            Look::Young { until } => return Some(until),
            Look::Refused => return Some(core.now().saturating_add(RETRY)),
        }
        self.cursor = offset + 1;
        None
    }

    fn look(&mut self, core: &Core, record: RecordView<'_>) -> Look {
        let mut state = core.transactions.state();
        let offset = record.queue_offset().0;
        if !state.book.is_open(offset) {
            return Look::Passed;
        }
        let Some(half) = HalfMessage::of(record, &core.live()) else {
            tracing::error!(
                offset,
                "message in the half topic that no send made, left out"
            );
            state.book.given_up(offset, "");
            return Look::Passed;
        };
        let config = &core.live();
        let age = half.age(self.started);
        let reserved = millis(config.file_reserved_time).saturating_mul(3_600_000);
        if half.checks >= config.transaction_check_max || age > reserved {
            return self.give_up(core, &mut state, &half);
        }
        match half.immunity {
            Some(immunity) if age <= immunity => self.put_back(core, &mut state, &half),
            None if (0..=millis(config.transaction_time_out)).contains(&age) => Look::Young {
                until: half.first_check(config),
            },
            _ => self.check(core, &mut state, &half),
        }
    }

    /// Writes a message again that is still immune, so that those behind it can be looked at.
    fn put_back(&mut self, core: &Core, state: &mut State, half: &HalfMessage<'_>) -> Look {
        let offset = half.record.queue_offset().0;
        let first = half.first_offset.unwrap_or(offset).to_string();
        let properties = half.properties_with(property::TRAN_PREPARED_QUEUE_OFFSET, &first);
        match self.copy(core, state, half, &properties) {
            Ok(_) => Look::Passed,
            Err(look) => look,
        }
    }

    /// Writes a message again with one check more, and asks.
    fn check(&mut self, core: &Core, state: &mut State, half: &HalfMessage<'_>) -> Look {
        let checks = half.checks.saturating_add(1).to_string();
        let properties = half.properties_with(property::TRANSACTION_CHECK_TIMES, &checks);
        match self.copy(core, state, half, &properties) {
            Ok(appended) => {
                Question::about(core, half, &properties, &appended).map_or(Look::Passed, Look::Ask)
            }
            Err(look) => look,
        }
    }

    fn copy(
        &mut self,
        core: &Core,
        state: &mut State,
        half: &HalfMessage<'_>,
        properties: &[u8],
    ) -> Result<Appended, Look> {
        let message = half.again(names::TRANS_HALF_TOPIC, QUEUE, core.address, properties);
        match core.store.append(&message) {
            Ok(appended) => {
                self.wrote(state);
                let offset = half.record.queue_offset().0;
                state.book.moved(offset, half.key, appended.queue_offset.0);
                Ok(appended)
            }
            Err(AppendError::Closed | AppendError::Store(_)) => Err(Look::Refused),
            // It can't be written with what a check adds. It must not be in the way of those behind it.
            Err(error) => {
                tracing::warn!(key = half.key, %error, "half message can't be checked");
                Err(self.give_up(core, state, half))
            }
        }
    }

    /// Sets a message aside where an operator can find it.
    fn give_up(&mut self, core: &Core, state: &mut State, half: &HalfMessage<'_>) -> Look {
        let topic = names::TRANS_CHECK_MAX_TIME_TOPIC;
        if let Err(refusal) = core.topics.derived(topic, 1, PERM_READ | PERM_WRITE, 0) {
            tracing::error!(%refusal, "topic for transactions given up not made");
            return Look::Refused;
        }
        let message = half.again(topic, QUEUE, core.address, half.record.properties());
        match core.store.append(&message) {
            Ok(_) => tracing::warn!(
                key = half.key,
                group = half.group,
                topic = half.topic,
                checks = half.checks,
                "transaction given up without a verdict"
            ),
            Err(AppendError::Closed | AppendError::Store(_)) => return Look::Refused,
            Err(error) => tracing::error!(key = half.key, %error, "transaction given up and lost"),
        }
        self.wrote(state);
        let offset = half.record.queue_offset().0;
        state.book.given_up(offset, half.key);
        Look::Passed
    }

    fn wrote(&mut self, state: &mut State) {
        self.wrote = true;
        state.last_round = self.started;
    }

    /// When to look again after everything was looked at.
    fn when_done(&self, core: &Core) -> i64 {
        let state = core.transactions.state();
        if state.book.open() == 0 {
            return NEVER;
        }
        // What is open now was written by this round, or came while it ran.
        let wait = if self.wrote {
            millis(core.live().transaction_check_interval)
        } else {
            millis(core.live().transaction_time_out).saturating_add(1)
        };
        self.started.saturating_add(wait)
    }
}
