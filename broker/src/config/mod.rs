//! The broker's configuration: Apache's keys, typed where the broker acts on them.
//!
//! ```text
//! broker.conf ─properties─▶ (key, text, line) ─▶ BrokerConfig::set ─┬─ keys.rs: a field of its own
//!                                                                   ├─ other_keys.txt: kept and returned
//!                                                                   └─ neither: an error with the nearest name
//! BrokerConfig ─▶ render ─▶ GET_BROKER_CONFIG (26)
//! ```
mod change;
mod defaults;
mod keys;
mod live;
mod value;

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use bindery_protocol::message::DelayLevels;

use crate::listing::{self, ConfigKey};
use crate::properties::{self, Mistake, Problem, Properties, PropertiesError};

pub(crate) use change::{ChangeError, is_live};
pub use keys::BrokerConfig;
pub(crate) use live::{Live, LiveError};
pub use value::{BrokerRole, FlushDiskType, Hours, Percent};

/// Names and 5.3.3 defaults of the keys that have no field, one `key=value` a line.
const OTHER_KEYS: &str = include_str!("other_keys.txt");

/// Settings that would be dangerous to accept without acting on them.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("aclEnable", "true"),
    ("authenticationEnabled", "true"),
    ("authorizationEnabled", "true"),
    ("enableControllerMode", "true"),
    ("enableDLegerCommitLog", "true"),
    ("duplicationEnable", "true"),
    ("useTLS", "true"),
    ("storeType", "defaultRocksDB"),
    // It would give messages up after an error of the disk; such errors are waited out, broken messages left out.
    ("timerSkipUnknownError", "true"),
    ("transientStorePoolEnable", "true"),
    ("brokerRole", "SLAVE"),
    ("enableConsumeQueueExt", "true"),
    ("enabledAppendPropCRC", "true"),
    ("forceVerifyPropCRC", "true"),
    ("readUnCommitted", "true"),
    ("rocksdbCQDoubleWriteEnable", "true"),
    ("coldDataFlowControlEnable", "true"),
    ("coldDataScanEnable", "true"),
    ("popConsumerKVServiceEnable", "true"),
    ("popConsumerFSServiceInit", "false"),
    ("popConsumerKVServiceInit", "true"),
];

/// Why a configuration file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file can't be read as properties.
    #[error("cannot use the configuration {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: PropertiesError,
    },
    /// Entries that can't be honoured, all of them.
    #[error("{}: {}", path.display(), mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Mistakes {
        /// The file.
        path: PathBuf,
        /// What is wrong, in the file's order.
        mistakes: Vec<Mistake>,
    },
}

impl BrokerConfig {
    /// Reads a `broker.conf` with Apache's defaults: port 10911 on all interfaces, the store in `$HOME/store`.
    ///
    /// # Errors
    /// [`ConfigError`] when the file can't be read, or with every entry that can't be honoured.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let mut config = Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 10911)),
            store_path_root_dir: defaults::home_store(),
            ..Self::default()
        };
        config.read_over(path)?;
        Ok(config)
    }

    /// Reads a `broker.conf` over these settings: what it does not name stays. The file becomes the one in which changes
    /// by request are kept.
    ///
    /// # Errors
    /// [`ConfigError`] when the file can't be read, or with every entry that can't be honoured.
    pub fn read_over(&mut self, path: &Path) -> Result<(), ConfigError> {
        let properties = Properties::read(path).map_err(|source| ConfigError::File {
            path: path.to_owned(),
            source,
        })?;
        let mistakes = self.apply(&properties);
        if mistakes.is_empty() {
            self.file = Some(path.to_owned());
            Ok(())
        } else {
            Err(ConfigError::Mistakes {
                path: path.to_owned(),
                mistakes,
            })
        }
    }

    /// Sets every entry; gives back those that could not be set.
    pub fn apply(&mut self, properties: &Properties) -> Vec<Mistake> {
        let entries = properties.entries().iter();
        entries
            .filter_map(|entry| {
                let problem = self.set(&entry.key, &entry.value).err()?;
                Some(Mistake {
                    line: entry.line,
                    column: entry.column,
                    key: entry.key.clone(),
                    problem,
                })
            })
            .collect()
    }

    /// Sets one key from the text of a properties file.
    ///
    /// # Errors
    /// The [`Problem`] when the key is unknown, its text has the wrong type, or it asks for what this broker lacks.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), Problem> {
        let text = text.trim();
        let invalid = |expected| Problem::Invalid {
            value: text.to_owned(),
            expected,
        };
        let waits_for_slaves = key == "inSyncReplicas" && text != "1";
        if UNSUPPORTED.contains(&(key, text)) || waits_for_slaves {
            return Err(invalid(
                "another value: this broker does not support this one yet",
            ));
        }
        if key == "storePathCommitLog" && text.contains(',') {
            return Err(invalid(
                "one folder: the commit log is not spread over several",
            ));
        }
        match key {
            "listenPort" => {
                self.listen.set_port(
                    text.parse()
                        .ok()
                        .ok_or_else(|| invalid("a port number, 0 for any free one"))?,
                );
            }
            "bindAddress" => self
                .listen
                .set_ip(text.parse().ok().ok_or_else(|| invalid("an IP address"))?),
            "messageDelayLevel" => {
                DelayLevels::parse(text).map_err(|_| {
                    invalid(
                        "delays like `1s 5s 10m`: numbers with s, m, h or d, separated by blanks",
                    )
                })?;
                text.clone_into(&mut self.message_delay_level);
            }
            _ => match self.set_typed(key, text) {
                Some(done) => return done.map_err(invalid),
                None if other_defaults().any(|(name, _)| name == key) => {
                    self.other.insert(key.to_owned(), text.to_owned());
                }
                None => {
                    let suggestion = properties::nearest(key, Self::key_names()).map(str::to_owned);
                    return Err(Problem::Unknown { suggestion });
                }
            },
        }
        Ok(())
    }

    /// Every key with its value, `key=value` a line, sorted by key: the body of `GET_BROKER_CONFIG` (26).
    #[must_use]
    pub fn render(&self) -> String {
        let mut all: BTreeMap<&str, String> = other_defaults()
            .map(|(key, value)| (key, value.to_owned()))
            .collect();
        all.extend(
            self.other
                .iter()
                .map(|(key, value)| (key.as_str(), value.clone())),
        );
        all.extend(self.typed());
        all.insert("listenPort", self.listen.port().to_string());
        all.insert("bindAddress", self.listen.ip().to_string());
        properties::render(all.iter().map(|(key, value)| (*key, value.as_str())))
    }

    /// Every key with its meaning, default and present value, as a properties text: what `--print-config` prints.
    #[must_use]
    pub fn describe(&self) -> String {
        listing::print(&Self::keys(), &self.render())
    }

    /// Every key and what it means: those acted on in the table's order, then those kept for Apache's brokers, sorted.
    #[must_use]
    pub fn keys() -> Vec<ConfigKey> {
        let mut keys = vec![
            ConfigKey::obeyed(
                "listenPort",
                &["Port to listen on, 0 for any free one; default 10911."],
            ),
            ConfigKey::obeyed(
                "bindAddress",
                &["Address to listen on; default 0.0.0.0, for the command 127.0.0.1."],
            ),
        ];
        keys.extend(Self::documented());
        let kept = other_defaults().map(|(name, default)| ConfigKey::kept(name, default));
        keys.extend(kept);
        let defaults = Self::default().typed();
        for key in &mut keys {
            if !key.meaning.contains("default")
                && let Some((_, default)) = defaults.iter().find(|(name, _)| *name == key.name)
            {
                key.meaning.push_str(" Default ");
                key.meaning.push_str(default);
                key.meaning.push('.');
            }
            for (_, value) in UNSUPPORTED.iter().filter(|(name, _)| *name == key.name) {
                key.meaning.push_str(" The value `");
                key.meaning.push_str(value);
                key.meaning
                    .push_str("` is refused: it is not supported yet.");
            }
        }
        keys
    }

    /// All keys that [`BrokerConfig::set`] knows, sorted.
    #[must_use]
    pub fn key_names() -> Vec<&'static str> {
        let mut names: Vec<_> = keys::TYPED
            .iter()
            .copied()
            .chain(other_defaults().map(|(key, _)| key))
            .collect();
        names.extend(["listenPort", "bindAddress"]);
        names.sort_unstable();
        names
    }

    /// The name servers to register with, in the order given.
    #[must_use]
    pub fn name_servers(&self) -> Vec<String> {
        self.namesrv_addr
            .split([';', ','])
            .map(str::trim)
            .filter(|addr| !addr.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// The folder of the commit log.
    #[must_use]
    pub fn commit_log_dir(&self) -> PathBuf {
        if self.store_path_commit_log.as_os_str().is_empty() {
            self.store_path_root_dir.join("commitlog")
        } else {
            self.store_path_commit_log.clone()
        }
    }

    /// The address given to clients, once the port is known.
    #[must_use]
    pub fn advertised(&self, bound: SocketAddr) -> SocketAddr {
        SocketAddr::new(
            ip_or(&self.broker_ip1, || defaults::advertised(bound)),
            bound.port(),
        )
    }

    /// The address given to slaves, once the port is known.
    #[must_use]
    pub fn advertised_ha(&self, bound: SocketAddr) -> SocketAddr {
        let port = if self.ha_listen_port == 0 {
            bound.port().wrapping_add(1)
        } else {
            self.ha_listen_port
        };
        SocketAddr::new(
            ip_or(&self.broker_ip2, || self.advertised(bound).ip()),
            port,
        )
    }
}

fn ip_or(text: &str, otherwise: impl FnOnce() -> IpAddr) -> IpAddr {
    text.parse().unwrap_or_else(|_| otherwise())
}

fn other_defaults() -> impl Iterator<Item = (&'static str, &'static str)> {
    OTHER_KEYS.lines().filter_map(|line| line.split_once('='))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn apaches_keys_are_read_into_their_fields() {
        let mut config = BrokerConfig::default();
        for (key, value) in [
            ("brokerName", "broker-a"),
            ("listenPort", "10911"),
            ("flushDiskType", "SYNC_FLUSH"),
            ("fileReservedTime", "48"),
        ] {
            config.set(key, value).unwrap();
        }
        assert_eq!(config.broker_name, "broker-a");
        assert_eq!(config.listen.port(), 10911);
        assert_eq!(config.flush_disk_type, FlushDiskType::Sync);
        let text = config.render();
        assert!(
            text.contains("fileReservedTime=48\n") && text.contains("listenPort=10911\n"),
            "{text}"
        );
    }

    #[test]
    fn every_mistake_of_a_file_is_reported_with_its_line() {
        let text = "brokerNmae=a\nlistenPort=0\nflushDiskType=SYNC\naclEnable=true\nstorePathCommitLog=/a,/b\n";
        let mistakes = BrokerConfig::default().apply(&Properties::parse(text).unwrap());
        let lines: Vec<usize> = mistakes.iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [1, 3, 4, 5]);
        assert_eq!(
            mistakes[0].to_string(),
            "line 1, column 1: unknown key `brokerNmae`, did you mean `brokerName`?"
        );
        assert!(
            mistakes[1]
                .to_string()
                .contains("`ASYNC_FLUSH` or `SYNC_FLUSH`"),
            "{}",
            mistakes[1]
        );
    }

    #[test]
    fn every_key_is_printed_with_meaning_and_default_and_the_text_reads_back() {
        let mut config = BrokerConfig::default();
        config.set("brokerName", "mine").unwrap();
        config.set("transferMsgByHeap", "false").unwrap();
        let text = config.describe();
        assert!(
            text.contains("\nbrokerName=mine\n") && text.contains("\ntransferMsgByHeap=false\n")
        );
        let mut again = BrokerConfig::default();
        assert_eq!(again.apply(&Properties::parse(&text).unwrap()), []);
        assert_eq!(again.render(), config.render());
        let mut names: Vec<_> = BrokerConfig::keys().iter().map(|key| key.name).collect();
        names.sort_unstable();
        assert_eq!(names, BrokerConfig::key_names());
        for key in BrokerConfig::keys() {
            let tells = key.meaning.to_lowercase().contains("default");
            assert!(tells, "{}", key.name);
        }
    }

    #[test]
    fn every_default_text_is_accepted_again() {
        let config = BrokerConfig::default();
        let mut again = BrokerConfig::default();
        assert_eq!(
            again.apply(&Properties::parse(&config.render()).unwrap()),
            []
        );
        assert_eq!(again.render(), config.render());
    }
}
