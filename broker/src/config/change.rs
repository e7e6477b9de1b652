//! What a request may change of a broker's configuration (25), and when the change is in force.
//!
//! ```text
//! properties text ─▶ BrokerConfig::changed ─┬─ names a file, opens administration, is on the black list ─▶ refused
//!                                           ├─ the running broker is bound to it: name, ports, sizes    ─▶ refused
//!                                           ├─ LIVE: in force at once
//!                                           └─ any other known key: kept, in force from the next start
//! ```
//! All of a request is taken, or nothing. Keys nobody knows are passed over, as Apache's broker does: its tools send keys
//! of newer versions.
use super::{BrokerConfig, other_defaults};
use crate::properties::{Mistake, Problem, Properties};

/// Keys that are read whenever they matter, so that a change is in force at once.
const LIVE: &[&str] = &[
    "allowRecallWhenBrokerNotWriteable",
    "autoCreateSubscriptionGroup",
    "autoCreateTopicEnable",
    "brokerPermission",
    "channelExpiredTimeout",
    "cleanFileForciblyEnable",
    "defaultQueryMaxNum",
    "deleteCommitLogFilesInterval",
    "deleteFileBatchMax",
    "deleteWhen",
    "diskMaxUsedSpaceRatio",
    "diskSpaceCleanForciblyRatio",
    "diskSpaceWarningLevelRatio",
    "enablePropertyFilter",
    "fileReservedTime",
    "flushConsumerOffsetInterval",
    "flushDelayOffsetInterval",
    "litePullMessageEnable",
    "longPollingEnable",
    "notifyConsumerIdsChangedEnable",
    "pullBatchMaxMessageCount",
    "recallMessageEnable",
    "redeleteHangedFileInterval",
    "rejectTransactionMessage",
    "sendThreadPoolQueueCapacity",
    "shortPollingTimeMills",
    "startAcceptSendRequestTimeStamp",
    "storeReplyMessageEnable",
    "timerStopDequeue",
    "timerStopEnqueue",
    "transactionCheckInterval",
    "transactionCheckMax",
    "transactionTimeOut",
    "useServerSideResetOffset",
];

/// Keys that a broker is known by or that its files were made with: with another value the next start would be another
/// broker, or would not find its messages.
const BOUND: &[&str] = &[
    "bindAddress",
    "brokerClusterName",
    "brokerIP1",
    "brokerIP2",
    "brokerId",
    "brokerName",
    "brokerRole",
    "haListenPort",
    "listenPort",
    "mappedFileSizeCommitLog",
    "mappedFileSizeConsumeQueue",
    "maxHashSlotNum",
    "maxIndexNum",
    "namesrvAddr",
];

/// Why a change by request is refused as a whole.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    /// No request may ever change it.
    #[error("Can not update config in black list.")]
    BlackListed,
    /// It can't change while the broker runs.
    #[error(
        "`{key}` can't be changed by request: the broker is bound to it until it is started with another one"
    )]
    Bound {
        /// The key.
        key: String,
    },
    /// A value that can't be honoured.
    #[error("{0}")]
    Mistake(Mistake),
}

/// A configuration after a change by request.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) config: BrokerConfig,
    /// Keys and values that differ from before, in the order of the request.
    pub(crate) values: Vec<(String, String)>,
}

impl BrokerConfig {
    /// The configuration as a request wants it.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing of the request counts then.
    pub(crate) fn changed(&self, properties: &Properties) -> Result<Changed, ChangeError> {
        let entries = properties.entries();
        if entries.iter().any(|entry| self.is_black_listed(&entry.key)) {
            return Err(ChangeError::BlackListed);
        }
        if let Some(bound) = entries
            .iter()
            .find(|entry| BOUND.contains(&entry.key.as_str()))
        {
            return Err(ChangeError::Bound {
                key: bound.key.clone(),
            });
        }
        let mut config = self.clone();
        let mistakes = config.apply(properties).into_iter();
        if let Some(mistake) = mistakes
            .into_iter()
            .find(|mistake| matches!(mistake.problem, Problem::Invalid { .. }))
        {
            return Err(ChangeError::Mistake(mistake));
        }
        let values = entries
            .iter()
            .filter_map(|entry| {
                let value = config.text(&entry.key)?;
                (self.text(&entry.key).as_ref() != Some(&value)).then(|| (entry.key.clone(), value))
            })
            .collect();
        Ok(Changed { config, values })
    }

    /// Keys that name files or programs, that decide about this very list or who may administer, and what the operator
    /// added: an attacker who reaches the port must not get further than the broker.
    fn is_black_listed(&self, key: &str) -> bool {
        let names_a_file = key.contains("Path") || key.ends_with("Home");
        let own = matches!(key, "configBlackList" | "adminFromOtherHosts");
        let listed = self.other.get("configBlackList");
        names_a_file
            || own
            || listed.is_some_and(|list| list.split(';').any(|listed| listed.trim() == key))
    }

    /// The value of a key as text; none for keys nobody knows.
    fn text(&self, key: &str) -> Option<String> {
        let typed = self.typed().into_iter().find(|(name, _)| *name == key);
        typed.map(|(_, value)| value).or_else(|| {
            let kept = self.other.get(key).cloned();
            kept.or_else(|| {
                other_defaults()
                    .find(|(name, _)| *name == key)
                    .map(|(_, value)| value.to_owned())
            })
        })
    }
}

/// Whether a change of a key is in force at once.
pub(crate) fn is_live(key: &str) -> bool {
    LIVE.contains(&key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    fn change(config: &BrokerConfig, text: &str) -> Result<Changed, ChangeError> {
        config.changed(&Properties::parse(text).unwrap())
    }

    #[test]
    fn l29_keys_that_reach_beyond_the_broker_are_refused_with_all_of_their_request() {
        let mut config = BrokerConfig::default();
        config
            .set("configBlackList", "configBlackList;traceOn")
            .unwrap();
        for key in [
            "brokerConfigPath",
            "rocketmqHome",
            "configBlackList",
            "storePathRootDir",
            "storePathCommitLog",
            "adminFromOtherHosts",
            "traceOn",
        ] {
            let text = format!("shortPollingTimeMills=5\n{key}=true\n");
            assert!(
                matches!(change(&config, &text), Err(ChangeError::BlackListed)),
                "{key}"
            );
        }
        assert!(matches!(
            change(&config, "shortPollingTimeMills=5\nlistenPort=1\n"),
            Err(ChangeError::Bound { .. })
        ));
    }

    #[test]
    fn l14_a_table_of_delays_is_taken_whole_or_refused() {
        let config = BrokerConfig::default();
        let changed = change(&config, "messageDelayLevel=1s 5s 10s\n").unwrap();
        assert_eq!(changed.config.message_delay_level, "1s 5s 10s");
        assert_eq!(
            changed.values,
            [("messageDelayLevel".to_owned(), "1s 5s 10s".to_owned())]
        );
        assert!(matches!(
            change(&config, "messageDelayLevel=1s soon\n"),
            Err(ChangeError::Mistake(_))
        ));
    }

    #[test]
    fn strangers_are_passed_over_and_bad_values_refuse_the_rest() {
        let config = BrokerConfig::default();
        let changed = change(
            &config,
            "noSuchKey=1\nshortPollingTimeMills=1234\nlongPollingEnable=true\n",
        )
        .unwrap();
        assert_eq!(changed.config.short_polling_time_mills, 1234);
        // What stays as it was is no change.
        assert_eq!(changed.values.len(), 1);
        assert!(matches!(
            change(
                &config,
                "longPollingEnable=false\nshortPollingTimeMills=soon\n"
            ),
            Err(ChangeError::Mistake(_))
        ));
        assert!(matches!(
            change(&config, "aclEnable=true\n"),
            Err(ChangeError::Mistake(_))
        ));
    }

    #[test]
    fn every_live_and_bound_key_is_one() {
        let known = BrokerConfig::key_names();
        for key in LIVE.iter().chain(BOUND) {
            assert!(known.contains(key), "{key}");
        }
    }
}
