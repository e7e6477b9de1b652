//! Topic and group names: derived names, namespaces, validity, system topics.
//!
//! ```text
//! group "g"      ─▶ retry_topic "%RETRY%g", dlq_topic "%DLQ%g"
//! namespace "ns" ─▶ wrap "orders" → "ns%orders", "%RETRY%g" → "%RETRY%ns%g"; unwrap takes it off again
//! any name       ─▶ check_topic / check_group ─▶ NameError, whose text is the broker's remark
//! ```
//!
//! Rules and texts are those of `Validators`, `TopicValidator`, `NamespaceUtil` and `MixAll` of Apache RocketMQ 5.3.3.

/// Topic that lends its settings to topics created by a send, when a broker allows that.
pub const AUTO_CREATE_TOPIC: &str = "TBW102";
/// Where delayed messages wait, one queue a delay level.
pub const SCHEDULE_TOPIC: &str = "SCHEDULE_TOPIC_XXXX";
/// Where half messages wait for their verdict.
pub const TRANS_HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
/// Where verdicts on half messages are noted.
pub const TRANS_OP_HALF_TOPIC: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
/// Where half messages end that nobody decides on.
pub const TRANS_CHECK_MAX_TIME_TOPIC: &str = "TRANS_CHECK_MAX_TIME_TOPIC";
/// Where clients write traces.
pub const TRACE_TOPIC: &str = "RMQ_SYS_TRACE_TOPIC";
/// For the broker's own tests.
pub const SELF_TEST_TOPIC: &str = "SELF_TEST_TOPIC";
/// For benchmarks.
pub const BENCHMARK_TOPIC: &str = "BenchmarkTest";
/// Historic.
pub const OFFSET_MOVED_TOPIC: &str = "OFFSET_MOVED_EVENT";
/// Where messages timed to any moment wait.
pub const TIMER_TOPIC: &str = "rmq_sys_wheel_timer";

/// Starts the topic of messages that a group tries again.
pub const RETRY_PREFIX: &str = "%RETRY%";
/// Starts the topic of messages that a group has given up.
pub const DLQ_PREFIX: &str = "%DLQ%";
/// Starts the names of system topics beyond [`SYSTEM_TOPICS`].
pub const SYSTEM_TOPIC_PREFIX: &str = "rmq_sys_";
/// Starts the names of groups that belong to brokers.
pub const SYSTEM_GROUP_PREFIX: &str = "CID_RMQ_SYS_";
/// Ends the topic of replies to requests; the cluster's name is before it.
pub const REPLY_SUFFIX: &str = "_REPLY_TOPIC";
/// Parts a namespace from the name in it.
pub const NAMESPACE_SEPARATOR: char = '%';
/// Key-value namespace of a name server that holds the queues of ordered topics.
pub const ORDER_TOPIC_CONFIG: &str = "ORDER_TOPIC_CONFIG";

/// Producer group that each client instance has for what it sends by itself.
pub const CLIENT_INNER_PRODUCER: &str = "CLIENT_INNER_PRODUCER";
/// Producer group that users must replace.
pub const DEFAULT_PRODUCER: &str = "DEFAULT_PRODUCER";
/// Consumer group that users must replace.
pub const DEFAULT_CONSUMER: &str = "DEFAULT_CONSUMER";
/// Consumer group of mqadmin.
pub const TOOLS_CONSUMER: &str = "TOOLS_CONSUMER";

/// Longest name of a topic, in characters; all allowed ones take one byte.
pub const MAX_TOPIC: usize = 127;
/// Longest name of a group, in characters; all allowed ones take one byte.
pub const MAX_GROUP: usize = 255;

/// System topics of every broker; see [`SYSTEM_TOPIC_PREFIX`] for more.
pub const SYSTEM_TOPICS: [&str; 9] = [
    AUTO_CREATE_TOPIC,
    SCHEDULE_TOPIC,
    BENCHMARK_TOPIC,
    TRANS_HALF_TOPIC,
    TRACE_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    SELF_TEST_TOPIC,
    OFFSET_MOVED_TOPIC,
];

/// Topics that clients may not send to.
pub const SEND_FORBIDDEN_TOPICS: [&str; 6] = [
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    SELF_TEST_TOPIC,
    OFFSET_MOVED_TOPIC,
];

/// Groups that every broker has from the start.
pub const BUILT_IN_GROUPS: [&str; 8] = [
    TOOLS_CONSUMER,
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
];

/// What is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Named {
    /// A topic.
    Topic,
    /// A producer or consumer group.
    Group,
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Topic => "topic",
            Self::Group => "group",
        })
    }
}

/// Why a name can't be used. The texts are the broker's remarks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing but blanks.
    #[error("The specified {named} is blank.")]
    Blank {
        /// What is named.
        named: Named,
    },
    /// A character that is not allowed.
    #[error("The specified {named} contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$")]
    IllegalCharacter {
        /// What is named.
        named: Named,
        /// The name.
        name: String,
        /// The first such character.
        character: char,
    },
    /// Longer than allowed.
    #[error("The specified {named} is longer than {named} max length.")]
    TooLong {
        /// What is named.
        named: Named,
        /// The name.
        name: String,
        /// Most characters allowed.
        max: usize,
    },
}

/// Checks a topic's name: characters of `[%|a-zA-Z0-9_-]`, not blank, at most [`MAX_TOPIC`].
///
/// # Errors
/// [`NameError`] when the name can't be a topic's.
pub fn check_topic(name: &str) -> Result<(), NameError> {
    check(Named::Topic, name, MAX_TOPIC)
}

/// Checks a group's name: characters of `[%|a-zA-Z0-9_-]`, not blank, at most [`MAX_GROUP`].
///
/// # Errors
/// [`NameError`] when the name can't be a group's.
pub fn check_group(name: &str) -> Result<(), NameError> {
    check(Named::Group, name, MAX_GROUP)
}

fn check(named: Named, name: &str, max: usize) -> Result<(), NameError> {
    if name.trim().is_empty() {
        return Err(NameError::Blank { named });
    }
    if let Some(character) = name.chars().find(|c| !is_legal(*c)) {
        return Err(NameError::IllegalCharacter {
            named,
            name: name.to_owned(),
            character,
        });
    }
    // Legal characters take a byte each.
    if name.len() > max {
        return Err(NameError::TooLong {
            named,
            name: name.to_owned(),
            max,
        });
    }
    Ok(())
}

fn is_legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '%' | '|' | '_' | '-')
}

/// Whether a topic belongs to the system on every broker. A broker has more: those named like itself and its cluster.
#[must_use]
pub fn is_system_topic(topic: &str) -> bool {
    SYSTEM_TOPICS.contains(&topic) || topic.starts_with(SYSTEM_TOPIC_PREFIX)
}

/// Whether clients may not send to a topic.
#[must_use]
pub fn is_send_forbidden(topic: &str) -> bool {
    SEND_FORBIDDEN_TOPICS.contains(&topic)
}

/// Whether a consumer group belongs to a broker.
#[must_use]
pub fn is_system_group(group: &str) -> bool {
    group.starts_with(SYSTEM_GROUP_PREFIX)
}

/// Topic of messages that a group tries again.
#[must_use]
pub fn retry_topic(group: &str) -> String {
    format!("{RETRY_PREFIX}{group}")
}

/// Topic of messages that a group has given up.
#[must_use]
pub fn dlq_topic(group: &str) -> String {
    format!("{DLQ_PREFIX}{group}")
}

/// Topic of popped messages that a group tries again; the first naming, which is the default.
#[must_use]
pub fn pop_retry_topic_v1(group: &str, topic: &str) -> String {
    format!("{RETRY_PREFIX}{group}_{topic}")
}

/// Topic of popped messages that a group tries again; the second naming, which can't be mistaken.
#[must_use]
pub fn pop_retry_topic_v2(group: &str, topic: &str) -> String {
    format!("{RETRY_PREFIX}{group}+{topic}")
}

/// Topic of replies to requests within a cluster.
#[must_use]
pub fn reply_topic(cluster: &str) -> String {
    format!("{cluster}{REPLY_SUFFIX}")
}

/// Whether a topic is a group's retry topic.
#[must_use]
pub fn is_retry_topic(topic: &str) -> bool {
    topic.starts_with(RETRY_PREFIX)
}

/// Whether a topic is a group's dead-letter topic.
#[must_use]
pub fn is_dlq_topic(topic: &str) -> bool {
    topic.starts_with(DLQ_PREFIX)
}

/// A name without its retry or dead-letter prefix.
#[must_use]
pub fn bare(resource: &str) -> &str {
    split_prefix(resource).1
}

/// The retry or dead-letter prefix, and what follows it.
fn split_prefix(resource: &str) -> (&str, &str) {
    let len = [RETRY_PREFIX, DLQ_PREFIX]
        .iter()
        .find(|prefix| resource.starts_with(**prefix))
        .map_or(0, |prefix| prefix.len());
    resource.split_at(len)
}

/// Whether a name is the same in every namespace.
fn is_exempt(resource: &str) -> bool {
    is_system_topic(resource) || is_system_group(resource)
}

/// A topic or group as it is named within a namespace, unless it is already or is a system name. An empty namespace
/// changes nothing.
#[must_use]
pub fn wrap(namespace: &str, resource: &str) -> String {
    if namespace.is_empty()
        || resource.is_empty()
        || is_exempt(resource)
        || is_wrapped(namespace, resource)
    {
        return resource.to_owned();
    }
    let (prefix, name) = split_prefix(resource);
    format!("{prefix}{namespace}{NAMESPACE_SEPARATOR}{name}")
}

/// Whether a name is within that namespace.
#[must_use]
pub fn is_wrapped(namespace: &str, resource: &str) -> bool {
    !namespace.is_empty()
        && !is_exempt(resource)
        && strip_namespace(namespace, bare(resource)).is_some()
}

fn strip_namespace<'a>(namespace: &str, name: &'a str) -> Option<&'a str> {
    name.strip_prefix(namespace)?
        .strip_prefix(NAMESPACE_SEPARATOR)
}

/// A name without exactly that namespace; other names are left alone.
#[must_use]
pub fn unwrap(namespace: &str, resource: &str) -> String {
    let (prefix, name) = split_prefix(resource);
    match strip_namespace(namespace, name) {
        Some(inner) if !namespace.is_empty() => format!("{prefix}{inner}"),
        _ => resource.to_owned(),
    }
}

/// A name without whatever namespace it has.
#[must_use]
pub fn unwrap_any(resource: &str) -> String {
    let (prefix, name) = split_prefix(resource);
    match name.split_once(NAMESPACE_SEPARATOR) {
        Some((namespace, inner)) if !namespace.is_empty() && !is_exempt(resource) => {
            format!("{prefix}{inner}")
        }
        _ => resource.to_owned(),
    }
}

/// The namespace of a name, empty when it has none.
#[must_use]
pub fn namespace_of(resource: &str) -> &str {
    let namespace = bare(resource)
        .split_once(NAMESPACE_SEPARATOR)
        .map_or("", |(namespace, _)| namespace);
    if is_exempt(resource) { "" } else { namespace }
}
