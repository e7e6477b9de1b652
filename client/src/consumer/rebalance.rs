//! Which queues this member should have, and the difference to those it has.
//!
//! ```text
//! start · 40 from a broker · changed route · reconnect · every 20 s ─▶ members (38) + queues ─▶ allocate
//!      ├─ new queue ───────────▶ a task for it: acquire ─▶ pull ─▶ release
//!      └─ no longer ours ──────▶ its task is told to leave
//! ```
use std::{
    collections::{BTreeSet, HashMap, btree_map::Entry},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{MessageModel, core::ConsumerCore, process_queue::ProcessQueue};
use crate::{
    MessageQueue,
    instance::{Server, TopicRoute, warn_once},
};

/// After a pass that could not find out everything.
const AGAIN: Duration = Duration::from_secs(1);
/// First look for a topic that is not there yet; doubled up to the interval of the route rounds.
const FIRST_LOOK: Duration = Duration::from_millis(100);

/// Passes, one at a time, until the stop; then every queue is told to leave.
pub(super) async fn rounds(core: Arc<ConsumerCore>) {
    let clock = core.client.config.clock.clone();
    loop {
        let balanced = core.rebalance().await;
        core.first_pass.cancel();
        let pause = if balanced {
            core.client.config.rebalance_interval
        } else {
            AGAIN
        };
        tokio::select! {
            () = core.rebalance_wanted() => {}
            () = clock.sleep(pause) => {}
        }
        // While paused the queues are kept as they are.
        core.not_paused().await;
    }
}

/// Looks for subscribed topics that do not exist yet, the retry topic among them, more and more rarely. The first send-back makes the
/// broker create the retry topic: it is looked for at once then, or the first retry would wait for the next route round.
pub(super) async fn watch_routes(core: Arc<ConsumerCore>) {
    let clock = core.client.config.clock.clone();
    let mut pause = FIRST_LOOK;
    loop {
        let missing: Vec<_> = core
            .subscriptions
            .iter()
            .filter(|wanted| core.client.routes.existing(&wanted.topic).is_none())
            .collect();
        if missing.is_empty() {
            return;
        }
        tokio::select! {
            () = core.retry_expected.notified() => pause = FIRST_LOOK,
            () = clock.sleep(pause) => pause = (pause * 2).min(core.client.config.poll_name_server_interval),
        }
        for subscription in missing {
            if core.look_up(&subscription.topic).await {
                core.rebalance_soon();
            }
        }
    }
}

impl ConsumerCore {
    /// One pass; answers whether everything could be found out.
    async fn rebalance(self: &Arc<Self>) -> bool {
        let mut members_of = HashMap::new();
        let mut balanced = true;
        for subscription in &self.subscriptions {
            if self.stop.is_cancelled() {
                return true;
            }
            let topic = &subscription.topic;
            let Some(route) = self.client.routes.existing(topic) else {
                continue;
            };
            self.known.first_look(topic, Some(&route));
            let (mine, contested) = match self.settings.model {
                MessageModel::Broadcasting => (route.subscribe.clone(), false),
                MessageModel::Clustering => {
                    let Some(members) = self.members(&route, &mut members_of).await else {
                        balanced = false;
                        continue;
                    };
                    let mine = self.share(topic, &route, &members);
                    (mine, members.len() > 1)
                }
            };
            self.assign(topic, mine, contested);
        }
        balanced
    }

    /// This member's queues of one topic.
    fn share(&self, topic: &str, route: &TopicRoute, members: &[String]) -> Vec<MessageQueue> {
        let me = &self.client.id;
        let strategy = &self.settings.strategy;
        strategy.of_topic(topic, &route.subscribe, members, me)
    }

    /// The sorted members of the group, as the first broker of the topic that answers knows them. All members ask in the same order,
    /// so they see the same list.
    async fn members(
        &self,
        route: &TopicRoute,
        asked: &mut HashMap<String, Option<Vec<String>>>,
    ) -> Option<Vec<String>> {
        for broker in &route.brokers {
            let Some(addr) = self
                .client
                .routes
                .address(broker, crate::instance::MASTER, false)
            else {
                continue;
            };
            if !asked.contains_key(&addr) {
                let answer = self.ask_members(&addr).await;
                asked.insert(addr.clone(), answer);
            }
            if let Some(Some(members)) = asked.get(&addr) {
                return Some(members.clone());
            }
        }
        None
    }

    async fn ask_members(&self, addr: &str) -> Option<Vec<String>> {
        match self.client.members(addr, self.group()).await {
            Ok(mut members) => {
                members.sort();
                members.dedup();
                if !members.contains(&self.client.id) {
                    // The broker forgot us, perhaps it was restarted. Nobody may take that for "no queue is mine".
                    tracing::info!(
                        addr,
                        group = self.group(),
                        "the broker does not know this member: heartbeat"
                    );
                    self.introduce_to(addr).await;
                    return None;
                }
                Some(members)
            }
            Err(error) => {
                let news = self.client.is_news(Server::At(addr), &error);
                warn_once!(news, addr, group = self.group(), %error, "members of the group not found out");
                self.introduce_to(addr).await;
                None
            }
        }
    }

    pub(super) async fn introduce_to(&self, addr: &str) {
        if let Err(error) = self.client.heartbeat_to(addr).await {
            tracing::debug!(addr, %error, "heartbeat failed");
        }
    }

    fn assign(self: &Arc<Self>, topic: &str, mine: Vec<MessageQueue>, contested: bool) {
        let mine: BTreeSet<_> = mine.into_iter().collect();
        self.note_resets(topic, &mine, contested);
        let new = self.with_held(|held| {
            for (mq, queue) in held.iter().filter(|(mq, _)| mq.topic == topic) {
                let ours = mine.contains(mq);
                if !ours && !queue.leave.is_cancelled() {
                    tracing::info!(queue = %mq, group = self.group(), "queue goes to another member");
                    queue.leave.cancel();
                }
                queue.wanted_again.store(ours && queue.leave.is_cancelled(), Ordering::Release);
            }
            let mut new = Vec::new();
            for mq in mine {
                if let Entry::Vacant(place) = held.entry(mq) {
                    let queue = ProcessQueue::new(place.key().clone(), self.stop.child_token(), contested, self.now());
                    new.push(Arc::clone(place.insert(Arc::new(queue))));
                }
            }
            new
        });
        for queue in new {
            self.tasks.spawn(super::pull::own(Arc::clone(self), queue));
        }
    }
}
