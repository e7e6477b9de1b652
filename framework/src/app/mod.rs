//! The application: from a configuration and what the program declares to running bindings, and back to a clean stop.
//!
//! ```text
//! AppBuilder ─▶ Program (handlers, sources) ─┐
//! application.yaml ─▶ Config ────────────────┴─▶ one report of all mistakes, or:
//!   web address ─▶ embedded broker ─▶ destinations ─▶ outputs ─▶ inputs ─▶ web server ─▶ on_started
//! stop: inputs finish ─▶ outputs ─▶ web server ─▶ binders ─▶ embedded broker (clean store)
//! ```

mod assembly;
mod builder;
mod flags;
mod handle;
mod late;
mod program;
mod report;
mod specs;

pub(crate) use program::{Around, Program};

pub use builder::{App, AppBuilder};
pub use handle::AppHandle;
