//! The source interface: every channel of every part.

use bindery::prelude::*;
use serde::{Deserialize, Serialize};

/// `{"id": 1, "desc": "test"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: i64,
    pub(crate) desc: String,
}

/// What can be sent; what is received has its handlers, by name.
#[bindings]
#[expect(
    dead_code,
    reason = "an input is here as in the original; it could be paused, too"
)]
pub(crate) struct MySource {
    #[output("output")]
    pub(crate) output: Output<String>,
    #[output("output-order")]
    pub(crate) output_order: Output<Order>,
    #[output("output-transaction")]
    pub(crate) output_transaction: Output<String>,
    #[input("input")]
    pub(crate) input: Input,
    #[input("input-transaction")]
    pub(crate) input_transaction: Input,
    #[input("input-backtracking")]
    pub(crate) input_backtracking: Input,
}
