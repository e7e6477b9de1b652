//! The requests of a client, one function each: typed header and body out, typed answer back.
//!
//! ```text
//! pull (11) · positions (14, 15, 29, 30, 31) · send back (36) · members (38) · locks (41, 42) · filter check (46) · route (105)
//! ```
use std::{collections::BTreeMap, time::Duration};

use bindery_protocol::{
    bodies::{
        CheckClientBody, ConsumerIds, LockBatchBody, LockBatchReply, MessageQueue, ResetOffsetBody,
        RouteData, SubscriptionData,
    },
    codes::{RequestCode, ResponseCode},
    frame::{Frame, Request},
    headers::{
        ConsumerGroupHeader, MaxOffsetHeader, OffsetReply, PullHeader, PullReply,
        QueryOffsetHeader, QueueHeader, RouteHeader, SearchOffsetHeader, SendBackHeader,
        UpdateOffsetHeader, WireHeader,
    },
};
use bytes::Bytes;

use super::{Peer, Shared, knows_topic, refusal, success};
use crate::{ClientError, body};

/// Time allowed for positions and send-backs (Java's 5 s).
const POSITION_TIMEOUT: Duration = Duration::from_secs(5);

/// What a pull was answered with.
#[derive(Debug)]
pub(crate) enum PullAnswer {
    /// Stored messages, concatenated.
    Found { reply: PullReply, records: Bytes },
    /// Nothing new, or nothing that passes the filter.
    Nothing { reply: PullReply },
    /// The offset lies outside the queue, or a reset is pending; `reply.next_begin_offset` is where to go on.
    Illegal { reply: PullReply },
}

/// Reads a header from an answer.
pub(crate) fn read_header<'a, H: WireHeader<'a>>(
    addr: &str,
    answer: &'a Frame,
) -> Result<H, ClientError> {
    answer.header().map_err(|source| ClientError::Header {
        addr: addr.to_owned(),
        source,
    })
}

/// The queues and offsets of a reset pushed by a broker.
pub(super) fn reset_targets(bytes: &[u8]) -> Result<BTreeMap<MessageQueue, i64>, ClientError> {
    let reset: ResetOffsetBody = body::decode("a reset of offsets", bytes)?;
    Ok(reset.offset_table.0)
}

impl Shared {
    /// The route of a topic; `None` when every name server that answers says that there is none.
    pub(crate) async fn ask_route(&self, topic: &str) -> Result<Option<RouteData>, ClientError> {
        let header = RouteHeader {
            topic: topic.into(),
            accept_standard_json_only: None,
        };
        let request = Request::new(RequestCode::GET_ROUTEINFO_BY_TOPIC).with(&header);
        let (addr, answer) = self.ask_name_servers(&request, knows_topic).await?;
        if !knows_topic(&answer) {
            return Ok(None);
        }
        let answer = success(&addr, answer)?;
        body::decode("a route", &answer.body).map(Some)
    }

    pub(crate) async fn pull(
        &self,
        addr: &str,
        header: &PullHeader<'_>,
        timeout: Duration,
    ) -> Result<PullAnswer, ClientError> {
        let request = Request::new(RequestCode::PULL_MESSAGE).with(header);
        let answer = self.call(Peer::Broker, addr, request, timeout).await?;
        let code = answer.response_code();
        match code {
            ResponseCode::SUCCESS
            | ResponseCode::PULL_NOT_FOUND
            | ResponseCode::PULL_RETRY_IMMEDIATELY
            | ResponseCode::PULL_OFFSET_MOVED => {}
            _ => return Err(refusal(addr, &answer)),
        }
        let reply = read_header(addr, &answer)?;
        Ok(match code {
            ResponseCode::SUCCESS => PullAnswer::Found {
                reply,
                records: answer.body,
            },
            ResponseCode::PULL_OFFSET_MOVED => PullAnswer::Illegal { reply },
            _ => PullAnswer::Nothing { reply },
        })
    }

    /// The position of a group; `None` when it has none.
    pub(crate) async fn query_offset(
        &self,
        addr: &str,
        group: &str,
        queue: &MessageQueue,
        zero_if_new: bool,
    ) -> Result<Option<i64>, ClientError> {
        let header = QueryOffsetHeader {
            consumer_group: group.into(),
            topic: (&*queue.topic).into(),
            queue_id: queue.queue_id,
            set_zero_if_not_found: (!zero_if_new).then_some(false),
        };
        let request = Request::new(RequestCode::QUERY_CONSUMER_OFFSET).with(&header);
        let answer = self
            .call(Peer::Broker, addr, request, POSITION_TIMEOUT)
            .await?;
        if answer.response_code() == ResponseCode::QUERY_NOT_FOUND {
            return Ok(None);
        }
        let answer = success(addr, answer)?;
        let reply: OffsetReply = read_header(addr, &answer)?;
        Ok((reply.offset >= 0).then_some(reply.offset))
    }

    pub(crate) async fn update_offset(
        &self,
        addr: &str,
        group: &str,
        queue: &MessageQueue,
        offset: i64,
    ) -> Result<(), ClientError> {
        let header = UpdateOffsetHeader {
            consumer_group: group.into(),
            topic: (&*queue.topic).into(),
            queue_id: queue.queue_id,
            commit_offset: offset,
        };
        let request = Request::new(RequestCode::UPDATE_CONSUMER_OFFSET).with(&header);
        self.ask(addr, request, POSITION_TIMEOUT).await.map(drop)
    }

    /// Offset the next message will get.
    pub(crate) async fn max_offset(
        &self,
        addr: &str,
        queue: &MessageQueue,
    ) -> Result<i64, ClientError> {
        let header = MaxOffsetHeader {
            topic: (&*queue.topic).into(),
            queue_id: queue.queue_id,
            committed: true,
        };
        self.ask_offset(
            addr,
            Request::new(RequestCode::GET_MAX_OFFSET).with(&header),
        )
        .await
    }

    /// Offset of the oldest message.
    pub(crate) async fn min_offset(
        &self,
        addr: &str,
        queue: &MessageQueue,
    ) -> Result<i64, ClientError> {
        let header = QueueHeader {
            topic: (&*queue.topic).into(),
            queue_id: queue.queue_id,
        };
        self.ask_offset(
            addr,
            Request::new(RequestCode::GET_MIN_OFFSET).with(&header),
        )
        .await
    }

    /// Offset of the first message stored at or after `timestamp`.
    pub(crate) async fn search_offset(
        &self,
        addr: &str,
        queue: &MessageQueue,
        timestamp: i64,
    ) -> Result<i64, ClientError> {
        let header = SearchOffsetHeader {
            topic: (&*queue.topic).into(),
            queue_id: queue.queue_id,
            timestamp,
            boundary_type: Some("LOWER".into()),
        };
        self.ask_offset(
            addr,
            Request::new(RequestCode::SEARCH_OFFSET_BY_TIMESTAMP).with(&header),
        )
        .await
    }

    async fn ask_offset(&self, addr: &str, request: Request) -> Result<i64, ClientError> {
        let answer = self.ask(addr, request, POSITION_TIMEOUT).await?;
        let reply: OffsetReply = read_header(addr, &answer)?;
        Ok(reply.offset)
    }

    pub(crate) async fn send_back(
        &self,
        addr: &str,
        header: &SendBackHeader<'_>,
    ) -> Result<(), ClientError> {
        let request = Request::new(RequestCode::CONSUMER_SEND_MSG_BACK).with(header);
        self.ask(addr, request, POSITION_TIMEOUT).await.map(drop)
    }

    /// Client ids of the members of a group.
    pub(crate) async fn members(
        &self,
        addr: &str,
        group: &str,
    ) -> Result<Vec<String>, ClientError> {
        let header = ConsumerGroupHeader {
            consumer_group: group.into(),
        };
        let request = Request::new(RequestCode::GET_CONSUMER_LIST_BY_GROUP).with(&header);
        let answer = self.ask(addr, request, self.config.call_timeout).await?;
        let ids: ConsumerIds = body::decode("the members of a group", &answer.body)?;
        Ok(ids.consumer_id_list)
    }

    /// The queues among `queues` that this client holds after the call.
    pub(crate) async fn lock_queues(
        &self,
        addr: &str,
        group: &str,
        queues: &[MessageQueue],
        timeout: Duration,
    ) -> Result<Vec<MessageQueue>, ClientError> {
        let request = Request::new(RequestCode::LOCK_BATCH_MQ).body(self.lock_body(group, queues)?);
        let answer = self.ask(addr, request, timeout).await?;
        let reply: LockBatchReply = body::decode("the locked queues", &answer.body)?;
        Ok(reply.lock_ok_mq_set)
    }

    pub(crate) async fn unlock_queues(
        &self,
        addr: &str,
        group: &str,
        queues: &[MessageQueue],
        timeout: Duration,
    ) -> Result<(), ClientError> {
        let request =
            Request::new(RequestCode::UNLOCK_BATCH_MQ).body(self.lock_body(group, queues)?);
        self.ask(addr, request, timeout).await.map(drop)
    }

    fn lock_body(&self, group: &str, queues: &[MessageQueue]) -> Result<Vec<u8>, ClientError> {
        let locks = LockBatchBody {
            client_id: self.id.clone(),
            consumer_group: group.to_owned(),
            mq_set: queues.to_vec(),
            only_this_broker: false,
        };
        body::encode("a lock request", &locks)
    }

    /// Has the broker look at a filter expression.
    pub(crate) async fn check_client_config(
        &self,
        addr: &str,
        group: &str,
        subscription_data: SubscriptionData,
    ) -> Result<(), ClientError> {
        let check = CheckClientBody {
            client_id: self.id.clone(),
            group: group.to_owned(),
            namespace: self.config.namespace.clone(),
            subscription_data,
        };
        let request = Request::new(RequestCode::CHECK_CLIENT_CONFIG)
            .body(body::encode("a filter check", &check)?);
        self.ask(addr, request, self.config.call_timeout)
            .await
            .map(drop)
    }
}
