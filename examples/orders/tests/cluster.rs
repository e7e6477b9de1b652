//! The quickstart on a broker of its own: two instances share the work, one is killed; and the broker goes away in the middle.
//!
//! ```text
//! test ─ POST /orders ─▶ instance B ─▶ broker ─▶ instance A (SIGKILL half way) and instance B ─▶ their logs ─▶ judged
//! ```
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use bindery_broker::{Broker, BrokerConfig, NameServer, NameServerConfig};
use bindery_client::{Client, ClientConfig, MessageQueue};
use bindery_tests::Process;

/// Ample for a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../application.yaml");
const HANDLED: &str = "order received over HTTP is handled order.id=";
const GROUP: &str = "orders-normal";
const TOPIC: &str = "orders-normal";

/// A name server and a broker on free ports, as `bindery up` starts them.
struct Cluster {
    namesrv: NameServer,
    broker: Broker,
    _store: tempfile::TempDir,
}

impl Cluster {
    async fn start() -> Self {
        let store = tempfile::tempdir().unwrap();
        let namesrv = NameServer::start(NameServerConfig::default())
            .await
            .unwrap();
        let config = BrokerConfig {
            namesrv_addr: namesrv.local_addr().to_string(),
            store_path_root_dir: store.path().to_owned(),
            ..BrokerConfig::default()
        };
        let broker = Broker::start(config).await.unwrap();
        Self {
            namesrv,
            broker,
            _store: store,
        }
    }

    fn instance(&self, folder: &tempfile::TempDir) -> Process {
        Process::start(
            Command::new(env!("CARGO_BIN_EXE_orders"))
                .arg(format!("--bindery.config={CONFIG}"))
                .env("BINDERY_EMBEDDED", "false")
                .env("SERVER_PORT", "0")
                .env(
                    "SPRING_CLOUD_STREAM_ROCKETMQ_BINDER_NAME_SERVER",
                    self.namesrv.local_addr().to_string(),
                )
                .env_remove("RUST_LOG")
                .current_dir(folder.path()),
        )
        .unwrap()
    }
}

/// What one `POST /orders` was answered with.
struct Receipt {
    queue: i32,
    offset: i64,
}

fn post(address: &str) -> Receipt {
    let body = r#"{"item":"tea","quantity":1}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    let number = |name: &str| {
        let digits = answer.split_once(&format!("\"{name}\":")).unwrap().1;
        digits
            .split(|c: char| !c.is_ascii_digit())
            .next()
            .unwrap()
            .parse::<i64>()
            .unwrap()
    };
    Receipt {
        queue: i32::try_from(number("queueId")).unwrap(),
        offset: number("queueOffset"),
    }
}

/// The numbers of the orders that an instance says it handled.
fn handled(instance: &mut Process) -> BTreeSet<i64> {
    let number = |line: &String| {
        let digits = line.split_once(HANDLED)?.1;
        digits
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    instance.output().iter().filter_map(number).collect()
}

fn web_address(instance: &mut Process) -> String {
    let line = instance.wait_for("web on http://", DEADLINE).unwrap();
    let port = line
        .split_once("web on http://0.0.0.0:")
        .unwrap()
        .1
        .split(',')
        .next()
        .unwrap()
        .to_owned();
    format!("127.0.0.1:{port}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_instance_leaves_its_queues_to_the_other_and_nothing_is_lost() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (mut a, mut b) = (cluster.instance(&folder), cluster.instance(&folder));
    for instance in [&mut a, &mut b] {
        let line = instance.wait_for("failing: ", DEADLINE).unwrap();
        assert_eq!(
            line,
            "failing: sent 8, handled 5, in order yes, retried 8, dead-lettered 3"
        );
    }
    let address = web_address(&mut b);
    let mut receipts = BTreeMap::new();
    // The instance numbers the orders it takes from 1 on.
    for number in 1..=100 {
        receipts.insert(number, post(&address));
    }
    a.wait_for(HANDLED, DEADLINE).unwrap();
    b.wait_for(HANDLED, DEADLINE).unwrap();
    a.kill().unwrap();
    let killed = Instant::now();
    let by_a = handled(&mut a);

    let first_after = 101;
    for number in first_after..=160 {
        receipts.insert(number, post(&address));
    }
    let client =
        Client::start(ClientConfig::new(&cluster.namesrv.local_addr().to_string())).unwrap();
    let admin = client.admin();
    let queues: Vec<MessageQueue> = admin.queues(TOPIC).await.unwrap();
    for queue in &queues {
        // What is committed here was handled by somebody, the dead instance or the living one.
        let committed = admin
            .consumer_offset(GROUP, queue)
            .await
            .unwrap()
            .unwrap_or(0);
        for (number, receipt) in &receipts {
            let passed = receipt.queue == queue.queue_id && receipt.offset < committed;
            if passed && !by_a.contains(number) {
                // Said before it was committed; the line may still be on its way here.
                b.wait_for(&format!("{HANDLED}{number} "), Duration::from_secs(2))
                    .unwrap();
            }
        }
    }
    for number in first_after..=160 {
        b.wait_for(&format!("{HANDLED}{number} "), DEADLINE)
            .unwrap();
    }
    let took = killed.elapsed();
    let queues_seen: BTreeSet<_> = receipts
        .range(first_after..)
        .map(|(_, receipt)| receipt.queue)
        .collect();
    assert_eq!(
        queues_seen.len(),
        queues.len(),
        "orders went to every queue after the kill"
    );
    println!(
        "the survivor handled orders of all {} queues {took:?} after the kill",
        queues.len()
    );

    let by_b = handled(&mut b);
    let lost: Vec<_> = receipts
        .keys()
        .filter(|number| !by_a.contains(number) && !by_b.contains(number))
        .collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    client.shutdown().await;
    assert!(b.interrupt(DEADLINE).unwrap().success());
    cluster.broker.shutdown().await.unwrap();
    cluster.namesrv.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_broker_goes_away_the_account_says_what_is_missing() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut instance = cluster.instance(&folder);
    // The first delivery of a failing order: its redelivery, a second later, finds no broker any more.
    instance.wait_for("message not handled", DEADLINE).unwrap();
    cluster.broker.shutdown().await.unwrap();
    let line = instance.wait_for("failing: ", DEADLINE).unwrap();
    assert!(
        line.contains("(missing ") || line.contains("not sent"),
        "{line}"
    );
    cluster.namesrv.shutdown().await;
    drop(instance);
}
