//! Namespaces: the prefix that keeps the topics and groups of several parties apart in one cluster.

/// What the retry topic of a group begins with.
pub(crate) const RETRY_PREFIX: &str = "%RETRY%";

/// The name as the user knows it.
pub(crate) fn unwrap<'a>(namespace: Option<&str>, name: &'a str) -> &'a str {
    namespace
        .and_then(|namespace| name.strip_prefix(namespace)?.strip_prefix('%'))
        .unwrap_or(name)
}
