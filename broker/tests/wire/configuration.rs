//! Changing the configuration of a running broker by request (25), and what it must never do.
use bindery_broker::{NameServer, NameServerConfig};
use bindery_protocol::{
    bodies::{self, RouteData},
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::RouteHeader,
};

use crate::support::{Fixture, Peer, send_request, until};

fn change(text: &str) -> Request {
    Request::new(RequestCode::UPDATE_BROKER_CONFIG).body(text.as_bytes().to_vec())
}

async fn lines(peer: &Peer) -> Vec<String> {
    let answer = peer.ok(Request::new(RequestCode::GET_BROKER_CONFIG)).await;
    String::from_utf8_lossy(&answer.body)
        .lines()
        .map(str::to_owned)
        .collect()
}

async fn has(peer: &Peer, line: &str) -> bool {
    lines(peer).await.iter().any(|found| found == line)
}

#[tokio::test]
async fn a_changed_key_is_in_force_at_once() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "x", "").await;
    peer.ok(change("autoCreateTopicEnable=false\nbrokerPermission=2\n"))
        .await;
    assert!(has(&peer, "brokerPermission=2").await);
    peer.refused(
        send_request("New", 0, "x", ""),
        ResponseCode::TOPIC_NOT_EXIST,
    )
    .await;
    assert_eq!(peer.pull("T", 0, 0).await.code, ResponseCode::NO_PERMISSION);
    peer.ok(change("autoCreateTopicEnable=true\nbrokerPermission=6\n"))
        .await;
    peer.ok(send_request("New", 0, "x", "")).await;
    assert_eq!(peer.pull("T", 0, 0).await.bodies(), ["x"]);
}

#[tokio::test]
async fn name_servers_are_told_what_the_broker_permits_now() {
    let names = NameServer::start(NameServerConfig::default())
        .await
        .unwrap();
    let address = names.local_addr().to_string();
    let fixture = Fixture::with(|config| config.namesrv_addr = address).await;
    let (peer, asker) = (
        fixture.peer().await,
        Peer::connect(names.local_addr()).await,
    );
    peer.ok(change("brokerPermission=4\n")).await;
    let route = RouteHeader {
        topic: "BenchmarkTest".into(),
        accept_standard_json_only: Some(true),
    };
    let route = Request::new(RequestCode::GET_ROUTEINFO_BY_TOPIC).with(&route);
    until(|| async {
        let data: RouteData = bodies::from_slice(&asker.ok(route.clone()).await.body).unwrap();
        data.queue_datas[0].perm == 4
    })
    .await;
    names.shutdown().await;
}

#[tokio::test]
async fn l14_a_value_with_blanks_is_stored_whole_and_a_broken_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broker.conf");
    std::fs::write(&file, "# delays\nlongPollingEnable=true\n").unwrap();
    let path = file.clone();
    let fixture = Fixture::with(|config| config.read_over(&path).unwrap()).await;
    let peer = fixture.peer().await;
    let answer = peer.ok(change("messageDelayLevel=1s 5s 10s\n")).await;
    assert_eq!(
        answer.head.remark.as_deref(),
        Some("in force from the next start on: messageDelayLevel")
    );
    let remark = peer
        .refused(
            change("messageDelayLevel=1s soon\n"),
            ResponseCode::INVALID_PARAMETER,
        )
        .await;
    assert!(
        remark.contains("`messageDelayLevel` is `1s soon`"),
        "{remark}"
    );
    assert!(has(&peer, "messageDelayLevel=1s 5s 10s").await);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "# delays\nlongPollingEnable=true\nmessageDelayLevel=1s 5s 10s\n"
    );
    let fixture = fixture
        .restart_with(|config| config.read_over(&file).unwrap())
        .await;
    let peer = fixture.peer().await;
    assert!(has(&peer, "messageDelayLevel=1s 5s 10s").await);
}

#[tokio::test]
async fn l29_no_request_moves_files_or_opens_the_broker() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    let before = lines(&peer).await;
    for key in [
        "brokerConfigPath",
        "rocketmqHome",
        "configBlackList",
        "storePathRootDir",
        "adminFromOtherHosts",
    ] {
        let remark = peer
            .refused(
                change(&format!("shortPollingTimeMills=7\n{key}=/tmp/$(id)\n")),
                ResponseCode::NO_PERMISSION,
            )
            .await;
        assert_eq!(remark, "Can not update config in black list.", "{key}");
    }
    peer.refused(
        change("shortPollingTimeMills=7\nlistenPort=1\n"),
        ResponseCode::NO_PERMISSION,
    )
    .await;
    peer.ok(change("filterServerNums=1;id\nnoSuchKey=$(id)\n"))
        .await;
    assert_eq!(lines(&peer).await, before);
}
