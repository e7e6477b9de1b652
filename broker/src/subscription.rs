//! The consumer groups of a broker: their configuration, made on first use.
//!
//! ```text
//! subscriptionGroup.json ─▶ Groups ─▶ heartbeat, pull, send-back: Groups::group ─▶ found, or made with the defaults
//! ```
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use bindery_protocol::{
    bodies::{DataVersion, SubscriptionGroupConfig, SubscriptionGroupTable},
    names,
};
use bindery_remoting::Clock;

use crate::{
    config::BrokerConfig,
    limits,
    refusal::Refusal,
    store::LIGHT_PREFIX,
    table::{ConfigTable, Durability, Entry, TableError},
};

impl Entry for SubscriptionGroupConfig {
    type File = SubscriptionGroupTable;
    type Rest = Forbidden;
    const FILE: &'static str = "subscriptionGroup.json";

    fn name(&self) -> &str {
        &self.group_name
    }

    fn pack(entries: Vec<Arc<Self>>, forbidden: Forbidden, version: DataVersion) -> Self::File {
        SubscriptionGroupTable {
            data_version: version,
            subscription_group_table: entries
                .into_iter()
                .map(|entry| (entry.group_name.clone(), Arc::unwrap_or_clone(entry)))
                .collect(),
            forbidden_table: forbidden,
        }
    }

    fn unpack(file: Self::File) -> (Vec<Self>, Forbidden, DataVersion) {
        (
            file.subscription_group_table.into_values().collect(),
            file.forbidden_table,
            file.data_version,
        )
    }

    fn admitted(self) -> Option<Self> {
        limits::loaded_group(self)
    }
}

/// By group, then topic: bits of what the group may not do (353).
type Forbidden = BTreeMap<String, BTreeMap<String, i32>>;
/// The bit of reading (`PermName.INDEX_PERM_READ` of Apache `RocketMQ` 5.3.3 is its number).
const READING: i32 = 1 << 2;

/// The consumer groups.
pub(crate) struct Groups {
    table: ConfigTable<SubscriptionGroupConfig>,
    /// Whether there are light queues, and groups of that name, which stand in no table.
    light: bool,
    auto_create: AtomicBool,
    clock: Clock,
}

impl Groups {
    /// Reads the table of `dir` and adds the groups every broker has.
    pub(crate) fn open(
        dir: &Path,
        config: &BrokerConfig,
        durability: Durability,
    ) -> Result<Self, TableError> {
        let groups = Self {
            table: ConfigTable::open(dir, durability)?,
            light: config.enable_lmq,
            auto_create: AtomicBool::new(config.auto_create_subscription_group),
            clock: config.clock.clone(),
        };
        for name in names::BUILT_IN_GROUPS {
            groups
                .table
                .entry_or_make(name, groups.clock.now_millis(), || {
                    SubscriptionGroupConfig::new(name)
                })?;
        }
        Ok(groups)
    }

    /// The table itself, for its file.
    pub(crate) fn table(&self) -> &ConfigTable<SubscriptionGroupConfig> {
        &self.table
    }

    /// The group, if it is known; it is not made.
    pub(crate) fn known(&self, name: &str) -> Option<Arc<SubscriptionGroupConfig>> {
        if self.light && name.starts_with(LIGHT_PREFIX) && limits::group(name).is_ok() {
            return Some(Arc::new(SubscriptionGroupConfig::new(name)));
        }
        self.table.entry(name)
    }

    /// The group, made with the defaults when it is unknown and groups may be made.
    ///
    /// # Errors
    /// A name that no group can have, and a failed write of the table.
    pub(crate) fn group(
        &self,
        name: &str,
    ) -> Result<Option<Arc<SubscriptionGroupConfig>>, Refusal> {
        if let Some(known) = self.known(name) {
            return Ok(Some(known));
        }
        limits::group(name)?;
        if !(self.auto_create.load(Relaxed) || names::is_system_group(name)) {
            return Ok(None);
        }
        let (group, made) = self
            .table
            .entry_or_make(name, self.clock.now_millis(), || {
                SubscriptionGroupConfig::new(name)
            })?;
        if made {
            tracing::info!(group = name, "consumer group made");
        }
        Ok(Some(group))
    }

    /// As [`Groups::group`], for requests that need the group.
    ///
    /// # Errors
    /// [`Refusal::GroupUnknown`] besides.
    pub(crate) fn required(&self, name: &str) -> Result<Arc<SubscriptionGroupConfig>, Refusal> {
        self.group(name)?.ok_or_else(|| Refusal::GroupUnknown {
            group: name.to_owned(),
        })
    }

    /// Puts a group, new or changed.
    pub(crate) fn put(&self, group: SubscriptionGroupConfig) -> Result<(), Refusal> {
        self.table.put(group, self.clock.now_millis())?;
        Ok(())
    }

    /// Lets groups be made on first use from now on, or no longer.
    pub(crate) fn auto_create(&self, enabled: bool) {
        self.auto_create.store(enabled, Relaxed);
    }

    /// Whether a group may read a topic.
    pub(crate) fn may_read(&self, group: &str, topic: &str) -> bool {
        self.table.rest(|forbidden| {
            let topics = forbidden.get(group);
            topics
                .and_then(|topics| topics.get(topic))
                .is_none_or(|bits| bits & READING == 0)
        })
    }

    /// Allows a group to read a topic, or forbids it.
    ///
    /// # Errors
    /// When the table can't be written.
    pub(crate) fn let_read(&self, group: &str, topic: &str, readable: bool) -> Result<(), Refusal> {
        self.table
            .change_rest(self.clock.now_millis(), |forbidden| {
                let topics = forbidden.entry(group.to_owned()).or_default();
                let bits = topics.entry(topic.to_owned()).or_default();
                if readable {
                    *bits &= !READING;
                } else {
                    *bits |= READING;
                }
                topics.retain(|_, bits| *bits != 0);
                forbidden.retain(|_, topics| !topics.is_empty());
            })?;
        Ok(())
    }

    /// Forgets what groups may not do with a topic.
    ///
    /// # Errors
    /// When the table can't be written.
    pub(crate) fn forget_topic(&self, topic: &str) -> Result<(), Refusal> {
        self.table
            .change_rest(self.clock.now_millis(), |forbidden| {
                forbidden.retain(|_, topics| {
                    topics.remove(topic);
                    !topics.is_empty()
                });
            })?;
        Ok(())
    }

    /// Removes a group and what it may not do; whether there was one.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, Refusal> {
        self.table
            .change_rest(self.clock.now_millis(), |forbidden| {
                forbidden.remove(name);
            })?;
        Ok(self.table.remove(name, self.clock.now_millis())?.is_some())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn an_unknown_group_is_made_with_sixteen_retries_unless_that_is_off() {
        let dir = tempfile::tempdir().unwrap();
        let groups =
            Groups::open(dir.path(), &BrokerConfig::default(), Durability::Process).unwrap();
        let made = groups.group("CG").unwrap().unwrap();
        assert_eq!((made.retry_max_times, made.retry_queue_nums), (16, 1));
        assert!(matches!(
            groups.group("no good"),
            Err(Refusal::GroupName(_))
        ));
        assert!(matches!(
            groups.group(&"g".repeat(249)),
            Err(Refusal::GroupTooLong { .. })
        ));

        let off = BrokerConfig {
            auto_create_subscription_group: false,
            ..BrokerConfig::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let groups = Groups::open(dir.path(), &off, Durability::Process).unwrap();
        assert!(groups.group("CG").unwrap().is_none());
        assert!(groups.group("TOOLS_CONSUMER").unwrap().is_some());
    }
}
