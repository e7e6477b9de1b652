use std::time::Duration;

use bindery_protocol::{
    bodies::{self, CheckClientBody, ConsumerData, HeartbeatData, SubscriptionData},
    codes::{RequestCode, ResponseCode},
    frame::Request,
    headers::PullHeader,
};

use crate::support::{Fixture, Peer, Pulled, until};

fn subscription(expression_type: &str, expression: &str) -> SubscriptionData {
    SubscriptionData {
        topic: "T".into(),
        sub_string: expression.into(),
        sub_version: 1,
        expression_type: expression_type.into(),
        ..SubscriptionData::default()
    }
}

async fn consume(peer: &Peer, expression: &str) {
    let data = HeartbeatData {
        client_id: "c1".into(),
        consumer_data_set: vec![ConsumerData {
            group_name: "g".into(),
            subscription_data_set: vec![subscription("SQL92", expression)],
            ..ConsumerData::default()
        }],
        ..HeartbeatData::default()
    };
    peer.ok(Request::new(RequestCode::HEART_BEAT).body(bodies::to_vec(&data).unwrap()))
        .await;
}

/// `sys_flag`: 2 may wait, 4 carries its own subscription.
fn pull(sys_flag: i32, offset: i64, version: i64, expression: Option<&str>) -> Request {
    Request::new(RequestCode::PULL_MESSAGE).with(&PullHeader {
        consumer_group: "g".into(),
        topic: "T".into(),
        queue_id: 0,
        queue_offset: offset,
        max_msg_nums: 32,
        sys_flag,
        commit_offset: 0,
        suspend_timeout_millis: 15_000,
        subscription: expression.map(Into::into),
        sub_version: version,
        expression_type: Some("SQL92".into()),
        max_msg_bytes: None,
        request_source: None,
        proxy_forward_client_id: None,
    })
}

fn check(expression_type: &str, expression: &str) -> Request {
    let body = CheckClientBody {
        client_id: "c1".into(),
        group: "g".into(),
        subscription_data: subscription(expression_type, expression),
        ..CheckClientBody::default()
    };
    Request::new(RequestCode::CHECK_CLIENT_CONFIG).body(bodies::to_vec(&body).unwrap())
}

async fn send_priced(peer: &Peer, price: i32) {
    let properties = format!("TAGS\u{1}A\u{2}price\u{1}{price}\u{2}");
    peer.send("T", 0, &price.to_string(), &properties).await;
}

#[tokio::test]
async fn only_messages_that_fulfil_the_condition_are_delivered() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for price in [3, 7, 5, 9] {
        send_priced(&peer, price).await;
    }
    peer.send("T", 0, "no price", "").await;
    consume(&peer, "price > 5 AND TAGS IS NOT NULL").await;
    let by_heartbeat = Pulled::of(&peer.call(pull(0, 0, 1, None)).await);
    assert_eq!(
        (by_heartbeat.bodies(), by_heartbeat.next),
        (vec!["7".into(), "9".into()], 5)
    );
    let own = Pulled::of(&peer.call(pull(4, 0, 1, Some("price < 5"))).await);
    assert_eq!(own.bodies(), ["3"]);
    let none = Pulled::of(&peer.call(pull(4, 0, 1, Some("price = 1"))).await);
    assert_eq!(
        (none.code, none.next),
        (ResponseCode::PULL_RETRY_IMMEDIATELY, 5),
        "what was looked through is not looked through again"
    );
}

#[tokio::test]
async fn a_waiting_pull_is_woken_by_what_fulfils_its_condition_only() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    send_priced(&peer, 1).await;
    consume(&peer, "price > 5").await;
    let connection = peer.connection.clone();
    let waiting = tokio::spawn(async move {
        let patience = Duration::from_secs(30);
        Pulled::of(
            &connection
                .call(pull(2, 1, 1, None), patience)
                .await
                .unwrap(),
        )
    });
    let held = || async {
        let info = peer
            .ok(Request::new(RequestCode::GET_BROKER_RUNTIME_INFO))
            .await;
        String::from_utf8_lossy(&info.body).contains("\"pullHeld\":\"1\"")
    };
    until(held).await;
    send_priced(&peer, 2).await;
    assert!(held().await, "the wrong price wakes nobody");
    send_priced(&peer, 8).await;
    let pulled = waiting.await.unwrap();
    assert_eq!((pulled.bodies(), pulled.next), (vec!["8".into()], 3));
}

#[tokio::test]
async fn a_broken_condition_is_refused_with_its_place() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    send_priced(&peer, 1).await;
    for (request, code) in [
        (
            check("SQL92", "price >"),
            ResponseCode::SUBSCRIPTION_PARSE_FAILED,
        ),
        (
            check("XPATH", "//price"),
            ResponseCode::SUBSCRIPTION_PARSE_FAILED,
        ),
        (
            pull(4, 0, 1, Some("price >")),
            ResponseCode::SUBSCRIPTION_PARSE_FAILED,
        ),
    ] {
        peer.refused(request, code).await;
    }
    peer.ok(check("SQL92", "price > 5")).await;
    consume(&peer, "price >").await;
    let remark = peer
        .refused(pull(0, 0, 1, None), ResponseCode::FILTER_DATA_NOT_EXIST)
        .await;
    assert_eq!(
        remark,
        "The broker's consumer filter data is not exist!Your expression may be wrong!"
    );
    peer.refused(pull(0, 0, 2, None), ResponseCode::SUBSCRIPTION_NOT_LATEST)
        .await;
}

#[tokio::test]
async fn without_property_filters_a_condition_is_refused() {
    let fixture = Fixture::with(|config| config.enable_property_filter = false).await;
    let peer = fixture.peer().await;
    send_priced(&peer, 1).await;
    consume(&peer, "price > 5").await;
    for request in [
        check("SQL92", "price > 5"),
        pull(0, 0, 1, None),
        pull(4, 0, 1, Some("price > 5")),
    ] {
        let remark = peer.refused(request, ResponseCode::SYSTEM_ERROR).await;
        assert_eq!(
            remark,
            "The broker does not support consumer to filter message by SQL92"
        );
    }
}
