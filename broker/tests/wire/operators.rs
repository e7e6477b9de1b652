//! What operators ask besides topics and groups: progress, counters, offsets of others, cleaning, absent parts.
use std::time::Duration;

use bindery_protocol::{
    bodies::{
        self, BrokerStatsData, ConsumeQueueBody, ConsumeStats, ConsumeStatsList,
        ConsumeTimeSpanBody, ConsumerStatusBody, CorrectionOffsets, GroupConfigList, KvTable,
        SubscriptionGroupConfig, TopicConfig, TopicConfigList, TopicStatsTable,
    },
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::{
        BrokerConsumeStatsHeader, BrokerStatsHeader, CloneOffsetHeader, ConsumeQueueHeader,
        ConsumeTimeSpanHeader, ConsumerStatusHeader, CorrectionOffsetHeader, CreateTopicHeader,
        DeleteGroupHeader, GroupForbiddenHeader, QueryOffsetHeader, ResetOffsetHeader,
        SendBackHeader, UpdateOffsetHeader,
    },
    message::id,
    names,
};

use bindery_remoting::Clock;

use crate::support::{Fixture, Peer, Pulled, START, pull_request, until};

pub(crate) fn topic_request(code: RequestCode, topic: &str) -> Request {
    let mut request = Request::new(code);
    request.ext.put("topic", topic);
    request
}

pub(crate) fn create(topic: &str, reads: i32, writes: i32) -> Request {
    let header = CreateTopicHeader {
        topic: topic.into(),
        default_topic: names::AUTO_CREATE_TOPIC.into(),
        read_queue_nums: reads,
        write_queue_nums: writes,
        perm: 6,
        topic_filter_type: "SINGLE_TAG".into(),
        order: false,
        ..CreateTopicHeader::default()
    };
    Request::new(RequestCode::UPDATE_AND_CREATE_TOPIC).with(&header)
}

pub(crate) fn commit(group: &str, topic: &str, queue_id: i32, offset: i64) -> Request {
    let header = UpdateOffsetHeader {
        consumer_group: group.into(),
        topic: topic.into(),
        queue_id,
        commit_offset: offset,
    };
    Request::new(RequestCode::UPDATE_CONSUMER_OFFSET).with(&header)
}

async fn committed(peer: &Peer, group: &str, topic: &str, queue_id: i32) -> Option<String> {
    let header = QueryOffsetHeader {
        consumer_group: group.into(),
        topic: topic.into(),
        queue_id,
        set_zero_if_not_found: Some(false),
    };
    let answer = peer
        .call(Request::new(RequestCode::QUERY_CONSUMER_OFFSET).with(&header))
        .await;
    answer.ext("offset").map(std::borrow::Cow::into_owned)
}

#[tokio::test]
async fn l21_statistics_cover_the_queues_of_a_shrunk_topic() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.ok(create("T", 4, 4)).await;
    peer.consume("g", "c1", "T", "*").await;
    peer.send("T", 3, "x", "").await;
    peer.ok(commit("g", "T", 0, 0)).await;
    for (reads, writes) in [(4, 2), (2, 4)] {
        peer.ok(create("T", reads, writes)).await;
        let ends = topic_request(RequestCode::GET_TOPIC_STATS_INFO, "T");
        let ends: TopicStatsTable = bodies::from_slice(&peer.ok(ends).await.body).unwrap();
        let mut progress = Request::new(RequestCode::GET_CONSUME_STATS);
        progress.ext.put("consumerGroup", "g");
        progress.ext.put("topic", "T");
        let progress: ConsumeStats = bodies::from_slice(&peer.ok(progress).await.body).unwrap();
        let lag: i64 = progress
            .offset_table
            .values()
            .map(|queue| queue.broker_offset - queue.consumer_offset)
            .sum();
        let spans = ConsumeTimeSpanHeader {
            topic: "T".into(),
            group: "g".into(),
        };
        let spans = Request::new(RequestCode::QUERY_CONSUME_TIME_SPAN).with(&spans);
        let spans: ConsumeTimeSpanBody = bodies::from_slice(&peer.ok(spans).await.body).unwrap();
        let all = Request::new(RequestCode::GET_BROKER_CONSUME_STATS)
            .with(&BrokerConsumeStatsHeader { is_order: false });
        let all: ConsumeStatsList = bodies::from_slice(&peer.ok(all).await.body).unwrap();
        assert_eq!(
            (
                ends.offset_table.len(),
                progress.offset_table.len(),
                lag,
                spans.consume_time_span_set.len(),
                all.total_diff
            ),
            (4, 4, 1, 4, 1),
            "{reads} {writes}"
        );
    }
}

#[tokio::test]
async fn ordered_topics_alone_are_listed_when_asked_for() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "*").await;
    peer.send("T", 0, "x", "").await;
    peer.ok(commit("g", "T", 0, 0)).await;
    for (is_order, diff) in [(false, 1), (true, 0)] {
        let request = Request::new(RequestCode::GET_BROKER_CONSUME_STATS)
            .with(&BrokerConsumeStatsHeader { is_order });
        let list: ConsumeStatsList = bodies::from_slice(&peer.ok(request).await.body).unwrap();
        assert_eq!(list.total_diff, diff);
        assert_eq!(list.broker_addr, fixture.broker.address().to_string());
        assert!(
            list.consume_stats_list
                .iter()
                .any(|group| group.contains_key("g"))
        );
    }
}

#[tokio::test]
async fn a_time_span_tells_how_long_the_next_message_has_waited() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.ok(create("T", 1, 1)).await;
    peer.consume("g", "c1", "T", "*").await;
    for _ in 0..3 {
        peer.send("T", 0, "x", "").await;
        fixture.clock.advance(Duration::from_millis(100));
    }
    peer.ok(commit("g", "T", 0, 2)).await;
    let header = ConsumeTimeSpanHeader {
        topic: "T".into(),
        group: "g".into(),
    };
    let request = Request::new(RequestCode::QUERY_CONSUME_TIME_SPAN).with(&header);
    let spans: ConsumeTimeSpanBody = bodies::from_slice(&peer.ok(request).await.body).unwrap();
    let span = &spans.consume_time_span_set[0];
    assert_eq!(
        (
            span.min_time_stamp,
            span.consume_time_stamp,
            span.max_time_stamp,
            span.delay_time
        ),
        (START, START + 100, START + 200, 100)
    );
}

#[tokio::test]
async fn correction_leaves_groups_out_and_their_offsets_alone() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for group in ["a", "b"] {
        peer.consume(group, "c1", "T", "*").await;
    }
    for _ in 0..5 {
        peer.send("T", 0, "x", "").await;
    }
    peer.ok(commit("a", "T", 0, 4)).await;
    peer.ok(commit("b", "T", 0, 2)).await;
    for (compare, left_out, expected) in [
        ("a", "", 2),
        ("b", "", 2),
        ("a", "b", 4),
        ("b", "b", i64::MAX),
    ] {
        let header = CorrectionOffsetHeader {
            filter_groups: Some(left_out.into()),
            compare_group: compare.into(),
            topic: "T".into(),
        };
        let request = Request::new(RequestCode::QUERY_CORRECTION_OFFSET).with(&header);
        let found: CorrectionOffsets = bodies::from_slice(&peer.ok(request).await.body).unwrap();
        assert_eq!(
            found.correction_offsets.get(&0),
            Some(&expected),
            "{compare} without {left_out}"
        );
    }
    assert_eq!(committed(&peer, "b", "T", 0).await.as_deref(), Some("2"));
}

#[tokio::test]
async fn offsets_are_copied_to_another_group() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("src", "c1", "T", "*").await;
    for topic in ["T", "U"] {
        for _ in 0..5 {
            peer.send(topic, 1, "x", "").await;
        }
        peer.ok(commit("src", topic, 1, 3)).await;
    }
    let clone = |topic: Option<&'static str>, offline| {
        let header = CloneOffsetHeader {
            src_group: "src".into(),
            dest_group: "dst".into(),
            topic: topic.map(Into::into),
            offline,
        };
        Request::new(RequestCode::CLONE_GROUP_OFFSET).with(&header)
    };
    // The source is online and does not subscribe to U.
    peer.ok(clone(None, false)).await;
    assert_eq!(committed(&peer, "dst", "T", 1).await.as_deref(), Some("3"));
    assert_eq!(committed(&peer, "dst", "U", 1).await, None);
    peer.ok(clone(Some("U"), true)).await;
    assert_eq!(committed(&peer, "dst", "U", 1).await.as_deref(), Some("3"));
}

#[tokio::test]
async fn counters_tell_the_last_minute_hour_and_day() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for _ in 0..20 {
        peer.send("T", 0, "x", "").await;
    }
    let pulled = Pulled::of(&peer.call(pull_request("g", "T", 0, 0, 4, 0)).await);
    assert_eq!(pulled.messages.len(), 20);
    let figure = |name: &'static str, key: &'static str| {
        let header = BrokerStatsHeader {
            stats_name: name.into(),
            stats_key: key.into(),
        };
        Request::new(RequestCode::VIEW_BROKER_STATS_DATA).with(&header)
    };
    for (name, key) in [
        ("TOPIC_PUT_NUMS", "T"),
        ("GROUP_GET_NUMS", "T@g"),
        ("BROKER_PUT_NUMS", "DefaultCluster"),
        ("BROKER_GET_NUMS", "DefaultCluster"),
    ] {
        let data: BrokerStatsData =
            bodies::from_slice(&peer.ok(figure(name, key)).await.body).unwrap();
        assert_eq!(
            (
                data.stats_minute.sum,
                data.stats_hour.sum,
                data.stats_day.sum
            ),
            (20, 20, 20),
            "{name}"
        );
    }
    fixture.clock.advance(Duration::from_secs(90));
    let data: BrokerStatsData =
        bodies::from_slice(&peer.ok(figure("TOPIC_PUT_NUMS", "T")).await.body).unwrap();
    assert_eq!((data.stats_minute.sum, data.stats_hour.sum), (0, 20));
    let remark = peer
        .refused(figure("NO_SUCH", "T"), ResponseCode::SYSTEM_ERROR)
        .await;
    assert_eq!(remark, "The stats <NO_SUCH> <T> not exist");
}

#[tokio::test]
async fn entries_of_a_queue_are_shown_with_what_a_filter_makes_of_them() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "A").await;
    for tag in ["A", "B", "A"] {
        peer.send("T", 0, "x", &format!("TAGS\u{1}{tag}\u{2}"))
            .await;
    }
    let ask = |topic: &'static str, index, count, group: Option<&'static str>| {
        let header = ConsumeQueueHeader {
            topic: Some(topic.into()),
            queue_id: 0,
            index,
            count,
            consumer_group: group.map(Into::into),
        };
        Request::new(RequestCode::QUERY_CONSUME_QUEUE).with(&header)
    };
    let body: ConsumeQueueBody =
        bodies::from_slice(&peer.ok(ask("T", 0, 10, Some("g"))).await.body).unwrap();
    assert_eq!((body.min_queue_index, body.max_queue_index), (0, 3));
    let seen: Vec<_> = body
        .queue_data
        .iter()
        .map(|entry| (entry.eval, entry.tags_code))
        .collect();
    assert_eq!(seen, [(true, 65), (false, 66), (true, 65)]);
    assert_eq!(body.subscription_data.unwrap().sub_string, "A");
    let body: ConsumeQueueBody =
        bodies::from_slice(&peer.ok(ask("T", 2, i32::MAX, Some("away"))).await.body).unwrap();
    assert_eq!(
        (body.queue_data.len(), body.filter_data.as_deref()),
        (1, Some("away@T is not online!"))
    );
    let answer = peer.ok(ask("T", 3, 1, None)).await;
    assert_eq!(
        answer.head.remark.as_deref(),
        Some("Index 3 of 0@T is not exist!")
    );
    peer.refused(ask("Nope", 0, 1, None), ResponseCode::SYSTEM_ERROR)
        .await;
}

#[tokio::test]
async fn a_group_forbidden_to_read_a_topic_is_so_after_a_restart_too() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "x", "").await;
    let forbid = |readable| {
        let header = GroupForbiddenHeader {
            group: "g".into(),
            topic: "T".into(),
            readable,
        };
        Request::new(RequestCode::UPDATE_AND_GET_GROUP_FORBIDDEN).with(&header)
    };
    assert_eq!(
        peer.ok(forbid(Some(false))).await.body,
        r#"{"group":"g","readable":false,"topic":"T"}"#
    );
    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    let refused = peer.call(pull_request("g", "T", 0, 0, 4, 0)).await;
    assert_eq!(refused.response_code(), ResponseCode::NO_PERMISSION);
    assert_eq!(refused.ext("forbiddenType").as_deref(), Some("5"));
    assert_eq!(peer.pull("T", 0, 0).await.bodies(), ["x"]);
    let table = peer
        .ok(Request::new(RequestCode::GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
        .await;
    assert!(String::from_utf8_lossy(&table.body).contains(r#""forbiddenTable":{"g":{"T":4}}"#));
    peer.ok(forbid(Some(true))).await;
    let pulled = Pulled::of(&peer.call(pull_request("g", "T", 0, 0, 4, 0)).await);
    assert_eq!(pulled.bodies(), ["x"]);
}

#[tokio::test]
async fn several_topics_or_groups_are_made_together_or_not_at_all() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let topics = |names: &[&str]| {
        let list = TopicConfigList {
            topic_config_list: names
                .iter()
                .map(|name| TopicConfig {
                    attributes: [("+message.type".to_owned(), "FIFO".to_owned())].into(),
                    ..TopicConfig::new(*name, 3, 6)
                })
                .collect(),
        };
        Request::new(RequestCode::UPDATE_AND_CREATE_TOPIC_LIST).body(bodies::to_vec(&list).unwrap())
    };
    peer.refused(topics(&["A", "no good"]), ResponseCode::INVALID_PARAMETER)
        .await;
    let config = |topic| topic_request(RequestCode::GET_TOPIC_CONFIG, topic);
    peer.refused(config("A"), ResponseCode::TOPIC_NOT_EXIST)
        .await;
    peer.ok(topics(&["A", "B"])).await;
    let made: TopicConfig = bodies::from_slice(&peer.ok(config("B")).await.body).unwrap();
    assert_eq!(
        (
            made.read_queue_nums,
            made.attributes["message.type"].as_str()
        ),
        (3, "FIFO")
    );

    let groups = |names: &[&str]| {
        let list = GroupConfigList {
            group_config_list: names
                .iter()
                .map(|name| SubscriptionGroupConfig {
                    retry_max_times: 3,
                    ..SubscriptionGroupConfig::new(*name)
                })
                .collect(),
        };
        Request::new(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST)
            .body(bodies::to_vec(&list).unwrap())
    };
    peer.refused(groups(&["g1", "no good"]), ResponseCode::INVALID_PARAMETER)
        .await;
    peer.ok(groups(&["g1", "g2"])).await;
    let mut request = Request::new(RequestCode::GET_SUBSCRIPTIONGROUP_CONFIG);
    request.ext.put("group", "g2");
    let made: SubscriptionGroupConfig = bodies::from_slice(&peer.ok(request).await.body).unwrap();
    assert_eq!(made.retry_max_times, 3);
}

#[tokio::test]
async fn consumers_tell_the_offsets_they_hold() {
    let fixture = Fixture::start().await;
    let (peer, consumer) = (fixture.peer().await, fixture.peer().await);
    consumer.consume("g", "c1", "T", "*").await;
    let ask = |client: Option<&'static str>| {
        let header = ConsumerStatusHeader {
            topic: "T".into(),
            group: "g".into(),
            client_addr: client.map(Into::into),
        };
        Request::new(RequestCode::INVOKE_BROKER_TO_GET_CONSUMER_STATUS).with(&header)
    };
    for client in [None, Some("c1")] {
        let body: ConsumerStatusBody =
            bodies::from_slice(&peer.ok(ask(client)).await.body).unwrap();
        let held: Vec<i64> = body.consumer_table["c1"].values().copied().collect();
        assert_eq!(held, [5]);
    }
    peer.refused(ask(Some("c2")), ResponseCode::SYSTEM_ERROR)
        .await;
    consumer.connection.close();
    until(|| async {
        peer.call(ask(None)).await.response_code() == ResponseCode::CONSUMER_NOT_ONLINE
    })
    .await;
}

#[tokio::test]
async fn a_reset_by_a_broker_of_the_old_kind_is_told_to_the_consumers() {
    let fixture = Fixture::with(|config| config.use_server_side_reset_offset = false).await;
    let (peer, consumer) = (fixture.peer().await, fixture.peer().await);
    peer.ok(create("T", 1, 1)).await;
    for _ in 0..3 {
        peer.send("T", 0, "x", "").await;
    }
    let header = ResetOffsetHeader {
        group: "g".into(),
        topic: "T".into(),
        queue_id: -1,
        offset: None,
        timestamp: 0,
        is_force: true,
    };
    let reset = Request::new(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET).with(&header);
    peer.refused(reset.clone(), ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST)
        .await;
    consumer.consume("g", "c1", "T", "*").await;
    let remark = peer
        .refused(reset.clone(), ResponseCode::SYSTEM_ERROR)
        .await;
    assert_eq!(remark, "THe consumer group <g> not exist");
    peer.ok(commit("g", "T", 0, 3)).await;
    let answer = peer.ok(reset.clone()).await;
    let body = r#"{"offsetTable":{{"brokerName":"broker-t","queueId":0,"topic":"T"}:0}}"#;
    assert_eq!(answer.body, body);
    let told = consumer
        .told(RequestCode::RESET_CONSUMER_CLIENT_OFFSET)
        .await;
    assert_eq!(told.body, body);
    assert_eq!(told.ext("group").as_deref(), Some("g"));
    // The offset moves when the consumer commits, not before.
    assert_eq!(committed(&peer, "g", "T", 0).await.as_deref(), Some("3"));
}

#[tokio::test]
async fn a_message_given_back_goes_to_a_queue_that_its_retry_topic_has() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "*").await;
    let wide = SubscriptionGroupConfig {
        retry_queue_nums: 64,
        ..SubscriptionGroupConfig::new("g")
    };
    peer.ok(
        Request::new(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
            .body(bodies::to_vec(&wide).unwrap()),
    )
    .await;
    let (_, message_id) = peer.send("T", 0, "x", "").await;
    let (_, offset) = id::parse_offset_msg_id(&message_id).unwrap();
    for _ in 0..8 {
        let header = SendBackHeader {
            offset: offset.0,
            group: "g".into(),
            delay_level: 1,
            ..SendBackHeader::default()
        };
        peer.ok(Request::new(RequestCode::CONSUMER_SEND_MSG_BACK).with(&header))
            .await;
    }
    fixture.clock.advance(Duration::from_secs(2));
    // All eight in the one queue that there is.
    until(|| async { peer.pull("%RETRY%g", 0, 0).await.messages.len() == 8 }).await;
}

#[tokio::test]
async fn queues_of_topics_without_configuration_are_cleaned_on_demand() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("Kept", 0, "x", "").await;
    peer.send("Lost", 0, "x", "").await;
    let fixture = fixture
        .restart_with(|config| {
            let file = config.store_path_root_dir.join("config/topics.json");
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(file, text.replace("\"Lost\"", "\"Other\"")).unwrap();
        })
        .await;
    let peer = fixture.peer().await;
    let folder = |topic: &str| {
        fixture
            .store_dir()
            .join("consumequeue")
            .join(topic)
            .exists()
    };
    assert!(folder("Lost") && folder("Kept"));
    peer.ok(Request::new(RequestCode::CLEAN_UNUSED_TOPIC)).await;
    assert!(!folder("Lost") && folder("Kept"));
    assert_eq!(peer.pull("Kept", 0, 0).await.bodies(), ["x"]);
}

#[tokio::test]
async fn expired_files_and_drained_queues_go_on_demand() {
    let fixture = Fixture::with(|config| {
        // Files are as old as the machine says.
        config.clock = Clock::system();
        config.mapped_file_size_commit_log = 1 << 16;
        config.clean_resource_interval = 50;
    })
    .await;
    let peer = fixture.peer().await;
    peer.send("Old", 0, "x", "").await;
    for _ in 0..20 {
        peer.send("T", 0, &"x".repeat(8000), "").await;
    }
    let end = |topic: &'static str| {
        let mut request = topic_request(RequestCode::GET_MAX_OFFSET, topic);
        request.ext.put_integer("queueId", 0);
        let answer = peer.ok(request);
        async move { answer.await.ext("offset").map(std::borrow::Cow::into_owned) }
    };
    assert_eq!(end("Old").await.as_deref(), Some("1"));
    let log_start = || async {
        let info = peer
            .ok(Request::new(RequestCode::GET_BROKER_RUNTIME_INFO))
            .await;
        let info: KvTable = bodies::from_slice(&info.body).unwrap();
        info.table["commitLogMinOffset"].clone()
    };
    assert_eq!(log_start().await, "0");
    // In force at once.
    peer.ok(Request::new(RequestCode::UPDATE_BROKER_CONFIG).body(b"fileReservedTime=0\n".to_vec()))
        .await;
    peer.ok(Request::new(RequestCode::DELETE_EXPIRED_COMMITLOG))
        .await;
    until(|| async { log_start().await != "0" }).await;
    peer.ok(Request::new(RequestCode::CLEAN_EXPIRED_CONSUMEQUEUE))
        .await;
    assert_eq!(end("Old").await.as_deref(), Some("0"));
    let last = peer.pull("T", 0, 19).await;
    assert_eq!(last.messages.len(), 1, "{}", last.status);
}

#[tokio::test]
async fn a_deleted_group_starts_anew() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "*").await;
    peer.send("T", 0, "x", "").await;
    peer.ok(commit("g", "T", 0, 1)).await;
    let header = DeleteGroupHeader {
        group_name: "g".into(),
        clean_offset: true,
    };
    peer.ok(Request::new(RequestCode::DELETE_SUBSCRIPTIONGROUP).with(&header))
        .await;
    assert_eq!(committed(&peer, "g", "T", 0).await, None);
    let who = topic_request(RequestCode::QUERY_TOPIC_CONSUME_BY_WHO, "T");
    peer.connection.close();
    let other = fixture.peer().await;
    until(|| async { other.ok(who.clone()).await.body == r#"{"groupList":[]}"# }).await;
}

#[tokio::test]
async fn parts_that_are_absent_are_refused_by_name() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for (code, reason) in [
        (
            RequestCode::UPDATE_AND_CREATE_STATIC_TOPIC,
            "no static topics",
        ),
        (RequestCode::CHECK_ROCKSDB_CQ_WRITE_PROGRESS, "RocksDB"),
        (RequestCode::UPDATE_COLD_DATA_FLOW_CTR_CONFIG, "old data"),
        (RequestCode::AUTH_LIST_USER, "no access control"),
        (RequestCode::ADD_BROKER, "no container"),
        (RequestCode::GET_TOPIC_CONFIG_LIST, "22 not supported"),
        (RequestCode::TRIGGER_DELETE_FILES, "27 not supported"),
        (RequestCode(50), "50 not supported"),
    ] {
        let remark = peer
            .refused(Request::new(code), ResponseCode::REQUEST_CODE_NOT_SUPPORTED)
            .await;
        let start = format!(" request type {} not supported", code.0);
        assert!(
            remark.starts_with(&start) && remark.contains(reason),
            "{remark}"
        );
    }
    let remark = peer
        .refused(
            Request::new(RequestCode::GET_BROKER_EPOCH_CACHE),
            ResponseCode::SYSTEM_ERROR,
        )
        .await;
    assert_eq!(remark, "this request only for controllerMode ");
}

#[tokio::test]
async fn a_master_without_slaves_says_so() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "x", "").await;
    let status = peer
        .ok(Request::new(RequestCode::GET_BROKER_HA_STATUS))
        .await;
    let info: KvTable = bodies::from_slice(
        &peer
            .ok(Request::new(RequestCode::GET_BROKER_RUNTIME_INFO))
            .await
            .body,
    )
    .unwrap();
    let end = &info.table["commitLogMaxOffset"];
    let text = String::from_utf8_lossy(&status.body).into_owned();
    assert!(
        text.contains(r#""haConnectionInfo":[],"inSyncSlaveNums":0,"master":true"#)
            && text.contains(&format!(r#""masterCommitLogMaxOffset":{end}"#)),
        "{text}"
    );
    let exchanged = peer
        .ok(Request::new(RequestCode::EXCHANGE_BROKER_HA_INFO))
        .await;
    assert_eq!(
        exchanged.ext("masterAddress").as_deref(),
        Some(fixture.broker.address().to_string().as_str())
    );
}

#[tokio::test]
async fn l20_reading_creates_nothing() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let queue = |code, topic: &str| {
        let mut request = topic_request(code, topic);
        request.ext.put_integer("queueId", 0);
        request.ext.put_integer("timestamp", START);
        request
    };
    peer.ok(create("Known", 1, 1)).await;
    for topic in ["Unknown", "Known"] {
        for (code, field, value) in [
            (RequestCode::GET_MAX_OFFSET, "offset", "0"),
            (RequestCode::GET_MIN_OFFSET, "offset", "0"),
            (RequestCode::SEARCH_OFFSET_BY_TIMESTAMP, "offset", "0"),
            (RequestCode::GET_EARLIEST_MSG_STORETIME, "timestamp", "-1"),
        ] {
            let answer = peer.ok(queue(code, topic)).await;
            assert_eq!(answer.ext(field).as_deref(), Some(value), "{code:?}");
        }
        peer.call(queue(RequestCode::QUERY_CONSUME_QUEUE, topic))
            .await;
    }
    assert_eq!(
        peer.pull("Unknown", 0, 0).await.code,
        ResponseCode::TOPIC_NOT_EXIST
    );
    peer.refused(
        topic_request(RequestCode::GET_TOPIC_CONFIG, "Unknown"),
        ResponseCode::TOPIC_NOT_EXIST,
    )
    .await;
    for topic in ["Unknown", "Known"] {
        assert!(
            !fixture
                .store_dir()
                .join("consumequeue")
                .join(topic)
                .exists(),
            "{topic}"
        );
    }
}
