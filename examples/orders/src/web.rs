//! The web endpoint: `POST /orders` with `{"item": "tea", "quantity": 2}` sends an order on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use bindery::prelude::{Bound, SendError, SendReceipt, State};
use serde::Deserialize;

use crate::account::Account;
use crate::orders::{Order, Orders};

/// The number of the last order taken over HTTP; shared by all requests.
#[derive(Debug, Clone, Default)]
pub struct OrderNumbers(Arc<AtomicI64>);

#[derive(Debug, Deserialize)]
struct NewOrder {
    item: String,
    #[serde(default = "one")]
    quantity: u32,
}

fn one() -> u32 {
    1
}

/// `POST /orders`, and `GET /account` for the account as it stands.
pub fn routes() -> Router {
    Router::new()
        .route("/orders", post(create))
        .route("/account", get(account))
}

/// Answers 202 with the broker's receipt; the order is handled behind that.
async fn create(
    orders: Bound<Orders>,
    numbers: State<OrderNumbers>,
    Json(new): Json<NewOrder>,
) -> Result<(StatusCode, Json<SendReceipt>), SendError> {
    let id = 1 + numbers.0.0.fetch_add(1, Ordering::Relaxed);
    let order = Order {
        id,
        step: 0,
        item: new.item,
        quantity: new.quantity,
    };
    Ok((StatusCode::ACCEPTED, Json(orders.normal.send(order).await?)))
}

async fn account(account: State<Account>) -> String {
    account.to_string()
}
