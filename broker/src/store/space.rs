//! A switch with which tests pretend that the volume is full. Off, and free of cost, in production.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Handle to the switch; clones share it. The default has none and never refuses.
#[derive(Debug, Clone, Default)]
pub struct Space {
    full: Option<Arc<AtomicBool>>,
}

impl Space {
    /// A space that can be declared full.
    #[must_use]
    pub fn switchable() -> Self {
        Self {
            full: Some(Arc::default()),
        }
    }

    /// Declares the volume full, or free again.
    pub fn set_full(&self, full: bool) {
        if let Some(switch) = &self.full {
            switch.store(full, Ordering::SeqCst);
        }
    }

    /// Asked before bytes are claimed from the volume.
    pub(super) fn claim(&self) -> io::Result<()> {
        match &self.full {
            Some(switch) if switch.load(Ordering::SeqCst) => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}
