//! Pops and notifications that wait for messages.
//!
//! ```text
//! nothing to hand out ─▶ Holds::hold ─▶ by topic, group, queue ─┐
//! store appends ─▶ Holds::arrived ─▶ one of each group ─────────┼─▶ one runner task ─▶ tried again
//! more is left, queue free again ─▶ Holds::wake ────────────────┤
//! earliest time to look again ─▶ the runner's only sleep ───────┘
//! ```
//! Unlike pulls, pops share: a message wakes one of a group, not all. A message that comes back lies in the group's retry
//! topic, and wakes those that wait for the topic it came from.
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
};

use bindery_protocol::names;
use bindery_remoting::{Clock, ConnectionId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Waits for any queue of its topic.
pub(crate) const ANY_QUEUE: i32 = -1;
/// Never: what the runner sleeps until while nothing waits.
const NEVER: i64 = i64::MAX;

/// What waits.
pub(crate) trait Waiting: Send + 'static {
    /// Topic it wants messages of.
    fn topic(&self) -> &str;
    /// For which group.
    fn group(&self) -> &str;
    /// From which queue; [`ANY_QUEUE`] for any.
    fn queue_id(&self) -> i32;
    /// When to try again without a message, in milliseconds.
    fn look_at(&self) -> i64;
    /// Whose it is.
    fn connection(&self) -> ConnectionId;
    /// Whether a message with this tags code and property text is for it.
    fn matches(&self, tags_code: i64, properties: &[u8]) -> bool;
}

/// How many may wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// In all (`maxPopPollingSize`).
    pub(crate) all: usize,
    /// For one topic, group and queue (`popPollingSize`).
    pub(crate) one_key: usize,
    /// Different topics, groups and queues (`popPollingMapSize`).
    pub(crate) keys: usize,
}

/// All that wait.
pub(crate) struct Holds<P> {
    state: Mutex<State<P>>,
    /// How many wait, read without the lock by every arrival.
    count: AtomicUsize,
    limits: Limits,
    /// Every so many messages of a queue wake regardless of filters, so that offsets move on; 0 for never.
    forced_every: i64,
    /// What the runner sleeps until: a later time need not wake it.
    sleeping_until: AtomicI64,
    wake: Notify,
}

/// Those that wait for one queue, the first to be answered first.
type Line = BTreeSet<(i64, u64)>;
type Groups = HashMap<String, HashMap<i32, Line>>;

struct State<P> {
    next: u64,
    held: HashMap<u64, P>,
    topics: HashMap<String, Groups>,
    keys: usize,
    /// Retry topics of those that wait, and for which topic and group.
    retries: HashMap<String, HashSet<(String, String)>>,
    connections: HashMap<ConnectionId, BTreeSet<u64>>,
    times: BTreeSet<(i64, u64)>,
    ready: Vec<P>,
}

impl<P: Waiting> Holds<P> {
    /// Room for so many.
    pub(crate) fn new(limits: Limits, forced_every: i64) -> Self {
        let state = State {
            next: 0,
            held: HashMap::new(),
            topics: HashMap::new(),
            keys: 0,
            retries: HashMap::new(),
            connections: HashMap::new(),
            times: BTreeSet::new(),
            ready: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            count: AtomicUsize::new(0),
            limits,
            forced_every,
            sleeping_until: AtomicI64::new(NEVER),
            wake: Notify::new(),
        }
    }

    /// Lets one wait; gives it back when there is no room. The caller must look again afterwards: a message that came
    /// before this call woke nobody.
    pub(crate) fn hold(&self, one: P) -> Result<u64, P> {
        let mut state = self.state();
        let line = state.line(one.topic(), one.group(), one.queue_id());
        let full = match line {
            Some(line) => line.len() >= self.limits.one_key,
            None => state.keys >= self.limits.keys,
        };
        if full || state.held.len() >= self.limits.all {
            return Err(one);
        }
        let look_at = one.look_at();
        let id = state.insert(one);
        self.count.store(state.held.len(), Ordering::SeqCst);
        drop(state);
        if look_at < self.sleeping_until.load(Ordering::SeqCst) {
            self.wake.notify_one();
        }
        Ok(id)
    }

    /// Takes one out again, unless it was woken meanwhile.
    pub(crate) fn take(&self, id: u64) -> Option<P> {
        let mut state = self.state();
        let one = state.remove(id);
        self.count.store(state.held.len(), Ordering::SeqCst);
        one
    }

    /// Drops those of a connection that ended.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        let mut state = self.state();
        let Some(ids) = state.connections.remove(&connection) else {
            return;
        };
        let gone: Vec<P> = ids.into_iter().filter_map(|id| state.remove(id)).collect();
        self.count.store(state.held.len(), Ordering::SeqCst);
        drop(state);
        // What one owns may do more at its end than a lock should be held for.
        drop(gone);
    }

    /// A message is readable: `after` is the queue offset behind it.
    pub(crate) fn arrived(
        &self,
        topic: &str,
        queue_id: i32,
        after: i64,
        tags_code: i64,
        properties: &[u8],
    ) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let forced = self.forced_every > 0 && after % self.forced_every == 0;
        let chosen = |one: &P| forced || one.matches(tags_code, properties);
        let mut state = self.state();
        let mut woken = 0;
        if let Some(groups) = state.topics.get(topic) {
            let groups: Vec<String> = groups.keys().cloned().collect();
            for group in groups {
                for queue in [ANY_QUEUE, queue_id] {
                    woken += usize::from(state.release(topic, &group, queue, chosen));
                }
            }
        }
        if names::is_retry_topic(topic)
            && let Some(origins) = state.retries.get(topic)
        {
            for (origin, group) in origins.clone() {
                woken += usize::from(state.release_any(&origin, &group, chosen));
            }
        }
        self.count.store(state.held.len(), Ordering::SeqCst);
        drop(state);
        if woken > 0 {
            self.wake.notify_one();
        }
    }

    /// Wakes the first that waits for this queue, or for any when `queue_id` is [`ANY_QUEUE`].
    pub(crate) fn wake(&self, topic: &str, group: &str, queue_id: i32) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut state = self.state();
        let woken = state.release(topic, group, queue_id, |_| true);
        self.count.store(state.held.len(), Ordering::SeqCst);
        drop(state);
        if woken {
            self.wake.notify_one();
        }
    }

    /// Wakes all that wait for a topic: it changed or is gone.
    pub(crate) fn disturb_topic(&self, topic: &str) {
        let mut state = self.state();
        let Some(groups) = state.topics.get(topic) else {
            return;
        };
        let lines = groups.values().flat_map(HashMap::values);
        let ids: Vec<u64> = lines.flatten().map(|(_, id)| *id).collect();
        for id in ids {
            state.ripen(id);
        }
        self.count.store(state.held.len(), Ordering::SeqCst);
        drop(state);
        self.wake.notify_one();
    }

    /// Tries again those that are woken or whose time has come, until `stop`. One task per broker.
    pub(crate) async fn run(
        self: Arc<Self>,
        clock: Clock,
        stop: CancellationToken,
        again: impl Fn(P),
    ) {
        loop {
            for one in self.due(clock.now_millis()) {
                again(one);
            }
            let until = self.sleeping_until.load(Ordering::SeqCst);
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = clock.sleep_until(until), if until != NEVER => {}
            }
        }
    }

    /// What is woken or due; afterwards `sleeping_until` is the earliest time left.
    fn due(&self, now: i64) -> Vec<P> {
        let mut state = self.state();
        while let Some((at, id)) = state.times.first().copied()
            && at <= now
        {
            state.ripen(id);
            state.times.remove(&(at, id));
        }
        let due = std::mem::take(&mut state.ready);
        self.count.store(state.held.len(), Ordering::SeqCst);
        let earliest = state.times.first().map_or(NEVER, |(at, _)| *at);
        self.sleeping_until.store(earliest, Ordering::SeqCst);
        due
    }

    /// How many wait for one topic, group and queue.
    pub(crate) fn count(&self, topic: &str, group: &str, queue_id: i32) -> usize {
        self.state()
            .line(topic, group, queue_id)
            .map_or(0, BTreeSet::len)
    }

    fn state(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Waiting> State<P> {
    fn line(&self, topic: &str, group: &str, queue_id: i32) -> Option<&Line> {
        self.topics.get(topic)?.get(group)?.get(&queue_id)
    }

    fn insert(&mut self, one: P) -> u64 {
        let id = self.next;
        self.next += 1;
        let (topic, group, queue_id) = (
            one.topic().to_owned(),
            one.group().to_owned(),
            one.queue_id(),
        );
        let look_at = one.look_at();
        self.times.insert((look_at, id));
        for retry in retry_topics(&topic, &group) {
            self.retries
                .entry(retry)
                .or_default()
                .insert((topic.clone(), group.clone()));
        }
        let groups = self.topics.entry(topic).or_default();
        let line = groups
            .entry(group)
            .or_default()
            .entry(queue_id)
            .or_default();
        self.keys += usize::from(line.is_empty());
        line.insert((look_at, id));
        self.connections
            .entry(one.connection())
            .or_default()
            .insert(id);
        self.held.insert(id, one);
        id
    }

    fn remove(&mut self, id: u64) -> Option<P> {
        let one = self.held.remove(&id)?;
        let place = (one.look_at(), id);
        self.times.remove(&place);
        if let Some(groups) = self.topics.get_mut(one.topic()) {
            if let Some(lines) = groups.get_mut(one.group()) {
                if let Some(line) = lines.get_mut(&one.queue_id()) {
                    line.remove(&place);
                    if line.is_empty() {
                        lines.remove(&one.queue_id());
                        self.keys -= 1;
                    }
                }
                if lines.is_empty() {
                    groups.remove(one.group());
                    self.forget_retries(one.topic(), one.group());
                }
            }
            if self.topics.get(one.topic()).is_some_and(HashMap::is_empty) {
                self.topics.remove(one.topic());
            }
        }
        if let Some(ids) = self.connections.get_mut(&one.connection()) {
            ids.remove(&id);
            if ids.is_empty() {
                self.connections.remove(&one.connection());
            }
        }
        Some(one)
    }

    fn forget_retries(&mut self, topic: &str, group: &str) {
        for retry in retry_topics(topic, group) {
            if let Some(origins) = self.retries.get_mut(&retry) {
                origins.remove(&(topic.to_owned(), group.to_owned()));
                if origins.is_empty() {
                    self.retries.remove(&retry);
                }
            }
        }
    }

    /// Makes the first chosen one of a line ready; whether there was one.
    fn release(
        &mut self,
        topic: &str,
        group: &str,
        queue_id: i32,
        chosen: impl Fn(&P) -> bool,
    ) -> bool {
        let Some(line) = self.line(topic, group, queue_id) else {
            return false;
        };
        let first = line
            .iter()
            .map(|(_, id)| *id)
            .find(|id| self.held.get(id).is_some_and(&chosen));
        first.is_some_and(|id| self.ripen(id))
    }

    /// Makes the first chosen one ready that reads the group's retry topic: those for any queue before others.
    fn release_any(&mut self, topic: &str, group: &str, chosen: impl Fn(&P) -> bool) -> bool {
        let Some(lines) = self.topics.get(topic).and_then(|groups| groups.get(group)) else {
            return false;
        };
        let mut queues: Vec<i32> = lines.keys().copied().collect();
        queues.sort_unstable();
        queues
            .into_iter()
            .any(|queue| self.release(topic, group, queue, &chosen))
    }

    fn ripen(&mut self, id: u64) -> bool {
        let one = self.remove(id);
        let found = one.is_some();
        self.ready.extend(one);
        found
    }
}

fn retry_topics(topic: &str, group: &str) -> [String; 2] {
    [
        names::pop_retry_topic_v1(group, topic),
        names::pop_retry_topic_v2(group, topic),
    ]
}

#[cfg(test)]
#[path = "hold_tests.rs"]
mod tests;
