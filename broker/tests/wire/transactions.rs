use std::time::Duration;

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Request},
    headers::{CheckTransactionHeader, EndTransactionHeader, SendHeader, SendReply},
    message::{
        id,
        record::{StoredMessage, decode_all},
    },
};
use bindery_remoting::Clock;

use crate::support::{Fixture, Peer, START, send_request, until};

const HALF: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
const OP: &str = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
const GIVEN_UP: &str = "TRANS_CHECK_MAX_TIME_TOPIC";

const UNKNOWN: i32 = 0;
const COMMIT: i32 = 8;
const ROLLBACK: i32 = 12;

/// What a producer knows of a half message.
#[derive(Clone)]
struct Half {
    key: String,
    table_offset: i64,
    log_offset: i64,
}

impl Half {
    fn of(answer: &Frame) -> Self {
        let reply: SendReply<'_> = answer.header().unwrap();
        Self {
            key: reply.transaction_id.unwrap().into_owned(),
            table_offset: reply.queue_offset,
            log_offset: id::parse_offset_msg_id(&reply.msg_id).unwrap().1.0,
        }
    }

    /// The half message a question is about.
    fn asked(question: &Frame) -> Self {
        let header: CheckTransactionHeader<'_> = question.header().unwrap();
        Self {
            key: header.transaction_id.unwrap().into_owned(),
            table_offset: header.tran_state_table_offset,
            log_offset: header.commit_log_offset,
        }
    }

    fn verdict(&self, verdict: i32) -> Request {
        self.header(verdict, "PG", false)
    }

    fn answer(&self, verdict: i32) -> Request {
        self.header(verdict, "PG", true)
    }

    fn header(&self, verdict: i32, group: &str, from_check: bool) -> Request {
        Request::new(RequestCode::END_TRANSACTION).with(&EndTransactionHeader {
            topic: Some("T".into()),
            producer_group: group.into(),
            tran_state_table_offset: self.table_offset,
            commit_log_offset: self.log_offset,
            commit_or_rollback: verdict,
            from_transaction_check: from_check,
            msg_id: self.key.as_str().into(),
            transaction_id: Some(self.key.as_str().into()),
        })
    }
}

fn half_request(key: &str, queue_id: i32, body: &str, more: &str) -> Request {
    let properties = format!(
        "KEYS\u{1}k\u{2}TRAN_MSG\u{1}true\u{2}UNIQ_KEY\u{1}{key}\u{2}WAIT\u{1}true\u{2}PGROUP\u{1}PG\u{2}TAGS\u{1}A\u{2}{more}"
    );
    let header = SendHeader {
        producer_group: "PG".into(),
        topic: "T".into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id,
        sys_flag: 4,
        born_timestamp: START,
        properties: Some(properties.into()),
        ..SendHeader::default()
    };
    Request::new(RequestCode::SEND_MESSAGE_V2)
        .with(&header)
        .body(body.as_bytes().to_vec())
}

async fn half(peer: &Peer, key: &str, more: &str) -> Half {
    Half::of(&peer.ok(half_request(key, 1, key, more)).await)
}

async fn bodies(peer: &Peer, topic: &str, queue_id: i32) -> Vec<String> {
    peer.pull(topic, queue_id, 0).await.bodies()
}

/// Waits until a queue holds so many messages.
async fn holds(peer: &Peer, topic: &str, queue_id: i32, count: usize) -> Vec<StoredMessage> {
    until(|| async { peer.pull(topic, queue_id, 0).await.messages.len() >= count }).await;
    peer.pull(topic, queue_id, 0).await.messages
}

#[tokio::test]
async fn a_committed_message_is_the_half_message_under_its_own_topic() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let answer = peer.ok(half_request("K", 1, "x", "u\u{1}v\u{2}")).await;
    let reply: SendReply<'_> = answer.header().unwrap();
    assert_eq!((reply.queue_id, reply.queue_offset), (1, 0));
    assert_eq!(reply.transaction_id.as_deref(), Some("K"));
    assert!(bodies(&peer, "T", 1).await.is_empty(), "nobody sees it yet");

    let half = Half::of(&answer);
    peer.ok(half.verdict(COMMIT)).await;
    let stored = peer.pull(HALF, 0, 0).await.messages.remove(0);
    let committed = peer.pull("T", 1, 0).await.messages.remove(0);
    assert_eq!((stored.sys_flag.0, committed.sys_flag.0), (0, 8));
    assert_eq!(stored.prepared_transaction_offset, 0);
    assert_eq!(committed.prepared_transaction_offset, half.log_offset);
    assert_eq!(
        (committed.born_timestamp, committed.born_host),
        (stored.born_timestamp, stored.born_host)
    );
    assert_eq!(committed.properties, stored.properties);
    for (name, value) in [
        ("TRAN_MSG", "true"),
        ("PGROUP", "PG"),
        ("__transactionId__", "K"),
        ("REAL_TOPIC", "T"),
        ("REAL_QID", "1"),
        ("u", "v"),
    ] {
        assert_eq!(committed.properties.get(name), Some(value), "{name}");
    }
    let op = holds(&peer, OP, 0, 1).await.remove(0);
    assert_eq!((&op.body[..], op.tags()), (&b"0,"[..], Some("d")));
    assert_eq!(op.born_host, op.store_host);
}

#[tokio::test]
async fn a_message_rolled_back_never_comes_and_commits_are_noted_together() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.produce("PG", "p1").await;
    for (key, verdict, written) in [
        ("a", ROLLBACK, 1),
        ("b", COMMIT, 1),
        ("c", COMMIT, 1),
        ("d", ROLLBACK, 2),
    ] {
        let half = half(&peer, key, "").await;
        peer.ok(half.verdict(verdict)).await;
        assert_eq!(holds(&peer, OP, 0, written).await.len(), written, "{key}");
    }
    let ops = peer.pull(OP, 0, 0).await.bodies();
    assert_eq!(ops, ["0,", "1,2,3,"]);
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(bodies(&peer, "T", 1).await, ["b", "c"]);
    assert_eq!(peer.check_count(), 0);
    assert_eq!(peer.pull(HALF, 0, 0).await.messages.len(), 4);
}

#[tokio::test]
async fn unknown_decides_nothing_and_is_not_answered() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let half = half(&peer, "K", "").await;
    let (connection, request) = (peer.connection.clone(), half.verdict(UNKNOWN));
    let unknown = tokio::spawn(async move {
        let patience = Duration::from_secs(60);
        connection.call(request, patience).await.map(drop)
    });
    // Frames of one connection are served in order.
    tokio::task::yield_now().await;
    peer.ok(half.verdict(COMMIT)).await;
    assert!(!unknown.is_finished());
    assert_eq!(bodies(&peer, "T", 1).await, ["K"]);
    unknown.abort();
}

#[tokio::test]
async fn a_verdict_must_name_group_and_place() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let (_, other) = peer.send("T", 1, "ordinary", "PGROUP\u{1}PG\u{2}").await;
    let half = half(&peer, "K", "").await;
    let elsewhere = |log_offset| Half {
        log_offset,
        ..half.clone()
    };
    let other = id::parse_offset_msg_id(&other).unwrap().1.0;
    let no_place = Half {
        table_offset: 7,
        ..half.clone()
    };
    for (request, remark) in [
        (
            half.header(COMMIT, "other", false),
            "The producer group wrong",
        ),
        (
            no_place.verdict(COMMIT),
            "The transaction state table offset wrong",
        ),
        (
            elsewhere(1 << 40).verdict(COMMIT),
            "Find prepared transaction message failed",
        ),
        (
            elsewhere(-1).verdict(COMMIT),
            "Find prepared transaction message failed",
        ),
        (
            elsewhere(other).verdict(COMMIT),
            "Find prepared transaction message failed",
        ),
    ] {
        assert_eq!(
            peer.refused(request, ResponseCode::SYSTEM_ERROR).await,
            remark
        );
    }
    peer.ok(half.verdict(COMMIT)).await;
    assert_eq!(bodies(&peer, "T", 1).await, ["ordinary", "K"]);
}

#[tokio::test]
async fn an_undecided_message_is_asked_about_and_decided_by_the_answer() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.produce("PG", "p1").await;
    let sent = half(&peer, "K", "").await;
    fixture.clock.advance(Duration::from_secs(6));
    peer.produce("PG", "p1").await;
    assert_eq!(peer.check_count(), 0, "6 s are not over");
    fixture.clock.advance(Duration::from_millis(1));
    let question = peer.checks(1).await.remove(0);
    assert!(question.is_oneway());
    assert_eq!(question.ext("bname").as_deref(), Some("broker-t"));
    assert_eq!(question.ext("topic").as_deref(), Some(HALF));
    assert_eq!(question.ext("msgId").as_deref(), Some("K"));
    let asked = Half::asked(&question);
    assert_eq!((asked.table_offset, asked.key.as_str()), (1, "K"));
    assert!(asked.log_offset > sent.log_offset);
    let body = decode_all(question.body.clone()).remove(0);
    assert_eq!((body.topic.as_str(), body.queue_id), ("T", 1));
    assert_eq!(
        (body.queue_offset.0, body.physical_offset.0),
        (1, asked.log_offset)
    );
    for (name, value) in [("TRANSACTION_CHECK_TIMES", "1"), ("WAIT", "false")] {
        assert_eq!(body.properties.get(name), Some(value), "{name}");
    }
    let offset_id = question.ext("offsetMsgId").unwrap().into_owned();
    assert_eq!(offset_id, body.offset_msg_id());
    let copy = peer.pull(HALF, 0, 1).await.messages.remove(0);
    assert_eq!(copy.properties.get("WAIT"), Some("true"));

    peer.ok(asked.answer(COMMIT)).await;
    assert_eq!(bodies(&peer, "T", 1).await, ["K"]);
    fixture.clock.advance(Duration::from_secs(100));
    holds(&peer, OP, 0, 1).await;
    assert_eq!(peer.check_count(), 1, "a decided one is not asked about");
}

#[tokio::test]
async fn a_late_verdict_on_the_original_and_an_answer_deliver_once() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.produce("PG", "p1").await;
    let sent = half(&peer, "K", "").await;
    fixture.clock.advance(Duration::from_millis(6001));
    let asked = Half::asked(&peer.checks(1).await[0]);
    peer.ok(sent.verdict(COMMIT)).await;
    peer.ok(asked.answer(COMMIT)).await;
    peer.ok(sent.verdict(COMMIT)).await;
    assert_eq!(bodies(&peer, "T", 1).await, ["K"]);
    let op = holds(&peer, OP, 0, 1).await.remove(0);
    assert_eq!(op.body, "1,", "the newest copy is what was decided");
}

#[tokio::test]
async fn what_nobody_decides_is_given_up_after_so_many_checks() {
    let fixture = Fixture::with(|config| config.transaction_check_max = 2).await;
    let peer = fixture.peer().await;
    peer.produce("PG", "p1").await;
    half(&peer, "K", "").await;
    fixture.clock.advance(Duration::from_millis(6001));
    peer.checks(1).await;
    fixture.clock.advance(Duration::from_secs(30));
    let second = peer.checks(2).await.remove(1);
    let times = decode_all(second.body.clone()).remove(0);
    assert_eq!(times.properties.get("TRANSACTION_CHECK_TIMES"), Some("2"));
    fixture.clock.advance(Duration::from_secs(30));
    let given_up = holds(&peer, GIVEN_UP, 0, 1).await.remove(0);
    assert_eq!(given_up.body, "K");
    assert_eq!(given_up.properties.get("REAL_TOPIC"), Some("T"));
    assert_eq!(peer.check_count(), 2);
    let remark = peer
        .refused(
            Half::asked(&second).answer(COMMIT),
            ResponseCode::SYSTEM_ERROR,
        )
        .await;
    assert_eq!(remark, "Find prepared transaction message failed");
    assert!(bodies(&peer, "T", 1).await.is_empty());
}

#[tokio::test]
async fn a_message_with_its_own_immunity_does_not_hold_up_those_behind_it() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.produce("PG", "p1").await;
    let immune = half(
        &peer,
        "immune",
        "CHECK_IMMUNITY_TIME_IN_SECONDS\u{1}50\u{2}",
    )
    .await;
    half(&peer, "usual", "").await;
    fixture.clock.advance(Duration::from_millis(6001));
    assert_eq!(Half::asked(&peer.checks(1).await[0]).key, "usual");
    let put_back = peer.pull(HALF, 0, 2).await.messages.remove(0);
    assert_eq!(
        put_back.properties.get("TRAN_PREPARED_QUEUE_OFFSET"),
        Some("0")
    );
    assert_eq!(put_back.properties.get("TRANSACTION_CHECK_TIMES"), None);

    fixture.clock.advance(Duration::from_secs(30));
    peer.checks(2).await;
    fixture.clock.advance(Duration::from_secs(30));
    let questions = peer.checks(4).await;
    let question = questions
        .iter()
        .find(|question| Half::asked(question).key == "immune")
        .unwrap();
    let copy = decode_all(question.body.clone()).remove(0);
    assert_eq!(copy.properties.get("TRAN_PREPARED_QUEUE_OFFSET"), Some("0"));
    assert_eq!(copy.properties.get("TRANSACTION_CHECK_TIMES"), Some("1"));
    peer.refused(immune.verdict(COMMIT), ResponseCode::ILLEGAL_OPERATION)
        .await;
    peer.ok(Half::asked(question).answer(COMMIT)).await;
    assert_eq!(bodies(&peer, "T", 1).await, ["immune"]);
}

#[tokio::test]
async fn a_half_message_without_room_for_its_checks_is_refused() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.produce("PG", "p1").await;
    let probe = half(&peer, "probe", "").await;
    peer.ok(probe.verdict(ROLLBACK)).await;
    let stored = peer.pull(HALF, 0, 0).await.messages.remove(0);
    // What checks may add: a count, an offset and a flag, as long as they can become.
    let checks = "TRANSACTION_CHECK_TIMES".len() + "TRAN_PREPARED_QUEUE_OFFSET".len();
    let checks = checks + "WAIT".len() + 10 + 19 + "false".len() + 6;
    let room = 32_767 - stored.properties.encode().len() - checks - "big\u{1}\u{2}".len();
    let big = |len| format!("big\u{1}{}\u{2}", "x".repeat(len));
    peer.refused(
        half_request("large", 0, "x", &big(room + 1)),
        ResponseCode::MESSAGE_ILLEGAL,
    )
    .await;
    assert_eq!(peer.pull(HALF, 0, 1).await.messages.len(), 0);
    half(&peer, "large", &big(room)).await;
    fixture.clock.advance(Duration::from_millis(6001));
    assert_eq!(Half::asked(&peer.checks(1).await[0]).key, "large");
}

#[tokio::test]
async fn questions_go_to_the_live_producers_of_the_group_in_turn() {
    let fixture = Fixture::start().await;
    let (sender, one, two) = (
        fixture.peer().await,
        fixture.peer().await,
        fixture.peer().await,
    );
    one.produce("PG", "p1").await;
    two.produce("PG", "p2").await;
    for key in ["a", "b", "c", "d"] {
        half(&sender, key, "").await;
    }
    fixture.clock.advance(Duration::from_millis(6001));
    one.checks(2).await;
    two.checks(2).await;
    assert_eq!(sender.check_count(), 0);
}

#[tokio::test]
async fn a_restart_forgets_neither_verdicts_nor_what_is_open() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let mut halves = Vec::new();
    for key in ["a", "b", "c", "d"] {
        halves.push(half(&peer, key, "").await);
    }
    peer.ok(halves[1].verdict(COMMIT)).await;
    peer.ok(halves[2].verdict(ROLLBACK)).await;

    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    peer.produce("PG", "p1").await;
    fixture.clock.advance(Duration::from_millis(6001));
    let asked: Vec<Half> = peer.checks(2).await.iter().map(Half::asked).collect();
    assert_eq!((asked[0].key.as_str(), asked[1].key.as_str()), ("a", "d"));
    assert_eq!(bodies(&peer, "T", 1).await, ["b"]);

    // Dropped before the positions were written: the copies stand for the originals all the same.
    let fixture = fixture.drop_and_start().await;
    let peer = fixture.peer().await;
    peer.ok(halves[0].verdict(COMMIT)).await;
    peer.produce("PG", "p1").await;
    let question = peer.checks(1).await.remove(0);
    assert_eq!(Half::asked(&question).key, "d");
    peer.ok(Half::asked(&question).answer(COMMIT)).await;
    peer.ok(asked[0].answer(COMMIT)).await;
    assert_eq!(bodies(&peer, "T", 1).await, ["b", "a", "d"]);
    assert_eq!(peer.check_count(), 1);
}

#[tokio::test]
async fn what_was_committed_before_a_kill_is_not_asked_about_although_nothing_says_so() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    half(&peer, "committed", "").await;
    half(&peer, "open", "").await;
    // As a commit leaves it when the broker is killed before the verdict is written.
    let mut committed = send_request("T", 1, "committed", "UNIQ_KEY\u{1}committed\u{2}");
    committed.ext.put("f", "8");
    peer.ok(committed).await;
    let fixture = fixture.drop_and_start().await;
    let peer = fixture.peer().await;
    peer.produce("PG", "p1").await;
    fixture.clock.advance(Duration::from_millis(6001));
    assert_eq!(Half::asked(&peer.checks(1).await[0]).key, "open");
    assert_eq!(bodies(&peer, "T", 1).await, ["committed"]);
}

#[tokio::test]
async fn nothing_wakes_while_nothing_is_open() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let half = half(&peer, "K", "").await;
    peer.ok(half.verdict(ROLLBACK)).await;
    holds(&peer, OP, 0, 1).await;
    peer.connection.close();
    // Until the round that was planned, the tables and the scan for silent clients have had their turn.
    until(|| async {
        fixture.clock.advance(Duration::from_secs(1));
        fixture.clock.sleepers() == 0
    })
    .await;
}

#[tokio::test]
async fn a_verdict_is_answered_when_the_disk_has_it() {
    let fixture = Fixture::with(|config| {
        config.flush_disk_type = bindery_broker::FlushDiskType::Sync;
    })
    .await;
    let peer = fixture.peer().await;
    let half = half(&peer, "K", "").await;
    peer.ok(half.verdict(COMMIT)).await;
    peer.ok(half.verdict(COMMIT)).await;
    assert_eq!(holds(&peer, "T", 1, 1).await.len(), 1);
    assert_eq!(&holds(&peer, OP, 0, 1).await[0].body[..], b"0,");
}

#[tokio::test]
async fn what_was_open_at_a_start_waits_for_its_producers_but_not_for_ever() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    half(&peer, "a", "").await;
    let mut other = half_request("b", 1, "b", "");
    let properties = "TRAN_MSG\u{1}true\u{2}UNIQ_KEY\u{1}b\u{2}PGROUP\u{1}other\u{2}";
    other.ext.put("i", properties);
    peer.ok(other).await;
    fixture.clock.advance(Duration::from_secs(5));
    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    peer.produce("PG", "p1").await;
    fixture.clock.advance(Duration::from_secs(20));
    peer.produce("PG", "p1").await;
    assert_eq!(peer.check_count(), 0, "a producer of one group is missing");
    fixture.clock.advance(Duration::from_secs(10));
    assert_eq!(Half::asked(&peer.checks(1).await[0]).key, "a");
}

#[tokio::test]
async fn a_delay_counts_from_the_commit_on() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let half = half(&peer, "K", "DELAY\u{1}2\u{2}").await;
    fixture.clock.advance(Duration::from_secs(5));
    peer.ok(half.verdict(COMMIT)).await;
    fixture.clock.advance(Duration::from_millis(4999));
    assert!(bodies(&peer, "T", 1).await.is_empty());
    fixture.clock.advance(Duration::from_millis(1));
    let delivered = holds(&peer, "T", 1, 1).await.remove(0);
    assert_eq!((&delivered.body[..], delivered.sys_flag.0), (&b"K"[..], 8));
}

#[tokio::test]
async fn half_messages_are_refused_where_that_is_set() {
    let fixture = Fixture::with(|config| config.reject_transaction_message = true).await;
    let peer = fixture.peer().await;
    let remark = peer
        .refused(half_request("K", 0, "x", ""), ResponseCode::NO_PERMISSION)
        .await;
    assert!(remark.ends_with("sending transaction message is forbidden"));
}

/// The store that Apache's broker left with four transactions, one of them undecided; what became of that one there is
/// written down in the notes on the golden stores.
#[tokio::test]
async fn an_undecided_message_of_apaches_broker_is_checked_as_there() {
    let (clock, moved) = Clock::manual(1_796_053_900_000);
    let fixture = Fixture::with(|config| {
        unpack(&config.store_path_root_dir);
        config.clock = clock;
        config.mapped_file_size_commit_log = 65_536;
        config.mapped_file_size_consume_queue = 400;
        config.mapped_file_size_timer_log = 4096;
        config.mapper_file_size_batch_consume_queue = 920;
        config.max_hash_slot_num = 64;
        config.max_index_num = 100;
        config.max_message_size = 60_000;
        config.transaction_time_out = 3000;
        config.transaction_check_interval = 3000;
        config.transaction_check_max = 2;
    })
    .await;
    let peer = fixture.peer().await;
    // Looked at as soon as its producer is back.
    peer.produce("GoldTxProducer", "p1").await;
    for (checks, offset) in [(1, 4), (2, 5)] {
        let question = peer.checks(checks).await.remove(checks - 1);
        assert_eq!(Half::asked(&question).table_offset, offset);
        let copies = peer.pull(HALF, 0, offset).await.messages;
        assert_eq!(copies[0].queue_offset.0, offset);
        assert_eq!(copies[0].sys_flag.0, 0);
        let times = copies[0].properties.get("TRANSACTION_CHECK_TIMES");
        assert_eq!(times, Some(checks.to_string().as_str()));
        moved.advance(Duration::from_secs(3));
    }
    let given_up = holds(&peer, GIVEN_UP, 0, 1).await.remove(0);
    assert_eq!(
        given_up.properties.get("TRANSACTION_CHECK_TIMES"),
        Some("2")
    );
    assert_eq!(given_up.properties.get("REAL_TOPIC"), Some("GoldTx"));
    assert_eq!(peer.pull(OP, 0, 0).await.messages.len(), 1, "no op message");
    until(|| async {
        let offsets = peer
            .ok(Request::new(RequestCode::GET_ALL_CONSUMER_OFFSET))
            .await;
        let offsets = String::from_utf8_lossy(&offsets.body).into_owned();
        offsets.contains(r#""RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS":{"0":6}"#)
            && offsets.contains(r#""RMQ_SYS_TRANS_OP_HALF_TOPIC@CID_RMQ_SYS_TRANS":{"0":1}"#)
    })
    .await;
}

fn unpack(root: &std::path::Path) {
    use std::io::Read;

    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/store/clean.tar.zst"
    );
    let packed = std::fs::File::open(path).unwrap();
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(packed)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    let folder = root.parent().unwrap();
    tar::Archive::new(&bytes[..]).unpack(folder).unwrap();
    std::fs::rename(folder.join("clean"), root).unwrap();
}
