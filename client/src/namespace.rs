//! Names as they go out and come back: with the namespace of the configuration, if there is one, and checked.
use bindery_protocol::names;

use crate::ClientError;

/// The name as brokers know it.
pub(crate) fn wrap(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| names::wrap(namespace, name))
}

/// The name as the user knows it.
pub(crate) fn unwrap(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(
        || name.to_owned(),
        |namespace| names::unwrap(namespace, name),
    )
}

/// Checks the name of a group. `kind` is `producer` or `consumer`.
pub(crate) fn check_group(kind: &'static str, group: &str) -> Result<(), ClientError> {
    let illegal = |source| ClientError::GroupIllegal {
        kind,
        group: group.to_owned(),
        source,
    };
    names::check_group(group).map_err(|error| illegal(Some(error)))?;
    if group == names::DEFAULT_PRODUCER || group == names::DEFAULT_CONSUMER {
        return Err(illegal(None));
    }
    Ok(())
}
