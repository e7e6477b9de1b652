//! What comes in: orders over HTTP, and booked orders from the broker.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use bindery::prelude::{
    Bound, HandlerError, LocalState, SendError, State, TxArgs, TxReceipt, stream_listener,
};
use serde::Deserialize;

use crate::orders::{Order, Orders};
use crate::store::{Compared, Store};

/// Booked orders, and only those. In a real system this handler is in another service, with a database of its own.
#[stream_listener("input-booked")]
async fn booked(order: Json<Order>, store: State<Store>) -> Result<(), HandlerError> {
    store.delivered(&order).await?;
    tracing::info!(order.id, order.item, order.quantity, "a booked order came");
    Ok(())
}

#[derive(Debug, Deserialize)]
struct NewOrder {
    item: String,
    #[serde(default = "one")]
    quantity: u32,
}

fn one() -> u32 {
    1
}

/// `PUT /orders/NUMBER`, and `GET /orders` for what is booked and delivered.
pub fn routes() -> Router {
    Router::new()
        .route("/orders/{id}", put(place))
        .route("/orders", get(compare))
}

/// Answers 201 when the order is booked, 409 when its number is taken, and 202 when the broker will find out.
async fn place(
    orders: Bound<Orders>,
    Path(id): Path<i64>,
    Json(new): Json<NewOrder>,
) -> Result<(StatusCode, Json<TxReceipt>), SendError> {
    let order = Order {
        id,
        item: new.item,
        quantity: new.quantity,
    };
    let receipt = orders
        .booked
        .send_in_transaction(order, TxArgs::none())
        .await?;
    let status = match receipt.state {
        LocalState::Commit => StatusCode::CREATED,
        LocalState::Rollback => StatusCode::CONFLICT,
        LocalState::Unknown => StatusCode::ACCEPTED,
    };
    Ok((status, Json(receipt)))
}

async fn compare(store: State<Store>) -> Result<Json<Vec<Compared>>, (StatusCode, String)> {
    let failed = |error: sqlx::Error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    store.compared().await.map(Json).map_err(failed)
}
