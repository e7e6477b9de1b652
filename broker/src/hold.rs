//! Pulls that wait for messages.
//!
//! ```text
//! pull finds nothing ─▶ Holds::hold ─▶ by topic and queue ──┐
//! store appends ─▶ Holds::arrived (its filter) ─▶ ready ────┼─▶ one runner task ─▶ the pull is run again, and answered
//! earliest deadline ─▶ the runner's only sleep ─────────────┘
//! its client is gone ─▶ Holds::forget ─▶ dropped, its place is free
//! ```
//! Nothing is timed per pull: the runner sleeps until the earliest deadline, and not at all while nothing waits.
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
};

use bindery_remoting::{Clock, ConnectionId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Why a waiting pull is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// A message arrived that may be for it.
    Arrival,
    /// Its time is over, or its queue changed otherwise.
    Over,
}

/// A pull that waits, of whatever kind the caller keeps.
pub(crate) trait Waiting: Send + 'static {
    /// Topic it reads.
    fn topic(&self) -> &str;
    /// Queue it reads.
    fn queue_id(&self) -> i32;
    /// Queue offset it waits for: a message there or later wakes it.
    fn offset(&self) -> i64;
    /// When it gives up, in milliseconds.
    fn deadline(&self) -> i64;
    /// Whose pull it is.
    fn connection(&self) -> ConnectionId;
    /// Whether a message with this tags code and property text is for it.
    fn matches(&self, tags_code: i64, properties: &[u8]) -> bool;
}

/// Never: what the runner sleeps until while nothing waits.
const NEVER: i64 = i64::MAX;

/// All waiting pulls.
pub(crate) struct Holds<P> {
    state: Mutex<State<P>>,
    /// Number of waiting pulls, read without the lock by every arrival.
    count: AtomicUsize,
    capacity: usize,
    /// What the runner sleeps until: a later deadline need not wake it.
    sleeping_until: AtomicI64,
    wake: Notify,
}

struct State<P> {
    next: u64,
    held: HashMap<u64, P>,
    queues: HashMap<String, HashMap<i32, BTreeSet<u64>>>,
    connections: HashMap<ConnectionId, BTreeSet<u64>>,
    deadlines: BTreeSet<(i64, u64)>,
    ready: Vec<(P, Wake)>,
}

impl<P: Waiting> Holds<P> {
    /// Room for so many waiting pulls.
    pub(crate) fn new(capacity: usize) -> Self {
        let state = State {
            next: 0,
            held: HashMap::new(),
            queues: HashMap::new(),
            connections: HashMap::new(),
            deadlines: BTreeSet::new(),
            ready: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            count: AtomicUsize::new(0),
            capacity,
            sleeping_until: AtomicI64::new(NEVER),
            wake: Notify::new(),
        }
    }

    /// Lets a pull wait; gives it back when there is no room. The caller must look at the queue again afterwards: a
    /// message that came before this call woke nobody.
    pub(crate) fn hold(&self, pull: P) -> Result<u64, P> {
        let mut state = self.state();
        if state.held.len() >= self.capacity {
            return Err(pull);
        }
        let id = state.next;
        state.next += 1;
        let deadline = pull.deadline();
        state.deadlines.insert((deadline, id));
        if !state.queues.contains_key(pull.topic()) {
            state.queues.insert(pull.topic().to_owned(), HashMap::new());
        }
        if let Some(queues) = state.queues.get_mut(pull.topic()) {
            queues.entry(pull.queue_id()).or_default().insert(id);
        }
        let connection = pull.connection();
        state.connections.entry(connection).or_default().insert(id);
        state.held.insert(id, pull);
        self.count.store(state.held.len(), Ordering::SeqCst);
        drop(state);
        if deadline < self.sleeping_until.load(Ordering::SeqCst) {
            self.wake.notify_one();
        }
        Ok(id)
    }

    /// Takes a waiting pull out again, unless it was woken meanwhile.
    pub(crate) fn take(&self, id: u64) -> Option<P> {
        let mut state = self.state();
        let pull = state.remove(id);
        self.count.store(state.held.len(), Ordering::SeqCst);
        pull
    }

    /// Drops the waiting pulls of a connection that ended: nobody would read the answers.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        let mut state = self.state();
        let Some(ids) = state.connections.remove(&connection) else {
            return;
        };
        let gone: Vec<P> = ids.into_iter().filter_map(|id| state.remove(id)).collect();
        self.count.store(state.held.len(), Ordering::SeqCst);
        drop(state);
        // What a pull owns may do more at its end than a lock should be held for.
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
        self.release(topic, queue_id, Wake::Arrival, |pull| {
            after > pull.offset() && pull.matches(tags_code, properties)
        });
    }

    /// Runs every pull of a queue again.
    pub(crate) fn disturb(&self, topic: &str, queue_id: i32) {
        self.release(topic, queue_id, Wake::Over, |_| true);
    }

    /// Runs every pull of a topic again.
    pub(crate) fn disturb_topic(&self, topic: &str) {
        let queues: Vec<i32> = self
            .state()
            .queues
            .get(topic)
            .map(|queues| queues.keys().copied().collect())
            .unwrap_or_default();
        for queue_id in queues {
            self.disturb(topic, queue_id);
        }
    }

    fn release(&self, topic: &str, queue_id: i32, wake: Wake, chosen: impl Fn(&P) -> bool) {
        let mut state = self.state();
        let Some(ids) = state
            .queues
            .get(topic)
            .and_then(|queues| queues.get(&queue_id))
        else {
            return;
        };
        let ids: Vec<u64> = ids
            .iter()
            .copied()
            .filter(|id| state.held.get(id).is_some_and(&chosen))
            .collect();
        if ids.is_empty() {
            return;
        }
        for id in ids {
            if let Some(pull) = state.remove(id) {
                state.ready.push((pull, wake));
            }
        }
        self.count.store(state.held.len(), Ordering::SeqCst);
        drop(state);
        self.wake.notify_one();
    }

    /// Runs pulls again as they are woken or their time is over, until `stop`. One task per broker.
    pub(crate) async fn run(
        self: Arc<Self>,
        clock: Clock,
        stop: CancellationToken,
        again: impl Fn(P, Wake),
    ) {
        loop {
            for (pull, wake) in self.due(clock.now_millis()) {
                again(pull, wake);
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

    /// What is ready or over; afterwards `sleeping_until` is the earliest deadline left.
    fn due(&self, now: i64) -> Vec<(P, Wake)> {
        let mut state = self.state();
        let mut due = std::mem::take(&mut state.ready);
        while let Some((deadline, id)) = state.deadlines.first().copied()
            && deadline <= now
        {
            match state.remove(id) {
                Some(pull) => due.push((pull, Wake::Over)),
                None => {
                    state.deadlines.remove(&(deadline, id));
                }
            }
        }
        self.count.store(state.held.len(), Ordering::SeqCst);
        let earliest = state
            .deadlines
            .first()
            .map_or(NEVER, |(deadline, _)| *deadline);
        self.sleeping_until.store(earliest, Ordering::SeqCst);
        due
    }

    /// How many pulls wait.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn state(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Waiting> State<P> {
    fn remove(&mut self, id: u64) -> Option<P> {
        let pull = self.held.remove(&id)?;
        self.deadlines.remove(&(pull.deadline(), id));
        if let Some(queues) = self.queues.get_mut(pull.topic()) {
            if let Some(ids) = queues.get_mut(&pull.queue_id()) {
                ids.remove(&id);
                if ids.is_empty() {
                    queues.remove(&pull.queue_id());
                }
            }
            if queues.is_empty() {
                self.queues.remove(pull.topic());
            }
        }
        if let Some(ids) = self.connections.get_mut(&pull.connection()) {
            ids.remove(&id);
            if ids.is_empty() {
                self.connections.remove(&pull.connection());
            }
        }
        Some(pull)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Pull {
        queue_id: i32,
        offset: i64,
        deadline: i64,
        tag: Option<i64>,
        connection: u64,
    }

    impl Waiting for Pull {
        fn topic(&self) -> &'static str {
            "T"
        }
        fn queue_id(&self) -> i32 {
            self.queue_id
        }
        fn offset(&self) -> i64 {
            self.offset
        }
        fn deadline(&self) -> i64 {
            self.deadline
        }
        fn connection(&self) -> ConnectionId {
            ConnectionId(self.connection)
        }
        fn matches(&self, tags_code: i64, _: &[u8]) -> bool {
            self.tag.is_none_or(|tag| tag == tags_code)
        }
    }

    fn pull(queue_id: i32, offset: i64, deadline: i64) -> Pull {
        Pull {
            queue_id,
            offset,
            deadline,
            tag: None,
            connection: 1,
        }
    }

    #[test]
    fn a_message_wakes_the_pulls_of_its_queue_that_want_it() {
        let holds = Holds::new(10);
        let other_tag = Pull {
            tag: Some(7),
            ..pull(0, 5, 100)
        };
        for pull in [pull(0, 5, 100), pull(1, 5, 100), pull(0, 6, 100), other_tag] {
            assert!(holds.hold(pull).is_ok());
        }
        holds.arrived("T", 0, 6, 8, b"");
        assert_eq!(holds.due(0), [(pull(0, 5, 100), Wake::Arrival)]);
        assert_eq!(holds.len(), 3);
    }

    #[test]
    fn a_pull_ends_at_its_deadline_and_the_runner_sleeps_until_the_next() {
        let holds = Holds::new(10);
        for deadline in [30, 10, 20] {
            assert!(holds.hold(pull(0, 0, deadline)).is_ok());
        }
        assert!(holds.due(9).is_empty());
        assert_eq!(holds.sleeping_until.load(Ordering::SeqCst), 10);
        assert_eq!(
            holds.due(20),
            [(pull(0, 0, 10), Wake::Over), (pull(0, 0, 20), Wake::Over)]
        );
        assert_eq!(holds.sleeping_until.load(Ordering::SeqCst), 30);
        assert_eq!(holds.due(30).len(), 1);
        assert_eq!(holds.sleeping_until.load(Ordering::SeqCst), NEVER);
        assert!(holds.state().queues.is_empty() && holds.state().connections.is_empty());
    }

    #[test]
    fn the_pulls_of_a_connection_that_ended_leave_their_places() {
        let holds = Holds::new(2);
        let other = Pull {
            connection: 2,
            ..pull(0, 0, 10)
        };
        assert!(holds.hold(pull(0, 0, NEVER)).is_ok() && holds.hold(other.clone()).is_ok());
        assert!(holds.hold(pull(1, 0, NEVER)).is_err());
        holds.forget(ConnectionId(1));
        assert_eq!(holds.len(), 1);
        assert!(holds.hold(pull(1, 0, NEVER)).is_ok());
        holds.forget(ConnectionId(1));
        holds.forget(ConnectionId(3));
        holds.arrived("T", 0, 1, 0, b"");
        assert_eq!(holds.due(0), [(other, Wake::Arrival)]);
        assert!(holds.state().queues.is_empty() && holds.state().deadlines.is_empty());
        assert!(holds.state().connections.is_empty());
    }

    #[test]
    fn a_hundred_thousand_pulls_of_one_queue_are_woken_at_once() {
        let holds = Holds::new(100_000);
        for _ in 0..100_000 {
            assert!(holds.hold(pull(0, 0, 10)).is_ok());
        }
        // Quadratic removal would take minutes here.
        holds.arrived("T", 0, 1, 0, b"");
        assert_eq!(holds.due(0).len(), 100_000);
    }

    #[test]
    fn what_has_no_room_comes_back_and_what_is_taken_is_not_woken() {
        let holds = Holds::new(1);
        let Ok(id) = holds.hold(pull(0, 0, 10)) else {
            unreachable!("there is room for one")
        };
        assert_eq!(holds.hold(pull(0, 1, 10)), Err(pull(0, 1, 10)));
        assert_eq!(holds.take(id), Some(pull(0, 0, 10)));
        assert_eq!(holds.take(id), None);
        assert!(holds.due(100).is_empty());
    }
}
