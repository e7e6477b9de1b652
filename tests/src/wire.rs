//! A client that knows frames and headers and nothing else, so that what it sees is what is on the wire.
use std::{borrow::Cow, sync::Arc, time::Duration};

use bindery_protocol::{
    codes::{RequestCode, ResponseCode},
    frame::{Frame, HeaderError, Request},
    headers::{CreateTopicHeader, PullHeader, PullReply, SendHeader, SendReply},
    message::{StoredMessage, property, record},
};
use bindery_remoting::{ConnectOptions, Connection, RemotingError, Responder, Service};

const PATIENCE: Duration = Duration::from_secs(10);

/// Answers nothing that a broker may ask.
#[derive(Debug)]
pub struct NullService;

impl Service for NullService {
    fn request(&self, _connection: &Connection, _frame: Frame, _responder: Responder) {}
}

/// One connection to a broker. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Wire {
    connection: Connection,
}

/// Where an acknowledged message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stored {
    /// Queue of the topic.
    pub queue: i32,
    /// Offset in that queue.
    pub offset: i64,
}

/// Why a request was not answered with success.
#[derive(Debug)]
pub enum WireError {
    /// No answer.
    Remoting(RemotingError),
    /// An answer without the header it must have.
    Header(HeaderError),
    /// A refusal.
    Refused(ResponseCode, String),
}

impl From<RemotingError> for WireError {
    fn from(error: RemotingError) -> Self {
        Self::Remoting(error)
    }
}

impl From<HeaderError> for WireError {
    fn from(error: HeaderError) -> Self {
        Self::Header(error)
    }
}

impl Wire {
    /// Connects.
    ///
    /// # Errors
    /// When the broker can't be reached.
    pub async fn connect(broker: &str) -> Result<Self, WireError> {
        let connection =
            Connection::connect(broker, ConnectOptions::default(), Arc::new(NullService)).await?;
        Ok(Self { connection })
    }

    /// Makes a topic with so many queues.
    ///
    /// # Errors
    /// No answer or a refusal.
    pub async fn create_topic(&self, topic: &str, queues: i32) -> Result<(), WireError> {
        let header = CreateTopicHeader {
            topic: Cow::Borrowed(topic),
            default_topic: Cow::Borrowed("TBW102"),
            read_queue_nums: queues,
            write_queue_nums: queues,
            perm: 6,
            topic_filter_type: Cow::Borrowed("SINGLE_TAG"),
            topic_sys_flag: None,
            order: false,
            attributes: None,
            force: false,
        };
        self.ask(Request::new(RequestCode::UPDATE_AND_CREATE_TOPIC).with(&header))
            .await
            .map(drop)
    }

    /// Sends one message to a queue and waits until it is acknowledged.
    ///
    /// # Errors
    /// No answer or a refusal.
    pub async fn send(&self, topic: &str, queue: i32, body: &str) -> Result<Stored, WireError> {
        self.send_with(topic, queue, body, None).await
    }

    /// Sends one message that is to be delivered to a queue after a delay level, and waits until it is acknowledged. Its place is
    /// that in the queue of the level.
    ///
    /// # Errors
    /// No answer or a refusal.
    pub async fn send_later(
        &self,
        topic: &str,
        queue: i32,
        body: &str,
        level: i32,
    ) -> Result<Stored, WireError> {
        let properties = format!("{}\u{1}{level}\u{2}", property::DELAY);
        self.send_with(topic, queue, body, Some(properties)).await
    }

    async fn send_with(
        &self,
        topic: &str,
        queue: i32,
        body: &str,
        properties: Option<String>,
    ) -> Result<Stored, WireError> {
        let header = SendHeader {
            producer_group: Cow::Borrowed("wire"),
            topic: Cow::Borrowed(topic),
            default_topic: Cow::Borrowed("TBW102"),
            default_topic_queue_nums: 4,
            queue_id: queue,
            properties: properties.map(Cow::Owned),
            ..SendHeader::default()
        };
        let request = Request::new(RequestCode::SEND_MESSAGE_V2)
            .with(&header)
            .body(body.to_owned());
        let answer = self.ask(request).await?;
        let reply: SendReply<'_> = answer.header()?;
        Ok(Stored {
            queue: reply.queue_id,
            offset: reply.queue_offset,
        })
    }

    /// All messages of a queue, from its first to its last.
    ///
    /// # Errors
    /// No answer, or a refusal other than "nothing more".
    pub async fn read_all(&self, topic: &str, queue: i32) -> Result<Vec<StoredMessage>, WireError> {
        let (mut all, mut offset) = (Vec::new(), 0);
        loop {
            let header = PullHeader {
                consumer_group: Cow::Borrowed("wire-reader"),
                topic: Cow::Borrowed(topic),
                queue_id: queue,
                queue_offset: offset,
                max_msg_nums: 32,
                sys_flag: 4,
                commit_offset: 0,
                suspend_timeout_millis: 0,
                subscription: Some(Cow::Borrowed("*")),
                sub_version: 0,
                expression_type: None,
                max_msg_bytes: None,
                request_source: None,
                proxy_forward_client_id: None,
            };
            let answer = self
                .connection
                .call(
                    Request::new(RequestCode::PULL_MESSAGE).with(&header),
                    PATIENCE,
                )
                .await?;
            match answer.response_code() {
                ResponseCode::SUCCESS | ResponseCode::PULL_RETRY_IMMEDIATELY => {
                    let reply: PullReply = answer.header()?;
                    offset = reply.next_begin_offset;
                    all.extend(record::decode_all(answer.body));
                }
                ResponseCode::PULL_NOT_FOUND | ResponseCode::PULL_OFFSET_MOVED => return Ok(all),
                code => {
                    return Err(WireError::Refused(
                        code,
                        answer.head.remark.unwrap_or_default(),
                    ));
                }
            }
        }
    }

    async fn ask(&self, request: Request) -> Result<Frame, WireError> {
        let answer = self.connection.call(request, PATIENCE).await?;
        match answer.response_code() {
            ResponseCode::SUCCESS => Ok(answer),
            code => Err(WireError::Refused(
                code,
                answer.head.remark.unwrap_or_default(),
            )),
        }
    }
}
