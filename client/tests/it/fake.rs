//! A name server and its brokers in one, small and obedient: what the client does to them can be looked at, and what they answer
//! can be bent.
//!
//! ```text
//! client ─▶ Server ─▶ rules (first that answers wins) ─▶ else the plain behaviour over State ─▶ answer
//! ```
use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bindery_client::{ClientConfig, MessageQueue};
use bindery_protocol::{
    bodies::{
        BrokerData, ConsumerIds, HeartbeatData, LockBatchBody, LockBatchReply, QueueData, QueueMap,
        ResetOffsetBody, RouteData, from_slice, to_vec,
    },
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Reply, Request},
    headers::{
        CheckTransactionHeader, ConsumerGroupHeader, EndTransactionHeader, OffsetReply, PullHeader,
        PullReply, QueryOffsetHeader, QueueHeader, ResetOffsetHeader, RouteHeader,
        SearchOffsetHeader, SendBackHeader, SendHeader, SendReply, UnregisterClientHeader,
        UpdateOffsetHeader,
    },
    message::{NewMessage, PhysicalOffset, QueueOffset, SysFlag, record},
};
use bindery_remoting::{Clock, Connection, Responder, Server, ServerOptions, Service};
use bytes::{Bytes, BytesMut};

/// A rule: looks at a request to a broker and may answer in the place of the plain behaviour.
type Rule = Box<dyn Fn(&str, &Frame) -> Option<Reply> + Send + Sync>;

const NAME_SERVER: &str = "name server";

/// A cluster of a name server and some brokers.
pub(crate) struct Fake {
    pub(crate) state: Arc<Mutex<State>>,
    servers: BTreeMap<String, Server>,
    name_server: SocketAddr,
}

#[derive(Default)]
pub(crate) struct State {
    brokers: BTreeMap<String, SocketAddr>,
    /// Topic to queues on each broker.
    pub(crate) topics: HashMap<String, i32>,
    queues: HashMap<MessageQueue, Vec<Bytes>>,
    /// Every request to a broker: code, broker, queue id of a send.
    pub(crate) requests: Vec<(RequestCode, String, Option<i32>)>,
    /// Group and queue to offset, and every commit in order.
    pub(crate) offsets: HashMap<(String, MessageQueue), i64>,
    pub(crate) commits: Vec<(MessageQueue, i64)>,
    /// Queue to client id.
    pub(crate) locks: HashMap<MessageQueue, String>,
    members: HashMap<String, BTreeMap<String, Connection>>,
    /// Broker and producer group to client id.
    producers: HashMap<(String, String), BTreeMap<String, Connection>>,
    /// Verdicts on half messages in order: the broker told, what it was told, whether it was to answer.
    pub(crate) ended: Vec<(String, EndTransactionHeader<'static>, bool)>,
    pub(crate) sent_back: Vec<(i64, i32)>,
    /// Store time of the next messages.
    pub(crate) now: i64,
    held: Vec<(MessageQueue, i64, Responder)>,
    rules: Vec<Rule>,
}

struct Face {
    /// Nothing for the name server.
    broker: Option<String>,
    state: Arc<Mutex<State>>,
}

impl Fake {
    pub(crate) async fn start(brokers: &[&str]) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let mut servers = BTreeMap::new();
        let mut addresses = BTreeMap::new();
        for broker in brokers {
            let server = serve(Some((*broker).to_owned()), &state).await;
            addresses.insert((*broker).to_owned(), server.local_addr());
            servers.insert((*broker).to_owned(), server);
        }
        state.lock().unwrap().brokers = addresses;
        let server = serve(None, &state).await;
        let name_server = server.local_addr();
        servers.insert(NAME_SERVER.to_owned(), server);
        Self {
            state,
            servers,
            name_server,
        }
    }

    pub(crate) fn config(&self) -> ClientConfig {
        ClientConfig::new(&self.name_server.to_string())
    }

    pub(crate) fn topic(&self, topic: &str, queues: i32) {
        self.state
            .lock()
            .unwrap()
            .topics
            .insert(topic.to_owned(), queues);
    }

    pub(crate) fn rule(
        &self,
        rule: impl Fn(&str, &Frame) -> Option<Reply> + Send + Sync + 'static,
    ) {
        self.state.lock().unwrap().rules.push(Box::new(rule));
    }

    pub(crate) fn forget_rules(&self) {
        self.state.lock().unwrap().rules.clear();
    }

    /// Stores a message as if somebody had sent it.
    pub(crate) fn store(&self, topic: &str, broker: &str, queue_id: i32, body: &str) {
        let queue = MessageQueue::new(topic, broker, queue_id);
        self.state
            .lock()
            .unwrap()
            .append(&queue, body.as_bytes(), b"", 0, 0);
    }

    /// Breaks the connections of all members, and changes the state before anybody can come back.
    pub(crate) fn cut(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap();
        state.held.clear();
        for connection in state.members.values().flat_map(BTreeMap::values) {
            connection.close();
        }
        change(&mut state);
    }

    /// How often a code was asked for.
    pub(crate) fn count(&self, code: RequestCode) -> usize {
        self.state
            .lock()
            .unwrap()
            .requests
            .iter()
            .filter(|(asked, ..)| *asked == code)
            .count()
    }

    pub(crate) fn offset(&self, group: &str, queue: &MessageQueue) -> Option<i64> {
        self.state
            .lock()
            .unwrap()
            .offsets
            .get(&(group.to_owned(), queue.clone()))
            .copied()
    }

    /// Stops one broker; the name server goes on naming it.
    pub(crate) async fn stop_broker(&mut self, broker: &str) {
        self.servers.remove(broker).unwrap().shutdown().await;
    }

    /// Starts a stopped broker again where it was.
    pub(crate) async fn restart_broker(&mut self, broker: &str) {
        let addr = self.state.lock().unwrap().brokers[broker];
        let server = serve_at(addr, Some(broker.to_owned()), &self.state).await;
        self.servers.insert(broker.to_owned(), server);
    }

    /// Lets a broker ask the producers of a group what became of the half message of this id; answers how many were asked.
    pub(crate) fn ask_about(&self, broker: &str, group: &str, id: &str, place: i64) -> usize {
        let state = self.state.lock().unwrap();
        let properties =
            format!("PGROUP\u{1}{group}\u{2}TRAN_MSG\u{1}true\u{2}UNIQ_KEY\u{1}{id}\u{2}");
        let queue = MessageQueue::new("t", broker, 1);
        let mut record = BytesMut::new();
        record::encode(
            &new_message(&queue, b"half", properties.as_bytes(), 4, 0),
            &mut record,
        )
        .unwrap();
        record::patch(
            &mut record,
            QueueOffset(place),
            PhysicalOffset(place * 100),
            1,
        );
        let header = CheckTransactionHeader {
            topic: Some("RMQ_SYS_TRANS_HALF_TOPIC".into()),
            tran_state_table_offset: place,
            commit_log_offset: place * 100,
            msg_id: Some(id.into()),
            transaction_id: Some(id.into()),
            offset_msg_id: None,
        };
        let ask = Request::new(RequestCode::CHECK_TRANSACTION_STATE)
            .with(&header)
            .body(record.freeze());
        let producers = state.producers.get(&(broker.to_owned(), group.to_owned()));
        let producers: Vec<_> = producers.into_iter().flat_map(BTreeMap::values).collect();
        for producer in &producers {
            producer.oneway(ask.clone()).unwrap();
        }
        producers.len()
    }

    /// The connections of a broker's producers of a group.
    pub(crate) fn producers(&self, broker: &str, group: &str) -> Vec<Connection> {
        let state = self.state.lock().unwrap();
        let producers = state.producers.get(&(broker.to_owned(), group.to_owned()));
        producers
            .into_iter()
            .flat_map(BTreeMap::values)
            .cloned()
            .collect()
    }

    pub(crate) async fn stop(self) {
        self.state.lock().unwrap().held.clear();
        for server in self.servers.into_values() {
            server.shutdown().await;
        }
    }
}

/// Waits for a condition, for at most ten seconds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "not in time: {what}"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn serve(broker: Option<String>, state: &Arc<Mutex<State>>) -> Server {
    serve_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), broker, state).await
}

async fn serve_at(addr: SocketAddr, broker: Option<String>, state: &Arc<Mutex<State>>) -> Server {
    let face = Face {
        broker,
        state: Arc::clone(state),
    };
    Server::bind(addr, ServerOptions::new(Clock::system()), Arc::new(face))
        .await
        .unwrap()
}

impl Service for Face {
    fn request(&self, connection: &Connection, frame: Frame, responder: Responder) {
        let mut state = self.state.lock().unwrap();
        let Some(broker) = &self.broker else {
            responder.send(state.route(&frame));
            return;
        };
        let code = frame.request_code();
        let queue_id = frame
            .header::<SendHeader<'_>>()
            .ok()
            .map(|header| header.queue_id);
        state.requests.push((code, broker.clone(), queue_id));
        let bent = state.rules.iter().find_map(|rule| rule(broker, &frame));
        if let Some(reply) = bent {
            responder.send(reply);
        } else if code == RequestCode::PULL_MESSAGE {
            state.pull(broker, &frame, responder);
        } else {
            let reply = state.answer(broker, &frame, connection);
            responder.send(reply);
        }
    }

    fn disconnected(&self, connection: &Connection) {
        let mut state = self.state.lock().unwrap();
        let mut changed = Vec::new();
        for (group, members) in &mut state.members {
            let before = members.len();
            members.retain(|_, member| member.id() != connection.id());
            if members.len() != before {
                changed.push(group.clone());
            }
        }
        for group in changed {
            state.notify(&group);
        }
    }
}

impl State {
    fn route(&self, frame: &Frame) -> Reply {
        let header: RouteHeader<'_> = frame.header().unwrap();
        let Some(queues) = self.topics.get(&*header.topic) else {
            return Reply::error(ResponseCode::TOPIC_NOT_EXIST, "no route");
        };
        let mut route = RouteData::default();
        for (name, addr) in &self.brokers {
            route.broker_datas.push(BrokerData {
                broker_addrs: BTreeMap::from([(0, addr.to_string())]),
                broker_name: name.clone(),
                cluster: "C".into(),
                ..BrokerData::default()
            });
            route.queue_datas.push(QueueData {
                broker_name: name.clone(),
                perm: 6,
                read_queue_nums: *queues,
                write_queue_nums: *queues,
                topic_sys_flag: 0,
            });
        }
        Reply::ok().body(to_vec(&route).unwrap())
    }

    fn answer(&mut self, broker: &str, frame: &Frame, connection: &Connection) -> Reply {
        match frame.request_code() {
            RequestCode::SEND_MESSAGE_V2
            | RequestCode::SEND_BATCH_MESSAGE
            | RequestCode::SEND_REPLY_MESSAGE_V2 => self.send(broker, frame),
            RequestCode::HEART_BEAT => self.heartbeat(broker, frame, connection),
            RequestCode::END_TRANSACTION => {
                let header: EndTransactionHeader<'_> = frame.header().unwrap();
                self.ended
                    .push((broker.to_owned(), header.into_owned(), !frame.is_oneway()));
                Reply::ok()
            }
            RequestCode::CHECK_CLIENT_CONFIG => Reply::ok(),
            RequestCode::SEARCH_OFFSET_BY_TIMESTAMP => {
                let header: SearchOffsetHeader<'_> = frame.header().unwrap();
                let queue = MessageQueue::new(&*header.topic, broker, header.queue_id);
                Reply::ok().with(&OffsetReply {
                    offset: self.stored_before(&queue, header.timestamp),
                })
            }
            RequestCode::INVOKE_BROKER_TO_RESET_OFFSET => self.reset(broker, frame),
            RequestCode::UNREGISTER_CLIENT => {
                let header: UnregisterClientHeader<'_> = frame.header().unwrap();
                if let Some(group) = header.producer_group {
                    let place = (broker.to_owned(), group.into_owned());
                    self.producers
                        .entry(place)
                        .or_default()
                        .remove(&*header.client_id);
                }
                if let Some(group) = header.consumer_group {
                    if let Some(members) = self.members.get_mut(&*group) {
                        members.remove(&*header.client_id);
                    }
                    self.notify(&group);
                }
                Reply::ok()
            }
            RequestCode::GET_CONSUMER_LIST_BY_GROUP => {
                let header: ConsumerGroupHeader<'_> = frame.header().unwrap();
                let members = self.members.get(&*header.consumer_group);
                let consumer_id_list = members
                    .map(|members| members.keys().cloned().collect())
                    .unwrap_or_default();
                Reply::ok().body(to_vec(&ConsumerIds { consumer_id_list }).unwrap())
            }
            RequestCode::QUERY_CONSUMER_OFFSET => {
                let header: QueryOffsetHeader<'_> = frame.header().unwrap();
                let queue = MessageQueue::new(&*header.topic, broker, header.queue_id);
                match self
                    .offsets
                    .get(&(header.consumer_group.into_owned(), queue))
                {
                    Some(offset) => Reply::ok().with(&OffsetReply { offset: *offset }),
                    None => Reply::code(ResponseCode::QUERY_NOT_FOUND),
                }
            }
            RequestCode::UPDATE_CONSUMER_OFFSET => {
                let header: UpdateOffsetHeader<'_> = frame.header().unwrap();
                let queue = MessageQueue::new(&*header.topic, broker, header.queue_id);
                self.commit(&header.consumer_group, queue, header.commit_offset);
                Reply::ok()
            }
            RequestCode::GET_MAX_OFFSET | RequestCode::GET_MIN_OFFSET => {
                let header: QueueHeader<'_> = frame.header().unwrap();
                let queue = MessageQueue::new(&*header.topic, broker, header.queue_id);
                let max = self.queues.get(&queue).map_or(0, Vec::len);
                let offset = if frame.request_code() == RequestCode::GET_MAX_OFFSET {
                    max
                } else {
                    0
                };
                Reply::ok().with(&OffsetReply {
                    offset: i64::try_from(offset).unwrap(),
                })
            }
            RequestCode::CONSUMER_SEND_MSG_BACK => {
                let header: SendBackHeader<'_> = frame.header().unwrap();
                self.sent_back.push((header.offset, header.delay_level));
                Reply::ok()
            }
            RequestCode::LOCK_BATCH_MQ => self.lock(frame),
            RequestCode::UNLOCK_BATCH_MQ => {
                let body: LockBatchBody = from_slice(&frame.body).unwrap();
                self.locks.retain(|queue, owner| {
                    *owner != body.client_id || !body.mq_set.contains(queue)
                });
                Reply::ok()
            }
            other => Reply::error(
                ResponseCode::REQUEST_CODE_NOT_SUPPORTED,
                format!("{other:?}"),
            ),
        }
    }

    fn commit(&mut self, group: &str, queue: MessageQueue, offset: i64) {
        self.commits.push((queue.clone(), offset));
        self.offsets.insert((group.to_owned(), queue), offset);
    }

    fn stored_before(&self, queue: &MessageQueue, timestamp: i64) -> i64 {
        let records = self.queues.get(queue).map_or(&[][..], Vec::as_slice);
        let older = records
            .iter()
            .take_while(|bytes| record::decode(bytes).unwrap().0.store_timestamp < timestamp);
        i64::try_from(older.count()).unwrap()
    }

    /// Answers the new positions and, as Apache's broker does, tells the members nothing.
    fn reset(&self, broker: &str, frame: &Frame) -> Reply {
        let header: ResetOffsetHeader<'_> = frame.header().unwrap();
        let queues = (0..self.topics[&*header.topic])
            .map(|id| MessageQueue::new(&*header.topic, broker, id));
        let offsets = queues.map(|queue| {
            let offset = self.stored_before(&queue, header.timestamp);
            (queue, offset)
        });
        let body = ResetOffsetBody {
            offset_table: QueueMap(offsets.collect()),
        };
        Reply::ok().body(to_vec(&body).unwrap())
    }

    fn heartbeat(&mut self, broker: &str, frame: &Frame, connection: &Connection) -> Reply {
        let data: HeartbeatData = from_slice(&frame.body).unwrap();
        for producer in data.producer_data_set {
            let place = (broker.to_owned(), producer.group_name);
            self.producers
                .entry(place)
                .or_default()
                .insert(data.client_id.clone(), connection.clone());
        }
        for consumer in data.consumer_data_set {
            let members = self.members.entry(consumer.group_name.clone()).or_default();
            if members
                .insert(data.client_id.clone(), connection.clone())
                .is_none()
            {
                self.notify(&consumer.group_name);
            }
        }
        Reply::ok()
    }

    fn notify(&self, group: &str) {
        for member in self
            .members
            .get(group)
            .into_iter()
            .flat_map(BTreeMap::values)
        {
            let header = ConsumerGroupHeader {
                consumer_group: group.into(),
            };
            // A member that is gone needs no notice.
            drop(
                member.oneway(Request::new(RequestCode::NOTIFY_CONSUMER_IDS_CHANGED).with(&header)),
            );
        }
    }

    fn lock(&mut self, frame: &Frame) -> Reply {
        let body: LockBatchBody = from_slice(&frame.body).unwrap();
        let mut got = Vec::new();
        for queue in body.mq_set {
            let owner = self
                .locks
                .entry(queue.clone())
                .or_insert_with(|| body.client_id.clone());
            if *owner == body.client_id {
                got.push(queue);
            }
        }
        Reply::ok().body(
            to_vec(&LockBatchReply {
                lock_ok_mq_set: got,
            })
            .unwrap(),
        )
    }

    fn send(&mut self, broker: &str, frame: &Frame) -> Reply {
        let header: SendHeader<'_> = frame.header().unwrap();
        let queue = MessageQueue::new(&*header.topic, broker, header.queue_id);
        let properties = header.properties.clone().unwrap_or_default();
        let times = header.reconsume_times.unwrap_or(0);
        let offset = self.append(
            &queue,
            &frame.body,
            properties.as_bytes(),
            header.sys_flag,
            times,
        );
        Reply::ok().with(&SendReply {
            msg_id: format!("{offset:032X}").into(),
            queue_id: header.queue_id,
            queue_offset: offset,
            ..SendReply::default()
        })
    }

    fn append(
        &mut self,
        queue: &MessageQueue,
        body: &[u8],
        properties: &[u8],
        sys_flag: i32,
        reconsume_times: i32,
    ) -> i64 {
        let message = new_message(queue, body, properties, sys_flag, reconsume_times);
        let mut bytes = BytesMut::new();
        record::encode(&message, &mut bytes).unwrap();
        let records = self.queues.entry(queue.clone()).or_default();
        let offset = i64::try_from(records.len()).unwrap();
        // Physical offsets need to differ between queues only.
        let place = offset + 1000 * i64::from(queue.queue_id);
        record::patch(
            &mut bytes,
            QueueOffset(offset),
            PhysicalOffset(place),
            self.now,
        );
        records.push(bytes.freeze());
        let (waiting, others) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(held, ..)| held == queue);
        self.held = others;
        let waiting: Vec<(MessageQueue, i64, Responder)> = waiting;
        for (queue, from, responder) in waiting {
            responder.send(self.found(&queue, from, 32));
        }
        offset
    }

    fn pull(&mut self, broker: &str, frame: &Frame, responder: Responder) {
        let header: PullHeader<'_> = frame.header().unwrap();
        let queue = MessageQueue::new(&*header.topic, broker, header.queue_id);
        if header.sys_flag & 1 != 0 {
            self.commit(&header.consumer_group, queue.clone(), header.commit_offset);
        }
        let end = i64::try_from(self.queues.get(&queue).map_or(0, Vec::len)).unwrap();
        match header.queue_offset.cmp(&end) {
            Ordering::Equal => self.held.push((queue, header.queue_offset, responder)),
            Ordering::Greater => {
                let reply = Reply::code(ResponseCode::PULL_OFFSET_MOVED);
                responder.send(reply.with(&numbers(end, end)));
            }
            Ordering::Less => {
                let reply = self.found(&queue, header.queue_offset, header.max_msg_nums);
                responder.send(reply);
            }
        }
    }

    fn found(&self, queue: &MessageQueue, from: i64, max: i32) -> Reply {
        let records = &self.queues[queue];
        let from = usize::try_from(from).unwrap();
        let to = (from + usize::try_from(max).unwrap()).min(records.len());
        let reply = Reply::ok().with(&numbers(
            i64::try_from(to).unwrap(),
            i64::try_from(records.len()).unwrap(),
        ));
        records[from..to]
            .iter()
            .fold(reply, |reply, record| reply.body(record.clone()))
    }
}

fn new_message<'a>(
    queue: &'a MessageQueue,
    body: &'a [u8],
    properties: &'a [u8],
    sys_flag: i32,
    reconsume_times: i32,
) -> NewMessage<'a> {
    let host = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    NewMessage {
        topic: &queue.topic,
        queue_id: queue.queue_id,
        flag: 0,
        sys_flag: SysFlag(sys_flag),
        born_timestamp: 0,
        born_host: host,
        store_host: host,
        reconsume_times,
        prepared_transaction_offset: 0,
        body,
        properties,
    }
}

/// The header of an answer to a pull.
pub(crate) fn numbers(next: i64, max: i64) -> PullReply {
    PullReply {
        suggest_which_broker_id: 0,
        next_begin_offset: next,
        min_offset: 0,
        max_offset: max,
        ..PullReply::default()
    }
}
