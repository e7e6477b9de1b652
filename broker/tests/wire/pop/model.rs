//! Random consumers against a model: nothing is lost, and nothing comes after it was acknowledged in time.
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use proptest::prelude::*;

use super::*;
use crate::support::PATIENCE;

/// What consumers and operators do.
#[derive(Debug, Clone)]
enum Act {
    Send(i32),
    Pop(i32),
    /// Acknowledges one of the messages held.
    Ack(usize),
    /// Gives one of them another time, in seconds.
    Change(usize, i64),
    /// Lets so many seconds pass.
    Pass(u64),
    Restart,
    Kill,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..4).prop_map(Act::Send),
        6 => (1..5).prop_map(Act::Pop),
        5 => any::<usize>().prop_map(Act::Ack),
        2 => (any::<usize>(), 1_i64..30).prop_map(|(which, seconds)| Act::Change(which, seconds)),
        3 => (1_u64..8).prop_map(Act::Pass),
        1 => Just(Act::Restart),
        1 => Just(Act::Kill),
    ]
}

/// One message as the consumers know it.
#[derive(Debug)]
struct Held {
    handle: Handle,
    /// When it becomes visible again.
    until: i64,
}

struct Model {
    fixture: Fixture,
    peer: Peer,
    now: i64,
    sent: usize,
    held: BTreeMap<String, Held>,
    done: BTreeSet<String>,
    seen: BTreeSet<String>,
}

impl Model {
    async fn start() -> Self {
        // An append that the clock jumps over is no slow one.
        let fixture =
            Fixture::with(|config| config.os_page_cache_busy_time_out_mills = 1_000_000).await;
        let peer = fixture.peer().await;
        Self {
            fixture,
            peer,
            now: crate::support::START,
            sent: 0,
            held: BTreeMap::new(),
            done: BTreeSet::new(),
            seen: BTreeSet::new(),
        }
    }

    async fn run(mut self, acts: Vec<Act>) {
        for act in acts {
            self = self.act(act).await;
        }
        if self.sent == 0 {
            return;
        }
        // In the end everything comes and is acknowledged. The broker's tasks need time of this world between two steps.
        let deadline = Instant::now() + PATIENCE;
        while self.done.len() < self.sent {
            assert!(
                Instant::now() < deadline,
                "{} of {} came",
                self.done.len(),
                self.sent
            );
            self.pass(10).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.pop(32).await;
            for name in self.held.keys().cloned().collect::<Vec<_>>() {
                self.ack(&name).await;
            }
        }
        self.fixture.broker.shutdown().await.unwrap();
    }

    async fn act(mut self, act: Act) -> Self {
        match act {
            Act::Send(queue) => {
                self.peer.send("T", queue, &self.sent.to_string(), "").await;
                self.sent += 1;
            }
            Act::Pop(most) if self.sent > 0 => self.pop(most).await,
            Act::Ack(which) => {
                if let Some(name) = self.choose(which) {
                    self.ack(&name).await;
                }
            }
            Act::Change(which, seconds) => {
                if let Some(name) = self.choose(which) {
                    self.change(&name, seconds * 1000).await;
                }
            }
            Act::Pass(seconds) => self.pass(seconds).await,
            Act::Restart => {
                self.fixture = self.fixture.restart().await;
                self.peer = self.fixture.peer().await;
            }
            Act::Kill => {
                self.fixture = self.fixture.drop_and_start().await;
                self.peer = self.fixture.peer().await;
            }
            Act::Pop(_) => {}
        }
        self
    }

    /// One that is held and not visible to others yet.
    fn choose(&self, which: usize) -> Option<String> {
        let mine: Vec<&String> = self
            .held
            .iter()
            .filter(|(_, held)| held.until > self.now)
            .map(|(name, _)| name)
            .collect();
        (!mine.is_empty()).then(|| mine[which % mine.len()].clone())
    }

    async fn pop(&mut self, most: i32) {
        let popped = pop_with(&self.peer, |header| header.max_msg_nums = most).await;
        for name in popped.bodies() {
            assert!(!self.done.contains(&name), "{name} came after its ack");
            if let Some(held) = self.held.get(&name) {
                assert!(held.until <= self.now, "{name} came while it was hidden");
            }
            let handle = popped.handle(&name);
            let until = popped.reply.pop_time + popped.reply.invisible_time;
            self.seen.insert(name.clone());
            self.held.insert(name, Held { handle, until });
        }
    }

    async fn ack(&mut self, name: &str) {
        let Some(held) = self.held.remove(name) else {
            return;
        };
        // Too late is too late: whether it is on its way back already, nobody can tell.
        if held.until > self.now {
            ack(&self.peer, &held.handle).await;
            self.done.insert(name.to_owned());
        }
    }

    async fn change(&mut self, name: &str, millis: i64) {
        let Some(held) = self.held.get_mut(name) else {
            return;
        };
        let answer = self.peer.ok(change_request(&held.handle, millis)).await;
        let reply: bindery_protocol::headers::ChangeInvisibleTimeReply = answer.header().unwrap();
        let old = Receipt::parse(&held.handle.receipt).unwrap();
        let receipt = Receipt {
            start_offset: held.handle.offset,
            pop_time: reply.pop_time.unwrap(),
            invisible_time: reply.invisible_time.unwrap(),
            revive_queue: reply.revive_qid.unwrap(),
            ..old
        }
        .to_string();
        held.handle.receipt = receipt;
        held.until = self.now + millis;
    }

    async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.fixture.clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
        self.now += i64::try_from(seconds).unwrap() * 1000;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_nothing_comes_after_its_ack(acts in prop::collection::vec(act(), 1..60)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async { Model::start().await.run(acts).await });
    }
}
