//! The account of one run: what was sent, and what the handlers saw of it. Counted in the handlers, and only for the
//! messages of this run: each carries the run's id in the header `run` and its number within the flow in `number`.
//!
//! ```text
//! demonstration ── sent ──▶ Account ◀── note ── handlers (own run)
//!                              ▲
//!                              └── take ── reports of other instances, which share our queues
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bindery::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::orders::Order;

/// The ways an order can go, in the order of the printed lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flow {
    /// Any queue, any order.
    Normal,
    /// Read by tags.
    Tagged,
    /// One queue an order.
    Orderly,
    /// Delivered a second later.
    Delayed,
    /// Fails at first, and some always.
    Failing,
    /// Handled only if it is booked.
    Transactional,
}

/// What happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A handler accepted it.
    Handled,
    /// It came again after a failure.
    Retried,
    /// It was given up and read from the dead letters.
    DeadLettered,
    /// It came to a handler that had not asked for its tag.
    Unwanted,
}

/// Something that happened to a message of a run; told to that run's instance when another one handled it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    run: String,
    flow: Flow,
    number: u32,
    what: What,
    order: i64,
    step: u32,
}

/// The account of this instance's run. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Account {
    run: Arc<str>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    flows: Mutex<BTreeMap<Flow, Tally>>,
    changed: Notify,
}

/// What is known of one flow.
#[derive(Debug, Default)]
struct Tally {
    /// When each message was sent, by its number.
    sent: BTreeMap<u32, Instant>,
    not_sent: Vec<String>,
    handled: BTreeSet<u32>,
    repeated: usize,
    dead: BTreeSet<u32>,
    /// What must not arrive: its local transaction was rolled back.
    rolled_back: BTreeSet<u32>,
    retried: usize,
    unwanted: usize,
    early: usize,
    /// The last step handled of each order.
    last_step: BTreeMap<i64, u32>,
    disorder: usize,
}

/// How long a delayed message is held back at least: delay level 1 is one second, counted by the broker's clock.
const DELAY: Duration = Duration::from_millis(950);

impl Account {
    /// The account of a new run.
    pub fn new(run: impl Into<Arc<str>>) -> Self {
        Self {
            run: run.into(),
            shared: Arc::default(),
        }
    }

    /// The run's id, which its messages carry.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// A message is about to be sent: noted before, because it may be handled before the send returns.
    pub fn sending(&self, flow: Flow, number: u32) {
        self.change(flow, |tally| {
            tally.sent.insert(number, Instant::now());
        });
    }

    /// That message was not sent after all.
    pub fn not_sent(&self, flow: Flow, number: u32, why: String) {
        self.change(flow, |tally| {
            tally.sent.remove(&number);
            tally.not_sent.push(why);
        });
    }

    /// That message's local transaction was rolled back: nobody may get it.
    pub fn rolled_back(&self, flow: Flow, number: u32) {
        self.change(flow, |tally| {
            tally.rolled_back.insert(number);
        });
    }

    /// Notes what a handler did. A message of another instance's run gives the event to report; one of no run, nothing.
    pub fn note(
        &self,
        flow: Flow,
        what: What,
        order: &Order,
        headers: &Headers,
    ) -> Option<Json<Event>> {
        let run = headers.get("run")?.to_owned();
        let number = headers.get("number")?.parse().ok()?;
        let event = Event {
            run,
            flow,
            number,
            what,
            order: order.id,
            step: order.step,
        };
        self.take(&event).then_some(Json(event))
    }

    /// Takes an event into the account; true when it belongs to another run, which is told of it.
    pub fn take(&self, event: &Event) -> bool {
        if *event.run != *self.run {
            return true;
        }
        self.change(event.flow, |tally| tally.take(event));
        false
    }

    /// Waits until every message that was sent was handled or given up, or until nothing has changed for `patience`.
    pub async fn settle(&self, patience: Duration) {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change between look and wait is not missed.
            changed.as_mut().enable();
            if self.lock().values().all(Tally::is_complete)
                || tokio::time::timeout(patience, changed).await.is_err()
            {
                return;
            }
        }
    }

    fn change(&self, flow: Flow, change: impl FnOnce(&mut Tally)) {
        change(self.lock().entry(flow).or_default());
        self.shared.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Flow, Tally>> {
        // Each change leaves the tallies whole: a panic elsewhere cannot have damaged them.
        self.shared
            .flows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    fn take(&mut self, event: &Event) {
        match event.what {
            What::Retried => self.retried += 1,
            What::Unwanted => self.unwanted += 1,
            What::DeadLettered => self.repeated += usize::from(!self.dead.insert(event.number)),
            What::Handled => self.handle(event),
        }
    }

    fn handle(&mut self, event: &Event) {
        if !self.handled.insert(event.number) {
            self.repeated += 1;
            return;
        }
        let sent = self.sent.get(&event.number);
        self.early +=
            usize::from(event.flow == Flow::Delayed && sent.is_some_and(|at| at.elapsed() < DELAY));
        match self.last_step.insert(event.order, event.step) {
            Some(before) if before >= event.step => self.disorder += 1,
            _ => {}
        }
    }

    fn missing(&self) -> usize {
        self.sent
            .keys()
            .filter(|number| {
                [&self.handled, &self.dead, &self.rolled_back]
                    .iter()
                    .all(|accounted| !accounted.contains(number))
            })
            .count()
    }

    fn leaked(&self) -> usize {
        self.handled.intersection(&self.rolled_back).count()
    }

    fn is_complete(&self) -> bool {
        self.missing() == 0
    }
}

/// One line a flow; what is not as it should be stands behind the numbers.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flow, tally) in self.lock().iter() {
            writeln!(f, "{flow}: {tally}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Tagged => "tagged",
            Self::Orderly => "orderly",
            Self::Delayed => "delayed",
            Self::Failing => "failing",
            Self::Transactional => "transactional",
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "sent {}, handled {}",
            self.sent.len(),
            self.handled.len()
        )?;
        if self.missing() > 0 {
            write!(f, " (missing {})", self.missing())?;
        }
        let in_order = if self.disorder == 0 { "yes" } else { "no" };
        write!(
            f,
            ", in order {in_order}, retried {}, dead-lettered {}",
            self.retried,
            self.dead.len()
        )?;
        if !self.rolled_back.is_empty() {
            write!(f, ", rolled back {}", self.rolled_back.len())?;
        }
        let remarks = [
            (self.repeated, "handled again"),
            (self.early, "too early"),
            (self.unwanted, "not asked for"),
            (self.leaked(), "handled though rolled back"),
        ];
        for (count, what) in remarks.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, ", {count} {what}")?;
        }
        if let Some(why) = self.not_sent.first() {
            write!(f, ", {} not sent ({why})", self.not_sent.len())?;
        }
        Ok(())
    }
}
