//! The broker under test and a peer that speaks frames to it.
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bindery_broker::{Broker, BrokerConfig};
use bindery_protocol::{
    bodies::{self, ConsumerData, HeartbeatData, ProducerData, SubscriptionData},
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply, Request},
    headers::{PullHeader, PullReply, SendHeader, SendReply},
    message::record::{StoredMessage, decode_all},
};
use bindery_remoting::{Clock, ConnectOptions, Connection, ManualClock, Responder, Service};
use tokio::sync::Notify;

/// How long a test waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Where the manual clock starts.
pub(crate) const START: i64 = 1_700_000_000_000;

/// A broker, its folder and its clock.
pub(crate) struct Fixture {
    pub(crate) broker: Broker,
    pub(crate) clock: ManualClock,
    config: BrokerConfig,
    folder: Arc<tempfile::TempDir>,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut BrokerConfig)) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let (clock, moved) = Clock::manual(START);
        let mut config = BrokerConfig {
            broker_name: "broker-t".into(),
            store_path_root_dir: dir.path().join("store"),
            mapped_file_size_commit_log: 16 << 20,
            max_hash_slot_num: 1000,
            max_index_num: 4000,
            clock,
            ..BrokerConfig::default()
        };
        change(&mut config);
        let broker = Broker::start(config.clone()).await.unwrap();
        Self {
            broker,
            clock: moved,
            config,
            folder: dir,
        }
    }

    /// Stops the broker cleanly and starts it again on the same folder.
    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| {}).await
    }

    /// Stops the broker cleanly and starts it again on the same folder with another configuration.
    pub(crate) async fn restart_with(self, change: impl FnOnce(&mut BrokerConfig)) -> Self {
        let Self {
            broker,
            clock,
            mut config,
            folder,
        } = self;
        broker.shutdown().await.unwrap();
        assert!(
            !config.store_path_root_dir.join("abort").exists(),
            "a clean stop leaves no abort file"
        );
        change(&mut config);
        let broker = Broker::start(config.clone()).await.unwrap();
        Self {
            broker,
            clock,
            config,
            folder,
        }
    }

    /// Drops the broker without a stop, as a kill would leave it, and starts it again on the same folder.
    pub(crate) async fn drop_and_start(self) -> Self {
        let Self {
            broker,
            clock,
            config,
            folder,
        } = self;
        drop(broker);
        let started = tokio::time::timeout(PATIENCE, async {
            loop {
                // The folder is free when the last task that used it has ended.
                if let Ok(broker) = Broker::start(config.clone()).await {
                    return broker;
                }
                tokio::task::yield_now().await;
            }
        });
        let broker = started.await.unwrap();
        Self {
            broker,
            clock,
            config,
            folder,
        }
    }

    /// The folder of the store.
    pub(crate) fn store_dir(&self) -> &std::path::Path {
        &self.config.store_path_root_dir
    }

    pub(crate) async fn peer(&self) -> Peer {
        Peer::connect(self.broker.local_addr()).await
    }
}

/// What a peer says about its offsets.
const STATUS: &str = r#"{"consumerTable":{},"messageQueueTable":{{"brokerName":"broker-t","queueId":0,"topic":"T"}:5}}"#;

/// What the broker asked of a peer.
#[derive(Default)]
struct Asked {
    requests: Mutex<Vec<(RequestCode, String)>>,
    checks: Mutex<Vec<Frame>>,
    told: Mutex<Vec<Frame>>,
    came: Notify,
}

impl Service for Asked {
    fn request(&self, _: &Connection, frame: Frame, responder: Responder) {
        match frame.request_code() {
            RequestCode::GET_CONSUMER_STATUS_FROM_CLIENT => {
                return responder.send(Reply::ok().body(STATUS.as_bytes().to_vec()));
            }
            RequestCode::RESET_CONSUMER_CLIENT_OFFSET => {
                self.told.lock().unwrap().push(frame);
                return self.came.notify_one();
            }
            _ => {}
        }
        if frame.request_code() == RequestCode::CHECK_TRANSACTION_STATE {
            self.checks.lock().unwrap().push(frame);
            return self.came.notify_one();
        }
        let group = frame.ext("consumerGroup").unwrap_or_default().into_owned();
        self.requests
            .lock()
            .unwrap()
            .push((frame.request_code(), group));
        self.came.notify_one();
    }
}

/// One connection to the broker.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    asked: Arc<Asked>,
}

impl Peer {
    pub(crate) async fn connect(addr: SocketAddr) -> Self {
        let asked = Arc::new(Asked::default());
        let connection =
            Connection::connect(&addr.to_string(), ConnectOptions::default(), asked.clone())
                .await
                .unwrap();
        Self { connection, asked }
    }

    pub(crate) async fn call(&self, request: Request) -> Frame {
        self.connection.call(request, PATIENCE).await.unwrap()
    }

    /// Calls and expects success.
    pub(crate) async fn ok(&self, request: Request) -> Frame {
        let answer = self.call(request).await;
        assert_eq!(
            answer.response_code(),
            ResponseCode::SUCCESS,
            "{:?}",
            answer.head.remark
        );
        answer
    }

    /// Calls and expects a refusal; its remark.
    pub(crate) async fn refused(&self, request: Request, code: ResponseCode) -> String {
        let answer = self.call(request).await;
        let remark = answer.head.remark.clone().unwrap_or_default();
        assert_eq!(answer.response_code(), code, "{remark}");
        remark
    }

    /// Sends a message and gives back (queue offset, message id).
    pub(crate) async fn send(
        &self,
        topic: &str,
        queue_id: i32,
        body: &str,
        properties: &str,
    ) -> (i64, String) {
        let answer = self
            .ok(send_request(topic, queue_id, body, properties))
            .await;
        let reply: SendReply<'_> = answer.header().unwrap();
        (reply.queue_offset, reply.msg_id.into_owned())
    }

    /// Pulls without waiting, with a subscription of its own.
    pub(crate) async fn pull(&self, topic: &str, queue_id: i32, offset: i64) -> Pulled {
        Pulled::of(
            &self
                .call(pull_request("puller", topic, queue_id, offset, 4, 0))
                .await,
        )
    }

    /// Announces a consumer.
    pub(crate) async fn consume(&self, group: &str, client_id: &str, topic: &str, tags: &str) {
        let data = HeartbeatData {
            client_id: client_id.into(),
            consumer_data_set: vec![ConsumerData {
                group_name: group.into(),
                subscription_data_set: vec![SubscriptionData {
                    topic: topic.into(),
                    sub_string: tags.into(),
                    sub_version: 1,
                    ..SubscriptionData::default()
                }],
                ..ConsumerData::default()
            }],
            ..HeartbeatData::default()
        };
        self.ok(Request::new(RequestCode::HEART_BEAT).body(bodies::to_vec(&data).unwrap()))
            .await;
    }

    /// Announces a producer.
    pub(crate) async fn produce(&self, group: &str, client_id: &str) {
        let data = HeartbeatData {
            client_id: client_id.into(),
            producer_data_set: vec![ProducerData {
                group_name: group.into(),
            }],
            ..HeartbeatData::default()
        };
        self.ok(Request::new(RequestCode::HEART_BEAT).body(bodies::to_vec(&data).unwrap()))
            .await;
    }

    /// Waits for something of that code the broker told; the last one of it.
    pub(crate) async fn told(&self, code: RequestCode) -> Frame {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let came = self.asked.came.notified();
                let told = {
                    let told = self.asked.told.lock().unwrap();
                    told.iter()
                        .rfind(|frame| frame.request_code() == code)
                        .cloned()
                };
                if let Some(frame) = told {
                    return frame;
                }
                came.await;
            }
        });
        waited.await.unwrap()
    }

    /// How many questions about transactions have come.
    pub(crate) fn check_count(&self) -> usize {
        self.asked.checks.lock().unwrap().len()
    }

    /// Waits until the broker has asked about so many transactions; all questions so far.
    pub(crate) async fn checks(&self, times: usize) -> Vec<Frame> {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let came = self.asked.came.notified();
                if self.check_count() >= times {
                    return;
                }
                came.await;
            }
        });
        waited.await.unwrap();
        self.asked.checks.lock().unwrap().clone()
    }

    /// Waits until the broker has asked so many times; what it asked.
    pub(crate) async fn asked(&self, times: usize) -> Vec<(RequestCode, String)> {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let came = self.asked.came.notified();
                if self.asked.requests.lock().unwrap().len() >= times {
                    return;
                }
                came.await;
            }
        });
        waited.await.unwrap();
        self.asked.requests.lock().unwrap().clone()
    }
}

pub(crate) fn send_request(topic: &str, queue_id: i32, body: &str, properties: &str) -> Request {
    let header = SendHeader {
        producer_group: "PG".into(),
        topic: topic.into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id,
        born_timestamp: START,
        properties: Some(properties.into()),
        ..SendHeader::default()
    };
    Request::new(RequestCode::SEND_MESSAGE_V2)
        .with(&header)
        .body(body.as_bytes().to_vec())
}

/// `sys_flag`: 1 commit offset, 2 may wait, 4 carries its own subscription.
pub(crate) fn pull_request(
    group: &str,
    topic: &str,
    queue_id: i32,
    offset: i64,
    sys_flag: i32,
    patience_millis: i64,
) -> Request {
    let header = PullHeader {
        consumer_group: group.into(),
        topic: topic.into(),
        queue_id,
        queue_offset: offset,
        max_msg_nums: 32,
        sys_flag,
        commit_offset: offset,
        suspend_timeout_millis: patience_millis,
        subscription: Some("*".into()),
        sub_version: 1,
        expression_type: Some("TAG".into()),
        max_msg_bytes: None,
        request_source: None,
        proxy_forward_client_id: None,
    };
    Request::new(RequestCode::PULL_MESSAGE).with(&header)
}

/// A pull's answer, taken apart.
#[derive(Debug)]
pub(crate) struct Pulled {
    pub(crate) code: ResponseCode,
    pub(crate) status: String,
    pub(crate) next: i64,
    pub(crate) messages: Vec<StoredMessage>,
}

impl Pulled {
    pub(crate) fn of(answer: &Frame) -> Self {
        let status = answer.head.remark.clone().unwrap_or_default();
        let next = answer
            .header::<PullReply>()
            .map_or(-1, |reply| reply.next_begin_offset);
        Self {
            code: answer.response_code(),
            status,
            next,
            messages: decode_all(answer.body.clone()),
        }
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        self.messages
            .iter()
            .map(|message| String::from_utf8_lossy(&message.body).into_owned())
            .collect()
    }
}

/// Asks again until `ready`, for what happens behind an answer.
pub(crate) async fn until<F: Future<Output = bool>>(mut ready: impl FnMut() -> F) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !ready().await {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap();
}
