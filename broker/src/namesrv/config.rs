//! The name server's configuration: Apache's keys, typed where this name server acts on them.
//!
//! ```text
//! namesrv.conf ─▶ Properties ─▶ NameServerConfig::apply ─┬─ settings! table: a field of its own
//!                                                        ├─ KEPT: accepted, kept, returned
//!                                                        └─ neither: a mistake with the nearest name
//! NameServerConfig::render ─▶ GET_NAMESRV_CONFIG (319)      UPDATE_NAMESRV_CONFIG (318) ─▶ NameServerConfig::change
//! ```
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use bindery_remoting::Clock;

use super::{NameServerError, refusal::Refusal};
use crate::listing::{self, ConfigKey};
use crate::properties::{self, Mistake, Problem, Properties};

/// Keys that Apache's 5.3.3 name server has besides those of the table below, with its defaults: they concern threads,
/// buffers and parts that this one does not have. Accepted, kept and returned, so that a file can move between the two.
const KEPT: &[(&str, &str)] = &[
    ("clientRequestThreadPoolNums", "8"),
    ("clientRequestThreadPoolQueueCapacity", "50000"),
    ("clusterTest", "false"),
    ("defaultThreadPoolNums", "16"),
    ("defaultThreadPoolQueueCapacity", "10000"),
    ("enableControllerInNamesrv", "false"),
    ("enableShutdownGracefully", "false"),
    ("notifyMinBrokerIdChanged", "false"),
    ("productEnvName", "center"),
    ("rocketmqHome", ""),
    ("serverAsyncSemaphoreValue", "64"),
    ("serverCallbackExecutorThreads", "0"),
    ("serverNettyWorkerGroupEnable", "true"),
    ("serverOnewaySemaphoreValue", "256"),
    ("serverPooledByteBufAllocatorEnable", "true"),
    ("serverSelectorThreads", "3"),
    ("serverSocketBacklog", "1024"),
    ("serverSocketRcvBufSize", "0"),
    ("serverSocketSndBufSize", "0"),
    ("serverWorkerThreads", "8"),
    ("shutdownWaitTimeSeconds", "30"),
    ("supportActingMaster", "false"),
    ("unRegisterBrokerQueueCapacity", "3000"),
    ("useEpollNativeSelector", "false"),
    ("writeBufferHighWaterMark", "0"),
    ("writeBufferLowWaterMark", "0"),
];

/// Parts of Apache's name server that this one lacks, and that must not be asked for in vain.
const MISSING: [&str; 3] = [
    "enableControllerInNamesrv",
    "notifyMinBrokerIdChanged",
    "supportActingMaster",
];

/// Keys that no request may ever change, whatever `configBlackList` says: they name files.
const NEVER_REMOTE: [&str; 4] = [
    "configBlackList",
    "configStorePath",
    "kvConfigPath",
    "rocketmqHome",
];

/// A type a key can have.
trait Setting: Sized {
    const EXPECTED: &'static str;
    fn parse(text: &str) -> Option<Self>;
    fn render(&self) -> String;
}

impl Setting for bool {
    const EXPECTED: &'static str = "true or false";
    fn parse(text: &str) -> Option<Self> {
        text.to_ascii_lowercase().parse().ok()
    }
    fn render(&self) -> String {
        self.to_string()
    }
}

impl Setting for u64 {
    const EXPECTED: &'static str = "a whole number, 0 or more";
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn render(&self) -> String {
        self.to_string()
    }
}

impl Setting for String {
    const EXPECTED: &'static str = "a text";
    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
    fn render(&self) -> String {
        self.clone()
    }
}

impl Setting for Option<PathBuf> {
    const EXPECTED: &'static str = "a path";
    fn parse(text: &str) -> Option<Self> {
        Some(Some(PathBuf::from(text)).filter(|path| !path.as_os_str().is_empty()))
    }
    fn render(&self) -> String {
        self.as_ref()
            .map(|path| path.display().to_string())
            .unwrap_or_default()
    }
}

macro_rules! settings {
    ($( $(#[doc = $doc:literal])* $field:ident: $ty:ty = $default:expr, $key:literal; )*) => {
        /// The configuration of one name server.
        ///
        /// [`NameServerConfig::default`] is fit for tests and for running inside a program: any free port on loopback,
        /// nothing on disk.
        #[derive(Debug, Clone)]
        pub struct NameServerConfig {
            /// Where to listen; port 0 takes any free one. Keys `bindAddress` and `listenPort`.
            pub listen: SocketAddr,
            /// Time source of expiry and idle connections; default the system's.
            pub clock: Clock,
            $( $(#[doc = $doc])* #[doc = concat!("\n\nKey `", $key, "`.")] pub $field: $ty, )*
            /// Keys of Apache's name server that this one does not act on, as far as they were set.
            pub other: BTreeMap<String, String>,
        }

        impl Default for NameServerConfig {
            fn default() -> Self {
                Self {
                    listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                    clock: Clock::system(),
                    $( $field: $default, )*
                    other: BTreeMap::new(),
                }
            }
        }

        /// Apache's names of the keys with a field of their own.
        const TYPED: &[&str] = &["bindAddress", "listenPort", $($key),*];

        impl NameServerConfig {
            /// Sets the field of `key`; `None` if it has none, what was expected if the text does not fit.
            fn set_typed(&mut self, key: &str, text: &str) -> Option<Result<(), &'static str>> {
                match key {
                    $( $key => Some(match Setting::parse(text) {
                        Some(value) => { self.$field = value; Ok(()) }
                        None => Err(<$ty as Setting>::EXPECTED),
                    }), )*
                    _ => None,
                }
            }

            fn documented() -> Vec<ConfigKey> {
                vec![$( ConfigKey::obeyed($key, &[$($doc),*]) ),*]
            }

            fn typed(&self) -> Vec<(&'static str, String)> {
                vec![$( ($key, self.$field.render()) ),*]
            }
        }
    };
}

settings! {
    /// File of the key-value table; none (default): it lives in memory only.
    kv_config_path: Option<PathBuf> = None, "kvConfigPath";
    /// File that is rewritten when the configuration is changed by request; none (default): changes last until the stop.
    config_store_path: Option<PathBuf> = None, "configStorePath";
    /// Further keys that no request may change, separated by semicolons; default those that name files.
    config_black_list: String = "configBlackList;configStorePath;kvConfigPath".to_owned(), "configBlackList";
    /// Whether routes carry the order configuration of their topic; default false.
    order_message_enable: bool = false, "orderMessageEnable";
    /// Whether registrations are answered with the order configuration of all topics; default true.
    return_order_topic_config: bool = true, "returnOrderTopicConfigToBroker";
    /// Milliseconds between two looks for brokers that gave no sign of life; default 5000.
    scan_interval_millis: u64 = 5_000, "scanNotActiveBrokerInterval";
    /// Whether all topics may be listed (206); default true.
    enable_all_topic_list: bool = true, "enableAllTopicList";
    /// Whether topics may be listed by other properties (224, 304, 311–313); default true.
    enable_topic_list: bool = true, "enableTopicList";
    /// Whether routes are refused during the first seconds, until brokers have had time to register; default false.
    need_wait_for_service: bool = false, "needWaitForService";
    /// How many seconds that are; default 45.
    wait_seconds_for_service: u64 = 45, "waitSecondsForService";
    /// Whether topics that a full registration no longer names lose their route; default false.
    delete_topic_with_registration: bool = false, "deleteTopicWithBrokerRegistration";
    /// Seconds after which a silent connection is closed; default 120.
    max_idle_seconds: u64 = 120, "serverChannelMaxIdleTimeSeconds";
}

impl NameServerConfig {
    /// Reads a properties file with Apache's keys and Apache's defaults: port 9876 on all interfaces. The file becomes
    /// the one that changes by request are written to.
    ///
    /// # Errors
    /// When the file can't be read, or for all mistakes in it at once.
    pub fn read(path: &Path) -> Result<Self, NameServerError> {
        let properties = Properties::read(path)?;
        let mut config = Self {
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 9876)),
            ..Self::default()
        };
        config.config_store_path = Some(path.to_owned());
        let mistakes = config.apply(&properties);
        if mistakes.is_empty() {
            Ok(config)
        } else {
            Err(NameServerError::Config {
                path: path.to_owned(),
                mistakes,
            })
        }
    }

    /// Sets all keys of a properties text; what could not be set, and why.
    pub fn apply(&mut self, properties: &Properties) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        for entry in properties.entries() {
            match self.set(&entry.key, entry.value.trim()) {
                Ok(()) => {}
                Err(Unset::Unknown) => {
                    let kept = KEPT.iter().map(|(key, _)| *key);
                    mistakes.push(entry.unknown(TYPED.iter().copied().chain(kept)));
                }
                Err(Unset::Invalid(expected)) => mistakes.push(entry.invalid(expected)),
            }
        }
        mistakes
    }

    /// Takes over a change by request: all of it or nothing. Unknown keys are ignored, as Apache's name server does.
    pub(super) fn change(&mut self, properties: &Properties) -> Result<(), Refusal> {
        let black_list: Vec<&str> = self.config_black_list.split(';').map(str::trim).collect();
        let forbidden = |key: &str| NEVER_REMOTE.contains(&key) || black_list.contains(&key);
        if properties
            .entries()
            .iter()
            .any(|entry| forbidden(&entry.key))
        {
            return Err(Refusal::BlackListed);
        }
        let mut changed = self.clone();
        let mut mistakes = changed.apply(properties);
        mistakes.retain(|mistake| matches!(mistake.problem, Problem::Invalid { .. }));
        if let Some(mistake) = mistakes.into_iter().next() {
            return Err(Refusal::Setting(mistake));
        }
        *self = changed;
        Ok(())
    }

    /// Every key with its meaning, default and present value, as a properties text: what `--print-config` prints.
    #[must_use]
    pub fn describe(&self) -> String {
        listing::print(&Self::keys(), &self.render())
    }

    /// Every key and what it means: those acted on, then those kept for Apache's name servers.
    #[must_use]
    pub fn keys() -> Vec<ConfigKey> {
        let mut keys = vec![
            ConfigKey::obeyed(
                "listenPort",
                &["Port to listen on, 0 for any free one; default 9876."],
            ),
            ConfigKey::obeyed(
                "bindAddress",
                &["Address to listen on; default 0.0.0.0, for the command 127.0.0.1."],
            ),
        ];
        keys.extend(Self::documented());
        for (name, default) in KEPT {
            let mut key = ConfigKey::kept(name, default);
            if MISSING.contains(name) {
                key.meaning
                    .push_str(" The value `true` is refused: it is not supported yet.");
            }
            keys.push(key);
        }
        keys
    }

    /// All keys with their values, sorted, in the syntax of a properties file.
    pub(super) fn render(&self) -> String {
        let mut all: BTreeMap<&str, String> = KEPT
            .iter()
            .map(|(key, value)| (*key, (*value).to_owned()))
            .collect();
        all.extend(
            self.other
                .iter()
                .map(|(key, value)| (key.as_str(), value.clone())),
        );
        all.extend(self.typed());
        all.insert("bindAddress", self.listen.ip().to_string());
        all.insert("listenPort", self.listen.port().to_string());
        properties::render(all.iter().map(|(key, value)| (*key, value.as_str())))
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), Unset> {
        match key {
            "listenPort" => {
                let port = text
                    .parse()
                    .ok()
                    .ok_or(Unset::Invalid("a port number, 0 for any free one"))?;
                self.listen.set_port(port);
            }
            "bindAddress" => {
                let ip: IpAddr = text.parse().ok().ok_or(Unset::Invalid("an IP address"))?;
                self.listen.set_ip(ip);
            }
            _ => match self.set_typed(key, text) {
                Some(outcome) => outcome.map_err(Unset::Invalid)?,
                None if MISSING.contains(&key) && text.eq_ignore_ascii_case("true") => {
                    return Err(Unset::Invalid("false: this name server has no such part"));
                }
                None if KEPT.iter().any(|(kept, _)| *kept == key) => {
                    self.other.insert(key.to_owned(), text.to_owned());
                }
                None => return Err(Unset::Unknown),
            },
        }
        Ok(())
    }
}

/// Why a key was not set.
enum Unset {
    Unknown,
    Invalid(&'static str),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_file_is_read_with_apaches_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("namesrv.conf");
        std::fs::write(
            &path,
            "listenPort = 19876\norderMessageEnable=TRUE\nserverWorkerThreads=2\n",
        )
        .unwrap();
        let config = NameServerConfig::read(&path).unwrap();
        assert_eq!(config.listen, "0.0.0.0:19876".parse().unwrap());
        assert!(config.order_message_enable);
        assert_eq!(config.other["serverWorkerThreads"], "2");
        assert_eq!(config.config_store_path, Some(path));
    }

    #[test]
    fn all_mistakes_of_a_file_are_reported_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("namesrv.conf");
        std::fs::write(
            &path,
            "listenPort=many\nneedWaitForServise=true\nenableTopicList=yes\n",
        )
        .unwrap();
        let error = NameServerConfig::read(&path).unwrap_err().to_string();
        for part in [
            "line 1, column 1: `listenPort` is `many`, expected a port number, 0 for any free one",
            "line 2, column 1: unknown key `needWaitForServise`, did you mean `needWaitForService`?",
            "line 3, column 1: `enableTopicList` is `yes`, expected true or false",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn what_is_rendered_has_all_of_apaches_keys_and_reads_back() {
        let mut config = NameServerConfig {
            order_message_enable: true,
            ..NameServerConfig::default()
        };
        config
            .other
            .insert("productEnvName".to_owned(), "edge".to_owned());
        let text = config.render();
        let properties = Properties::parse(&text).unwrap();
        // The keys of a name server 5.3.3, as it answered 319.
        assert_eq!(properties.entries().len(), 40);
        let mut copy = NameServerConfig::default();
        assert_eq!(copy.apply(&properties), []);
        assert_eq!(copy.render(), text);
    }

    #[test]
    fn every_key_is_printed_with_meaning_and_default_and_the_text_reads_back() {
        let config = NameServerConfig {
            wait_seconds_for_service: 7,
            ..NameServerConfig::default()
        };
        let text = config.describe();
        assert!(text.contains("\nwaitSecondsForService=7\n"), "{text}");
        let mut copy = NameServerConfig::default();
        assert_eq!(copy.apply(&Properties::parse(&text).unwrap()), []);
        assert_eq!(copy.render(), config.render());
        for key in NameServerConfig::keys() {
            assert!(key.meaning.contains("default"), "{}", key.name);
        }
    }

    #[test]
    fn a_change_by_request_is_taken_whole_or_not_at_all() {
        let mut config = NameServerConfig::default();
        let change = |text: &str| Properties::parse(text).unwrap();
        let refused = config.change(&change("enableTopicList=false\nkvConfigPath=/tmp/x\n"));
        assert!(matches!(refused, Err(Refusal::BlackListed)));
        let refused = config.change(&change(
            "enableTopicList=false\nscanNotActiveBrokerInterval=soon\n",
        ));
        assert!(matches!(refused, Err(Refusal::Setting(_))));
        assert!(config.enable_topic_list);
        config
            .change(&change("enableTopicList=false\nnoSuchKey=1\n"))
            .unwrap();
        assert!(!config.enable_topic_list);
    }
}
