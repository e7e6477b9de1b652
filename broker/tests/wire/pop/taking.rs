use super::*;

/// Three messages in queue 1.
async fn three(peer: &Peer) {
    for body in ["a", "b", "c"] {
        peer.send("T", 1, body, "").await;
    }
}

#[tokio::test]
async fn what_was_handed_out_is_hidden_from_the_rest_of_the_group() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let popped = pop_with(&peer, |header| header.max_msg_nums = 2).await;
    assert_eq!(popped.bodies(), ["a", "b"]);
    assert_eq!(popped.remark, "FOUND");
    let reply = &popped.reply;
    assert_eq!(reply.start_offset_info.as_deref(), Some("0 1 0"));
    assert_eq!(reply.msg_offset_info.as_deref(), Some("0 1 0,1"));
    assert_eq!((reply.rest_num, reply.invisible_time), (1, HIDDEN));
    assert_eq!(reply.order_count_info, None);
    assert_eq!(pop(&peer).await.bodies(), ["c"]);
    let nothing = pop(&peer).await;
    assert_eq!(nothing.code, ResponseCode::POLLING_TIMEOUT);
    assert_eq!(nothing.remark, "NO_MESSAGE_IN_QUEUE");
    assert_eq!(nothing.reply.msg_offset_info.as_deref(), Some(""));
    let other = pop_with(&peer, |header| header.consumer_group = "h".into()).await;
    assert_eq!(other.bodies(), ["a", "b", "c"]);
}

#[tokio::test]
async fn what_is_not_acknowledged_comes_again_and_what_is_does_not() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let popped = pop(&peer).await;
    ack(&peer, &popped.handle("a")).await;
    ack(&peer, &popped.handle("c")).await;
    time_passes(&fixture).await;
    let again = pop_all(&fixture, &peer, 1).await;
    let (message, handle) = &again[0];
    assert_eq!(body(message), "b");
    assert_eq!((message.topic.as_ref(), message.reconsume_times), ("T", 1));
    assert_eq!(handle.retry, RetryMark::V1);
    let first_pop = popped.reply.pop_time.to_string();
    assert_eq!(
        message.properties.get(property::FIRST_POP_TIME),
        Some(first_pop.as_str())
    );
    ack(&peer, handle).await;
    time_passes(&fixture).await;
    time_passes(&fixture).await;
    assert!(pop(&peer).await.messages.is_empty());
    let retry = peer.pull("%RETRY%g_T", 0, 0).await;
    assert_eq!(retry.bodies(), ["b"], "once");
}

#[tokio::test]
async fn retry_topics_of_the_second_naming_are_read_beside_the_first() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    three(&peer).await;
    assert_eq!(pop(&peer).await.messages.len(), 3);
    time_passes(&fixture).await;
    until(|| async {
        fixture.clock.advance(Duration::from_millis(50));
        peer.pull("%RETRY%g_T", 0, 0).await.messages.len() == 3
    })
    .await;
    let fixture = fixture
        .restart_with(|config| config.enable_retry_topic_v2 = true)
        .await;
    let peer = fixture.peer().await;
    peer.send("T", 1, "d", "").await;
    let popped = pop(&peer).await;
    assert_eq!(popped.messages.len(), 4);
    for body in ["a", "b", "c"] {
        ack(&peer, &popped.handle(body)).await;
    }
    time_passes(&fixture).await;
    let again = pop_all(&fixture, &peer, 1).await;
    assert_eq!(
        (body(&again[0].0).as_str(), again[0].1.retry),
        ("d", RetryMark::V2)
    );
}

#[tokio::test]
async fn a_message_comes_again_at_the_time_a_client_asked_for() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let popped = pop(&peer).await;
    ack(&peer, &popped.handle("a")).await;
    ack(&peer, &popped.handle("b")).await;
    let answer = peer.ok(change_request(&popped.handle("c"), 60_000)).await;
    assert_eq!(
        answer.head.remark.as_deref(),
        Some("not set any response code")
    );
    let reply: bindery_protocol::headers::ChangeInvisibleTimeReply = answer.header().unwrap();
    assert_eq!(reply.invisible_time, Some(60_000));
    assert_eq!(reply.revive_qid, Some(popped.reply.revive_qid));
    time_passes(&fixture).await;
    time_passes(&fixture).await;
    assert!(
        pop(&peer).await.messages.is_empty(),
        "it is hidden for longer now"
    );
    for _ in 0..5 {
        time_passes(&fixture).await;
    }
    let again = pop_all(&fixture, &peer, 1).await;
    assert_eq!(body(&again[0].0), "c");
}

#[tokio::test]
async fn several_messages_are_acknowledged_at_once() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let popped = pop(&peer).await;
    let reply = &popped.reply;
    // Bits 0 and 2; one beyond the queue changes nothing.
    let body_text = format!(
        r#"{{"acks":[{{"b":"hQ==","c":"g","it":{HIDDEN},"pt":{},"q":1,"r":"0","rq":{},"so":0,"t":"T"}}],"brokerName":"broker-t"}}"#,
        reply.pop_time, reply.revive_qid
    );
    let request = || Request::new(RequestCode::BATCH_ACK_MESSAGE);
    peer.ok(request().body(body_text)).await;
    peer.refused(request(), ResponseCode::NO_MESSAGE).await;
    peer.refused(request().body(r#"{"acks":[]}"#), ResponseCode::NO_MESSAGE)
        .await;
    time_passes(&fixture).await;
    let again = pop_all(&fixture, &peer, 1).await;
    assert_eq!(body(&again[0].0), "b");
    ack(&peer, &again[0].1).await;
    time_passes(&fixture).await;
    assert_eq!(
        peer.pull("%RETRY%g_T", 0, 1).await.bodies(),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn a_group_gets_what_its_filter_lets_through() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    for (body, tag, n) in [("a", "x", 1), ("b", "y", 2), ("c", "x", 3)] {
        peer.send("T", 1, body, &format!("TAGS\u{1}{tag}\u{2}n\u{1}{n}\u{2}"))
            .await;
    }
    let tagged = pop_with(&peer, |header| header.exp = Some("x".into())).await;
    assert_eq!(tagged.bodies(), ["a", "c"]);
    assert_eq!(tagged.reply.msg_offset_info.as_deref(), Some("0 1 0,2"));
    let conditioned = |header: &mut PopHeader<'static>| {
        header.consumer_group = "h".into();
        header.exp_type = Some("SQL92".into());
        header.exp = Some("n > 1 AND n < 3".into());
    };
    assert_eq!(pop_with(&peer, conditioned).await.bodies(), ["b"]);
    ack(&peer, &tagged.handle("a")).await;
    time_passes(&fixture).await;
    let again = pop_all(&fixture, &peer, 1).await;
    assert_eq!(body(&again[0].0), "c");
    let none = pop_with(&peer, |header| {
        header.consumer_group = "i".into();
        header.exp = Some("z".into());
    })
    .await;
    assert!(none.messages.is_empty());
    let all = pop_with(&peer, |header| header.consumer_group = "i".into()).await;
    assert!(
        all.messages.is_empty(),
        "what did not match was passed over"
    );
}

#[tokio::test]
async fn popped_messages_survive_stops_and_kills() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let popped = pop(&peer).await;
    ack(&peer, &popped.handle("b")).await;
    let fixture = fixture.drop_and_start().await;
    let peer = fixture.peer().await;
    ack(&peer, &popped.handle("a")).await;
    assert!(
        pop(&peer).await.messages.is_empty(),
        "all are handed out still"
    );
    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    time_passes(&fixture).await;
    let again = pop_all(&fixture, &peer, 1).await;
    assert_eq!(body(&again[0].0), "c");
    let fixture = fixture.drop_and_start().await;
    let peer = fixture.peer().await;
    ack(&peer, &again[0].1).await;
    time_passes(&fixture).await;
    time_passes(&fixture).await;
    assert!(pop(&peer).await.messages.is_empty());
    assert_eq!(peer.pull("%RETRY%g_T", 0, 0).await.bodies(), ["c"]);
}

#[tokio::test]
async fn hand_outs_in_memory_meet_their_acks_there() {
    let fixture = Fixture::with(|config| config.enable_pop_buffer_merge = true).await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let popped = pop_with(&peer, |header| header.max_msg_nums = 2).await;
    ack(&peer, &popped.handle("a")).await;
    ack(&peer, &popped.handle("b")).await;
    let noted = |peer: &Peer| {
        let requests: Vec<Request> = (0..8)
            .map(|queue| {
                crate::support::pull_request(
                    "g",
                    "rmq_sys_REVIVE_LOG_DefaultCluster",
                    queue,
                    0,
                    4,
                    0,
                )
            })
            .collect();
        let connection = peer.connection.clone();
        async move {
            let mut count = 0;
            for request in requests {
                let answer = connection
                    .call(request, crate::support::PATIENCE)
                    .await
                    .unwrap();
                count += Pulled::of(&answer).messages.len();
            }
            count
        }
    };
    time_passes(&fixture).await;
    assert_eq!(noted(&peer).await, 0, "all was done in time");
    let popped = pop(&peer).await;
    assert_eq!(popped.bodies(), ["c"]);
    peer.send("T", 1, "d", "").await;
    let next = pop(&peer).await;
    assert_eq!(
        next.bodies(),
        ["d"],
        "the next pop goes on behind what is in memory"
    );
    ack(&peer, &next.handle("d")).await;
    time_passes(&fixture).await;
    let again = pop_all(&fixture, &peer, 1).await;
    assert_eq!(body(&again[0].0), "c");
    let fixture = fixture.restart().await;
    let peer = fixture.peer().await;
    ack(&peer, &again[0].1).await;
    time_passes(&fixture).await;
    assert!(pop(&peer).await.messages.is_empty());
}

#[tokio::test]
async fn a_new_group_may_begin_with_the_newest_message() {
    let fixture = Fixture::with(|config| config.init_pop_offset_by_check_msg_in_mem = false).await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let newest = pop_with(&peer, |header| header.init_mode = PopHeader::FROM_MAX).await;
    assert_eq!(newest.bodies(), ["c"]);
    let fixture = fixture
        .restart_with(|config| config.init_pop_offset_by_check_msg_in_mem = true)
        .await;
    let peer = fixture.peer().await;
    let young = pop_with(&peer, |header| {
        header.init_mode = PopHeader::FROM_MAX;
        header.consumer_group = "h".into();
    })
    .await;
    assert_eq!(young.bodies(), ["a", "b", "c"], "the topic is young");
}

#[tokio::test]
async fn a_queue_is_left_alone_while_too_many_of_its_messages_are_out() {
    let fixture = Fixture::with(|config| {
        config.enable_pop_message_threshold = true;
        config.pop_inflight_message_threshold = 1;
    })
    .await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let two = pop_with(&peer, |header| header.max_msg_nums = 2).await;
    assert_eq!(two.messages.len(), 2);
    let none = pop(&peer).await;
    assert_eq!((none.messages.len(), none.reply.rest_num), (0, 1));
    ack(&peer, &two.handle("a")).await;
    assert_eq!(pop(&peer).await.bodies(), ["c"]);
}

#[tokio::test]
async fn a_deleted_topic_takes_its_retry_topics_along() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    three(&peer).await;
    assert_eq!(pop(&peer).await.messages.len(), 3);
    time_passes(&fixture).await;
    until(|| async {
        fixture.clock.advance(Duration::from_millis(50));
        peer.pull("%RETRY%g_T", 0, 0).await.messages.len() == 3
    })
    .await;
    let request = Request::new(RequestCode::DELETE_TOPIC_IN_BROKER)
        .with(&bindery_protocol::headers::TopicHeader { topic: "T".into() });
    peer.ok(request).await;
    assert_eq!(
        peer.pull("%RETRY%g_T", 0, 0).await.code,
        ResponseCode::TOPIC_NOT_EXIST
    );
}

#[tokio::test]
async fn peeking_takes_nothing() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let request = || {
        Request::new(RequestCode::PEEK_MESSAGE).with(&bindery_protocol::headers::PeekHeader {
            topic: "T".into(),
            queue_id: -1,
            max_msg_nums: 2,
            consumer_group: "g".into(),
        })
    };
    for _ in 0..2 {
        let peeked = Popped::of(&peer.call(request()).await);
        assert_eq!(
            (peeked.bodies(), peeked.reply.rest_num),
            (vec!["a".into(), "b".into()], 3)
        );
    }
    assert_eq!(pop(&peer).await.messages.len(), 3);
    let nothing = Popped::of(&peer.call(request()).await);
    assert_eq!(nothing.code, ResponseCode::PULL_NOT_FOUND);
    assert_eq!(nothing.remark, "NO_MESSAGE_IN_QUEUE");
}

type Change = fn(&mut PopHeader<'static>);

#[tokio::test]
async fn what_can_not_be_is_refused_as_the_original_does() {
    let fixture = Fixture::start().await;
    let peer = fixture.peer().await;
    three(&peer).await;
    let asked = |change: fn(&mut PopHeader<'static>)| {
        let mut header = pop_header("T", 0);
        change(&mut header);
        pop_request(&header)
    };
    let refusals: [(Change, ResponseCode, &str); 5] = [
        (
            |pop| pop.born_time = 1,
            ResponseCode::POLLING_TIMEOUT,
            "timeout too much",
        ),
        (
            |pop| pop.max_msg_nums = 33,
            ResponseCode::INVALID_PARAMETER,
            "num is greater than 32",
        ),
        (
            |pop| pop.topic = "U".into(),
            ResponseCode::TOPIC_NOT_EXIST,
            "topic[U] not exist",
        ),
        (
            |pop| pop.queue_id = 9,
            ResponseCode::INVALID_PARAMETER,
            "queueId[9] is illegal",
        ),
        (
            |pop| (pop.exp_type, pop.exp) = (Some("SQL92".into()), Some("a >".into())),
            ResponseCode::SUBSCRIPTION_PARSE_FAILED,
            "parse the consumer's subscription failed",
        ),
    ];
    for (change, code, remark) in refusals {
        let text = peer.refused(asked(change), code).await;
        assert!(text.contains(remark), "{text}");
    }
    let popped = pop(&peer).await;
    let handle = popped.handle("a");
    let outside = Handle {
        offset: 9,
        ..handle.clone()
    };
    let text = peer
        .refused(ack_request(&outside), ResponseCode::NO_MESSAGE)
        .await;
    assert_eq!(text, "offset is illegal, key:T@1, commit:9, store:0~3");
    peer.refused(change_request(&outside, 5), ResponseCode::NO_MESSAGE)
        .await;
    let nowhere = Handle {
        queue_id: 7,
        ..handle.clone()
    };
    for request in [ack_request(&nowhere), change_request(&nowhere, 5)] {
        let text = peer.refused(request, ResponseCode::MESSAGE_ILLEGAL).await;
        assert!(
            text.starts_with("queueId[7] is illegal, topic:[T]"),
            "{text}"
        );
    }
    for receipt in ["", "0 1 2 x", "0 1 2 77 0 b 1 0"] {
        let odd = Handle {
            receipt: receipt.into(),
            ..handle.clone()
        };
        peer.refused(ack_request(&odd), ResponseCode::SYSTEM_ERROR)
            .await;
    }
    let fixture = fixture
        .restart_with(|config| config.timer_wheel_enable = false)
        .await;
    let text = fixture
        .peer()
        .await
        .refused(asked(|_| {}), ResponseCode::SYSTEM_ERROR)
        .await;
    assert!(text.contains("because timerWheelEnable is false"), "{text}");
}
