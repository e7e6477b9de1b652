//! What the keys of a configuration mean, for people: `--print-config` and the documentation.
//!
//! ```text
//! keys! / settings! tables (their doc comments) ─┐
//! kept keys + rules below (why nothing is done) ─┴▶ ConfigKey ─┬─▶ print: `# meaning`, `key=value`
//!                                                             └─▶ docs/compatibility.md
//! ```
use crate::properties::{self, Properties};

/// Whether this program acts on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Obeyed,
    /// It is accepted, kept and returned, because Apache `RocketMQ` has it; nothing here depends on it.
    Kept,
}

/// One key of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigKey {
    /// Apache's name.
    pub name: &'static str,
    /// What it does, with units and default; for a kept key why it does nothing.
    pub meaning: String,
    /// Whether it does something.
    pub standing: Standing,
}

impl ConfigKey {
    /// A key that is acted on, from its doc comment's lines.
    pub(crate) fn obeyed(name: &'static str, doc: &[&'static str]) -> Self {
        let lines: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
        Self {
            name,
            meaning: lines.join(" ").trim().to_owned(),
            standing: Standing::Obeyed,
        }
    }

    /// A key that nothing here depends on.
    pub(crate) fn kept(name: &'static str, default: &str) -> Self {
        let default = if default.is_empty() { "empty" } else { default };
        Self {
            name,
            meaning: format!("Kept, not acted on: {}; default {default}.", reason(name)),
            standing: Standing::Kept,
        }
    }
}

/// A properties text: each key below its meaning, with the value it has in `rendered`, another properties text.
pub(crate) fn print(keys: &[ConfigKey], rendered: &str) -> String {
    // What was rendered is always readable; an empty value would show that it was not.
    let values = Properties::parse(rendered).unwrap_or_default();
    let mut text = String::new();
    for key in keys {
        text.push_str("# ");
        text.push_str(&key.meaning);
        text.push('\n');
        let value = values.text(key.name).unwrap_or_default();
        text.push_str(&properties::render([(key.name, value)]));
    }
    text
}

/// Why nothing depends on a kept key: the first rule with a part of its name, upper and lower case alike.
fn reason(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    let applies = |parts: &&(&[&str], &str)| parts.0.iter().any(|part| name.contains(part));
    RULES
        .iter()
        .find(applies)
        .map_or("there is no such part here", |(_, reason)| reason)
}

const RULES: &[(&[&str], &str)] = &[
    (
        &[
            "rocksdb",
            "storetype",
            "memtable",
            "bottommost",
            "configmanagerversion",
            "kvservice",
        ],
        "nothing is stored in RocksDB",
    ),
    (
        &["acl", "auth", "usetls"],
        "access control and TLS are not there yet",
    ),
    (
        &[
            "controller",
            "election",
            "slave",
            "replicas",
            "syncfrom",
            "syncbroker",
            "syncmaster",
            "brokerheartbeat",
            "brokernotactive",
            "sendheartbeat",
            "dleger",
            "duplication",
            "asynclearner",
            "remoteescape",
            "lockinstrict",
            "skippreonline",
            "forwardtimeout",
            "oldnamesrv",
            "offlinebroker",
            "channelnotactive",
            "hatransfer",
            "hamax",
            "hasend",
            "hahouse",
            "haflow",
            "maxha",
            "allack",
            "syncstate",
        ],
        "replication is not there yet",
    ),
    (
        &["compaction", "compact", "maxoffsetmap"],
        "there are no compacted topics",
    ),
    (
        &["cold", "readahead"],
        "the kernel decides what is kept in memory",
    ),
    (
        &["metric", "stat", "sampl", "commercial", "printchannel"],
        "figures are kept and told in one way only (codes 28, 315)",
    ),
    (
        &[
            "threadpool",
            "threadnum",
            "threads",
            "semaphore",
            "queuecapacity",
            "waittimemills",
            "fastfailure",
            "callbackexecutor",
            "maxasyncput",
            "dispatchcq",
            "fastchannel",
            "workergroup",
        ],
        "requests run on the tasks of their connections; each queue has a bound of its own",
    ),
    (
        &[
            "socket",
            "epoll",
            "pooled",
            "watermark",
            "server",
            "client",
            "shutdownwait",
            "connecttimeout",
            "reconnect",
            "networkflow",
            "socks",
        ],
        "connections have the bounds of this program (`maxUnreadBytes`)",
    ),
    (
        &[
            "pop",
            "revive",
            "ackasync",
            "appendck",
            "messagerequestmode",
            "retrytopicv1",
            "retrytopicv2",
            "longawaitingack",
            "ckrepu",
        ],
        "POP does without it",
    ),
    (&["timer"], "timer messages do without it"),
    (
        &[
            "swap",
            "warm",
            "hotratio",
            "transient",
            "failifnobuffer",
            "mapedfile",
            "byfilechannel",
            "pagecachebusy",
            "heap",
            "spinlock",
            "lock",
            "highspeed",
            "hightwater",
            "travelcq",
            "wakecommit",
            "wakeflush",
            "commitcommitlog",
            "commitinterval",
            "cleanresource",
        ],
        "files are mapped, locked and freed in another way",
    ),
    (
        &["flush"],
        "what waits for the disk is flushed when the oldest has waited long enough, never by pages",
    ),
    (
        &[
            "recover",
            "reput",
            "fastdispatch",
            "dispatchfrom",
            "buildconsumequeue",
            "correctlogic",
            "checksumrange",
            "indexsafe",
            "propcrc",
        ],
        "recovery and dispatch know one way only",
    ),
    (
        &["delete", "clean", "disk", "expired", "disappear", "hanged"],
        "files are removed in another way",
    ),
    (
        &["filter", "bitmap", "bloom"],
        "conditions are evaluated on the message itself",
    ),
    (
        &[
            "lmq",
            "multidispatch",
            "consumequeueext",
            "batchconsumequeue",
            "bcq",
        ],
        "there is one kind of consume queue",
    ),
    (
        &["namesrv", "nameserver", "register", "registration"],
        "registration is whole, at every change and every period",
    ),
    (
        &["broadcast"],
        "positions of broadcasting groups are kept by their clients",
    ),
    (
        &["schedule", "delayoffset"],
        "delay levels are delivered by one task each",
    ),
    (
        &["container"],
        "a broker is a process or a part of one, not of a container",
    ),
    (
        &["topic", "group", "subscription"],
        "topics and groups have one set of rules",
    ),
    (
        &["rocketmqhome", "configpath", "blacklist", "plugin"],
        "files and folders are given on the command line",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_stands_below_its_meaning_and_the_text_reads_back() {
        let keys = [
            ConfigKey::obeyed("a", &[" How many; default 1.", " More of it."]),
            ConfigKey::kept("rocksdbX", ""),
        ];
        let text = print(&keys, "a=x y\nrocksdbX=\n");
        assert_eq!(
            text,
            "# How many; default 1. More of it.\na=x y\n# Kept, not acted on: nothing is stored in RocksDB; default empty.\nrocksdbX=\n"
        );
    }
}
