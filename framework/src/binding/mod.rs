//! Bindings: the named inputs and outputs of an application, and the handles programs hold on them.
//!
//! ```text
//! #[bindings] struct ── Bound<S> ──▶ Output<T> ─▶ OutputBinding ─▶ partition, encode ─▶ binder
//! StreamBridge ──by name at run time──────────────────┘
//! Input ─▶ InputBinding ─▶ pause, resume, assignment ─▶ binder
//! ```

mod background;
mod bindings;
mod bound;
mod bridge;
mod error;
mod input;
mod kind;
mod output;
mod receipt;

pub use bindings::{Bindings, BoundField};
pub use bound::Bound;
pub use bridge::{IntoMessage, StreamBridge};
pub use error::{BindError, SendError};
pub use input::{BindingChange, ChangeError, Input, InputState};
pub use kind::{Any, Orderly, ProducerKind, Sends, Trans, Transacts};
pub use output::{Output, SendAllError};
pub use receipt::SendReceipt;

pub(crate) use input::InputBinding;
pub(crate) use output::{OutputBinding, OutputParts, Waiting};
