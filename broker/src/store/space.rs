//! How full the volume is, and a switch with which tests pretend that it is full. The switch is off, and free of cost, in
//! production.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Handle to the volume; clones share the switch. The default has none and never refuses.
#[derive(Debug, Clone, Default)]
pub struct Space {
    pretended: Option<Arc<Pretended>>,
}

#[derive(Debug, Default)]
struct Pretended {
    full: AtomicBool,
    /// Percent in use; 0 for what the volume really says.
    used: AtomicI64,
}

impl Space {
    /// A space that can be declared full.
    #[must_use]
    pub fn switchable() -> Self {
        Self {
            pretended: Some(Arc::default()),
        }
    }

    /// Declares the volume full, or free again.
    pub fn set_full(&self, full: bool) {
        if let Some(pretended) = &self.pretended {
            pretended.full.store(full, Ordering::SeqCst);
        }
    }

    /// Declares so many percent of the volume used; 0 for what it really says.
    pub fn set_used(&self, percent: u8) {
        if let Some(pretended) = &self.pretended {
            pretended.used.store(i64::from(percent), Ordering::SeqCst);
        }
    }

    /// Asked before bytes are claimed from the volume.
    pub(super) fn claim(&self) -> io::Result<()> {
        match &self.pretended {
            Some(pretended) if pretended.full.load(Ordering::SeqCst) => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }

    /// Used percent of the volume that holds `path`, rounded up, as `UtilAll.getDiskPartitionSpaceUsedPercent` of Apache
    /// `RocketMQ` 5.3.3 does; `None` if it can't be told.
    pub(super) fn used(&self, path: &Path) -> Option<i64> {
        let pretended = self.pretended.as_ref();
        let pretended = pretended.map_or(0, |pretended| pretended.used.load(Ordering::SeqCst));
        if pretended > 0 {
            return Some(pretended);
        }
        let volume = rustix::fs::statvfs(path).ok()?;
        let used = u128::from(volume.f_blocks.saturating_sub(volume.f_bfree));
        let whole = used + u128::from(volume.f_bavail);
        if whole == 0 {
            return None;
        }
        i64::try_from((used * 100).div_ceil(whole)).ok()
    }
}
