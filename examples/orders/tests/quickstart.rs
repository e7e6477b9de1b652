//! The quickstart as a user meets it: the program is started, watched, asked over HTTP, and stopped.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Ample for a busy machine; what is promised is checked with its own number.
const DEADLINE: Duration = Duration::from_secs(30);

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../application.yaml");

/// A running quickstart in a folder of its own.
struct Program {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    said: Vec<String>,
    folder: tempfile::TempDir,
}

impl Program {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_orders"))
            .arg(format!("--bindery.config={CONFIG}"))
            .arg("--server.port=0")
            .args(arguments)
            .current_dir(folder.path())
            .env_remove("RUST_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Self {
            child,
            out,
            err,
            said: Vec::new(),
            folder,
        }
    }

    /// The next line of standard output.
    fn line(&self) -> String {
        self.out.recv_timeout(DEADLINE).unwrap()
    }

    /// Reads the log until a line holds `text`; the rest of that line.
    fn log_after(&mut self, text: &str) -> String {
        loop {
            let Ok(line) = self.err.recv_timeout(DEADLINE) else {
                panic!("no `{text}` in {:#?}", self.said)
            };
            self.said.push(line.clone());
            if let Some((_, rest)) = line.split_once(text) {
                return rest.to_owned();
            }
        }
    }

    fn web_address(&mut self) -> String {
        let rest = self.log_after("web on http://0.0.0.0:");
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        format!("127.0.0.1:{port}")
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(sent.success());
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join(".bindery/store")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails when it has ended already, as it should have.
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

fn post(address: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_account_is_printed_an_order_is_handled_and_the_store_is_left_clean() {
    let mut program = Program::start(&[]);
    let account: Vec<String> = (0..6).map(|_| program.line()).collect();
    assert_eq!(
        account,
        [
            "normal: sent 30, handled 30, in order yes, retried 0, dead-lettered 0",
            "tagged: sent 30, handled 30, in order yes, retried 0, dead-lettered 0",
            "orderly: sent 30, handled 30, in order yes, retried 0, dead-lettered 0",
            "delayed: sent 5, handled 5, in order yes, retried 0, dead-lettered 0",
            "failing: sent 8, handled 5, in order yes, retried 8, dead-lettered 3",
            "transactional: sent 10, handled 7, in order yes, retried 0, dead-lettered 0, rolled back 3",
        ]
    );

    let address = program.web_address();
    let answer = post(&address, "/orders", r#"{"item":"tea","quantity":2}"#);
    assert!(
        answer.starts_with("HTTP/1.1 202") && answer.contains("msgId"),
        "{answer}"
    );
    program.log_after("order received over HTTP is handled");

    assert!(
        program.store().join("abort").exists(),
        "a running store has its abort file"
    );
    program.signal("INT");
    let status = program.child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(
        !program.store().join("abort").exists(),
        "a stopped store has none"
    );
}

#[test]
fn the_account_is_the_same_on_a_broker_in_memory() {
    let mut program = Program::start(&["--spring.cloud.stream.default-binder=memory"]);
    let account: Vec<String> = (0..6).map(|_| program.line()).collect();
    assert_eq!(
        account,
        [
            "normal: sent 30, handled 30, in order yes, retried 0, dead-lettered 0",
            "tagged: sent 30, handled 30, in order yes, retried 0, dead-lettered 0",
            "orderly: sent 30, handled 30, in order yes, retried 0, dead-lettered 0",
            "delayed: sent 5, handled 5, in order yes, retried 0, dead-lettered 0",
            "failing: sent 8, handled 5, in order yes, retried 8, dead-lettered 3",
            "transactional: sent 10, handled 7, in order yes, retried 0, dead-lettered 0, rolled back 3",
        ]
    );
    let address = program.web_address();
    let answer = post(&address, "/orders", r#"{"item":"tea","quantity":2}"#);
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    program.log_after("order received over HTTP is handled");
    assert!(
        !program.store().exists(),
        "no broker with a store was started"
    );
    program.signal("INT");
    assert!(program.child.wait().unwrap().success());
}

#[test]
fn a_second_run_on_the_same_store_counts_only_its_own_messages() {
    let mut first = Program::start(&[]);
    let account: Vec<String> = (0..6).map(|_| first.line()).collect();
    first.signal("TERM");
    assert!(first.child.wait().unwrap().success());
    let store = format!("--bindery.embedded.store-dir={}", first.store().display());
    let second = Program::start(&[&store]);
    let again: Vec<String> = (0..6).map(|_| second.line()).collect();
    assert_eq!(account, again);
}

#[test]
fn three_mistakes_are_reported_at_once_with_positions_and_exit_code_78() {
    let folder = tempfile::tempdir().unwrap();
    let mistaken = std::fs::read_to_string(CONFIG)
        .unwrap()
        .replace(
            "partition-key-expression: payload",
            "partition-key-expresion: payload",
        )
        .replace(
            "        input-standard:\n          destination",
            "        input-standrad:\n          destination",
        )
        + "\n---\nspring.config.activate.on-profile: big\nspring.cloud.stream.rocketmq.bindings.input-normal.consumer.consume-from-where: CONSUME_FROM_FRIST_OFFSET\n";
    let file = folder.path().join("application.yaml");
    std::fs::write(&file, mistaken).unwrap();
    let output = run_to_end(
        folder.path(),
        &[&format!("--bindery.config={}", file.display())],
    );
    assert_eq!(output.0, Some(78), "{}", output.1);
    for expected in [
        "partition-key-expresion",
        "input-standrad",
        "CONSUME_FROM_FRIST_OFFSET",
        "application.yaml:",
    ] {
        assert!(
            output.1.contains(expected),
            "no `{expected}` in\n{}",
            output.1
        );
    }
    for suggestion in [
        "partition-key-expression",
        "input-standard",
        "CONSUME_FROM_FIRST_OFFSET",
    ] {
        assert!(
            output.1.contains(suggestion),
            "no suggestion `{suggestion}` in\n{}",
            output.1
        );
    }
    assert!(
        !folder.path().join(".bindery").exists(),
        "nothing was started"
    );
}

#[test]
fn a_taken_port_is_told_with_the_key_that_changes_it() {
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        format!("--bindery.config={CONFIG}"),
        format!("--server.port={port}"),
    ];
    let (code, told) = run_to_end(folder.path(), &[&arguments[0], &arguments[1]]);
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains(&port.to_string()) && told.contains("server.port"),
        "{told}"
    );
    assert!(
        !folder.path().join(".bindery").exists(),
        "nothing was started"
    );
}

fn run_to_end(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_orders"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
