//! The program under test: what its attributes register is shared by all tests; each configuration names its part.

use bindery::error::BoxError;
use bindery::handler::{HandlerError, Outcome, Redelivery};
use bindery::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: i64,
    pub(crate) desc: String,
}

pub(crate) fn order(id: i64, desc: &str) -> Order {
    Order {
        id,
        desc: desc.to_owned(),
    }
}

#[bindings]
pub(crate) struct MySource {
    #[output("output-order")]
    pub(crate) order: Output<Order>,
}

#[bindings]
pub(crate) struct TxSource {
    #[output("output-transaction")]
    pub(crate) tx: Output<String>,
}

/// Fails for orders that say so.
#[stream_listener("input")]
async fn receive(order: Json<Order>, _headers: Headers) -> Result<(), HandlerError> {
    match order.desc.as_str() {
        "boom" => Err(HandlerError::retry("boom")),
        "never" => Err(HandlerError::reject("never")),
        _ => Ok(()),
    }
}

/// Fails the first two times.
#[stream_listener("third-time")]
async fn third_time(redelivery: Redelivery) -> Outcome {
    if redelivery.broker < 2 {
        Outcome::Retry
    } else {
        Outcome::Ack
    }
}

#[stream_listener("dogs", condition = "headers['type'] == 'dog'")]
async fn dog(_text: String) {}

#[stream_listener("cache")]
async fn cached(_text: String) {}

#[stream_listener("input-transaction")]
async fn decided(_text: String) {}

/// Does what the header `test` says, as the original application's listener does.
pub(crate) struct Listener;

impl FromApp for Listener {
    fn from_app(_app: &bindery::handler::AppContext) -> Result<Self, BoxError> {
        Ok(Self)
    }
}

#[transaction_listener("myTransactionListener")]
impl TransactionListener for Listener {
    async fn execute_local(&self, half: &HalfMessage, _: &TxArgs) -> Result<LocalState, BoxError> {
        Ok(match half.headers().get("test") {
            Some("1") => LocalState::Unknown,
            Some("2") => LocalState::Rollback,
            _ => LocalState::Commit,
        })
    }

    async fn check_local(&self, half: &HalfMessage) -> Result<LocalState, BoxError> {
        match half.headers().get("never") {
            Some(_) => Ok(LocalState::Unknown),
            None => Ok(LocalState::Commit),
        }
    }
}
