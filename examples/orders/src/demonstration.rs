//! The self-driven run: sends through every flow, waits until the handlers have seen everything, prints the account.

use std::time::Duration;

use bindery::prelude::*;

use crate::account::{Account, Flow};
use crate::books;
use crate::handlers::LIMIT;
use crate::orders::{Order, Orders};

/// How long the account waits for the next message to be handled before it says what is missing. The longest pause that
/// belongs to the run is a redelivery after one second; a cluster that is far away may take more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends, waits, prints.
pub async fn run(app: AppHandle, account: Account) {
    let orders = match app.bound::<Orders>() {
        Ok(orders) => orders,
        Err(error) => return tracing::error!(%error, "the outputs are missing"),
    };
    let sender = Sender {
        orders: &orders,
        account: &account,
    };
    tokio::join!(
        sender.normal(),
        sender.tagged(),
        sender.orderly(),
        sender.delayed(),
        sender.failing(),
        sender.transactional()
    );
    account.settle(PATIENCE).await;
    print!("{account}");
}

struct Sender<'a> {
    orders: &'a Orders,
    account: &'a Account,
}

impl Sender<'_> {
    async fn normal(&self) {
        for number in 0..30 {
            self.send(
                Flow::Normal,
                number,
                &self.orders.normal,
                Message::new(order(number, 0, 1)),
            )
            .await;
        }
    }

    async fn tagged(&self) {
        for number in 0..30 {
            let tag = ["express", "standard", "courier"][number as usize % 3];
            self.send(
                Flow::Tagged,
                number,
                &self.orders.tagged,
                Message::new(order(number, 0, 1)).tag(tag),
            )
            .await;
        }
    }

    /// Ten orders of three steps each, interleaved; a step is sent when the one before is stored.
    async fn orderly(&self) {
        for step in 0..3 {
            for id in 0..10 {
                let message = Message::new(order(id, step, 1));
                self.send(Flow::Orderly, step * 10 + id, &self.orders.orderly, message)
                    .await;
            }
        }
    }

    /// Delay level 1: one second.
    async fn delayed(&self) {
        for number in 0..5 {
            let message = Message::new(order(number, 0, 1)).delay_level(1);
            self.send(Flow::Delayed, number, &self.orders.delayed, message)
                .await;
        }
    }

    /// Five orders that are paid at the second attempt, and three that never are.
    async fn failing(&self) {
        for number in 0..8 {
            let quantity = if number < 5 { 1 } else { LIMIT + 1 };
            self.send(
                Flow::Failing,
                number,
                &self.orders.failing,
                Message::new(order(number, 0, quantity)),
            )
            .await;
        }
    }

    /// Seven orders that are booked, and three that cannot be: nobody gets those.
    async fn transactional(&self) {
        for number in 0..10 {
            let quantity = if number % 4 == 3 || number == 9 {
                books::STOCK + 1
            } else {
                1
            };
            let flow = Flow::Transactional;
            let message = self.begin(flow, number, Message::new(order(number, 0, quantity)));
            let output = &self.orders.transactional;
            match output.send_in_transaction(message, TxArgs::none()).await {
                Ok(receipt) if receipt.state == LocalState::Rollback => {
                    self.account.rolled_back(flow, number);
                }
                Ok(_) => {}
                Err(error) => self.account.not_sent(flow, number, error.to_string()),
            }
        }
    }

    async fn send(&self, flow: Flow, number: u32, output: &Output<Order>, message: Message<Order>) {
        let message = self.begin(flow, number, message);
        if let Err(error) = output.send(message).await {
            self.account.not_sent(flow, number, error.to_string());
        }
    }

    fn begin(&self, flow: Flow, number: u32, message: Message<Order>) -> Message<Order> {
        self.account.sending(flow, number);
        message
            .header("run", self.account.run())
            .header("number", number)
    }
}

fn order(id: u32, step: u32, quantity: u32) -> Order {
    Order {
        id: i64::from(id),
        step,
        item: "tea".to_owned(),
        quantity,
    }
}
