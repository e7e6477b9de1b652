//! Delayed messages come in their time: many others wait, the broker is restarted, and killed.
//!
//! ```text
//! 20,000 in all levels ─▶ probes ─▶ SIGINT, up ─▶ probes ─▶ SIGKILL, up ─▶ probes ─▶ each within a second of its time
//! ```
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bindery_tests::{Process, Wire};
use tokio::task::JoinSet;

use crate::up;

/// The broker's table, in seconds by level from 1; the last three are longer than the test.
const LEVELS: [i64; 10] = [1, 2, 3, 5, 8, 13, 20, 600, 1800, 3600];
/// Levels that come due in the test.
const SHORT: i32 = 7;
const PENDING: i32 = 20_000;
const QUEUES: i32 = 4;
/// Milliseconds after its time in which a message must be delivered.
const TOLERANCE: i64 = 1000;
/// Ample for a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

const PROBES: &str = "Probes";
const CROWD: &str = "Crowd";

fn millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A message and when it may come, by the times before it was sent and after it was acknowledged.
#[derive(Debug)]
struct Probe {
    body: String,
    earliest: i64,
    latest: i64,
}

/// A time in which no broker was there.
#[derive(Debug, Clone, Copy)]
struct Gap {
    begin: i64,
    end: i64,
}

/// Fills the levels: nine of ten wait longer than the test, the others come due in it.
async fn crowd(wire: &Wire) {
    let mut senders = JoinSet::new();
    for sender in 0..32 {
        let wire = wire.clone();
        senders.spawn(async move {
            for number in (sender..PENDING).step_by(32) {
                let level = if number % 10 == 0 {
                    4 + number / 10 % 4
                } else {
                    8 + number % 3
                };
                wire.send_later(CROWD, number % QUEUES, &number.to_string(), level)
                    .await
                    .unwrap();
            }
        });
    }
    while let Some(sender) = senders.join_next().await {
        sender.unwrap();
    }
}

/// Ten messages for each of the short levels.
async fn probe(wire: &Wire, round: &str, probes: &mut Vec<Probe>) {
    for number in 0..10 {
        for (level, seconds) in (1..=SHORT).zip(LEVELS) {
            let body = format!("{round} level {level} number {number}");
            let earliest = millis() + seconds * 1000;
            wire.send_later(PROBES, number % QUEUES, &body, level)
                .await
                .unwrap();
            let latest = millis() + seconds * 1000;
            probes.push(Probe {
                body,
                earliest,
                latest,
            });
        }
    }
}

/// When each body was delivered first, by the broker's clock, and how many came again.
async fn delivered(wire: &Wire, topic: &str) -> (HashMap<String, i64>, usize) {
    let (mut first, mut again) = (HashMap::new(), 0);
    for queue in 0..QUEUES {
        for message in wire.read_all(topic, queue).await.unwrap() {
            let body = String::from_utf8(message.body.to_vec()).unwrap();
            let at = message.store_timestamp;
            if first.contains_key(&body) {
                again += 1;
            }
            first
                .entry(body)
                .and_modify(|earlier: &mut i64| *earlier = at.min(*earlier))
                .or_insert(at);
        }
    }
    (first, again)
}

/// Waits until so many different messages are there.
async fn all_delivered(wire: &Wire, topic: &str, count: usize) -> (HashMap<String, i64>, usize) {
    let come = async {
        loop {
            let (first, again) = delivered(wire, topic).await;
            if first.len() >= count {
                return (first, again);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let in_time = tokio::time::timeout(DEADLINE, come).await;
    in_time.unwrap_or_else(|_| panic!("not {count} messages of {topic} within {DEADLINE:?}"))
}

/// How late a message was: after its time, or after the broker came back if it was away then.
fn lateness(probe: &Probe, at: i64, gaps: &[Gap]) -> i64 {
    assert!(at >= probe.earliest, "too early: {probe:?} at {at}");
    let away = gaps
        .iter()
        .find(|gap| probe.latest + TOLERANCE >= gap.begin && probe.earliest <= gap.end);
    at - away.map_or(probe.latest, |gap| gap.end.max(probe.latest))
}

#[tokio::test(flavor = "multi_thread")]
async fn delayed_messages_come_within_a_second_of_their_time_over_a_restart_and_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let (store, conf) = (dir.path().join("store"), dir.path().join("broker.conf"));
    let table: Vec<String> = LEVELS.iter().map(|seconds| format!("{seconds}s")).collect();
    std::fs::write(&conf, format!("messageDelayLevel={}\n", table.join(" "))).unwrap();
    let mut probes = Vec::new();
    let mut gaps = Vec::new();
    let mut running: (Process, String) = up(&store, &conf);
    let mut wire = Arc::new(Wire::connect(&running.1).await.unwrap());
    for topic in [PROBES, CROWD] {
        wire.create_topic(topic, QUEUES).await.unwrap();
    }
    crowd(&wire).await;
    probe(&wire, "before", &mut probes).await;
    for end in ["interrupted", "killed"] {
        let begin = millis();
        if end == "killed" {
            running.0.kill().unwrap();
        } else {
            assert!(running.0.interrupt(DEADLINE).unwrap().success());
        }
        running = up(&store, &conf);
        gaps.push(Gap {
            begin,
            end: millis(),
        });
        wire = Arc::new(Wire::connect(&running.1).await.unwrap());
        probe(&wire, end, &mut probes).await;
    }
    let (first, again) = all_delivered(&wire, PROBES, probes.len()).await;
    let late: Vec<i64> = probes
        .iter()
        .map(|probe| lateness(probe, first[&probe.body], &gaps))
        .collect();
    let (worst, latest) = probes
        .iter()
        .zip(&late)
        .max_by_key(|(_, late)| **late)
        .unwrap();
    let due = usize::try_from(PENDING / 10).unwrap();
    let (crowd_first, crowd_again) = all_delivered(&wire, CROWD, due).await;
    println!(
        "{} probes among {PENDING} pending, away {:?} ms: latest {latest} ms ({}), {again} again; {} of the others came due, {crowd_again} again",
        probes.len(),
        gaps.iter()
            .map(|gap| gap.end - gap.begin)
            .collect::<Vec<_>>(),
        worst.body,
        crowd_first.len(),
    );
    assert_eq!(crowd_first.len(), due, "no other came early");
    assert!(*latest < TOLERANCE, "{worst:?} came {latest} ms late");
    running.0.kill().unwrap();
}
