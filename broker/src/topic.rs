//! The topics of a broker: their configuration, how they come to be, and which of them name servers don't know yet.
//!
//! ```text
//! topics.json ─▶ Topics ─┬─ send: Topics::for_send ─▶ found, or made from the template topic TBW102
//!   17, 215 (admin) ──▶  ├─ pull, offsets: Topics::topic
//!   heartbeat, 36 ────▶  └─ every change ─▶ change log ─▶ registration at once
//! ```
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use bindery_protocol::{
    bodies::{DataVersion, PERM_INHERIT, PERM_READ, PERM_WRITE, TopicConfig, TopicConfigTable},
    names,
};
use bindery_remoting::Clock;
use tokio::sync::watch;

use crate::{
    config::BrokerConfig,
    limits::{self, MOST_QUEUES},
    refusal::Refusal,
    store::LIGHT_PREFIX,
    table::{ConfigTable, Durability, Entry, TableError},
};

impl Entry for TopicConfig {
    type File = TopicConfigTable;
    type Rest = ();
    const FILE: &'static str = "topics.json";

    fn name(&self) -> &str {
        &self.topic_name
    }

    fn pack(entries: Vec<Arc<Self>>, (): (), version: DataVersion) -> Self::File {
        TopicConfigTable {
            data_version: version,
            topic_config_table: entries
                .into_iter()
                .map(|entry| (entry.topic_name.clone(), Arc::unwrap_or_clone(entry)))
                .collect(),
            ..Default::default()
        }
    }

    fn unpack(file: Self::File) -> (Vec<Self>, (), DataVersion) {
        (
            file.topic_config_table.into_values().collect(),
            (),
            file.data_version,
        )
    }

    fn admitted(self) -> Option<Self> {
        limits::loaded_topic(self)
    }
}

/// The topics of a broker.
pub(crate) struct Topics {
    table: ConfigTable<TopicConfig>,
    /// Whether there are light queues.
    light: bool,
    auto_create: AtomicBool,
    clock: Clock,
    system: BTreeSet<String>,
    log: Mutex<ChangeLog>,
    latest_change: watch::Sender<u64>,
}

/// Topics by their last change, so that each name server can be told what it missed.
#[derive(Default)]
struct ChangeLog {
    by_number: BTreeMap<u64, String>,
    numbers: HashMap<String, u64>,
    last: u64,
}

impl Topics {
    /// Reads the table of `dir` and adds the topics every broker has.
    pub(crate) fn open(
        dir: &Path,
        config: &BrokerConfig,
        durability: Durability,
    ) -> Result<Self, TableError> {
        let builtin = builtin(config);
        let topics = Self {
            table: ConfigTable::open(dir, durability)?,
            light: config.enable_lmq,
            auto_create: AtomicBool::new(config.auto_create_topic_enable),
            clock: config.clock.clone(),
            system: builtin
                .iter()
                .map(|topic| topic.topic_name.clone())
                .collect(),
            log: Mutex::default(),
            latest_change: watch::Sender::new(0),
        };
        for topic in builtin {
            topics.table.put(topic, topics.clock.now_millis())?;
        }
        Ok(topics)
    }

    /// The table itself, for its file.
    pub(crate) fn table(&self) -> &ConfigTable<TopicConfig> {
        &self.table
    }

    /// The configuration of a topic. Every light queue is one, with one queue, and stands in no table.
    pub(crate) fn topic(&self, name: &str) -> Option<Arc<TopicConfig>> {
        if self.light && name.starts_with(LIGHT_PREFIX) && names::check_topic(name).is_ok() {
            return Some(Arc::new(TopicConfig::new(name, 1, PERM_READ | PERM_WRITE)));
        }
        self.table.entry(name)
    }

    /// The configuration of a topic, or the refusal every request gives for an unknown one.
    pub(crate) fn known(&self, name: &str) -> Result<Arc<TopicConfig>, Refusal> {
        self.topic(name).ok_or_else(|| Refusal::TopicUnknown {
            topic: name.to_owned(),
        })
    }

    /// Whether the topic belongs to the broker and not to users.
    pub(crate) fn is_system(&self, name: &str) -> bool {
        self.system.contains(name) || names::is_system_topic(name)
    }

    /// The names of all system topics this broker has.
    pub(crate) fn system_topics(&self) -> Vec<String> {
        let mut names: Vec<String> = self.system.iter().cloned().collect();
        names.extend(
            names::SYSTEM_TOPICS
                .iter()
                .map(|name| (*name).to_owned())
                .filter(|name| !self.system.contains(name)),
        );
        names
    }

    /// The topic of a send: found, or made after the template the client names, or, for a retry topic, with one queue.
    ///
    /// # Errors
    /// [`Refusal::TopicUnknown`] when it may not be made.
    pub(crate) fn for_send(
        &self,
        name: &str,
        template: &str,
        client_queues: i32,
        topic_sys_flag: i32,
    ) -> Result<Arc<TopicConfig>, Refusal> {
        if let Some(known) = self.topic(name) {
            return Ok(known);
        }
        if let Some(made) = self.after_template(name, template, client_queues, topic_sys_flag)? {
            return Ok(made);
        }
        if name.starts_with(names::RETRY_PREFIX) {
            return self.derived(name, 1, PERM_WRITE | PERM_READ, topic_sys_flag);
        }
        Err(Refusal::TopicUnknown {
            topic: name.to_owned(),
        })
    }

    fn after_template(
        &self,
        name: &str,
        template: &str,
        client_queues: i32,
        topic_sys_flag: i32,
    ) -> Result<Option<Arc<TopicConfig>>, Refusal> {
        let Some(template) = self.topic(template) else {
            return Ok(None);
        };
        let open =
            template.topic_name != names::AUTO_CREATE_TOPIC || self.auto_create.load(Relaxed);
        if template.perm & PERM_INHERIT == 0 || !open {
            return Ok(None);
        }
        let made = TopicConfig {
            topic_filter_type: template.topic_filter_type,
            topic_sys_flag,
            ..TopicConfig::new(
                name,
                client_queues
                    .min(template.write_queue_nums)
                    .clamp(1, MOST_QUEUES),
                template.perm & !PERM_INHERIT,
            )
        };
        self.make(name, || made).map(Some)
    }

    /// A topic the broker itself needs (retry, dead letters): made on first need.
    pub(crate) fn derived(
        &self,
        name: &str,
        queues: i32,
        perm: i32,
        topic_sys_flag: i32,
    ) -> Result<Arc<TopicConfig>, Refusal> {
        if let Some(known) = self.topic(name) {
            return Ok(known);
        }
        self.make(name, || TopicConfig {
            topic_sys_flag,
            ..TopicConfig::new(name, queues, perm)
        })
    }

    fn make(
        &self,
        name: &str,
        make: impl FnOnce() -> TopicConfig,
    ) -> Result<Arc<TopicConfig>, Refusal> {
        let (topic, is_new) = self
            .table
            .entry_or_make(name, self.clock.now_millis(), make)?;
        if is_new {
            tracing::info!(topic = name, queues = topic.write_queue_nums, "topic made");
            self.changed(name);
        }
        Ok(topic)
    }

    /// Puts a topic, new or changed.
    pub(crate) fn put(&self, topic: TopicConfig) -> Result<(), Refusal> {
        let name = topic.topic_name.clone();
        self.table.put(topic, self.clock.now_millis())?;
        self.changed(&name);
        Ok(())
    }

    /// Lets sends make topics from now on, or no longer. The template is there from then on; without it producers would
    /// find no broker to send to.
    ///
    /// # Errors
    /// When the template can't be kept.
    pub(crate) fn auto_create(&self, enabled: bool, queues: i32) -> Result<(), Refusal> {
        if enabled {
            self.make(names::AUTO_CREATE_TOPIC, || {
                TopicConfig::new(
                    names::AUTO_CREATE_TOPIC,
                    queues,
                    PERM_WRITE | PERM_READ | PERM_INHERIT,
                )
            })?;
        }
        self.auto_create.store(enabled, Relaxed);
        Ok(())
    }

    /// Has name servers be told of every topic again: what the broker as a whole permits has changed.
    pub(crate) fn announce_all(&self) {
        self.table.new_version(self.clock.now_millis());
        let topics = self.table.entries();
        self.all_changed(topics.iter().map(|topic| topic.topic_name.as_str()));
    }

    /// Runs `act` while a topic of that name can't be made; not at all when there is one.
    pub(crate) fn while_absent<R>(&self, name: &str, act: impl FnOnce() -> R) -> Option<R> {
        self.table.while_absent(name, act)
    }

    /// Removes a topic; whether there was one.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, Refusal> {
        let mut log = self.log();
        if let Some(number) = log.numbers.remove(name) {
            log.by_number.remove(&number);
        }
        drop(log);
        Ok(self.table.remove(name, self.clock.now_millis())?.is_some())
    }

    /// The number of the last change.
    pub(crate) fn last_change(&self) -> u64 {
        self.log().last
    }

    /// Topics changed after change number `seen` that still are there.
    pub(crate) fn changed_since(&self, seen: u64) -> Vec<Arc<TopicConfig>> {
        let names: Vec<String> = self
            .log()
            .by_number
            .range(seen + 1..)
            .map(|(_, name)| name.clone())
            .collect();
        names.iter().filter_map(|name| self.topic(name)).collect()
    }

    /// Tells of every change, by its number.
    pub(crate) fn watch_changes(&self) -> watch::Receiver<u64> {
        self.latest_change.subscribe()
    }

    fn changed(&self, name: &str) {
        self.all_changed([name]);
    }

    fn all_changed<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut log = self.log();
        for name in names {
            log.last += 1;
            let last = log.last;
            if let Some(before) = log.numbers.insert(name.to_owned(), last) {
                log.by_number.remove(&before);
            }
            log.by_number.insert(last, name.to_owned());
        }
        let last = log.last;
        drop(log);
        self.latest_change.send_replace(last);
    }

    fn log(&self) -> MutexGuard<'_, ChangeLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The topics a broker makes at start (`TopicConfigManager.init` of Apache `RocketMQ` 5.3.3).
fn builtin(config: &BrokerConfig) -> Vec<TopicConfig> {
    let both = PERM_WRITE | PERM_READ;
    let open = both | PERM_INHERIT;
    let cluster = &config.broker_cluster_name;
    let broker = &config.broker_name;
    let named = |allowed: bool| if allowed { open } else { PERM_INHERIT };
    let mut topics = vec![
        TopicConfig::new("SELF_TEST_TOPIC", 1, both),
        TopicConfig::new("BenchmarkTest", 1024, both),
        TopicConfig::new(cluster, 16, named(config.cluster_topic_enable)),
        TopicConfig::new(broker, 1, named(config.broker_topic_enable)),
        TopicConfig::new("OFFSET_MOVED_EVENT", 1, both),
        TopicConfig::new(names::SCHEDULE_TOPIC, 18, both),
        TopicConfig::new(format!("{cluster}_REPLY_TOPIC"), 1, both),
        TopicConfig::new(
            format!("rmq_sys_REVIVE_LOG_{cluster}"),
            config.revive_queue_num,
            both,
        ),
        TopicConfig::new(
            format!("rmq_sys_SYNC_BROKER_MEMBER_{broker}"),
            1,
            PERM_INHERIT,
        ),
        TopicConfig::new(names::TRANS_HALF_TOPIC, 1, both),
        TopicConfig::new(names::TRANS_OP_HALF_TOPIC, 1, both),
    ];
    if config.auto_create_topic_enable {
        topics.push(TopicConfig::new(
            names::AUTO_CREATE_TOPIC,
            config.default_topic_queue_nums,
            open,
        ));
    }
    if config.trace_topic_enable {
        topics.push(TopicConfig::new(&config.msg_trace_topic_name, 1, both));
    }
    if config.timer_wheel_enable {
        topics.push(TopicConfig::new("rmq_sys_wheel_timer", 1, both));
    }
    topics
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    fn topics(change: impl FnOnce(&mut BrokerConfig)) -> (tempfile::TempDir, Topics) {
        let dir = tempfile::tempdir().unwrap();
        let mut config = BrokerConfig {
            broker_name: "b".into(),
            ..BrokerConfig::default()
        };
        change(&mut config);
        let topics = Topics::open(dir.path(), &config, Durability::Process).unwrap();
        (dir, topics)
    }

    #[test]
    fn a_send_makes_an_unknown_topic_with_the_smaller_queue_count() {
        let (_dir, topics) = topics(|_| {});
        let four = topics.for_send("T", "TBW102", 4, 0).unwrap();
        assert_eq!(
            (four.read_queue_nums, four.write_queue_nums, four.perm),
            (4, 4, 6)
        );
        assert_eq!(
            topics
                .for_send("U", "TBW102", 16, 0)
                .unwrap()
                .write_queue_nums,
            8
        );
        topics.remove("U").unwrap();
        for none in [0, -1] {
            let made = topics.for_send("U", "TBW102", none, 0).unwrap();
            assert_eq!((made.read_queue_nums, made.write_queue_nums), (1, 1));
            topics.remove("U").unwrap();
        }
        topics.for_send("U", "TBW102", 16, 0).unwrap();
        let names = |seen| {
            topics
                .changed_since(seen)
                .iter()
                .map(|topic| topic.topic_name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(0), ["T", "U"]);
        assert!(names(topics.last_change()).is_empty());
        topics.put(TopicConfig::new("T", 5, 6)).unwrap();
        assert_eq!(names(1), ["U", "T"]);
    }

    #[test]
    fn without_auto_creation_only_retry_topics_are_made() {
        let (_dir, topics) = topics(|config| config.auto_create_topic_enable = false);
        assert!(matches!(
            topics.for_send("T", "TBW102", 4, 0),
            Err(Refusal::TopicUnknown { .. })
        ));
        assert_eq!(
            topics
                .for_send("%RETRY%g", "TBW102", 4, 0)
                .unwrap()
                .write_queue_nums,
            1
        );
    }

    #[test]
    fn a_topic_without_the_inherit_bit_is_no_template() {
        let (_dir, topics) = topics(|_| {});
        topics
            .put(TopicConfig::new("Plain", 4, PERM_WRITE | PERM_READ))
            .unwrap();
        assert!(matches!(
            topics.for_send("T", "Plain", 4, 0),
            Err(Refusal::TopicUnknown { .. })
        ));
    }

    #[test]
    fn a_topic_made_by_a_send_is_there_after_a_kill() {
        let (dir, topics) = topics(|_| {});
        topics.for_send("T", "TBW102", 4, 0).unwrap();
        drop(topics);
        let config = BrokerConfig::default();
        let again = Topics::open(dir.path(), &config, Durability::Process).unwrap();
        assert_eq!(again.topic("T").unwrap().write_queue_nums, 4);
    }
}
