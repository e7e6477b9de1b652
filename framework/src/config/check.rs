//! Checks that need the program: which handlers and source structs exist, and which bindings they name.

use super::{Loaded, report::Diagnostic};

/// Where the program names a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredBinding {
    /// The binding's name.
    pub name: String,
    /// What names it, for messages: "handler `on_order`", "source struct `MySource`, field `order`".
    pub by: String,
    /// Source file of the program.
    pub file: String,
    /// Line in that file, from 1.
    pub line: u32,
}

/// What the program declares.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Inputs: listeners and input fields of source structs.
    pub inputs: Vec<DeclaredBinding>,
    /// Outputs: `send_to` targets, output fields of source structs.
    pub outputs: Vec<DeclaredBinding>,
}

/// Compares the configuration with the program: bindings nothing uses, names nothing configures, rules between keys that
/// depend on the direction of a binding. Warnings and errors, in source order.
#[must_use]
pub fn check_usage(_loaded: &Loaded, _usage: &Usage) -> Vec<Diagnostic> {
    todo!()
}
