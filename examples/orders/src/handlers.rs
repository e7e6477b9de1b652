//! The handlers: what this service does with each message. Each notes in the account what it did; what belongs to the
//! run of another instance is reported to that instance by `#[send_to]`.

use std::fmt;

use bindery::prelude::*;

use crate::account::{Account, Event, Flow, What};
use crate::orders::{Order, Orders};

#[stream_listener("input-normal")]
#[send_to("output-reports")]
async fn normal(
    order: Json<Order>,
    headers: Headers,
    account: State<Account>,
) -> Option<Json<Event>> {
    if headers.get("run").is_none() {
        tracing::info!(
            order.id,
            order.item,
            order.quantity,
            "order received over HTTP is handled"
        );
    }
    account.note(Flow::Normal, What::Handled, &order, &headers)
}

#[stream_listener("input-express")]
#[send_to("output-reports")]
async fn express(
    order: Json<Order>,
    tag: Tags,
    headers: Headers,
    account: State<Account>,
) -> Option<Json<Event>> {
    let what = if matches!(tag.0.as_str(), "express" | "courier") {
        What::Handled
    } else {
        What::Unwanted
    };
    account.note(Flow::Tagged, what, &order, &headers)
}

#[stream_listener("input-standard")]
#[send_to("output-reports")]
async fn standard(
    order: Json<Order>,
    tag: Tags,
    headers: Headers,
    account: State<Account>,
) -> Option<Json<Event>> {
    let what = if tag.0 == "standard" {
        What::Handled
    } else {
        What::Unwanted
    };
    account.note(Flow::Tagged, what, &order, &headers)
}

#[stream_listener("input-orderly")]
#[send_to("output-reports")]
async fn orderly(
    order: Json<Order>,
    headers: Headers,
    account: State<Account>,
) -> Option<Json<Event>> {
    account.note(Flow::Orderly, What::Handled, &order, &headers)
}

#[stream_listener("input-delayed")]
#[send_to("output-reports")]
async fn delayed(
    order: Json<Order>,
    headers: Headers,
    account: State<Account>,
) -> Option<Json<Event>> {
    account.note(Flow::Delayed, What::Handled, &order, &headers)
}

/// Nobody can pay for more than [`LIMIT`] at all, and the first attempt to pay fails for everybody.
#[stream_listener("input-failing")]
#[send_to("output-reports")]
async fn failing(
    order: Json<Order>,
    redelivery: Redelivery,
    headers: Headers,
    account: State<Account>,
    orders: Bound<Orders>,
) -> Result<Option<Json<Event>>, HandlerError> {
    if redelivery.broker == 0 {
        return Err(PaymentRefused {
            order: order.id,
            reason: "the bank does not answer",
        }
        .into());
    }
    if let Some(report) = account.note(Flow::Failing, What::Retried, &order, &headers) {
        orders.reports.send(report.0).await?;
    }
    if order.quantity > LIMIT {
        return Err(PaymentRefused {
            order: order.id,
            reason: "too expensive",
        }
        .into());
    }
    Ok(account.note(Flow::Failing, What::Handled, &order, &headers))
}

/// Dead letters of the group `orders-failing`.
#[stream_listener("input-dead")]
#[send_to("output-reports")]
async fn dead(
    order: Json<Order>,
    headers: Headers,
    account: State<Account>,
) -> Option<Json<Event>> {
    account.note(Flow::Failing, What::DeadLettered, &order, &headers)
}

/// Only booked orders come here.
#[stream_listener("input-transactional")]
#[send_to("output-reports")]
async fn booked(
    order: Json<Order>,
    headers: Headers,
    account: State<Account>,
) -> Option<Json<Event>> {
    account.note(Flow::Transactional, What::Handled, &order, &headers)
}

/// What other instances handled of this instance's run.
#[stream_listener("input-reports")]
async fn report(event: Json<Event>, account: State<Account>) {
    account.take(&event);
}

/// The quantity above which an order is never paid.
pub const LIMIT: u32 = 10;

/// Why an order is not paid.
#[derive(Debug)]
struct PaymentRefused {
    order: i64,
    reason: &'static str,
}

impl fmt::Display for PaymentRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {} is not paid: {}", self.order, self.reason)
    }
}

impl std::error::Error for PaymentRefused {}
