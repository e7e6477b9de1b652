//! The program is killed at every step of a transaction and started again: what is booked and what was delivered agree.
//!
//! ```text
//! test ─ PUT /orders/N ─▶ program, parked at a step ─ SIGKILL ─▶ (program, parked at the question ─ SIGKILL ─▶) program
//!   └─ judges: orders table = deliveries table = topic ◀────────────── the same database, the same broker ◀──────┘
//! ```
//!
//! `ROUNDS` says how often each step is done; 2 unless it is set. With `BINDERY_NAMESRV` and `BINDERY_BROKER` (both `host:port`) it
//! is done at that broker instead of one of our own; let it ask about open transactions every five seconds
//! (`transactionCheckInterval=5000`, `transactionCheckMax=1000`).
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bindery_broker::{Broker, BrokerConfig, NameServer, NameServerConfig};
use bindery_tests::{Process, Wire};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

/// Ample for a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// As `books.rs` says: a transaction without a row that is younger may be running.
const PATIENCE: Duration = Duration::from_secs(2);
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/application.yaml");
/// As `application.yaml` says.
const QUEUES: i32 = 4;

/// A name server and a broker, a topic and groups of its own there, and the folder with the program's database.
struct Bench {
    /// On free ports; nothing when the test runs on somebody else's.
    ours: Option<(NameServer, Broker)>,
    name_server: String,
    broker: String,
    run: String,
    folder: tempfile::TempDir,
    /// Orders placed so far.
    placed: i64,
}

/// A transaction whose process was killed.
struct Open {
    order: i64,
    transaction: String,
}

impl Bench {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let theirs = ["BINDERY_NAMESRV", "BINDERY_BROKER"].map(|name| std::env::var(name).ok());
        let (ours, name_server, broker) = match theirs {
            [Some(name_server), Some(broker)] => (None, name_server, broker),
            [None, None] => {
                let (namesrv, broker) = start_ours(&folder.path().join("broker")).await;
                let addresses = (
                    namesrv.local_addr().to_string(),
                    broker.local_addr().to_string(),
                );
                (Some((namesrv, broker)), addresses.0, addresses.1)
            }
            _ => panic!("set both BINDERY_NAMESRV and BINDERY_BROKER, or neither"),
        };
        Self {
            ours,
            name_server,
            broker,
            run: format!("{:08x}", rand::random::<u32>()),
            folder,
            placed: 0,
        }
    }

    fn topic(&self) -> String {
        format!("orders-booked-{}", self.run)
    }

    /// The topic and the groups that only this run has.
    fn names(&self) -> [String; 5] {
        let (topic, run) = (self.topic(), &self.run);
        let stream = "--spring.cloud.stream";
        [
            format!("{stream}.bindings.output-booked.destination={topic}"),
            format!("{stream}.bindings.input-booked.destination={topic}"),
            format!("{stream}.bindings.input-booked.group=orders-delivered-{run}"),
            format!("{stream}.rocketmq.bindings.output-booked.producer.group=orders-books-{run}"),
            format!("--bindery.topics.{topic}.queues={QUEUES}"),
        ]
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("orders.db")
    }

    fn program(&self, park: Option<&str>) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_transaction"));
        command
            .arg(format!("--bindery.config={CONFIG}"))
            .args(self.names())
            .env("BINDERY_EMBEDDED_ENABLED", "false")
            .env("SERVER_PORT", "0")
            .env(
                "SPRING_CLOUD_STREAM_ROCKETMQ_BINDER_NAME_SERVER",
                &self.name_server,
            )
            .env("ORDERS_DB", self.database())
            .env_remove("RUST_LOG")
            .env_remove("TRANSACTION_PARK")
            .env_remove("BINDERY_BROKER")
            .current_dir(self.folder.path());
        if let Some(step) = park {
            command.env("TRANSACTION_PARK", step);
        }
        Process::start(&mut command).unwrap()
    }

    /// Places an order with a program that stops at `step`, and kills it there.
    fn killed_at(&mut self, step: &str) -> Open {
        let mut program = self.program(Some(step));
        let address = web_address(&mut program);
        self.placed += 1;
        // Kept open until the kill: a program whose caller is gone would drop the transaction by itself.
        let _unanswered = place(&address, self.placed);
        let line = program
            .wait_for(&format!("parked at {step}: "), DEADLINE)
            .unwrap();
        program.kill().unwrap();
        Open {
            order: self.placed,
            transaction: line.rsplit_once(": ").unwrap().1.to_owned(),
        }
    }

    /// Kills a program when the broker has asked it and it knows its answer.
    fn killed_answering(&self, open: &Open) {
        let mut program = self.program(Some("check"));
        program
            .wait_for(&format!("parked at check: {}", open.transaction), DEADLINE)
            .unwrap();
        program.kill().unwrap();
    }

    /// Runs an undisturbed program until the transaction ended as it must and, if it was committed, its order was delivered.
    async fn settled(&self, open: &Open, booked: bool) {
        let mut program = self.program(None);
        program
            .wait_for(
                &format!(
                    "the broker is answered transaction=\"{}\"",
                    open.transaction
                ),
                DEADLINE,
            )
            .unwrap();
        if booked {
            self.delivered(open.order).await;
        }
        let pool = self.pool().await;
        let state: String = sqlx::query_scalar("SELECT state FROM transactions WHERE id = ?")
            .bind(&open.transaction)
            .fetch_one(&pool)
            .await
            .unwrap();
        pool.close().await;
        assert_eq!(state, if booked { "COMMIT" } else { "ROLLBACK" });
        program.kill().unwrap();
    }

    async fn delivered(&self, order: i64) {
        let pool = self.pool().await;
        let deadline = Instant::now() + DEADLINE;
        let times = "SELECT count(*) FROM deliveries WHERE order_id = ?";
        while sqlx::query_scalar::<_, i64>(times)
            .bind(order)
            .fetch_one(&pool)
            .await
            .unwrap()
            == 0
        {
            assert!(Instant::now() < deadline, "order {order} is not delivered");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        pool.close().await;
    }

    async fn pool(&self) -> SqlitePool {
        let options = SqliteConnectOptions::new().filename(self.database());
        SqlitePool::connect_with(options).await.unwrap()
    }

    async fn ids(&self, query: &str) -> Vec<i64> {
        let pool = self.pool().await;
        let ids = sqlx::query_scalar(query).fetch_all(&pool).await.unwrap();
        pool.close().await;
        ids
    }

    /// The orders in the topic, whoever read them.
    async fn told(&self) -> Vec<i64> {
        let wire = Wire::connect(&self.broker).await.unwrap();
        let mut ids = Vec::new();
        for queue in 0..QUEUES {
            for message in wire.read_all(&self.topic(), queue).await.unwrap() {
                let order: serde_json::Value = serde_json::from_slice(&message.body).unwrap();
                ids.push(order["id"].as_i64().unwrap());
            }
        }
        ids.sort_unstable();
        ids
    }

    /// One order more, undisturbed and stopped in order; then everything must agree.
    async fn judged(mut self, mut booked: Vec<i64>) {
        let mut program = self.program(None);
        let address = web_address(&mut program);
        self.placed += 1;
        let mut answer = String::new();
        place(&address, self.placed)
            .read_to_string(&mut answer)
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        self.delivered(self.placed).await;
        assert!(program.interrupt(DEADLINE).unwrap().success());
        booked.push(self.placed);

        let orders = self.ids("SELECT id FROM orders ORDER BY id").await;
        let delivered = self
            .ids("SELECT order_id FROM deliveries ORDER BY order_id")
            .await;
        assert_eq!(orders, booked, "the orders that had to be booked");
        assert_eq!(delivered, orders, "delivered, and booked");
        assert_eq!(self.told().await, orders, "in the topic, and booked");
        if let Some((namesrv, broker)) = self.ours {
            broker.shutdown().await.unwrap();
            namesrv.shutdown().await;
        }
    }
}

async fn start_ours(store: &Path) -> (NameServer, Broker) {
    let namesrv = NameServer::start(NameServerConfig::default())
        .await
        .unwrap();
    let config = BrokerConfig {
        namesrv_addr: namesrv.local_addr().to_string(),
        store_path_root_dir: store.to_owned(),
        transaction_time_out: 300,
        transaction_check_interval: 300,
        // However long it takes until somebody is there to be asked.
        transaction_check_max: 100_000,
        ..BrokerConfig::default()
    };
    let broker = Broker::start(config).await.unwrap();
    (namesrv, broker)
}

fn web_address(program: &mut Process) -> String {
    let line = program.wait_for("web on http://", DEADLINE).unwrap();
    let rest = line.split_once("web on http://0.0.0.0:").unwrap().1;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    format!("127.0.0.1:{port}")
}

fn place(address: &str, order: i64) -> TcpStream {
    let body = r#"{"item":"tea","quantity":1}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "PUT /orders/{order} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

fn rounds() -> u32 {
    std::env::var("ROUNDS").map_or(2, |rounds| rounds.parse().unwrap())
}

/// Kills at `step`, and again at the question if `answering`; `booked` says how such a transaction must end.
async fn killed_again_and_again(step: &str, answering: bool, booked: bool) {
    let mut bench = Bench::start().await;
    let mut expected = Vec::new();
    for round in 1..=rounds() {
        let began = Instant::now();
        let open = bench.killed_at(step);
        if answering {
            bench.killed_answering(&open);
        }
        bench.settled(&open, booked).await;
        if booked {
            expected.push(open.order);
        } else {
            assert!(began.elapsed() >= PATIENCE, "given up too early");
        }
        println!(
            "{step}, killed while answering: {answering}: round {round} settled after {:?}",
            began.elapsed()
        );
    }
    bench.judged(expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_half_message_is_stored_nothing_is_booked_or_delivered() {
    killed_again_and_again("half-sent", false, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_inside_the_local_transaction_nothing_is_booked_or_delivered() {
    killed_again_and_again("in-transaction", false, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_commit_and_verdict_the_order_is_booked_and_delivered() {
    killed_again_and_again("committed", false, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_answers_for_a_commit_the_order_is_booked_and_delivered() {
    killed_again_and_again("committed", true, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_answers_for_a_lost_transaction_nothing_is_booked_or_delivered() {
    killed_again_and_again("in-transaction", true, false).await;
}
