//! A client that speaks plain requests, the same to either broker.
use std::sync::Arc;
use std::time::Duration;

use bindery_protocol::codes::{RequestCode, ResponseCode};
use bindery_protocol::frame::{Frame, Request};
use bindery_protocol::headers::{
    CreateTopicHeader, EndTransactionHeader, OffsetReply, PullHeader, PullReply,
    QueryMessageHeader, QueryOffsetHeader, SendBackHeader, SendHeader, SendReply,
    UpdateOffsetHeader,
};
use bindery_protocol::message::batch::{self, BatchElement};
use bindery_protocol::message::{StoredMessage, id, record};
use bindery_remoting::{ConnectOptions, Connection};
use bindery_tests::NullService;
use bytes::{Bytes, BytesMut};

/// Apache's broker may be busy starting.
const PATIENCE: Duration = Duration::from_secs(60);
const BORN: i64 = 1_700_000_000_000;

/// One connection.
pub(crate) struct Speaker {
    connection: Connection,
}

/// Where a sent message lies.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// In its queue.
    pub(crate) offset: i64,
    /// In the commit log.
    pub(crate) physical: i64,
    id: String,
}

impl Sent {
    fn of(answer: &Frame) -> Self {
        let reply: SendReply<'_> = answer.header().unwrap();
        let first = reply.msg_id.split(',').next().unwrap_or_default();
        let physical = id::parse_offset_msg_id(first).map_or(-1, |(_, physical)| physical.0);
        Self {
            offset: reply.queue_offset,
            physical,
            id: first.to_owned(),
        }
    }
}

/// What a pull gave.
pub(crate) struct Pulled {
    pub(crate) records: Vec<Bytes>,
    pub(crate) next: i64,
    pub(crate) min: i64,
    pub(crate) max: i64,
}

fn send_header(topic: &str, queue_id: i32, properties: &str) -> SendHeader<'static> {
    SendHeader {
        producer_group: "exchange".into(),
        topic: topic.to_owned().into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id,
        born_timestamp: BORN,
        properties: Some(properties.to_owned().into()),
        ..SendHeader::default()
    }
}

fn chain(count: usize) -> BytesMut {
    let mut body = BytesMut::new();
    for n in 0..count {
        let text = format!("element {n}");
        let properties = format!("KEYS\u{1}element-{n}\u{2}");
        let element = BatchElement {
            flag: 0,
            body: text.as_bytes(),
            properties: properties.as_bytes(),
        };
        batch::encode(&element, &mut body).unwrap();
    }
    body
}

impl Speaker {
    pub(crate) async fn connect(address: String) -> Self {
        let service = Arc::new(NullService);
        let connection = Connection::connect(&address, ConnectOptions::default(), service);
        let connection = connection.await.unwrap();
        Self { connection }
    }

    async fn call(&self, request: Request) -> Frame {
        self.connection.call(request, PATIENCE).await.unwrap()
    }

    async fn ok(&self, request: Request) -> Frame {
        let code = request.code;
        let answer = self.call(request).await;
        let remark = &answer.head.remark;
        assert_eq!(
            answer.response_code(),
            ResponseCode::SUCCESS,
            "{code:?} {remark:?}"
        );
        answer
    }

    pub(crate) async fn create_topic(&self, topic: &str, attributes: &str) {
        let header = CreateTopicHeader {
            topic: topic.into(),
            default_topic: "TBW102".into(),
            read_queue_nums: 2,
            write_queue_nums: 2,
            perm: 6,
            topic_filter_type: "SINGLE_TAG".into(),
            topic_sys_flag: Some(0),
            order: false,
            attributes: Some(attributes.into()),
            force: false,
        };
        self.ok(Request::new(RequestCode::UPDATE_AND_CREATE_TOPIC).with(&header))
            .await;
    }

    pub(crate) async fn send(&self, topic: &str, queue: i32, body: &str, properties: &str) -> Sent {
        let request = Request::new(RequestCode::SEND_MESSAGE_V2)
            .with(&send_header(topic, queue, properties))
            .body(body.to_owned());
        Sent::of(&self.ok(request).await)
    }

    /// A batch whose elements are messages of their own.
    pub(crate) async fn batch(
        &self,
        topic: &str,
        queue: i32,
        count: usize,
        properties: &str,
    ) -> Sent {
        let mut header = send_header(topic, queue, properties);
        header.batch = Some(true);
        let request = Request::new(RequestCode::SEND_BATCH_MESSAGE)
            .with(&header)
            .body(chain(count).to_vec());
        Sent::of(&self.ok(request).await)
    }

    /// A batch for a topic of batches, where it is one record.
    pub(crate) async fn inner_batch(&self, topic: &str, queue: i32, count: usize) -> Sent {
        let unique = format!("UNIQ_KEY\u{1}INNER{count}\u{2}");
        self.batch(topic, queue, count, &unique).await
    }

    /// A half message.
    pub(crate) async fn half(&self, topic: &str, body: &str, unique: &str) -> Sent {
        let properties =
            format!("TRAN_MSG\u{1}true\u{2}PGROUP\u{1}exchange\u{2}UNIQ_KEY\u{1}{unique}\u{2}");
        let mut header = send_header(topic, 0, &properties);
        header.sys_flag = 4;
        let request = Request::new(RequestCode::SEND_MESSAGE_V2)
            .with(&header)
            .body(body.to_owned());
        Sent::of(&self.ok(request).await)
    }

    pub(crate) async fn end_transaction(
        &self,
        topic: &str,
        half: &Sent,
        unique: &str,
        verdict: i32,
    ) {
        let header = EndTransactionHeader {
            topic: Some(topic.into()),
            producer_group: "exchange".into(),
            tran_state_table_offset: half.offset,
            commit_log_offset: half.physical,
            commit_or_rollback: verdict,
            from_transaction_check: false,
            msg_id: unique.into(),
            transaction_id: Some(unique.into()),
        };
        self.ok(Request::new(RequestCode::END_TRANSACTION).with(&header))
            .await;
    }

    /// Gives a message back, to be delivered again.
    pub(crate) async fn send_back(&self, group: &str, sent: &Sent) {
        let header = SendBackHeader {
            offset: sent.physical,
            group: group.into(),
            delay_level: 1,
            origin_msg_id: Some(sent.id.as_str().into()),
            origin_topic: Some("Normal".into()),
            unit_mode: false,
            max_reconsume_times: Some(16),
        };
        self.ok(Request::new(RequestCode::CONSUMER_SEND_MSG_BACK).with(&header))
            .await;
    }

    pub(crate) async fn commit(&self, group: &str, topic: &str, queue_id: i32, offset: i64) {
        let header = UpdateOffsetHeader {
            consumer_group: group.into(),
            topic: topic.into(),
            queue_id,
            commit_offset: offset,
        };
        self.ok(Request::new(RequestCode::UPDATE_CONSUMER_OFFSET).with(&header))
            .await;
    }

    pub(crate) async fn committed(&self, group: &str, topic: &str, queue_id: i32) -> i64 {
        let header = QueryOffsetHeader {
            consumer_group: group.into(),
            topic: topic.into(),
            queue_id,
            set_zero_if_not_found: Some(false),
        };
        let answer = self
            .ok(Request::new(RequestCode::QUERY_CONSUMER_OFFSET).with(&header))
            .await;
        answer.header::<OffsetReply>().unwrap().offset
    }

    /// Pulls from an offset; `None` if there is no such topic or queue.
    pub(crate) async fn pull(&self, topic: &str, queue_id: i32, offset: i64) -> Option<Pulled> {
        let header = PullHeader {
            consumer_group: "ExchangeReader".into(),
            topic: topic.into(),
            queue_id,
            queue_offset: offset,
            max_msg_nums: 32,
            sys_flag: 4,
            commit_offset: 0,
            suspend_timeout_millis: 0,
            subscription: Some("*".into()),
            sub_version: 1,
            expression_type: Some("TAG".into()),
            max_msg_bytes: None,
            request_source: None,
            proxy_forward_client_id: None,
        };
        let answer = self
            .call(Request::new(RequestCode::PULL_MESSAGE).with(&header))
            .await;
        let reply: PullReply = answer.header().ok()?;
        let records = if answer.response_code() == ResponseCode::SUCCESS {
            split(&answer.body)
        } else {
            Vec::new()
        };
        Some(Pulled {
            records,
            next: reply.next_begin_offset,
            min: reply.min_offset,
            max: reply.max_offset,
        })
    }

    /// The records found by a key.
    pub(crate) async fn by_key(&self, topic: &str, key: &str, unique: bool) -> Vec<StoredMessage> {
        let header = QueryMessageHeader {
            topic: topic.into(),
            key: key.into(),
            max_num: 64,
            begin_timestamp: 0,
            end_timestamp: i64::MAX,
            unique_key_query: Some(unique),
        };
        let answer = self
            .call(Request::new(RequestCode::QUERY_MESSAGE).with(&header))
            .await;
        record::decode_all(answer.body)
    }
}

/// The records of an answer, as bytes.
fn split(body: &Bytes) -> Vec<Bytes> {
    let mut rest = body.clone();
    let mut records = Vec::new();
    while let Some(size) = rest.first_chunk().map(|size| u32::from_be_bytes(*size)) {
        records.push(rest.split_to(usize::try_from(size).unwrap()));
    }
    records
}
