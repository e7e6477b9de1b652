//! Transactions on a real cluster. How long a check takes depends on its `transactionTimeOut` and `transactionCheckInterval` (6 s and
//! 30 s unless configured), so patience is needed.
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use bindery_client::{
    BoxError, Client, HalfMessage, LocalState, Message, MessageExt, Producer, TransactionArgs,
    TransactionListener, TransactionProducer,
};

use crate::live::{Seen, Stage, until};

/// Outcomes by transaction id, and how often each was asked for.
#[derive(Debug, Clone, Default)]
struct Ledger {
    outcomes: Arc<Mutex<HashMap<String, LocalState>>>,
    asked: Arc<Mutex<Vec<MessageExt>>>,
}

impl Ledger {
    fn times_asked(&self, id: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .filter(|message| message.transaction_id() == Some(id))
            .count()
    }

    fn note(&self, id: &str, state: LocalState) {
        self.outcomes.lock().unwrap().insert(id.to_owned(), state);
    }

    fn outcome(&self, id: &str) -> LocalState {
        let outcomes = self.outcomes.lock().unwrap();
        outcomes.get(id).copied().unwrap_or_default()
    }
}

impl TransactionListener for Ledger {
    async fn execute_local(
        &self,
        _: &HalfMessage,
        args: &TransactionArgs,
    ) -> Result<LocalState, BoxError> {
        Ok(args.downcast_ref().copied().unwrap_or_default())
    }

    async fn check_local(&self, message: &MessageExt) -> Result<LocalState, BoxError> {
        self.asked.lock().unwrap().push(message.clone());
        Ok(self.outcome(message.transaction_id().ok_or("no id")?))
    }
}

impl Stage {
    async fn transactions(&self, client: &Client, ledger: &Ledger) -> TransactionProducer {
        Producer::builder(format!("{}-p", self.group))
            .client(client)
            .topics([&self.topic])
            .transactional(ledger.clone())
            .start()
            .await
            .unwrap()
    }

    fn half(&self, body: &str) -> Message {
        Message::new(&self.topic, body.to_owned()).property("CHECK_IMMUNITY_TIME_IN_SECONDS", "1")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn committed_messages_arrive_and_others_do_not() {
    let Some(stage) = Stage::new("tx", 2).await else {
        return;
    };
    let seen = Seen::default();
    let consumer = stage
        .consumer()
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    let ledger = Ledger::default();
    let producer = stage.transactions(&stage.client, &ledger).await;
    let send = |body: &str, state: LocalState| {
        producer.send_in_transaction(stage.half(body), TransactionArgs::new(state))
    };
    let large = "large".repeat(2000);
    send("no", LocalState::Rollback).await.unwrap();
    let open = send("open", LocalState::Unknown).await.unwrap();
    let yes = send("yes", LocalState::Commit).await.unwrap();
    send(&large, LocalState::Commit).await.unwrap();
    assert!(yes.reported && yes.sent.offset_msg_id.len() >= 32);
    until("the committed ones", || seen.len() == 2).await;
    let mut bodies = seen.bodies();
    bodies.sort_by_key(String::len);
    assert_eq!(bodies, ["yes", &large]);
    let message = seen.0.lock().unwrap()[0].clone();
    assert!(message.transaction_id().is_some());
    assert_eq!(
        message.property("PGROUP"),
        Some(&*format!("{}-p", stage.group))
    );

    let took = until("two questions", || {
        ledger.times_asked(&open.transaction_id) >= 2
    })
    .await;
    println!("asked twice within {took:?}");
    {
        let asked = ledger.asked.lock().unwrap();
        let message = &asked[0];
        assert_eq!(
            (message.topic(), &message.body()[..]),
            (&*stage.topic, &b"open"[..])
        );
        let times = |message: &MessageExt| {
            let times = message.property("TRANSACTION_CHECK_TIMES");
            times.and_then(|times| times.parse::<i32>().ok())
        };
        // Apache's broker counts a round that it skips for the immunity time too.
        assert!(times(message) >= Some(1) && times(&asked[1]) > times(message));
    }
    ledger.note(&open.transaction_id, LocalState::Commit);
    until("the one checked back", || seen.len() == 3).await;
    assert_eq!(seen.bodies()[2], "open");
    {
        let asked = ledger.asked.lock().unwrap();
        let ids: HashSet<_> = asked.iter().map(MessageExt::transaction_id).collect();
        assert_eq!(ids.len(), 1, "nobody asks about what is decided");
    }
    producer.shutdown().await;
    consumer.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_has_sent_nothing_decides_for_its_predecessor() {
    let Some(stage) = Stage::new("heir", 1).await else {
        return;
    };
    let (first, ledger) = (
        Client::start(stage.client.config().clone()).unwrap(),
        Ledger::default(),
    );
    let producer = stage.transactions(&first, &ledger).await;
    let (sent, value) = producer
        .transaction(stage.half("left open"), |half| async move {
            (LocalState::Unknown, half.transaction_id().to_owned())
        })
        .await
        .unwrap();
    assert_eq!(value.as_deref(), Some(&*sent.transaction_id));
    producer.shutdown().await;
    first.shutdown().await;

    let seen = Seen::default();
    let consumer = stage
        .consumer()
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    ledger.note(&sent.transaction_id, LocalState::Commit);
    let heir = stage.transactions(&stage.client, &ledger).await;
    let took = until("the message", || seen.len() == 1).await;
    println!("decided by the heir within {took:?}");
    assert_eq!(seen.bodies(), ["left open"]);
    heir.shutdown().await;
    consumer.shutdown().await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_verdict_is_accepted_by_the_broker() {
    let Some(stage) = Stage::new("ack", 1).await else {
        return;
    };
    let seen = Seen::default();
    let consumer = stage
        .consumer()
        .listener(seen.listener())
        .start()
        .await
        .unwrap();
    let producer = Producer::builder(format!("{}-p", stage.group))
        .client(&stage.client)
        .transactional(Ledger::default())
        .await_end(true)
        .start()
        .await
        .unwrap();
    for number in 0..10 {
        let args = TransactionArgs::new(LocalState::Commit);
        let sent = producer
            .send_in_transaction(stage.half(&format!("m{number}")), args)
            .await
            .unwrap();
        assert!(sent.reported);
    }
    until("all", || seen.len() == 10).await;
    producer.shutdown().await;
    consumer.shutdown().await;
    stage.end().await;
}
