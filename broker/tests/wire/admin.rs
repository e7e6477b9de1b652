use std::time::Duration;

use bindery_broker::{Broker, BrokerConfig, NameServer, NameServerConfig};
use bindery_protocol::{
    bodies::{
        self, ConsumeStats, ConsumerConnection, RouteData, SubscriptionGroupConfig, TopicStatsTable,
    },
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::{QueryMessageHeader, ResetOffsetHeader, RouteHeader},
    message::record::decode_all,
};

use crate::support::{Fixture, Peer, Pulled, pull_request, send_request, until};

fn topic_request(code: RequestCode, topic: &str) -> Request {
    let mut request = Request::new(code);
    request.ext.put("topic", topic);
    request
}

#[tokio::test]
async fn a_broker_is_routed_to_while_it_runs_and_no_longer() {
    let names = NameServer::start(NameServerConfig::default())
        .await
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let config = BrokerConfig {
        broker_name: "broker-r".into(),
        namesrv_addr: names.local_addr().to_string(),
        store_path_root_dir: dir.path().join("store"),
        mapped_file_size_commit_log: 1 << 20,
        max_hash_slot_num: 100,
        max_index_num: 400,
        ..BrokerConfig::default()
    };
    let broker = Broker::start(config).await.unwrap();
    let (peer, asker) = (
        Peer::connect(broker.local_addr()).await,
        Peer::connect(names.local_addr()).await,
    );
    let route = |topic: &'static str| {
        let header = RouteHeader {
            topic: topic.into(),
            accept_standard_json_only: Some(true),
        };
        Request::new(RequestCode::GET_ROUTEINFO_BY_TOPIC).with(&header)
    };
    asker.ok(route("TBW102")).await;
    asker
        .refused(route("New"), ResponseCode::TOPIC_NOT_EXIST)
        .await;
    peer.ok(send_request("New", 0, "x", "")).await;
    until(|| async { asker.call(route("New")).await.response_code() == ResponseCode::SUCCESS })
        .await;
    let data: RouteData = bodies::from_slice(&asker.ok(route("New")).await.body).unwrap();
    assert_eq!(data.queue_datas[0].write_queue_nums, 4);
    assert_eq!(
        data.broker_datas[0].broker_addrs[&0],
        broker.address().to_string()
    );
    broker.shutdown().await.unwrap();
    asker
        .refused(route("New"), ResponseCode::TOPIC_NOT_EXIST)
        .await;
    names.shutdown().await;
}

#[tokio::test]
async fn messages_are_found_by_key_and_by_place() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let (_, id) = peer.send("T", 0, "x", "KEYS\u{1}k1 k2\u{2}").await;
    let query = |key: &str| {
        let header = QueryMessageHeader {
            topic: "T".into(),
            key: key.to_owned().into(),
            max_num: 32,
            begin_timestamp: 0,
            end_timestamp: i64::MAX,
            unique_key_query: None,
        };
        Request::new(RequestCode::QUERY_MESSAGE).with(&header)
    };
    let found = peer.ok(query("k2")).await;
    assert_eq!(decode_all(found.body.clone()).len(), 1);
    peer.refused(query("none"), ResponseCode::QUERY_NOT_FOUND)
        .await;

    let (_, offset) = bindery_protocol::message::id::parse_offset_msg_id(&id).unwrap();
    let view = |offset: i64| {
        let mut request = Request::new(RequestCode::VIEW_MESSAGE_BY_ID);
        request.ext.put_integer("offset", offset);
        request
    };
    assert_eq!(
        decode_all(peer.ok(view(offset.0)).await.body.clone())[0].body,
        "x"
    );
    peer.refused(view(1 << 50), ResponseCode::SYSTEM_ERROR)
        .await;
}

#[tokio::test]
async fn figures_of_topic_group_and_connections_are_true() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "A || B").await;
    peer.produce("PG", "c1").await;
    for _ in 0..3 {
        peer.send("T", 1, "x", "TAGS\u{1}A\u{2}").await;
    }
    let stats = peer
        .ok(topic_request(RequestCode::GET_TOPIC_STATS_INFO, "T"))
        .await;
    let stats: TopicStatsTable = bodies::from_slice(&stats.body).unwrap();
    assert_eq!(stats.offset_table.len(), 4);
    assert_eq!(
        stats
            .offset_table
            .values()
            .map(|offset| offset.max_offset)
            .sum::<i64>(),
        3
    );
    peer.refused(
        topic_request(RequestCode::GET_TOPIC_STATS_INFO, "Nope"),
        ResponseCode::TOPIC_NOT_EXIST,
    )
    .await;

    peer.call(pull_request("g", "T", 1, 2, 1, 0)).await;
    let mut request = Request::new(RequestCode::GET_CONSUME_STATS);
    request.ext.put("consumerGroup", "g");
    let stats: ConsumeStats = bodies::from_slice(&peer.ok(request).await.body).unwrap();
    let lag: i64 = stats
        .offset_table
        .values()
        .map(|queue| queue.broker_offset - queue.consumer_offset)
        .sum();
    assert_eq!((stats.offset_table.len(), lag), (4, 1));

    let mut request = Request::new(RequestCode::GET_CONSUMER_CONNECTION_LIST);
    request.ext.put("consumerGroup", "g");
    let connections: ConsumerConnection =
        bodies::from_slice(&peer.ok(request.clone()).await.body).unwrap();
    assert_eq!(connections.connection_set[0].client_id, "c1");
    assert_eq!(connections.subscription_table["T"].sub_string, "A || B");
    let who = peer
        .ok(topic_request(RequestCode::QUERY_TOPIC_CONSUME_BY_WHO, "T"))
        .await;
    assert_eq!(who.body, r#"{"groupList":["g"]}"#);

    peer.connection.close();
    let other = fixture.peer().await;
    until(|| async {
        other.call(request.clone()).await.response_code() == ResponseCode::CONSUMER_NOT_ONLINE
    })
    .await;
}

#[tokio::test]
async fn counts_of_queues_are_bounded_in_requests_and_in_files() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for queues in [-1, 65_537, i32::MAX] {
        let group = SubscriptionGroupConfig {
            retry_queue_nums: queues,
            ..SubscriptionGroupConfig::new("g")
        };
        let request = Request::new(RequestCode::UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
            .body(bodies::to_vec(&group).unwrap());
        let remark = peer.refused(request, ResponseCode::INVALID_PARAMETER).await;
        assert!(remark.starts_with("retryQueueNums is"), "{remark}");
    }
    for (reads, writes) in [(0, 1), (1, 0), (65_537, 1)] {
        let mut request = topic_request(RequestCode::UPDATE_AND_CREATE_TOPIC, "T");
        request.ext.put("defaultTopic", "TBW102");
        request.ext.put_integer("readQueueNums", reads);
        request.ext.put_integer("writeQueueNums", writes);
        request.ext.put_integer("perm", 6);
        request.ext.put("topicFilterType", "SINGLE_TAG");
        request.ext.put("order", "false");
        let remark = peer.refused(request, ResponseCode::INVALID_PARAMETER).await;
        assert!(remark.contains("QueueNums is"), "{remark}");
    }

    let fixture = fixture
        .restart_with(|config| {
            let file = config.store_path_root_dir.join("config/topics.json");
            let text = std::fs::read_to_string(&file).unwrap();
            let entry = r#""topicConfigTable": {"Huge":{"order":false,"perm":6,"readQueueNums":2147483647,"topicFilterType":"SINGLE_TAG","topicName":"Huge","topicSysFlag":0,"writeQueueNums":2147483647},"#;
            let edited = text.replacen(r#""topicConfigTable": {"#, entry, 1);
            assert_ne!(text, edited, "{text}");
            std::fs::write(file, edited).unwrap();
        })
        .await;
    let peer = fixture.peer().await;
    let stats = peer
        .ok(topic_request(RequestCode::GET_TOPIC_STATS_INFO, "Huge"))
        .await;
    let stats: TopicStatsTable = bodies::from_slice(&stats.body).unwrap();
    assert_eq!(stats.offset_table.len(), 65_536);
}

#[tokio::test]
async fn a_topic_listed_twice_is_counted_once() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for _ in 0..3 {
        peer.send("T", 0, "x", "").await;
    }
    peer.call(pull_request("g", "T", 0, 0, 4, 0)).await;
    fixture.clock.advance(Duration::from_secs(1));
    let mut figures = Vec::new();
    for list in ["T", "T;T;T"] {
        let mut request = Request::new(RequestCode::GET_CONSUME_STATS);
        request.ext.put("consumerGroup", "g");
        request.ext.put("topicList", list);
        let stats: ConsumeStats = bodies::from_slice(&peer.ok(request).await.body).unwrap();
        figures.push((stats.offset_table.len(), stats.consume_tps.to_string()));
    }
    assert_eq!(figures, [(4, "0.05".to_owned()), (4, "0.05".to_owned())]);
}

#[tokio::test]
async fn a_reset_is_answered_to_the_next_pull_and_wakes_a_waiting_one() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "*").await;
    for _ in 0..5 {
        peer.send("T", 0, "x", "").await;
        fixture.clock.advance(Duration::from_millis(10));
    }
    let connection = peer.connection.clone();
    let waiting = tokio::spawn(async move {
        Pulled::of(
            &connection
                .call(
                    pull_request("g", "T", 0, 5, 2, 15_000),
                    Duration::from_secs(30),
                )
                .await
                .unwrap(),
        )
    });
    until(|| async {
        let info = peer
            .ok(Request::new(RequestCode::GET_BROKER_RUNTIME_INFO))
            .await;
        String::from_utf8_lossy(&info.body).contains("\"pullHeld\":\"1\"")
    })
    .await;
    let header = ResetOffsetHeader {
        group: "g".into(),
        topic: "T".into(),
        queue_id: -1,
        offset: None,
        timestamp: crate::support::START + 20,
        is_force: true,
    };
    peer.ok(Request::new(RequestCode::INVOKE_BROKER_TO_RESET_OFFSET).with(&header))
        .await;
    let pulled = waiting.await.unwrap();
    assert_eq!(
        (pulled.code, pulled.status.as_str(), pulled.next),
        (ResponseCode::PULL_OFFSET_MOVED, "OFFSET_RESET", 2)
    );
}

#[tokio::test]
async fn system_topics_are_neither_made_nor_deleted() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for topic in [
        "TBW102",
        "SCHEDULE_TOPIC_XXXX",
        "rmq_sys_x",
        "DefaultCluster",
        "broker-t",
    ] {
        let request = topic_request(RequestCode::DELETE_TOPIC_IN_BROKER, topic);
        peer.refused(request, ResponseCode::INVALID_PARAMETER).await;
    }
}

#[tokio::test]
async fn a_deleted_topic_begins_anew_at_offset_zero() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "old", "").await;
    peer.ok(topic_request(RequestCode::DELETE_TOPIC_IN_BROKER, "T"))
        .await;
    peer.refused(
        topic_request(RequestCode::GET_TOPIC_CONFIG, "T"),
        ResponseCode::TOPIC_NOT_EXIST,
    )
    .await;
    assert_eq!(peer.send("T", 0, "new", "").await.0, 0);
    assert_eq!(peer.pull("T", 0, 0).await.bodies(), ["new"]);
}

#[tokio::test]
async fn the_configuration_names_what_is_in_use() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let answer = peer.ok(Request::new(RequestCode::GET_BROKER_CONFIG)).await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let port = fixture.broker.local_addr().port();
    for line in [
        format!("listenPort={port}"),
        "brokerName=broker-t".into(),
        "fileReservedTime=72".into(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}
