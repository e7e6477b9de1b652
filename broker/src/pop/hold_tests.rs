use super::*;

#[derive(Debug, Clone, PartialEq)]
struct Pop {
    group: &'static str,
    queue_id: i32,
    look_at: i64,
    tag: Option<i64>,
    connection: u64,
}

impl Waiting for Pop {
    fn topic(&self) -> &'static str {
        "T"
    }
    fn group(&self) -> &str {
        self.group
    }
    fn queue_id(&self) -> i32 {
        self.queue_id
    }
    fn look_at(&self) -> i64 {
        self.look_at
    }
    fn connection(&self) -> ConnectionId {
        ConnectionId(self.connection)
    }
    fn matches(&self, tags_code: i64, _: &[u8]) -> bool {
        self.tag.is_none_or(|tag| tag == tags_code)
    }
}

fn pop(group: &'static str, queue_id: i32, look_at: i64) -> Pop {
    Pop {
        group,
        queue_id,
        look_at,
        tag: None,
        connection: 1,
    }
}

fn holds(limits: [usize; 3]) -> Holds<Pop> {
    let [all, one_key, keys] = limits;
    Holds::new(Limits { all, one_key, keys }, 800)
}

#[test]
fn a_message_wakes_one_of_each_group_that_wants_it() {
    let holds = holds([10, 10, 10]);
    let picky = Pop {
        tag: Some(7),
        ..pop("g", ANY_QUEUE, 50)
    };
    for one in [
        picky.clone(),
        pop("g", ANY_QUEUE, 100),
        pop("g", ANY_QUEUE, 200),
        pop("g", 3, 100),
        pop("h", 2, 100),
        pop("h", 3, 100),
    ] {
        assert!(holds.hold(one).is_ok());
    }
    holds.arrived("T", 3, 1, 8, b"");
    let mut woken = holds.due(0);
    woken.sort_by_key(|one| (one.group, one.queue_id));
    assert_eq!(
        woken,
        [pop("g", ANY_QUEUE, 100), pop("g", 3, 100), pop("h", 3, 100)]
    );
    holds.arrived("T", 0, 800, 8, b"");
    assert_eq!(
        holds.due(0),
        [picky],
        "every so many wake regardless of tags"
    );
}

#[test]
fn a_message_that_comes_back_wakes_those_of_its_topic() {
    for retry in ["%RETRY%g_T", "%RETRY%g+T"] {
        let holds = holds([10, 10, 10]);
        assert!(holds.hold(pop("g", 3, 100)).is_ok());
        assert!(holds.hold(pop("h", 3, 100)).is_ok());
        holds.arrived(retry, 0, 1, 0, b"");
        assert_eq!(holds.due(0), [pop("g", 3, 100)]);
        holds.arrived(retry, 0, 2, 0, b"");
        assert!(holds.due(0).is_empty());
        assert_eq!(holds.state().retries.len(), 2, "those of the other group");
    }
}

#[test]
fn each_is_tried_again_at_its_time_and_the_runner_sleeps_until_the_next() {
    let holds = holds([10, 10, 10]);
    for look_at in [30, 10, 20] {
        assert!(holds.hold(pop("g", ANY_QUEUE, look_at)).is_ok());
    }
    assert!(holds.due(9).is_empty());
    assert_eq!(holds.sleeping_until.load(Ordering::SeqCst), 10);
    assert_eq!(holds.due(20).len(), 2);
    assert_eq!(holds.count("T", "g", ANY_QUEUE), 1);
    assert_eq!(holds.due(30).len(), 1);
    let state = holds.state();
    assert!(state.topics.is_empty() && state.retries.is_empty() && state.connections.is_empty());
    assert_eq!(state.keys, 0);
}

#[test]
fn what_has_no_room_comes_back() {
    let holds = holds([3, 2, 2]);
    assert!(holds.hold(pop("g", 0, 10)).is_ok() && holds.hold(pop("g", 0, 10)).is_ok());
    assert!(holds.hold(pop("g", 0, 10)).is_err(), "too many of a queue");
    let Ok(id) = holds.hold(pop("h", 0, 10)) else {
        unreachable!("there is room for one more")
    };
    assert!(holds.hold(pop("h", 0, 10)).is_err(), "too many in all");
    assert!(holds.take(id).is_some() && holds.take(id).is_none());
    assert!(holds.hold(pop("h", 0, 10)).is_ok());
    holds.forget(ConnectionId(1));
    assert!(holds.hold(pop("g", 1, 10)).is_ok() && holds.hold(pop("g", 2, 10)).is_ok());
    assert!(holds.hold(pop("g", 3, 10)).is_err(), "too many queues");
}

#[test]
fn a_topic_that_changed_wakes_all_of_it() {
    let holds = holds([10, 10, 10]);
    for one in [pop("g", 0, 10), pop("g", 0, 20), pop("h", ANY_QUEUE, 10)] {
        assert!(holds.hold(one).is_ok());
    }
    holds.disturb_topic("U");
    assert!(holds.due(0).is_empty());
    holds.disturb_topic("T");
    assert_eq!(holds.due(0).len(), 3);
}
