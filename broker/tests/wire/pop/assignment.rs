use bindery_protocol::bodies::{
    self, AssignmentBody, MessageQueue, QueryAssignmentBody, RequestMode, RequestModeBody,
    RequestModeTable,
};

use super::*;

fn query(client_id: &str, strategy: &str) -> Request {
    let body = QueryAssignmentBody {
        client_id: client_id.into(),
        consumer_group: "g".into(),
        strategy_name: strategy.into(),
        topic: "T".into(),
        ..QueryAssignmentBody::default()
    };
    Request::new(RequestCode::QUERY_ASSIGNMENT).body(bodies::to_vec(&body).unwrap())
}

async fn assigned(peer: &Peer, request: Request) -> Option<Vec<(i32, RequestMode)>> {
    let answer = peer.ok(request).await;
    let body: AssignmentBody = bodies::from_slice(&answer.body).unwrap();
    let mut queues: Vec<(i32, RequestMode)> = body
        .message_queue_assignments?
        .into_iter()
        .map(|assigned| {
            let queue = assigned.message_queue;
            assert_eq!(queue, MessageQueue::new("T", "broker-t", queue.queue_id));
            (queue.queue_id, assigned.mode)
        })
        .collect();
    queues.sort_unstable();
    Some(queues)
}

fn set(topic: &str, group: &str, share: i32) -> Request {
    let body = RequestModeBody {
        consumer_group: group.into(),
        mode: RequestMode::Pop,
        pop_share_queue_num: share,
        topic: topic.into(),
    };
    Request::new(RequestCode::SET_MESSAGE_REQUEST_MODE).body(bodies::to_vec(&body).unwrap())
}

#[tokio::test]
async fn consumers_get_their_share_and_how_to_read_it() {
    let fixture = Fixture::start().await;
    let (one, two) = (fixture.peer().await, fixture.peer().await);
    one.send("T", 0, "x", "").await;
    assert_eq!(
        assigned(&one, query("c1", "AVG")).await,
        None,
        "nobody is online"
    );
    one.consume("g", "c1", "T", "*").await;
    two.consume("g", "c2", "T", "*").await;
    let pull = RequestMode::Pull;
    for (client, strategy, queues) in [
        ("c1", "AVG", [0, 1]),
        ("c2", "AVG", [2, 3]),
        ("c2", "AVG_BY_CIRCLE", [1, 3]),
    ] {
        let expected = queues.map(|queue| (queue, pull)).to_vec();
        assert_eq!(
            assigned(&one, query(client, strategy)).await,
            Some(expected)
        );
    }
    assert_eq!(assigned(&one, query("c1", "BY_MOOD")).await, None);
    one.ok(set("T", "g", 0)).await;
    let whole = vec![(-1, RequestMode::Pop)];
    assert_eq!(
        assigned(&one, query("c1", "AVG")).await,
        Some(whole.clone())
    );

    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    peer.consume("g", "c1", "T", "*").await;
    assert_eq!(assigned(&peer, query("c1", "AVG")).await, Some(whole));
    let answer = peer
        .ok(Request::new(RequestCode::GET_ALL_MESSAGE_REQUEST_MODE))
        .await;
    let table: RequestModeTable = bodies::from_slice(&answer.body).unwrap();
    assert_eq!(
        table.message_request_mode_map["T"]["g"].mode,
        RequestMode::Pop
    );
}

#[tokio::test]
async fn modes_are_set_for_topics_and_groups_that_exist() {
    let fixture = Fixture::with(|config| config.auto_create_subscription_group = false).await;
    let peer = fixture.peer().await;
    peer.send("T", 0, "x", "").await;
    let refused = [
        (
            set("%RETRY%g", "g", 0),
            ResponseCode::NO_PERMISSION,
            "retry topic is not allowed to set mode",
        ),
        (
            set("U", "g", 0),
            ResponseCode::TOPIC_NOT_EXIST,
            "topic[U] not exist",
        ),
        (
            set("T", "g", 0),
            ResponseCode::SUBSCRIPTION_GROUP_NOT_EXIST,
            "subscription group does not exist",
        ),
    ];
    for (request, code, remark) in refused {
        assert_eq!(peer.refused(request, code).await, remark);
    }
    peer.ok(set("T", "TOOLS_CONSUMER", 3)).await;
}
