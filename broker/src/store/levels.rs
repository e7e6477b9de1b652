//! The table of delay levels in force: shared by all who look at it, and replaced as a whole while the broker runs.

use std::sync::{Arc, PoisonError, RwLock};

use bindery_protocol::message::DelayLevels;

/// A handle; clones share the table.
#[derive(Debug, Clone, Default)]
pub struct LiveLevels {
    table: Arc<RwLock<Arc<DelayLevels>>>,
}

impl LiveLevels {
    /// The table as it is now.
    #[must_use]
    pub fn current(&self) -> Arc<DelayLevels> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&table)
    }

    /// Puts another table in force.
    pub fn replace(&self, levels: DelayLevels) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        *table = Arc::new(levels);
    }
}

impl From<DelayLevels> for LiveLevels {
    fn from(levels: DelayLevels) -> Self {
        Self {
            table: Arc::new(RwLock::new(Arc::new(levels))),
        }
    }
}
