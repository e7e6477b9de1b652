//! What travels: orders, and the output they are sent to.

use bindery::prelude::*;
use serde::{Deserialize, Serialize};

/// An order. Whoever places it chooses its number, so that placing it again does nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number.
    pub id: i64,
    /// What was ordered.
    pub item: String,
    /// How many of it.
    pub quantity: u32,
}

/// The outputs of this service; `application.yaml` says where each goes.
#[bindings]
pub struct Orders {
    /// Delivered only if the order is booked; see `books.rs`.
    #[output("output-booked")]
    pub booked: Output<Order>,
}
