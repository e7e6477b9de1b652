//! The configuration of a running broker, which a request may change.
//!
//! ```text
//! 25 ─▶ Live::change (one at a time) ─▶ BrokerConfig::changed ─▶ in force ─▶ broker.conf: the values of the changed keys
//! whoever needs a key ─▶ Live::load
//! ```
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::{ArcSwap, Guard};
use bindery_protocol::bodies::DataVersion;

use super::{BrokerConfig, ChangeError, is_live};
use crate::{
    properties::{self, Properties, PropertiesError},
    replace,
    table::next_version,
};

/// The configuration as it is now.
pub(crate) struct Live {
    current: ArcSwap<BrokerConfig>,
    /// Held while a change is made, so that the file sees them in their order.
    version: Mutex<DataVersion>,
}

/// Why a change is refused, or not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    /// Refused.
    #[error(transparent)]
    Refused(#[from] ChangeError),
    /// The file can't be read any more.
    #[error("the change is in force but not kept: {0}")]
    Unreadable(#[from] PropertiesError),
    /// The file can't be written.
    #[error("the change is in force but not kept in {}: {source}", path.display())]
    NotKept {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// What a change came to.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Keys in force now.
    pub(crate) now: Vec<String>,
    /// Keys in force from the next start on.
    pub(crate) later: Vec<String>,
    /// Whether the values stand in the configuration file.
    pub(crate) kept: bool,
}

impl Live {
    /// The configuration a broker starts with.
    pub(crate) fn new(config: BrokerConfig, now: i64) -> Self {
        Self {
            current: ArcSwap::from_pointee(config),
            version: Mutex::new(DataVersion {
                timestamp: now,
                ..DataVersion::default()
            }),
        }
    }

    /// The configuration now. Not to be held for long.
    pub(crate) fn load(&self) -> Guard<Arc<BrokerConfig>> {
        self.current.load()
    }

    /// The version: it rises with every change.
    pub(crate) fn version(&self) -> DataVersion {
        *self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a change over and keeps it in the configuration file, if there is one. Blocks on the disk.
    ///
    /// # Errors
    /// [`LiveError`].
    pub(crate) fn change(&self, properties: &Properties, now: i64) -> Result<Effects, LiveError> {
        let mut version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.load().changed(properties)?;
        let mut effects = Effects::default();
        if changed.values.is_empty() {
            return Ok(effects);
        }
        let file = changed.config.file.clone();
        self.current.store(Arc::new(changed.config));
        next_version(&mut version, now);
        for (key, _) in &changed.values {
            let keys = if is_live(key) {
                &mut effects.now
            } else {
                &mut effects.later
            };
            keys.push(key.clone());
        }
        if let Some(path) = file {
            keep(&path, &changed.values)?;
            effects.kept = true;
        }
        Ok(effects)
    }
}

/// Replaces the values where they stand in the file, whatever an operator has made of it meanwhile.
fn keep(path: &Path, values: &[(String, String)]) -> Result<(), LiveError> {
    let text = properties::read_text(path)?;
    let amended = properties::amend(
        &text,
        values
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str())),
    )?;
    replace::with_text(path, &amended).map_err(|source| LiveError::NotKept {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn a_change_is_in_force_and_stands_in_the_file_among_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("broker.conf");
        std::fs::write(
            &path,
            "# ours\nbrokerName=b\nlongPollingEnable = \\\n  true\nlistenPort=0",
        )
        .unwrap();
        let mut config = BrokerConfig::default();
        config.read_over(&path).unwrap();
        let live = Live::new(config, 1);
        let properties = |text| Properties::parse(text).unwrap();
        let effects = live
            .change(
                &properties("longPollingEnable=false\nmessageDelayLevel=1s 5s\n"),
                7,
            )
            .unwrap();
        assert_eq!(effects.now, ["longPollingEnable"]);
        assert_eq!(effects.later, ["messageDelayLevel"]);
        assert!(!live.load().long_polling_enable);
        assert_eq!((live.version().counter, live.version().timestamp), (1, 7));
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "# ours\nbrokerName=b\nlongPollingEnable=false\nlistenPort=0\nmessageDelayLevel=1s 5s\n"
        );
        let mut again = BrokerConfig::default();
        again.read_over(&path).unwrap();
        assert_eq!(again.message_delay_level, "1s 5s");

        let refused = live.change(&properties("longPollingEnable=true\nlistenPort=1\n"), 8);
        assert!(matches!(
            refused,
            Err(LiveError::Refused(ChangeError::Bound { .. }))
        ));
        assert!(!live.load().long_polling_enable);
        assert_eq!(live.version().counter, 1);
    }
}
