//! Each part as its user meets it: started with its profile against a broker, asked over HTTP, and read.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use bindery_broker::{Broker, BrokerConfig, NameServer, NameServerConfig};

/// Ample for a busy machine.
const DEADLINE: Duration = Duration::from_secs(40);

/// How many each topic has.
const QUEUES: usize = 4;

/// A name server and a broker, in this process.
struct Cluster {
    name_server: NameServer,
    broker: Broker,
    _store: tempfile::TempDir,
}

impl Cluster {
    async fn start() -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let name_server = NameServer::start(NameServerConfig {
            listen: any_port,
            ..NameServerConfig::default()
        })
        .await
        .unwrap();
        let store = tempfile::tempdir().unwrap();
        let mut config = BrokerConfig {
            listen: any_port,
            namesrv_addr: name_server.local_addr().to_string(),
            store_path_root_dir: store.path().to_owned(),
            ..BrokerConfig::default()
        };
        // An undecided transaction is asked about after a second instead of half a minute.
        for key in ["transactionTimeOut", "transactionCheckInterval"] {
            config.set(key, "1000").unwrap();
        }
        let broker = Broker::start(config).await.unwrap();
        Self {
            name_server,
            broker,
            _store: store,
        }
    }

    async fn stop(self) {
        self.broker.shutdown().await.unwrap();
        self.name_server.shutdown().await;
    }
}

/// A running part.
struct Program {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Program {
    fn start(cluster: &Cluster, part: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_original"))
            .arg(format!("--spring.profiles.active={part}"))
            .arg("--server.port=0")
            .arg(format!("--bindery.topics.test-topic.queues={QUEUES}"))
            .arg(format!("--bindery.topics.test-topic3.queues={QUEUES}"))
            .arg(format!("--bindery.topics.TransactionTopic.queues={QUEUES}"))
            .args(arguments)
            .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
            .env(
                "SPRING_CLOUD_STREAM_ROCKETMQ_BINDER_NAME_SERVER",
                cluster.name_server.local_addr().to_string(),
            )
            .env_remove("RUST_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// Waits until it is up and its input knows where it begins in each queue of `topic`: a new group begins with what is
    /// sent after that. Gives back where it listens.
    fn ready(&self, topic: &str) -> String {
        let begins = format!("queue={topic}@");
        let (mut said, mut begun, mut address) = (Vec::new(), 0, None);
        while let Ok(line) = self.err.recv_timeout(DEADLINE) {
            if let Some((_, port)) = line.split_once("web on http://0.0.0.0:") {
                let port: String = port.chars().take_while(char::is_ascii_digit).collect();
                address = Some(format!("127.0.0.1:{port}"));
            }
            begun += usize::from(line.contains("consumption begins") && line.contains(&begins));
            said.push(line);
            if let (Some(address), QUEUES..) = (&address, begun) {
                return address.clone();
            }
        }
        panic!("it does not start: {said:#?}")
    }

    /// The next line of its output that begins with `start`; the rest of that line.
    fn after(&self, start: &str) -> String {
        let mut said = Vec::new();
        while let Ok(line) = self.out.recv_timeout(DEADLINE) {
            if let Some(rest) = line.trim_start().strip_prefix(start) {
                return rest.to_owned();
            }
            said.push(line);
        }
        panic!("no `{start}` in {said:#?}")
    }

    /// Ends it in order, so that its group's positions are saved.
    fn stop(mut self) {
        let asked = Command::new("kill")
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(asked.success());
        assert!(self.child.wait().unwrap().success());
    }

    /// Waits until each of these lines was seen, in any order.
    fn expect(&self, wanted: &[&str]) {
        let mut missing = wanted.to_vec();
        while !missing.is_empty() {
            let Ok(line) = self.out.recv_timeout(DEADLINE) else {
                panic!("missing: {missing:?}")
            };
            missing.retain(|wanted| *wanted != line.trim_start());
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails when it has ended already, as it should not have.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn lines(source: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Asks and expects 200.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_a_text_arrives_with_its_tag_and_its_key() {
    let cluster = Cluster::start().await;
    let program = Program::start(&cluster, "first", &[]);
    let address = program.ready("test-topic");
    get(&address, "/produce");
    assert_eq!(program.after("received "), "Hello RocketMQ!");
    assert_eq!(program.after("TAGS: "), "test");
    get(&address, "/produce?tag=test02&key=messageKey");
    assert_eq!(program.after("received "), "Hello RocketMQ!");
    program.expect(&["TAGS: test02", "KEYS: messageKey"]);
    program.stop();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ordered_three_messages_about_one_order_take_one_queue() {
    let cluster = Cluster::start().await;
    for variant in [
        &[][..],
        &[
            "--spring.cloud.stream.bindings.output-order.producer.partition-key-expression=headers['partitionKey']",
        ],
    ] {
        let program = Program::start(&cluster, "ordered", variant);
        get(&program.ready("test-topic"), "/produce");
        let mut queues = Vec::new();
        for step in ["created", "paid", "shipped"] {
            let worker = program.after("worker ");
            queues.push(worker.split_once("queue ").unwrap().1.to_owned());
            let payload = program.after("received ");
            assert!(payload.contains(step), "{payload}");
        }
        assert!(queues.iter().all(|queue| *queue == queues[0]), "{queues:?}");
        program.stop();
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delay_the_order_is_handled_five_seconds_later_and_backtracking_handles_it_again() {
    let cluster = Cluster::start().await;
    for sync in ["true", "false"] {
        let sync =
            format!("--spring.cloud.stream.rocketmq.bindings.output-order.producer.sync={sync}");
        let program = Program::start(&cluster, "delay", &[&sync]);
        let address = program.ready("test-topic3");
        let sent = Instant::now();
        get(&address, "/produce");
        assert_eq!(program.after("received "), r#"{"id":1,"desc":"test"}"#);
        let waited = sent.elapsed();
        // The second level is five seconds; a busy machine may take longer, none may take less.
        assert!(waited >= Duration::from_secs(5), "{waited:?}");
        assert!(waited < Duration::from_secs(15), "{waited:?}");
        assert_eq!(program.after("TAGS: "), "test03");
        program.stop();
    }
    let program = Program::start(&cluster, "backtracking", &[]);
    let address = program.ready("test-topic3");
    for _ in 0..2 {
        assert_eq!(program.after("received "), r#"{"id":1,"desc":"test"}"#);
    }
    // Its routes are below the context path of its file.
    get(&address, "/mq-example/produce");
    assert_eq!(program.after("received "), r#"{"id":1,"desc":"test"}"#);
    program.stop();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_what_is_committed_is_delivered_what_is_unknown_is_asked_about() {
    let cluster = Cluster::start().await;
    let program = Program::start(&cluster, "transaction", &[]);
    let address = program.ready("TransactionTopic");
    for (test, state) in [("1", "Unknown"), ("2", "Rollback"), ("3", "Commit")] {
        get(&address, &format!("/send_transaction?test={test}"));
        assert_eq!(
            program.after("executed "),
            format!("{state}, args binder"),
            "{test}"
        );
    }
    program.expect(&[
        "received transaction 3",
        "checked Commit",
        "received transaction 1",
    ]);
    // What comes now was sent later than what was rolled back, which would have come before it.
    get(&address, "/send_transaction?test=3");
    assert_eq!(program.after("received "), "transaction 3");
    program.stop();
    cluster.stop().await;
}
