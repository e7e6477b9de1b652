//! Foreign bytes on the sockets of a started broker and a started name server (invariant I9).
//!
//! ```text
//! recorded frame with some bytes changed ─▶ socket ─▶ an answer or a closed connection, in time; the server goes on
//! ```
//! A short round on every test run; `FUZZ_SECONDS=600 cargo test -p bindery-broker --test wire fuzz` runs longer.
use std::{
    fmt::Write as _,
    net::SocketAddr,
    sync::{
        Mutex, Once,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bindery_broker::{NameServer, NameServerConfig};
use bindery_protocol::{codes::RequestCode, frame::Request};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Fixture, Peer};

/// A server has this long to answer or to close.
const DEADLINE: Duration = Duration::from_secs(30);
/// Frames of a short round.
const SHORT: u32 = 300;
/// Memory of the whole test process in a long round, in KiB.
const MOST_MEMORY: u64 = 2 * 1024 * 1024;

static PANICS: AtomicU64 = AtomicU64::new(0);
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Counts panics in the code under test: a connection that panicked only looks closed from outside.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            if ["broker/src", "remoting/src", "protocol/src"]
                .iter()
                .any(|folder| place.starts_with(folder))
            {
                PANICS.fetch_add(1, Ordering::SeqCst);
                *LAST_PANIC.lock().unwrap() = info.to_string();
            }
            before(info);
        }));
    });
}

fn recorded() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/frames");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Changes some bytes; three in four times the length word is right afterwards, so that the inside is reached.
fn changed(frame: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    for _ in 0..random.random_range(0..5) {
        if bytes.is_empty() {
            break;
        }
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..5) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes.truncate(at),
            2 => {
                let number = *[i32::MIN, i32::MAX, -1, 0, 0xFFFF].choose(random).unwrap();
                for (byte, new) in bytes[at..].iter_mut().zip(number.to_be_bytes()) {
                    *byte = new;
                }
            }
            3 => {
                let digits: &[u8] = b"9223372036854775808";
                bytes.splice(at..at, digits.iter().copied());
            }
            _ => {
                let part = bytes[at..].to_vec();
                bytes.extend(part.into_iter().take(2000));
            }
        }
    }
    if let Some(len) = bytes.len().checked_sub(4)
        && random.random_ratio(3, 4)
    {
        bytes[..4].copy_from_slice(&u32::try_from(len).unwrap().to_be_bytes());
    }
    bytes
}

/// Sends bytes and nothing more, and reads until the server has closed.
async fn feed(server: SocketAddr, bytes: &[u8]) {
    let exchange = async {
        let mut stream = TcpStream::connect(server).await.unwrap();
        // A server that closed early is no failure: what it has not read is an error here.
        if stream.write_all(bytes).await.is_ok() && stream.shutdown().await.is_ok() {
            let mut answer = [0; 4096];
            while stream.read(&mut answer).await.is_ok_and(|count| count > 0) {}
        }
    };
    let shown = || {
        bytes.iter().fold(String::new(), |mut text, byte| {
            // Writing to a text does not fail.
            _ = write!(text, "{byte:02x}");
            text
        })
    };
    let over = tokio::time::timeout(DEADLINE, exchange).await;
    assert!(over.is_ok(), "neither answered nor closed: {}", shown());
    assert_eq!(
        PANICS.load(Ordering::SeqCst),
        0,
        "{} after {}",
        LAST_PANIC.lock().unwrap(),
        shown()
    );
}

fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// Feeds changed frames, some at a time, for the time or the number of the round.
async fn round(server: SocketAddr) {
    watch_panics();
    let seconds: u64 = std::env::var("FUZZ_SECONDS").map_or(0, |text| text.parse().unwrap());
    let seed = rand::random();
    println!("seed {seed}");
    let (frames, mut random) = (recorded(), StdRng::seed_from_u64(seed));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut sent = 0;
    while sent < SHORT || Instant::now() < end {
        let batch: Vec<Vec<u8>> = (0..30)
            .map(|_| changed(frames.choose(&mut random).unwrap(), &mut random))
            .collect();
        let feeding = batch
            .into_iter()
            .map(|bytes| tokio::spawn(async move { feed(server, &bytes).await }));
        for fed in feeding.collect::<Vec<_>>() {
            fed.await.unwrap();
        }
        sent += 30;
    }
    println!("{sent} frames");
    if seconds > 0 {
        assert!(memory_kib() < MOST_MEMORY, "{} KiB", memory_kib());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fuzz_a_broker_on_its_socket() {
    let fixture = Fixture::start().await;
    round(fixture.broker.local_addr()).await;
    let peer = fixture.peer().await;
    let (offset, _) = peer.send("AfterFuzz", 0, "still there", "").await;
    assert_eq!(
        peer.pull("AfterFuzz", 0, offset).await.bodies(),
        ["still there"]
    );
    fixture.broker.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn fuzz_a_name_server_on_its_socket() {
    let server = NameServer::start(NameServerConfig::default())
        .await
        .unwrap();
    round(server.local_addr()).await;
    let peer = Peer::connect(server.local_addr()).await;
    peer.ok(Request::new(RequestCode::GET_BROKER_CLUSTER_INFO))
        .await;
    server.shutdown().await;
}
