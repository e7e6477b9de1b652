//! What travels: orders, and the outputs they are sent to.

use bindery::prelude::*;
use serde::{Deserialize, Serialize};

use crate::account::Event;

/// One message about an order. Its `id` is the partition key of `output-orderly`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The order.
    pub id: i64,
    /// What happened to it: 0 created, 1 paid, 2 shipped.
    pub step: u32,
    /// What was ordered.
    pub item: String,
    /// How many of it.
    pub quantity: u32,
}

/// The outputs of this service; `application.yaml` says where each goes.
#[bindings]
pub struct Orders {
    /// Any queue, any order.
    #[output("output-normal")]
    pub normal: Output<Order>,
    /// One topic, read by tags.
    #[output("output-tagged")]
    pub tagged: Output<Order>,
    /// The steps of one order in their order.
    #[output("output-orderly")]
    pub orderly: Output<Order>,
    /// Delivered later.
    #[output("output-delayed")]
    pub delayed: Output<Order>,
    /// Some of them are refused.
    #[output("output-failing")]
    pub failing: Output<Order>,
    /// Sent only if the order is booked; see `books.rs`.
    #[output("output-transactional")]
    pub transactional: Output<Order>,
    /// What was handled for another instance's run.
    #[output("output-reports")]
    pub reports: Output<Event>,
}
