//! The name server over real sockets: what Apache's answered in the golden frames, and the rules of its tables.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use bindery_protocol::{
    bodies::{
        self, ClusterInfo, DataVersion, QueueData, RegisterBrokerBody, RouteData, TopicConfig,
        TopicConfigTable, TopicList,
    },
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Request},
    headers::{
        DeleteRouteHeader, PutKvHeader, RegisterBrokerHeader, RegisterBrokerReply, RouteHeader,
        UnregisterBrokerHeader, WritePermHeader,
    },
};
use bindery_remoting::{Clock, ConnectOptions, Connection, ManualClock, Responder, Service};
use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{NameServer, NameServerConfig, NameServerError};

const PATIENCE: Duration = Duration::from_secs(10);

/// A client that is asked nothing.
struct Mute;

impl Service for Mute {
    fn request(&self, _: &Connection, _: Frame, _: Responder) {}
}

/// A name server on a clock that the test moves.
struct Site {
    server: NameServer,
    hands: ManualClock,
}

impl Site {
    async fn start(config: NameServerConfig) -> Self {
        let (clock, hands) = Clock::manual(1_000_000);
        let server = NameServer::start(NameServerConfig { clock, ..config })
            .await
            .unwrap();
        Self { server, hands }
    }

    async fn connect(&self) -> Connection {
        let addr = self.server.local_addr().to_string();
        Connection::connect(&addr, ConnectOptions::default(), Arc::new(Mute))
            .await
            .unwrap()
    }

    /// Moves the clock once the housekeeping and the idle sweeper sleep.
    async fn advance(&self, by: Duration) {
        self.hands.wait_for_sleepers(2).await;
        self.hands.advance(by);
    }
}

async fn ask(connection: &Connection, request: Request) -> Frame {
    connection.call(request, PATIENCE).await.unwrap()
}

/// A broker as the name server sees it.
#[derive(Clone)]
struct Broker {
    name: &'static str,
    addr: &'static str,
    id: i64,
    version: DataVersion,
    topics: Vec<TopicConfig>,
    timeout: Option<i64>,
}

impl Broker {
    fn master(name: &'static str, addr: &'static str, topics: &[&str]) -> Self {
        let topics = topics
            .iter()
            .map(|topic| TopicConfig::new(*topic, 4, 6))
            .collect();
        Self {
            name,
            addr,
            id: 0,
            version: DataVersion::new(1),
            topics,
            timeout: None,
        }
    }

    fn request(&self) -> Request {
        let header = RegisterBrokerHeader {
            broker_name: self.name.into(),
            broker_addr: self.addr.into(),
            cluster_name: "c".into(),
            ha_server_addr: format!("{}-ha", self.addr).into(),
            broker_id: self.id,
            heartbeat_timeout_millis: self.timeout,
            ..RegisterBrokerHeader::default()
        };
        let topic_config_table = self
            .topics
            .iter()
            .map(|topic| (topic.topic_name.clone(), topic.clone()))
            .collect();
        let table = TopicConfigTable {
            data_version: self.version,
            topic_config_table,
            ..TopicConfigTable::default()
        };
        let body = RegisterBrokerBody {
            topic_config_serialize_wrapper: table,
            ..RegisterBrokerBody::default()
        };
        Request::new(RequestCode::REGISTER_BROKER)
            .with(&header)
            .body(bodies::to_vec(&body).unwrap())
    }

    async fn register(&self, connection: &Connection) -> Frame {
        let answer = ask(connection, self.request()).await;
        assert_eq!(
            answer.response_code(),
            ResponseCode::SUCCESS,
            "{:?}",
            answer.head.remark
        );
        answer
    }
}

async fn route(connection: &Connection, topic: &str) -> Option<RouteData> {
    let header = RouteHeader {
        topic: topic.into(),
        accept_standard_json_only: None,
    };
    let answer = ask(
        connection,
        Request::new(RequestCode::GET_ROUTEINFO_BY_TOPIC).with(&header),
    )
    .await;
    match answer.response_code() {
        ResponseCode::SUCCESS => Some(bodies::from_slice(&answer.body).unwrap()),
        code => {
            assert_eq!(code, ResponseCode::TOPIC_NOT_EXIST);
            None
        }
    }
}

/// The queues of a topic: broker name, permission, write queues.
async fn queues(connection: &Connection, topic: &str) -> Vec<(String, i32, i32)> {
    let route = route(connection, topic).await.unwrap_or_default();
    let short = |queues: QueueData| (queues.broker_name, queues.perm, queues.write_queue_nums);
    route.queue_datas.into_iter().map(short).collect()
}

async fn clusters(connection: &Connection) -> ClusterInfo {
    let answer = ask(
        connection,
        Request::new(RequestCode::GET_BROKER_CLUSTER_INFO),
    )
    .await;
    bodies::from_slice(&answer.body).unwrap()
}

fn golden(file: &str) -> Bytes {
    let folder = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/frames"
    ));
    std::fs::read(folder.join(file)).unwrap().into()
}

fn parsed(bytes: &[u8]) -> Frame {
    Frame::decode(&mut BytesMut::from(bytes), 1 << 24)
        .unwrap()
        .unwrap()
}

fn ext(frame: &Frame) -> BTreeMap<String, String> {
    frame
        .ext_fields()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

/// A connection on which recorded requests are sent as they are.
struct Replay(TcpStream);

impl Replay {
    async fn answer(&mut self, pair: &str) -> (Frame, Frame) {
        self.0
            .write_all(&golden(&format!("{pair}.req.bin")))
            .await
            .unwrap();
        let mut buf = BytesMut::new();
        loop {
            if let Some(ours) = Frame::decode(&mut buf, 1 << 24).unwrap() {
                return (ours, parsed(&golden(&format!("{pair}.resp.bin"))));
            }
            assert!(
                self.0.read_buf(&mut buf).await.unwrap() > 0,
                "{pair}: closed"
            );
        }
    }

    /// The same code, opaque and ext fields, and the same remark unless it succeeded.
    async fn same_head(&mut self, pair: &str) -> (Frame, Frame) {
        let (ours, theirs) = self.answer(pair).await;
        assert_eq!(
            (ours.head.code, ours.head.opaque),
            (theirs.head.code, theirs.head.opaque),
            "{pair}"
        );
        assert_eq!(ext(&ours), ext(&theirs), "{pair}");
        if ours.head.code != 0 {
            assert_eq!(ours.head.remark, theirs.head.remark, "{pair}");
        }
        (ours, theirs)
    }

    /// The same head and the same body, byte for byte.
    async fn same(&mut self, pair: &str) {
        let (ours, theirs) = self.same_head(pair).await;
        let text = |frame: &Frame| String::from_utf8_lossy(&frame.body).into_owned();
        assert_eq!(text(&ours), text(&theirs), "{pair}");
    }

    /// The same head and a body that reads as the same `T`.
    async fn same_meaning<T: serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(
        &mut self,
        pair: &str,
    ) {
        let (ours, theirs) = self.same_head(pair).await;
        let (ours, theirs): (T, T) = (
            bodies::from_slice(&ours.body).unwrap(),
            bodies::from_slice(&theirs.body).unwrap(),
        );
        assert_eq!(ours, theirs, "{pair}");
    }
}

#[tokio::test]
async fn recorded_requests_are_answered_as_apaches_name_server_answered_them() {
    let site = Site::start(NameServerConfig::default()).await;
    let mut replay = Replay(TcpStream::connect(site.server.local_addr()).await.unwrap());
    replay.same("010-105-route-not-found").await;
    replay
        .same("016-105-route-not-found-rocketmq-serialize")
        .await;
    replay.same("001-103-register-broker-master").await;
    replay.same("002-103-register-broker-slave").await;
    replay.same("004-103-register-broker-increment").await;
    for pair in [
        "006-105-route-found",
        "007-105-route-found-old-version",
        "008-105-route-standard-json",
        "011-105-route-default-topic-TBW102",
        "028-304-system-topics-ns",
        "029-311-unit-topics",
        "030-312-unit-sub-topics",
        "031-313-unit-sub-ununit-topics",
        "039-904-broker-heartbeat",
        "040-9999-unsupported-code",
        "020-101-get-kv-missing",
        "018-100-put-kv",
        "022-219-kv-list-by-namespace",
        "003-103-register-broker-order-conf",
        "021-102-delete-kv",
        "032-216-delete-topic-in-namesrv",
        "033-216-delete-topic-in-namesrv-all",
        "034-217-register-topic",
    ] {
        match pair {
            "028-304-system-topics-ns" => replay.same_meaning::<TopicList>(pair).await,
            _ => replay.same(pair).await,
        }
    }
    replay
        .same_meaning::<ClusterInfo>("017-106-cluster-info")
        .await;
    replay
        .same_meaning::<bodies::MemberGroupBody>("038-901-broker-member-group")
        .await;
    // The recorded broker had changed its topics more often by then.
    let (ours, theirs) = replay.answer("037-322-query-data-version").await;
    assert_eq!(ext(&ours), ext(&theirs));
    assert_eq!(
        bodies::from_slice::<DataVersion>(&ours.body)
            .unwrap()
            .counter,
        14
    );
    site.server.shutdown().await;
}

#[tokio::test]
async fn recorded_changes_of_permission_and_configuration_show_in_the_routes() {
    let site = Site::start(NameServerConfig::default()).await;
    let mut replay = Replay(TcpStream::connect(site.server.local_addr()).await.unwrap());
    replay.same("001-103-register-broker-master").await;
    replay.same("002-103-register-broker-slave").await;
    replay.same("018-100-put-kv").await;
    replay.same("035-318-update-namesrv-config").await;
    let other = site.connect().await;
    let topics = vec![
        TopicConfig::new("TopicAdmO", 4, 6),
        TopicConfig::new("TopicAdm", 8, 6),
    ];
    let master = Broker {
        topics,
        ..Broker::master("broker-g", "127.0.0.1:21911", &[])
    };
    // Here the increment comes over another connection, in the cluster of the recording.
    let mut request = master.request();
    request.ext = bindery_protocol::frame::ExtWriter::default();
    let header = RegisterBrokerHeader {
        broker_name: "broker-g".into(),
        broker_addr: "127.0.0.1:21911".into(),
        cluster_name: "GoldenCluster".into(),
        ..RegisterBrokerHeader::default()
    };
    let answer = ask(&other, request.with(&header)).await;
    assert_eq!(answer.response_code(), ResponseCode::SUCCESS);
    replay.same("009-105-route-order-topic").await;
    let (ours, theirs) = replay.answer("023-205-wipe-write-perm").await;
    assert_eq!(
        ext(&ours).keys().collect::<Vec<_>>(),
        ext(&theirs).keys().collect::<Vec<_>>()
    );
    replay.same("013-105-route-wiped-perm").await;
    let (ours, theirs) = replay.answer("024-327-add-write-perm").await;
    assert_eq!(
        ext(&ours).keys().collect::<Vec<_>>(),
        ext(&theirs).keys().collect::<Vec<_>>()
    );
    // Added permission is read and write, whatever it was before.
    let (ours, _) = replay.answer("011-105-route-default-topic-TBW102").await;
    assert_eq!(
        bodies::from_slice::<RouteData>(&ours.body)
            .unwrap()
            .queue_datas[0]
            .perm,
        6
    );
    let (ours, theirs) = replay.answer("036-319-get-namesrv-config").await;
    let keys = |frame: &Frame| -> Vec<String> {
        let text = String::from_utf8(frame.body.to_vec()).unwrap();
        text.lines()
            .map(|line| line.split('=').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(keys(&ours), keys(&theirs));
    replay.same("005-104-unregister-broker").await;
    assert_eq!(
        clusters(&other).await.broker_addr_table["broker-g"]
            .broker_addrs
            .len(),
        1
    );
    site.server.shutdown().await;
}

#[tokio::test]
async fn a_broker_without_a_sign_of_life_is_forgotten_after_two_minutes() {
    // Its connection must not be closed for being idle first.
    let site = Site::start(NameServerConfig {
        max_idle_seconds: 600,
        ..NameServerConfig::default()
    })
    .await;
    let (client, live, silent) = (
        site.connect().await,
        site.connect().await,
        site.connect().await,
    );
    let (a, b) = (
        Broker::master("a", "10.0.0.1:1", &["T", "U"]),
        Broker::master("b", "10.0.0.2:1", &["T", "V"]),
    );
    a.register(&live).await;
    b.register(&silent).await;
    assert_eq!(
        queues(&client, "T").await,
        [("a".to_owned(), 6, 4), ("b".to_owned(), 6, 4)]
    );
    site.advance(Duration::from_secs(100)).await;
    a.register(&live).await;
    assert_eq!(queues(&client, "T").await.len(), 2);
    site.advance(Duration::from_secs(20)).await;
    assert_eq!(
        queues(&client, "T").await.len(),
        2,
        "exactly 120 s are not too long"
    );
    site.advance(Duration::from_secs(5)).await;
    silent.closed().await;
    assert_eq!(queues(&client, "T").await, [("a".to_owned(), 6, 4)]);
    assert!(route(&client, "V").await.is_none());
    assert_eq!(clusters(&client).await.cluster_addr_table["c"].len(), 1);
    site.server.shutdown().await;
}

#[tokio::test]
async fn a_broker_may_ask_to_be_forgotten_sooner() {
    let site = Site::start(NameServerConfig::default()).await;
    let (client, patient, hasty) = (
        site.connect().await,
        site.connect().await,
        site.connect().await,
    );
    Broker::master("a", "10.0.0.1:1", &["T", "U"])
        .register(&patient)
        .await;
    let broker = Broker {
        timeout: Some(10_000),
        ..Broker::master("b", "10.0.0.2:1", &["T", "V"])
    };
    broker.register(&hasty).await;
    // The housekeeping had planned to look in two minutes; it was told.
    let soon = 1_000_000 + 10_001;
    while site.hands.next_due() != Some(soon) {
        tokio::task::yield_now().await;
    }
    site.hands.advance(Duration::from_millis(10_001));
    hasty.closed().await;
    assert_eq!(queues(&client, "T").await, [("a".to_owned(), 6, 4)]);
    site.server.shutdown().await;
}

#[tokio::test]
async fn a_lost_connection_unregisters_its_broker_at_once_but_not_one_that_has_moved_on() {
    let site = Site::start(NameServerConfig::default()).await;
    let (client, first, second) = (
        site.connect().await,
        site.connect().await,
        site.connect().await,
    );
    let broker = Broker::master("a", "10.0.0.1:1", &["T", "U"]);
    broker.register(&first).await;
    broker.register(&second).await;
    first.close();
    first.closed().await;
    assert_eq!(queues(&client, "T").await.len(), 1);
    second.close();
    while route(&client, "T").await.is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(clusters(&client).await, ClusterInfo::default());
    site.server.shutdown().await;
}

#[tokio::test]
async fn a_single_topic_from_an_unknown_broker_is_refused_and_leaves_no_trace() {
    let site = Site::start(NameServerConfig::default()).await;
    let client = site.connect().await;
    let answer = ask(&client, Broker::master("a", "10.0.0.1:1", &["T"]).request()).await;
    assert_eq!(answer.response_code(), ResponseCode::SYSTEM_ERROR);
    assert_eq!(
        answer.head.remark.as_deref(),
        Some("register broker failed")
    );
    assert_eq!(clusters(&client).await, ClusterInfo::default());
    site.server.shutdown().await;
}

#[tokio::test]
async fn topics_change_only_with_the_data_version_and_none_is_taken_away() {
    let site = Site::start(NameServerConfig::default()).await;
    let client = site.connect().await;
    let mut broker = Broker::master("a", "10.0.0.1:1", &["T", "U"]);
    broker.register(&client).await;
    broker.topics[0].write_queue_nums = 8;
    broker.register(&client).await;
    assert_eq!(
        queues(&client, "T").await,
        [("a".to_owned(), 6, 4)],
        "same version, same topics"
    );
    broker.version.advance(2);
    broker.topics = vec![broker.topics[0].clone(), TopicConfig::new("V", 1, 6)];
    broker.register(&client).await;
    assert_eq!(queues(&client, "T").await, [("a".to_owned(), 6, 8)]);
    assert_eq!(
        (
            queues(&client, "U").await.len(),
            queues(&client, "V").await.len()
        ),
        (1, 1)
    );
    site.server.shutdown().await;
}

#[tokio::test]
async fn topics_that_a_full_registration_no_longer_names_go_if_so_configured() {
    let config = NameServerConfig {
        delete_topic_with_registration: true,
        ..NameServerConfig::default()
    };
    let site = Site::start(config).await;
    let client = site.connect().await;
    let mut broker = Broker::master("a", "10.0.0.1:1", &["T", "U", "V"]);
    broker.register(&client).await;
    // One topic is an increment.
    Broker {
        topics: vec![broker.topics[0].clone()],
        ..broker.clone()
    }
    .register(&client)
    .await;
    assert!(route(&client, "V").await.is_some());
    broker.topics.pop();
    broker.register(&client).await;
    assert!(route(&client, "U").await.is_some());
    assert!(route(&client, "V").await.is_none());
    site.server.shutdown().await;
}

#[tokio::test]
async fn a_slave_gives_no_topics_and_hears_of_its_master_and_can_take_its_place() {
    let site = Site::start(NameServerConfig::default()).await;
    let client = site.connect().await;
    let slave = Broker {
        id: 1,
        ..Broker::master("a", "10.0.0.2:1", &["T", "U"])
    };
    let answer = slave.register(&client).await;
    let reply: RegisterBrokerReply<'_> = answer.header().unwrap();
    assert_eq!((reply.master_addr, reply.ha_server_addr), (None, None));
    assert!(route(&client, "T").await.is_none());
    let mut master = Broker::master("a", "10.0.0.1:1", &["T", "U"]);
    master.register(&client).await;
    let answer = slave.register(&client).await;
    let reply: RegisterBrokerReply<'_> = answer.header().unwrap();
    assert_eq!(reply.master_addr.as_deref(), Some("10.0.0.1:1"));
    assert_eq!(reply.ha_server_addr.as_deref(), Some("10.0.0.1:1-ha"));
    // The slave comes back as master with a newer state: its address moves, the old master no longer wins.
    let mut risen = Broker { id: 0, ..slave };
    risen.version.state_version = 2;
    risen.register(&client).await;
    master.version.state_version = 1;
    master.register(&client).await;
    let addrs = route(&client, "T")
        .await
        .unwrap()
        .broker_datas
        .remove(0)
        .broker_addrs;
    assert_eq!(addrs, [(0, "10.0.0.2:1".to_owned())].into());
    site.server.shutdown().await;
}

#[tokio::test]
async fn the_last_address_of_a_name_takes_its_queues_with_it() {
    let site = Site::start(NameServerConfig::default()).await;
    let client = site.connect().await;
    let (a, b) = (
        Broker::master("a", "10.0.0.1:1", &["T", "U"]),
        Broker::master("b", "10.0.0.2:1", &["T", "V"]),
    );
    a.register(&client).await;
    b.register(&client).await;
    assert_eq!(queues(&client, "T").await.len(), 2);
    let header = UnregisterBrokerHeader {
        broker_name: "a".into(),
        broker_addr: "10.0.0.1:1".into(),
        cluster_name: "c".into(),
        broker_id: 0,
    };
    ask(
        &client,
        Request::new(RequestCode::UNREGISTER_BROKER).with(&header),
    )
    .await;
    assert_eq!(queues(&client, "T").await, [("b".to_owned(), 6, 4)]);
    assert!(route(&client, "U").await.is_none());
    site.server.shutdown().await;
}

#[tokio::test]
async fn a_wiped_permission_lasts_until_the_broker_changes_a_topic() {
    let site = Site::start(NameServerConfig::default()).await;
    let client = site.connect().await;
    let mut broker = Broker::master("a", "10.0.0.1:1", &["T", "U"]);
    broker.register(&client).await;
    let wipe = |name: &'static str| {
        let header = WritePermHeader {
            broker_name: name.into(),
        };
        Request::new(RequestCode::WIPE_WRITE_PERM_OF_BROKER).with(&header)
    };
    assert_eq!(ext(&ask(&client, wipe("a")).await)["wipeTopicCount"], "2");
    assert_eq!(
        ext(&ask(&client, wipe("nobody")).await)["wipeTopicCount"],
        "0"
    );
    broker.register(&client).await;
    assert_eq!(queues(&client, "T").await, [("a".to_owned(), 4, 4)]);
    broker.version.advance(2);
    broker.register(&client).await;
    assert_eq!(queues(&client, "T").await, [("a".to_owned(), 6, 4)]);
    site.server.shutdown().await;
}

#[tokio::test]
async fn a_topic_is_deleted_everywhere_or_in_one_cluster() {
    let site = Site::start(NameServerConfig::default()).await;
    let client = site.connect().await;
    Broker::master("a", "10.0.0.1:1", &["T", "U"])
        .register(&client)
        .await;
    let delete = |topic: &'static str, cluster: Option<&'static str>| {
        let header = DeleteRouteHeader {
            topic: topic.into(),
            cluster_name: cluster.map(Into::into),
        };
        Request::new(RequestCode::DELETE_TOPIC_IN_NAMESRV).with(&header)
    };
    ask(&client, delete("T", Some("elsewhere"))).await;
    assert!(route(&client, "T").await.is_some());
    ask(&client, delete("T", Some("c"))).await;
    ask(&client, delete("U", None)).await;
    assert!(route(&client, "T").await.is_none());
    assert!(route(&client, "U").await.is_none());
    site.server.shutdown().await;
}

#[tokio::test]
async fn bad_requests_are_answered_and_the_connection_goes_on() {
    let site = Site::start(NameServerConfig::default()).await;
    let client = site.connect().await;
    let answer = ask(&client, Request::new(RequestCode::GET_ROUTEINFO_BY_TOPIC)).await;
    assert_eq!(answer.response_code(), ResponseCode::SYSTEM_ERROR);
    assert!(answer.head.remark.unwrap().contains("`topic`"));
    let mut torn = Broker::master("a", "10.0.0.1:1", &["T", "U"]).request();
    torn.body = torn.body.slice(..torn.body.len() - 2);
    assert_eq!(
        ask(&client, torn).await.response_code(),
        ResponseCode::SYSTEM_ERROR
    );
    let broker = Broker::master("a", "10.0.0.1:1", &["T", "U"]);
    let mut wrong = broker.request();
    wrong.ext.put("bodyCrc32", "1");
    let answer = ask(&client, wrong).await;
    assert_eq!(answer.head.remark.as_deref(), Some("crc32 not match"));
    assert_eq!(clusters(&client).await, ClusterInfo::default());
    broker.register(&client).await;
    site.server.shutdown().await;
}

#[tokio::test]
async fn routes_wait_until_the_name_server_is_ready_if_so_configured() {
    let config = NameServerConfig {
        need_wait_for_service: true,
        wait_seconds_for_service: 45,
        ..NameServerConfig::default()
    };
    let site = Site::start(config).await;
    let client = site.connect().await;
    Broker::master("a", "10.0.0.1:1", &["T", "U"])
        .register(&client)
        .await;
    let header = RouteHeader {
        topic: "T".into(),
        accept_standard_json_only: None,
    };
    let answer = ask(
        &client,
        Request::new(RequestCode::GET_ROUTEINFO_BY_TOPIC).with(&header),
    )
    .await;
    assert_eq!(answer.head.remark.as_deref(), Some("name server not ready"));
    site.advance(Duration::from_secs(45)).await;
    assert!(route(&client, "T").await.is_some());
    site.server.shutdown().await;
}

#[tokio::test]
async fn listings_can_be_switched_off() {
    let config = NameServerConfig {
        enable_all_topic_list: false,
        ..NameServerConfig::default()
    };
    let site = Site::start(config).await;
    let client = site.connect().await;
    let answer = ask(
        &client,
        Request::new(RequestCode::GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
    )
    .await;
    assert_eq!(answer.head.remark.as_deref(), Some("disable"));
    let answer = ask(&client, Request::new(RequestCode::GET_UNIT_TOPIC_LIST)).await;
    assert_eq!(answer.response_code(), ResponseCode::SUCCESS);
    site.server.shutdown().await;
}

#[tokio::test]
async fn the_zone_of_the_requester_limits_its_route() {
    let site = Site::start(NameServerConfig::default()).await;
    let client = site.connect().await;
    for (broker, zone) in [
        (Broker::master("a", "10.0.0.1:1", &["T", "U"]), "north"),
        (Broker::master("b", "10.0.0.2:1", &["T", "U"]), "south"),
    ] {
        let mut request = broker.request();
        request.ext.put("__ZONE_NAME", zone);
        ask(&client, request).await;
    }
    let mut request = Request::new(RequestCode::GET_ROUTEINFO_BY_TOPIC);
    for (name, value) in [
        ("topic", "T"),
        ("__ZONE_MODE", "true"),
        ("__ZONE_NAME", "south"),
    ] {
        request.ext.put(name, value);
    }
    let answer = ask(&client, request).await;
    let route: RouteData = bodies::from_slice(&answer.body).unwrap();
    assert_eq!(route.broker_datas.len(), 1);
    assert_eq!(route.queue_datas[0].broker_name, "b");
    site.server.shutdown().await;
}

#[tokio::test]
async fn keys_and_values_and_changed_settings_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let conf = dir.path().join("namesrv.conf");
    std::fs::write(&conf, "listenPort=0\nbindAddress=127.0.0.1\n").unwrap();
    let read = || {
        let config = NameServerConfig::read(&conf).unwrap();
        NameServerConfig {
            kv_config_path: Some(dir.path().join("kvConfig.json")),
            ..config
        }
    };
    let site = Site::start(read()).await;
    let client = site.connect().await;
    let put = PutKvHeader {
        namespace: "N".into(),
        key: "k".into(),
        value: "v".into(),
    };
    let answer = ask(&client, Request::new(RequestCode::PUT_KV_CONFIG).with(&put)).await;
    assert_eq!(answer.response_code(), ResponseCode::SUCCESS);
    let change = |text: &'static str| Request::new(RequestCode::UPDATE_NAMESRV_CONFIG).body(text);
    let answer = ask(&client, change("orderMessageEnable=true\n")).await;
    assert_eq!(answer.response_code(), ResponseCode::SUCCESS);
    for forbidden in [
        "kvConfigPath=/x\n",
        "configStorePath=/x\n",
        "rocketmqHome=/x\n",
        "configBlackList=\n",
    ] {
        let answer = ask(&client, change(forbidden)).await;
        assert_eq!(answer.response_code(), ResponseCode::NO_PERMISSION);
        assert_eq!(
            answer.head.remark.as_deref(),
            Some("Can not update config in black list.")
        );
    }
    site.server.shutdown().await;
    assert!(read().order_message_enable);
    let site = Site::start(read()).await;
    let client = site.connect().await;
    let mut request = Request::new(RequestCode::GET_KV_CONFIG);
    request.ext.put("namespace", "N");
    request.ext.put("key", "k");
    assert_eq!(ext(&ask(&client, request).await)["value"], "v");
    site.server.shutdown().await;
}

#[tokio::test]
async fn several_name_servers_run_in_one_process_and_a_taken_port_is_named() {
    let first = NameServer::start(NameServerConfig::default())
        .await
        .unwrap();
    let second = NameServer::start(NameServerConfig::default())
        .await
        .unwrap();
    assert_ne!(first.local_addr(), second.local_addr());
    let taken = NameServerConfig {
        listen: first.local_addr(),
        ..NameServerConfig::default()
    };
    let error = NameServer::start(taken).await.unwrap_err();
    assert!(matches!(error, NameServerError::Bind { addr, .. } if addr == first.local_addr()));
    first.shutdown().await;
    second.shutdown().await;
}
