//! The web endpoints of each part.

use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use bindery::prelude::*;
use serde::Deserialize;

use crate::source::{MySource, Order};

/// The endpoints of the part among these profiles; the first part's if there is none.
pub(crate) fn routes(profiles: &[String]) -> Router {
    let is = |part: &str| profiles.iter().any(|profile| profile == part);
    let router = Router::new();
    if is("ordered") {
        router.route("/produce", get(ordered))
    } else if is("transaction") {
        router.route("/send_transaction", get(transaction))
    } else if is("delay") || is("backtracking") {
        router.route("/produce", get(delayed))
    } else {
        router.route("/produce", get(first))
    }
}

/// What the text carries beside itself: `/produce?tag=test02&key=messageKey`.
#[derive(Debug, Deserialize)]
struct Labels {
    #[serde(default = "test")]
    tag: String,
    key: Option<String>,
}

fn test() -> String {
    "test".to_owned()
}

async fn first(
    source: Bound<MySource>,
    Query(labels): Query<Labels>,
) -> Result<Json<SendReceipt>, SendError> {
    let message = Message::new("Hello RocketMQ!".to_owned())
        .tag(labels.tag)
        .keys(labels.key);
    source.output.send(message).await.map(Json)
}

/// Three messages about one new order, each awaited before the next is sent.
async fn ordered(source: Bound<MySource>) -> Result<Json<Vec<SendReceipt>>, SendError> {
    let id = rand::random::<i64>();
    let mut receipts = Vec::new();
    for desc in ["created", "paid", "shipped"] {
        let order = Order {
            id,
            desc: desc.to_owned(),
        };
        // For the variant whose key is headers['partitionKey'].
        let message = Message::new(order).header("partitionKey", id);
        receipts.push(source.output_order.send(message).await?);
    }
    Ok(Json(receipts))
}

/// Handled five seconds later: that is the broker's second level.
async fn delayed(source: Bound<MySource>) -> Result<Json<SendReceipt>, SendError> {
    let order = Order {
        id: 1,
        desc: "test".to_owned(),
    };
    let message = Message::new(order).delay_level(2).tag("test03");
    source.output_order.send(message).await.map(Json)
}

/// What the listener decides by: `/send_transaction?test=2`.
#[derive(Debug, Deserialize)]
struct Decided {
    #[serde(default = "unknown")]
    test: String,
}

fn unknown() -> String {
    "1".to_owned()
}

async fn transaction(
    source: Bound<MySource>,
    Query(decided): Query<Decided>,
) -> Result<Json<SendReceipt>, SendError> {
    let message = Message::new(format!("transaction {}", decided.test))
        .content_type("application/json")
        .header("test", decided.test)
        .header("USER_TRANSACTIONAL_ARGS", "binder");
    source.output_transaction.send(message).await.map(Json)
}
