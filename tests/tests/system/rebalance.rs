//! Ordered flow while members of the group come, go, and are killed.
//!
//! ```text
//! sender: 100 keys, numbers in order ─▶ 8 queues ─▶ 1 to 4 member processes ─▶ their lines ─▶ order::judge
//!                                                     ▲ join · leave · SIGKILL
//! ```
//! Fifteen seconds of change against our broker; `SECONDS_LONG=120` for more, `BINDERY_NAMESRV` for another cluster.
//! Members are processes of this very binary, so that a kill takes all of a client with it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bindery_broker::{Broker, BrokerConfig, NameServer, NameServerConfig};
use bindery_client::{
    Client, ClientConfig, ConsumeFrom, FilterExpression, Listener, Message, MessageExt,
    OrderlyStatus, Producer, PushConsumer, TopicSettings,
};
use bindery_tests::Process;

use crate::order::{Event, finished, judge};

const KEYS: u32 = 100;
const QUEUES: usize = 8;
const MEMBERS: usize = 4;
/// Messages a second; what the members can do is some times that.
const PACE: u32 = 200;
/// A killed member's locks live for a minute at Apache's broker.
const DRAIN: Duration = Duration::from_secs(180);
/// Tells a process of this binary that it is a member: name server, topic, group.
const ROLE: &str = "BINDERY_TEST_MEMBER";

fn nanos() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos()
}

/// A member, in a process of its own; nothing when the tests run.
#[tokio::test(flavor = "multi_thread")]
async fn member() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let words: Vec<&str> = role.split(' ').collect();
    let [server, topic, group] = words[..] else {
        panic!("{role}")
    };
    let handle = |batch: Vec<MessageExt>| async move {
        for message in &batch {
            let (body, queue) = (String::from_utf8_lossy(message.body()), message.queue_id());
            println!("begin {} {body} {queue}", nanos());
            tokio::time::sleep(Duration::from_millis(2)).await;
            println!("end {} {body} {queue}", nanos());
        }
        OrderlyStatus::Success
    };
    let consumer = PushConsumer::builder(group)
        .config(ClientConfig::new(server))
        .subscribe(topic, FilterExpression::all())
        .consume_from(ConsumeFrom::First)
        .concurrency(QUEUES)
        .listener(Listener::orderly(handle))
        .start()
        .await
        .unwrap();
    println!("joined");
    tokio::signal::ctrl_c().await.unwrap();
    consumer.shutdown().await;
    println!("left");
}

/// The members, those that are gone included.
struct Crowd {
    role: String,
    all: Vec<Process>,
    present: Vec<usize>,
    killed: BTreeMap<usize, u128>,
    left: usize,
}

impl Crowd {
    fn join(&mut self) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "rebalance::member", "--nocapture"])
            .env(ROLE, &self.role);
        self.present.push(self.all.len());
        self.all.push(Process::start(&mut command).unwrap());
    }

    /// The oldest member stops in order.
    fn leave(&mut self) {
        let member = self.present.remove(0);
        let process = &mut self.all[member];
        process.wait_for("joined", DRAIN).unwrap();
        assert!(process.interrupt(DRAIN).unwrap().success());
        self.left += 1;
    }

    /// The oldest member is killed.
    fn kill(&mut self) {
        let member = self.present.remove(0);
        self.all[member].kill().unwrap();
        self.killed.insert(member, nanos());
    }

    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for (member, process) in self.all.iter_mut().enumerate() {
            events.extend(
                process
                    .output()
                    .iter()
                    .filter_map(|line| Event::parse(member, line)),
            );
        }
        events
    }
}

/// Sends round after round of all keys until the time is over; how many numbers each key has.
async fn send(producer: Producer, topic: String, until: Instant) -> u32 {
    let began = tokio::time::Instant::now();
    let (mut number, mut sent) = (0, 0_u32);
    while Instant::now() < until {
        for key in 0..KEYS {
            tokio::time::sleep_until(began + Duration::from_secs(1) * sent / PACE).await;
            let queue = usize::try_from(key).unwrap() % QUEUES;
            // Sent until it is stored: what is missing in the end was lost by somebody else.
            while let Err(error) = producer
                .send_ordered(Message::new(&topic, format!("{key} {number}")), |_, _| {
                    queue
                })
                .await
            {
                println!("key {key} number {number}: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            sent += 1;
        }
        number += 1;
    }
    number
}

/// Joins, leaves and kills, one every two seconds, the same way each time.
fn change(crowd: &mut Crowd, step: u32) {
    match step % 5 {
        1 if crowd.present.len() > 1 => crowd.leave(),
        4 if crowd.present.len() > 1 => crowd.kill(),
        _ if crowd.present.len() < MEMBERS => crowd.join(),
        _ => crowd.leave(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn order_holds_while_members_join_leave_and_are_killed() {
    let seconds = std::env::var("SECONDS_LONG").map_or(15, |text| text.parse().unwrap());
    let cluster = std::env::var("BINDERY_NAMESRV").ok();
    let ours = match &cluster {
        Some(_) => None,
        None => Some(start_ours().await),
    };
    let server = cluster
        .clone()
        .unwrap_or_else(|| ours.as_ref().unwrap().0.local_addr().to_string());
    let client = Client::start(ClientConfig::new(&server)).unwrap();
    let id: u32 = rand::random();
    let topic = format!("rebalance-{id:08x}");
    let queues = i32::try_from(QUEUES).unwrap();
    client
        .admin()
        .create_topic(&topic, TopicSettings::queues(queues))
        .await
        .unwrap();
    let producer = Producer::builder("rebalance-sender")
        .client(&client)
        .start()
        .await
        .unwrap();

    let mut crowd = Crowd {
        role: format!("{server} {topic} rebalance-group-{id:08x}"),
        all: Vec::new(),
        present: Vec::new(),
        killed: BTreeMap::new(),
        left: 0,
    };
    crowd.join();
    crowd.join();
    let until = Instant::now() + Duration::from_secs(seconds);
    let sending = tokio::spawn(send(producer.clone(), topic.clone(), until));
    let mut step = 0;
    while Instant::now() < until {
        // The changes themselves are the test's subject; between them the lines are taken from the pipes.
        let next = Instant::now() + Duration::from_secs(2);
        while Instant::now() < next {
            crowd.events();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        change(&mut crowd, step);
        step += 1;
    }
    let expected = usize::try_from(sending.await.unwrap() * KEYS).unwrap();

    let drained = Instant::now() + DRAIN;
    let mut events = crowd.events();
    while finished(&events).len() < expected && Instant::now() < drained {
        tokio::time::sleep(Duration::from_millis(100)).await;
        events = crowd.events();
    }
    while !crowd.present.is_empty() {
        crowd.leave();
    }
    let verdict = judge(crowd.events(), &crowd.killed).unwrap();
    println!(
        "{}: {expected} messages of {KEYS} keys in {seconds} s, {} members joined, {} left, {} killed, {} handovers of queues: \
         handled {}, in order, again after a kill {}, again otherwise {}",
        cluster.map_or_else(
            || "our broker".to_owned(),
            |server| format!("cluster at {server}")
        ),
        crowd.all.len(),
        crowd.left,
        crowd.killed.len(),
        verdict.handovers,
        verdict.handled,
        verdict.again_after_kill,
        verdict.again,
    );
    assert_eq!(verdict.handled, expected, "nothing is lost");
    client.admin().delete_topic(&topic).await.unwrap();
    producer.shutdown().await;
    client.shutdown().await;
    if let Some((name_server, broker, _store)) = ours {
        broker.shutdown().await.unwrap();
        name_server.shutdown().await;
    }
}

async fn start_ours() -> (NameServer, Broker, tempfile::TempDir) {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let name_server = NameServer::start(NameServerConfig {
        listen: any_port,
        ..NameServerConfig::default()
    })
    .await
    .unwrap();
    let store = tempfile::tempdir().unwrap();
    let config = BrokerConfig {
        listen: any_port,
        namesrv_addr: name_server.local_addr().to_string(),
        store_path_root_dir: store.path().to_owned(),
        ..BrokerConfig::default()
    };
    let broker = Broker::start(config).await.unwrap();
    (name_server, broker, store)
}
