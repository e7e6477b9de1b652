//! What the parts send: an order.

use bindery::Message;
use serde::{Deserialize, Serialize};

/// `{"id": 1, "desc": "test"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: i64,
    pub(crate) desc: String,
}

/// The order of the parts about delays and about going back in time: handled five seconds later, by the broker's second level.
pub(crate) fn delayed() -> Message<Order> {
    let order = Order {
        id: 1,
        desc: "test".to_owned(),
    };
    Message::new(order).delay_level(2).tag("test03")
}
