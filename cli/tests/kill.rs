//! What was acknowledged is never lost: `bindery up` is killed with SIGKILL at a random moment, again and again, on one store.
//!
//! ```text
//! senders ─▶ bindery up ─ SIGKILL ─▶ bindery up (recovers) ─▶ read every queue ─▶ each acknowledged message once, in its place
//! ```
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#[path = "delay/mod.rs"]
mod delay;

use std::{
    collections::HashMap,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use bindery_tests::{Process, Stored, Wire, WireError};
use tokio::sync::watch;

const TOPIC: &str = "KillTopic";
const QUEUES: i32 = 4;
const SENDERS: i32 = 8;
const ROUNDS: u64 = 20;

/// Starts the broker on a store; returns the process and the broker's address.
fn up(store: &Path, conf: &Path) -> (Process, String) {
    let mut process = Process::start(
        Command::new(env!("CARGO_BIN_EXE_bindery"))
            .args([
                "up",
                "--namesrv-listen",
                "127.0.0.1:0",
                "--broker-listen",
                "127.0.0.1:0",
                "--store",
            ])
            .arg(store)
            .arg("-c")
            .arg(conf),
    )
    .unwrap();
    let ready = process
        .wait_for("bindery is ready", Duration::from_secs(20))
        .unwrap();
    let broker = ready
        .split("broker ")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap()
        .to_owned();
    (process, broker)
}

/// Sends until the connection breaks; every acknowledged body goes into `acknowledged`.
async fn send_until_killed(
    wire: Wire,
    sender: i32,
    round: u64,
    acknowledged: Arc<Mutex<HashMap<String, Stored>>>,
    sent: watch::Sender<u64>,
) {
    for number in 0.. {
        let body = format!("round {round} sender {sender} message {number}");
        match wire.send(TOPIC, sender % QUEUES, &body).await {
            Ok(stored) => {
                assert_eq!(acknowledged.lock().unwrap().insert(body, stored), None);
                sent.send_modify(|count| *count += 1);
            }
            Err(WireError::Refused(code, remark)) => panic!("refused: {code} {remark}"),
            Err(_killed) => return,
        }
    }
}

async fn acknowledged_messages_survive(flush: &str) {
    let dir = tempfile::tempdir().unwrap();
    let conf = dir.path().join("broker.conf");
    std::fs::write(
        &conf,
        format!("flushDiskType={flush}\nmappedFileSizeCommitLog=1048576\n"),
    )
    .unwrap();
    let store = dir.path().join("store");
    let acknowledged = Arc::new(Mutex::new(HashMap::new()));
    for round in 0..ROUNDS {
        let (mut process, broker) = up(&store, &conf);
        let wire = Wire::connect(&broker).await.unwrap();
        wire.create_topic(TOPIC, QUEUES).await.unwrap();
        let (sent, mut counter) = watch::channel(0);
        let mut senders = tokio::task::JoinSet::new();
        for sender in 0..SENDERS {
            senders.spawn(send_until_killed(
                wire.clone(),
                sender,
                round,
                Arc::clone(&acknowledged),
                sent.clone(),
            ));
        }
        // Another moment in each round, from the very first message on.
        counter
            .wait_for(|sent| *sent > round * 7919 % 1500)
            .await
            .unwrap();
        process.kill().unwrap();
        while let Some(sender) = senders.join_next().await {
            sender.unwrap();
        }
        let so_far = acknowledged.lock().unwrap().clone();
        verify(&store, &conf, &so_far).await;
    }
    let count = acknowledged.lock().unwrap().len();
    println!("{flush}: {count} acknowledged messages survived {ROUNDS} kills");
    assert!(count > 100, "too few messages to mean anything: {count}");
}

/// Opens the store and looks for every acknowledged message, once and in its place; then kills the broker again.
async fn verify(store: &Path, conf: &Path, acknowledged: &HashMap<String, Stored>) {
    let (mut process, broker) = up(store, conf);
    let wire = Wire::connect(&broker).await.unwrap();
    let mut found = HashMap::new();
    for queue in 0..QUEUES {
        for (at, message) in wire
            .read_all(TOPIC, queue)
            .await
            .unwrap()
            .into_iter()
            .enumerate()
        {
            assert_eq!(
                message.queue_offset.0,
                i64::try_from(at).unwrap(),
                "a gap in queue {queue}"
            );
            let body = String::from_utf8(message.body.to_vec()).unwrap();
            let place = Stored {
                queue,
                offset: message.queue_offset.0,
            };
            assert_eq!(found.insert(body, place), None, "stored twice");
        }
    }
    for (body, place) in acknowledged {
        assert_eq!(found.get(body), Some(place), "`{body}` was acknowledged");
    }
    process.kill().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_messages_survive_sigkill_with_synchronous_flush() {
    acknowledged_messages_survive("SYNC_FLUSH").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_messages_survive_sigkill_with_asynchronous_flush() {
    acknowledged_messages_survive("ASYNC_FLUSH").await;
}
