//! Foreign bytes at every reader of this crate: random ones, and recorded frames with some bytes changed.
//!
//! ```text
//! recorded frame ─▶ bytes flipped, cut, doubled, replaced by extreme numbers ─▶ Frame::decode ─▶ headers, bodies, records …
//! ```
//! What is looked for are panics, overflows of the stack and endless loops; results are checked by the tests beside the
//! code. A short round on every test run, longer ones by `FUZZ_SECONDS=600 cargo test -p bindery-protocol fuzz`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    fmt::Debug,
    sync::OnceLock,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, TestRunner},
};
use serde::de::DeserializeOwned;

use crate::{
    bodies::{self, *},
    filter::SqlFilter,
    frame::{Frame, MAX_FRAME, tests::golden},
    headers::tests::fields::read_all,
    message::{Compression, DelayLevels, Properties, TagExpression, batch, compress, id, record},
    names,
};

/// Runs `check` on values of `strategy`: once through, or for as long as `FUZZ_SECONDS` says. A failure is shrunk.
fn fuzz<S: Strategy>(strategy: &S, check: impl Fn(&S::Value))
where
    S::Value: Debug,
{
    let seconds = std::env::var("FUZZ_SECONDS").map_or(0, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        let config = Config {
            failure_persistence: None,
            ..Config::with_cases(200)
        };
        let outcome = TestRunner::new(config).run(strategy, |value| {
            check(&value);
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{error}");
        }
        if Instant::now() >= end {
            return;
        }
    }
}

/// One change of some bytes.
#[derive(Debug, Clone)]
enum Change {
    Flip(Index, u8),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Number(Index, i32),
    Double(Index, Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let extreme = prop_oneof![
        Just(i32::MIN),
        Just(i32::MAX),
        Just(-1),
        Just(0),
        Just(0x7FFF),
        Just(0x8000),
        any::<i32>()
    ];
    let telling = prop::sample::select(&b"\"\\{}[]:,\x01\x02\xff\x00-0123456789eE.unt%;"[..]);
    let change = prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        1 => any::<Index>().prop_map(Change::Cut),
        2 => (any::<Index>(), prop::collection::vec(telling, 1..8))
            .prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (any::<Index>(), extreme).prop_map(|(at, number)| Change::Number(at, number)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Double(from, to)),
    ];
    prop::collection::vec(change, 0..6)
}

fn changed(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for change in changes {
        if bytes.is_empty() {
            break;
        }
        let at = |index: &Index| index.index(bytes.len());
        match change {
            Change::Flip(index, bits) => {
                let at = at(index);
                bytes[at] ^= bits;
            }
            Change::Cut(index) => bytes.truncate(index.index(bytes.len())),
            Change::Insert(index, more) => {
                let at = at(index);
                bytes.splice(at..at, more.iter().copied());
            }
            Change::Number(index, number) => {
                let at = at(index);
                for (byte, new) in bytes[at..].iter_mut().zip(number.to_be_bytes()) {
                    *byte = new;
                }
            }
            Change::Double(from, to) => {
                let (from, to) = (at(from), at(to));
                let part = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.splice(to..to, part);
            }
        }
    }
    bytes
}

/// The recorded frames, read once.
fn frames() -> &'static [Vec<u8>] {
    static FRAMES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FRAMES.get_or_init(|| golden().into_iter().map(|golden| golden.bytes).collect())
}

/// A recorded frame with some changes; half of them keep the length words right, so that the inside is reached.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    (any::<Index>(), changes(), any::<bool>()).prop_map(|(index, changes, mend)| {
        let mut bytes = changed(index.get::<Vec<u8>>(frames()), &changes);
        if mend && let Some(len) = bytes.len().checked_sub(4) {
            let word = u32::try_from(len).unwrap().to_be_bytes();
            bytes[..4].copy_from_slice(&word);
        }
        bytes
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..600)
}

/// Everything that reads a body.
fn read_body(body: &[u8]) {
    fn json<T: DeserializeOwned>(body: &[u8]) {
        if let Err(error) = bodies::from_slice::<T>(body) {
            assert!(!error.to_string().is_empty());
        }
    }
    macro_rules! all {
        ($($body:ty),* $(,)?) => { $(json::<$body>(body);)* };
    }
    all!(
        HeartbeatData,
        CheckClientBody,
        LockBatchBody,
        LockBatchReply,
        ResetOffsetBody,
        ResetOffsetList,
        ConsumerStatusBody,
        ConsumerRunningInfo,
        ConsumeDirectlyResult,
        TopicConfigTable,
        TopicConfigList,
        SubscriptionGroupTable,
        GroupConfigList,
        ConsumerOffsetTable,
        DelayOffsetTable,
        RouteData,
        ClusterInfo,
        MemberGroupBody,
        TopicList,
        KvTable,
        DataVersion,
        TopicStatsTable,
        ConsumeStats,
        ConsumeStatsList,
        ConsumerConnection,
        ProducerTable,
        ConsumeTimeSpanBody,
        BrokerStatsData,
        ConsumeQueueBody,
        QueryAssignmentBody,
        AssignmentBody,
        RequestModeBody,
        RequestModeTable,
        BatchAckBody,
        OrderTable,
        CorrectionOffsets,
    );
    for compressed in [false, true] {
        for version in [0, 401, 479] {
            drop(RegisterBrokerBody::read(body, compressed, version));
        }
    }
    drop(batch::decode(body));
    for message in record::decode_all(Bytes::copy_from_slice(body)) {
        drop(message.decompressed_body());
        drop(message.offset_msg_id());
    }
    for compression in [Compression::Zlib, Compression::Lz4, Compression::Zstd] {
        drop(compress::inflate(compression, body));
    }
    let text = String::from_utf8_lossy(body);
    drop(bodies::parse_properties(&text));
    drop(Properties::parse_bytes(body).encode());
}

fn read_frames(bytes: &[u8]) {
    let mut buf = BytesMut::from(bytes);
    let mut left = buf.len();
    while let Ok(Some(frame)) = Frame::decode(&mut buf, MAX_FRAME) {
        assert!(buf.len() < left, "a frame takes bytes");
        left = buf.len();
        read_all(&frame);
        read_body(&frame.body);
    }
}

#[test]
fn fuzz_frames_with_all_headers_and_bodies() {
    fuzz(&frame(), |bytes| read_frames(bytes));
}

#[test]
fn fuzz_random_bytes() {
    fuzz(&bytes(), |bytes| {
        read_frames(bytes);
        read_body(bytes);
    });
}

#[test]
fn fuzz_texts() {
    let sql = "(a|b|AND|OR|NOT|BETWEEN|IN|IS|NULL|LIKE|CONTAINS|STARTSWITH|TRUE|'x'|-|[0-9.eEdDfFlLxX]{1,9}|[()=<>+*/%,'\"`$_]| ){0,40}";
    let text = prop_oneof![
        ".{0,120}",
        sql,
        "[A-Za-z0-9+/=_ -]{0,80}",
        "[0-9smhd ]{0,40}"
    ];
    fuzz(&text, |text| {
        if let Ok(filter) = SqlFilter::parse(text) {
            for properties in ["", "a\u{1}5\u{2}b\u{1}x\u{2}"] {
                drop(filter.evaluate(&Properties::parse(properties)));
            }
        }
        drop(TagExpression::parse(text));
        drop(id::parse_offset_msg_id(text));
        drop(id::UniqueId::decode(text));
        drop(DelayLevels::parse(text));
        drop(names::check_topic(text));
        drop(Properties::parse(text).encode());
    });
}

#[test]
fn deep_nesting_is_no_overflow_of_the_stack() {
    const DEEP: usize = 200_000;
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{{", "}:1}")] {
        let text = open.repeat(DEEP) + "1" + &close.repeat(DEEP);
        read_body(text.as_bytes());
        let header = format!("{{\"code\":10,\"opaque\":1,\"flag\":0,\"x\":{text}}}");
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&u32::try_from(4 + header.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(&u32::try_from(header.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(header.as_bytes());
        read_frames(&bytes);
    }
    for open in ["(", "NOT ", "-", "a = 1 OR (", "a IN ("] {
        drop(SqlFilter::parse(&open.repeat(DEEP)));
    }
    let flat = "a = 1 OR ".repeat(DEEP) + "a = 1";
    if let Ok(filter) = SqlFilter::parse(&flat) {
        drop(filter.evaluate(&Properties::new()));
    }
}
