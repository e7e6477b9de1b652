//! A store folder goes back and forth between Apache RocketMQ 5.3.3 and this broker, over clean stops and kills; after every
//! move all that was ever stored must be served, byte for byte, with its offsets, keys and ids (invariant I4).
//!
//! ```text
//! golden archive ─▶ ours appends ─▶ Apache serves, appends ─▶ ours serves
//! Apache writes every kind, is killed ─▶ ours serves, decides, appends ─▶ Apache serves, appends ─▶ ours, killed ─▶ Apache
//! ```
//! Needs Apache's broker: `BINDERY_PEER` names the folder with `peer.sh` (see `.ci/run`). Without it nothing is judged, and
//! the program says so. With `broker` as first argument it is our broker itself, so that it can be killed.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod apache;
mod content;
mod ours;
mod speaker;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use content::Seen;
use speaker::Speaker;

/// File sizes of both brokers: small, so that a few messages fill several files. Those of the golden stores.
pub(crate) const SETTINGS: [(&str, &str); 12] = [
    ("brokerClusterName", "GoldenCluster"),
    ("brokerName", "golden-a"),
    ("mappedFileSizeCommitLog", "65536"),
    ("mappedFileSizeConsumeQueue", "400"),
    ("mapperFileSizeBatchConsumeQueue", "920"),
    ("mappedFileSizeTimerLog", "4096"),
    ("maxHashSlotNum", "64"),
    ("maxIndexNum", "100"),
    ("maxMessageSize", "60000"),
    ("transactionTimeOut", "3600000"),
    ("transactionCheckInterval", "3600000"),
    ("fileReservedTime", "10000"),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("broker") {
        return ours::run(&arguments.collect::<Vec<_>>());
    }
    let Some(peer) = std::env::var_os("BINDERY_PEER") else {
        println!("exchange: not judged, BINDERY_PEER does not name the folder of peer.sh");
        return ExitCode::SUCCESS;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let peer = PathBuf::from(peer);
    runtime.block_on(async {
        golden(&peer).await;
        every_kind(&peer).await;
    });
    println!("exchange: all passed");
    ExitCode::SUCCESS
}

/// A store that Apache's broker left in order.
async fn golden(peer: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let archive = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/store/clean.tar.zst"
    );
    // Fresh dates: nothing of it has expired, whenever this runs.
    let unpacked = Command::new("tar")
        .args(["--zstd", "-xmf", archive, "-C"])
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(unpacked.success());
    let store = folder.path().join("clean");
    let switches = [("enableLmq", "false"), ("enableMultiDispatch", "false")];

    let ours = ours::start(&store, &switches);
    let speaker = Speaker::connect(ours.address()).await;
    let mut seen = Seen::of(
        &speaker,
        &[
            "GoldNormal",
            "GoldOrder",
            "GoldBig",
            "GoldBatch",
            "GoldInner",
        ],
    )
    .await;
    assert_eq!(seen.messages("GoldNormal", 0), 15, "as recorded");
    assert_eq!(speaker.committed("GoldGroupTwo", "GoldOrder", 0).await, 11);
    for n in 0..150 {
        let body = format!("ours {n} {}", "x".repeat(n * 17 % 900));
        let properties = format!("KEYS\u{1}ours-{n}\u{2}TAGS\u{1}t{}\u{2}", n % 3);
        speaker.send("GoldNormal", 0, &body, &properties).await;
    }
    speaker.inner_batch("GoldInner", 0, 3).await;
    speaker.commit("GoldGroup", "GoldNormal", 0, 15).await;
    seen.grown(&speaker).await;
    ours.stop();
    println!("exchange: our broker went on with the golden store");

    let apache = apache::start(peer, folder.path(), &store, &switches);
    let speaker = Speaker::connect(apache.address()).await;
    seen.grown(&speaker).await;
    seen.keys_and_ids(&speaker).await;
    assert_eq!(speaker.committed("GoldGroup", "GoldNormal", 0).await, 15);
    assert_eq!(speaker.committed("GoldGroupTwo", "GoldOrder", 0).await, 11);
    speaker
        .send("GoldNormal", 0, "apache's again", "KEYS\u{1}again\u{2}")
        .await;
    speaker.inner_batch("GoldInner", 0, 2).await;
    seen.grown(&speaker).await;
    apache.stop();
    println!("exchange: Apache's broker served what ours left, old and new, and went on");

    let ours = ours::start(&store, &switches);
    let speaker = Speaker::connect(ours.address()).await;
    seen.grown(&speaker).await;
    seen.keys_and_ids(&speaker).await;
    assert_eq!(speaker.send("GoldNormal", 0, "last", "").await.offset, 166);
    ours.stop();
    println!("exchange: and ours served what Apache's left");
}

/// A store with every kind of message, whose brokers are killed.
async fn every_kind(peer: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let switches = [("enableLmq", "true"), ("enableMultiDispatch", "true")];
    let topics = [
        "Normal",
        "Batch",
        "Inner",
        "Tx",
        "%LMQ%one",
        "%RETRY%ExchangeGroup",
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
    ];
    let apache = apache::start(peer, folder.path(), &store, &switches);
    let speaker = Speaker::connect(apache.address()).await;
    speaker.create_topic("Normal", "").await;
    speaker.create_topic("Batch", "").await;
    speaker.create_topic("Tx", "").await;
    speaker.create_topic("Inner", "+queue.type=BatchCQ").await;
    write_every_kind(&speaker, "apache").await;
    let first = speaker
        .send("Normal", 0, "retried", "UNIQ_KEY\u{1}RETRIED\u{2}")
        .await;
    speaker.send_back("ExchangeGroup", &first).await;
    let undecided = speaker.half("Tx", "half of Apache's broker", "HALF1").await;
    let forgotten = speaker.half("Tx", "rolled back by ours", "HALF2").await;
    speaker
        .send("Normal", 1, "in two hours", "DELAY\u{1}18\u{2}")
        .await;
    speaker.commit("ExchangeGroup", "Normal", 1, 7).await;
    let mut seen = Seen::of(&speaker, &topics).await;
    // The file of the offsets is written every 5 s, and that is what this waits for.
    apache.offsets_written(&store, "Normal@ExchangeGroup").await;
    apache.kill();
    println!("exchange: Apache's broker wrote every kind of message and was killed");

    let ours = ours::start(&store, &switches);
    let speaker = Speaker::connect(ours.address()).await;
    seen.grown(&speaker).await;
    seen.keys_and_ids(&speaker).await;
    assert_eq!(speaker.committed("ExchangeGroup", "Normal", 1).await, 7);
    speaker.end_transaction("Tx", &undecided, "HALF1", 8).await;
    speaker.end_transaction("Tx", &forgotten, "HALF2", 12).await;
    write_every_kind(&speaker, "ours").await;
    seen.grown(&speaker).await;
    assert_eq!(seen.messages("Tx", 0), 1, "committed here, half there");
    ours.stop();
    println!("exchange: ours served it, decided the open transactions and went on");

    let apache = apache::start(peer, folder.path(), &store, &switches);
    let speaker = Speaker::connect(apache.address()).await;
    seen.grown(&speaker).await;
    seen.keys_and_ids(&speaker).await;
    write_every_kind(&speaker, "again").await;
    seen.grown(&speaker).await;
    apache.stop();
    println!("exchange: Apache's broker served what ours left");

    let ours = ours::start(&store, &switches);
    let speaker = Speaker::connect(ours.address()).await;
    seen.grown(&speaker).await;
    write_every_kind(&speaker, "killed").await;
    seen.grown(&speaker).await;
    seen.keys_and_ids(&speaker).await;
    ours.kill();
    println!("exchange: ours went on and was killed");

    let apache = apache::start(peer, folder.path(), &store, &switches);
    let speaker = Speaker::connect(apache.address()).await;
    seen.grown(&speaker).await;
    seen.keys_and_ids(&speaker).await;
    let next = seen.messages("Normal", 0);
    assert_eq!(speaker.send("Normal", 0, "the last", "").await.offset, next);
    apache.stop();
    println!("exchange: Apache's broker served what the kill left");
}

/// Messages of every kind, enough of them to fill some files.
async fn write_every_kind(speaker: &Speaker, who: &str) {
    for n in 0..60 {
        let body = format!("{who} {n} {}", "y".repeat(n * 37 % 2500));
        let queue = i32::try_from(n % 2).unwrap();
        let properties = format!(
            "KEYS\u{1}{who}-{n} all\u{2}TAGS\u{1}t{}\u{2}UNIQ_KEY\u{1}{who}ID{n}\u{2}",
            n % 3
        );
        speaker.send("Normal", queue, &body, &properties).await;
    }
    speaker
        .batch("Batch", 0, 25, &format!("UNIQ_KEY\u{1}{who}BATCH\u{2}"))
        .await;
    for count in 1..12 {
        speaker.inner_batch("Inner", 0, count).await;
    }
    for n in 0..30 {
        let names = if n % 2 == 0 {
            "%LMQ%one"
        } else {
            "%LMQ%one,%LMQ%two"
        };
        let properties =
            format!("INNER_MULTI_DISPATCH\u{1}{names}\u{2}UNIQ_KEY\u{1}{who}LMQ{n}\u{2}");
        speaker.send("Normal", 0, "light", &properties).await;
    }
    speaker
        .send("Normal", 1, "delayed", "DELAY\u{1}1\u{2}")
        .await;
}
