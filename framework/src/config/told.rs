//! What has been told already, so that one mistake is told once: a mistyped `group` must not also be a missing one.

use super::{
    layer::last_name,
    relaxed::squash,
    report::{Diagnostic, DiagnosticKind},
};

/// The errors so far, as far as they explain that something is absent.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// A document or a whole section is lost: nothing can be said about what is absent.
    everything: bool,
    /// Written key, and the squashed names it is or was meant to be.
    keys: Vec<(String, [String; 2])>,
}

impl Told {
    pub(crate) fn of(report: &[Diagnostic]) -> Self {
        let mut told = Self::default();
        for diagnostic in report.iter().filter(|diagnostic| diagnostic.is_error()) {
            let written = diagnostic.key.clone().unwrap_or_default();
            let meant = diagnostic
                .suggestion
                .as_deref()
                .map(last_name)
                .unwrap_or_default();
            told.everything |= match diagnostic.kind {
                DiagnosticKind::Syntax | DiagnosticKind::File => true,
                DiagnosticKind::UnknownKey => {
                    ["spring", "cloud", "stream", "bindings", "rocketmq"].contains(&meant)
                }
                _ => false,
            };
            told.keys.push((
                written.clone(),
                [squash(last_name(&written)), squash(meant)],
            ));
        }
        told
    }

    /// Whether an error explains that `binding` seems to lack `key`.
    pub(crate) fn explains(&self, binding: &str, key: &str) -> bool {
        let (binding, key) = (squash(binding), squash(key));
        self.everything
            || self.keys.iter().any(|(written, names)| {
                let written = squash(written);
                names.contains(&key) && (written.contains(&binding) || written.contains("default"))
            })
    }

    /// Whether bindings may be lost.
    pub(crate) fn explains_bindings(&self) -> bool {
        self.everything
    }
}
